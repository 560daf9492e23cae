"""Suppression of counts below k, and k-anonymity by sampling first and suppressing then (LQS)."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.central.release import check_held
from mechanisms.local.common.intervals import invert_binomial
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_counts, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above, mass_at
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.released import released_differences_claim
from mechanisms.privacy.suppression import strongly_safe_claim
from mechanisms.privacy.view import ReleasedDifferences

Tuple = TypeVar("Tuple")
Group = TypeVar("Group", bound=Hashable)

# Elements of the table of masses that is made at once.
CHUNK = 4_000_000


def apply(mapping: Callable[[Tuple], Group], tuples: Iterable[Tuple], k: int) -> dict[Group, int]:
    """Return LQS's Apply(g, D, k): every tuple mapped by g, and every value seen fewer than k times dropped.

    The paper's listing (sec 3.2) gathers S ← S ∪ g(t) and then asks how often s appears in S; S is a multiset, or
    nothing would ever appear twice.

    Parameters
    ----------
    mapping : callable
        g. Strongly safe (definition 5) if it was chosen without looking at the tuples.
    tuples : iterable
        D; for crowdveil, devices or their cells.
    k : int
        At least 1.

    Returns
    -------
    dict
        Kept values and how often each was seen, in order of first appearance.

    Raises
    ------
    ParameterError
        If k is no integer of at least 1.
    """
    k = check_integer("k", k, at_least=1)
    seen = Counter(mapping(one) for one in tuples)
    return {group: count for group, count in seen.items() if count >= k}


def suppress(counts: ArrayLike, k: int) -> NDArray[np.int64]:
    """Return counts with those below k set to 0: Apply of a table that has been counted already.

    Parameters
    ----------
    counts : (groups,) int
        Devices by group; negative ones (forged differences) are below k like others.
    k : int
        At least 1.
    """
    k = check_integer("k", k, at_least=1)
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError("counts", "must be a vector of integers", (str(array.dtype), array.shape))
    table = array.astype(np.int64)
    return np.where(table >= k, table, 0)


def kept_moments(counts: NDArray[np.int64], k: int, sampling: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E[X] and E[X²] of X = D/β where D ≥ k, else 0, with D ~ Bin(n, β): exactly, by sums of k terms.

    What is missing from the moments of D/β, n and n² + n(1 − β)/β, is what is suppressed: Σ_{j<k} P[D = j](j/β)
    and Σ_{j<k} P[D = j](j/β)².

    Parameters
    ----------
    counts : (groups,) int64
        n, none negative.
    k : int
        Suppressed below it.
    sampling : float
        β, in (0, 1].

    Returns
    -------
    mean, square : (groups,) float64
    """
    distinct, place, lost_mean, lost_square = _lost_moments(counts, k, sampling)
    n, beta = distinct.astype(np.float64), float(sampling)
    kept = n >= k  # fewer are never published, and no rounding may say otherwise
    mean = np.where(kept, np.maximum(n - lost_mean, 0.0), 0.0)
    square = np.where(kept, np.maximum(n * n + n * (1.0 - beta) / beta - lost_square, 0.0), 0.0)
    return mean[place], square[place]


def kept_errors(counts: NDArray[np.int64], k: int, sampling: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return E[X − n] and E[(X − n)²] of the X of `kept_moments`, without the n² in which a large n's error drowns.

    They are −Σ_{j<k} P[D = j](j/β) and n(1 − β)/β + Σ_{j<k} P[D = j](j/β)(2n − j/β).

    Parameters
    ----------
    counts, k, sampling
        As of `kept_moments`.

    Returns
    -------
    bias, square : (groups,) float64
    """
    distinct, place, lost_mean, lost_square = _lost_moments(counts, k, sampling)
    n, beta = distinct.astype(np.float64), float(sampling)
    kept = n >= k
    bias = np.where(kept, -np.minimum(lost_mean, n), -n)
    square = np.where(kept, np.maximum(n * (1.0 - beta) / beta + (2.0 * n * lost_mean - lost_square), 0.0), n * n)
    return bias[place], square[place]


def _lost_moments(
    counts: NDArray[np.int64], k: int, sampling: float
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct counts, each group's place among them, and what suppression takes from E[D/β], E[(D/β)²]."""
    check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    distinct, place = np.unique(np.asarray(counts, dtype=np.int64), return_inverse=True)
    lost_mean, lost_square = np.zeros(len(distinct)), np.zeros(len(distinct))
    j = np.arange(k, dtype=np.float64)
    rows = max(CHUNK // k, 1)
    for start in range(0, len(distinct), rows):
        chunk = slice(start, start + rows)
        masses = mass_at(j[None, :], distinct[chunk, None].astype(np.float64), beta)
        lost_mean[chunk] = masses @ (j / beta)
        lost_square[chunk] = masses @ (j / beta) ** 2
    return distinct, place, lost_mean, lost_square


def largest_step(k: int, sampling: float) -> float:
    """Return the most that E[X] of `kept_moments` grows by one more device: the sensitivity of what is kept.

    With D' ~ Bin(m, β) of the m others and one more, kept with probability β if D' ≥ k already, and bringing k
    at once if D' = k − 1,

        E[X | m + 1] − E[X | m] = P[D' ≥ k] + k·P[D' = k − 1] =: h(m),   m ≥ 0, never negative.

    h is greatest at m = ⌈k/β⌉ − 2: h(m + 1) − h(m) = βP[Bin(m) = k−1] + k(P[Bin(m+1) = k−1] − P[Bin(m) = k−1]),
    and with P[Bin(m+1) = k−1]/P[Bin(m) = k−1] = (m+1)(1−β)/(m+2−k) that has the sign of (k − 1)(k − β(m + 2)).
    For k = 1 it is 1 throughout.
    """
    k = check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    peak = int(np.ceil(k / beta)) - 2
    # One more on either side, for the rounding of the peak.
    m = np.maximum(np.arange(peak - 1, peak + 2), k - 1)
    return float((mass_above(k - 1, m, beta) + k * mass_at(k - 1, m, beta)).max())


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
