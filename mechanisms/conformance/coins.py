"""Checks that coins are drawn before the truth is known, and that devices keep only declared state."""

import copy
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.conformance.bounds import SAME_LAW_COMPARISONS, row_keys, same_law
from mechanisms.conformance.findings import Findings
from mechanisms.conformance.harness import Harness

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


def check_others_reports_stay(trial: Harness, findings: Findings) -> None:
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
        same = np.array_equal(trial.answers(outside + np.int32(cell), coins)[:, :early], before)
        findings.expect(same, f"a report before round {early + 1} differs between outside and cell {cell}")


def check_no_hidden_state(trial: Harness, findings: Findings) -> None:
    """Expect that a method's result depends only on its arguments, not on earlier calls."""
    mechanism, rng = trial.mechanism, trial.generator("hidden state")
    one, two = (rng.integers(0, trial.cells + 1, FEW).astype(np.int32) for _ in range(2))
    seeds = rng.integers(0, 2**31, 2)
    coins, other = (trial.toss(FEW, rng=np.random.default_rng(seed)) for seed in seeds)
    first = trial.answers(one, coins)
    findings.expect(np.array_equal(trial.answers(one, coins), first), "the same coins and truth give other reports")
    trial.answers(two, other)
    trial.answers(two, coins)
    same = np.array_equal(trial.answers(one, coins), first)
    findings.expect(same, "answering for others in between changes a batch's reports")
    turns = []
    for number in range(1, trial.rounds + 1):
        turns.append(mechanism.encode(mechanism.answer(number, one, coins)))
        mechanism.answer(number, two, other)
    same = np.array_equal(np.stack(turns, axis=1), first)
    findings.expect(same, "two batches that answer in turns change each other's reports")
    backwards = [mechanism.encode(mechanism.answer(r, one, coins)) for r in range(trial.rounds, 0, -1)]
    findings.expect(
        np.array_equal(np.stack(backwards[::-1], axis=1), first),
        "reports hang on the order in which rounds are answered",
    )
    again = trial.answers(one, trial.toss(FEW, rng=np.random.default_rng(seeds[0])))
    findings.expect(np.array_equal(again, first), "the same generator tosses other coins the second time")
    true_counts = np.bincount(one, minlength=trial.cells + 1).astype(np.int64)
    sampled = [mechanism.sample_counts(true_counts, rng=np.random.default_rng(seeds[1])) for _ in range(2)]
    findings.expect(np.array_equal(*sampled), "the same generator gives other sample_counts the second time")
    if not trial.why_no_estimate:
        asked = (FEW,) * trial.rounds
        sums = [first.sum(axis=0), trial.answers(two, other).sum(axis=0), first.sum(axis=0)]
        estimates = [mechanism.estimate(counts, counted=asked, asked=asked) for counts in sums]
        for name in ("count", "std_error", "lower", "upper"):
            same = np.array_equal(getattr(estimates[0], name), getattr(estimates[2], name))
            findings.expect(same, f"estimate.{name} of the same counts differs the second time")


def check_nothing_is_written_on(trial: Harness, findings: Findings) -> None:
    """Expect that no method modifies its arguments: memory, coins, truths, reports and counts stay unchanged."""
    mechanism, rng = trial.mechanism, trial.generator("written on")
    memory = mechanism.enrol(FEW, rng=rng)
    held = _snapshot(memory)
    state = copy.deepcopy(rng.bit_generator.state)
    coins = mechanism.toss(memory, rng=rng)
    tossed, truth = _snapshot(coins), rng.integers(0, trial.cells + 1, FEW).astype(np.int32)
    was = truth.copy()
    first = trial.answers(truth, coins)
    findings.expect(np.array_equal(truth, was), "answer writes on the truth")
    findings.expect(_snapshot(coins) == tossed, "answer writes on the coins")
    findings.expect(_snapshot(memory) == held, "toss or answer writes on the memory")
    rng.bit_generator.state = state
    again = trial.answers(was, mechanism.toss(memory, rng=rng))
    findings.expect(np.array_equal(again, first), "a device's memory tosses other coins after it was used")
    asked, counts = (FEW,) * trial.rounds, first.sum(axis=0)
    kept = counts.copy()
    if not trial.why_no_estimate:
        mechanism.estimate(counts, counted=asked, asked=asked)
        findings.expect(np.array_equal(counts, kept), "estimate writes on the counts")
    true_counts = np.bincount(was, minlength=trial.cells + 1).astype(np.int64)
    mechanism.sample_counts(true_counts, rng=rng)
    same = np.array_equal(true_counts, np.bincount(was, minlength=trial.cells + 1))
    findings.expect(same, "sample_counts writes on the true counts")


def check_devices_toss_their_own(trial: Harness, findings: Findings) -> None:
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
                likely >= alpha, f"{name} of one batch, all {_place(cell)}, do not answer as lone devices do"
            )
    findings.figures["least p-value"] = least


def _pairs(keys: NDArray[np.int64], lag: int) -> NDArray[np.int64]:
    """Return disjoint pairs of devices a lag apart, (pairs, 2)."""
    whole = keys[: len(keys) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
    return np.stack([whole[:, 0].ravel(), whole[:, 1].ravel()], axis=1)


def _place(cell: int) -> str:
    return f"in cell {cell}" if cell else "outside"


def _snapshot(thing: Any) -> bytes:
    """Return the pickled bytes of an object, or empty bytes if it cannot be pickled."""
    try:
        return pickle.dumps(thing)
    except Exception:  # noqa: BLE001 - what cannot be pickled is compared by what it does only
        return b""


def _global_state() -> bytes:
    """Return the state of numpy's global generator."""
    return pickle.dumps(np.random.get_state())  # noqa: NPY002 - to see that nobody uses it
