"""Monte Carlo errors of estimates, for comparison with theory."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mechanisms.local import LocalMechanism

Z = 4.5
"""Half-width of an interval in standard errors: one interval in 150,000 misses, so agreement is not due to the seed."""


def simulate_errors(
    mechanism: "LocalMechanism", true_counts: NDArray[np.int64], *, repeats: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Simulate repeated queries of the same devices.

    Parameters
    ----------
    mechanism
        A mechanism of V cells; its `sample_counts` draws the counts of the devices' answers.
    true_counts : (V + 1,) int64
        Number of devices outside and in each cell.
    repeats
        Number of queries.

    Returns
    -------
    errors : (repeats, V) float64
        Estimate minus truth.
    """
    heard = (int(true_counts.sum()),) * mechanism.rounds
    return np.array(
        [
            mechanism.estimate(mechanism.sample_counts(true_counts, rng=rng), counted=heard, asked=heard).count
            - true_counts[1:]
            for _ in range(repeats)
        ]
    )


def rmse_interval(errors: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the root mean square of errors (n,), and the ends of its interval, `Z` standard errors on each side."""
    squares = errors**2
    mean, spread = float(squares.mean()), float(squares.std(ddof=1)) / math.sqrt(len(squares))
    return math.sqrt(mean), math.sqrt(max(0.0, mean - Z * spread)), math.sqrt(mean + Z * spread)
