"""The simulator of crowdveil: a city, a fleet of vehicles, campaigns that query it, and what each party learns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.api import RunResult, run

__all__ = ["RunResult", "run"]

_MODULES = {"run": "simulator.api", "RunResult": "simulator.api"}


def __getattr__(name: str) -> Any:  # PEP 562
    """Import the public names on first access: importing pandas and numba takes a second."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
