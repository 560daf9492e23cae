"""Parts of reports that their compared encodings do not show: a hash function's seed, or the sum of many entries."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.kits.mechanisms.bounds import row_keys
from simulator.kits.mechanisms.harness import Harness

# Numbers of a report that are looked at, and how many values one must have for its parts to be compared instead.
NUMBERS, MANY = 4, 256

Keys = NDArray[np.int64]
Cut = Callable[[NDArray[np.uint64]], NDArray[np.uint64]]
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
            cuts: dict[str, Cut] = {"": lambda whole: whole}
            if len(np.unique(values)) > MANY:
                cuts = {f"byte {k} of ": partial(_byte, k) for k in range(8)}
                cuts |= {f"the remainder by {m} of ": partial(_remainder, m) for m in (trial.cells, trial.cells + 1)}
            for name, cut in cuts.items():
                samples[f"{name}number {i + 1} in it"] = partial(_cut, held, i, cut)
    return samples


def _each_truth(trial: Harness, number: int, part: Callable[[Any], Keys]) -> dict[tuple[int, ...], Keys]:
    """Return a part of the reports of devices of each audited truth."""
    rng, mechanism = trial.generator("raw reports"), trial.mechanism
    parts: dict[tuple[int, ...], Keys] = {}
    for cell in trial.audited:
        tossed = ((np.full(n, cell, dtype=np.int32), trial.toss(n, rng=rng)) for n in trial.batches(trial.devices))
        parts[(cell,)] = np.concatenate([part(mechanism.answer(number, truth, coins)) for truth, coins in tossed])
    return parts


def _with_sum(trial: Harness, reports: Any) -> Keys:
    vectors = trial.mechanism.encode(reports)
    return row_keys(np.concatenate([vectors[:, trial.columns], vectors.sum(axis=1, keepdims=True)], axis=1))


def _numbers(reports: Any) -> NDArray[np.int64]:
    """Return the first numbers in each report, (n, numbers): those of an array, of its fields, or of attributes."""
    held: list[Any] = [reports]
    if is_dataclass(reports):
        held = [getattr(reports, each.name) for each in fields(reports)]
    elif not isinstance(reports, np.ndarray):
        held = list(getattr(reports, "__dict__", {}).values())
    columns: list[NDArray[np.int64]] = [np.empty((len(reports), 0), dtype=np.int64)]
    for array in held:
        if not isinstance(array, np.ndarray) or array.ndim == 0 or len(array) != len(reports):
            continue
        for column in [array[name] for name in array.dtype.names] if array.dtype.names else [array]:
            if column.dtype.kind in "biuf":
                # Floating-point numbers by their bits.
                whole = (
                    column.astype(np.float64).view(np.int64) if column.dtype.kind == "f" else column.astype(np.int64)
                )
                columns.append(whole.reshape(len(reports), -1))
    return np.concatenate(columns, axis=1)[:, :NUMBERS]


def _cut(held: Callable[[], Mapping[tuple[int, ...], Keys]], i: int, cut: Cut) -> dict[tuple[int, ...], Keys]:
    """Return a part of the i-th number in the reports of every truth."""
    wholes = {history: np.ascontiguousarray(numbers[:, i]).view(np.uint64) for history, numbers in held().items()}
    return {history: cut(whole).astype(np.int64) for history, whole in wholes.items()}


def _byte(number: int, whole: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (whole >> np.uint64(8 * number)) & np.uint64(255)


def _remainder(divisor: int, whole: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return whole % np.uint64(divisor)
