"""Suppression: values seen fewer than k times are dropped, and what that does to an estimate."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above, mass_at

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
