"""Bad inputs: each is refused, with an error that names the field."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mechanisms.checks.report import Findings
from mechanisms.checks.trial import Trial

DEVICES = 9

# What is called, the field at fault, and the call.
Attempt = tuple[str, str, Callable[[], Any]]


def check_bad_inputs_are_refused(trial: Trial, findings: Findings) -> None:
    """Expect a ValueError or TypeError of each bad input, whose message names the field; none passes in silence."""
    for what, field, call in (*_answers(trial), *_tallies(trial), *_estimates(trial)):
        try:
            call()
        except (ValueError, TypeError) as error:
            findings.expect(field in str(error), f"{what}: the error does not name {field!r}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever else is raised is the fault looked for
            findings.fault(f"{what}: raises {type(error).__name__}, which is no ValueError: {error}")
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
        (f"answer of {name} in round {number}", "truth", _later(mechanism.answer, number, bad, coins))
        for number in range(1, trial.rounds + 1)
        for name, bad in truths.items()
    ]
    rounds: list[Attempt] = [
        (f"answer of round {number}", "round", _later(mechanism.answer, number, truth, coins))
        for number in (0, trial.rounds + 1)
    ]
    return [*attempts, *rounds, ("enrol of −1 devices", "n", _later(mechanism.enrol, -1, rng=rng))]


def _tallies(trial: Trial) -> list[Attempt]:
    """Wrong masks."""
    mechanism, rng = trial.mechanism, trial.generator("bad masks")
    reports = mechanism.answer(1, np.zeros(DEVICES, dtype=np.int32), trial.toss(DEVICES, rng=rng))
    masks = {
        "too short a mask": np.ones(DEVICES - 1, dtype=np.bool_),
        "a mask of integers": np.ones(DEVICES, dtype=int),
    }
    return [(f"tally with {name}", "where", _later(mechanism.tally, reports, mask)) for name, mask in masks.items()]


def _estimates(trial: Trial) -> list[Attempt]:
    """Wrong counts, totals and truths counted."""
    mechanism, rng = trial.mechanism, trial.generator("bad counts")
    counts = np.zeros((trial.rounds, *trial.shape), dtype=np.int64)
    nine, attempts = (DEVICES,) * trial.rounds, []
    if not trial.why_no_estimate:
        cases: dict[str, tuple[str, Any, Any, Any]] = {
            "counts of another shape": ("counts", counts[:, :-1], nine, nine),
            "float counts": ("counts", counts.astype(np.float64), nine, nine),
            "more counted than asked": ("counted", counts, (DEVICES + 1,) * trial.rounds, nine),
            "fewer than none counted": ("counted", counts, (-1,) * trial.rounds, nine),
            "too many rounds asked": ("asked", counts, nine, (*nine, DEVICES)),
        }
        for name, (field, bad, counted, asked) in cases.items():
            call = _later(mechanism.estimate, bad, counted=counted, asked=asked)
            attempts.append((f"estimate from {name}", field, call))
    good = np.full(trial.cells + 1, 2, dtype=np.int64)
    truths = {"too few true counts": good[:-1], "negative true counts": -good, "float true counts": good.astype(float)}
    for name, bad in truths.items():
        attempts.append((f"sample_counts of {name}", "true_counts", _later(mechanism.sample_counts, bad, rng=rng)))
        if trial.states_theory and not trial.why_no_estimate:
            attempts.append((f"std_error of {name}", "true_counts", _later(mechanism.std_error, bad)))
    return attempts


def _later(method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Callable[[], Any]:
    """Return a call still to be made."""
    return lambda: method(*arguments, **keywords)
