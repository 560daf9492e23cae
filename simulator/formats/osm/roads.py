"""Reader of roads from OpenStreetMap: extracts in XML or PBF."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import shapely

from simulator.files.errors import InputError
from simulator.files.messages import counted, values_in_words
from simulator.formats.osm.movements import OsmLink, movements_of
from simulator.formats.osm.streets import Street, guesses_of, import_osmnx, link_of, simplified, split_loops
from simulator.formats.osm.ways import OsmWays, read_ways
from simulator.formats.osm_tags import directions, noted_in_words
from simulator.roads.class_defaults import filled_in_words
from simulator.roads.connectivity import largest_strong_component
from simulator.roads.driving_side import side_of
from simulator.roads.movements import movement_table
from simulator.roads.projection import WGS84, project
from simulator.roads.raw_network import RawNetwork, column_of
from simulator.roads.schema import EDGE_NUMBERS, crs_faults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


SUFFIXES = (".osm", ".osm.bz2", ".osm.gz", ".pbf")


def read_osm(
    path: str | Path, *, crs: object = None, capacity_vph: float = 1800.0, driving_side: str | None = None
) -> RawNetwork:
    """Read the streets of an OpenStreetMap file, without access to the internet.

    Ways of the classes motorway … living_street, their links and "road" are kept, unless they are areas, yards or
    closed to cars (see :func:`~simulator.formats.osm_tags.open_to_cars`). Of these, the largest strongly
    connected part is kept and joined to links between junctions. Turn restrictions over a node, signals, signs and
    lanes for turns become movements.

    Parameters
    ----------
    path
        ``.osm``, ``.osm.bz2`` or ``.osm.gz`` (XML), or ``.pbf``.
    crs
        The projected system of the network, in metres; the UTM zone of the network's middle if None.
    capacity_vph
        Vehicles per hour and lane of links whose class has no default.
    driving_side
        "left" or "right", the side from which lanes are counted; the side of the network's country if None.

    Returns
    -------
    RawNetwork
        In metres. Nodes are keyed by OpenStreetMap's ids. Links have the attribute ``osm_ways``, the ids of their ways.

    Raises
    ------
    InputError
        If the file cannot be read, contains data that cannot be used, or contains no street.
    """
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise InputError([f"{path}: the name must end in one of {', '.join(SUFFIXES)}"])
    if crs is not None and (faults := crs_faults(crs)):
        raise InputError(faults)
    ways = read_ways(path)
    graph, left_out = _from_ways(path, ways, crs, capacity_vph)
    try:
        return joined_streets(graph, left_out, ways=ways, file=path.name, driving_side=driving_side)
    except InputError as error:
        raise InputError([f"{path}: {fault}" for fault in error.faults]) from None


def joined_streets(
    graph: nx.MultiDiGraph[Any], left_out: list[str], *, ways: OsmWays, file: str, driving_side: str | None = None
) -> RawNetwork:
    """Join the streets of the largest strongly connected part to links.

    Parameters
    ----------
    graph
        Projected, in metres. Edges have ``length_m``, ``streets`` (a tuple of :class:`Street`) and optionally
        ``geometry``. If the attribute ``simplified`` of the graph is true, its edges lead from junction to junction.
    left_out
        What was left out before, one sentence each.
    ways
        Controls, turn restrictions and surroundings, if there are any.
    file
        The name of the source, in notes.
    driving_side
        As for :func:`read_osm`.

    Raises
    ------
    InputError
        If no link is left.
    """
    part, loss = largest_strong_component(graph)
    joined = part if part.graph.pop("simplified", False) else simplified(part)
    points = part.number_of_nodes() - joined.number_of_nodes()
    filled = _make_links(joined)
    known = {(data["x"], data["y"]): node for node, data in part.nodes(data=True)}
    cut, dropped = split_loops(joined, known)
    remarks = [*left_out]
    if dropped:
        remarks.append(f"left out {counted(dropped, 'edge')} from a node to itself")
    if loss.nodes:
        remarks.append(f"kept the largest part {loss.part}; left out {loss.km_words} of streets")
    if points:
        between = counted(points, "node between them is a point", "nodes between them are points")
        remarks.append(f"links lead from junction to junction; {between} of their geometry")
    if cut:
        remarks.append(f"cut {counted(cut, 'link')} from a junction to itself in two")
    if joined.number_of_edges() == 0:
        raise InputError(["the road network is empty: it has no link between two junctions"])
    rows = {node: row for row, node in enumerate(joined)}
    edges = [(rows[start], rows[end], key, data) for start, end, key, data in joined.edges(keys=True, data=True)]
    names = dict(zip(("length_m", "speed_mps", "capacity_vph"), ("length", "speed", "capacity"), strict=True))
    columns = {"from": [edge[0] for edge in edges], "to": [edge[1] for edge in edges]}
    own = ("length_m", "speed_mps", "lanes", "capacity_vph", "osm_ways", "class", "name", "geometry")
    links = pd.DataFrame(columns | {"key": column_of([edge[2] for edge in edges])})
    for name in own:
        column = column_of([data.get(name) for *_, data in edges])
        links[names.get(name, name.replace("geometry", "shape"))] = column
    xy = np.array([(data["x"], data["y"]) for _, data in joined.nodes(data=True)])
    last = [data["ends"][1] for *_, data in edges]
    if ways.controls or ways.restrictions or any(street.turn_lanes or street.roundabout for street in last):
        left_hand = side_of(xy, joined.graph["crs"], driving_side).left
        stated = [
            _stated_link(start, end, data, xy, known)._replace(left_hand=left_hand) for start, end, _, data in edges
        ]
        movements, words = movements_of(links, stated, ways.controls, ways.restrictions)
    else:
        movements, words = movement_table(), []
    return RawNetwork(
        nodes=pd.DataFrame({"node": column_of(list(joined)), "x": xy[:, 0], "y": xy[:, 1]}),
        links=links,
        movements=movements,
        crs=joined.graph["crs"],
        file=file,
        loss=loss,
        node_rows=graph.number_of_nodes(),
        link_rows=graph.number_of_edges(),
        remarks=[f"{file}: {remark}" for remark in (*remarks, *filled, *words)],
        features=ways.features,
        driving_side=driving_side,
    )


def _stated_link(
    start: int, end: int, data: Mapping[str, Any], xy: NDArray[np.float64], known: Mapping[tuple[float, float], Any]
) -> OsmLink:
    """Return what the movements of a link depend on; the nodes along it are found by their places."""
    shape = data.get("geometry") or shapely.LineString(xy[[start, end]])
    nodes = [known.get((x, y)) for x, y in shapely.get_coordinates(shape).tolist()]
    first, last = data["ends"]
    return OsmLink(shape, first, last, int(data["lanes"]), nodes)


def _from_ways(path: Path, ways: OsmWays, crs: object, capacity_vph: float) -> tuple[nx.MultiDiGraph[Any], list[str]]:
    """Build the graph of streets of an XML or PBF file of ways and nodes."""
    if not ways.ways:
        unfit = f"of its {counted(ways.others, 'way')}, none is a street open to cars"
        reason = unfit if ways.others else "it holds no street"
        raise InputError([f"{path}: the road network is empty: {reason}"])
    left_out = []
    if ways.others:
        left_out.append(
            f"left out {ways.others:,} of {ways.others + len(ways.ways):,} ways, which are not streets open to cars"
        )
    missing, merged = ways.missing(), ways.merge_places()
    if missing:
        left_out.append(
            f"streets refer to {counted(missing, 'node')} that the file does not contain, and are cut there"
        )
    if merged:
        left_out.append(f"merged {counted(merged, 'node')} with the neighbour along a way at the same place")
    left_out += noted_in_words(ways.noted, ("way", "ways"))
    graph = ways_graph(ways, capacity_vph=capacity_vph)
    if graph.number_of_edges() == 0:
        raise InputError(
            [f"{path}: the road network is empty: {'; '.join(left_out) or 'no street connects two nodes'}"]
        )
    return graph, [*left_out, *project(graph, crs, what=str(path))]


def _make_links(graph: nx.MultiDiGraph[Any]) -> list[str]:
    """Convert streets to links of the schema, in place; return sentences on the defaults used."""
    guessed: dict[str, list[tuple[str | None, str]]] = {name: [] for name in (*EDGE_NUMBERS, "limit")}
    for *_, data in graph.edges(data=True):
        streets = data.pop("streets")
        data.update(link_of(streets), ends=(streets[0], streets[-1]))
        for name, guess in guesses_of(streets).items():
            guessed[name].append(guess)
    links = graph.number_of_edges()
    unread = Counter(tag for _, tag in guessed.pop("limit") if tag)
    reason = (filled_in_words(name, filled, links=links) for name, filled in guessed.items())
    sentences = [sentence for sentence in reason if sentence is not None]
    if unread:
        number, missing = unread.total(), len(guessed["speed_mps"]) - unread.total()
        which = f"of the links whose speed is taken by class of road, {missing:,} state no limit, and {number:,}"
        sentences.append(f"{which} one that is no known number: {values_in_words(unread)}")
    return sentences


def ways_graph(ways: OsmWays, *, capacity_vph: float) -> nx.MultiDiGraph[Any]:
    """Build a graph of ways, with an edge from node to node for each direction in which a way may be driven.

    Parameters
    ----------
    ways
        The ways, after :meth:`~simulator.formats.osm.ways.OsmWays.merge_places`.
    capacity_vph
        As for :meth:`Street.from_tags`.

    Returns
    -------
    networkx.MultiDiGraph
        Nodes with ``x`` and ``y`` (degrees), edges with ``length_m`` (great-circle, as OSMnx computes it) and
        ``streets``, one :class:`Street`.
    """
    segments = [list(ways.segments(way)) for way in ways.ways]
    ends = np.array(list(chain.from_iterable(segments)), dtype=np.int64).reshape(-1, 2)
    places = np.array([ways.nodes[node] for node in ends.ravel().tolist()]).reshape(-1, 4)
    lon, lat, to_lon, to_lat = places.T
    lengths = iter(import_osmnx().distance.great_circle(lat, lon, to_lat, to_lon).tolist())
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=WGS84)
    graph.add_nodes_from(
        (node, {"x": ways.nodes[node][0], "y": ways.nodes[node][1]}) for node in dict.fromkeys(ends.ravel().tolist())
    )
    for way, pairs in zip(ways.ways, segments, strict=True):
        driven = {
            along: Street.from_tags(way.tags, way=str(way.way), length_m=0.0, along=along, capacity_vph=capacity_vph)
            for along, leads in zip((True, False), directions(way.tags), strict=True)
            if leads
        }
        for (start, end), length_m in zip(pairs, lengths, strict=False):  # the next way continues the same iterator
            for along, street in driven.items():
                here, there = (start, end) if along else (end, start)
                graph.add_edge(here, there, length_m=length_m, streets=(street._replace(length_m=length_m),))
    return graph
