"""Bounds of shuffled reports by what other devices' reports have in common with the device's: blanket and clones."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, compiled, xlogy
from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, mass_up_to, run_starts, window
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON

# Pairs (M, b) summed one by one, in about 30 ms. For more pairs, neighbouring M are merged into runs, at least so many.
LARGEST_PAIR_SUM = 2**21
LEAST_RUNS = 16
# The same for a curve that is composed over queries, and so is evaluated a hundred times.
COMPOSED_PAIR_SUM = 2**17
# Share of m by which the numbers of one run may differ in an approximation, and its fewest runs.
ROUGH_SHARE, LEAST_ROUGH_RUNS = 5e-3, 6
# Tails of a below this are left out; they are far below what the windows leave out.
LEAST_TAIL = 1e-60


def pairs_over(queries: int) -> int:
    """Return how many pairs (m, b) are summed one by one at each point of a curve that is composed over T queries."""
    return LARGEST_PAIR_SUM if queries == 1 else COMPOSED_PAIR_SUM


@dataclass(frozen=True)
class BlanketDelta:
    """A bound of δ(ε) of shuffled reports, each of them the truth with π_s and otherwise a blank drawn from b.

    Suppose that the adversary sees which other devices are sampled; their values are known and can be removed. There
    remain the blanks of M ~ Bin(n − 1, 1 − π_s) devices and the device's own report. Of m = M + 1 draws from b, let a
    draws give t and b draws give t'. With respect to those draws, the two truths t and t' have the densities

    (1 − π_s) + π_s·a/(m·b_t),   (1 − π_s) + π_s·b/(m·b_t'),

    so δ is the mean of the positive part of a function linear in a and b. Over a, given b, it is a partial mean of a
    binomial distribution; over b and M it is a sum. (Balle, Bell, Gascón and Nissim 2019 bound that mean; here it is
    computed.) If all other devices have truths
    other than t and t', the histogram reveals exactly this, apart from M.

    Parameters
    ----------
    devices : int
        n.
    sampling, unsampled : float
        π_s and 1 − π_s, in (0, 1); each at full precision, which a subtraction would lose.
    blank, other_blank, other_blanks : float
        b_t and b_t', above 0, and the sum of the others; all of them sum to 1.
    pairs : int
        Pairs (m, b) that are summed one by one (`positive_means`).
    rough : bool
        Whether an approximation from above suffices, as in a search.
    """

    devices: int
    sampling: float
    unsampled: float
    blank: float
    other_blank: float
    other_blanks: float
    pairs: int = LARGEST_PAIR_SUM
    rough: bool = False

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, the larger of both directions."""
        return _remembered(self, min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON))

    def each(self, epsilons: Floats) -> Floats:
        """Return the bound at each ε, the larger of both directions."""
        pairs = {(self.blank, self.other_blank), (self.other_blank, self.blank)}
        return np.asarray(np.minimum(1.0, np.max([self._direction(*pair, epsilons) for pair in pairs], axis=0)))

    def _direction(self, blank: float, other_blank: float, epsilons: Floats) -> Floats:
        """Return the hockey-stick divergence of the truth with `blank` against the truth with `other_blank`."""
        rise, fall = self.sampling / blank, np.exp(epsilons) * self.sampling / other_blank
        parts, level = (blank, other_blank, self.other_blanks), self.unsampled * np.expm1(epsilons)
        return positive_means(
            self.devices, self.unsampled, parts, rise=rise, fall=fall, level=level, pairs=self.pairs, rough=self.rough
        )


@dataclass(frozen=True)
class VariationRatioDelta:
    """A bound of δ(ε) of shuffled reports from the greatest ratio of a report's two distributions, and their distance.

    Stronger clones (Feldman, McMillan and Talwar 2023) and the variation-ratio reduction (Wang et al. 2024) write the
    two distributions of the report in question, P and Q, as mixtures of three parts: one that is p times as likely
    under P, one that is p times as likely under Q, and a rest that is equally likely under both. Where P > Q only the
    first part and the rest contribute, and where Q > P only the second and the rest (`split_pair`). If the report of
    any other device gives every output at least max(P, Q)/q of its probability, then it is drawn from the three parts
    with 1/q of their greatest probabilities, whatever its truth, and otherwise from something that can be revealed. The
    numbers a, b and c of draws from the three parts, the device's own included, determine all that the reports reveal
    about it. Given a + b + c = m, the densities of P and Q with respect to m independent draws are in proportion to
    m − (1 − 1/p)·b and m − (1 − 1/p)·a.

    The published reduction lets only draws from the first two parts hide the device, and counts a draw from the rest
    as one more of the other reports. That is not a bound in general, as enumeration shows: the rest of the device is
    not distributed as the rest of the others is. For 3-ary randomized response with ε₀ = 1 and three devices, the
    reduction gives .0676 at ε = .6, where δ is .0735. With many devices the two agree closely.

    Parameters
    ----------
    devices : int
        n.
    ratio : float
        p, above 1; may be infinite.
    up, down : float
        Probability of the first part under P, and of the second under Q.
    rest : float
        Probability of the rest, under both.
    cover : float
        q, at least 1.
    apart, other_apart : float
        Mass of P, and of Q, on outputs that only this one of them gives.
    pairs : int
        Pairs (m, b) that are summed one by one (`positive_means`).
    rough : bool
        Whether an approximation from above suffices, as in a search.
    """

    devices: int
    ratio: float
    up: float
    down: float
    rest: float
    cover: float
    apart: float = 0.0
    other_apart: float = 0.0
    pairs: int = LARGEST_PAIR_SUM
    rough: bool = False

    @property
    def distance(self) -> float:
        """Total variation distance of P and Q, which is δ at ε = 0."""
        return self.up * (1.0 - 1.0 / self.ratio) + self.apart

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ, the larger of both directions."""
        return _remembered(self, min(check_epsilon(epsilon), LARGEST_CROWD_EPSILON))

    def each(self, epsilons: Floats) -> Floats:
        """Return the bound at each ε, the larger of both directions."""
        sides = {(self.up, self.down, self.apart), (self.down, self.up, self.other_apart)}
        return np.asarray(np.minimum(1.0, np.max([self._direction(*side, epsilons) for side in sides], axis=0)))

    def _direction(self, up: float, down: float, apart: float, epsilons: Floats) -> Floats:
        """Return the bound of the hockey-stick divergence of the distribution with more of the part `up`."""
        inside = (epsilons < math.log(self.ratio)) & (up > 0.0)
        deltas = np.full(len(epsilons), apart)
        if not inside.any():
            return deltas
        total = up + down + self.rest
        fall = total * (1.0 - 1.0 / self.ratio)
        rise, level = fall * np.exp(epsilons[inside]), total * np.expm1(epsilons[inside])
        parts = (up / total, down / total, self.rest / total)
        deltas[inside] += positive_means(
            self.devices,
            total / self.cover,
            parts,
            rise=rise,
            fall=fall,
            level=level,
            pairs=self.pairs,
            rough=self.rough,
        )
        return deltas


@lru_cache(maxsize=1024)
def _remembered(curve: BlanketDelta | VariationRatioDelta, epsilon: float) -> float:
    return float(curve.each(np.array([epsilon]))[0])


def split_pair(
    p: Floats, q: Floats, others: Floats, devices: int, pairs: int = LARGEST_PAIR_SUM
) -> VariationRatioDelta:
    """Return the bound for shuffled reports where one report has the distribution p or q.

    Outputs that only one of the two gives are revealed. At any other output y the first part has
    (p(y) − q(y))/(1 − 1/r), if that is positive, where r is the greatest ratio of the two.

    Parameters
    ----------
    p, q : (outputs,) float64
        The distributions of the device's report under the two hypotheses.
    others : (truths, outputs) float64
        The distributions of any other device's report, for every truth that it may have.
    devices : int
        n.
    pairs : int
        Pairs (m, b) that are summed one by one.
    """
    shared = (p > 0.0) & (q > 0.0)
    more, less = p[shared], q[shared]
    greatest = np.maximum(more, less)
    ratio = float((greatest / np.minimum(more, less)).max(initial=1.0))
    up, down = (
        float(np.maximum(gap, 0.0).sum()) / (1.0 - 1.0 / ratio) if ratio > 1.0 else 0.0
        for gap in (more - less, less - more)
    )
    return VariationRatioDelta(
        devices=devices,
        ratio=ratio,
        up=up,
        down=down,
        rest=max(0.0, float(greatest.sum()) - up - down),
        cover=float((greatest / np.maximum(others[:, shared], LEAST_TAIL)).max(initial=1.0)),
        apart=float(p[~shared].sum()),
        other_apart=float(q[~shared].sum()),
        pairs=pairs,
    )


def positive_means(
    devices: int,
    share: float,
    parts: tuple[float, float, float],
    *,
    rise: ArrayLike,
    fall: ArrayLike,
    level: Floats,
    pairs: int,
    rough: bool = False,
) -> Floats:
    """Return bounds of E[(rise·a − fall·b − level·m)₊/m], over the draws of n devices from three parts.

    The device in question is one draw and each of the n − 1 others is one with probability `share`, so that m − 1 ~
    Bin(n − 1, share). A draw gives a, b or neither with the probabilities `parts`. Over a, given b, the
    expression is a partial mean of a binomial distribution; over b and m it is a sum.

    One more draw of another device never increases a divergence, so the first of a run of neighbouring m bounds the
    others. Large windows are cut into as many runs as some milliseconds of computation allow.

    Parameters
    ----------
    devices : int
        n.
    share : float
        Probability that another device's report is a draw.
    parts : (3,) float
        Probabilities of a, above 0, of b and of neither, which sum to 1; a subtraction of one near 1 would lose
        the digits of the others.
    rise, fall, level : (means,) float64
        Above 0, at least 0 and at least 0; `rise` and `fall` may be one number for all.
    pairs : int
        Pairs (m, b) that are summed one by one for each mean. For more, neighbouring m are merged into runs.
    rough : bool
        Whether runs may be longer, as long as the numbers of one differ by about half a percent.

    Returns
    -------
    (means,) float64
    """
    up, down, neither = parts
    apart = up + neither
    p, q = up / apart, neither / apart  # of a and of neither, where it is not b
    first, masses = window(devices - 1, share)
    # The values of b to sum over, for any of these numbers of draws, are low…low + width − 1.
    low, _ = window(first + 1, down)
    high, last_masses = window(first + len(masses), down)
    width = high + len(last_masses) - low
    runs = max(pairs // width, LEAST_RUNS)
    if rough:
        runs = min(runs, max(math.ceil(len(masses) / (ROUGH_SHARE * (first + 1))), LEAST_ROUGH_RUNS))
    starts = run_starts(masses, runs)
    # One row for each mean and each m.
    draws = np.tile(first + 1.0 + starts, len(level))
    numbers = np.empty((len(level), 3))
    numbers[:, 0], numbers[:, 1], numbers[:, 2] = rise, fall, level
    numbers = np.repeat(numbers, len(starts), axis=0)
    # a contributes from t + 1 on, t = start + climb·b.
    start, climb = draws * numbers[:, 2] / numbers[:, 0], numbers[:, 1] / numbers[:, 0]
    last = _last_outcome(draws, low, low + width - 1, start, climb, p)
    means = np.zeros(len(draws))
    some = last >= low
    draws, start, numbers, last = draws[some], start[some], numbers[some], last[some]
    climb = numbers[:, 1] / numbers[:, 0]
    trials = draws - last - 1.0
    t = np.floor(start + climb * last)
    means[some] = _partial_means(
        draws,
        low,
        last,
        mass_at(last, draws, down) if down <= 0.5 else mass_at(draws - last, draws, apart),
        mass_at(t, trials, p) if p <= 0.5 else mass_at(trials - t, trials, q),
        mass_above(t, trials, p) if p <= 0.5 else mass_up_to(trials - t - 1.0, trials, q),
        numbers,
        np.array([apart / down if down > 0.0 else 0.0, p, q]),
        start,
    )
    left_out = 10.0 * LEFT_OUT if width <= devices or len(masses) < devices else 0.0
    return means.reshape(len(level), -1) @ np.add.reduceat(masses, starts) + left_out


def _last_outcome(draws: Floats, low: int, high: int, start: Floats, climb: Floats, p: float) -> Floats:
    """Return, for each m, the largest b in low…high at which P[a ≥ t(b)] may matter; low − 1 if there is none.

    By bisection, since the probability falls with b: fewer draws are left and t rises. Chernoff's bound of it for
    Bin(n, p) at t > np is e^−(t·ln(t/np) + (n − t)·ln((n − t)/(n − np))).
    """
    below, above = np.full(draws.shape, low - 1.0), np.minimum(draws, float(high)) + 1.0
    while (above - below > 1.0).any():
        b = np.floor((below + above) / 2.0)
        n, t = draws - b - 1.0, np.floor(start + climb * b)
        rest, mean = np.maximum(n - t, 0.0), n * p
        with np.errstate(divide="ignore", invalid="ignore"):
            rarity = xlogy(t, t / mean) + xlogy(rest, rest / (n - mean))
        enough = (n >= 0.0) & ((t <= mean) | ((t <= n) & (rarity < -math.log(LEAST_TAIL))))
        below, above = np.where(enough, b, below), np.where(enough, above, b)
    return below


@compiled
def _partial_means(
    draws: Floats,
    low: int,
    last: Floats,
    mass_last: Floats,
    mass_t: Floats,
    tail_t: Floats,
    numbers: Floats,
    odds_p_q: Floats,
    start: Floats,
) -> Floats:
    """Return Σ_b P[b]·E[(rise·a − fall·b − level·m)₊ | b]/m for each m, downwards from the last b not negligible.

    On the way down, every update of the tail P[Bin(N, p) > t] adds a mass: N rises with P[N + 1 draws > t] = P[N > t] +
    p·P[N = t], and t falls. So nothing cancels, and a pair (m, b) costs about twenty operations.
    """
    odds, p, q = odds_p_q
    sums = np.zeros(len(draws))
    for i in range(len(draws)):
        m, b = draws[i], last[i]
        rise, fall, level = numbers[i]
        climb = fall / rise
        slope = rise / m
        t = np.floor(start[i] + climb * b)
        mass_b, mass, tail = mass_last[i], mass_t[i], tail_t[i]
        while True:
            left = m - b
            rest = -level - fall * b / m
            if q == 0.0:
                gain = slope * left + rest
            else:
                # E[(slope·a + rest) 1{a > t}] for a ~ Bin(left, p), without the cancellation of its two parts.
                gain = (slope * left * p + rest) * tail + (slope * left + rest) * p * mass
            if gain > 0.0:
                sums[i] += mass_b * gain
            if b <= low:
                break
            mass_b *= b / (m - b + 1.0) * odds
            b -= 1.0
            if q > 0.0:
                n = left  # m − b − 1 for the new b
                tail += p * mass
                mass *= n / (n - t) * q if t < n else 0.0
                below = np.floor(start[i] + climb * b)
                while t > below:
                    tail += mass
                    mass *= t / (n - t + 1.0) * q / p
                    t -= 1.0
    return sums
