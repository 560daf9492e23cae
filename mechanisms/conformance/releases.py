"""Check of claims about what is published of a crowd: counts, differences and shuffled reports."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import row_keys
from mechanisms.conformance.claims import History, Keys, Sample, expect_claims_hold, known_claims
from mechanisms.conformance.findings import Findings
from mechanisms.conformance.harness import Harness
from mechanisms.privacy.view import ADJACENCIES, ReleasedCounts, ReleasedDifferences, Shuffled, View

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
        for cell in dict.fromkeys((1, trial.cells) if view.queries == 1 and view.adjacency != "move" else (1,)):
            name = f"{view!r}, cell {cell}"
            samples[name] = partial(_keys, pool, view, cell)
            if isinstance(view, ReleasedCounts):
                # If noise causes many outcomes, the published count of the cell alone may prove more.
                samples[f"{name} alone"] = partial(_keys, pool, view, cell, trial.columns.index(_index(trial, cell)))
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _keys(pool: Any, view: View, cell: int, index: int | None = None) -> dict[History, Keys]:
    """Return keys of what is published for each history: all of it, or one index of the tallies."""
    seen = pool(view.queries).seen(view, cell)
    return {history: row_keys(rows if index is None else rows[:, :, :, index]) for history, rows in seen}


@dataclass(frozen=True, eq=False)
class _Crowds:
    """Reports of simulated devices, from which crowds are put together.

    Devices answer independently, so the devices that stay are the same in all views and whatever one device does:
    each comparison has independent crowds in each of two samples, though not between them, which no bound needs.
    """

    trial: Harness
    queries: int

    def __post_init__(self) -> None:
        """Cache what several views need."""
        for name in ("single", "others"):
            object.__setattr__(self, name, cache(getattr(self, name)))

    @property
    def most(self) -> int:
        """Number of devices of a crowd."""
        return max(*crowds_of(self.trial, self.queries), COUNTED, int(getattr(self.trial.mechanism, "devices", 0)))

    @property
    def rows(self) -> int:
        """Number of crowds."""
        numbers = self.queries * self.trial.rounds * math.prod(self.trial.shape)
        crowds = MOST_NUMBERS * (10 if self.trial.thorough else 1) // (self.most * numbers)
        return min(self.trial.devices // 2, max(crowds, 2_000))

    def single(self, history: History) -> NDArray[np.int64]:
        """Return the reports of one device of each crowd, (rows, queries, rounds, …)."""
        rng = self.trial.generator(f"one device {history}")
        return self.trial.along(history, self.rows, rng=rng)

    def others(self, cell: int) -> NDArray[np.int64]:
        """Return the reports of devices that stay in a cell, (rows, devices, queries, rounds, …)."""
        number = self.most if cell == 0 else max(crowds_of(self.trial, self.queries))
        rng = self.trial.generator(f"others {cell} {self.queries}")
        reports = self.trial.along((cell,) * self.queries, self.rows * number, rng=rng)
        return reports.reshape(self.rows, number, *reports.shape[1:])

    def seen(self, view: Any, cell: int) -> Iterator[tuple[History, NDArray[np.int64]]]:
        """Yield what a view reveals, (rows, queries, …), for each history of one device of the crowd in a cell.

        In each query this device is in the cell or outside every cell; for a move in the cell or in another, which has
        as many devices as the first; if there is one query also outside, and in three queries it stays where it is.
        """
        crowd = view.devices if isinstance(view, Shuffled) else view.crowd
        other = self.trial.cells + 1 - cell if view.adjacency == "move" and self.trial.cells > 1 else 0
        histories = {(place,) * self.queries for place in (cell, other)}
        if self.queries == 2:
            histories |= set(itertools.product((cell, other), repeat=2))
        elif self.queries == 1:
            histories.add((0,))
        stay = self.others(cell)[:, : crowd - 1]
        if isinstance(view, Shuffled):
            staying = [_report_keys(stay[:, :, :, view.round - 1])]
        else:
            summed = stay.sum(axis=1)
            if other:
                summed = summed + self.others(other)[:, : crowd - 1].sum(axis=1)
            # Distributed noise needs the mechanism's number of devices; those beyond the crowds are outside every cell.
            counted = getattr(view, "counted", None) or int(getattr(self.trial.mechanism, "devices", 0))
            outside = max(counted - crowd - (crowd - 1 if other else 0), 0)
            if outside:
                summed = summed + self.others(0)[:, :outside].sum(axis=1)
        for history in sorted(histories):
            one = self.single(history)
            if isinstance(view, Shuffled):
                shown = np.concatenate([_report_keys(one[:, np.newaxis, :, view.round - 1]), *staying], axis=1)
                yield history, np.sort(shown, axis=1).swapaxes(1, 2)
            else:
                yield history, self._published(view, one + summed)

    def _published(self, view: Any, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is published of (rows, queries, rounds, …) counts."""
        if isinstance(view, ReleasedCounts):
            return counts
        # Over the real cells: all outputs but the first, or the last output of each cell, which is Yes.
        difference = counts[:, :, 1] - counts[:, :, 0]
        difference = difference[:, :, 1:] if len(self.trial.shape) == 1 else difference[..., -1]
        return difference if view.k is None else np.where(difference < view.k, 0, difference)


def _report_keys(reports: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a key for each report of (rows, devices, queries, …), (rows, devices, queries)."""
    return row_keys(reports.reshape(math.prod(reports.shape[:3]), *reports.shape[3:])).reshape(reports.shape[:3])


def _index(trial: Harness, cell: int) -> int:
    """Return the index of a cell in the tally, which may or may not have an entry for outside before it."""
    return cell - 1 if trial.shape[0] == trial.cells else cell
