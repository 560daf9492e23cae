"""The simulator: a city, a fleet, campaigns that query it, and what each party learns."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.api import run
    from simulator.experiment.result import RunResult

__all__ = ["RunResult", "run"]


def __getattr__(name: str) -> Any:  # PEP 562
    """Load the front door when somebody knocks: pandas, numba and plotly take a second to import."""
    if name == "run":
        from simulator.api import run  # noqa: PLC0415

        return run
    if name == "RunResult":
        from simulator.experiment.result import RunResult  # noqa: PLC0415

        return RunResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
