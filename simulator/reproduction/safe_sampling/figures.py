"""lqs-fig1 to lqs-fig6: binomial tails, 1/δ against ε, and the k and ε that reach a given δ (LQS sec 3.3)."""

import itertools
import math
from collections.abc import Callable

import numpy as np

from mechanisms.privacy import strongly_safe_delta, worst_crowd_delta
from mechanisms.privacy.binomial import mass_above, mass_at
from mechanisms.privacy.subsampling import least_epsilon
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.tables import EPSILONS, PRINTED, K

# Number of local maxima examined, from the first one.
LOOKED = 60


def reproduce_binomial_tail(*, seed: int = 0) -> Reproduction:
    """Draw the figure and find the greatest tail of many settings; the result does not depend on `seed`."""
    del seed
    table = [_place(K, float(beta), float(epsilon)) for beta in PRINTED for epsilon in EPSILONS]
    grid = {
        (k, beta, epsilon / 100): _place(k, beta, epsilon / 100)
        for k in (2, 5, 10, 20, 50)
        for beta in (0.05, 0.1, 0.2, 0.3, 0.4)
        for epsilon in range(math.ceil(-100 * math.log1p(-beta)), 251, 2)
    }
    later = {setting: place for setting, place in grid.items() if place}
    example = max(later, key=lambda setting: later[setting])
    gaps = [
        (_gamma(b / 20, e / 4) - b / 20) - math.expm1(e / 4) * (1 - b / 20) / math.exp(e / 4)
        for b in range(1, 20)
        for e in range(1, 13)
    ]
    rows = [
        Row(
            "gamma - beta",
            "(e^epsilon - 1)(1 - beta)/e^epsilon",
            max(abs(gap) for gap in gaps),
            max(abs(gap) for gap in gaps) < 1e-12,
            "Greatest difference of the two forms over β = .05 … .95 and ε = .25 … 3; γ > β throughout.",
        ),
        Row(
            "settings whose maximum is not at the first n",
            "may be",
            len(later),
            len(later) > 0,
            '"the maximum value may not be reached at n_m, but instead at one of the next few local maximal points": '
            f"of {len(grid)} settings (k = 2 … 50, β = .05 … .4, ε up to 2.5).",
        ),
        Row(
            "furthest local maximum that is the greatest",
            "one of the next few",
            later[example],
            later[example] <= 5,
            f"Places after the first; at k = {example[0]}, β = {example[1]:g}, ε = {example[2]:g}.",
        ),
        Row(
            "Table 2: settings whose maximum is not at the first n",
            None,
            sum(place > 0 for place in table),
            None,
            "Of the 18 of Table 2, so that the table would be the same had the search stopped at n_m.",
        ),
    ]
    beta, epsilon = 0.2, 0.75
    gamma, n = _gamma(beta, epsilon), 100
    j = np.arange(56)
    masses = mass_at(j, n, beta)
    bell = Drawing(
        f"Binomial of n = {n}, β = {beta:g}: βn = {beta * n:g} and γn = {gamma * n:.1f} at ε = {epsilon:g}",
        "sampled devices j",
        "probability",
        [
            Curve("P[j], up to γn", j.tolist(), np.where(j <= gamma * n, masses, 0).tolist(), "bars"),
            Curve("P[j], beyond γn: a bad output", j.tolist(), np.where(j > gamma * n, masses, 0).tolist(), "bars"),
        ],
    )
    k, beta, epsilon = example
    crowds = np.arange(math.ceil(k / _gamma(beta, epsilon) - 1), 6 * k + 40)
    tail = mass_above(np.floor(_gamma(beta, epsilon) * crowds), crowds, beta)
    saw = Drawing(
        f"P[Bin(n, β) > γn] at k = {k}, β = {beta:g}, ε = {epsilon:g}: not falling with n",
        "devices n in the cell",
        "probability of a bad output",
        [Curve("from the first n on", crowds.tolist(), tail.tolist(), "points")],
    )
    return Reproduction(rows, (bell, saw))


def _gamma(beta: float, epsilon: float) -> float:
    """Return γ = (e^ε − 1 + β)/e^ε."""
    return 1.0 - (1.0 - beta) * math.exp(-epsilon)


def _place(k: int, beta: float, epsilon: float) -> int:
    """Return the index of the greatest local maximum of the tail; 0 is the first."""
    above = np.arange(k, k + LOOKED)
    n = np.maximum(np.ceil(above / _gamma(beta, epsilon)) - 1.0, above)
    return int(np.argmax(mass_above(above - 1, n, beta)))


FIG_1 = Entry("lqs-fig1", "LQS", "Fig 1: the binomial tail beyond γn", reproduce_binomial_tail)

KS = (5, 10, 20, 30, 50)
BETAS = (0.05, 0.1, 0.2, 0.3, 0.4)
FIXED_BETA, FIXED_K = 0.2, 20


def epsilons(beta: float, last: float = 2.5, count: int = 46) -> list[float]:
    """Return values of ε from the least to which theorem 5 applies up to `last`."""
    return [float(e) for e in np.linspace(least_epsilon(beta) + 1e-9, last, count)]


def inverse_curve(name: str, k: int, beta: float, last: float = 2.5) -> Curve:
    """Return the curve of 1/δ against ε."""
    x = epsilons(beta, last)
    return Curve(name, x, [1.0 / strongly_safe_delta(k=k, sampling=beta, epsilon=e) for e in x])


def falls(curve: Curve) -> bool:
    """Return whether δ never increases with ε along a curve of 1/δ."""
    values = [value for value in curve.y if value is not None]
    return all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))


def reproduce_ks(*, seed: int = 0) -> Reproduction:
    """Draw Fig 2 and check the text's statements about it; the result does not depend on `seed`."""
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
    """Draw Fig 3 and check the text's statements about it; the result does not depend on `seed`."""
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
    """Return the row that checks whether δ decreases with ε on every curve."""
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

PAIRS = ((15, 0.05), (22, 0.1), (35, 0.2), (60, 0.4))
# Values of ε at which k is searched.
MATCHED_LEVELS_EPSILONS = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)


def reproduce_matched_levels(*, seed: int = 0) -> Reproduction:
    """Draw Fig 4 and find the k that each β needs; the result does not depend on `seed`."""
    del seed
    rows = []
    for k, beta in PAIRS[1:]:
        needed = [_needed(beta, epsilon) for epsilon in MATCHED_LEVELS_EPSILONS]
        rows.append(
            Row(
                f"beta={beta:g}: k needed for the delta of (15, 0.05)",
                k,
                f"{min(needed)} to {max(needed)}",
                min(needed) <= k <= max(needed),
                "Over ε = .75 … 2: "
                + ", ".join(f"{n} at {e:g}" for n, e in zip(needed, MATCHED_LEVELS_EPSILONS, strict=True))
                + '. "'
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
    """Return log10(1/δ) for the four settings."""
    return [-math.log10(strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon)) for k, beta in PAIRS]


def _needed(beta: float, epsilon: float) -> int:
    """Return the least k whose δ is at most that of (k, β) = (15, .05)."""
    k, reference = PAIRS[0]
    target = strongly_safe_delta(k=k, sampling=reference, epsilon=epsilon)
    while strongly_safe_delta(k=k, sampling=beta, epsilon=epsilon) > target:
        k += 1
    return k


FIG_4 = Entry("lqs-fig4", "LQS", "Fig 4: k = 15, 22, 35, 60 for β = .05, .1, .2, .4", reproduce_matched_levels)

BETA = 0.025
SMALL_THRESHOLDS_KS = (1, 2, 3, 4, 5)


def reproduce_small_thresholds(*, seed: int = 0) -> Reproduction:
    """Draw Fig 5 and check the text's statements about it; the result does not depend on `seed`."""
    del seed
    least = min(strongly_safe_delta(k=1, sampling=BETA, epsilon=e) for e in epsilons(BETA, 4.0, 200))
    rows = [
        Row(
            "k=1: least delta over epsilon",
            "less than 0.025",
            least,
            least < BETA * (1 - 1e-12),
            '"when k = 1, the privacy protection is entirely from the sampling effect, as the obtained δ value is less '
            'than β". It never is: n = 1 alone gives P[Bin(1, β) ≥ 1] = β at every ε, and below ε = .67 theorem 5 '
            "gives more. Definition 3 asks for β > δ, so k = 1 satisfies it nowhere.",
        ),
        Row(
            "k=1, epsilon=2: exact delta",
            "less than 0.025",
            worst_crowd_delta(k=1, sampling=BETA, epsilon=2.0),
            worst_crowd_delta(k=1, sampling=BETA, epsilon=2.0) < BETA * (1 - 1e-12),
            "The exact worst crowd says the same: δ = β, what sampling alone gives (the first half of the sentence "
            "is right).",
        ),
    ]
    for k in SMALL_THRESHOLDS_KS[1:]:
        delta = strongly_safe_delta(k=k, sampling=BETA, epsilon=2.0)
        rows.append(
            Row(
                f"k={k}, epsilon=2: delta",
                "below 0.001",
                delta,
                delta < 1e-3,
                '"when k ≥ 2, we start seeing privacy protection effect from k-anonymization, with δ (< 0.001) '
                f'significantly smaller than β = 0.025 when ε = 2"; it is β^{k} = {BETA**k:.4g}: all {k} of {k} '
                "sampled.",
            )
        )
    curves = [inverse_curve(f"k = {k}", k, BETA) for k in SMALL_THRESHOLDS_KS]
    findings = (
        (
            "LQS says that at k = 1, β = .025 the δ of theorem 5 is less than β. It is at least β for every ε, "
            "and β from "
            "ε = .67 on."
        ),
    )
    return Reproduction(rows, (Drawing("1/δ against ε, β = 0.025", "ε", "1/δ", curves, log_y=True),), findings)


FIG_5 = Entry("lqs-fig5", "LQS", "Fig 5: 1/δ against ε for k = 1 … 5 at β = .025", reproduce_small_thresholds)

TARGET = 1e-6
# Tolerance for the rounding of a δ that equals the target, such as .1⁶.
MET = TARGET * (1.0 + 1e-12)
LEAST_EPSILON_KS = (*range(4, 20, 1), *range(20, 101, 5))
LARGEST = 20.0


def reproduce_least_epsilon(*, seed: int = 0) -> Reproduction:
    """Draw Fig 6 and check the text's statements about it; the result does not depend on `seed`."""
    del seed
    lines = {
        beta: [least(strongly_safe_delta, k, beta, least_epsilon(beta)) for k in LEAST_EPSILON_KS] for beta in BETAS
    }
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
        at = {beta: lines[beta][LEAST_EPSILON_KS.index(k)] for beta in BETAS}
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
    exact = [_gap(least(worst_crowd_delta, k, 0.2, 0.0)) for k in LEAST_EPSILON_KS]
    curves = [Curve(f"β = {beta:g}", LEAST_EPSILON_KS, [_gap(value) for value in lines[beta]]) for beta in BETAS]
    curves.append(Curve("β = 0.2, exact worst crowd", LEAST_EPSILON_KS, exact))
    return Reproduction(rows, (Drawing("least ε with δ ≤ 1e-6", "k", "ε", curves),))


def least(delta: Callable[..., float], k: int, beta: float, start: float) -> float:
    """Return the least ε ≥ `start` with δ ≤ 1e-6, by bisection to 1e-9; infinite if there is none."""
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
    """Return a value, or None, which leaves a gap in the drawing, if it is not finite."""
    return value if math.isfinite(value) else None


FIG_6 = Entry("lqs-fig6", "LQS", "Fig 6: the least ε against k for δ ≤ 1e-6", reproduce_least_epsilon)
