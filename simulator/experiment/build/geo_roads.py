"""Roads of ``source = "geopackage"`` and ``"geoparquet"``: what `crowdveil roads export` wrote."""

from pathlib import Path
from typing import Any

import scenarios
from scenarios.references import locate_folder
from simulator.roads import RoadNetwork
from simulator.roads.doubts import speed_doubts
from simulator.roads.writers import read_geopackage, read_geoparquet


def geopackage_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a GeoPackage."""
    return _doubted(read_geopackage(scenarios.locate(section.path)), section)


def geoparquet_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a folder of GeoParquet."""
    return _doubted(read_geoparquet(locate_folder(section.path)), section)


def _doubted(roads: RoadNetwork, section: Any) -> tuple[RoadNetwork, list[str]]:
    return roads, [*speed_doubts(roads.links.speed_mps, roads.links.length_m, file=Path(section.path).name)]
