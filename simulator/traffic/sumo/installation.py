"""Where SUMO is installed, and what it says when it is asked to run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator.extras import import_extra
from simulator.traffic.errors import TrafficError

NEEDED = 'engine = "sumo" needs SUMO'
LONGEST_SAYING = 600
_BESIDE_THE_POINT = ("pj_obj_create", "proj_create", "Quitting (on error)")


def sumo_binary() -> Path:
    """Return the program that drives, of the package eclipse-sumo.

    Raises
    ------
    TrafficError
        If it is not installed.
    """
    folder = Path(_imported("sumo").SUMO_HOME) / "bin"
    for name in ("sumo", "sumo.exe"):
        if (folder / name).is_file():
            return folder / name
    raise TrafficError([f"{NEEDED}: pip install 'crowdveil[sumo]' (there is no program sumo in {folder})"])


def traci_module() -> Any:
    """Return the client of SUMO's protocol, of the package traci.

    Raises
    ------
    TrafficError
        If it is not installed.
    """
    return _imported("traci")


def _imported(name: str) -> Any:
    return import_extra(name, needed=NEEDED, extra="sumo", error=TrafficError)


def sumo_environment() -> Mapping[str, str]:
    """Return the environment SUMO runs in: it finds its own schemas and types."""
    return {**os.environ, "SUMO_HOME": str(sumo_binary().parent.parent)}


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
