"""Roads of an OpenStreetMap file, as a scenario names it."""

from __future__ import annotations

from typing import Any

import scenarios
from simulator.roads import RoadNetwork
from simulator.roads.osm import read_osm


def osm_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read ``[roads]`` with ``source = "osm"``.

    Returns
    -------
    roads : RoadNetwork
        Strongly connected.
    notes : list of str
        What was left out and filled in, one sentence each.

    Raises
    ------
    RoadsError
        If the file holds no usable network.
    """
    roads, report = read_osm(scenarios.locate(section.path), crs=section.crs, capacity_vph=section.capacity_vph)
    return roads, report.notes()
