"""OSMnx and pyrosm, which are optional parts of an installation."""

from __future__ import annotations

import importlib
from typing import Any

from simulator.roads.errors import RoadsError


def import_osmnx() -> Any:
    """Import OSMnx.

    Returns
    -------
    module
        Its settings are left alone, and nothing that is used of it goes to the network.

    Raises
    ------
    RoadsError
        If it is not installed.
    """
    return _imported("osmnx", "reading OpenStreetMap")


def import_pyrosm() -> Any:
    """Import pyrosm.

    Returns
    -------
    module
        With ``pyrosm.OSM``.

    Raises
    ------
    RoadsError
        If it is not installed.
    """
    return _imported("pyrosm", "reading .osm.pbf")


def _imported(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RoadsError([f"{what} needs {name}: pip install 'crowdveil[osm]'"]) from error
