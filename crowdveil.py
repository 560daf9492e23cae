"""Mobile crowdsourcing under a privacy protocol, simulated: the public interface.

`run` simulates a scenario, `load` reads the result of an earlier run from its directory, and `compare` gives the
differences between the scores of two results. `sweep` runs a scenario with varied values, and `evaluate` compares
mechanisms over data sets. A `Scenario` is made from dicts, by `scenarios.load` from a file, or by
`Scenario.with_` from another scenario. docs/python.md has examples.

Names are imported when they are first used: numba and geopandas take a second to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import scenarios
    from scenarios import Scenario, ScenarioError
    from simulator.api import (
        Behaviour,
        Device,
        DifferentTruthError,
        Party,
        RunHandle,
        RunResult,
        compare,
        load,
        roads_of,
        run,
    )
    from simulator.experiment.run_directory import UnfinishedRunError
    from simulator.studies.api import evaluate, sweep, sweep_points
    from simulator.studies.study import Study

__all__ = [
    "Behaviour",
    "Device",
    "DifferentTruthError",
    "Party",
    "RunHandle",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Study",
    "UnfinishedRunError",
    "compare",
    "evaluate",
    "load",
    "roads_of",
    "run",
    "scenarios",
    "sweep",
    "sweep_points",
]

_MODULES = {
    "Study": "simulator.studies.study",
    "evaluate": "simulator.studies.api",
    "sweep": "simulator.studies.api",
    "sweep_points": "simulator.studies.api",
    "Scenario": "scenarios",
    "ScenarioError": "scenarios",
    "UnfinishedRunError": "simulator.experiment.run_directory",
}
"""The modules of names that are not in `simulator.api`."""


def __getattr__(name: str) -> Any:  # PEP 562
    """Import a public name on first access."""
    if name == "scenarios":
        return import_module(name)
    if name in __all__:
        return getattr(import_module(_MODULES.get(name, "simulator.api")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


if __name__ == "__main__":  # python -m crowdveil
    from simulator.cli import main

    main()
