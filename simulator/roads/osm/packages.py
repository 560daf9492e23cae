"""Imports of OSMnx and pyrosm, which are optional."""

from __future__ import annotations

from typing import Any

from simulator.extras import import_extra
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
    return import_extra("osmnx", needed="reading OpenStreetMap needs osmnx", extra="osm", error=RoadsError)


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
    return import_extra("pyrosm", needed="reading .osm.pbf needs pyrosm", extra="osm", error=RoadsError)
