"""Tables, figures and the report a person reads; it knows a run only by its finished directory."""

from simulator.reporting.progress import Progress
from simulator.reporting.report import build_report, write_report
from simulator.reporting.run_reader import FinishedRun, UnfinishedRunError
from simulator.reporting.terminal_summary import print_summary

__all__ = [
    "FinishedRun",
    "Progress",
    "UnfinishedRunError",
    "build_report",
    "print_summary",
    "write_report",
]
