"""Road networks: the graph schema, its compiled arrays, readers and generators."""

from simulator.roads.connectivity import Loss, largest_strong_component
from simulator.roads.grid import build_grid
from simulator.roads.links import Links
from simulator.roads.network import RoadNetwork
from simulator.roads.read_report import DroppedRows, FilledDefault, ReadReport
from simulator.roads.tables import read_tables

__all__ = [
    "DroppedRows",
    "FilledDefault",
    "Links",
    "Loss",
    "ReadReport",
    "RoadNetwork",
    "build_grid",
    "largest_strong_component",
    "read_tables",
]
