"""Tables, figures and the HTML report of a run; the only input is the directory of a finished run."""

from simulator.reporting.report import PageError, build_report, write_report
from simulator.reporting.terminal_summary import Progress, print_summary
from simulator.results.run import RunResult
from simulator.results.store import UnfinishedRunError

__all__ = [
    "PageError",
    "Progress",
    "RunResult",
    "UnfinishedRunError",
    "build_report",
    "print_summary",
    "write_report",
]
