"""Sample, then suppress: each device taken with probability β, and cells with fewer than k taken not published."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.release import check_held
from mechanisms.central.suppression import kept_errors, suppress
from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.intervals import invert_binomial
from mechanisms.parameter import check_counts, check_integer, check_probability
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.released_claims import released_differences_claim
from mechanisms.privacy.strongly_safe import strongly_safe_claim
from mechanisms.privacy.view import ReleasedDifferences

# Binomial masses summed for the error of a suppressed cell, and the fewest counts it is looked for among.
MASSES = 2_000_000
LEAST_POINTS = 256


@dataclass(frozen=True, kw_only=True)
class SampleThenSuppress:
    """LQS's strongly safe k-anonymization of the grid of cells, after sampling: D ~ Bin(Y, β), published from k on.

    The map g sends a device to its cell and was fixed without looking at any (definition 5); published is D/β where
    D ≥ k, and nothing, counted as 0, elsewhere. With Sampling Privacy the devices sampled themselves, with β =
    π_s, and D is the difference of the two rounds: `publish_sampled`.

    Parameters
    ----------
    k : int
        At least 1, which suppresses nothing but empty cells.
    sampling : float
        β, in (0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    k: int
    sampling: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "k", check_integer("k", self.k, at_least=1))
        object.__setattr__(self, "sampling", check_probability("sampling", self.sampling, above_zero=True))

    def publish(self, counts: NDArray[np.int64], *, rng: np.random.Generator) -> Estimate:
        """Sample the devices held, (cells,) int64, and publish the cells with at least k in the sample."""
        return self.publish_sampled(rng.binomial(check_held(counts), self.sampling))

    def publish_sampled(self, sampled: NDArray[np.int64]) -> Estimate:
        """Publish what of the devices sampled already may be: draws nothing.

        Parameters
        ----------
        sampled : (cells,) int64
            D, devices sampled in each cell; a negative one, which no honest round makes, is suppressed.
        """
        array = np.asarray(sampled)
        table = suppress(check_counts("sampled", array, (array.size,)), self.k)
        count = table / self.sampling
        # A suppressed cell is the lowest output there is; the same two tails, of k − 1, cover it.
        lower, upper = invert_binomial(np.where(table > 0, table, self.k - 1), self.sampling)
        kept = table > 0
        error = np.where(kept, self.std_error(np.rint(count).astype(np.int64)), self._suppressed_error())
        return Estimate(
            count,
            error,
            np.where(kept, lower, 0).astype(np.float64),
            upper.astype(np.float64),
            "binomial inversion",
        )

    def std_error(self, true_counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the exact root mean square error at these (cells,) int64 counts, the bias of suppression included.

        E[(X − Y)²] by `kept_errors`; a cell of fewer than k is never published and its error is Y. Without
        suppression its square is Y(1 − β)/β, Sampling Privacy's constant error.
        """
        held = check_held(true_counts, field="true_counts")
        _, square = kept_errors(held, self.k, self.sampling)
        error: NDArray[np.float64] = np.sqrt(square)
        return error

    def claim(self, *, crowd: int | None, queries: int = 1) -> PrivacyClaim:
        """Return what is proved about one device there or outside: δ exact, for this crowd or the worst of all.

        Of one release δ(ε) is exact, and no ε is finite; over more, drawn anew each time, it is a bound.
        `theorem_5` gives the paper's bound of the worst crowd, for comparison.

        Parameters
        ----------
        crowd : int or None
            Devices in the cell with the one in question; None: whatever the crowd.
        queries : int
            Releases, each of a fresh sample. Two releases of one sample are not covered.
        """
        return released_differences_claim(ReleasedDifferences(crowd=crowd, k=self.k, queries=queries), self.sampling)

    def theorem_5(self, *, queries: int = 1) -> PrivacyClaim:
        """Return what LQS theorem 5 says, whatever the crowd: a bound from above of what `claim(crowd=None)` is."""
        return strongly_safe_claim(ReleasedDifferences(k=self.k, queries=queries), self.sampling)

    def _suppressed_error(self) -> float:
        """Return the greatest error that any count which may well be suppressed would have."""
        most = int(invert_binomial(np.array([self.k - 1]), self.sampling)[1][0])
        # Below k the error is the count. From there on every count, or so many evenly that their sums stay short.
        points = min(most - self.k + 2, max(LEAST_POINTS, MASSES // self.k))
        counts = np.rint(np.linspace(self.k - 1, most, points)).astype(np.int64)
        return float(self.std_error(counts).max())
