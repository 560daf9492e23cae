"""Exact δ(ε) of finite report distributions: the hockey-stick divergence."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_epsilon

Distribution: TypeAlias = NDArray[np.float64]
TOLERANCE = 1e-9


def check_distribution(field: str, masses: ArrayLike) -> Distribution:
    """Return masses as float64 whose last axis is a distribution: not negative, summing to 1 within 1e-9."""
    array = np.asarray(masses, dtype=np.float64)
    if array.ndim < 1 or array.size == 0:
        raise ParameterError(field, "must hold at least one output", array.shape)
    if not np.isfinite(array).all() or array.min() < 0:
        raise ParameterError(field, "must hold probabilities, none negative or NaN", array.min())
    sums = array.sum(axis=-1)
    if np.abs(sums - 1.0).max() > TOLERANCE:
        raise ParameterError(field, "must sum to 1 within 1e-9", float(sums.flat[np.abs(sums - 1.0).argmax()]))
    return array


def hockey_stick(p: ArrayLike, q: ArrayLike, *, epsilon: float) -> float:
    """Return Σ max(p − e^ε q, 0) over outputs: the least δ for telling P from Q, in this direction only.

    Parameters
    ----------
    p, q : (outputs,) float64
        Two distributions over the same outputs.
    epsilon : float
        At least 0; infinity gives the mass of P where Q has none.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If either is no distribution, or they differ in length.
    """
    p, q = check_distribution("p", p), check_distribution("q", q)
    if p.shape != q.shape or p.ndim != 1:
        raise ParameterError("q", f"must have the outputs of p, shape {p.shape}", q.shape)
    factor = math.exp(min(check_epsilon(epsilon), 709.0))
    return (
        math.fsum(np.maximum(np.where(q > 0, p - factor * q, p), 0.0)) if epsilon < math.inf else math.fsum(p[q == 0])
    )


def pair_delta(p: ArrayLike, q: ArrayLike, *, epsilon: float) -> float:
    """Return the larger hockey stick of the two directions of a pair."""
    return max(hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon))


def pair_epsilon(p: ArrayLike, q: ArrayLike) -> float:
    """Return the least ε at δ = 0 for a pair: the greatest |ln(p/q)|, infinite where only one can happen."""
    p, q = check_distribution("p", p), check_distribution("q", q)
    if ((p > 0) != (q > 0)).any():
        return math.inf
    both = p > 0
    return float(np.abs(np.log(p[both]) - np.log(q[both])).max())


def matrix_delta(matrix: ArrayLike, *, epsilon: float) -> float:
    """Return the greatest δ over all ordered pairs of truths.

    Parameters
    ----------
    matrix : (truths, outputs) float64
        Row t is the distribution of the report of a device whose truth is t.
    epsilon : float
        At least 0.
    """
    rows = _check_matrix(matrix)
    return max(
        (hockey_stick(p, q, epsilon=epsilon) for i, p in enumerate(rows) for j, q in enumerate(rows) if i != j),
        default=0.0,
    )


def matrix_epsilon(matrix: ArrayLike) -> float:
    """Return the least ε at δ = 0 over all pairs of truths of a (truths, outputs) matrix."""
    rows = _check_matrix(matrix)
    return max((pair_epsilon(p, q) for i, p in enumerate(rows) for q in rows[:i]), default=0.0)


def _check_matrix(matrix: ArrayLike) -> Distribution:
    """Return rows of distributions."""
    rows = check_distribution("matrix", matrix)
    if rows.ndim != 2:
        raise ParameterError("matrix", "must be (truths, outputs)", rows.shape)
    return rows
