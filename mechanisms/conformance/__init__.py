"""Conformance kit: checks that every mechanism must pass, whether it is part of this project or a user's own."""

from mechanisms.conformance.findings import CheckResult, ConformanceError, ConformanceReport
from mechanisms.conformance.runner import check_mechanism
