"""Partitions of the city into cells."""

from simulator.cells.coarsening import Coarsened
from simulator.cells.geographic import GeographicGrid, GlobalSquare
from simulator.cells.h3 import HexagonGrid
from simulator.cells.named_places import NamedPlaces
from simulator.cells.partition import LinkCells, NameCells, Partition
from simulator.cells.road_segments import RoadSegments
from simulator.cells.square import SquareGrid
from simulator.cells.zones import Zones
