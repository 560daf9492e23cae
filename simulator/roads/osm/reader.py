"""Reader of roads from OpenStreetMap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.roads.class_defaults import filled_in_words
from simulator.roads.connectivity import largest_strong_component
from simulator.roads.network import RoadNetwork
from simulator.roads.osm.graphml import lay_streets, read_graphml
from simulator.roads.osm.pbf import read_pbf_ways
from simulator.roads.osm.report import OsmReport
from simulator.roads.osm.street_graph import project, simplified, split_loops, ways_graph
from simulator.roads.osm.tags import guesses_of, is_reversible, link_of
from simulator.roads.osm.xml import read_xml_ways
from simulator.roads.plausibility import speed_doubts
from simulator.roads.schema import EDGE_NUMBERS, crs_faults

if TYPE_CHECKING:
    import networkx as nx

SUFFIXES = (".osm", ".osm.bz2", ".osm.gz", ".osm.pbf", ".graphml")


def read_osm(path: str | Path, *, crs: object = None, capacity_vph: float = 1800.0) -> tuple[RoadNetwork, OsmReport]:
    """Read the streets of an OpenStreetMap file, without access to the internet.

    Ways of the classes motorway … living_street, their links and "road" are kept, unless they are areas, yards or
    closed to cars (see :func:`~simulator.roads.osm.tags.open_to_cars`). Of these, the largest strongly connected part
    is kept and joined to links between junctions. Turn restrictions are not read.

    Parameters
    ----------
    path
        ``.osm``, ``.osm.bz2`` or ``.osm.gz`` (XML), ``.osm.pbf`` (read with pyrosm), or ``.graphml`` as saved by OSMnx.
    crs
        The projected system of the network, in metres; the UTM zone of the network's middle if None.
    capacity_vph
        Vehicles per hour and lane of links whose class has no default.

    Returns
    -------
    network : RoadNetwork
        Nodes are keyed by OpenStreetMap's ids. Edges have the attribute ``osm_ways``, the ids of their ways.
    report : OsmReport
        What was left out and filled in.

    Raises
    ------
    InputError
        If the file cannot be read, contains data that cannot be used, or contains no street.
    """
    path = Path(path)
    name = path.name.lower()
    faults = [] if crs is None else crs_faults(crs)
    if not 0 < capacity_vph < np.inf:
        faults.append(f"capacity_vph must be a finite number above 0, got {capacity_vph!r}")
    if not name.endswith(SUFFIXES):
        faults.append(f"{path}: the name must end in one of {', '.join(SUFFIXES)}")
    if faults:
        raise InputError(faults)
    if name.endswith(".graphml"):
        graph, left_out = _from_graphml(path, crs, capacity_vph)
    else:
        graph, left_out = _from_ways(path, crs, capacity_vph)
    try:
        return _network(path, graph, left_out)
    except InputError as error:
        raise InputError([f"{path}: {fault}" for fault in error.faults]) from None


def _network(path: Path, graph: nx.MultiDiGraph[Any], left_out: list[str]) -> tuple[RoadNetwork, OsmReport]:
    """Join the streets of the largest strongly connected part to links, and compile the network."""
    part, loss = largest_strong_component(graph)
    joined = part if part.graph.pop("simplified", False) else simplified(part)
    points = part.number_of_nodes() - joined.number_of_nodes()
    filled = _make_links(joined)
    known = {(data["x"], data["y"]): node for node, data in part.nodes(data=True)}
    cut, dropped = split_loops(joined, known)
    if dropped:
        left_out.append(f"left out {counted(dropped, 'edge')} from a node to itself")
    network = RoadNetwork.from_graph(joined)
    report = OsmReport(
        file=path.name,
        left_out=tuple(left_out),
        loss=loss,
        points=points,
        loops=cut,
        filled=tuple(filled),
        nodes=len(network.node_names),
        links=len(network.links),
        doubts=tuple(speed_doubts(network.links.speed_mps, network.links.length_m, file=path.name)),
    )
    return network, report


def _from_graphml(path: Path, crs: object, capacity_vph: float) -> tuple[nx.MultiDiGraph[Any], list[str]]:
    """Read streets from a graph that OSMnx saved."""
    loaded = read_graphml(path)
    if not loaded:
        raise InputError([f"{path}: the road network is empty: the graph has no nodes"])
    project(loaded, crs, what=str(path))
    graph, closed, unusable = lay_streets(loaded, capacity_vph=capacity_vph)
    left_out = []
    if closed:
        left_out.append(f"left out {counted(closed, 'edge that is', 'edges that are')} not open to cars")
    if unusable:
        left_out.append(f"left out {counted(unusable, 'edge')} whose length is not above 0")
    if graph.number_of_edges() == 0:
        said = "; ".join(left_out) or "the graph has no edges"
        raise InputError([f"{path}: the road network is empty: {said}"])
    graph.graph["simplified"] = bool(loaded.graph.get("simplified"))
    return graph, left_out


def _from_ways(path: Path, crs: object, capacity_vph: float) -> tuple[nx.MultiDiGraph[Any], list[str]]:
    """Read streets from an XML or PBF file of ways and nodes."""
    ways = read_pbf_ways(path) if path.suffix.lower() == ".pbf" else read_xml_ways(path)
    if not ways.ways:
        unfit = f"of its {counted(ways.others, 'way')}, none is a street open to cars"
        said = unfit if ways.others else "it holds no street"
        raise InputError([f"{path}: the road network is empty: {said}"])
    left_out = []
    if ways.others:
        left_out.append(f"left out {ways.others:,} of {ways.others + len(ways.ways):,} ways, no streets open to cars")
    missing, merged = ways.missing(), ways.merge_places()
    if missing:
        left_out.append(f"streets name {counted(missing, 'node')} that the file does not hold, and are cut there")
    if merged:
        left_out.append(f"took {counted(merged, 'node')} at the same place as the neighbour along a way for that one")
    reversible = sum(is_reversible(way.tags) for way in ways.ways)
    if reversible:
        left_out.append(f"took {counted(reversible, 'way')} whose direction changes with the hour as open both ways")
    graph = ways_graph(ways, capacity_vph=capacity_vph)
    if graph.number_of_edges() == 0:
        raise InputError([f"{path}: the road network is empty: {'; '.join(left_out) or 'no way leads anywhere'}"])
    project(graph, crs, what=str(path))
    return graph, left_out


def _make_links(graph: nx.MultiDiGraph[Any]) -> list[str]:
    """Convert streets to links of the schema, in place; return sentences on the defaults used."""
    guessed: dict[str, list[tuple[str | None, str]]] = {name: [] for name in EDGE_NUMBERS}
    for *_, data in graph.edges(data=True):
        streets = data.pop("streets")
        data.update(link_of(streets))
        for name, guess in guesses_of(streets).items():
            guessed[name].append(guess)
    links = graph.number_of_edges()
    said = (filled_in_words(name, filled, links=links) for name, filled in guessed.items())
    return [sentence for sentence in said if sentence is not None]
