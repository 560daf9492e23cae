"""Road networks: the graph schema, its compiled arrays and generators."""

from simulator.roads.grid import build_grid
from simulator.roads.network import RoadNetwork

__all__ = ["RoadNetwork", "build_grid"]
