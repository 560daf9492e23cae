"""An estimate as an affine map of the counts, found by asking, so that what each device adds can be seen."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mechanisms.checks.trial import Trial

# Queries on which the map is tried, beside those from which it is found.
TRIED = 24
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class AffineEstimator:
    """Ŷ = A·counts + b for given numbers asked and counted.

    Counts obey relations (a round's outputs sum to its devices), so A and b are not unique; on counts that devices
    can make, and on what one device adds to them, they are.

    Parameters
    ----------
    matrix : (rounds · tally size, cells) float64
    constant : (cells,) float64
    """

    matrix: NDArray[np.float64]
    constant: NDArray[np.float64]

    @classmethod
    def fit(cls, trial: "Trial", counted: tuple[int, ...], asked: tuple[int, ...]) -> "AffineEstimator | None":
        """Find the map from the estimates of random crowds, try it on others, and return it if it is right."""
        size = trial.rounds * int(np.prod(trial.shape))
        rng = trial.generator("affine")
        queries = 2 * size + 2 * TRIED
        truth = rng.integers(0, trial.cells + 1, max(asked) * queries).astype(np.int32)
        # A few kinds of crowd, for a map found on mixtures only may be off at the edges.
        truth[: max(asked) * TRIED] = np.repeat(rng.integers(0, trial.cells + 1, TRIED), max(asked))
        vectors = trial.vectors(truth, rng=rng).reshape(queries, max(asked), trial.rounds, -1)
        rows = np.stack([vectors[:, :heard, r].sum(axis=1) for r, heard in enumerate(counted)], axis=1)
        rows = rows[rng.permutation(queries)]
        shape = (trial.rounds, *trial.shape)
        counts = rows.reshape(queries, -1).astype(np.float64)
        estimates = np.stack(
            [trial.mechanism.estimate(row.reshape(shape), counted=counted, asked=asked).count for row in rows]
        )
        design = np.column_stack([counts, np.ones(queries)])
        solution = np.linalg.lstsq(design[TRIED:], estimates[TRIED:], rcond=None)[0]
        miss = np.abs(design @ solution - estimates).max()
        if not miss <= TOLERANCE * (1.0 + np.abs(estimates).max()):
            return None
        return cls(solution[:-1], solution[-1])

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the estimates of (n, rounds, *tally_shape) counts, (n, cells)."""
        estimates: NDArray[np.float64] = counts.reshape(len(counts), -1) @ self.matrix + self.constant
        return estimates

    def contribution(self, vectors: NDArray[np.int64], *, devices: int) -> NDArray[np.float64]:
        """Return what each of (n, rounds, *tally_shape) reports adds, (n, cells), a crowd's b shared out equally."""
        added: NDArray[np.float64] = vectors.reshape(len(vectors), -1) @ self.matrix + self.constant / devices
        return added
