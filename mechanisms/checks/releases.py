"""Claims about what is published of a crowd, audited by simulating the crowd."""

import itertools
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.checks.bounds import row_keys
from mechanisms.checks.claims import History, Keys, Sample, expect_claims_hold
from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, Shuffled, View

CROWDS = (1, 2, 3)
SHUFFLED = (1, 3)
MOST_ANSWERS = 1_000_000


def check_releases_hold(trial: Trial, findings: Findings) -> None:
    """Expect no claim about small crowds' published counts or shuffled reports below what simulated crowds prove.

    Over several queries, devices keep their memory, one of them moves and the others stay.
    """
    views: list[View] = []
    for queries in range(1, trial.queries + 1):
        views += [ReleasedCounts(crowd=n, queries=queries) for n in CROWDS]
        if trial.rounds == 2:
            views += [ReleasedDifferences(crowd=n, queries=queries) for n in CROWDS]
            views.append(ReleasedDifferences(crowd=3, k=2, queries=queries))
        views += [Shuffled(round=r + 1, devices=n, queries=queries) for r in range(trial.rounds) for n in SHUFFLED]
    claims = {view: trial.mechanism.claim(view) for view in views}
    unknown = sorted({view.name for view, claim in claims.items() if claim.kind == "unknown"})
    if unknown:
        findings.note(f"unknown: {', '.join(unknown)}")
    publish = lru_cache(maxsize=1)(partial(_published, trial))
    audits: list[tuple[Any, dict[str, Sample]]] = []
    for view, claim in claims.items():
        if claim.kind == "unknown":
            continue
        samples: dict[str, Sample] = {}
        for cell in dict.fromkeys((1, trial.cells)):
            name = f"{view!r}, cell {cell}"
            samples[name] = partial(_keys, publish, view, cell)
            if isinstance(view, ReleasedCounts):
                # Where noise makes many outcomes, what is published of the cell alone may prove more.
                samples[f"{name} alone"] = partial(_keys, publish, view, cell, trial.columns.index(_index(trial, cell)))
        audits.append((claim, samples))
    expect_claims_hold(trial, findings, audits)


def _keys(
    publish: Callable[[View, int], dict[History, NDArray[np.int64]]], view: View, cell: int, index: int | None = None
) -> dict[History, Keys]:
    """Return a key for all that is published in each world, or for one index of the tallies."""
    return {
        history: row_keys(seen if index is None else seen[:, :, :, index])
        for history, seen in publish(view, cell).items()
    }


def _published(trial: Trial, view: Any, cell: int) -> dict[History, NDArray[np.int64]]:
    """Return what is published of crowds in a cell, (crowds, queries, …), for each history of one device of them.

    In each query the device is in the cell or outside every cell; or, if shuffled in a single one, in another cell.
    """
    crowd = view.devices if isinstance(view, Shuffled) else view.crowd
    # Noise that many devices make together needs that many; those beyond the crowd are outside every cell.
    devices = crowd if isinstance(view, Shuffled) else max(crowd, int(getattr(trial.mechanism, "devices", 0)))
    truth = np.zeros(devices, dtype=np.int32)
    truth[:crowd] = cell
    repeats = min(trial.devices // 2, max(MOST_ANSWERS // devices, 100))
    histories: list[History] = list(itertools.product((cell, 0), repeat=view.queries))
    if view.queries == 1 and trial.cells > 1 and isinstance(view, Shuffled):
        histories.append((cell % trial.cells + 1,))
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


def _seen(trial: Trial, view: Any, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a view shows of one query's (crowds, devices, rounds, *tally_shape) reports, a row a crowd."""
    if isinstance(view, Shuffled):
        reports = vectors[:, :, view.round - 1]
        keys = row_keys(reports.reshape(-1, *reports.shape[2:])).reshape(reports.shape[:2])
        return np.sort(keys, axis=1)
    counts: NDArray[np.int64] = vectors.sum(axis=1)
    if isinstance(view, ReleasedCounts):
        return counts
    # Over the real cells: all outputs but the first, or each cell's last, which is its Yes.
    difference = counts[:, 1] - counts[:, 0]
    difference = difference[:, 1:] if len(trial.shape) == 1 else difference[..., -1]
    published: NDArray[np.int64] = difference if view.k is None else np.where(difference < view.k, 0, difference)
    return published


def _index(trial: Trial, cell: int) -> int:
    """Return where a cell stands in the tally, whether or not outside has a place before it."""
    return cell - 1 if trial.shape[0] == trial.cells else cell
