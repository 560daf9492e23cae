"""Mobile crowdsourcing under a privacy protocol, simulated: the public interface.

`run` simulates a scenario, `load` reads the result of an earlier run from its directory, and `compare` gives the
differences between the scores of two results. `sweep` runs a scenario with varied values, and `evaluate` compares
mechanisms over data sets. A `Scenario` is made from dicts, by `scenarios.load` from a file, or by
`Scenario.with_` from another scenario. docs/python.md has examples.

Names are imported when they are first used: numba and geopandas take a second to load.
"""

import re
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
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
    from simulator.results.store import UnfinishedRunError
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
    "UnfinishedRunError": "simulator.results.store",
}
"""The modules of names that are not in `simulator.api`."""


PACKAGES = ("simulator", "mechanisms", "scenarios")
"""Packages beside this module. Their names are general, so a user's own files, or other packages, may have them too."""


@cache
def obstacle(folder: str | None = None) -> str | None:
    """Return which file stands in the way of one of the packages, in one sentence; None if none does.

    Parameters
    ----------
    folder : str, optional
        Search this folder alone, as Python does first if it is started there; by default where Python searches now.
    """
    home = Path(__file__).resolve().parent
    if folder is not None and PathFinder.find_spec("crowdveil", [folder]) is not None:
        return None  # what is there is another crowdveil as a whole
    for name in PACKAGES:
        if folder is not None:
            file = getattr(PathFinder.find_spec(name, [folder]), "origin", None)
        elif name in sys.modules:
            file = getattr(sys.modules[name], "__file__", None)
        else:
            file = getattr(find_spec(name), "origin", None)
        # Of an editable installation the packages are elsewhere than this file: their docstrings tell them from others.
        if file is None or re.match('""".*crowdveil', Path(file).read_text("utf-8", errors="replace")):
            continue
        if Path(file).resolve() == home / name / "__init__.py":
            from importlib.metadata import packages_distributions  # noqa: PLC0415 - takes a while, and is rarely needed

            others = " and ".join(each for each in packages_distributions().get(name, ()) if each != "crowdveil")
            return (
                f"{file} is not crowdveil's: {others or 'another package'} has replaced it. Uninstall that, then "
                "`pip install --force-reinstall --no-deps crowdveil`"
            )
        return (
            f"{file} stands in the way of crowdveil's own package {name!r}: rename it, or start Python where it is not "
            "found first"
        )
    return None


def main() -> None:
    """Run the command line; a file that stands in the way of its packages ends in one message and exit code 2."""
    if obstacle() is not None:
        sys.stderr.write(f"crowdveil: {obstacle()}\n")
        sys.exit(2)
    import_module("simulator.cli").main()


def __getattr__(name: str) -> Any:  # PEP 562
    """Import a public name on first access."""
    if name in __all__ and obstacle() is not None:
        raise ImportError(obstacle(), name="crowdveil")
    if name == "scenarios":
        return import_module(name)
    if name in __all__:
        return getattr(import_module(_MODULES.get(name, "simulator.api")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


if __name__ == "__main__":  # python -m crowdveil
    main()
