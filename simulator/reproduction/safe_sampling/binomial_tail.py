"""lqs-fig1: the tail of a binomial beyond γn, and where its greatest value is (LQS sec 3.3)."""

import math

import numpy as np

from mechanisms.privacy.binomial import mass_above, mass_at
from simulator.reproduction.entry import Curve, Drawing, Entry, Reproduction, Row
from simulator.reproduction.safe_sampling.suppression_table import EPSILONS, PRINTED, K

# Local maxima looked at from the first on.
LOOKED = 60


def reproduce(*, seed: int = 0) -> Reproduction:
    """Draw the figure and find the greatest tail of many settings; nothing is drawn by chance, whatever the `seed`."""
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
    """Return which local maximum of the tail is the greatest, 0 the first."""
    above = np.arange(k, k + LOOKED)
    n = np.maximum(np.ceil(above / _gamma(beta, epsilon)) - 1.0, above)
    return int(np.argmax(mass_above(above - 1, n, beta)))


FIG_1 = Entry("lqs-fig1", "LQS", "Fig 1: the binomial tail beyond γn", reproduce)
