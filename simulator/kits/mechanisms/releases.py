"""Check of claims about what is published of a crowd: counts, differences and shuffled reports."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.view import ADJACENCIES, ReleasedCounts, ReleasedDifferences, Shuffled, View
from simulator.kits.findings import Findings
from simulator.kits.mechanisms.bounds import row_keys
from simulator.kits.mechanisms.claims import History, Keys, Sample, expect_claims_hold, known_claims
from simulator.kits.mechanisms.harness import Harness

Show = Callable[[NDArray[np.int64]], NDArray[np.int64]]
# Devices in the cell, by the number of queries; in thorough checks of one query LARGE_CROWD too.
CROWDS = {1: (1, 8), 2: (1, 3), 3: (2,)}
LARGE_CROWD = 30
# A number of devices counted in all that a view may state.
COUNTED = 6
# Numbers in the encodings of all crowds of a number of queries.
MOST_NUMBERS = 2_000_000


def crowds_of(trial: Harness, queries: int) -> tuple[int, ...]:
    """Return the numbers of devices in the cell for which claims over so many queries are compared."""
    return CROWDS[queries] + ((LARGE_CROWD,) if trial.thorough and queries == 1 else ())


def check_releases_hold(trial: Harness, findings: Findings) -> None:
    """Expect no claim about published counts or shuffled reports of small crowds below what simulated crowds prove.

    Over several queries devices keep their memory; one device moves, or enters or leaves, and the others stay.
    """
    views: list[View] = []
    for queries, adjacency in itertools.product(range(1, trial.queries + 1), ADJACENCIES):
        crowds = crowds_of(trial, queries)
        views += [ReleasedCounts(n, queries, adjacency=adjacency) for n in crowds]
        views.append(ReleasedCounts(2, queries, COUNTED, adjacency=adjacency))
        if trial.rounds == 2:
            views += [ReleasedDifferences(n, None, queries, adjacency=adjacency) for n in crowds]
            views.append(ReleasedDifferences(3, 2, queries, adjacency=adjacency))
        shuffled = itertools.product(range(1, trial.rounds + 1), crowds)
        views += [Shuffled(number, n, queries, adjacency=adjacency) for number, n in shuffled]
    pool = lru_cache(maxsize=1)(partial(_Crowds, trial))
    audits: list[tuple[Any, dict[str, Sample]]] = []
    for view, claim in known_claims(trial, findings, views).items():
        samples: dict[str, Sample] = {}
        # A move between the first and the last cell is one in both directions.
        for cell in (1, trial.cells) if view.queries == 1 and view.adjacency != "move" else (1,):
            name = f"{view!r}, cell {cell}"
            samples[name] = partial(_keys, pool, view, cell)
            if isinstance(view, ReleasedCounts):
                # If noise causes many outcomes, the published count of the cell alone may prove more.
                index = trial.columns.index(cell - 1 if trial.shape[0] == trial.cells else cell)
                samples[f"{name} alone"] = partial(_keys, pool, view, cell, index)
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _keys(pool: Any, view: View, cell: int, index: int | None = None) -> dict[History, Keys]:
    """Return keys of what is published for each history: all of it, or one index of the tallies."""
    seen = pool(view.queries).seen(view, cell)
    return {history: row_keys(rows if index is None else rows[:, :, :, index]) for history, rows in seen}


class _Crowds:
    """Reports of simulated devices over some queries, from which crowds are put together.

    Devices answer independently, so the devices that stay are the same in all views and whatever one device does:
    each comparison has independent crowds in each of two samples, though not between them, which no bound needs.
    """

    def __init__(self, trial: Harness, queries: int) -> None:
        self.trial, self.queries = trial, queries
        self.devices = int(getattr(trial.mechanism, "devices", 0))
        self.largest = max(crowds_of(trial, queries))
        self.everyone = max(self.largest, COUNTED, self.devices)
        crowds = MOST_NUMBERS * (10 if trial.thorough else 1) // (self.everyone * queries * trial.size)
        self.rows = min(trial.devices // 2, max(crowds, 2_000))
        self.single, self.others = cache(self._single), cache(self._others)

    def _single(self, history: History) -> NDArray[np.int64]:
        """Return the reports of one device of each crowd, (rows, queries, rounds, …)."""
        return self.trial.along(history, self.rows, rng=self.trial.generator(f"one device {history}"))

    def _others(self, cell: int) -> NDArray[np.int64]:
        """Return the reports of devices that stay in a cell, (rows, devices, queries, rounds, …)."""
        number = self.everyone if cell == 0 else self.largest
        rng = self.trial.generator(f"others {cell} {self.queries}")
        reports = self.trial.along((cell,) * self.queries, self.rows * number, rng=rng)
        return reports.reshape(self.rows, number, *reports.shape[1:])

    def seen(self, view: Any, cell: int) -> Iterator[tuple[History, NDArray[np.int64]]]:
        """Yield what a view reveals, (rows, queries, …), for each history of one device of the crowd in a cell.

        In each query this device is in the cell or outside every cell; for a move in the cell or in another, which has
        as many devices as the first; if there is one query also outside, and in three queries it stays where it is.
        """
        other = self.trial.cells + 1 - cell if view.adjacency == "move" and self.trial.cells > 1 else 0
        histories = {(place,) * self.queries for place in (cell, other)}
        if self.queries == 2:
            histories |= set(itertools.product((cell, other), repeat=2))
        elif self.queries == 1:
            histories.add((0,))
        show = self._shuffled(view, cell) if isinstance(view, Shuffled) else self._published(view, cell, other)
        for history in sorted(histories):
            yield history, show(self.single(history))

    def _shuffled(self, view: Shuffled, cell: int) -> Show:
        """Return what shows one device's reports among the other devices' reports, in no order."""
        staying = _report_keys(self.others(cell)[:, : view.devices - 1, :, view.round - 1])

        def show(device: NDArray[np.int64]) -> NDArray[np.int64]:
            shown = np.concatenate([_report_keys(device[:, np.newaxis, :, view.round - 1]), staying], axis=1)
            return np.sort(shown, axis=1).swapaxes(1, 2)

        return show

    def _published(self, view: Any, cell: int, other: int) -> Show:
        """Return what shows the published sums, or differences of sums, of one device and the others."""
        crowd = view.crowd
        summed = self.others(cell)[:, : crowd - 1].sum(axis=1)
        if other:
            summed = summed + self.others(other)[:, : crowd - 1].sum(axis=1)
        # Distributed noise needs the mechanism's number of devices; those beyond the crowds are outside every cell.
        outside = (getattr(view, "counted", None) or self.devices) - crowd - (crowd - 1 if other else 0)
        if outside > 0:
            summed = summed + self.others(0)[:, :outside].sum(axis=1)

        def show(device: NDArray[np.int64]) -> NDArray[np.int64]:
            counts: NDArray[np.int64] = device + summed
            if isinstance(view, ReleasedCounts):
                return counts
            # Over the real cells: all outputs but the first, or the last output of each cell, which is Yes.
            difference = counts[:, :, 1] - counts[:, :, 0]
            difference = difference[:, :, 1:] if len(self.trial.shape) == 1 else difference[..., -1]
            return difference if view.k is None else np.where(difference < view.k, 0, difference)

        return show


def _report_keys(reports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a key for each report of (rows, devices, queries, …), (rows, devices, queries)."""
    return row_keys(reports.reshape(math.prod(reports.shape[:3]), *reports.shape[3:])).reshape(reports.shape[:3])
