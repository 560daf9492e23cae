"""sumolib, which is an optional part of an installation."""

from __future__ import annotations

from typing import Any

from simulator.roads.errors import RoadsError


def import_sumolib() -> Any:
    """Import sumolib; SUMO itself is not needed.

    Returns
    -------
    module
        With ``sumolib.net``.

    Raises
    ------
    RoadsError
        If it is not installed.
    """
    try:
        import sumolib  # noqa: PLC0415 - an extra, and only where a SUMO network is read
    except ImportError as error:
        raise RoadsError(["reading a SUMO network needs sumolib: pip install 'crowdveil[sumo]'"]) from error
    return sumolib


def vehicle_classes() -> frozenset[str]:
    """Name the vehicle classes that SUMO knows, those it no longer uses left out."""
    lane = import_sumolib().net.lane
    return frozenset(lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED)
