"""Parts of reports that their compared encodings do not show: a hash function's seed, or the sum of many entries."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import row_keys
from mechanisms.conformance.harness import Harness

# Numbers of a report that are looked at, and how many values one must have for its parts to be compared instead.
NUMBERS, MANY = 4, 256
WHOLE = 2**64 - 1

Keys = NDArray[np.int64]
Samples = dict[str, Callable[[], Mapping[tuple[int, ...], Keys]]]


def raw_samples(trial: Harness, number: int) -> Samples:
    """Return samples of parts of a round's reports, each with a key per device for every audited truth, by name.

    If encodings are compared in some of their entries only, a part is those together with the sum of all entries. If
    there are more reports than encodings, parts are the numbers in a report: their values if these are few, else each
    byte, and the remainders of divisions by V and V + 1.
    """
    samples: Samples = {}
    if len(trial.columns) < trial.shape[0]:
        samples["with the sum of all entries"] = partial(_each_truth, trial, number, partial(_with_sum, trial))
    truth = np.ones(trial.calls, dtype=np.int32)
    few = trial.mechanism.answer(number, truth, trial.toss(trial.calls, rng=trial.generator("some raw reports")))
    numbers = _numbers(few)
    if len(np.unique(row_keys(numbers))) > len(np.unique(row_keys(trial.mechanism.encode(few)))):
        held = lru_cache(maxsize=1)(partial(_each_truth, trial, number, _numbers))
        for i, values in enumerate(numbers.T):
            cuts = {"": (0, WHOLE, 1)}
            if len(np.unique(values)) > MANY:
                cuts = {f"byte {k} of ": (8 * k, 255, 1) for k in range(8)}
                cuts |= {f"the remainder by {m} of ": (0, WHOLE, m) for m in (trial.cells, trial.cells + 1)}
            for name, cut in cuts.items():
                samples[f"{name}number {i + 1} in it"] = partial(_cut, held, i, *cut)
    return samples


def _each_truth(
    trial: Harness, number: int, part: Callable[[Any], NDArray[np.int64]]
) -> dict[tuple[int, ...], NDArray[np.int64]]:
    """Return a part of the reports of devices of each audited truth."""
    rng = trial.generator("raw reports")
    found: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for cell in trial.audited:
        answers = []
        for batch in trial.batches(trial.devices):
            coins = trial.toss(batch, rng=rng)
            answers.append(part(trial.mechanism.answer(number, np.full(batch, cell, dtype=np.int32), coins)))
        found[(cell,)] = np.concatenate(answers)
    return found


def _with_sum(trial: Harness, reports: Any) -> Keys:
    vectors = trial.mechanism.encode(reports)
    return row_keys(np.concatenate([vectors[:, trial.columns], vectors.sum(axis=1, keepdims=True)], axis=1))


def _numbers(reports: Any) -> NDArray[np.int64]:
    """Return the first numbers in each report, (n, numbers): those of an array, of its fields, or of attributes."""
    held: list[Any] = [reports]
    if is_dataclass(reports):
        held = [getattr(reports, one.name) for one in fields(reports)]
    elif not isinstance(reports, np.ndarray):
        held = list(getattr(reports, "__dict__", {}).values())
    arrays = [one for one in held if isinstance(one, np.ndarray) and one.ndim and len(one) == len(reports)]
    named = [[array[name] for name in array.dtype.names] if array.dtype.names else [array] for array in arrays]
    found = [one.reshape(len(reports), -1) for group in named for one in group if one.dtype.kind in "biuf"]
    # Floating-point numbers by their bits.
    whole = [one.astype(np.float64).view(np.int64) if one.dtype.kind == "f" else one.astype(np.int64) for one in found]
    return np.concatenate([np.empty((len(reports), 0), dtype=np.int64), *whole], axis=1)[:, :NUMBERS]


def _cut(
    held: Callable[[], Mapping[tuple[int, ...], NDArray[np.int64]]], i: int, shift: int, mask: int, divisor: int
) -> dict[tuple[int, ...], Keys]:
    """Return some bits of the i-th number, or its remainder where the divisor is above 1, for every truth."""
    cut = {}
    for history, numbers in held().items():
        bits = (np.ascontiguousarray(numbers[:, i]).view(np.uint64) >> np.uint64(shift)) & np.uint64(mask)
        cut[history] = (bits % np.uint64(divisor) if divisor > 1 else bits).astype(np.int64)
    return cut
