"""Roads of ``source = "gmns"``."""

from typing import Any

from scenarios.references import locate_folder
from scenarios.units import in_metres, in_mps
from simulator.roads import RoadNetwork
from simulator.roads.gmns import read_gmns


def gmns_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a GMNS network as a section says; units it leaves out are those of the folder's config table."""
    roads, report = read_gmns(
        locate_folder(section.path),
        crs=section.crs,
        project_to=section.project_to,
        length_m=None if section.length_unit is None else in_metres(section.length_unit),
        speed_mps=None if section.speed_unit is None else in_mps(section.speed_unit),
        modes=section.modes,
        default_speed_mps=section.default_speed_mps,
        default_lanes=section.default_lanes,
        capacity_vph=section.capacity_vph,
        keep=section.keep,
    )
    return roads, report.notes()
