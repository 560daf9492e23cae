"""Checks of a mechanism's attributes, shapes and dtypes, and that bad inputs raise an error with a message."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mechanisms.conformance.findings import Findings
from mechanisms.conformance.harness import MOST_CELLS, Harness
from mechanisms.local.mechanism import LocalMechanism

REQUIRED = (
    *("cells", "rounds", "truth_round", "tally_shape"),
    *("enrol", "toss", "answer", "encode", "tally", "estimate", "sample_counts", "claim"),
)
OPTIONAL = ("std_error", "sample_law", "batch", "warnings")
LAWS = ("exact joint", "exact per-cell marginals")
SOME = 57


def check_attributes(mechanism: Any, findings: Findings) -> None:
    """Expect every attribute to exist and to be of the right kind."""
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
        findings.expect(isinstance(mechanism, LocalMechanism), "is no LocalMechanism")
    law = getattr(mechanism, "sample_law", LAWS[1])
    findings.expect(law in LAWS, f"sample_law must be one of {LAWS}, got {law!r}")
    if not findings.faults:
        findings.expect(
            mechanism.cells <= MOST_CELLS,
            f"cells must be at most {MOST_CELLS} to be checked, got {mechanism.cells}: check a smaller instance",
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
            if not _expect_counts(findings, f"encode {where}", vectors, (devices, *trial.shape)):
                continue
            for name, masked, chosen in (("", (), vectors), (" of a mask", (mask,), vectors[mask])):
                tally = mechanism.tally(reports, *masked)
                if _expect_counts(findings, f"tally{name} {where}", tally, trial.shape):
                    same = np.array_equal(tally, chosen.sum(axis=0))
                    findings.expect(same, f"tally{name} is not the sum of the encodings {where}")
            some = mechanism.encode(reports[mask])
            findings.expect(np.array_equal(some, vectors[mask]), f"reports[mask] are not those devices' {where}")


def check_estimates(trial: Harness, findings: Findings) -> None:
    """Expect valid estimates, stated errors and sampled counts for a crowd, for one device, and for no device."""
    mechanism, rng = trial.mechanism, trial.generator("estimates")
    for devices in (SOME, 1, 0):
        truth = rng.integers(0, trial.cells + 1, devices).astype(np.int32)
        true_counts = np.bincount(truth, minlength=trial.cells + 1).astype(np.int64)
        asked = (devices,) * trial.rounds
        where = f"of {devices} devices"
        sampled = mechanism.sample_counts(true_counts, rng=rng)
        _expect_counts(findings, f"sample_counts {where}", sampled, (trial.rounds, *trial.shape))
        if trial.states_theory and not trial.why_no_estimate:
            _expect_floats(findings, f"std_error {where}", mechanism.std_error(true_counts), trial.cells)
        if trial.why_no_estimate:
            findings.note(trial.why_no_estimate)
            continue
        counts = trial.vectors(truth, rng=rng).sum(axis=0)
        for counted in (asked, tuple(n // 2 for n in asked), (0,) * trial.rounds):
            counts_heard = counts if counted == asked else np.zeros_like(counts)
            if counted not in (asked, (0,) * trial.rounds):
                counts_heard = trial.vectors(truth[: counted[0]], rng=rng).sum(axis=0)
            _check_estimate(trial, findings, counts_heard, counted, asked)


def _check_estimate(
    trial: Harness, findings: Findings, counts: Any, counted: tuple[int, ...], asked: tuple[int, ...]
) -> None:
    """Expect four arrays that are consistent with each other, from one query's counts."""
    where = f"with {counted[0]} of {asked[0]} devices heard"
    estimate = trial.mechanism.estimate(counts, counted=counted, asked=asked)
    for name in ("count", "std_error", "lower", "upper"):
        _expect_floats(findings, f"estimate.{name} {where}", getattr(estimate, name, None), trial.cells)
    if findings.faults:
        return
    findings.expect(np.isfinite(estimate.count).all(), f"estimate.count is not finite {where}")
    findings.expect((estimate.lower <= estimate.upper).all(), f"estimate.lower exceeds upper {where}")
    inside = (estimate.lower >= 0).all() and (estimate.upper <= asked[trial.mechanism.truth_round - 1]).all()
    findings.expect(inside, f"the interval leaves 0…{asked[0]}, the devices asked, {where}")


def _expect_counts(findings: Findings, name: str, array: Any, shape: tuple[int, ...]) -> bool:
    found = (getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__))
    return findings.expect(found == (shape, np.int64), f"{name} must be {shape} int64, got {found[0]} {found[1]}")


def _expect_floats(findings: Findings, name: str, array: Any, cells: int) -> bool:
    found = (getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__))
    if not findings.expect(
        found == ((cells,), np.float64), f"{name} must be {(cells,)} float64, got {found[0]} {found[1]}"
    ):
        return False
    return findings.expect(
        name.startswith("estimate.count") or bool((array >= 0).all()),
        f"{name} must hold no NaN and nothing negative",
    )


DEVICES = 9

# A description of the call, and the call.
Attempt = tuple[str, Callable[[], Any]]


def check_bad_inputs_are_refused(trial: Harness, findings: Findings) -> None:
    """Expect a ValueError or TypeError with a message for each bad input."""
    for what, call in (*_answers(trial), *_tallies(trial), *_estimates(trial)):
        try:
            call()
        except (ValueError, TypeError) as error:
            findings.expect(str(error).strip(), f"{what}: raises {type(error).__name__} without a message")
        except Exception as error:  # noqa: BLE001 - whatever else is raised is the fault looked for
            findings.fault(f"{what}: raises {type(error).__name__}, neither ValueError nor TypeError: {error}")
        else:
            findings.fault(f"{what}: passes in silence")


def _answers(trial: Harness) -> list[Attempt]:
    """Return calls with wrong truths and rounds."""
    mechanism, rng = trial.mechanism, trial.generator("bad truths")
    truth = np.zeros(DEVICES, dtype=np.int32)
    coins = trial.toss(DEVICES, rng=rng)
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
    attempts: list[Attempt] = [
        (f"answer of {name} in round {number}", _later(mechanism.answer, number, bad, coins))
        for number in range(1, trial.rounds + 1)
        for name, bad in truths.items()
    ]
    rounds: list[Attempt] = [
        (f"answer of round {number}", _later(mechanism.answer, number, truth, coins))
        for number in (0, trial.rounds + 1)
    ]
    return [*attempts, *rounds, ("enrol of −1 devices", _later(mechanism.enrol, -1, rng=rng))]


def _tallies(trial: Harness) -> list[Attempt]:
    """Return calls with wrong masks."""
    mechanism, rng = trial.mechanism, trial.generator("bad masks")
    reports = mechanism.answer(1, np.zeros(DEVICES, dtype=np.int32), trial.toss(DEVICES, rng=rng))
    masks = {
        "too short a mask": np.ones(DEVICES - 1, dtype=np.bool_),
        "a mask of integers": np.ones(DEVICES, dtype=int),
    }
    return [(f"tally with {name}", _later(mechanism.tally, reports, mask)) for name, mask in masks.items()]


def _estimates(trial: Harness) -> list[Attempt]:
    """Return calls with wrong counts, numbers of devices, and true counts."""
    mechanism, rng = trial.mechanism, trial.generator("bad counts")
    counts = np.zeros((trial.rounds, *trial.shape), dtype=np.int64)
    nine, attempts = (DEVICES,) * trial.rounds, []
    if not trial.why_no_estimate:
        cases: dict[str, tuple[Any, Any, Any]] = {
            "counts of another shape": (counts[:, :-1], nine, nine),
            "float counts": (counts.astype(np.float64), nine, nine),
            "more counted than asked": (counts, (DEVICES + 1,) * trial.rounds, nine),
            "fewer than none counted": (counts, (-1,) * trial.rounds, nine),
            "too many rounds asked": (counts, nine, (*nine, DEVICES)),
        }
        for name, (bad, counted, asked) in cases.items():
            call = _later(mechanism.estimate, bad, counted=counted, asked=asked)
            attempts.append((f"estimate from {name}", call))
    good = np.full(trial.cells + 1, 2, dtype=np.int64)
    truths = {"too few true counts": good[:-1], "negative true counts": -good, "float true counts": good.astype(float)}
    for name, bad in truths.items():
        attempts.append((f"sample_counts of {name}", _later(mechanism.sample_counts, bad, rng=rng)))
        if trial.states_theory and not trial.why_no_estimate:
            attempts.append((f"std_error of {name}", _later(mechanism.std_error, bad)))
    return attempts


def _later(method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[[], Any]:
    """Return a function that makes the call later."""
    return lambda: method(*arguments, **keywords)
