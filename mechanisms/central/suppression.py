"""Suppression of counts below k, and k-anonymity by sampling followed by suppression (LQS)."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.central.release import check_held
from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.intervals import BinomialInversion, invert_binomial
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_counts, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above, mass_at, window
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.released import released_differences_claim
from mechanisms.privacy.subsampling import strongly_safe_claim
from mechanisms.privacy.view import Adjacency, ReleasedDifferences

Tuple = TypeVar("Tuple")
Group = TypeVar("Group", bound=Hashable)

# Most elements of the table of masses that is computed at once.
CHUNK = 4_000_000


def apply(mapping: Callable[[Tuple], Group], tuples: Iterable[Tuple], k: int) -> dict[Group, int]:
    """Return LQS's Apply(g, D, k): every tuple mapped by g, and every value seen fewer than k times dropped.

    The paper's listing (sec 3.2) collects S ← S ∪ g(t) and then counts how often s appears in S. S must be a multiset,
    because in a set nothing appears twice.

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
        If k is not an integer of at least 1.
    """
    k = check_integer("k", k, at_least=1)
    seen = Counter(mapping(each) for each in tuples)
    return {group: count for group, count in seen.items() if count >= k}


def suppress(counts: ArrayLike, k: int) -> Integers:
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


def kept_errors(counts: Integers, k: int, sampling: float) -> tuple[Floats, Floats]:
    """Return E[X − n] and E[(X − n)²] of X = D/β where D ≥ k, else 0, with D ~ Bin(n, β): exactly, by sums of k terms.

    They are −Σ_{j<k} P[D = j](j/β) and n(1 − β)/β + Σ_{j<k} P[D = j](j/β)(2n − j/β), without a term n² that loses the
    digits of large n.

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
    bias, square : (groups,) float64
    """
    check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    distinct, place = np.unique(np.asarray(counts, dtype=np.float64), return_inverse=True)
    lost_mean, lost_square = np.zeros(len(distinct)), np.zeros(len(distinct))
    # Fewer than k are never published. Beyond the windows of the least and the greatest count, which hold all but 1e-30
    # of the mass, the sums have no terms.
    published = np.flatnonzero(distinct >= k)
    if len(published):
        start, masses = window(int(distinct[-1]), beta)
        first, end = min(window(int(distinct[published[0]]), beta)[0], k), min(start + len(masses), k)
        j = np.arange(first, end, dtype=np.float64)
        for chunk in np.array_split(published, -(-len(published) * len(j) // CHUNK) or 1):
            masses = mass_at(j[None, :], distinct[chunk, None], beta)
            lost_mean[chunk] = masses @ (j / beta)
            lost_square[chunk] = masses @ (j / beta) ** 2
    n, kept = distinct, distinct >= k
    bias = np.where(kept, -np.minimum(lost_mean, n), -n)
    square = np.where(kept, np.maximum(n * (1.0 - beta) / beta + (2.0 * n * lost_mean - lost_square), 0.0), n * n)
    return bias[place], square[place]


def largest_step(k: int, sampling: float) -> float:
    """Return the greatest increase of E[X] of `kept_errors` by one more device: the sensitivity of E[X].

    With D' ~ Bin(m, β) sampled of the m others, one more device is sampled with probability β. It adds 1/β to X if
    D' ≥ k, and k/β if D' = k − 1. So

        E[X | m + 1] − E[X | m] = P[D' ≥ k] + k·P[D' = k − 1] =: h(m),   m ≥ 0, never negative.

    h is greatest at m = ⌈k/β⌉ − 2: h(m + 1) − h(m) = βP[Bin(m) = k−1] + k(P[Bin(m+1) = k−1] − P[Bin(m) = k−1]),
    and with P[Bin(m+1) = k−1]/P[Bin(m) = k−1] = (m+1)(1−β)/(m+2−k) that has the sign of (k − 1)(k − β(m + 2)).
    For k = 1 it is 1 for every m.
    """
    k = check_integer("k", k, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    peak = int(np.ceil(k / beta)) - 2
    # One more m on either side, because the peak may be rounded.
    m = np.maximum(np.arange(peak - 1, peak + 2), k - 1)
    return float((mass_above(k - 1, m, beta) + k * mass_at(k - 1, m, beta)).max())


# Binomial masses summed for the error of a suppressed cell, and the fewest counts for which the error is computed.
MASSES = 2_000_000
LEAST_POINTS = 256


@dataclass(frozen=True, kw_only=True)
class SampleThenSuppress:
    """LQS's strongly safe k-anonymization of the grid of cells, after sampling: D ~ Bin(Y, β), published if D ≥ k.

    The map g assigns a device to its cell and was fixed without looking at any device (definition 5). D/β is published
    where D ≥ k. Elsewhere nothing is published, which counts as 0. With Sampling Privacy the devices sample themselves,
    with β = π_s, and D is the difference of the two rounds: `publish_sampled`.

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
        object.__setattr__(self, "k", check_integer("k", self.k, at_least=1))
        object.__setattr__(self, "sampling", check_probability("sampling", self.sampling, above_zero=True))

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Sample the devices held, (cells,) int64, and publish the cells with at least k in the sample."""
        return self.publish_sampled(rng.binomial(check_held(counts), self.sampling))

    def publish_sampled(self, sampled: Integers, *, rng: np.random.Generator | None = None) -> Estimate:  # noqa: ARG002 - releases with noise draw it
        """Publish the cells with at least k of the devices that are already sampled; nothing is drawn.

        Parameters
        ----------
        sampled : (cells,) int64
            D, devices sampled in each cell; a negative one, which no honest round gives, is suppressed.
        rng : numpy.random.Generator, optional
            Not used: releases with noise draw it.
        """
        array = np.asarray(sampled)
        table = suppress(check_counts("sampled", array, (array.size,)), self.k)
        count = table / self.sampling
        kept = table > 0
        # Suppression is the lowest output: any number of sampled devices up to k − 1.
        invert = BinomialInversion(table, np.where(kept, table, self.k - 1), self.sampling)
        error = np.where(kept, self.std_error(np.rint(count).astype(np.int64)), self._suppressed_error())
        return Estimate(count, error, *invert(), "binomial inversion", invert)

    def std_error(self, true_counts: Integers) -> Floats:
        """Return the exact root mean square error at these (cells,) int64 counts, the bias of suppression included.

        E[(X − Y)²] by `kept_errors`; a cell of fewer than k is never published and its error is Y. Without
        suppression its square is Y(1 − β)/β, Sampling Privacy's constant error.
        """
        held = check_held(true_counts, field="true_counts")
        _, square = kept_errors(held, self.k, self.sampling)
        return np.sqrt(square)

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim about one device: δ is exact for this crowd; for any crowd exact or, for a move, a bound.

        For one release δ(ε) is exact, and no ε is finite. For more releases, each drawn anew, it is a bound.
        `theorem_5` gives the paper's bound of the worst crowd, for comparison.

        Parameters
        ----------
        crowd : int or None
            Devices in the cell, the device in question included; for a move in each of the two cells. None for any
            crowd.
        queries : int
            Releases, each of a fresh sample. Two releases of one sample are not covered.
        adjacency : {"enter_leave", "move"}
            The change of one device that the claim hides.
        """
        view = ReleasedDifferences(crowd=crowd, k=self.k, queries=queries, adjacency=adjacency)
        return released_differences_claim(view, self.sampling)

    def theorem_5(self, *, queries: int = 1) -> Claim:
        """Return the claim of LQS theorem 5, for any crowd: an upper bound of `claim(crowd=None)`."""
        return strongly_safe_claim(ReleasedDifferences(k=self.k, queries=queries), self.sampling)

    def _suppressed_error(self) -> float:
        """Return the greatest error of the counts up to the upper end of a suppressed cell's interval."""
        most = int(invert_binomial(np.array([self.k - 1]), self.sampling)[1][0])
        # Below k the error is the count. From there on every count, or as many evenly spaced as keep the sums short.
        points = min(most - self.k + 2, max(LEAST_POINTS, MASSES // self.k))
        counts = np.rint(np.linspace(self.k - 1, most, points)).astype(np.int64)
        return float(self.std_error(counts).max())
