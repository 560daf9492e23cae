"""A one-hot vector under shares of Laplace noise: the truth's entry is 1 too large for the noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.evidence import check_vectors
from mechanisms.inference.expected_best import LARGEST_LEVELS, expected_best_alike
from mechanisms.inference.report_law import Logs
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.parts.sparse_vectors import SparseVectors
from mechanisms.privacy.noise_share import PartialNoise

# Entries beyond which the ratio of neighbours is taken from its limit, α·(k/(k − 1))^(r − 1), exact to 1/k².
TABLED = 4_096
# Mass of the noise's tails that is left out where success is summed.
LEFT_OUT = 1e-18


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """Entry v of a vector is a noise of law f, or 1 and that noise where v is the truth.

    Parameters
    ----------
    cells : int
        V.
    noise : PartialNoise
        f: of one device, so at most whole.
    """

    cells: int
    noise: PartialNoise

    @classmethod
    def of_shares(cls, mechanism: DistributedLaplace) -> "NoiseLaw":
        """Return the law of one device's vector."""
        return cls(mechanism.cells, PartialNoise(mechanism.epsilon / mechanism.sensitivity, 1.0 / mechanism.devices))

    def log_ratio(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ln f(x − 1)/f(x) of entries x: positive for x ≥ 1, and minus that of 1 − x elsewhere."""
        away = np.where(entries >= 1, entries, 1 - entries)
        law = self.noise.masses(TABLED + 1)[0]
        usable = int(np.count_nonzero(law > 1e-290))
        table = np.log(law[: usable - 1]) - np.log(law[1:usable])
        near = table[np.minimum(away, len(table)) - 1]
        limit = self.noise.decay + (1.0 - self.noise.share) * -np.log1p(-1.0 / np.maximum(away, 2))
        return np.where(entries >= 1, 1.0, -1.0) * np.where(away <= len(table), near, limit)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ln f(x_t − 1)/f(x_t) for a truth t in a cell, 0 outside, (n, V + 1)."""
        vectors = reports[0]
        if isinstance(vectors, SparseVectors):
            vectors = vectors.to_dense()
        entries = check_vectors(np.asarray(vectors), (self.cells,)).astype(np.int64)
        logs = np.zeros((len(entries), self.cells + 1))
        logs[:, 1:] = self.log_ratio(entries)
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the success from one vector: the best of independent evidence, tails of 1e-18 left out.

        None for several queries, or for noise so wide that the tails are far.
        """
        law, _ = self.noise.masses(TABLED)
        reach = int(np.count_nonzero(law > LEFT_OUT))
        if queries > 1 or reach >= TABLED or self.cells * 2 * reach > LARGEST_LEVELS:
            return None
        entries = np.arange(1 - reach, reach)
        masses = law[np.abs(entries)]
        found = expected_best_alike(prior, self.log_ratio(entries), np.log(masses / masses.sum()))
        return None if found is None else min(found, 1.0)
