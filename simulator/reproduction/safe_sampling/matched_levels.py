"""lqs-fig4: the k that makes up for a doubled β (LQS sec 3.3)."""

import math

import numpy as np

from mechanisms.privacy import strongly_safe_delta
from mechanisms.privacy.strongly_safe import least_epsilon
from simulator.reproduction.entry import Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.suppression_curves import inverse_curve

PAIRS = ((15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4))
# Where the k is looked for.
EPSILONS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)


def reproduce(*, seed: int = 0) -> Reproduction:
    """Draw Fig 4, and find the k each β needs; nothing is drawn by chance, whatever the `seed`."""
    del seed
    rows = []
    for k, beta in PAIRS[1:]:
        needed = [_needed(beta, epsilon) for epsilon in EPSILONS]
        rows.append(
            Row(
                f"beta={beta:g}: k needed for the delta of (15, 0.05)",
                k,
                f"{min(needed)} to {max(needed)}",
                min(needed) <= k <= max(needed),
                "Over ε = .75 … 2: " + ", ".join(f"{n} at {e:g}" for n, e in zip(needed, EPSILONS, strict=True)) + '. "'
                'k increases from 15 to 22 (for β = 0.1), 35 (for β = 0.2), and 60 (for β = 0.4)". Agrees if the '
                "printed k is among them.",
            )
        )
    for epsilon in (0.6, 1.0, 1.5, 2.0, 2.5):
        logs = _logs(epsilon)
        spread = max(logs) - min(logs)
        rows.append(
            Row(
                f"epsilon={epsilon:g}: powers of ten between the four",
                "similar",
                spread,
                spread <= 1.0,
                '"find a value k that gives a similar level of privacy protection"; log10 of 1/δ is '
                + ", ".join(f"{log:.1f}" for log in logs)
                + " for (15, .05), (22, .1), (35, .2), (60, .4). Alike would be within one power of ten.",
            )
        )
    grid = np.arange(math.ceil(100 * least_epsilon(0.4)), 401) / 100
    spreads = [float(np.ptp(_logs(float(epsilon)))) for epsilon in grid]
    best = int(np.argmin(spreads))
    curves = [inverse_curve(f"k = {k}, β = {beta:g}", k, beta) for k, beta in PAIRS]
    findings = (
        (
            f"The four settings of Fig 4 are not alike: at their closest (ε = {grid[best]:g}) their δ are "
            f"{10 ** spreads[best]:.0f}-fold apart, at ε = 1 "
            f"{10 ** float(np.ptp(_logs(1.0))):.0f}-fold. Each printed k matches (15, .05) near one ε only, and "
            "the curves "
            "cross; the larger β, the steeper the curve."
        ),
    )
    return Reproduction(rows, (Drawing("1/δ against ε", "ε", "1/δ", curves, log_y=True),), findings)


def _logs(epsilon: float) -> list[float]:
    """Return log10 of 1/δ for the four settings."""
    return [-math.log10(strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon)) for k, beta in PAIRS]


def _needed(beta: float, epsilon: float) -> int:
    """Return the least k whose δ is no more than that of (15, .05)."""
    k, reference = PAIRS[0]
    target = strongly_safe_delta(k=k, sampling=reference, epsilon=epsilon)
    while strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon) > target:
        k += 1
    return k


FIG_4 = Entry("lqs-fig4", "LQS", "Fig 4: k = 15, 22, 35, 60 for β = .05, .1, .2, .4", reproduce)
