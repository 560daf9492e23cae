"""Priors that coalitions have: learned from other vehicles on other days, from a public trip table, or from roads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from simulator.arrays import Cells
from simulator.attacks.guesses import Prior
from simulator.attacks.records import StoredTranscripts, places_of

SMOOTHING = 1.0
ABSENT = -1
"""Where a vehicle is that is not asked; 0 is outside every cell."""


@dataclass(frozen=True, kw_only=True)
class PriorSource:
    """Where the prior of a coalition comes from: the number of targets in each cell, or nothing.

    Attributes
    ----------
    even
        Whether nothing is known: the prior is uniform.
    queries
        The number of first queries of each campaign that are not attacked; if there are any, nor are the vehicles
        `StoredTranscripts.others`.
    """

    even: bool = False
    queries: int = 0

    def of(self, stored: StoredTranscripts, numbers: Sequence[int]) -> Prior | None:
        """Return the prior for the queries of these numbers, ascending; None if it follows from the targets."""
        return Prior.uniform(stored.record.mechanism.cells, tuple(numbers)) if self.even else None


@dataclass(frozen=True, kw_only=True)
class Training(PriorSource):
    """Cells and moves of other people on other days: of the vehicles never attacked, in the queries never attacked.

    Parameters
    ----------
    queries
        N: the first queries of each campaign, from which the prior is learned.
    period
        The number of queries of a day: a query is like those that precede it by whole days. With 1 all are alike.
    """

    period: int = 1

    def of(self, stored: StoredTranscripts, numbers: Sequence[int]) -> Prior:
        """Return the prior of targets that none of these vehicles is; it depends on no target's cells."""
        seen = [query for query in stored.record.queries if query.number_in_campaign <= self.queries]
        # Before the first query no vehicle was asked.
        tracks = np.full((len(stored.others), len(seen) + 1), ABSENT, dtype=np.int32)
        for column, query in enumerate(seen, start=1):
            places = places_of(query.recorded.devices, stored.others)
            tracks[places[places >= 0], column] = query.truth[places >= 0]
        day = np.array([query.number for query in seen])
        alike = [np.flatnonzero(day % self.period == number) for number in range(self.period)]
        moved = [np.stack([tracks[:, of].ravel(), tracks[:, of + 1].ravel()]) for of in alike]
        steps = {number: moved[number % self.period] for number in numbers}
        return learned_prior(steps, stored.record.mechanism.cells)


@dataclass(frozen=True, kw_only=True)
class Driven(PriorSource):
    """Cells and moves of invented vehicles, at any time of day; no vehicle of the run changes them.

    Parameters
    ----------
    cells_after
        What returns the vehicles' cells, (n,) int32, a number of seconds after all of them were met, from the name of
        the campaign and these seconds; `ABSENT` where a vehicle is not on the road any more.
    """

    cells_after: Callable[[str, float], Cells]

    def of(self, stored: StoredTranscripts, numbers: Sequence[int]) -> Prior:
        """Return the prior, from where vehicles are when they are met, and are as much later as the next query is."""
        campaign, moments = next(iter(stored.campaigns)), [stored.query(number).time_s for number in numbers]
        gaps = np.diff(moments, prepend=moments[:1]).tolist()
        moved = {gap: np.stack([self.cells_after(campaign, after_s) for after_s in (0.0, gap)]) for gap in {*gaps}}
        steps = {number: moved[gap] for number, gap in zip(numbers, gaps, strict=True)}
        return learned_prior(steps, stored.record.mechanism.cells)


def learned_prior(steps: Mapping[int, Cells], cells: int) -> Prior:
    """Return the prior that follows from the cells of other vehicles than the targets.

    The first query's probabilities are shares of these vehicles; later ones follow by the moves, so that moves alone
    lead from one to the next. `SMOOTHING` is added to the number of vehicles in each cell, and to the numbers of stays
    and of moves between two cells if one led from one to the other or back.

    Parameters
    ----------
    steps
        By query, ascending: (2, n) int32, the vehicles' cells in the query before it and in this query; `ABSENT` where
        a vehicle is not asked. Queries with the same array have the same moves, which are counted once.
    cells
        V.
    """
    distinct, (first, *later) = {id(moved): moved for moved in steps.values()}, steps
    matrices = {key: _moves(moved, cells + 1) for key, moved in distinct.items()}
    moves = {query: matrices[id(steps[query])] for query in later}
    counts = np.bincount(steps[first][1][steps[first][1] >= 0], minlength=cells + 1) + SMOOTHING
    by_query = {first: counts / counts.sum()}
    for before, query in pairwise(steps):
        by_query[query] = by_query[before] @ moves[query]
    return Prior(by_query, learned=True, moves=moves)


def _moves(moved: Cells, places: int) -> Any:
    """Return the probabilities of the cells of vehicles (columns) by their cells in the query before it (rows)."""
    from scipy.sparse import coo_array, eye_array  # noqa: PLC0415 - slow, and needed by these priors alone

    pairs = moved[:, (moved >= 0).all(axis=0)]
    seen = coo_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(places, places)).tocsr()
    numbers = seen + SMOOTHING * ((seen + seen.T + eye_array(places)) > 0)
    return (numbers / numbers.sum(axis=1)[:, np.newaxis]).tocsr()
