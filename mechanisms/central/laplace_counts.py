"""Laplace noise on the counts of all cells, or of a sample of the devices."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.grid_noise import WIDENING, draw_geometric
from mechanisms.central.release import check_held
from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.intervals import LEVEL, invert_binomial
from mechanisms.parameter import check_integer, check_probability
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.noisy_sample import noisy_sample_claim
from mechanisms.privacy.random_sampling import sample_privacy


@dataclass(frozen=True, kw_only=True)
class LaplaceCounts:
    """Every cell's count plus discrete Laplace noise, P(k) = α^|k|·(1 − α)/(1 + α), α = e^(−ε_n).

    Laplace noise on integers is its discrete form (Ghosh, Roughgarden and Sundararajan 2009): the same privacy, a
    little less variance, and no fraction to give the truth away. It is sampled exactly, with integers (`grid_noise`).
    One device between a cell and outside changes one count by 1; a move between two cells changes two and costs twice
    ε.

    With `sampling` β below 1 each device is drawn with probability β by its own coin, its noise is weaker, ε_n =
    ln(1 + (e^ε − 1)/β), and what is published is divided by β. (Neighbours differ in whether the device is there, so
    the number of devices is no public N to draw an exact share of.)

    Parameters
    ----------
    epsilon : float
        ε of the release for one device in a cell or outside, whatever the sampling; in 1e-6…50.
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
        """Check the parameters."""
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

    def publish(self, counts: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
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
            Unbiased, perhaps negative. Without sampling the interval is "exact", from the law of the noise; with it
            "noise, then binomial inversion": half of the 5 % for the noise, half for inverting Bin(Y, β) at either end
            of it. Both cover at least 95 %.
        """
        held = check_held(counts)
        return self.publish_sampled(held if self.sampling == 1.0 else rng.binomial(held, self.sampling), rng=rng)

    def publish_sampled(self, sampled: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
        """Publish devices sampled already, (cells,) int64, with noise: Sampling Privacy's sample themselves."""
        drawn = check_held(sampled, field="sampled")
        # A discrete Laplace variable is the difference of two geometric ones.
        up, down = draw_geometric(WIDENING / self.sample_epsilon, 2 * len(drawn), rng=rng).reshape(2, -1)
        noisy = drawn + up - down
        count = noisy / self.sampling
        if self.sampling == 1.0:
            reach = self._reach(1.0 - LEVEL)
            ends = np.maximum(count - reach, 0.0), np.maximum(count + reach, 0.0)
            return Estimate(count, np.full(len(drawn), math.sqrt(self.noise_variance)), *ends, "exact")
        reach, level = self._reach((1.0 - LEVEL) / 2), (1.0 + LEVEL) / 2
        lower, _ = invert_binomial(np.maximum(noisy - reach, 0), self.sampling, level)
        _, upper = invert_binomial(np.maximum(noisy + reach, 0), self.sampling, level)
        std_error = np.sqrt(self._variance(np.maximum(count, 0.0)))
        interval = lower.astype(np.float64), upper.astype(np.float64)
        return Estimate(count, std_error, *interval, "noise, then binomial inversion")

    def std_error(self, true_counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return √(Y(1 − β)/β + 2α/((1 − α)²β²)) of every cell, (cells,) float64, exact; there is no bias."""
        variance = self._variance(check_held(true_counts, field="true_counts").astype(np.float64))
        return np.sqrt(variance)

    def claim(self, *, crowd: int | None, queries: int = 1) -> PrivacyClaim:
        """Return what the published tables tell about one device in a cell or outside every cell, all others known.

        Parameters
        ----------
        crowd : int or None
            Devices in the cell with it; None: whatever the crowd. It matters only with sampling.
        queries : int
            T tables, each with fresh coins and noise.
        """
        if crowd is not None:
            check_integer("crowd", crowd, at_least=1)
        check_integer("queries", queries, at_least=1)
        source = (
            "Discrete Laplace noise, sampled exactly, on every count: one device between a cell and outside changes "
            "one count by 1; a move between two cells changes two counts by 1 each and has twice this ε"
        )
        return noisy_sample_claim(
            crowd=crowd, sampling=self.sampling, epsilon=self.epsilon, queries=queries, source=source
        )

    def _variance(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of the published counts."""
        return counts * (1.0 - self.sampling) / self.sampling + self.noise_variance / self.sampling**2

    def _reach(self, alpha: float) -> int:
        """Return the least h with P(|noise| > h) = 2·e^(−ε_n(h + 1))/(1 + e^−ε_n) at most alpha."""
        allowed = alpha * (1.0 + math.exp(-self.sample_epsilon)) / 2
        return max(0, math.ceil(-math.log(allowed) / self.sample_epsilon) - 1)
