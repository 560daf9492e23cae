"""Base of the contracts of roles: abstract test classes that run in pytest and that `crowdveil check` runs too.

A contract's methods ``test_…`` are its checks. A check records every fault that it finds; in pytest the test then fails
with all of them, and `Contract.report` has the results of all checks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Self
from unittest import SkipTest

from simulator.kits.findings import CheckResult, ConformanceReport, Findings

Check = Callable[[Any, Findings], None]
"""A check of a trial of the object under test, and where the check records what it finds."""


def reported(name: str, text: str, check: Check | None = None) -> Callable[[Any], None]:
    """Return the test of a check, which fails with every fault found and is skipped if the check is.

    Parameters
    ----------
    name
        Name of the check.
    text
        What the check expects.
    check
        The check, if it can be run by itself.
    """

    def test(self: Contract) -> None:
        result = self.result(name)
        if result.status == "skipped":
            raise SkipTest(result.detail)
        if not result.passed:
            raise AssertionError(result.detail)

    test.__name__, test.__doc__, test.__dict__["check"] = f"test_{name}", text, check
    return test


def checked(check: Check) -> Callable[[Any], None]:
    """Return the test of a check ``check_…`` that can be run by itself."""
    return reported(check.__name__.removeprefix("check_"), check.__doc__ or "", check)


class Contract(ABC):
    """What a class of a role must satisfy, as a test class; a subclass supplies the object under test by `make`.

    Attributes
    ----------
    seed
        Seed of all random numbers: the same seed gives the same report.
    level
        Greatest probability that a sound object fails any check.
    """

    seed: int = 0
    level: float = 1e-6

    @abstractmethod
    def make(self, *given: Any, **named: Any) -> Any:
        """Return the object under test."""

    @abstractmethod
    def report(self) -> ConformanceReport:
        """Run all checks, and return their results with what was checked."""

    @classmethod
    def of(cls, make: Callable[..., Any], **settings: Any) -> Self:
        """Return the contract of what `make` makes, with these attributes in place of the class's.

        Raises
        ------
        TypeError
            If the contract has no attribute of such a name.
        """
        if unknown := [name for name in settings if not hasattr(cls, name)]:
            raise TypeError(f"{cls.__name__} has no setting {', '.join(unknown)}")
        contract: Self = type(cls.__name__, (cls,), {"make": staticmethod(make), **settings})()
        return contract

    @classmethod
    def checks(cls) -> dict[str, Any]:
        """Return the checks by name, in order; None for a check that is run with others."""
        tests = {name: test for base in reversed(cls.__mro__) for name, test in vars(base).items()}
        return {name.removeprefix("test_"): test.check for name, test in tests.items() if hasattr(test, "check")}

    def report_of(self, name: str, findings: Mapping[str, Findings], *, cells: int) -> ConformanceReport:
        """Return the report of an object of this name, with the result of each check, by what the check found."""
        results = tuple(found.result(check) for check, found in findings.items())
        return ConformanceReport(name, self.seed, self.level, results, (cells,))

    def result(self, name: str) -> CheckResult:
        """Return the result of one check."""
        return _report(type(self))[name]


@lru_cache(maxsize=1)
def _report(contract: type[Contract]) -> ConformanceReport:
    """Return the report that the tests of a class share."""
    return contract().report()
