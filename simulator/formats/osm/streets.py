"""Streets of OpenStreetMap: sections of ways in one direction, and links between junctions."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
import shapely

from simulator.files.extras import import_extra
from simulator.formats.osm_tags import directions, lanes, speed_limit
from simulator.roads.class_defaults import CLASS_DEFAULTS, class_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


UNKNOWN = CLASS_DEFAULTS["unclassified"]
"""Speed and lanes of a street without a known class."""


class Street(NamedTuple):
    """A section of a way in one direction.

    ``guessed`` names which of ``speed_mps``, ``lanes`` and ``capacity_vph`` are defaults of the class, with the
    value in words; and beside a speed ``limit``, with the tag that was not understood, or "" where there is none.
    """

    way: str
    road_class: str | None
    length_m: float
    speed_mps: float
    lanes: int
    capacity_vph: float
    guessed: tuple[tuple[str, str], ...]
    name: str | None = None
    along: bool = True
    turn_lanes: str | None = None
    roundabout: bool = False

    @classmethod
    def from_tags(
        cls, tags: Mapping[str, str], *, way: str, length_m: float, along: bool, capacity_vph: float
    ) -> Street:
        """Make a section from the tags of its way.

        Parameters
        ----------
        tags
            Tags of the way, or of an edge that OSMnx made from it.
        way
            The way's id.
        length_m
            Length in metres.
        along
            True if driven in the order of the way's nodes, False for the opposite direction.
        capacity_vph
            Vehicles per hour and lane if the class of road has no default.

        Returns
        -------
        Street
            The section, with defaults where tags state no usable value.
        """
        road_class = tags.get("highway")
        own = class_defaults(road_class)
        default = own or UNKNOWN
        guessed = []
        kph, unread = speed_limit(tags, along=along)
        if kph is None:
            kph = default.speed_mps * 3.6
            guessed += [("speed_mps", f"{kph:g} km/h"), ("limit", unread or "")]
        if (count := lanes(tags, along=along)) is None:
            count = default.lanes
            guessed.append(("lanes", str(count)))
        capacity = capacity_vph if own is None else own.capacity_vph
        guessed.append(("capacity_vph", f"{capacity:,g}"))
        name = tags.get("name", "").partition(";")[0].strip()
        turns = tags.get("turn:lanes:forward" if along else "turn:lanes:backward")
        if turns is None and not all(directions(tags)):
            turns = tags.get("turn:lanes")
        numbers = (length_m, kph / 3.6, count, capacity)
        circle = tags.get("junction") == "roundabout"
        return cls(way, road_class, *numbers, tuple(guessed), name or None, along, turns, circle)


def link_of(streets: Sequence[Street]) -> dict[str, Any]:
    """Make one link from the sections between two junctions.

    Parameters
    ----------
    streets
        The sections in the order in which they are driven; at least one.

    Returns
    -------
    dict
        Attributes in the schema of :mod:`simulator.roads.schema`: the total length of the sections; the speed that
        gives their total travel time; the fewest lanes and the smallest capacity of any; the class and the name with
        the most metres. ``osm_ways`` names the ways.
    """
    length_m = sum(street.length_m for street in streets)
    link: dict[str, Any] = {
        "length_m": length_m,
        "speed_mps": length_m / sum(street.length_m / street.speed_mps for street in streets),
        "lanes": min(street.lanes for street in streets),
        "capacity_vph": float(min(street.capacity_vph for street in streets)),
        "osm_ways": ";".join(dict.fromkeys(street.way for street in streets)),
    }
    for key, texts in (
        ("class", [street.road_class for street in streets]),
        ("name", [street.name for street in streets]),
    ):
        metres: dict[str | None, float] = {}
        for text, street in zip(texts, streets, strict=True):
            metres[text] = metres.get(text, 0.0) + street.length_m
        longest = max(metres, key=lambda text: metres[text])
        link |= {} if longest is None else {key: longest}
    return link


def guesses_of(streets: Sequence[Street]) -> dict[str, tuple[str | None, str]]:
    """Return the defaults that a link took; for each value, the default of its longest section that took one.

    Parameters
    ----------
    streets
        As for :func:`link_of`.

    Returns
    -------
    dict
        Name of each value to the class of road and the default in words.
    """
    guesses: dict[str, tuple[str | None, str]] = {}
    for street in sorted(streets, key=lambda street: street.length_m):
        guesses.update({name: (street.road_class, words) for name, words in street.guessed})
    return guesses


def simplified(graph: nx.MultiDiGraph[Any]) -> nx.MultiDiGraph[Any]:
    """Join the edges between junctions with OSMnx.

    Parameters
    ----------
    graph
        A graph as returned by :func:`ways_graph`.

    Returns
    -------
    networkx.MultiDiGraph
        A copy in which every node with two neighbours, at which no street begins, ends or changes between one-way and
        two-way, has become a point of the joined edge's ``geometry``; ``streets`` are concatenated in order.
    """
    joined: nx.MultiDiGraph[Any] = import_osmnx().simplify_graph(
        graph,
        remove_rings=False,
        edge_attr_aggs={"length_m": sum, "streets": lambda parts: tuple(chain.from_iterable(parts))},
    )
    joined.graph.pop("simplified", None)
    return joined


MIDDLE = "split at"
"""First part of the key of a node that is not in the file."""


def split_loops(graph: nx.MultiDiGraph[Any], known: Mapping[tuple[float, float], Any]) -> tuple[int, int]:
    """Cut every loop in two at a point of its geometry, in place; both directions of a road at the same point.

    Parameters
    ----------
    graph
        A road graph; edges with ``length_m`` and optionally ``geometry``.
    known
        Nodes of the file by position: the new node takes the key of the node at its position.

    Returns
    -------
    cut, dropped : int
        Number of loops that were cut, and of those removed because their geometry has no point other than its ends.
    """
    loops = [(node, key, data) for node, end, key, data in graph.edges(keys=True, data=True) if node == end]
    cut = 0
    for node, key, data in loops:
        graph.remove_edge(node, node, key)
        line = data.get("geometry")
        points = np.empty((0, 2)) if line is None else shapely.get_coordinates(line)
        inside = [tuple(point) for point in points[1:-1].tolist()]
        away = [point for point in inside if point not in (tuple(points[0].tolist()), tuple(points[-1].tolist()))]
        if not away:
            continue
        place = min(away)
        at = inside.index(place) + 1
        middle = known.get(place, f"{MIDDLE} {place[0]:.1f}, {place[1]:.1f}")
        if middle not in graph:
            graph.add_node(middle, x=place[0], y=place[1])
        first, second = shapely.LineString(points[: at + 1]), shapely.LineString(points[at:])
        share = first.length / (first.length + second.length)
        graph.add_edge(node, middle, **data | {"geometry": first, "length_m": data["length_m"] * share})
        graph.add_edge(middle, node, **data | {"geometry": second, "length_m": data["length_m"] * (1 - share)})
        cut += 1
    return cut, len(loops) - cut


def import_osmnx() -> Any:
    """Import OSMnx, whose settings are not changed; none of the functions used accesses the internet.

    Raises
    ------
    InputError
        If it is not installed.
    """
    return import_extra("osmnx", needed="reading OpenStreetMap needs osmnx", extra="osm")
