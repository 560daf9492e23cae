"""Scores that mobility research uses: estimated and true vehicles over the cells as distributions and as ranks."""

import math
from typing import NamedTuple

import numpy as np

from simulator.arrays import FloatArray, IntArray

TOP = 10
"""Number of the busiest cells that `top_n_overlap` looks for, or all cells if there are fewer."""

_ALL_PAIRS = 1_000
_STRIPS = 16
_EXACT = _STRIPS**2
"""Largest number of cells for which the earth mover's distance is exact, and the number of groups of more cells."""


class MobilityScores(NamedTuple):
    """Scores of one query, or their means over queries; NaN where a score is not defined.

    Attributes
    ----------
    earth_movers_m
        Earth mover's distance of the two distributions, in metres.
    jensen_shannon
        Jensen-Shannon divergence of the two distributions, 0…1 bit (Lin, Divergence measures based on the Shannon
        entropy, 1991, eq. 3.6 with equal weights).
    kendall_tau
        Kendall's τ-b of estimate and truth over the cells, -1…1.
    top_n_overlap
        Share of the `TOP` busiest cells among as many highest estimates, as `share_found` counts them.
    """

    earth_movers_m: float
    jensen_shannon: float
    kendall_tau: float
    top_n_overlap: float


def mobility_scores(truth: IntArray | FloatArray, estimate: FloatArray, centroids: FloatArray) -> MobilityScores:
    """Score the estimates of one query.

    Parameters
    ----------
    truth
        Vehicles in each cell, (V,).
    estimate
        Their estimates, (V,). For the two scores of distributions those below zero count as zero, and both arrays are
        divided by their sums.
    centroids
        Centroids of the cells in the city's projected coordinate system, (V, 2), in metres.

    Returns
    -------
    MobilityScores
        The scores of distributions are NaN if either sum is zero, the distance also if a centroid is NaN; τ is NaN if
        all truths or all estimates are equal.
    """
    from scipy.special import rel_entr  # noqa: PLC0415  slow to import

    distance = divergence = math.nan
    kept = np.maximum(estimate, 0.0)
    if kept.any() and truth.any():
        p, q = kept / kept.sum(), truth / truth.sum()
        middle = (p + q) / 2.0
        divergence = float(rel_entr(p, middle).sum() + rel_entr(q, middle).sum()) / math.log(4.0)
        distance = earth_movers_distance(p, q, centroids)
    top_overlap = share_found(truth, estimate, min(TOP, len(truth)))
    return MobilityScores(distance, divergence, kendall_tau(truth, estimate), top_overlap)


def kendall_tau(truth: IntArray | FloatArray, estimate: FloatArray) -> float:
    """Return Kendall's τ-b of two arrays of the same length; NaN if all values of either are equal.

    It compares all pairs of up to 1,000 cells by itself: importing `scipy.stats` takes longer than a small run.
    """
    if len(truth) > _ALL_PAIRS:
        from scipy.stats import kendalltau  # noqa: PLC0415  slow to import

        return float(kendalltau(estimate, truth).statistic)
    true_order, estimated_order = (np.sign(values[:, None] - values[None, :]) for values in (truth, estimate))
    unequal = math.sqrt(float(np.count_nonzero(true_order)) * float(np.count_nonzero(estimated_order)))
    return float((true_order * estimated_order).sum()) / unequal if unequal else math.nan


def share_found(truth: IntArray | FloatArray, estimate: FloatArray, n: int) -> float:
    """Return the share of the n busiest cells found among the n highest estimates.

    Of cells tied in the truth at the threshold, any counts as found; of cells tied in the estimate, the first are
    taken.
    """
    threshold = np.partition(truth, len(truth) - n)[len(truth) - n]
    chosen = np.argsort(-estimate, kind="stable")[:n]
    return float(np.count_nonzero(truth[chosen] >= threshold) / n)


def earth_movers_distance(p: FloatArray, q: FloatArray, points: FloatArray) -> float:
    """Return the earth mover's distance between two distributions over points of a plane.

    Mass that both have at a point stays there, which is optimal for a metric. The distance is exact if the two differ
    at no more than 256 points. Otherwise those points are merged into 256 groups, 16 strips of equally many points by
    x, each cut into 16 parts by y, and the mass of a group is put at its centroid. By the triangle inequality the
    result then differs from the exact distance by at most Σ |p - q| · (distance of the point to the centroid of its
    group), the sum over all points: twice the mass that differs times the mean distance that it is moved.

    Parameters
    ----------
    p, q
        Distributions, (n,), each with the sum 1.
    points
        Coordinates, (n, 2).

    Returns
    -------
    float
        The distance, in the unit of the coordinates; NaN if a coordinate is.
    """
    from ot import emd2  # noqa: PLC0415  slow to import

    if np.isnan(points).any():
        return math.nan
    excess = p - q
    differs = np.flatnonzero(excess)
    excess, points = excess[differs], points[differs]
    surplus, lack = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    if len(differs) > _EXACT:
        group, moved = _groups(points), np.abs(excess)
        of_group = np.bincount(group, moved)
        points = np.stack([np.bincount(group, moved * axis) / of_group for axis in points.T], axis=1)
        surplus, lack = np.bincount(group, surplus), np.bincount(group, lack)
    sources, sinks = np.flatnonzero(surplus), np.flatnonzero(lack)
    if not len(sources) or not len(sinks):
        return 0.0
    # Rounding may leave the two sums unlike in the last digits, and the solver wants them equal.
    mass = surplus.sum()
    costs = np.linalg.norm(points[sources, None] - points[None, sinks], axis=2)
    return float(mass * emd2(surplus[sources] / mass, lack[sinks] / lack.sum(), costs, numItermax=10_000_000))


def _groups(points: FloatArray) -> IntArray:
    """Return the group of each point, 0 … 255: strips of equally many points by x, and equal parts of each by y."""
    ranks = np.arange(len(points))
    strip, group = np.empty_like(ranks), np.empty_like(ranks)
    strip[np.argsort(points[:, 0], kind="stable")] = ranks * _STRIPS // len(points)
    group[np.lexsort((points[:, 1], strip))] = ranks * _EXACT // len(points)
    return group
