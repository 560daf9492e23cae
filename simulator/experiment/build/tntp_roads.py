"""Roads of ``source = "tntp"``."""

from typing import Any

import scenarios
from scenarios.units import in_metres, in_seconds
from simulator.roads import RoadNetwork
from simulator.roads.tntp import read_tntp


def tntp_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a TNTP network as a section says."""
    roads, report = read_tntp(
        network=scenarios.locate(section.network),
        nodes=scenarios.locate(section.nodes),
        length_m=in_metres(section.length_unit),
        time_s=in_seconds(section.time_unit),
        crs=section.crs,
        project_to=section.project_to,
        capacity_hours=section.capacity_hours,
        lane_capacity_vph=section.capacity_vph,
        default_speed_mps=section.default_speed_mps,
    )
    return roads, report.notes()
