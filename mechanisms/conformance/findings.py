"""Findings of one check, and the report of all checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Status = Literal["passed", "failed", "skipped"]
Trial = TypeVar("Trial")

# Number of faults that a check lists; for the rest, only the number is stated.
SPELLED_OUT = 4


class ConformanceError(ValueError):
    """Raised if a mechanism fails a check; `report` has every failed check and the reason."""

    def __init__(self, report: "ConformanceReport") -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        """Return the mechanism and each failed check as text."""
        failed = "\n".join(f"- {result.name}: {result.detail}" for result in self.report.failures)
        return (
            f"{self.report.mechanism} fails {len(self.report.failures)} of {len(self.report.results)} checks:\n{failed}"
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Parameters
    ----------
    name : str
        Name of the check, as in the table of `mechanisms.conformance.runner`.
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
        failed = [status for status in (self.status, other.status) if status == "failed"]
        status: Status = "failed" if failed else self.status
        details = [self.detail] if self.detail else []
        if other.detail not in ("", self.detail):
            details.append(f"{where}: {other.detail}")
        figures = {**self.figures, **{f"{name} {where}": value for name, value in other.figures.items()}}
        counts = [int(result.figures.get("comparisons", 0)) for result in (self, other)]
        if any(counts):
            spent = sum(
                n * float(result.figures.get("alpha", 0)) for n, result in zip(counts, (self, other), strict=True)
            )
            figures["comparisons"], figures["alpha"] = sum(counts), spent / sum(counts)
        return CheckResult(self.name, status, "; ".join(details), figures)


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The results of all checks of one mechanism.

    Parameters
    ----------
    mechanism : str
        The mechanism's `repr`.
    seed : int
        Seed of all random numbers.
    level : float
        Greatest probability that a correct mechanism fails any check.
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
    def comparisons(self) -> int:
        """Number of statistical comparisons made by all checks together."""
        return sum(int(result.figures.get("comparisons", 0)) for result in self.results)

    def __getitem__(self, name: str) -> CheckResult:
        """Return the result of one check."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(name)

    def __str__(self) -> str:
        """Return the verdict, then each check with its faults and notes, one line each."""
        verdict = "passes" if self.passed else f"fails {len(self.failures)} of {len(self.results)} checks"
        width = max((len(result.name) for result in self.results), default=0)
        lines = [f"  {r.status:<7}  {r.name:<{width}}  {r.detail}".rstrip() for r in self.results]
        limits = [self.limits] if self.limits else []
        first = f"{self.mechanism} {verdict} (seed {self.seed}, false alarms below {self.level:g})"
        return "\n".join([first, *lines, *limits])

    def raise_for_failures(self) -> None:
        """Raise a `ConformanceError` if any check failed."""
        if not self.passed:
            raise ConformanceError(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {
            "mechanism": self.mechanism,
            "passed": self.passed,
            "seed": self.seed,
            "level": self.level,
            "cells": list(self.cells),
            "comparisons": self.comparisons,
            "limits": self.limits,
            "checks": [
                {"name": r.name, "status": r.status, "detail": r.detail, "figures": dict(r.figures)}
                for r in self.results
            ],
        }


class SkippedCheckError(Exception):
    """Raised by a check that does not apply to the mechanism, with the reason."""


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

    def result(self, name: str) -> CheckResult:
        """Return the result of the check from what was recorded."""
        faults = self.faults[:SPELLED_OUT]
        if len(self.faults) > SPELLED_OUT:
            faults.append(f"and {len(self.faults) - SPELLED_OUT} more")
        status: Status = "failed" if self.faults else ("passed" if self.applies else "skipped")
        return CheckResult(name, status, "; ".join(faults + self.notes), dict(self.figures))


def run_check(name: str, check: Callable[[Trial, Findings], None], trial: Trial) -> CheckResult:
    """Run one check; an exception that the user's code raises is recorded as a fault."""
    findings = Findings()
    try:
        check(trial, findings)
    except SkippedCheckError as reason:
        findings.applies = False
        findings.note(str(reason))
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        findings.fault(f"raises {type(error).__name__}: {error}")
    return findings.result(name)
