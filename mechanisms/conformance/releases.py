"""Check of claims about what is published of a crowd: counts, differences and shuffled reports."""

import itertools
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import row_keys
from mechanisms.conformance.claims import ADJACENCIES, History, Keys, Sample, expect_claims_hold, known_claims
from mechanisms.conformance.findings import Findings
from mechanisms.conformance.harness import Harness
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, Shuffled, View

# Devices in the cell, by the number of queries; in thorough checks of one query LARGE_CROWD too.
CROWDS = {1: (1, 2, 3, 8), 2: (1, 2, 3), 3: (2,)}
LARGE_CROWD = 30
COUNTED = 6
MOST_ANSWERS = 1_000_000


def check_releases_hold(trial: Harness, findings: Findings) -> None:
    """Expect no claim about published counts or shuffled reports of small crowds below what simulated crowds prove.

    Over several queries devices keep their memory; one device moves, or enters and leaves, and the others stay.
    """
    views: list[View] = []
    for queries, adjacency in itertools.product(range(1, trial.queries + 1), ADJACENCIES):
        crowds = CROWDS[queries] + ((LARGE_CROWD,) if trial.thorough and queries == 1 else ())
        views += [ReleasedCounts(n, queries, adjacency=adjacency) for n in crowds]
        views.append(ReleasedCounts(2, queries, COUNTED, adjacency=adjacency))
        if trial.rounds == 2:
            views += [ReleasedDifferences(n, None, queries, adjacency=adjacency) for n in crowds]
            views.append(ReleasedDifferences(3, 2, queries, adjacency=adjacency))
        shuffled = itertools.product(range(1, trial.rounds + 1), crowds)
        views += [Shuffled(number, n, queries, adjacency=adjacency) for number, n in shuffled]
    publish = lru_cache(maxsize=1)(partial(_published, trial))
    audits: list[tuple[Any, dict[str, Sample]]] = []
    for view, claim in known_claims(trial, findings, views).items():
        samples: dict[str, Sample] = {}
        for cell in dict.fromkeys((1, trial.cells)):
            name = f"{view!r}, cell {cell}"
            samples[name] = partial(_keys, publish, view, cell)
            if isinstance(view, ReleasedCounts):
                # If noise causes many outcomes, the published count of the cell alone may prove more.
                samples[f"{name} alone"] = partial(_keys, publish, view, cell, trial.columns.index(_index(trial, cell)))
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _keys(
    publish: Callable[[View, int], dict[History, NDArray[np.int64]]], view: View, cell: int, index: int | None = None
) -> dict[History, Keys]:
    """Return keys of what is published for each history: all of it, or one index of the tallies."""
    return {
        history: row_keys(seen if index is None else seen[:, :, :, index])
        for history, seen in publish(view, cell).items()
    }


def _published(trial: Harness, view: Any, cell: int) -> dict[History, NDArray[np.int64]]:
    """Return what is published about crowds in a cell, (crowds, queries, …), for each history of one of their devices.

    In each query this device is in the cell or outside every cell; for a move it may be in another cell too, which then
    has as many devices as the first.
    """
    crowd = view.devices if isinstance(view, Shuffled) else view.crowd
    other = cell % trial.cells + 1 if view.adjacency == "move" and trial.cells > 1 else 0
    beside = crowd - 1 if other and not isinstance(view, Shuffled) else 0
    # Distributed noise needs the mechanism's number of devices; those beyond the crowds are outside every cell.
    expected = 0 if isinstance(view, Shuffled) else int(getattr(trial.mechanism, "devices", 0))
    devices = max(crowd + beside, getattr(view, "counted", None) or expected)
    truth = np.zeros(devices, dtype=np.int32)
    truth[:crowd], truth[crowd : crowd + beside] = cell, other
    repeats = min(trial.devices // 2, max(MOST_ANSWERS // devices, 100))
    histories: list[History] = list(itertools.product((cell, other), repeat=view.queries))
    histories += [(0,) * view.queries] if other else []
    rng, worlds = trial.generator(f"{view!r} {cell}"), {}
    for history in histories:
        found = []
        for batch in trial.batches(repeats * devices, of=devices):
            memory = trial.mechanism.enrol(batch, rng=rng)
            queries = []
            for place in history:
                truth[0] = place
                vectors = trial.answers(np.tile(truth, batch // devices), trial.mechanism.toss(memory, rng=rng))
                vectors = vectors[:, :, trial.columns]
                queries.append(_seen(trial, view, vectors.reshape(-1, devices, *vectors.shape[1:])))
            found.append(np.stack(queries, axis=1))
        worlds[history] = np.concatenate(found)
    return worlds


def _seen(trial: Harness, view: Any, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a view reveals of one query's (crowds, devices, rounds, *tally_shape) reports, one row per crowd."""
    if isinstance(view, Shuffled):
        reports = vectors[:, :, view.round - 1]
        keys = row_keys(reports.reshape(-1, *reports.shape[2:])).reshape(reports.shape[:2])
        return np.sort(keys, axis=1)
    counts: NDArray[np.int64] = vectors.sum(axis=1)
    if isinstance(view, ReleasedCounts):
        return counts
    # Over the real cells: all outputs but the first, or the last output of each cell, which is Yes.
    difference = counts[:, 1] - counts[:, 0]
    difference = difference[:, 1:] if len(trial.shape) == 1 else difference[..., -1]
    return difference if view.k is None else np.where(difference < view.k, 0, difference)


def _index(trial: Harness, cell: int) -> int:
    """Return the index of a cell in the tally, which may or may not have an entry for outside before it."""
    return cell - 1 if trial.shape[0] == trial.cells else cell
