"""Conformance kit: checks that every mechanism must pass, whether it is part of this project or a user's own."""

from simulator.kits.mechanisms.findings import CheckResult, ConformanceError, ConformanceReport
from simulator.kits.mechanisms.runner import check_mechanism
