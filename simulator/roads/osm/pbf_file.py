"""Ways of an OpenStreetMap PBF file, by pyrosm."""

from __future__ import annotations

import json
import warnings
from itertools import groupby
from typing import TYPE_CHECKING, Any

from simulator.files.counted import counted
from simulator.roads.errors import RoadsError
from simulator.roads.osm.packages import import_pyrosm
from simulator.roads.osm.pbf_frame import check_pbf
from simulator.roads.osm.tags import WAY_TAGS, open_to_cars
from simulator.roads.osm.ways import OsmWay, OsmWays

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd


def read_pbf_ways(path: Path) -> OsmWays:
    """Read the ways of a PBF file that are open to cars.

    Parameters
    ----------
    path
        ``.osm.pbf``.

    Returns
    -------
    OsmWays
        Of pyrosm's "driving" network, those that :func:`~simulator.roads.osm.tags.open_to_cars` lets through.

    Raises
    ------
    RoadsError
        If the file is not there, damaged or no PBF file of OpenStreetMap, or holds a coordinate out of range.
    """
    check_pbf(path)
    pyrosm = import_pyrosm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where it finds nothing, which the caller says in its own words
        try:
            read = pyrosm.OSM(str(path), progress=False).get_network(network_type="driving", nodes=True)
        except Exception as error:  # its decoder raises whatever it stumbles on
            said = f"{type(error).__name__}: {error}"
            raise RoadsError([f"{path}: pyrosm cannot read it: {said}"]) from error
    nodes, edges = read or (None, None)
    if nodes is None or edges is None or len(edges) == 0:
        return OsmWays({}, [], others=0)
    for name, limit in (("lon", 180.0), ("lat", 90.0)):
        outside = nodes[~(nodes[name].abs() <= limit)]
        if len(outside):
            node, value = outside[["id", name]].iloc[0].tolist()
            rule = f"{name} must be degrees from {-limit:g} to {limit:g}, got {value:g}"
            raise RoadsError([f"{path}: node {int(node)}: {rule} ({counted(len(outside), 'such node')})"])
    places = dict(
        zip(nodes["id"].tolist(), zip(nodes["lon"].tolist(), nodes["lat"].tolist(), strict=True), strict=True)
    )
    ways = list(_ways(edges))
    kept = [way for way in ways if open_to_cars(way.tags)]
    return OsmWays(places, kept, others=len({way.way for way in ways}) - len({way.way for way in kept}))


def _ways(edges: pd.DataFrame) -> Iterator[OsmWay]:
    """Join the pairs of nodes that pyrosm cuts ways into."""
    named = [tag for tag in edges.columns if tag in WAY_TAGS]
    columns = [edges[column].tolist() for column in ("id", "u", "v")]
    # pyrosm has this column only where some way carries a tag without a column of its own.
    rest = edges["tags"].tolist() if "tags" in edges.columns else [None] * len(edges)
    tags = [_tags(row, others) for row, others in zip(_rows(edges, named), rest, strict=True)]
    rows = zip(*columns, tags, strict=True)
    for way, pairs in groupby(rows, key=lambda row: row[0]):
        path: list[int] = []
        said: dict[str, str] = {}
        for _, start, end, said in pairs:
            if path and path[-1] != start:
                yield OsmWay(way, said, tuple(path))
                path = []
            path = path or [start]
            path.append(end)
        yield OsmWay(way, said, tuple(path))


def _rows(edges: pd.DataFrame, named: list[str]) -> Iterator[dict[str, Any]]:
    """Go through the tags that have columns of their own."""
    columns = [edges[tag].tolist() for tag in named]
    for values in zip(*columns, strict=True):
        yield dict(zip(named, values, strict=True))


def _tags(row: dict[str, Any], others: object) -> dict[str, str]:
    """Put a way's tags together: columns, and the rest as JSON; only those that are read."""
    said = {tag: value for tag, value in row.items() if isinstance(value, str)}
    rest = json.loads(others) if isinstance(others, str) else {}
    return said | {tag: str(value) for tag, value in rest.items() if tag in WAY_TAGS}
