"""What linked reports reveal about one place of a device that moves by a known Markov chain.

The reports of T queries reveal the places of all queries with the sum of the queries' ε, whatever is known about
movement. Who knows how devices move learns about the place of one query from the reports of all others too: at most
that sum, and at least the ε of one query. Y. Cao, M. Yoshikawa, Y. Xiao and L. Xiong, "Quantifying Differential
Privacy under Temporal Correlations" (ICDE 2017), compute this loss from query to query:

loss of a query = its own ε + L(loss of the query before), L(α) = max log (q(S)(e^α − 1) + 1) / (d(S)(e^α − 1) + 1),

over all sets S of places, and all pairs of rows q, d of the matrix P(place before | place now). With the matrices
P(place after | place now), and the queries in reverse, it is what later reports reveal.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.compiled import Floats, Integers, compiled

LARGEST = 690.0
"""Losses from here on are infinite: e^ε nearly overflows."""


def backward_moves(marginals: Floats, moves: Sequence[Any]) -> list[Any]:
    """Return the probabilities of the place before given the place now, from probabilities of the place now given it.

    Parameters
    ----------
    marginals : (T, places) float64
        Probability of each place at each query.
    moves : T − 1 of (places, places) scipy.sparse.csr_array of float64
        By query from the second: rows are the places of the query before, columns the places of this query.

    Returns
    -------
    T − 1 of (places, places) scipy.sparse.csr_array
        Rows are the places of this query; a row is empty if its place is impossible.
    """
    backward = []
    for before, now, matrix in zip(marginals[:-1], marginals[1:], moves, strict=True):
        scale = np.divide(1.0, now, out=np.zeros_like(now), where=now > 0.0)
        backward.append((matrix.T * before).multiply(scale[:, np.newaxis]).tocsr())
    return backward


def losses(matrices: Sequence[Any], epsilons: Sequence[float]) -> Floats:
    """Return what the reports of the first 1, 2, … T queries reveal about the place of the last one, (T,) float64.

    Parameters
    ----------
    matrices : T − 1 of (places, places) scipy.sparse.csr_array of float64
        By query from the second: the probabilities of the place before, in columns, given the place now, in rows. To
        get what later reports reveal: both sequences, and the result, in reverse, with the places after as columns.
    epsilons : sequence of float
        ε of the reports of each of the T queries; infinite if there is none.

    Returns
    -------
    ndarray
        ε of the place of each query.
    """
    found = [float(epsilons[0])]
    for matrix, epsilon in zip(matrices, epsilons[1:], strict=True):
        possible = matrix[matrix.sum(axis=1) > 0.0]
        growth = math.expm1(min(found[-1], LARGEST))
        carried = math.log(_largest_ratio(possible.indptr, possible.indices, possible.data, possible.toarray(), growth))
        found.append(epsilon + (carried if carried < LARGEST - 1.0 else math.inf))
    return np.array(found)


@compiled
def _largest_ratio(ends: Integers, columns: Integers, chances: Floats, dense: Floats, growth: float) -> float:
    """Return the largest ratio over all pairs of rows and all sets of places.

    For each pair Dinkelbach's method is used. The set of places with q > ratio · d is the best one for the difference
    "numerator − ratio · denominator"; its own ratio is the next one, until the ratio does not grow.
    """
    largest = 1.0
    for first in range(len(dense)):
        for second in range(len(dense)):
            ratio, better = 0.0, 1.0
            while better > ratio:
                ratio, numerator, denominator = better, 1.0, 1.0
                for entry in range(ends[first], ends[first + 1]):
                    other = dense[second, columns[entry]]
                    if chances[entry] > ratio * other:
                        numerator += chances[entry] * growth
                        denominator += other * growth
                better = numerator / denominator
            largest = max(largest, ratio)
    return largest
