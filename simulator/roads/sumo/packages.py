"""sumolib, which is an optional part of an installation."""

from __future__ import annotations

from typing import Any

from simulator.extras import import_extra
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
    return import_extra("sumolib", needed="reading a SUMO network needs sumolib", extra="sumo", error=RoadsError)


def vehicle_classes() -> frozenset[str]:
    """Name the vehicle classes that SUMO knows, those it no longer uses left out."""
    lane = import_sumolib().net.lane
    return frozenset(lane.SUMO_VEHICLE_CLASSES - lane.SUMO_VEHICLE_CLASSES_DEPRECATED)
