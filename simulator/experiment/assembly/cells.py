"""Builds the cells of a scenario: partitions of the plane, named places, or road segments."""

from functools import partial, singledispatch
from typing import Any

import numpy as np
import pyproj

import scenarios
from scenarios.cells import (
    GeographicCells,
    HexagonCells,
    Levels,
    LocationCells,
    PlaceColumns,
    RoadCells,
    SquareCells,
    StationCells,
    ZoneCells,
)
from scenarios.errors import suggestion
from simulator.arrays import IntArray, Mask
from simulator.cells import (
    Coarsened,
    GeographicGrid,
    HexagonGrid,
    NamedPlaces,
    Partition,
    RoadSegments,
    SquareGrid,
    Zones,
)
from simulator.cells.road_segments import pairs_of
from simulator.cells.zones import UnprojectableError
from simulator.experiment.assembly.own_kinds import file_format, same_keys
from simulator.experiment.study_area import Ground, away
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.formats.recordings.places import read_places
from simulator.roads import RoadNetwork
from simulator.roads.network import LINK_IDS
from simulator.roads.projection import WGS84
from simulator.traffic.recording import Sites

Divided = tuple[Partition, list[str]]
"""The cells, and notes on what was left out or filled in, one sentence each."""


def build_cells(section: Levels, ground: Ground) -> Divided:
    """Divide a city into cells, and merge them to the level that the section states.

    Raises
    ------
    InputError
        If the cells cannot be laid over the city.
    """
    cells, notes = laid_over(section, ground)
    return (Coarsened(cells, section.level) if section.level else cells), notes


@singledispatch
def laid_over(section: Levels, ground: Ground) -> Divided:
    """Divide a city into the cells of a section, by the function for its class.

    Raises
    ------
    InputError
        If the cells cannot be laid over the city.
    """
    raise NotImplementedError(type(section).__name__)


@laid_over.register
def stations_cells(section: StationCells, ground: Ground) -> tuple[NamedPlaces, list[str]]:
    """Build one cell for each station of a table.

    Raises
    ------
    InputError
        If the table cannot be read, or a requested station is not in it.
    """
    sites, notes = _of_file(section, section.file, section.columns, ground)
    return _cells("stations", section, sites, _chosen(section, sites.names or [])), notes


@laid_over.register
def locations_cells(section: LocationCells, ground: Ground) -> tuple[NamedPlaces, list[str]]:
    """Build one cell for each location of a table, or of the data owners.

    Raises
    ------
    InputError
        If there are no locations, or a requested one is not among them.
    """
    owned = None if ground.recorded is None else ground.recorded.sites
    if section.file is not None and section.columns is not None:  # the schema requires both or neither
        sites, notes = _of_file(section, section.file, section.columns, ground)
        named = None if owned is None else owned.names
        if named is not None and not set(named) & set(sites.names or []):
            fault = f"no location has the name of a data owner's place, as {named[0]!r}"
            raise InputError([f"{section.file}: {fault}; locations are called {_some(sites.names or [])}"])
        return _cells("locations", section, sites, _chosen(section, sites.names or [])), notes
    if owned is None:
        raise InputError(['file is required: only with engine = "static" are there places without it'])
    if owned.names is None:
        raise InputError(["the data owners' places have no names: name their column as traffic.columns.place"])
    names, notes = owned.names, []
    if section.top is None:
        chosen = _chosen(section, names)
        if section.names is None and owned.side_m is None:
            chosen = np.flatnonzero(owned.owners > 0)
    else:
        number = owned.owners
        busiest = np.argsort(-number, kind="stable")[: section.top]
        chosen = busiest[number[busiest] > 0]
        occupied = int((number > 0).sum())
        fault = f"cells: the {len(chosen):,} busiest of {occupied:,} places, {_some([names[i] for i in chosen])}"
        notes.append(
            f"{fault}: chosen by the truth itself, which no mechanism protects; name places to choose without it"
        )
    return _cells("locations", section, owned, chosen), notes


def _of_file(
    section: StationCells | LocationCells, file: str, columns: PlaceColumns, ground: Ground
) -> tuple[Sites, list[str]]:
    read = partial(
        read_places, scenarios.locate(file), columns=columns.mapping(), format_=file_format(section), given=section.crs
    )
    sites, notes = read(crs=ground.crs)
    lost = np.asarray(~np.isfinite(sites.xy).all(axis=1))
    if lost[_chosen(section, sites.names or [])].any():
        lonlat = read(crs=pyproj.CRS(WGS84))[0].xy[lost]
        where = away(np.vstack((lonlat, np.median(lonlat, axis=0))), ground, given=section.crs)
        raise InputError([f"{file}: {counted(len(lonlat), 'place')} outside the area of {ground.crs.name}: {where}"])
    return sites, notes


def _chosen(section: StationCells | LocationCells, names: list[str]) -> IntArray:
    """Return the numbers of the places that are cells, in the order of the cells."""
    if section.names is None:
        return np.arange(len(names))
    place = {name: i for i, name in enumerate(names)}
    unknown = [name for name in section.names if name not in place]
    faults = [f"names: there is no place {name!r}{suggestion(name, names[:100_000])}" for name in unknown]
    if faults:
        raise InputError(faults)
    return np.array([place[name] for name in section.names], dtype=np.int64)


def _cells(kind: str, section: StationCells | LocationCells, sites: Sites, chosen: IntArray) -> NamedPlaces:
    names = sites.names or []
    return NamedPlaces.build(
        kind,
        [names[place] for place in chosen.tolist()],
        sites.xy[chosen],
        **same_keys(sites, "crs", "side_m"),
        **same_keys(section, "radius_m", "labels"),
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


NAMES = (*LINK_IDS, "name")
"""Attributes of an edge that can be its name; the first one present is used."""
SHOWN = 8


@laid_over.register
def roads_cells(section: RoadCells, ground: Ground) -> tuple[RoadSegments, list[str]]:
    """Build one cell for each link or each road, or for the requested ones.

    Raises
    ------
    InputError
        If there are no roads, or none of a requested class.
    """
    roads = ground.roads
    if roads is None:
        raise InputError(['kind = "roads" needs roads: [roads] source = "none"'])
    edges = sorted(roads.edges, key=lambda edge: edge[3]["link"])
    geometries, links = roads.shapes.lines(), roads.links
    road = np.arange(len(links), dtype=np.int64)
    if section.per == "road":
        road = pairs_of(links.from_node, links.to_node, geometries)
    wanted = np.ones(len(links), dtype=bool)
    if section.classes is not None:
        wanted = of_classes(roads.classes, section.classes)
    chosen = np.unique(road[wanted])
    notes = []
    if section.top is not None and section.top < len(chosen):
        chosen = _greatest(roads, road, wanted, chosen, section.top)
        notes.append(
            f"cells: the {len(chosen):,} segments that can carry the most vehicles an hour, of {len(links):,} links"
        )
    cell = np.zeros(int(road.max()) + 1, dtype=np.int32)
    cell[chosen] = np.arange(1, len(chosen) + 1)
    cell_of_links = np.where(wanted, cell[road], 0).astype(np.int32)
    first = np.full(len(chosen) + 1, len(links), dtype=np.int64)
    np.minimum.at(first, cell_of_links, np.arange(len(links)))
    names = [_name(edges[link], both=section.per == "road") for link in first[1:].tolist()]
    segments = RoadSegments.build(
        geometries, cell_of_links=cell_of_links, names=names, crs=roads.crs, within_m=section.within_m
    )
    return segments, notes


def of_classes(classes: list[Any], wanted: tuple[str, ...]) -> Mask:
    """Return which links are of the requested classes, (links,) bool."""
    texts = [str(value) for value in classes]
    named = sorted({text for text, value in zip(texts, classes, strict=True) if value is not None})
    if absent := [name for name in wanted if name not in named]:
        known_classes = (
            f"there are {', '.join(named[:SHOWN])}{' …' if len(named) > SHOWN else ''}" if named else "no road has one"
        )
        unknown = [f"{name!r}{suggestion(name, named)}" for name in absent]
        raise InputError(f"classes: no road is of class {name}; {known_classes}" for name in unknown)
    return np.isin(texts, wanted)


def _greatest(roads: RoadNetwork, road: IntArray, wanted: Mask, chosen: IntArray, top: int) -> IntArray:
    """Return the roads of the greatest capacity, ascending; ties go to the longest road, then to the first."""
    links = roads.links
    size = int(road.max()) + 1
    capacity = np.bincount(road[wanted], (links.capacity_vph * links.lanes)[wanted], minlength=size)[chosen]
    length = np.bincount(road[wanted], links.length_m[wanted], minlength=size)[chosen]
    order = np.lexsort((chosen, -length, -capacity))
    return np.sort(chosen[order[:top]])


def _name(edge: tuple[Any, Any, Any, dict[str, Any]], *, both: bool) -> str:
    start, end, _, data = edge
    name = next((str(data[key]) for key in NAMES if data.get(key) not in (None, "")), None)
    return name if name is not None else f"{start}{'–' if both else '→'}{end}"


@laid_over.register
def square_cells(section: SquareCells, ground: Ground) -> Divided:
    """Build squares over the extent of the city, or over a window of it."""
    return SquareGrid.build_over(ground.bounds, size_m=section.size_m, crs=ground.crs, within=section.bounds), []


@laid_over.register
def geographic_cells(section: GeographicCells, ground: Ground) -> Divided:
    """Build the cells of the geographic grid that meet the extent of the city."""
    origin, size_miles = (section.origin.lon, section.origin.lat), section.size_miles
    return GeographicGrid.build_over(ground.bounds, size_miles=size_miles, origin=origin, crs=ground.crs), []


@laid_over.register
def h3_cells(section: HexagonCells, ground: Ground) -> Divided:
    """Build the hexagons that meet the extent of the city, or a window of it."""
    resolution = section.resolution
    return HexagonGrid.build_over(ground.bounds, resolution=resolution, crs=ground.crs, within=section.bounds), []


@laid_over.register
def zones_cells(section: ZoneCells, ground: Ground) -> Divided:
    """Build the zones of a file.

    Raises
    ------
    InputError
        If the file cannot be read, or its polygons are no partition.
    """
    read = partial(Zones.read, scenarios.locate(section.file), name=section.name, layer=section.layer)
    try:
        return read(crs=ground.crs)
    except UnprojectableError as error:
        bounds = read(crs=WGS84)[0].polygons().total_bounds
        lonlat = np.array([bounds[:2], bounds[2:], (bounds[:2] + bounds[2:]) / 2])
        raise InputError([f"{error}: {away(lonlat, ground)}"]) from error
