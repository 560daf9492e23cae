"""Checks of a mechanism's attributes, shapes and dtypes, of its coins and the state it keeps, and of bad inputs."""

import copy
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from mechanisms.local.mechanism import Estimate, LocalMechanism, rows_of
from simulator.experiment.assembly.own_kinds import MECHANISM_METHODS
from simulator.kits.findings import Findings, global_random_states
from simulator.kits.mechanisms.bounds import SAME_LAW_COMPARISONS, pairs_apart, row_keys, same_law
from simulator.kits.mechanisms.harness import MOST_CELLS, Harness, place_of

VALUES = ("cells", "rounds", "truth_round", "tally_shape")
ESTIMATE = ("count", "std_error", "lower", "upper")
OPTIONAL = ("std_error", "sample_law", "batch", "warnings")
LAWS = ("exact joint", "exact per-cell marginals")
SOME = 57


def check_attributes(mechanism: Any, findings: Findings, *, most_cells: int = MOST_CELLS) -> None:
    """Expect every attribute to exist and to be of the right kind, and no more cells than can be checked."""
    missing, absent = (
        [name for name in names if not hasattr(mechanism, name)] for names in ((*VALUES, *MECHANISM_METHODS), OPTIONAL)
    )
    if absent:
        findings.note(f"has no {', '.join(absent)}, which simulations and some checks use")
    if not findings.expect(not missing, f"lacks {', '.join(missing)}"):
        return
    for name in MECHANISM_METHODS:
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
        rule = f"cells must be at most {most_cells} to be checked, got {mechanism.cells}: check a smaller instance"
        findings.expect(mechanism.cells <= most_cells, rule)


def _expect_integer(findings: Findings, name: str, value: object, *, least: int, most: int | None) -> bool:
    sound = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    bounds = f"at least {least}" if most is None else f"in {least}..{most}"
    sound = sound and (most is None or value <= most)  # type: ignore[operator]  # an integer by now
    return findings.expect(sound, f"{name} must be an integer, {bounds}, got {value!r}")


def check_reports(trial: Harness, findings: Findings) -> None:
    """Expect valid reports, encodings and tallies of a batch, of one device, and of no device."""
    mechanism, rng = trial.mechanism, trial.generator("reports")
    for devices in (SOME, 1, 0):
        truth, coins = trial.truths(devices, rng=rng), trial.toss(devices, rng=rng)
        mask = rng.random(devices) < 0.4
        for number in range(1, trial.rounds + 1):
            where = f"in round {number} of {devices} devices"
            reports = mechanism.answer(number, truth, coins)
            if not findings.expect(len(reports) == devices, f"answer gives {len(reports)} reports {where}"):
                continue
            findings.expect(hasattr(reports, "nbytes"), f"reports have no nbytes {where}")
            joins = isinstance(reports, np.ndarray) or hasattr(type(reports), "joined")
            findings.expect(joins, "reports that are no array need a class method joined, which takes a list of them")
            vectors = mechanism.encode(reports)
            if not _expect_array(findings, f"encode {where}", vectors, (devices, *trial.shape), np.int64):
                continue
            for name, masked, chosen in (("", (), vectors), (" of a mask", (mask,), vectors[mask])):
                tally = mechanism.tally(reports, *masked)
                if _expect_array(findings, f"tally{name} {where}", tally, trial.shape, np.int64):
                    total = chosen.sum(axis=0)
                    findings.expect_equal(tally, total, f"tally{name} is not the sum of the encodings {where}")
            for name, chosen in {"mask": mask, "indices": np.flatnonzero(mask), "slice": slice(devices // 2)}.items():
                if (some := indexed(reports, chosen, f"reports[{name}]", findings)) is not None:
                    fault = f"reports[{name}] are not those devices' {where}"
                    findings.expect_equal(mechanism.encode(some), vectors[chosen], fault)
            one = slice(devices // 2, devices // 2 + 1)
            if (row := indexed(coins, one, "coins[slice]", findings)) is not None:
                own = mechanism.encode(mechanism.answer(number, truth[one], row))
                findings.expect_equal(own, vectors[one], f"one device's coins answer otherwise than its batch {where}")
        chosen = indexed(mechanism.enrol(devices, rng=rng), np.arange(devices), "memory[device numbers]", findings)
        if chosen is not None:
            fault = f"memory[device numbers] does not toss coins for {devices} devices"
            findings.expect(len(mechanism.answer(1, truth, mechanism.toss(chosen, rng=rng))) == devices, fault)


def indexed(held: Any, chosen: Any, name: str, findings: Findings) -> Any:
    """Return a part of what holds a row for each device; None with a fault if it cannot be indexed, as a run does."""
    try:
        return rows_of(held, chosen)
    except Exception as error:  # noqa: BLE001 - a user's object may raise anything
        findings.fault(f"{name} must be that of some devices, but raises {type(error).__name__}: {error}")
        return None


def check_estimates(trial: Harness, findings: Findings) -> None:
    """Expect valid estimates, stated errors and sampled counts for a crowd, for one device, and for no device."""
    mechanism, rng = trial.mechanism, trial.generator("estimates")
    for devices in (SOME, 1, 0):
        truth = trial.truths(devices, rng=rng)
        true_counts, where = trial.count(truth), f"of {devices} devices"
        sampled = mechanism.sample_counts(true_counts, rng=rng)
        _expect_array(findings, f"sample_counts {where}", sampled, (trial.rounds, *trial.shape), np.int64)
        if trial.states_theory and not trial.why_no_estimate:
            _expect_floats(findings, f"std_error {where}", mechanism.std_error(true_counts), trial.cells)
        if trial.why_no_estimate:
            findings.note(trial.why_no_estimate)
            continue
        for received in (devices, devices // 2, 0):
            _check_estimate(trial, findings, trial.vectors(truth[:received], rng=rng).sum(axis=0), received, devices)


def _check_estimate(trial: Harness, findings: Findings, counts: Any, received: int, devices: int) -> None:
    """Expect four arrays that are consistent with each other, from one query's counts."""
    where = f"with {received} of {devices} devices received"
    estimate = trial.mechanism.estimate(counts, counted=(received,) * trial.rounds, asked=(devices,) * trial.rounds)
    rule = f"estimate must return a mechanisms.local.Estimate, got {type(estimate).__name__}"
    findings.expect(isinstance(estimate, Estimate), rule)
    for name in ESTIMATE:
        _expect_floats(findings, f"estimate.{name} {where}", getattr(estimate, name, None), trial.cells)
    if findings.faults:
        return
    findings.expect(np.isfinite(estimate.count).all(), f"estimate.count is not finite {where}")
    findings.expect((estimate.lower <= estimate.upper).all(), f"estimate.lower exceeds upper {where}")
    inside = (estimate.lower >= 0).all() and (estimate.upper <= devices).all()
    findings.expect(inside, f"the interval leaves 0…{devices}, the devices asked, {where}")


def _expect_array(findings: Findings, name: str, array: Any, shape: tuple[int, ...], dtype: type[np.generic]) -> bool:
    got = (getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__))
    rule = f"{name} must be {shape} {dtype.__name__}, got {got[0]} {got[1]}"
    return findings.expect(got == (shape, dtype), rule)


def _expect_floats(findings: Findings, name: str, array: Any, cells: int) -> None:
    if _expect_array(findings, name, array, (cells,), np.float64) and not name.startswith("estimate.count"):
        findings.expect((array >= 0).all(), f"{name} must hold no NaN and nothing negative")


FEW = 41
ONE = 17


def check_answer_draws_nothing(trial: Harness, findings: Findings) -> None:
    """Expect that answering does not change the state of the coins' generator, nor global random numbers."""
    rng = trial.generator("draw nothing")
    for devices in (FEW, 1):
        truth, coins = trial.truths(devices, rng=rng), trial.toss(devices, rng=rng)
        for number in range(1, trial.rounds + 1):
            before, everyones = copy.deepcopy(rng.bit_generator.state), global_random_states()
            reports = trial.mechanism.answer(number, truth, coins)
            trial.mechanism.tally(reports)
            trial.mechanism.encode(reports)
            drew = f"answer draws from the generator of the coins in round {number}"
            findings.expect(rng.bit_generator.state == before, drew)
            findings.expect(global_random_states() == everyones, f"answer draws global numbers in round {number}")


def check_others_stay(trial: Harness, findings: Findings) -> None:
    """Expect that changing one device's truth changes no other device's report, in any round."""
    rng = trial.generator("others")
    for start in (np.zeros(FEW, dtype=np.int32), trial.truths(FEW, rng=rng)):
        coins = trial.toss(FEW, rng=rng)
        before = trial.answers(start, coins)
        for device, cell in product((0, ONE, FEW - 1), range(trial.cells + 1)):
            moved = start.copy()
            moved[device] = cell
            changed = (trial.answers(moved, coins) != before).reshape(FEW, -1).any(axis=1)
            changed[device] = False
            fault = f"moving device {device} to {cell} changes the reports of device {int(changed.argmax())}"
            findings.expect(not changed.any(), fault)


def check_early_rounds(trial: Harness, findings: Findings) -> None:
    """Expect that the truth round is the first whose reports depend on the truth."""
    truth_round, first = trial.mechanism.truth_round, trial.first_use
    wrong = f"truth_round is {truth_round}, but no report before round {first} depends on the device's cell"
    findings.expect(first <= truth_round, f"{wrong}: a device that moves is counted where it is in round {first}")
    coins, outside = trial.toss(10 * FEW, rng=trial.generator("early")), np.zeros(10 * FEW, dtype=np.int32)
    for cell in range(1, trial.cells + 1):
        before, early = (
            trial.answers(truth, coins)[:, : truth_round - 1] for truth in (outside, outside + np.int32(cell))
        )
        fault = f"a report before round {truth_round} differs between outside and cell {cell}"
        findings.expect_equal(early, before, fault)


def check_hidden_state(trial: Harness, findings: Findings) -> None:
    """Expect that a method's result depends only on its arguments, not on earlier calls."""
    mechanism, rng = trial.mechanism, trial.generator("hidden state")
    truth, moved = (trial.truths(FEW, rng=rng) for _ in range(2))
    seeds = rng.integers(0, 2**31, 2)
    coins, other = (trial.toss(FEW, rng=np.random.default_rng(seed)) for seed in seeds)
    first = trial.answers(truth, coins)
    findings.expect_equal(trial.answers(truth, coins), first, "the same coins and truth give different reports")
    trial.answers(moved, other)
    trial.answers(moved, coins)
    findings.expect_equal(
        trial.answers(truth, coins), first, "answering for others in between changes a batch's reports"
    )
    turns = []
    for number in range(1, trial.rounds + 1):
        turns.append(mechanism.encode(mechanism.answer(number, truth, coins)))
        mechanism.answer(number, moved, other)
    in_turns = np.stack(turns, axis=1)
    findings.expect_equal(in_turns, first, "two batches that answer in turns change each other's reports")
    backwards = [mechanism.encode(mechanism.answer(r, truth, coins)) for r in range(trial.rounds, 0, -1)]
    late_first = np.stack(backwards[::-1], axis=1)
    findings.expect_equal(late_first, first, "reports depend on the order in which rounds are answered")
    again = trial.answers(truth, trial.toss(FEW, rng=np.random.default_rng(seeds[0])))
    findings.expect_equal(again, first, "the same generator gives different coins the second time")
    once, twice = (mechanism.sample_counts(trial.count(truth), rng=np.random.default_rng(seeds[1])) for _ in range(2))
    findings.expect_equal(once, twice, "the same generator gives different sample_counts the second time")
    if not trial.why_no_estimate:
        asked = (FEW,) * trial.rounds
        sums = [first.sum(axis=0), trial.answers(moved, other).sum(axis=0), first.sum(axis=0)]
        before, _, after = (mechanism.estimate(counts, counted=asked, asked=asked) for counts in sums)
        for name in ESTIMATE:
            fault = f"estimate.{name} of the same counts differs the second time"
            findings.expect_equal(getattr(before, name), getattr(after, name), fault)


def check_nothing_written_on(trial: Harness, findings: Findings) -> None:
    """Expect that no method modifies its arguments: memory, coins, truths, reports and counts stay unchanged."""
    mechanism, rng = trial.mechanism, trial.generator("written on")
    memory = mechanism.enrol(FEW, rng=rng)
    held, state = _snapshot(memory), copy.deepcopy(rng.bit_generator.state)
    coins = mechanism.toss(memory, rng=rng)
    tossed, truth = _snapshot(coins), trial.truths(FEW, rng=rng)
    was = truth.copy()
    first = trial.answers(truth, coins)
    findings.expect_equal(truth, was, "answer modifies the truth")
    findings.expect(_snapshot(coins) == tossed, "answer modifies the coins")
    findings.expect(_snapshot(memory) == held, "toss or answer modifies the memory")
    rng.bit_generator.state = state
    again = trial.answers(was, mechanism.toss(memory, rng=rng))
    findings.expect_equal(again, first, "a device's memory gives different coins after it was used")
    asked, counts, true_counts = (FEW,) * trial.rounds, first.sum(axis=0), trial.count(was)
    if not trial.why_no_estimate:
        mechanism.estimate(counts, counted=asked, asked=asked)
        findings.expect_equal(counts, first.sum(axis=0), "estimate modifies the counts")
    mechanism.sample_counts(true_counts, rng=rng)
    findings.expect_equal(true_counts, trial.count(was), "sample_counts modifies the true counts")


def check_own_coins(trial: Harness, findings: Findings) -> None:
    """Expect that devices of one batch are as independent as single devices, and have the same distribution."""
    lags = {"neighbours": 1, "devices 64 apart": 64, "devices half a batch apart": trial.calls // 2}
    alpha = trial.alpha(findings, 2 * len(lags) * SAME_LAW_COMPARISONS) * SAME_LAW_COMPARISONS
    rng, devices, alone, least = trial.generator("own coins"), 2 * (trial.calls // 2), max(400, trial.calls // 15), 1.0
    for cell in (0, trial.cells):
        batch = row_keys(trial.vectors(np.full(devices, cell, dtype=np.int32), rng=rng))
        lone = np.full(1, cell, dtype=np.int32)
        singles = row_keys(np.concatenate([trial.vectors(lone, rng=rng) for _ in range(2 * alone)]))
        apart = row_keys(np.stack([singles[:alone], singles[alone:]], axis=1))
        for name, lag in lags.items():
            likely = same_law(row_keys(np.stack(pairs_apart(batch, lag), axis=1)), apart)
            least = min(least, likely)
            fault = f"{name} of one batch, all {place_of(cell)}, do not answer as single devices do"
            findings.expect(likely >= alpha, fault)
    findings.figures["least p-value"] = least


def _snapshot(thing: Any) -> bytes:
    """Return the pickled bytes of an object, or empty bytes if it cannot be pickled."""
    try:
        return pickle.dumps(thing)
    except Exception:  # noqa: BLE001 - an object that cannot be pickled is compared by its behaviour only
        return b""


NINE = 9
# A description of the call, and the call.
Attempt = tuple[str, Callable[[], Any]]


def check_bad_inputs(trial: Harness, findings: Findings) -> None:
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
    truth = np.zeros(NINE, dtype=np.int32)
    coins = trial.toss(NINE, rng=rng)
    reports = mechanism.answer(1, truth, coins)
    truths = {
        "a negative cell": truth - np.int32(1),
        "a cell beyond the last": np.where(np.arange(NINE) == 4, trial.cells + 1, truth).astype(np.int32),
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
    yield "tally with too short a mask", partial(mechanism.tally, reports, np.ones(NINE - 1, dtype=np.bool_))
    yield "tally with a mask of integers", partial(mechanism.tally, reports, np.ones(NINE, dtype=int))


def _bad_counts(trial: Harness) -> Iterator[Attempt]:
    """Yield calls with wrong counts, numbers of devices, and true counts."""
    mechanism, rng = trial.mechanism, trial.generator("bad counts")
    counts, nine = np.zeros((trial.rounds, *trial.shape), dtype=np.int64), (NINE,) * trial.rounds
    if not trial.why_no_estimate:
        cases: dict[str, tuple[Any, Any, Any]] = {
            "counts of another shape": (counts[:, :-1], nine, nine),
            "float counts": (counts.astype(np.float64), nine, nine),
            "more counted than asked": (counts, (NINE + 1,) * trial.rounds, nine),
            "fewer than none counted": (counts, (-1,) * trial.rounds, nine),
            "too many rounds asked": (counts, nine, (*nine, NINE)),
        }
        for name, (bad, counted, asked) in cases.items():
            yield f"estimate from {name}", partial(mechanism.estimate, bad, counted=counted, asked=asked)
    good = np.full(trial.cells + 1, 2, dtype=np.int64)
    truths = {"too few true counts": good[:-1], "negative true counts": -good, "float true counts": good.astype(float)}
    for name, bad in truths.items():
        yield f"sample_counts of {name}", partial(mechanism.sample_counts, bad, rng=rng)
        if trial.states_theory and not trial.why_no_estimate:
            yield f"std_error of {name}", partial(mechanism.std_error, bad)
