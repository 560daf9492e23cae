"""Roads of a SUMO network, as a scenario names it."""

from __future__ import annotations

from typing import Any

import scenarios
from simulator.roads import RoadNetwork
from simulator.roads.sumo import read_sumo_net


def sumo_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read ``[roads]`` with ``source = "sumo"``.

    Returns
    -------
    roads : RoadNetwork
        Edges carry ``sumo_edge``, SUMO's id.
    notes : list of str
        What was left out, one sentence each.

    Raises
    ------
    RoadsError
        If the file holds no usable network.
    """
    anchor = section.anchor
    roads, report = read_sumo_net(
        scenarios.locate(section.path),
        vehicle_class=section.vehicle_class,
        anchor=None if anchor is None else (anchor.lon, anchor.lat),
        capacity_vph=section.capacity_vph,
        keep=section.keep,
    )
    return roads, report.notes()
