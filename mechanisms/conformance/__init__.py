"""Conformance kit: what every mechanism must satisfy, one of this project's or a user's."""

from mechanisms.conformance.findings import CheckResult, ConformanceError, ConformanceReport
from mechanisms.conformance.runner import check_mechanism

__all__ = ["CheckResult", "ConformanceError", "ConformanceReport", "check_mechanism"]
