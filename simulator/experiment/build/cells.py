"""Cells, by the kinds a scenario names."""

from collections.abc import Callable, Mapping
from typing import Any

from simulator.cells import CellsError, Coarsened, GeographicGrid, HexagonGrid, Partition, SquareGrid
from simulator.experiment.build.place_cells import build_locations, build_stations
from simulator.experiment.build.road_cells import build_road_segments
from simulator.experiment.ground import Ground
from simulator.traffic.errors import TrafficError

Divided = tuple[Partition, list[str]]
"""The cells, and what was left out or filled in, one sentence each."""


def build_cells(section: Any, ground: Ground) -> Divided:  # a union told apart by its kind
    """Divide a city into cells, and merge them as often as the section says.

    Raises
    ------
    CellsError
        If the cells cannot be laid over it.
    """
    try:
        cells, notes = _KINDS[section.kind](section, ground)
    except TrafficError as error:  # of a file of places
        raise CellsError(error.faults) from error
    return (Coarsened(cells, section.level) if section.level else cells), notes


def _square(section: Any, ground: Ground) -> Divided:
    cells = SquareGrid.build_over(ground.bounds, size_m=section.size_m, crs=ground.crs, within=section.bounds)
    return cells, []


def _geographic(section: Any, ground: Ground) -> Divided:
    origin = (section.origin.lon, section.origin.lat)
    size_miles = section.size_miles
    return GeographicGrid.build_over(ground.bounds, size_miles=size_miles, origin=origin, crs=ground.crs), []


def _hexagons(section: Any, ground: Ground) -> Divided:
    resolution = section.resolution
    return HexagonGrid.build_over(ground.bounds, resolution=resolution, crs=ground.crs, within=section.bounds), []


_KINDS: Mapping[str, Callable[[Any, Ground], Divided]] = {
    "square": _square,
    "geographic": _geographic,
    "h3": _hexagons,
    "roads": build_road_segments,
    "stations": build_stations,
    "locations": build_locations,
}
