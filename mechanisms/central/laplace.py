"""Laplace noise on the counts of all cells, published from a threshold on or all, and on a mean, also of a sample."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from mechanisms.central.grid_noise import GRID_BASIS, WIDENING, Grid, draw_geometric, draw_rounded_laplace
from mechanisms.central.release import ValueEstimate, check_held, check_values, clamp
from mechanisms.central.simple_random_sample import NoisyStatistic, SimpleRandomSample
from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.intervals import LEVEL, invert_binomial
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import check_budget, check_integer, check_probability
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.composition import composed
from mechanisms.privacy.laplace_noise import SampledLaplaceDelta, noisy_sample_claim
from mechanisms.privacy.subsampling import sample_privacy
from mechanisms.privacy.view import Adjacency


@dataclass(frozen=True, kw_only=True)
class LaplaceCounts:
    """Every cell's count plus discrete Laplace noise, P(k) = α^|k|·(1 − α)/(1 + α), α = e^(−ε_n).

    Noise on integers is the discrete form of Laplace noise (Ghosh, Roughgarden and Sundararajan 2009). It has the same
    privacy and a little less variance, and there is no fractional part that reveals the truth. It is sampled exactly,
    with integers (`grid_noise`). One device between a cell and outside changes one count by 1; a move between two cells
    changes two counts and costs twice ε.

    With `sampling` β below 1 each device is drawn independently with probability β, the noise is weaker, ε_n =
    ln(1 + (e^ε − 1)/β), and the noisy counts are divided by β. (Neighbours differ in whether the device is there. So
    the number of devices is not a public N, and an exact share of it cannot be drawn.)

    Parameters
    ----------
    epsilon : float
        ε of the release for one device in a cell or outside, for any sampling; in 1e-6…50.
    sampling : float
        β, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    epsilon: float
    sampling: float = 1.0

    def __post_init__(self) -> None:
        check_budget("epsilon", self.epsilon)
        check_probability("sampling", self.sampling, above_zero=True)

    @property
    def sample_epsilon(self) -> float:
        """ε_n, of the noise on the sample's counts."""
        return sample_privacy(epsilon=self.epsilon, share=self.sampling)[0]

    @property
    def noise_variance(self) -> float:
        """2α/(1 − α)², the variance of the noise on a sample's count."""
        return 2.0 * math.exp(-self.sample_epsilon) / math.expm1(-self.sample_epsilon) ** 2

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Publish the table of (sampled count + noise)/β.

        Parameters
        ----------
        counts : (cells,) int
            Devices held, none negative.
        rng : numpy.random.Generator
            Draws the sample, then the noise.

        Returns
        -------
        Estimate
            Unbiased, possibly negative. Without sampling the interval is "exact", from the distribution of the noise.
            With sampling it is "noise, then binomial inversion": half of the 5 % is for the noise, half for the
            inversion of Bin(Y, β) at both ends of the noise interval. Both intervals cover at least 95 %.
        """
        held = check_held(counts)
        return self.publish_sampled(held if self.sampling == 1.0 else rng.binomial(held, self.sampling), rng=rng)

    def publish_sampled(self, sampled: Integers, *, rng: np.random.Generator) -> Estimate:
        """Publish, with noise, devices that are already sampled, (cells,) int64, as in Sampling Privacy."""
        drawn = check_held(sampled, field="sampled")
        # A discrete Laplace variable is the difference of two geometric ones.
        up, down = draw_geometric(WIDENING / self.sample_epsilon, 2 * len(drawn), rng=rng).reshape(2, -1)
        noisy = drawn + up - down
        count = noisy / self.sampling
        if self.sampling == 1.0:
            reach = self.reach(1.0 - LEVEL)
            ends = np.maximum(count - reach, 0.0), np.maximum(count + reach, 0.0)
            return Estimate(count, np.full(len(drawn), math.sqrt(self.noise_variance)), *ends, "exact")
        reach, level = self.reach((1.0 - LEVEL) / 2), (1.0 + LEVEL) / 2
        lower, _ = invert_binomial(np.maximum(noisy - reach, 0), self.sampling, level)
        _, upper = invert_binomial(np.maximum(noisy + reach, 0), self.sampling, level)
        std_error = np.sqrt(self._variance(np.maximum(count, 0.0)))
        interval = lower.astype(np.float64), upper.astype(np.float64)
        return Estimate(count, std_error, *interval, "noise, then binomial inversion")

    def std_error(self, true_counts: Integers) -> Floats:
        """Return √(Y(1 − β)/β + 2α/((1 − α)²β²)) of every cell, (cells,) float64, exact; there is no bias."""
        return np.sqrt(self._variance(check_held(true_counts, field="true_counts").astype(np.float64)))

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim of the published tables about one device, all others known.

        Parameters
        ----------
        crowd : int or None
            Devices in the cell, the device in question included, for a move in each of the two cells; None for any
            crowd. It has an effect only with sampling.
        queries : int
            T tables, each with a fresh sample and fresh noise.
        adjacency : {"enter_leave", "move"}
            The change of one device that the claim hides.

        Returns
        -------
        Claim
            Without sampling exact for both; with sampling `noisy_sample_claim`.
        """
        if crowd is not None:
            check_integer("crowd", crowd, at_least=1)
        check_integer("queries", queries, at_least=1)
        changed = {
            "enter_leave": "one device between a cell and outside changes one count by 1; a move between two cells "
            "changes two counts by 1 each and has at most twice this ε",
            "move": "a move between two cells changes two counts by 1 each",
        }[adjacency]
        source = f"Discrete Laplace noise, sampled exactly, on every count: {changed}"
        return noisy_sample_claim(
            crowd=crowd,
            sampling=self.sampling,
            epsilon=self.epsilon,
            queries=queries,
            source=source,
            adjacency=adjacency,
        )

    def _variance(self, counts: Floats) -> Floats:
        """Return the variance of the published counts."""
        return counts * (1.0 - self.sampling) / self.sampling + self.noise_variance / self.sampling**2

    def reach(self, alpha: float) -> int:
        """Return the least h with P(|noise| > h) = 2·e^(−ε_n(h + 1))/(1 + e^−ε_n) at most alpha."""
        allowed = alpha * (1.0 + math.exp(-self.sample_epsilon)) / 2
        return max(0, math.ceil(-math.log(allowed) / self.sample_epsilon) - 1)


# Most counts at which the greatest error of a suppressed cell is looked for.
POINTS = 4_096


@dataclass(frozen=True, kw_only=True)
class ThresholdCounts:
    """Every cell's count plus discrete Laplace noise, published where the noisy count is at least k.

    Elsewhere nothing is published, which counts as 0. The threshold is applied after the noise, so it is a
    post-processing and costs no privacy (unlike a threshold on the count itself, which reveals on which side of it the
    count is). No estimate is unbiased, because small counts are published only if their noise is great: `std_error`
    includes the bias.

    Parameters
    ----------
    epsilon : float
        ε of the noise for one device in a cell or outside; in 1e-6…50.
    k : int
        Noisy counts below it are not published; at least 1.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    epsilon: float
    k: int
    noise: LaplaceCounts = field(init=False, repr=False)
    """The release without the threshold."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer("k", self.k, at_least=1))
        object.__setattr__(self, "noise", LaplaceCounts(epsilon=self.epsilon))

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Publish the noisy counts of at least k.

        Parameters
        ----------
        counts : (cells,) int
            Devices held, none negative.
        rng : numpy.random.Generator
            Draws the noise.

        Returns
        -------
        Estimate
            A suppressed cell has count 0, and an interval from 0 to k − 1 + h, with h such that the noise is within ±h
            with probability at least 95 %. A published cell has the noisy count ± h. A count above k − 1 + h is
            suppressed only by noise below −h, so both cover at least 95 %. The error of a suppressed cell is the
            greatest of the counts in its interval.
        """
        noisy = self.noise.publish(counts, rng=rng)
        kept = noisy.count >= self.k
        most = self.k - 1 + self.noise.reach(1.0 - LEVEL)
        possible = np.rint(np.linspace(0, most, min(most + 1, POINTS))).astype(np.int64)
        error = np.full(len(kept), self.std_error(possible).max())
        error[kept] = self.std_error(noisy.count[kept].astype(np.int64))
        return Estimate(
            np.where(kept, noisy.count, 0.0),
            error,
            np.where(kept, noisy.lower, 0.0),
            np.where(kept, noisy.upper, float(most)),
            "exact",
        )

    def std_error(self, true_counts: Integers) -> Floats:
        """Return the exact root mean square error at these (cells,) int64 counts, the bias of suppression included.

        With noise L of law c·α^|l|, c = (1 − α)/(1 + α), the square is E[L²; L ≥ k − Y] + Y²·P[L < k − Y]. For m ≥ 1,
        P[L ≥ m] = α^m/(1 + α) and E[L²; L ≥ m] = (c·α^m)·(m²/(1 − α) + 2mα/(1 − α)² + α(1 + α)/(1 − α)³); for m ≤ 0
        both follow by symmetry.
        """
        held = check_held(true_counts, field="true_counts").astype(np.float64)
        alpha, gap = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        above = held < self.k  # a count below k is published only if the noise is positive
        m = np.where(above, self.k - held, held - self.k + 1.0)
        far = np.exp(-self.epsilon * m) / (1.0 + alpha)
        square = far * (m * m + (2.0 * m + (1.0 + alpha) / gap) * alpha / gap)
        kept = np.where(above, square, np.maximum(self.noise.noise_variance - square, 0.0))
        return np.sqrt(kept + held * held * np.where(above, 1.0 - far, far))

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim about one device, all others known: the claim of the noise.

        It is a bound for every crowd by post-processing. It is attained where at least k devices are in the cell: the
        likelihood ratio is e^ε for each noisy count from the crowd on and e^−ε below, and all that is suppressed is
        below. In a smaller crowd less is revealed.

        Parameters
        ----------
        crowd : int or None
            At least this many devices are in the cell, the device in question included; None for any crowd. It has no
            effect, because some greater crowd is the worst.
        queries : int
            T tables, each with fresh noise.
        adjacency : {"enter_leave", "move"}
            The change of one device that the claim hides.
        """
        claim = self.noise.claim(crowd=crowd, queries=queries, adjacency=adjacency)
        source = f"Published from {self.k} on: post-processing of noisy counts, with nothing gained at {self.k} or more"
        return replace(claim, basis=f"{source}. {claim.basis}")


@dataclass(frozen=True, kw_only=True)
class LaplaceMean(NoisyStatistic):
    """The mean of n of N values plus Lap(R/(n·ε_n)), R = upper − lower (HDK sec 4.2), on a public grid.

    A sample's release may use ε_n = ln(1 + (N/n)(e^ε − 1)) (HDK theorem 1), so that ε protects the population. One
    changed value moves a mean of n values by at most R/n. So fewer values mean more sensitivity, and sampling has no
    gain (HDK eq 8 is below 1 for every ε > 0). Values beyond the bounds are clamped to them first; `truth` is the mean
    of the unclamped values, and `std_error` includes the error from clamping.

    Clamped values are rounded to the multiples of a power of two, about 2^−40·R/ε_n, which depends on public numbers
    alone. Their sum, an integer, has rounded Laplace noise of scale R/ε_n, sampled exactly, and the quotient by n is
    rounded to the same multiples. No rounding of doubles enters the statistic or the noise (`grid_noise`).

    Parameters
    ----------
    epsilon : float
        ε of the release, for any sample; in 1e-6…50.
    lower, upper : float
        Bounds of a value, set without looking at any value.
    sample : float
        Share of the devices drawn first, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    def noise_scale(self, devices: int) -> float:
        """Return the scale of the noise on the mean of a sample from N devices: R/(n·ε_n), up to 2^−38 of it."""
        grid, scale = self._sum_noise(devices)
        return scale * grid.step / SimpleRandomSample(devices, self.sample).size

    def publish(self, values: Floats, *, rng: np.random.Generator, level: float = LEVEL) -> ValueEstimate:
        """Publish the mean of a sample with noise.

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
            A multiple of the grid's step. The interval covers the mean of all clamped values with probability at least
            `level`. If all values are used, the coverage is exact, apart from the grid and from ends that are kept
            within the bounds. For a sample, half of the rest is for the noise and half for Serfling's inequality. The
            error is the error of the noise, and for a sample also the most that sampling values within the bounds can
            add. Neither depends on the values.
        """
        clamped = clamp(values, self.lower, self.upper)
        sample = SimpleRandomSample(len(clamped), self.sample)
        grid, sum_scale = self._sum_noise(len(clamped))
        # Python integers keep the sum exact for any number of values.
        total = sum(grid.to_steps(sample.draw(clamped, rng=rng)).tolist())
        total += int(draw_rounded_laplace(sum_scale, 1, rng=rng)[0])
        mean = grid.to_value(round(Fraction(total, sample.size)))
        scale = sum_scale * grid.step / sample.size
        spread, alpha = self.upper - self.lower, 1.0 - level
        sampling = 0.0
        if sample.size < sample.devices:
            alpha /= 2.0
            # Half the values at either end: N/(N − 1)·R²/4, or as near to it as an odd N comes.
            half = sample.devices // 2
            most = spread**2 * half * (sample.devices - half) / (sample.devices * (sample.devices - 1))
            sampling = (1.0 - sample.fraction) * most / sample.size
        # Rounding values, noise and mean moves the mean by at most 1/2, 1/(2n) and 1/2 of a step.
        reach = scale * math.log(1.0 / alpha) + sample.mean_reach(spread, alpha=alpha) + 2.0 * grid.step
        low, high = np.clip([mean - reach, mean + reach], self.lower, self.upper)
        return ValueEstimate(mean, math.sqrt(sampling + 2.0 * scale**2), float(low), float(high))

    def truth(self, values: Floats) -> float:
        """Return the mean of all values, unclamped."""
        return float(check_values(values).mean())

    def std_error(self, values: Floats) -> float:
        """Return the exact root mean square error of `publish` given these values (HDK eqs 6 and 7).

        The square is (1 − n/N)·S²/n of the clamped values, plus 2(R/(n·ε_n))², plus the square of the shift of the mean
        by clamping.
        """
        clamped = clamp(values, self.lower, self.upper)
        bias = float(clamped.mean()) - self.truth(values)
        sampling = SimpleRandomSample(len(clamped), self.sample).mean_variance(clamped)
        return math.sqrt(sampling + 2.0 * self.noise_scale(len(clamped)) ** 2 + bias**2)

    def claim(self, *, queries: int = 1, devices: int | None = None) -> Claim:
        """Return the claim of the published means about one device's value, all others known.

        Parameters
        ----------
        queries : int
            T, each with a fresh sample, fresh noise and the same bounds.
        devices : int, optional
            N; any number by default, for which one device alone is the worst case.

        Returns
        -------
        Claim
            Exact over one query; over several T·ε is exact and δ is composed numerically, an upper bound.
        """
        check_integer("queries", queries, at_least=1)
        basis = f"Laplace noise on a mean, {GRID_BASIS}; neighbours of one changed value (bounded)"
        fraction = 1.0 if devices is None else SimpleRandomSample(devices, self.sample).fraction
        if self.sample < 1.0:
            basis += (
                ", calibrated with HDK theorem 1, which is attained where all other values are at a bound; it "
                "reveals less the smaller the share of drawn devices: one device alone, always drawn, is the worst case"
            )
        if queries == 1:
            return Claim.exact(self.epsilon, SampledLaplaceDelta(self.epsilon, fraction), f"{basis}.")
        basis += "; over T queries T·ε, attained, and δ by composing the privacy loss distribution of the worst pair"
        # A sample of any share reveals no more than the whole, so this bounds queries of any shares and values.
        curve = composed(SampledLaplaceDelta(self.epsilon), queries, limit=self.epsilon)
        return Claim("exact", queries * self.epsilon, "bound", f"{basis}.", curve)

    def _sum_noise(self, devices: int) -> tuple[Grid, float]:
        """Return the grid for a sample from N devices, and the scale of the noise on the sum, in steps."""
        fraction = SimpleRandomSample(devices, self.sample).fraction
        epsilon, _ = sample_privacy(epsilon=self.epsilon, share=fraction)
        grid = Grid.build(self.lower, self.upper, epsilon=epsilon)
        return grid, grid.width / epsilon * WIDENING
