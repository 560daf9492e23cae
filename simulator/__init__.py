"""The simulator: a city, a fleet of vehicles, campaigns that query the fleet, and what each party learns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.api import run
    from simulator.experiment.result import RunResult

    __version__: str

__all__ = ["RunResult", "__version__", "run"]


def __getattr__(name: str) -> Any:  # PEP 562
    """Import the public names on first access: importing pandas and numba takes a second."""
    if name == "run":
        return import_module("simulator.api").run
    if name == "RunResult":
        return import_module("simulator.experiment.result").RunResult
    if name == "__version__":
        metadata = import_module("importlib.metadata")
        try:
            return metadata.version("crowdveil")
        except metadata.PackageNotFoundError:
            return "unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
