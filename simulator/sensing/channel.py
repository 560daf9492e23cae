"""Channel: what becomes of a report between a device and its server."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr


class Fate(IntEnum):
    """What became of a report; every report that was sent has exactly one."""

    COUNTED = 0
    LATE = 1
    LOST = 2


class Latency(Protocol):
    """How long a report is under way."""

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""

    def exceeds(self, deadline_s: float) -> float:
        """Return the probability of taking longer than `deadline_s`."""


@dataclass(frozen=True)
class ConstantLatency:
    """Every report takes `value_s`."""

    value_s: float = 0.0

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:  # noqa: ARG002  # nothing to draw
        """Draw (reports,) seconds."""
        return np.full(reports, self.value_s)

    def exceeds(self, deadline_s: float) -> float:
        """Return the probability of taking longer than `deadline_s`."""
        return float(self.value_s > deadline_s)


@dataclass(frozen=True)
class ExponentialLatency:
    """Memoryless, `mean_s` on average."""

    mean_s: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""
        return rng.exponential(self.mean_s, reports)

    def exceeds(self, deadline_s: float) -> float:
        """Return the probability of taking longer than `deadline_s`."""
        return float(np.exp(-deadline_s / self.mean_s))


@dataclass(frozen=True)
class LognormalLatency:
    """Half of the reports take less than `median_s`; `sigma` is the standard deviation of the logarithm."""

    median_s: float
    sigma: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""
        return self.median_s * np.exp(self.sigma * rng.standard_normal(reports))

    def exceeds(self, deadline_s: float) -> float:
        """Return the probability of taking longer than `deadline_s`."""
        return float(ndtr(-np.log(deadline_s / self.median_s) / self.sigma))


@dataclass(frozen=True)
class Channel:
    """A lossy, slow network between devices and servers; ideal by default.

    Attributes
    ----------
    latency
        Of each report, independently.
    loss_one, loss_two
        Probability that a report sent at round one's, or at round two's or a later moment, is lost.
    churn
        Probability that a device leaves after round one's moment, and answers no more in this query.
    """

    latency: Latency = field(default_factory=ConstantLatency)
    loss_one: float = 0.0
    loss_two: float = 0.0
    churn: float = 0.0

    def loss(self, moment: int) -> float:
        """Return the loss probability at `moment` 1 (round one), 2 (round two) or later."""
        return self.loss_one if moment <= 1 else self.loss_two

    def fates(self, reports: int, *, moment: int, deadline_s: float, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        """Draw the `Fate` of (reports,) reports sent at `moment`, to be in within `deadline_s`."""
        if self.arrival(moment=moment, deadline_s=deadline_s) == 1.0:
            return np.zeros(reports, dtype=np.uint8)
        fate = np.where(self.latency.draw(reports, rng=rng) > deadline_s, Fate.LATE, Fate.COUNTED)
        fate[rng.random(reports) < self.loss(moment)] = Fate.LOST
        return fate.astype(np.uint8)

    def arrival(self, *, moment: int, deadline_s: float) -> float:
        """Return the probability that a report sent at `moment` is counted."""
        return (1.0 - self.loss(moment)) * (1.0 - self.latency.exceeds(deadline_s))

    def split_missing(
        self, missing: int, *, moment: int, deadline_s: float, rng: np.random.Generator
    ) -> tuple[int, int]:
        """Divide reports known not to be counted into (late, lost), by their law."""
        lost = self.loss(moment)
        not_counted = 1.0 - self.arrival(moment=moment, deadline_s=deadline_s)
        of_them_lost = int(rng.binomial(missing, min(1.0, lost / not_counted))) if missing else 0
        return missing - of_them_lost, of_them_lost
