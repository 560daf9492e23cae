"""Bad inputs: each is refused, with an error that has a message."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial

DEVICES = 9

# What is called, and the call.
Attempt = tuple[str, Callable[[], Any]]


def check_bad_inputs_are_refused(trial: Trial, findings: Findings) -> None:
    """Expect a ValueError or TypeError with some message of each bad input; none passes in silence."""
    for what, call in (*_answers(trial), *_tallies(trial), *_estimates(trial)):
        try:
            call()
        except (ValueError, TypeError) as error:
            findings.expect(str(error).strip(), f"{what}: raises {type(error).__name__} without a message")
        except Exception as error:  # noqa: BLE001 - whatever else is raised is the fault looked for
            findings.fault(f"{what}: raises {type(error).__name__}, neither ValueError nor TypeError: {error}")
        else:
            findings.fault(f"{what}: passes in silence")


def _answers(trial: Trial) -> list[Attempt]:
    """Wrong truths and rounds."""
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


def _tallies(trial: Trial) -> list[Attempt]:
    """Wrong masks."""
    mechanism, rng = trial.mechanism, trial.generator("bad masks")
    reports = mechanism.answer(1, np.zeros(DEVICES, dtype=np.int32), trial.toss(DEVICES, rng=rng))
    masks = {
        "too short a mask": np.ones(DEVICES - 1, dtype=np.bool_),
        "a mask of integers": np.ones(DEVICES, dtype=int),
    }
    return [(f"tally with {name}", _later(mechanism.tally, reports, mask)) for name, mask in masks.items()]


def _estimates(trial: Trial) -> list[Attempt]:
    """Wrong counts, totals and truths counted."""
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
    """Return a call still to be made."""
    return lambda: method(*arguments, **keywords)
