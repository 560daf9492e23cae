"""Where SUMO is installed, and what it says when it is asked to run."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.extras import import_extra, record_extra
from simulator.traffic.errors import TrafficError

NEEDED = 'engine = "sumo" needs SUMO'
LONGEST_SAYING = 600
_BESIDE_THE_POINT = ("pj_obj_create", "proj_create", "Quitting (on error)")


def sumo_command() -> list[str]:
    """Return the command that runs SUMO's library in a process of its own; SUMO's arguments follow.

    Raises
    ------
    TrafficError
        If the package libsumo is not installed.
    """
    if importlib.util.find_spec("libsumo") is None:  # it is not imported here: it does not go with pyarrow's library
        raise TrafficError([f"{NEEDED}: pip install 'crowdveil[sumo]'"])
    record_extra("libsumo")
    return [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]


def traci_constants() -> Any:
    """Return the numbers that SUMO's variables have, of the package traci.

    Raises
    ------
    TrafficError
        If it is not installed.
    """
    return import_extra("traci.constants", needed=NEEDED, extra="sumo", error=TrafficError)


def sumo_environment() -> Mapping[str, str]:
    """Return the environment SUMO runs in: the library finds its own schemas and types, not those of another SUMO."""
    return {name: value for name, value in os.environ.items() if name != "SUMO_HOME"}


def saying(text: str) -> str:
    """Return what SUMO has to say for itself in what it wrote, on one line: from its first error on, or its last words.

    Warnings beside errors are left out.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_BESIDE_THE_POINT)]
    first = next((place for place, line in enumerate(lines) if line.startswith("Error:")), None)
    told = lines[-3:] if first is None else [line for line in lines[first:] if not line.startswith("Warning:")]
    said = " ".join(line.removeprefix("Error:").strip() for line in told)
    if not said:
        return "SUMO gave no reason"
    return said if len(said) <= LONGEST_SAYING else f"{said[: LONGEST_SAYING - 1]}…"
