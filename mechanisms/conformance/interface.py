"""Checks of a mechanism's attributes, shapes, dtypes and error messages, of its coins, and of the state it keeps."""

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import SAME_LAW_COMPARISONS, row_keys, same_law
from mechanisms.conformance.findings import Findings
from mechanisms.conformance.harness import MOST_CELLS, Harness, place_of
from mechanisms.local.mechanism import LocalMechanism

REQUIRED = (
    *("cells", "rounds", "truth_round", "tally_shape"),
    *("enrol", "toss", "answer", "encode", "tally", "estimate", "sample_counts", "claim"),
)
OPTIONAL = ("std_error", "sample_law", "batch", "warnings")
LAWS = ("exact joint", "exact per-cell marginals")
SOME = 57


def check_attributes(mechanism: Any, findings: Findings, *, most_cells: int = MOST_CELLS) -> None:
    """Expect every attribute to exist and to be of the right kind, and no more cells than can be checked."""
    missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
    findings.expect(not missing, f"lacks {', '.join(missing)}")
    absent = [name for name in OPTIONAL if not hasattr(mechanism, name)]
    if absent:
        findings.note(f"has no {', '.join(absent)}, which simulations and some checks use")
    if missing:
        return
    for name in REQUIRED[4:]:
        findings.expect(callable(getattr(mechanism, name)), f"{name} must be a method")
    _expect_integer(findings, "cells", mechanism.cells, least=1, most=None)
    if _expect_integer(findings, "rounds", mechanism.rounds, least=1, most=None):
        _expect_integer(findings, "truth_round", mechanism.truth_round, least=1, most=mechanism.rounds)
    shape = mechanism.tally_shape
    sound = isinstance(shape, tuple) and shape and all(isinstance(size, int) and size >= 1 for size in shape)
    findings.expect(sound, f"tally_shape must be a tuple of integers of at least 1, got {shape!r}")
    if not absent:
        findings.expect(isinstance(mechanism, LocalMechanism), "is not a LocalMechanism")
    law = getattr(mechanism, "sample_law", LAWS[1])
    findings.expect(law in LAWS, f"sample_law must be one of {LAWS}, got {law!r}")
    if not findings.faults:
        findings.expect(
            mechanism.cells <= most_cells,
            f"cells must be at most {most_cells} to be checked, got {mechanism.cells}: check a smaller instance",
        )


def _expect_integer(findings: Findings, name: str, value: object, *, least: int, most: int | None) -> bool:
    sound = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    bounds = f"at least {least}" if most is None else f"in {least}..{most}"
    sound = sound and (most is None or value <= most)  # type: ignore[operator]  # an integer by now
    return findings.expect(sound, f"{name} must be an integer, {bounds}, got {value!r}")


def check_reports(trial: Harness, findings: Findings) -> None:
    """Expect valid reports, encodings and tallies of a batch, of one device, and of no device."""
    mechanism, rng = trial.mechanism, trial.generator("reports")
    for devices in (SOME, 1, 0):
        truth = rng.integers(0, trial.cells + 1, devices).astype(np.int32)
        coins = trial.toss(devices, rng=rng)
        mask = rng.random(devices) < 0.4
        for number in range(1, trial.rounds + 1):
            where = f"in round {number} of {devices} devices"
            reports = mechanism.answer(number, truth, coins)
            if not findings.expect(len(reports) == devices, f"answer gives {len(reports)} reports {where}"):
                continue
            findings.expect(hasattr(reports, "nbytes"), f"reports have no nbytes {where}")
            vectors = mechanism.encode(reports)
            if not _expect_array(findings, f"encode {where}", vectors, (devices, *trial.shape), np.int64):
                continue
            for name, masked, chosen in (("", (), vectors), (" of a mask", (mask,), vectors[mask])):
                tally = mechanism.tally(reports, *masked)
                if _expect_array(findings, f"tally{name} {where}", tally, trial.shape, np.int64):
                    total = chosen.sum(axis=0)
                    findings.expect_equal(tally, total, f"tally{name} is not the sum of the encodings {where}")
            some = mechanism.encode(reports[mask])
            findings.expect_equal(some, vectors[mask], f"reports[mask] are not those devices' {where}")


def check_estimates(trial: Harness, findings: Findings) -> None:
    """Expect valid estimates, stated errors and sampled counts for a crowd, for one device, and for no device."""
    mechanism, rng = trial.mechanism, trial.generator("estimates")
    for devices in (SOME, 1, 0):
        truth = rng.integers(0, trial.cells + 1, devices).astype(np.int32)
        true_counts = np.bincount(truth, minlength=trial.cells + 1).astype(np.int64)
        asked = (devices,) * trial.rounds
        where = f"of {devices} devices"
        sampled = mechanism.sample_counts(true_counts, rng=rng)
        _expect_array(findings, f"sample_counts {where}", sampled, (trial.rounds, *trial.shape), np.int64)
        if trial.states_theory and not trial.why_no_estimate:
            _expect_floats(findings, f"std_error {where}", mechanism.std_error(true_counts), trial.cells)
        if trial.why_no_estimate:
            findings.note(trial.why_no_estimate)
            continue
        counts = trial.vectors(truth, rng=rng).sum(axis=0)
        for counted in (asked, tuple(n // 2 for n in asked), (0,) * trial.rounds):
            received_counts = counts if counted == asked else np.zeros_like(counts)
            if counted not in (asked, (0,) * trial.rounds):
                received_counts = trial.vectors(truth[: counted[0]], rng=rng).sum(axis=0)
            _check_estimate(trial, findings, received_counts, counted, asked)


def _check_estimate(
    trial: Harness, findings: Findings, counts: Any, counted: tuple[int, ...], asked: tuple[int, ...]
) -> None:
    """Expect four arrays that are consistent with each other, from one query's counts."""
    where = f"with {counted[0]} of {asked[0]} devices received"
    estimate = trial.mechanism.estimate(counts, counted=counted, asked=asked)
    for name in ("count", "std_error", "lower", "upper"):
        _expect_floats(findings, f"estimate.{name} {where}", getattr(estimate, name, None), trial.cells)
    if findings.faults:
        return
    findings.expect(np.isfinite(estimate.count).all(), f"estimate.count is not finite {where}")
    findings.expect((estimate.lower <= estimate.upper).all(), f"estimate.lower exceeds upper {where}")
    inside = (estimate.lower >= 0).all() and (estimate.upper <= asked[trial.mechanism.truth_round - 1]).all()
    findings.expect(inside, f"the interval leaves 0…{asked[0]}, the devices asked, {where}")


def _expect_array(findings: Findings, name: str, array: Any, shape: tuple[int, ...], dtype: type[np.generic]) -> bool:
    found = (getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__))
    rule = f"{name} must be {shape} {dtype.__name__}, got {found[0]} {found[1]}"
    return findings.expect(found == (shape, dtype), rule)


def _expect_floats(findings: Findings, name: str, array: Any, cells: int) -> None:
    if _expect_array(findings, name, array, (cells,), np.float64) and not name.startswith("estimate.count"):
        findings.expect((array >= 0).all(), f"{name} must hold no NaN and nothing negative")


DEVICES = 9

# A description of the call, and the call.
Attempt = tuple[str, Callable[[], Any]]


def check_bad_inputs_are_refused(trial: Harness, findings: Findings) -> None:
    """Expect a ValueError or TypeError with a message for each bad input."""
    for what, call in chain(_bad_reports(trial), _bad_counts(trial)):
        try:
            call()
        except (ValueError, TypeError) as error:
            findings.expect(str(error).strip(), f"{what}: raises {type(error).__name__} without a message")
        except Exception as error:  # noqa: BLE001 - any other error is the fault that this check reports
            findings.fault(f"{what}: raises {type(error).__name__}, neither ValueError nor TypeError: {error}")
        else:
            findings.fault(f"{what}: raises no error")


def _bad_reports(trial: Harness) -> Iterator[Attempt]:
    """Yield calls with wrong truths, rounds, numbers of devices and masks."""
    mechanism, rng = trial.mechanism, trial.generator("bad reports")
    truth = np.zeros(DEVICES, dtype=np.int32)
    coins = trial.toss(DEVICES, rng=rng)
    reports = mechanism.answer(1, truth, coins)
    beyond = truth.copy()
    beyond[4] = trial.cells + 1
    truths = {
        "a negative cell": truth - np.int32(1),
        "a cell beyond the last": beyond,
        "int64 truths": truth.astype(np.int64),
        "float truths": truth.astype(np.float64),
        "too few truths": truth[:-1],
        "two-dimensional truths": truth[:, np.newaxis],
    }
    for number, (name, bad) in product(range(1, trial.rounds + 1), truths.items()):
        yield f"answer of {name} in round {number}", partial(mechanism.answer, number, bad, coins)
    for number in (0, trial.rounds + 1):
        yield f"answer of round {number}", partial(mechanism.answer, number, truth, coins)
    yield "enrol of −1 devices", partial(mechanism.enrol, -1, rng=rng)
    yield "tally with too short a mask", partial(mechanism.tally, reports, np.ones(DEVICES - 1, dtype=np.bool_))
    yield "tally with a mask of integers", partial(mechanism.tally, reports, np.ones(DEVICES, dtype=int))


def _bad_counts(trial: Harness) -> Iterator[Attempt]:
    """Yield calls with wrong counts, numbers of devices, and true counts."""
    mechanism, rng = trial.mechanism, trial.generator("bad counts")
    counts, nine = np.zeros((trial.rounds, *trial.shape), dtype=np.int64), (DEVICES,) * trial.rounds
    if not trial.why_no_estimate:
        cases: dict[str, tuple[Any, Any, Any]] = {
            "counts of another shape": (counts[:, :-1], nine, nine),
            "float counts": (counts.astype(np.float64), nine, nine),
            "more counted than asked": (counts, (DEVICES + 1,) * trial.rounds, nine),
            "fewer than none counted": (counts, (-1,) * trial.rounds, nine),
            "too many rounds asked": (counts, nine, (*nine, DEVICES)),
        }
        for name, (bad, counted, asked) in cases.items():
            yield f"estimate from {name}", partial(mechanism.estimate, bad, counted=counted, asked=asked)
    good = np.full(trial.cells + 1, 2, dtype=np.int64)
    truths = {"too few true counts": good[:-1], "negative true counts": -good, "float true counts": good.astype(float)}
    for name, bad in truths.items():
        yield f"sample_counts of {name}", partial(mechanism.sample_counts, bad, rng=rng)
        if trial.states_theory and not trial.why_no_estimate:
            yield f"std_error of {name}", partial(mechanism.std_error, bad)


FEW = 41
ONE = 17


def check_answers_draw_nothing(trial: Harness, findings: Findings) -> None:
    """Expect that answering does not change the state of the coins' generator or of numpy's global one."""
    rng = trial.generator("draw nothing")
    for devices in (FEW, 1):
        truth = rng.integers(0, trial.cells + 1, devices).astype(np.int32)
        coins = trial.toss(devices, rng=rng)
        before, everyones = copy.deepcopy(rng.bit_generator.state), _global_state()
        for number in range(1, trial.rounds + 1):
            reports = trial.mechanism.answer(number, truth, coins)
            trial.mechanism.tally(reports)
            trial.mechanism.encode(reports)
            findings.expect(
                rng.bit_generator.state == before, f"answer draws from the generator of the coins in round {number}"
            )
            findings.expect(_global_state() == everyones, f"answer draws from numpy.random in round {number}")
            before, everyones = copy.deepcopy(rng.bit_generator.state), _global_state()


def check_other_reports_do_not_change(trial: Harness, findings: Findings) -> None:
    """Expect that changing one device's truth changes no other device's report, in any round."""
    rng = trial.generator("others")
    for start in (np.zeros(FEW, dtype=np.int32), rng.integers(0, trial.cells + 1, FEW).astype(np.int32)):
        coins = trial.toss(FEW, rng=rng)
        before = trial.answers(start, coins)
        for device in (0, ONE, FEW - 1):
            for cell in range(trial.cells + 1):
                moved = start.copy()
                moved[device] = cell
                changed = (trial.answers(moved, coins) != before).reshape(FEW, -1).any(axis=1)
                changed[device] = False
                findings.expect(
                    not changed.any(),
                    f"moving device {device} to {cell} changes the reports of device {int(changed.argmax())}",
                )


def check_early_rounds_are_blind(trial: Harness, findings: Findings) -> None:
    """Expect that the truth round is the first whose reports depend on the truth."""
    early = trial.mechanism.truth_round - 1
    findings.expect(
        trial.first_use <= early + 1,
        f"truth_round is {early + 1}, but no report before round {trial.first_use} depends on the device's cell: a "
        f"device that moves is counted where it is in round {trial.first_use}",
    )
    if not early:
        return
    rng = trial.generator("early")
    coins = trial.toss(10 * FEW, rng=rng)
    outside = np.zeros(10 * FEW, dtype=np.int32)
    before = trial.answers(outside, coins)[:, :early]
    for cell in range(1, trial.cells + 1):
        reports = trial.answers(outside + np.int32(cell), coins)[:, :early]
        findings.expect_equal(
            reports, before, f"a report before round {early + 1} differs between outside and cell {cell}"
        )


def check_no_hidden_state(trial: Harness, findings: Findings) -> None:
    """Expect that a method's result depends only on its arguments, not on earlier calls."""
    mechanism, rng = trial.mechanism, trial.generator("hidden state")
    one, two = (rng.integers(0, trial.cells + 1, FEW).astype(np.int32) for _ in range(2))
    seeds = rng.integers(0, 2**31, 2)
    coins, other = (trial.toss(FEW, rng=np.random.default_rng(seed)) for seed in seeds)
    first = trial.answers(one, coins)
    findings.expect_equal(trial.answers(one, coins), first, "the same coins and truth give different reports")
    trial.answers(two, other)
    trial.answers(two, coins)
    findings.expect_equal(trial.answers(one, coins), first, "answering for others in between changes a batch's reports")
    turns = []
    for number in range(1, trial.rounds + 1):
        turns.append(mechanism.encode(mechanism.answer(number, one, coins)))
        mechanism.answer(number, two, other)
    findings.expect_equal(
        np.stack(turns, axis=1), first, "two batches that answer in turns change each other's reports"
    )
    backwards = [mechanism.encode(mechanism.answer(r, one, coins)) for r in range(trial.rounds, 0, -1)]
    late_first = np.stack(backwards[::-1], axis=1)
    findings.expect_equal(late_first, first, "reports depend on the order in which rounds are answered")
    again = trial.answers(one, trial.toss(FEW, rng=np.random.default_rng(seeds[0])))
    findings.expect_equal(again, first, "the same generator gives different coins the second time")
    true_counts = np.bincount(one, minlength=trial.cells + 1).astype(np.int64)
    once, twice = (mechanism.sample_counts(true_counts, rng=np.random.default_rng(seeds[1])) for _ in range(2))
    findings.expect_equal(once, twice, "the same generator gives different sample_counts the second time")
    if not trial.why_no_estimate:
        asked = (FEW,) * trial.rounds
        sums = [first.sum(axis=0), trial.answers(two, other).sum(axis=0), first.sum(axis=0)]
        estimates = [mechanism.estimate(counts, counted=asked, asked=asked) for counts in sums]
        for name in ("count", "std_error", "lower", "upper"):
            once, twice = getattr(estimates[0], name), getattr(estimates[2], name)
            findings.expect_equal(once, twice, f"estimate.{name} of the same counts differs the second time")


def check_arguments_are_not_modified(trial: Harness, findings: Findings) -> None:
    """Expect that no method modifies its arguments: memory, coins, truths, reports and counts stay unchanged."""
    mechanism, rng = trial.mechanism, trial.generator("written on")
    memory = mechanism.enrol(FEW, rng=rng)
    held = _snapshot(memory)
    state = copy.deepcopy(rng.bit_generator.state)
    coins = mechanism.toss(memory, rng=rng)
    tossed, truth = _snapshot(coins), rng.integers(0, trial.cells + 1, FEW).astype(np.int32)
    was = truth.copy()
    first = trial.answers(truth, coins)
    findings.expect_equal(truth, was, "answer modifies the truth")
    findings.expect(_snapshot(coins) == tossed, "answer modifies the coins")
    findings.expect(_snapshot(memory) == held, "toss or answer modifies the memory")
    rng.bit_generator.state = state
    again = trial.answers(was, mechanism.toss(memory, rng=rng))
    findings.expect_equal(again, first, "a device's memory gives different coins after it was used")
    asked, counts = (FEW,) * trial.rounds, first.sum(axis=0)
    kept = counts.copy()
    if not trial.why_no_estimate:
        mechanism.estimate(counts, counted=asked, asked=asked)
        findings.expect_equal(counts, kept, "estimate modifies the counts")
    true_counts = np.bincount(was, minlength=trial.cells + 1).astype(np.int64)
    mechanism.sample_counts(true_counts, rng=rng)
    kept = np.bincount(was, minlength=trial.cells + 1)
    findings.expect_equal(true_counts, kept, "sample_counts modifies the true counts")


def check_devices_have_own_coins(trial: Harness, findings: Findings) -> None:
    """Expect that devices of one batch are as independent as single devices, and have the same distribution."""
    lags = {"neighbours": 1, "devices 64 apart": 64, "devices half a batch apart": trial.calls // 2}
    truths = (0, trial.cells)
    alpha = trial.alpha(findings, len(lags) * len(truths) * SAME_LAW_COMPARISONS) * SAME_LAW_COMPARISONS
    rng = trial.generator("own coins")
    devices, least = 2 * (trial.calls // 2), 1.0
    alone = max(400, trial.calls // 15)
    for cell in truths:
        batch = row_keys(trial.vectors(np.full(devices, cell, dtype=np.int32), rng=rng))
        lone = np.full(1, cell, dtype=np.int32)
        singles = row_keys(np.concatenate([trial.vectors(lone, rng=rng) for _ in range(2 * alone)]))
        apart = row_keys(np.stack([singles[:alone], singles[alone:]], axis=1))
        for name, lag in lags.items():
            likely = same_law(row_keys(_pairs(batch, lag)), apart)
            least = min(least, likely)
            findings.expect(
                likely >= alpha, f"{name} of one batch, all {place_of(cell)}, do not answer as single devices do"
            )
    findings.figures["least p-value"] = least


def _pairs(keys: NDArray[np.int64], lag: int) -> NDArray[np.int64]:
    """Return disjoint pairs of devices a lag apart, (pairs, 2)."""
    whole = keys[: len(keys) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
    return np.stack([whole[:, 0].ravel(), whole[:, 1].ravel()], axis=1)


def _snapshot(thing: Any) -> bytes:
    """Return the pickled bytes of an object, or empty bytes if it cannot be pickled."""
    try:
        return pickle.dumps(thing)
    except Exception:  # noqa: BLE001 - an object that cannot be pickled is compared by its behaviour only
        return b""


def _global_state() -> bytes:
    """Return the state of numpy's global generator."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002 - to see that no method uses it
