"""Road networks: the graph schema, its compiled arrays, readers and generators."""

from simulator.roads.grid import build_grid
from simulator.roads.network import RoadNetwork
from simulator.roads.readers.tables import read_tables

__all__ = ["RoadNetwork", "build_grid", "read_tables"]
