"""Generalised, for devices that sampled themselves: the level is drawn from the sample too."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.generalised import Generalised
from mechanisms.central.release import check_held
from mechanisms.local.estimate import Estimate
from mechanisms.parameter import check_integer
from mechanisms.privacy.claim import PrivacyClaim

# Releases over which the error is averaged.
DRAWS = 64


@dataclass(frozen=True, eq=False)
class GeneralisedSample:
    """What `Generalised.publish_sampled` is as a release: of Sampling Privacy's differences, which are a sample.

    Parameters
    ----------
    whole : Generalised
        Levels, threshold, sampling and ε₁.
    """

    whole: Generalised

    def publish(self, counts: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
        """Sample the devices held, (cells,) int64, as they would themselves, and publish the sample."""
        held = check_held(counts, cells=self.whole.cells)
        return self.publish_sampled(rng.binomial(held, self.whole.sampling), rng=rng)

    def publish_sampled(self, sampled: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
        """Draw a level from the devices sampled, (cells,) int64, and publish them at it."""
        return self.whole.publish_sampled(sampled, rng=rng)

    def std_error(self, true_counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the root mean square error over 64 releases drawn at these (cells,) int64 counts.

        No sum over samples and levels is short here: each sample has its own chances of the levels. The draws are
        always the same, so it is a function of the counts; a cell's error is off by some 10 %.
        """
        held = check_held(true_counts, field="true_counts", cells=self.whole.cells)
        rng = np.random.default_rng(DRAWS)  # a seed like any other
        squared = np.zeros(len(held))
        for _ in range(DRAWS):
            squared += (self.publish(held, rng=rng).count - held) ** 2
        return np.sqrt(squared / DRAWS)

    def claim(self, *, crowd: int | None, queries: int = 1) -> PrivacyClaim:
        """Return what is proved of a level drawn from the sample, whatever the crowd."""
        if crowd is not None:
            check_integer("crowd", crowd, at_least=1)
        return self.whole.claim_sampled(queries=queries)
