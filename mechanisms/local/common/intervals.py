"""Confidence intervals for a count, from a binomial, from moments, or from the distribution of the reports counted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Integers, Mask, betainc, betaincc, gammaln
from mechanisms.parameter import ParameterError, check_counts, check_probability


@dataclass(frozen=True, eq=False)
class QuadraticVariance:
    """Var(Ŷ) = a + bY + cY², for Y devices truly in the cell.

    The variance of every estimator here has this form. Devices answer independently, which makes it linear in Y. A
    simple random sample of their answers adds the variance within the population, which is quadratic in Y.

    Parameters
    ----------
    constant, linear, square : float or (cells,) float64
        The coefficients a, b and c.
    """

    constant: float | Floats
    linear: float | Floats
    square: float | Floats

    def at(self, count: ArrayLike) -> Floats:
        """Return the variance at each true count, (cells,) float64."""
        y = np.asarray(count, dtype=np.float64)
        # The quadratic is a variance, so negative values are rounding errors.
        return np.maximum(self.constant + y * (self.linear + y * self.square), 0.0)

    def std_error(self, count: ArrayLike) -> Floats:
        """Return the standard error at each true count, (cells,) float64."""
        return np.sqrt(self.at(count))


LEVEL = 0.95
# A smaller variance, in units of the estimate's squared step, counts as 0.
TINY = 1e-9


def invert_binomial(successes: ArrayLike, probability: float, level: float = LEVEL) -> tuple[Integers, Integers]:
    """Return the range of trials Y that neither one-sided tail test rejects, given an observed d ~ Bin(Y, π).

    The lower end is the least n with P[Bin(n, π) ≥ d] > α/2, the upper the greatest n with P[Bin(n, π) ≤ d] >
    α/2, α = 1 − level. Each true Y is rejected by either test with probability at most α/2, so the interval
    covers every Y with probability at least `level` (Clopper-Pearson, for the number of trials).

    Parameters
    ----------
    successes : (…) int
        Observed successes, each at least 0.
    probability : float
        Probability π of a success, in (0, 1].
    level : float
        Least coverage, in (0, 1).

    Returns
    -------
    lower, upper : (…) int64
        Both ends are inclusive and at least `successes`.

    Raises
    ------
    ParameterError
        If a count is negative or not an integer, or a probability is out of range.
    """
    seen = check_counts("successes", successes, signed=False)
    probability = check_probability("probability", probability, above_zero=True)
    alpha = _check_level(level)
    # A tally has few different values, however many cells: each is solved once.
    values, place = np.unique(seen, return_inverse=True)
    place = place.reshape(seen.shape)
    if probability == 1.0:
        return values[place].copy(), values[place].copy()
    half = alpha / 2

    def enough(n: Integers, d: Integers) -> Mask:
        # P[Bin(n, π) ≥ d] = I_π(d, n − d + 1), increasing in n; 1 at d = 0.
        tail = np.asarray(betainc(np.maximum(d, 1), n - d + 1, probability))
        return np.asarray((d == 0) | (tail > half))

    def too_many(n: Integers, d: Integers) -> Mask:
        # P[Bin(n, π) ≤ d] = 1 − I_π(d + 1, n − d), decreasing in n; 1 at n = d.
        tail = np.asarray(betaincc(d + 1, np.maximum(n - d, 1), probability))
        return (n > d) & (tail <= half)

    guess = np.maximum(values, (values / probability).astype(np.int64))
    step = np.ceil(np.sqrt(values + 1.0) / probability).astype(np.int64)
    lower = _least(lambda n: enough(n, values), guess, step, floor=values - 1)
    upper = _least(lambda n: too_many(n, values), guess, step, floor=values - 1) - 1
    return lower[place], upper[place]


@dataclass(frozen=True, eq=False)
class BinomialInversion:
    """Intervals of the number of devices Y, where successes d ~ Bin(Y, π) are certain to be in least … most.

    Parameters
    ----------
    least, most : (cells,) int64
        Bounds of the successes; equal where the successes are observed.
    probability : float
        π, in (0, 1].
    """

    least: Integers
    most: Integers
    probability: float

    def __call__(self, share: float = 1.0) -> tuple[Floats, Floats]:
        """Return the ends of the interval, (cells,) each, if each of the Y devices is asked with probability `share`.

        The successes are then Bin(Y, share·π), so the interval covers every Y with at least 95 %, whatever the share.
        """
        lower, _ = invert_binomial(self.least, self.probability * share)
        _, upper = invert_binomial(self.most, self.probability * share)
        return lower.astype(np.float64), upper.astype(np.float64)


def invert_tails(
    estimate: ArrayLike,
    moments: Callable[[Floats], tuple[Floats, Floats]],
    step: float | Floats,
    limit: int,
    *,
    noise: tuple[Floats, Floats] | None = None,
    level: float = LEVEL,
) -> tuple[Floats, Floats]:
    """Return the least and greatest Y in 0…limit at which both tails of the estimate's distribution exceed α/2.

    The distribution at Y is approximated by m + h·Bin(ν, π): the binomial with real ν that has mean Y and the variance
    and third cumulant of the estimate, and whose step h is the change of the estimate by one report. It is exact if the
    true distribution is such a binomial. As the number of reports grows, it tends to the normal distribution with a
    correction for skewness.

    Parameters
    ----------
    estimate : (rows,) float
        Unbiased estimates.
    moments : callable
        Returns the variance and the third cumulant at Y, (rows,) each, from (rows,) float64.
    step : (rows,) or float
        h.
    limit : int
        The greatest possible number of devices.
    noise : ((values,) float64, (values,) float64), optional
        Values and probabilities of symmetric noise that the estimate contains and the moments do not include.
    level : float
        Nominal coverage, in (0, 1).

    Returns
    -------
    lower, upper : (rows,) float64
        Whole numbers.
    """
    half = _check_level(level) / 2
    seen = np.asarray(estimate, dtype=np.float64)
    centre = np.clip(seen, 0.0, limit)
    values, masses = (np.zeros(1), np.ones(1)) if noise is None else noise
    reach = np.sqrt(np.maximum(moments(centre)[0], 0.0) + masses @ values**2) + 1.0

    def tail(count: Integers, sign: int) -> Floats:
        """Return P(estimate ≥ observed), or P(estimate ≤ observed) for a negative sign."""
        variance, third = moments(count.astype(np.float64))
        variance, third = variance / step**2, third / step**3
        spread = np.maximum(variance, TINY)
        chance = np.clip((1.0 - sign * third / spread) / 2, TINY, 1.0 - TINY)
        trials = spread / (chance * (1.0 - chance))
        away = (sign * (seen - count) - values[:, np.newaxis]) / step
        place = away + trials * chance
        inside = betainc(np.maximum(place, TINY), np.maximum(trials - place + 1.0, TINY), chance)
        tails: Floats = np.where(place <= 0.0, 1.0, np.where(place >= trials + 1.0, 0.0, inside))
        return masses @ np.where(variance <= TINY, away <= TINY, tails)

    guess, width = np.floor(centre).astype(np.int64), np.ceil(2.0 * reach).astype(np.int64)
    floor, start = np.full_like(guess, -1), np.maximum(guess - width, 0)
    lower = _least(lambda n: (n >= limit) | (tail(n, 1) > half), start, width // 4 + 1, floor=floor)
    upper = _least(lambda n: (n > limit) | (tail(n, -1) <= half), guess + width, width // 4 + 1, floor=floor) - 1
    return lower.astype(np.float64), np.maximum(upper, 0).astype(np.float64)


def _check_level(level: float) -> float:
    """Return α = 1 − level."""
    if not 0.0 < level < 1.0:
        raise ParameterError("level", "must be between 0 and 1, both excluded", level)
    return 1.0 - level


def _least(holds: Callable[[Integers], Mask], guess: Integers, step: Integers, *, floor: Integers) -> Integers:
    """Return the least n above a floor at which a monotone condition (true from some n on) holds.

    Integer bisection from a bracket that is doubled in both directions. The condition has been evaluated to be true at
    the result n and, unless n is the first above the floor, false at n − 1.
    """
    high, low = guess, np.maximum(guess - step, floor)
    while (missing := ~holds(high)).any():
        low, high = np.where(missing, high, low), np.where(missing, high + step, high)
        step = np.where(missing, 2 * step, step)
    while (early := (low > floor) & holds(np.maximum(low, floor + 1))).any():
        high, low = np.where(early, low, high), np.where(early, np.maximum(low - step, floor), low)
        step = np.where(early, 2 * step, step)
    while (high - low > 1).any():
        middle = np.where(high - low > 1, (low + high) // 2, high)
        true = holds(middle)
        high, low = np.where(true, middle, high), np.where(true, low, middle)
    return high


# Up to Y = TOP the distribution is computed outcome by outcome if, at Y = 0, the variance of the count is below FEW and
# at most TOP devices are known. Then the count is at most BELOW under its mean at Y = 0 and at most LENGTH − BELOW
# above it, except for a probability of 1e-15.
TOP, FEW, BELOW, LENGTH = 64, 40.0, 96, 256
# Greatest number of distributions computed in this manner in one estimate; each takes about a millisecond.
GROUPS = 400
# Greatest rounding error of the discrete Fourier transform in a probability that is 0.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CountLaw:
    """Distribution of a count C: the Yes answers of n devices, a simple random sample of N, Y of them in the cell.

    A device answers Yes with probability p if it is in the cell, else with q. In addition, k of M devices may be known
    to have answered Yes in an earlier round. The n are a simple random sample of the M too, and a known device answers
    Yes with probability α wherever it is. Then p and q contain the factor 1 − k/M. Each row has its own parameters.

    Parameters
    ----------
    devices, counted : int
        N and n, at least 1.
    true_yes, false_yes : (rows,) float64
        p and q, p > q.
    known : (rows,) int64
        k.
    again : (rows,) float64
        α.
    among : int
        M, at least N.
    spread : (3, rows) float64
        Over the M devices: the variance of the probability of a Yes outside the cell, its covariance with the increase
        of this probability in the cell, and the variance of the increase. All are 0 if the devices differ only in being
        in the cell or not.
    """

    devices: int
    counted: int
    true_yes: Floats
    false_yes: Floats
    known: Integers
    again: Floats
    among: int
    spread: Floats

    @classmethod
    def of_proportion(cls, *, true_yes: float, false_yes: float, devices: int, counted: int, rows: int) -> "CountLaw":
        """Return the distribution of the Yes answers of one round, without knowledge of an earlier round."""
        none, known = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        spread = np.zeros((3, rows))
        return cls(devices, counted, none + true_yes, none + false_yes, known, none, devices, spread)

    def invert(self, seen: Integers) -> tuple[Floats, Floats]:
        """Return the least and the greatest Y that neither tail test rejects at 2.5 %, given C in each row.

        If the variance of the count is small, the tails are the tails of the distribution itself: exact without
        knowledge of an earlier round, else with the k known devices and the others assumed independent. Otherwise, and
        if the rows have more than GROUPS distributions, the tails are the tails of the binomial with the same first
        three cumulants.

        Parameters
        ----------
        seen : (rows,) int64
            C, the observed counts.

        Returns
        -------
        lower, upper : (rows,) float64
            Whole numbers.
        """
        kinds = np.stack([self.known.astype(np.float64), self.true_yes, self.false_yes, self.again])
        # Rows with equal distribution and count have the same interval: each is solved once.
        _, first, place = np.unique(np.vstack([kinds, seen]), axis=1, return_index=True, return_inverse=True)
        law, counts = self.take(first), seen[first]
        ends = np.full((2, len(first)), np.nan)
        few = np.flatnonzero((law.moments(0.0)[1] < FEW) & (law.known <= TOP))
        _, kind = np.unique(kinds[:, first][:, few], axis=1, return_inverse=True)
        kind = kind.ravel()  # numpy 2.0 keeps the axis
        groups = np.split(few[np.argsort(kind, kind="stable")], np.bincount(kind).cumsum()[:-1])
        for rows in groups if len(few) and len(groups) <= GROUPS else ():
            ends[:, rows] = law.take(rows[:1]).enumerate_few(counts[rows])
        rest = np.flatnonzero(np.isnan(ends).any(axis=0))
        if len(rest):
            solved = law.take(rest).solve(counts[rest])
            ends[:, rest] = np.where(np.isnan(ends[:, rest]), solved, ends[:, rest])
        lower, upper = ends[:, place.ravel()]
        return lower, upper

    def take(self, rows: Integers) -> "CountLaw":
        """Return the distribution of some rows."""
        parts = (self.true_yes[rows], self.false_yes[rows], self.known[rows], self.again[rows])
        return CountLaw(self.devices, self.counted, *parts, self.among, self.spread[:, rows])

    def moments(self, count: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the mean, the variance and the third cumulant of C at each row's Y, (rows,) float64.

        The variance is exact: n·p̄(1 − p̄) minus the reduction due to drawing without replacement. The third cumulant
        is exact if k = 0, else it is the third cumulant of two independent groups.
        """
        n, share = self.counted, np.asarray(count, dtype=np.float64) / self.devices
        gain, held = self.true_yes - self.false_yes, self.known / self.among
        others, most = max(self.devices - 1, 1), max(self.among - 1, 1)
        mean = held * self.again + self.false_yes + gain * share
        apart = self.spread[0] + share * (2.0 * self.spread[1] + share * self.spread[2])
        saved = apart / most + share * (1.0 - share) * (gain**2 - self.spread[2] / most) / others
        third = _third(n, self.devices, self.true_yes, self.false_yes, share)
        third += _third(n, self.among, self.again, np.zeros_like(held), held)
        return n * mean, n * (mean * (1.0 - mean) - (n - 1) * saved), third

    def solve(self, seen: Integers, noise: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
        """Return the ends of the interval from the binomial with the same cumulants, (rows,) each.

        Parameters
        ----------
        seen : (rows,) int64
            C, the observed counts; with noise possibly outside 0…n.
        noise : tuple of (values,) float64, optional
            Values and probabilities of symmetric noise that C contains in addition.
        """
        # A slope of 0, if all devices are known to have answered Yes, makes every Y possible.
        slope = np.maximum(self.counted * (self.true_yes - self.false_yes) / self.devices, 1e-12)
        # Variance and third cumulant are polynomials in Y/N of degree 2 and 3, so four points determine them.
        points = np.linspace(0.0, 1.0, 4)
        at_points = [self.moments(np.full(len(slope), share * self.devices)) for share in points]
        powers = np.linalg.inv(np.vander(points, increasing=True))
        variance, third = (powers @ np.array([each[k] / slope ** (k + 1) for each in at_points]) for k in (1, 2))

        def polynomials(count: Floats) -> tuple[Floats, Floats]:
            share = count / self.devices
            return polyval(share, variance, tensor=False), polyval(share, third, tensor=False)

        scaled = None if noise is None else (noise[0] / slope[0], noise[1])
        estimate = (seen - at_points[0][0]) / slope
        return invert_tails(estimate, polynomials, 1.0 / slope, self.devices, noise=scaled)

    def enumerate_few(self, seen: Integers) -> tuple[Floats, Floats]:
        """Return the ends of the interval for several C of a single row; NaN where they exceed TOP."""
        chances = (float(self.true_yes[0]), float(self.false_yes[0]), float(self.again[0]))
        least, most = accepted(self.devices, self.counted, *chances, int(self.known[0]), self.among)
        lower = np.searchsorted(most, seen).astype(np.float64)
        upper = np.searchsorted(least, seen, side="right") - 1.0
        top = len(least) - 1
        beyond = self.devices if top == self.devices else np.nan
        return np.where(lower > top, beyond, lower), np.where(upper >= top, beyond, np.maximum(upper, 0.0))


@lru_cache(maxsize=4096)
def accepted(
    devices: int, counted: int, true_yes: float, false_yes: float, again: float, known: int, among: int
) -> tuple[Integers, Integers]:
    """Return the least and the greatest C that neither tail test rejects at 2.5 %, for each Y in 0…min(N, TOP).

    They are computed from the probabilities of all outcomes. The parameters describe one row of a `CountLaw`.
    """
    top, half = min(devices, TOP), (1.0 - LEVEL) / 2
    start = int(counted * (known / among * again + false_yes)) - BELOW
    z = np.exp(-2j * np.pi * np.arange(LENGTH) / LENGTH)
    # At least n − top of the n drawn devices are outside the cell; each of the rest is in the cell or outside.
    drawn = min(counted, top)
    yes, no = (1.0 + chance * (z - 1.0) for chance in (true_yes, false_yes))
    either = np.vander(yes, drawn + 1, increasing=True) * np.vander(no, drawn + 1)
    law = hypergeometric(devices, np.arange(top + 1), counted)[:, : drawn + 1] @ either.T
    earlier = np.polyval(hypergeometric(among, np.array([known]), counted)[0, ::-1], 1.0 + again * (z - 1.0))
    masses = np.fft.ifft(law * (no ** (counted - drawn) * earlier * z**-start), axis=1).real
    least = start + (masses.cumsum(axis=1) > half - ROUNDING).argmax(axis=1)
    most = start + LENGTH - 1 - (masses[:, ::-1].cumsum(axis=1) > half - ROUNDING).argmax(axis=1)
    return np.maximum.accumulate(least), np.maximum.accumulate(most)


def hypergeometric(devices: int, marked: Integers, drawn: int) -> Floats:
    """Return P(k of n drawn are marked), (rows, most marked + 1) float64, if Y of the N devices are marked."""
    y, k = marked[:, np.newaxis], np.arange(int(marked.max(initial=0)) + 1)
    total = log_choose(np.array(devices), np.array(drawn))
    return np.exp(log_choose(y, k) + log_choose(devices - y, drawn - k) - total)


def log_choose(n: Integers, k: Integers | int) -> Floats:
    """Return ln C(n, k), or −∞ where C(n, k) is 0."""
    log = gammaln(n + 1.0) - gammaln(np.maximum(k, 0) + 1.0) - gammaln(np.maximum(n - k, 0) + 1.0)
    return np.where((k >= 0) & (k <= n), log, -np.inf)


def _third(n: int, devices: int, p: Floats, q: Floats, share: Floats) -> Floats:
    """Return the third cumulant of the Yes answers of n of N devices: a share of N has probability p, the rest q."""
    p_spread, q_spread = p * (1.0 - p), q * (1.0 - q)
    split, left = share * (1.0 - share), devices - n
    within = q_spread * (1.0 - 2.0 * q) * (1.0 - share) + p_spread * (1.0 - 2.0 * p) * share
    crossed = 3.0 * (p - q) * (p_spread - q_spread) * split * left / max(devices - 1, 1)
    between = (p - q) ** 3 * split * (1.0 - 2.0 * share) * left * (left - n) / max((devices - 1) * (devices - 2), 1)
    return n * (within + crossed + between)
