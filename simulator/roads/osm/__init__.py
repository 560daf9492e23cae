"""Roads of OpenStreetMap, read with OSMnx and pyrosm."""

from simulator.roads.osm.reader import read_osm
from simulator.roads.osm.report import OsmReport

__all__ = ["OsmReport", "read_osm"]
