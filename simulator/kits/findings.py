"""Findings of one check, and the report of all checks: of mechanisms, and of users' parts of a simulation."""

import pickle
import random  # noqa: TID251 - to see whether a user's code draws from it
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

Status = Literal["passed", "failed", "skipped"]

# Number of faults that a check lists; for the rest, only the number is stated.
SPELLED_OUT = 4


class ConformanceError(ValueError):
    """Raised if what is checked fails; `report` has every failed check and the reason."""

    def __init__(self, report: "ConformanceReport") -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        """Return what was checked and each failed check as text."""
        failed = [f"- {result.name}: {result.detail}" for result in self.report.failures]
        return "\n".join([f"{self.report.mechanism} {self.report.verdict}:", *failed])


def words_of(subject: object) -> str:
    """Return the `repr` of what is checked in one line; the name of its type if it has none or raises an error."""
    try:
        return (
            " ".join(repr(subject).split()) if type(subject).__repr__ is not object.__repr__ else type(subject).__name__
        )
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return type(subject).__name__


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Parameters
    ----------
    name : str
        Name of the check, as in the table of the kit's module.
    status : {"passed", "failed", "skipped"}
        "skipped" if the check does not apply or could not be run; never for a fault.
    detail : str
        What is wrong, or what was left out and why; may be empty.
    figures : mapping of str to float, int or str
        Measured numbers: comparisons, the level of each, the worst of them.
    """

    name: str
    status: Status
    detail: str = ""
    figures: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether no fault was found."""
        return self.status != "failed"

    def join(self, other: "CheckResult", where: str) -> "CheckResult":
        """Return one combined result of two runs of a check; details of the other run follow `where`."""
        status: Status = "failed" if not other.passed else self.status
        further = f"{where}: {other.detail}" if other.detail not in ("", self.detail) else ""
        figures = {**self.figures, **{f"{name} {where}": value for name, value in other.figures.items()}}
        compared = [(int(r.figures.get("comparisons", 0)), float(r.figures.get("alpha", 0))) for r in (self, other)]
        if comparisons := sum(number for number, _ in compared):
            spent = sum(number * alpha for number, alpha in compared)
            figures["comparisons"], figures["alpha"] = comparisons, spent / comparisons
        return CheckResult(self.name, status, "; ".join(filter(None, (self.detail, further))), figures)


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The results of all checks of one mechanism, or of another part of a simulation.

    Parameters
    ----------
    mechanism : str
        What was checked: the mechanism's `repr`, or the name of the class.
    seed : int
        Seed of all random numbers.
    level : float
        Greatest probability that a correct mechanism fails any check; 0 if none is statistical.
    results : tuple of CheckResult
        In the order in which the checks were run.
    cells : tuple of int
        Numbers of cells at which the checks were run; empty if none could be run.
    limits : str
        What checks of this size cannot see, in one sentence; empty if it is not stated.
    """

    mechanism: str
    seed: int
    level: float
    results: tuple[CheckResult, ...]
    cells: tuple[int, ...]
    limits: str = ""

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if not result.passed)

    @property
    def verdict(self) -> str:
        """Whether it passes every check, or how many checks it fails."""
        return "passes every check" if self.passed else f"fails {len(self.failures)} of {len(self.results)} checks"

    @property
    def comparisons(self) -> int:
        """Number of statistical comparisons made by all checks together."""
        return sum(int(result.figures.get("comparisons", 0)) for result in self.results)

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of one check."""
        return {result.name: result for result in self.results}[name]

    def __str__(self) -> str:
        """Return the verdict, then each check with its faults and notes, one line each."""
        width = max(len(result.name) for result in self.results)
        lines = [f"  {r.status:<7}  {r.name:<{width}}  {r.detail}".rstrip() for r in self.results]
        first = f"{self.mechanism} {self.verdict} (seed {self.seed}, false alarms below {self.level:g})"
        return "\n".join(filter(None, [first, *lines, self.limits]))

    def raise_for_failures(self) -> None:
        """Raise a `ConformanceError` if any check failed."""
        if not self.passed:
            raise ConformanceError(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        form = {name: getattr(self, name) for name in ("mechanism", "passed", "seed", "level")}
        form |= {"cells": list(self.cells), "comparisons": self.comparisons, "limits": self.limits}
        return {**form, "checks": [asdict(result) for result in self.results]}


class Findings:
    """Record of the faults, notes and figures of a check while it runs."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.notes: list[str] = []
        self.figures: dict[str, float | int | str] = {}
        self.applies = True

    def expect(self, holds: object, fault: str) -> bool:
        """Record a fault unless the condition holds; return whether it holds."""
        if not holds:
            self.fault(fault)
        return bool(holds)

    def expect_equal(self, one: NDArray[Any], other: NDArray[Any], fault: str) -> None:
        """Record a fault unless two arrays have the same shape and elements."""
        self.expect(np.array_equal(one, other), fault)

    def fault(self, text: str) -> None:
        """Record a fault."""
        self.faults.append(text)

    def note(self, text: str) -> None:
        """Record a remark that is not a fault, once."""
        if text not in self.notes:
            self.notes.append(text)

    def call(self, function: Callable[..., object], *given: Any) -> None:
        """Call a function: an exception of the user's code is a fault, and `SkipTest` says why not to check."""
        try:
            function(*given)
        except SkipTest as reason:
            self.applies = False
            self.note(str(reason))
        except Exception as error:  # noqa: BLE001 - a user's class may raise anything
            self.fault(f"raises {type(error).__name__}: {error}")

    def result(self, name: str) -> CheckResult:
        """Return the result of the check from what was recorded."""
        more = [f"and {len(self.faults) - SPELLED_OUT} more"] if len(self.faults) > SPELLED_OUT else []
        status: Status = "failed" if self.faults else ("passed" if self.applies else "skipped")
        detail = "; ".join([*self.faults[:SPELLED_OUT], *more, *self.notes])
        return CheckResult(name, status, detail, dict(self.figures))


def global_random_states() -> bytes:
    """Return the states of the global random numbers of NumPy and Python, to see whether a user's code draws any."""
    return pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002 - to see whether they change


def run_check(name: str, check: Callable[[Any, Findings], None], trial: Any) -> CheckResult:
    """Run one check; an exception that the user's code raises is recorded as a fault."""
    findings = Findings()
    findings.call(check, trial, findings)
    return findings.result(name)
