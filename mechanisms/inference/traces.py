"""Traces of vehicles: recovered from published counts, compared with true ones, and joined by bits that are kept."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Integers
from mechanisms.parameter import ParameterError

SCORES = ("published_matching", "optimal_matching", "same_start_last_step")
"""The scores of `trace_scores`, in its order."""


def assign(values: Floats) -> tuple[Integers, Integers]:
    """Return the rows and columns of the one-to-one assignment with the greatest sum, (min(shape),) int64 each.

    Sums that differ by rounding alone are ties on every processor: values are compared to nine decimals.
    """
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - half a second, for traces only

    rows, columns = linear_sum_assignment(np.round(values, 9), maximize=True)
    return rows, columns


def recover_traces(counts: ArrayLike, costs: Sequence[Floats]) -> Integers:
    """Recover the traces of vehicles that are present throughout from the number of vehicles in each cell.

    From each step to the next, traces and vehicles counted are joined such that the costs of the moves have the least
    sum (Xu et al., WWW 2017, *Trajectory Recovery From Ash*). The costs say what is known about movement: distances
    between cells, or logarithms of the probabilities of moves, negated.

    Parameters
    ----------
    counts : (steps, cells) int
        The same number of vehicles in each step.
    costs : sequence of (cells, cells) float64
        By step after the first: the finite cost of a move from one cell, in rows, to another.

    Returns
    -------
    (vehicles, steps) int64
        Numbers of cells, from 0. No trace belongs to a vehicle: of vehicles in one cell any may be the trace's.

    Raises
    ------
    ParameterError
        If the steps have different numbers of vehicles.
    """
    seen = np.asarray(counts)
    if len(np.unique(seen.sum(axis=1))) > 1:
        raise ParameterError("counts", "must have the same number of vehicles in each step", seen.sum(axis=1).tolist())
    traces = [np.repeat(np.arange(seen.shape[1]), seen[0])]
    for step, cost in zip(seen[1:], costs, strict=True):
        there = np.repeat(np.arange(len(step)), step)
        traces.append(there[assign(-cost[np.ix_(traces[-1], there)])[1]])
    return np.stack(traces, axis=1)


def trace_scores(true: Integers, traces: Integers) -> dict[str, float]:
    """Return how far recovered traces agree with true ones, by three scores, in the order of `SCORES`.

    Parameters
    ----------
    true : (n, steps) int
        The cells of the vehicles.
    traces : (at least n, steps) int
        The recovered traces.

    Returns
    -------
    dict of str to float
        ``published_matching``: the share of steps in the same cell, where each true trace in turn takes the trace, not
        yet taken, that agrees with it best. So the score uses the truth. ``optimal_matching``: the greatest such share
        of any matching, which uses the truth too. ``same_start_last_step`` uses the first cell alone: the probability
        that a trace drawn from those that start in the vehicle's cell is in its cell in the last step.
    """
    equal = np.zeros((len(true), len(traces)))
    for mine, theirs in zip(true.T, traces.T, strict=True):
        equal += mine[:, np.newaxis] == theirs
    optimal, greedy = equal[assign(equal)].sum() / true.size, 0.0
    for row in equal:
        best = int(row.argmax())
        greedy += row[best]
        equal[:, best] = -1.0
    begun = true[:, :1] == traces[:, 0]
    right = begun & (true[:, -1:] == traces[:, -1])
    last = (right.sum(axis=1) / np.maximum(begun.sum(axis=1), 1)).mean()
    return dict(zip(SCORES, (float(greedy / true.size), float(optimal), float(last)), strict=True))


def null_traces(traces: Integers, *, rng: np.random.Generator) -> dict[str, Integers]:
    """Return recovered traces, and traces that know nothing about movement beside them, (vehicles, steps) each.

    Returns
    -------
    dict of str to array
        "": the traces; "nobody_moves": each stays in its first cell; "random_traces": joined at random.
    """
    still = np.repeat(traces[:, :1], traces.shape[1], axis=1)
    return {"": traces, "nobody_moves": still, "random_traces": rng.permuted(traces, axis=0)}


def same_bits_ratio(before: Floats, after: Floats, *, kept: float, flip: float) -> Floats:
    """Return log P(reported bits | one device) − log P(bits | two devices) of each pair of reports of two queries.

    A device keeps its bits, and flips them anew in each query.
    The bits about a device's own cells are taken for bits about any other cell.

    Parameters
    ----------
    before : (n, bits) float64
        0 or 1, the bits reported in the first query.
    after : (m, bits) float64
        The bits reported in the second.
    kept : float
        Probability that a kept bit is 1.
    flip : float
        Probability that it is reported flipped.

    Returns
    -------
    (n, m) float64
    """
    reports, chance = np.array([[1.0 - flip, flip], [flip, 1.0 - flip]]), np.array([1.0 - kept, kept])
    alone = chance @ reports
    ratios = np.log((chance * reports) @ reports / np.outer(alone, alone))
    first, second = (np.stack([1.0 - bits, bits]) for bits in (before, after))
    return np.asarray(np.einsum("xy,xnb,ymb->nm", ratios, first, second, optimize=True))
