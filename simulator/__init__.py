"""The simulator: a city, a fleet of vehicles, campaigns that query the fleet, and what each party learns."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.api import run
    from simulator.experiment.result import RunResult

__all__ = ["RunResult", "run"]


def __getattr__(name: str) -> Any:  # PEP 562
    """Import the public names on first access: importing pandas, numba and plotly takes a second."""
    if name == "run":
        from simulator.api import run  # noqa: PLC0415

        return run
    if name == "RunResult":
        from simulator.experiment.result import RunResult  # noqa: PLC0415

        return RunResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
