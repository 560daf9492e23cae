"""Roads of ``source = "geopackage"`` and ``"geoparquet"``: what `crowdveil roads export` wrote."""

from typing import Any

import scenarios
from scenarios.references import locate_folder
from simulator.roads import RoadNetwork
from simulator.roads.writers import read_geopackage, read_geoparquet


def geopackage_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a GeoPackage."""
    return read_geopackage(scenarios.locate(section.path)), []


def geoparquet_roads(section: Any) -> tuple[RoadNetwork, list[str]]:
    """Read a folder of GeoParquet."""
    return read_geoparquet(locate_folder(section.path)), []
