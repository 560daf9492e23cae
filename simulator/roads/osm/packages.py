"""Imports of OSMnx and pyrosm, which are optional."""

from __future__ import annotations

from typing import Any

from simulator.extras import import_extra


def import_osmnx() -> Any:
    """Import OSMnx.

    Returns
    -------
    module
        Its settings are not changed, and none of the functions used accesses the internet.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("osmnx", needed="reading OpenStreetMap needs osmnx", extra="osm")


def import_pyrosm() -> Any:
    """Import pyrosm.

    Returns
    -------
    module
        The module with ``pyrosm.OSM``.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("pyrosm", needed="reading .osm.pbf needs pyrosm", extra="osm")
