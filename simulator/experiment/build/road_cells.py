"""Cells that are segments of road, out of a network."""

from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from simulator.cells import CellsError, RoadSegments
from simulator.cells.road_segments import pairs_of
from simulator.experiment.ground import Ground
from simulator.roads import RoadNetwork

NAMES = ("sumo_edge", "gmns_link", "edge", "id", "name")
"""Attributes of an edge that are a name of it, the first one there."""
SHOWN = 8


def build_road_segments(section: Any, ground: Ground) -> tuple[RoadSegments, list[str]]:
    """Make each link a cell, or each road, or those of them that are wanted.

    Raises
    ------
    CellsError
        If there are no roads, or none of the classes.
    """
    roads = ground.roads
    if roads is None:
        raise CellsError(['kind = "roads" needs roads: [roads] source = "none"'])
    edges = [(start, end, data) for start, end, data in roads.graph.edges(data=True)]
    edges.sort(key=lambda edge: edge[2]["link"])
    geometries = _geometries(roads, edges)
    links = roads.links
    road = np.arange(len(links), dtype=np.int64)
    if section.per == "road":
        road = pairs_of(links.from_node, links.to_node, geometries)
    wanted = np.ones(len(links), dtype=bool)
    if section.classes is not None:
        wanted = _of_classes([data.get("class") for _, _, data in edges], section.classes)
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


def _geometries(roads: RoadNetwork, edges: list[Any]) -> npt.NDArray[np.object_]:
    """Return a line a link: its own, or the straight one."""
    straight: npt.NDArray[np.object_] = np.asarray(
        shapely.linestrings(np.stack([roads.shapes.start_xy, roads.shapes.end_xy], axis=1)), dtype=object
    )
    lines = np.empty(len(edges), dtype=object)
    lines[:] = [data.get("geometry") or line for (_, _, data), line in zip(edges, straight, strict=True)]
    return lines


def _of_classes(classes: list[Any], wanted: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Say which links are of the classes, (links,) bool."""
    texts = [str(value) for value in classes]
    known = sorted({text for text, value in zip(texts, classes, strict=True) if value is not None})
    if absent := [name for name in wanted if name not in known]:
        there = (
            f"there are {', '.join(known[:SHOWN])}{' …' if len(known) > SHOWN else ''}" if known else "no road has one"
        )
        raise CellsError(f"classes: no road is of class {name!r}; {there}" for name in absent)
    return np.isin(texts, wanted)


def _greatest(
    roads: RoadNetwork,
    road: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.int64],
    top: int,
) -> npt.NDArray[np.int64]:
    """Choose the roads of the greatest capacity, of equals the longest, then the first; ascending."""
    links = roads.links
    size = int(road.max()) + 1
    capacity = np.bincount(road[wanted], (links.capacity_vph * links.lanes)[wanted], minlength=size)[chosen]
    length = np.bincount(road[wanted], links.length_m[wanted], minlength=size)[chosen]
    order = np.lexsort((chosen, -length, -capacity))
    return np.sort(chosen[order[:top]])


def _name(edge: tuple[Any, Any, dict[str, Any]], *, both: bool) -> str:
    start, end, data = edge
    own = next((str(data[key]) for key in NAMES if data.get(key) not in (None, "")), None)
    return own if own is not None else f"{start}{'–' if both else '→'}{end}"
