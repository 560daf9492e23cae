"""Claims about what is published of a crowd, audited by simulating the crowd."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.checks.bounds import row_keys
from mechanisms.checks.claims import expect_claims_hold
from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, Shuffled, View

CROWDS = (1, 2, 3)
SHUFFLED = 3
MOST_ANSWERS = 1_000_000
WORLDS = (("there", "away"), ("away", "there"))


def check_releases_hold(trial: Trial, findings: Findings) -> None:
    """Expect no claim about small crowds' published counts or shuffled reports below what simulated crowds prove."""
    views: list[View] = [ReleasedCounts(crowd=n) for n in CROWDS]
    if trial.rounds == 2:
        views += [ReleasedDifferences(crowd=n) for n in CROWDS] + [ReleasedDifferences(crowd=3, k=2)]
    views += [Shuffled(round=r + 1, devices=SHUFFLED) for r in range(trial.rounds)]
    claims = {view: trial.mechanism.claim(view) for view in views}
    unknown = sorted({view.name for view, claim in claims.items() if claim.kind == "unknown"})
    if unknown:
        findings.note(f"unknown: {', '.join(unknown)}")
    audits = []
    for view, claim in claims.items():
        if claim.kind == "unknown":
            continue
        for cell in dict.fromkeys((1, trial.cells)):
            worlds = {world: _published(trial, view, cell, there=world == "there") for world in WORLDS[0]}
            name = f"{view!r}, cell {cell}"
            audits.append((name, claim, {world: row_keys(seen) for world, seen in worlds.items()}, list(WORLDS)))
            if isinstance(view, ReleasedCounts):
                # Where noise makes many outcomes, what is published of the cell alone may prove more.
                alone = {world: row_keys(seen[:, :, _index(trial, cell)]) for world, seen in worlds.items()}
                audits.append((f"{name} alone", claim, alone, list(WORLDS)))
    expect_claims_hold(trial, findings, audits)


def _published(trial: Trial, view: Any, cell: int, *, there: bool) -> NDArray[np.int64]:
    """Return what is published of each crowd, a row each, with one device of it in the cell or outside every cell."""
    rng = trial.generator(f"{view!r} {cell} {there}")
    if isinstance(view, Shuffled):
        crowd = devices = view.devices
    else:
        # Noise that many devices make together needs that many; those beyond the crowd are outside every cell.
        crowd, devices = view.crowd, max(view.crowd, int(getattr(trial.mechanism, "devices", 0)))
    truth = np.zeros(devices, dtype=np.int32)
    truth[:crowd] = cell
    if not there:
        truth[0] = 0
    vectors = trial.crowds(truth, min(trial.devices // 2, max(MOST_ANSWERS // devices, 100)), rng=rng)
    if isinstance(view, Shuffled):
        reports = vectors[:, :, view.round - 1]
        keys = row_keys(reports.reshape(-1, *reports.shape[2:])).reshape(len(reports), devices)
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
