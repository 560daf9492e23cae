"""Noisy counts published only from a threshold on."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.laplace import LaplaceCounts
from mechanisms.central.release import check_held
from mechanisms.local.common.intervals import LEVEL
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import check_integer
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.view import Adjacency

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

    def publish(self, counts: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
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

    def std_error(self, true_counts: NDArray[np.int64]) -> NDArray[np.float64]:
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

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> PrivacyClaim:
        """Return the claim about one device, all others known: that of the noise.

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
