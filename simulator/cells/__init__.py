"""Partitions of the city into cells."""

from simulator.cells.errors import CellsError
from simulator.cells.geographic import GeographicGrid
from simulator.cells.global_square import GlobalSquare
from simulator.cells.partition import Partition
from simulator.cells.square import SquareGrid

__all__ = ["CellsError", "GeographicGrid", "GlobalSquare", "Partition", "SquareGrid"]
