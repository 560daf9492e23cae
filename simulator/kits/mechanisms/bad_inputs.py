"""Check that a mechanism refuses bad inputs with a message."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from simulator.kits.findings import Findings
from simulator.kits.mechanisms.harness import Harness

DEVICES = 9

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
    truth = np.zeros(DEVICES, dtype=np.int32)
    coins = trial.toss(DEVICES, rng=rng)
    reports = mechanism.answer(1, truth, coins)
    truths = {
        "a negative cell": truth - np.int32(1),
        "a cell beyond the last": np.where(np.arange(DEVICES) == 4, trial.cells + 1, truth).astype(np.int32),
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
