"""Simple random samples: errors of their mean and median, and statistics that are published without noise."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mechanisms.central.release import ValueEstimate, check_bounds, check_values, lower_median, median_rank
from mechanisms.compiled import Floats, ndtri
from mechanisms.local.common.intervals import LEVEL, log_choose
from mechanisms.parameter import ParameterError, check_budget, check_choice, check_integer, check_probability
from mechanisms.privacy.claim import Claim, ConstantDelta


@dataclass(frozen=True, slots=True)
class SimpleRandomSample:
    """n = max(1, round(share·N)) of N devices, every set of n as likely as any other.

    A half is rounded to the even number. N is public: neighbours have the same number of devices (HDK sec 2.1).

    Parameters
    ----------
    devices : int
        N, at least 1.
    share : float
        Requested share of the devices, in (0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    devices: int
    share: float

    def __post_init__(self) -> None:
        check_integer("devices", self.devices, at_least=1)
        check_probability("share", self.share, above_zero=True)

    @property
    def size(self) -> int:
        """The number of devices drawn, n."""
        return max(1, round(self.share * self.devices))

    @property
    def fraction(self) -> float:
        """n/N, from which privacy is computed; it is equal to `share` only up to rounding."""
        return self.size / self.devices

    def draw(self, values: Floats, *, rng: np.random.Generator) -> Floats:
        """Return the values of the devices drawn, (n,) float64; all values, without a random draw, where n is N."""
        if len(values) != self.devices:
            raise ParameterError("values", f"must be of {self.devices} devices", len(values))
        if self.size == self.devices:
            return values
        return rng.choice(values, size=self.size, replace=False, shuffle=False)

    def mean_variance(self, values: Floats) -> float:
        """Return (1 − n/N)·S²/n, the variance of the sample mean, S² with N − 1 (the first term of HDK eq 7)."""
        if self.size == self.devices:
            return 0.0
        return (1.0 - self.fraction) * float(np.var(values, ddof=1)) / self.size

    def median_law(self) -> Floats:
        """Return the exact distribution of the sample median's rank in the population.

        The m-th smallest of n is the r-th smallest of N in C(r−1, m−1)·C(N−r, n−m)/C(N, n) of all samples: m − 1 of
        those below it were drawn, and n − m of those above.

        Returns
        -------
        (N,) float64
            P(r) for r = 1…N.
        """
        n, m = self.size, median_rank(self.size)
        r = np.arange(1, self.devices + 1)
        log_law = np.full(self.devices, -np.inf)
        possible = (r >= m) & (r <= self.devices - (n - m))
        below, above = r[possible] - 1, self.devices - r[possible]
        log_law[possible] = log_choose(below, m - 1) + log_choose(above, n - m)
        law: Floats = np.exp(log_law - log_law.max())
        law /= law.sum()
        return law

    def median_error(self, values: Floats, truth: float) -> float:
        """Return the exact mean square of (sample median − truth), bias included.

        Parameters
        ----------
        values : (N,) float64
            In any order.
        truth : float
        """
        return float(self.median_law() @ (np.sort(values) - truth) ** 2)

    def mean_reach(self, spread: float, *, alpha: float) -> float:
        """Return a bound of the sample mean's error, exceeded with probability at most alpha for any values.

        spread·√((1 − (n − 1)/N)·ln(2/α)/(2n)) (Serfling 1974, corollary 1.1), 0 where n is N.

        Parameters
        ----------
        spread : float
            Greatest possible value minus least possible value.
        alpha : float
            In (0, 1).
        """
        if self.size == self.devices:
            return 0.0
        kept = 1.0 - (self.size - 1) / self.devices
        return spread * math.sqrt(kept * math.log(2.0 / alpha) / (2.0 * self.size))


@dataclass(frozen=True, kw_only=True)
class SampledStatistic:
    """A statistic of n of N values within bounds, which may have noise.

    Parameters
    ----------
    lower, upper : float
        Bounds of a value, set without looking at any value.
    sample : float
        Share of the devices drawn first, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    lower: float
    upper: float
    sample: float = 1.0

    def __post_init__(self) -> None:
        check_bounds(self.lower, self.upper)
        check_probability("sample", self.sample, above_zero=True)


@dataclass(frozen=True, kw_only=True)
class NoisyStatistic(SampledStatistic):
    """A statistic of n of N values with noise.

    Parameters
    ----------
    epsilon : float
        ε of the release, for any sample; in 1e-6…50.
    lower, upper, sample : float
        As in `SampledStatistic`.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_budget("epsilon", self.epsilon)
        super().__post_init__()


Statistic = Literal["mean", "median"]


@dataclass(frozen=True, kw_only=True)
class ExactStatistic(SampledStatistic):
    """A statistic of n of N values without noise: the baseline of every private release of values.

    Parameters
    ----------
    statistic : {"mean", "median"}
        The median is the lower one, x_(⌈n/2⌉), where n is even.
    lower, upper : float
        Bounds of the values, for intervals; values beyond them are used unchanged.
    sample : float
        Share of the devices drawn first, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    statistic: Statistic

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("statistic", self.statistic, get_args(Statistic))

    def publish(self, values: Floats, *, rng: np.random.Generator, level: float = LEVEL) -> ValueEstimate:
        """Publish the statistic of a sample.

        Parameters
        ----------
        values : (n,) float64
            At least one.
        rng : numpy.random.Generator
            Draws the sample.
        level : float
            Least coverage of the interval.

        Returns
        -------
        ValueEstimate
            Of all values, without error. Of a sample, the error is estimated from the sample. The interval of a mean
            holds for any values within the bounds (Serfling's inequality), and is wide where they differ little. The
            interval of a median runs between two of the sample's values, by the hypergeometric distribution of the
            number of them below the population's median. A single value has no spread, so its interval is the whole
            range between the bounds.
        """
        values = check_values(values)
        sample = SimpleRandomSample(len(values), self.sample)
        drawn = sample.draw(values, rng=rng)
        value = self.truth(drawn)
        if sample.size == sample.devices:
            return ValueEstimate(value, 0.0, value, value)
        low, high = self._widest(value)
        z = -float(ndtri((1.0 - level) / 2))
        if sample.size == 1:
            return ValueEstimate(value, (high - low) / (2.0 * z), low, high)
        if self.statistic == "mean":
            error = math.sqrt((1.0 - sample.fraction) * float(np.var(drawn, ddof=1)) / sample.size)
            reach = sample.mean_reach(self.upper - self.lower, alpha=1.0 - level)
            return ValueEstimate(value, error, max(low, value - reach), min(high, value + reach))
        low, high = self._between(np.sort(drawn), sample, (low, high), (1.0 - level) / 2)
        return ValueEstimate(value, (high - low) / (2.0 * z), low, high)

    def truth(self, values: Floats) -> float:
        """Return the statistic of all values."""
        values = check_values(values)
        if self.statistic == "mean":
            return float(values.mean())
        return lower_median(values)

    def std_error(self, values: Floats) -> float:
        """Return the exact root mean square error of `publish` given these values: the error of sampling."""
        values = check_values(values)
        sample = SimpleRandomSample(len(values), self.sample)
        if self.statistic == "mean":
            return math.sqrt(sample.mean_variance(values))
        return math.sqrt(sample.median_error(values, self.truth(values)))

    def claim(self, *, queries: int = 1) -> Claim:
        """Return an infinite ε: with all other values known, the exact statistic reveals the last whenever it is drawn.

        δ is 1 for all values. For a sample it is the share of devices drawn, 1 at the worst N: one
        device alone is always drawn.
        """
        check_integer("queries", queries, at_least=1)
        basis = "With all other values known, an exact statistic reveals the last one"
        if self.sample < 1.0:
            basis += " whenever it is drawn, as a device alone always is"
        return Claim.exact(math.inf, ConstantDelta(1.0), f"{basis}.")

    def _widest(self, value: float) -> tuple[float, float]:
        """Return the bounds, or the value where it lies beyond them."""
        return min(self.lower, value), max(self.upper, value)

    def _between(
        self, ordered: Floats, sample: SimpleRandomSample, widest: tuple[float, float], half: float
    ) -> tuple[float, float]:
        """Return the sample's values between which the population's median x_(M) lies, each end missed with `half`.

        x_(M) < x_(a) of the sample only if fewer than a of the drawn have a rank up to M; x_(M) > x_(b) only if b or
        more have one below M.
        """
        from scipy.stats import hypergeom  # noqa: PLC0415 - a second, for intervals of medians only

        n, middle = sample.size, median_rank(sample.devices)
        ranks = np.arange(n + 1)
        up_to = hypergeom.cdf(ranks, sample.devices, middle, n)  # of those drawn, how many have a rank up to M
        below = hypergeom.sf(ranks, sample.devices, middle - 1, n)  # more than so many have one below M
        a = int(np.count_nonzero(up_to <= half))  # the greatest a with P(K ≤ a − 1) ≤ half
        b = int(np.argmax(below <= half)) + 1  # the least b with P(K' ≥ b) ≤ half
        low = float(ordered[a - 1]) if a >= 1 else min(widest[0], float(ordered[0]))
        high = float(ordered[b - 1]) if b <= n else max(widest[1], float(ordered[-1]))
        return low, high
