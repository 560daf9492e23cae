"""Smooth sensitivity of the median, and the median of a population or a sample with Laplace noise scaled to it."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.central.grid_noise import GRID_BASIS, SLACK, WIDENING, Grid, draw_rounded_laplace
from mechanisms.central.release import ValueEstimate, check_bounds, check_values, clamp, lower_median, median_rank
from mechanisms.central.simple_random_sample import NoisyStatistic, SimpleRandomSample
from mechanisms.compiled import Floats, Integers, compiled
from mechanisms.local.common.intervals import LEVEL
from mechanisms.parameter import ParameterError, check_epsilon, check_integer, check_probability
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.composition import COMPOSED, composed
from mechanisms.privacy.laplace_noise import SmoothNoiseDelta, smoothing
from mechanisms.privacy.subsampling import sample_privacy

# Greatest size of the stack: a range of int64 indices can be halved fewer times than this.
DEPTH = 64


def median_smooth_sensitivity(values: ArrayLike, *, xi: float, lower: float, upper: float) -> float:
    """Return the ξ-smooth sensitivity of the lower median of values in [lower, upper] (HDK eq 4).

    S* = max over k ≥ 0 of e^(−kξ) · max over t = 0…k + 1 of (x_(m+t) − x_(m+t−k−1)), with x_(i) = lower for i < 1 and
    upper for i > n: the greatest e^(−ξ(j−i−1))·(x_(j) − x_(i)) over i ≤ m ≤ j. The best j rises with i, so halving the
    range of i repeatedly takes O(n log n) (Nissim, Raskhodnikova and Smith 2007, sec 3.1).

    Parameters
    ----------
    values : (n,) float
        In any order; at least one. Those outside the bounds are clamped to them.
    xi : float
        ξ, at least 0; at 0 the greatest of all local sensitivities, upper − lower.
    lower, upper : float
        The bounds, set without looking at the values.

    Returns
    -------
    float
        S*, in the values' unit, in [0, upper − lower].

    Raises
    ------
    ParameterError
        If ξ is negative or not finite, the bounds are not finite or not in order, or there is no value or a value is
        not finite.
    """
    lower, upper = check_bounds(lower, upper)
    if not 0.0 <= xi < np.inf:
        raise ParameterError("xi", "must be a finite number of at least 0", xi)
    ordered = np.sort(clamp(values, lower, upper))
    return float(_of_ordered(np.concatenate([[lower], ordered, [upper]]), median_rank(len(ordered)), float(xi)))


def sampled_smooth_sensitivities(ordered: Floats, ranks: Integers, *, xi: float, lower: float, upper: float) -> Floats:
    """Return S* of many samples from one population.

    Parameters
    ----------
    ordered : (N,) float64
        The population, ascending, within the bounds.
    ranks : (samples, n) int64
        Each row ascending indices, from 0, into `ordered`.
    xi, lower, upper : float
        As in `median_smooth_sensitivity`.

    Returns
    -------
    (samples,) float64
    """
    out = np.empty(len(ranks))
    _of_samples(ordered, ranks, float(xi), float(lower), float(upper), out)
    return out


@compiled
def _of_samples(ordered: Floats, ranks: Integers, xi: float, lower: float, upper: float, out: Floats) -> None:
    """Fill `out` with S* of each row of ranks."""
    n = ranks.shape[1]
    x = np.empty(n + 2)
    x[0], x[n + 1] = lower, upper
    for row in range(ranks.shape[0]):
        for i in range(n):
            x[i + 1] = ordered[ranks[row, i]]
        out[row] = _of_ordered(x, (n + 1) // 2, xi)


@compiled
def _of_ordered(x: Floats, m: int, xi: float) -> float:
    """Return S* of x_(0) = lower, x_(1)…x_(n), x_(n+1) = upper at rank m.

    First the pairs with i = m or j = m are evaluated; their maximum excludes all pairs too far apart to exceed it. Then
    each range of i is solved at its middle. Left of the middle only j up to the j found there can be best, right of it
    only j from there on. The depth-first stack holds the first and last i and the first and last j of each range.
    """
    last = len(x) - 1
    greatest = 0.0
    for j in range(m + 1, last + 1):
        weight_here = math.exp(-xi * (j - m - 1))
        greatest = max(greatest, (x[j] - x[m]) * weight_here)
        if (x[last] - x[m]) * weight_here <= greatest:
            break
    for i in range(m - 1, -1, -1):
        weight_here = math.exp(-xi * (m - i - 1))
        greatest = max(greatest, (x[m] - x[i]) * weight_here)
        if (x[m] - x[0]) * weight_here <= greatest:
            break
    reach = last
    if greatest > 0.0 and xi > 0.0:
        reach = int(min(float(last), math.log((x[last] - x[0]) / greatest) / xi + 2.0))
    first, final = max(0, m - reach), min(last, m + reach)
    weight = np.exp(-xi * np.arange(max(m - first, final - m) + 1))
    stack = np.empty((DEPTH, 4), dtype=np.int64)
    stack[0] = (first, m - 1, m, final)
    size = 1
    while size > 0:
        size -= 1
        first_i, last_i, first_j, last_j = stack[size]
        i = (first_i + last_i) // 2
        # Where every weighted gap is 0, all j are equally good. The last j leaves the left half unrestricted, and the
        # right half, whose gaps are smaller still, loses nothing.
        best, place = 0.0, last_j
        for j in range(first_j, last_j + 1):
            height = (x[j] - x[i]) * weight[j - m]
            if height > best:
                best, place = height, j
        greatest = max(greatest, best * weight[m - i - 1])
        if first_i < i:
            stack[size] = (first_i, i - 1, first_j, place)
            size += 1
        if i < last_i:
            stack[size] = (i + 1, last_i, place, last_j)
            size += 1
    return greatest


# Most and fewest samples over which the noise of a sampled median is averaged, and the values they hold in all.
SAMPLES, FEWEST, VALUES = 512, 16, 4_000_000
# Least S* that noise is scaled to, in steps of the grid. A constant floor keeps S* smooth, and doubles precise.
LEAST_STEPS = 2.0**-10
# N up to which every n/N is evaluated for a claim that holds for any N; beyond, n/N is the share up to rounding.
EVERY = 500


@dataclass(frozen=True, slots=True)
class Calibration:
    """Parameters with which a sample of n of N devices may be released (HDK theorem 1).

    Parameters
    ----------
    epsilon, delta : float
        ε_n and δ_n.
    xi : float
        ξ.
    fraction : float
        n/N.
    """

    epsilon: float
    delta: float
    xi: float
    fraction: float

    def population_delta(self, epsilon: float) -> float:
        """Return a bound of the population's δ at this ε: n/N of the sample's, at the sample's ε."""
        sample_epsilon, _ = sample_privacy(epsilon=epsilon, share=self.fraction)
        return self.fraction * SmoothNoiseDelta(self.epsilon, self.xi)(sample_epsilon)


@dataclass(frozen=True, kw_only=True)
class SmoothMedian(NoisyStatistic):
    """The median of n of N values plus Lap(2·S*/ε_n), S* its ξ-smooth sensitivity (HDK sec 4.3), on a public grid.

    (ε, δ)-private for the population: a sample uses ε_n = ln(1 + (N/n)(e^ε − 1)) and δ_n = (N/n)δ. The median is the
    lower one, x_(⌈n/2⌉), where n is even, for samples and for `truth` alike. Values beyond the bounds are clamped to
    them first; `truth` is the median of the unclamped values, and `std_error` includes the error from clamping.

    S* is computed from the values and is not released. So an observer who sees only the published median does not know
    the scale of its noise.

    Clamped values are rounded to the multiples of a power of two, about 2^−40·(upper − lower)/ε_n, which depends on
    public numbers alone. Median and S* are computed from the rounded values, and the noise is Laplace noise rounded to
    the same multiples, sampled exactly. So what is published is the sum of the median and continuous noise, rounded to
    the grid, for any S*; no rounding of doubles enters it (`grid_noise`).

    Parameters
    ----------
    epsilon : float
        ε of the release, for any sample; in 1e-6…50.
    delta : float
        δ of the release, above 0 and below sample/2, so that δ_n stays below 1 for any rounding of n.
    lower, upper : float
        Bounds of a value, set without looking at any value.
    sample : float
        Share of the devices drawn first, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < check_probability("delta", self.delta) < self.sample / 2:
            raise ParameterError("delta", f"must be above 0 and below sample/2 = {self.sample / 2:g}", self.delta)

    def calibration(self, devices: int) -> Calibration:
        """Return ε_n, δ_n, ξ and n/N where there are N devices."""
        return _calibration(self.epsilon, self.delta, SimpleRandomSample(devices, self.sample).fraction)

    def smooth_sensitivity(self, values: Floats, calibration: Calibration) -> float:
        """Return S* of a sample's values, clamped or unclamped."""
        return median_smooth_sensitivity(values, xi=calibration.xi, lower=self.lower, upper=self.upper)

    def publish(self, values: Floats, *, rng: np.random.Generator, level: float = LEVEL) -> ValueEstimate:
        """Publish the median of a sample with noise.

        Parameters
        ----------
        values : (n,) float64
            At least one.
        rng : numpy.random.Generator
            Draws the sample, then the noise.
        level : float
            Least coverage of the interval.

        Returns
        -------
        ValueEstimate
            A multiple of the grid's step. The interval covers the median of all clamped values with probability at
            least `level`. It must not depend on S*, so it uses the greatest possible S*, upper − lower, and is wide.
            The distance of a sample's median from the population's depends on the values, so for a sample the interval
            is the whole range between the bounds. The error, too, is the greatest possible.
        """
        clamped = clamp(values, self.lower, self.upper)
        sample = SimpleRandomSample(len(clamped), self.sample)
        calibration = self.calibration(len(clamped))
        grid = self._grid(calibration)
        steps = grid.to_steps(sample.draw(clamped, rng=rng)).astype(np.float64)
        # S* is a double. A smaller ξ and wider noise, by more than its rounding error, keep the bounds of the claim.
        smooth = median_smooth_sensitivity(steps, xi=calibration.xi - SLACK, lower=0.0, upper=float(grid.width))
        scale = 2.0 * max(smooth, LEAST_STEPS) / calibration.epsilon * WIDENING
        noise = int(draw_rounded_laplace(scale, 1, rng=rng)[0])
        median = grid.to_value(int(lower_median(steps)) + noise)
        spread = self.upper - self.lower
        most = 2.0 * grid.width * grid.step / calibration.epsilon * WIDENING
        if sample.size < sample.devices:
            return ValueEstimate(
                median, math.hypot(spread, math.sqrt(2.0) * most), float(self.lower), float(self.upper)
            )
        # Rounding values and noise moves the median by at most half a step each.
        reach = most * -math.log(1.0 - level) + grid.step
        low, high = np.clip([median - reach, median + reach], self.lower, self.upper)
        return ValueEstimate(median, math.sqrt(2.0) * most, float(low), float(high))

    def truth(self, values: Floats) -> float:
        """Return the lower median of all values, unclamped."""
        return lower_median(check_values(values))

    def std_error(self, values: Floats) -> float:
        """Return the root mean square error of `publish` given these values.

        The square is the mean square of (sample median − truth), exact by the distribution of the sample median's rank,
        plus E[8·S*²/ε_n²] of the noise (the decomposition of HDK sec 4.3), which is exact where all values are used,
        plus the square of the grid's step, which is more than rounding adds to an unbiased median.
        """
        clamped = clamp(values, self.lower, self.upper)
        sampling = SimpleRandomSample(len(clamped), self.sample).median_error(clamped, self.truth(values))
        step = self._grid(self.calibration(len(clamped))).step
        return math.sqrt(sampling + self.noise_variance(values)[0] + step**2)

    def noise_variance(self, values: Floats) -> tuple[float, float]:
        """Return E[8·S*²/ε_n²], the variance of the noise over samples, and its own standard error.

        Where all values are used it is exact, with error 0. For a sample it is averaged over 512 samples (fewer if
        they are large, so that all hold 4 million values, but at least 16). The samples are the same for each N and n,
        so the result is a function of the values and uses no randomness of a run.
        """
        clamped = clamp(values, self.lower, self.upper)
        sample = SimpleRandomSample(len(clamped), self.sample)
        calibration = self.calibration(len(clamped))
        if sample.size == sample.devices:
            sensitivities = np.array([self.smooth_sensitivity(clamped, calibration)])
        else:
            sensitivities = sampled_smooth_sensitivities(
                np.sort(clamped), _fixed_ranks(sample), xi=calibration.xi, lower=self.lower, upper=self.upper
            )
        least = LEAST_STEPS * self._grid(calibration).step
        variances = 8.0 * (np.maximum(sensitivities, least) / calibration.epsilon) ** 2
        count = len(variances)
        spread = float(variances.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
        return float(variances.mean()), spread

    def claim(self, *, queries: int = 1, devices: int | None = None) -> Claim:
        """Return the claim of the published medians about one device's value, all others known.

        Parameters
        ----------
        queries : int
            T, each with a fresh sample, fresh noise and the same bounds.
        devices : int, optional
            N; any number by default.

        Returns
        -------
        Claim
            No finite ε at δ = 0, because the noise of two neighbours may differ in scale. δ is a bound at every ε, and
            at the ε of the release at most the δ of the release.
        """
        check_integer("queries", queries, at_least=1)
        if devices is not None:
            fractions: tuple[float, ...] = (SimpleRandomSample(devices, self.sample).fraction,)
        else:
            fractions = _fractions(self.sample)
        basis = (
            "Laplace noise scaled to the smooth sensitivity of a median (Nissim, Raskhodnikova and Smith 2007), "
            f"{GRID_BASIS}; neighbours of one changed value (bounded); δ by the closed form of the worst two scales "
            "and medians that smoothness allows, which no two sets of values need attain"
        )
        if self.sample < 1.0:
            basis += "; calibrated for a sample with HDK theorem 1"
            basis += f", n/N = {fractions[0]:.6g}" if devices is not None else ", at the worst n/N that rounding makes"
        if queries > 1:
            basis += COMPOSED
        curve = SmoothMedianDelta(self.epsilon, self.delta, fractions)
        return Claim.infinite(composed(curve, queries), f"{basis}.")

    def _grid(self, calibration: Calibration) -> Grid:
        """Return the grid of the published values."""
        return Grid.build(self.lower, self.upper, epsilon=calibration.epsilon)


@dataclass(frozen=True, slots=True)
class SmoothMedianDelta:
    """A bound of δ(ε), the worst over some n/N, as a function of ε.

    Parameters
    ----------
    epsilon, delta : float
        ε and δ of the release.
    fractions : tuple of float
        Values of n/N.
    """

    epsilon: float
    delta: float
    fractions: tuple[float, ...]

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        check_epsilon(epsilon)
        return max(
            _calibration(self.epsilon, self.delta, fraction).population_delta(epsilon) for fraction in self.fractions
        )


@lru_cache(maxsize=4096)
def _calibration(epsilon: float, delta: float, fraction: float) -> Calibration:
    """Return the parameters with which a sample of this n/N may be released."""
    sample_epsilon, within = sample_privacy(epsilon=epsilon, delta=delta, share=fraction)
    return Calibration(sample_epsilon, within, smoothing(epsilon=sample_epsilon, delta=within), fraction)


@lru_cache(maxsize=64)
def _fractions(share: float) -> tuple[float, ...]:
    """Return every n/N up to N = 500, and the ends and the middle of its range for greater N."""
    if share == 1.0:
        return (1.0,)
    few = {SimpleRandomSample(devices, share).fraction for devices in range(1, EVERY + 1)}
    off = 0.5 / (EVERY + 1)
    return tuple(sorted(few | {share} | {min(1.0, share + end) for end in (-off, off) if share + end > 0.0}))


@lru_cache(maxsize=8)
def _fixed_ranks(sample: SimpleRandomSample) -> Integers:
    """Return the samples that noise is averaged over, (samples, n) int64 ascending indices into N ordered values."""
    count = int(np.clip(VALUES // sample.size, FEWEST, SAMPLES))
    rng = np.random.default_rng((sample.devices, sample.size))
    ranks = np.stack([rng.choice(sample.devices, size=sample.size, replace=False, shuffle=False) for _ in range(count)])
    ranks.sort(axis=1)
    return ranks
