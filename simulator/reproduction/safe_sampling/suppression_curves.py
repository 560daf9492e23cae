"""lqs-fig2 and lqs-fig3: 1/δ against ε for several k, and for several β (LQS theorem 5)."""

import itertools
import math

import numpy as np

from mechanisms.privacy import strongly_safe_delta
from mechanisms.privacy.strongly_safe import least_epsilon
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

KS = (5, 10, 20, 30, 50)
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4)
FIXED_BETA, FIXED_K = 0.2, 20


def epsilons(beta: float, last: float = 2.5, count: int = 46) -> list[float]:
    """Return ε from where theorem 5 begins to `last`."""
    return [float(e) for e in np.linspace(least_epsilon(beta) + 1e-9, last, count)]


def inverse_curve(name: str, k: int, beta: float, last: float = 2.5) -> Curve:
    """Return the line of 1/δ against ε."""
    x = epsilons(beta, last)
    return Curve(name, x, [1.0 / strongly_safe_delta(k=k, sampling=beta, epsilon=e) for e in x])


def falls(curve: Curve) -> bool:
    """Whether δ never rises with ε along a curve of 1/δ."""
    values = [value for value in curve.y if value is not None]
    return all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))


def reproduce_ks(*, seed: int = 0) -> Reproduction:
    """Draw Fig 2, and check what the text says of it; nothing is drawn by chance, whatever the `seed`."""
    del seed
    curves = [inverse_curve(f"k = {k}", k, FIXED_BETA) for k in KS]
    logs = {k: math.log10(strongly_safe_delta(k=k, sampling=FIXED_BETA, epsilon=2.0)) for k in range(5, 51, 5)}
    quote = '"when ε = 2, increasing k by 10 roughly decreases δ by 10^−5": log10 of δ(k + 10)/δ(k); agrees within 1.'
    rows = [_negative(curves)]
    for k in (5, 10, 20, 30, 40):
        step = logs[k + 10] - logs[k]
        rows.append(Row(f"epsilon=2, k={k} to {k + 10}", -5, step, abs(step + 5) <= 1.0, quote))
    ks, values = np.array(list(logs)), np.array(list(logs.values()))
    straight = float(np.corrcoef(ks, values)[0, 1] ** 2)
    slope = float(10 * np.polyfit(ks, values, 1)[0])
    rows.append(
        Row(
            "epsilon=2, log10 delta on k: R squared",
            "close to exponential",
            straight,
            straight > 0.99,
            f'"increasing k has a close to exponential effect of improving privacy protection": R² of a straight line, '
            f"k = 5, 10 … 50; it falls by 10^{slope:.2f} for every 10 of k. Agrees above .99.",
        )
    )
    return Reproduction(rows, (Drawing("1/δ against ε, β = 0.2", "ε", "1/δ", curves, log_y=True),))


def reproduce_betas(*, seed: int = 0) -> Reproduction:
    """Draw Fig 3, and check what the text says of it; nothing is drawn by chance, whatever the `seed`."""
    del seed
    curves = [inverse_curve(f"β = {beta:g}", FIXED_K, beta) for beta in BETAS]
    rows = [_negative(curves)]
    for epsilon in (1.0, 2.0):
        deltas = [strongly_safe_delta(k=FIXED_K, sampling=beta, epsilon=epsilon) for beta in BETAS]
        ordered = all(a < b for a, b in itertools.pairwise(deltas))
        orders = math.log10(deltas[-1] / deltas[0])
        rows.append(
            Row(
                f"epsilon={epsilon:g}, beta=0.4 down to 0.05: powers of ten that delta falls by",
                "dramatically",
                orders,
                ordered and orders > 5,
                '"decreasing β also dramatically improve the privacy protection"; agrees if δ falls at every step, '
                "by more than 10^5 in all.",
            )
        )
    return Reproduction(rows, (Drawing("1/δ against ε, k = 20", "ε", "1/δ", curves, log_y=True),))


def _negative(curves: list[Curve]) -> Row:
    """Return whether δ falls with ε on every curve."""
    down = all(falls(curve) for curve in curves)
    return Row(
        "epsilon and delta: negative correlation",
        "negative",
        "negative" if down else "not everywhere",
        down,
        '"The figure indicates a negative correlation between ε and δ": δ never rises along any curve. It falls in '
        "steps, since n is whole.",
    )


FIG_2 = Entry("lqs-fig2", "LQS", "Fig 2: 1/δ against ε for k = 5 … 50 at β = 0.2", reproduce_ks)
FIG_3 = Entry("lqs-fig3", "LQS", "Fig 3: 1/δ against ε for β = .05 … .4 at k = 20", reproduce_betas)
