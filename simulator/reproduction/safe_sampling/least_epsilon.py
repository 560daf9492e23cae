"""lqs-fig6: the least ε against k that leaves δ ≤ 1e-6 (LQS sec 3.3)."""

import itertools
import math
from collections.abc import Callable

from mechanisms.privacy import strongly_safe_delta, worst_crowd_delta
from mechanisms.privacy.strongly_safe import least_epsilon
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row

BETAS = (0.05, 0.1, 0.2, 0.3, 0.4)
TARGET = 1e-6
# Room for the rounding of a δ that is the target itself, as .1⁶ is.
MET = TARGET * (1.0 + 1e-12)
KS = (*range(4, 20, 1), *range(20, 101, 5))
LARGEST = 20.0


def reproduce(*, seed: int = 0) -> Reproduction:
    """Draw Fig 6, and check what the text says of it; nothing is drawn by chance, whatever the `seed`."""
    del seed
    lines = {beta: [least(strongly_safe_delta, k, beta, least_epsilon(beta)) for k in KS] for beta in BETAS}
    falls = all(b <= a + 1e-9 for line in lines.values() for a, b in itertools.pairwise(line))
    rows = [
        Row(
            "least epsilon falls as k grows",
            "falls",
            "falls" if falls else "not everywhere",
            falls,
            '"smaller values of ε can be satisfied for larger values of k": for every β, k = 4 … 100',
        )
    ]
    for k in (20, 50):
        at = {beta: lines[beta][KS.index(k)] for beta in BETAS}
        rows.append(
            Row(
                f"k={k}: least epsilon at beta=0.4 over that at beta=0.05",
                "quite substantial",
                at[0.4] / at[0.05],
                at[0.4] > 2 * at[0.05],
                '"the effect of β over ε is quite substantial": '
                + ", ".join(f"{value:.3f} at β = {beta:g}" for beta, value in at.items())
                + ". Agrees if more than twice.",
            )
        )
    for beta in BETAS:
        needed = math.ceil(math.log(TARGET) / math.log(beta) - 1e-12)
        finite = next(
            k for k in range(1, 100) if math.isfinite(least(strongly_safe_delta, k, beta, least_epsilon(beta)))
        )
        rows.append(
            Row(
                f"beta={beta:g}: least k with any epsilon",
                None,
                finite,
                None,
                f"Fewer leave δ ≥ β^k > 1e-6 at every ε; ⌈ln 1e-6/ln β⌉ = {needed}. Larger k end at ε = −ln(1 − β) = "
                f"{least_epsilon(beta):.3f}, where the theorem begins.",
            )
        )
    exact = [_gap(least(worst_crowd_delta, k, 0.2, 0.0)) for k in KS]
    curves = [Curve(f"β = {beta:g}", KS, [_gap(value) for value in lines[beta]]) for beta in BETAS]
    curves.append(Curve("β = 0.2, exact worst crowd", KS, exact))
    return Reproduction(rows, (Drawing("least ε with δ ≤ 1e-6", "k", "ε", curves),))


def least(delta: Callable[..., float], k: int, beta: float, start: float) -> float:
    """Return the least ε from `start` on with δ ≤ 1e-6, by bisection to 1e-9; infinite where none is."""
    if delta(k=k, sampling=beta, epsilon=LARGEST) > MET:
        return math.inf
    low, high = start, LARGEST
    if delta(k=k, sampling=beta, epsilon=low) <= MET:
        return low
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if delta(k=k, sampling=beta, epsilon=middle) <= MET else (middle, high)
    return high


def _gap(value: float) -> float | None:
    """Return None where there is nothing to draw."""
    return value if math.isfinite(value) else None


FIG_6 = Entry("lqs-fig6", "LQS", "Fig 6: the least ε against k for δ ≤ 1e-6", reproduce)
