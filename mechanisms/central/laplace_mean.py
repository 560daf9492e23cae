"""Laplace noise on a mean: of all values, or of a simple random sample of them."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.bounds import check_bounds, clamp
from mechanisms.central.grid_noise import GRID_BASIS, WIDENING, Grid, draw_rounded_laplace
from mechanisms.central.release import ValueEstimate, check_values
from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.intervals import LEVEL
from mechanisms.parameter import check_integer, check_probability
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.laplace_noise import LaplaceDelta, SampledLaplaceDelta
from mechanisms.privacy.random_sampling import sample_privacy


@dataclass(frozen=True, kw_only=True)
class LaplaceMean:
    """The mean of n of N values plus Lap(R/(n·ε_n)), R = upper − lower (HDK sec 4.2), on a public grid.

    A sample's release may use ε_n = ln(1 + (N/n)(e^ε − 1)) (HDK theorem 1), so that ε protects the population. One
    changed value moves a mean of n by R/n at most: fewer values, more sensitivity, and the sample gains nothing from it
    (HDK eq 8 is below 1 for every ε > 0). Values beyond the bounds are clamped to them first; `truth` is the mean of
    the values as they are, and `std_error` counts what clamping costs.

    Clamped values are rounded to the multiples of a power of two, about 2^−40·R/ε_n, which depends on public numbers
    alone. Their sum, an integer, has rounded Laplace noise of scale R/ε_n, sampled exactly, and the quotient by n is
    rounded to the same multiples. No rounding of doubles enters the statistic or the noise (`grid_noise`).

    Parameters
    ----------
    epsilon : float
        ε of the release, whatever the sample; in 1e-6…50.
    lower, upper : float
        Bounds of a value, set without looking at any.
    sample : float
        Share of the devices drawn first, in (0, 1]; 1 takes all.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    epsilon: float
    lower: float
    upper: float
    sample: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_budget("epsilon", self.epsilon)
        check_bounds(self.lower, self.upper)
        check_probability("sample", self.sample, above_zero=True)

    def noise_scale(self, devices: int) -> float:
        """Return the scale of the noise on the mean of a sample from N devices: R/(n·ε_n), but for 2^−38 of it."""
        grid, scale = self._sum_noise(devices)
        return scale * grid.step / SimpleRandomSample(devices, self.sample).size

    def publish(self, values: NDArray[np.float64], *, rng: np.random.Generator, level: float = LEVEL) -> ValueEstimate:
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
            A multiple of the grid's step. The interval covers the mean of all clamped values with `level` at least:
            exactly so, but for the grid and its ends being kept within the bounds, where all are used; of a sample
            half of the rest goes to the noise, half to Serfling's inequality. The error is the noise's, and of a sample
            also the most that sampling values within the bounds can add: neither depends on the values.
        """
        clamped = clamp(values, self.lower, self.upper)
        sample = SimpleRandomSample(len(clamped), self.sample)
        grid, sum_scale = self._sum_noise(len(clamped))
        # Integers of Python: the sum is exact however many there are.
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

    def truth(self, values: NDArray[np.float64]) -> float:
        """Return the mean of all values, as they are."""
        return float(check_values(values).mean())

    def std_error(self, values: NDArray[np.float64]) -> float:
        """Return the exact root mean square error of `publish` given these values (HDK eqs 6 and 7).

        The square is (1 − n/N)·S²/n of the clamped values, plus 2(R/(n·ε_n))², plus the square of what clamping moves
        the mean by.
        """
        clamped = clamp(values, self.lower, self.upper)
        bias = float(clamped.mean()) - self.truth(values)
        sampling = SimpleRandomSample(len(clamped), self.sample).mean_variance(clamped)
        return math.sqrt(sampling + 2.0 * self.noise_scale(len(clamped)) ** 2 + bias**2)

    def claim(self, *, queries: int = 1, devices: int | None = None) -> PrivacyClaim:
        """Return what the published means tell about one device's value, all others known.

        Parameters
        ----------
        queries : int
            T, with a fresh sample and fresh noise in each, of the same bounds.
        devices : int, optional
            N; whatever it is, by default, which is as telling as one device alone.

        Returns
        -------
        PrivacyClaim
            Exact over one query; over several T·ε is exact and δ is composed numerically, an upper bound.
        """
        check_integer("queries", queries, at_least=1)
        basis = f"Laplace noise on a mean, {GRID_BASIS}; neighbours of one changed value (bounded)"
        fraction = 1.0 if devices is None else SimpleRandomSample(devices, self.sample).fraction
        if self.sample < 1.0:
            basis += (
                ", calibrated with HDK theorem 1, which is attained where all other values are at a bound; the fewer "
                "of the devices are drawn the less it tells, so that one device, always drawn, is the worst"
            )
        if queries == 1:
            return PrivacyClaim.exact(self.epsilon, SampledLaplaceDelta(self.epsilon, fraction), f"{basis}.")
        basis += "; over T queries T·ε, attained, and δ by composing the privacy loss distribution of the worst pair"
        return PrivacyClaim("exact", queries * self.epsilon, "bound", f"{basis}.", LaplaceDelta(self.epsilon, queries))

    def _sum_noise(self, devices: int) -> tuple[Grid, float]:
        """Return the grid for a sample from N devices, and the scale of the noise on the sum, in steps."""
        fraction = SimpleRandomSample(devices, self.sample).fraction
        epsilon, _ = sample_privacy(epsilon=self.epsilon, share=fraction)
        grid = Grid.build(self.lower, self.upper, epsilon=epsilon)
        return grid, grid.width / epsilon * WIDENING
