"""Links of a road network as arrays.

Road network: a networkx graph for inspection and editing, and arrays of links and shapes for simulation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely

from mechanisms.compiled import compiled
from simulator.files.errors import InputError
from simulator.roads.driving_side import DrivingSide
from simulator.roads.movements import is_open_to, movement_table, signal_table
from simulator.roads.projection import WGS84, transform
from simulator.roads.schema import EDGE_NUMBERS, faults_of

LINK_IDS = ("sumo_edge", "matsim_link", "link_id", "edge", "id")
"""Attributes of an edge that can be its identifier in the source; the first one present is used."""
_SAME_PLACE_M = 1.0
"""Difference of distances below which two links are equally near to a point."""

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import geopandas as gpd
    import networkx as nx
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """The attributes of every link that a traffic engine needs, as arrays.

    Link ids are positions in these arrays. Links are sorted by (from node, to node, key of a parallel edge), so
    the links that leave node ``i`` are the range ``first_out[i]:first_out[i + 1]``. The arrays are shared:
    copy one before changing it.

    Parameters
    ----------
    from_node, to_node
        Node indices, int32, shape (links,).
    length_m
        Metres, float64, shape (links,).
    speed_mps
        Free-flow speed in metres per second, float64, shape (links,).
    lanes
        Lanes, int32, shape (links,).
    capacity_vph
        Vehicles per hour and lane, float64, shape (links,).
    first_out
        Id of the first link that leaves each node, and at the end the number of links; int32, shape (nodes + 1,).
    """

    from_node: NDArray[np.int32]
    to_node: NDArray[np.int32]
    length_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    lanes: NDArray[np.int32]
    capacity_vph: NDArray[np.float64]
    first_out: NDArray[np.int32]

    @property
    def free_flow_s(self) -> NDArray[np.float64]:
        """Free-flow travel time of each link in seconds, shape (links,)."""
        return self.length_m / self.speed_mps

    def __len__(self) -> int:
        """Count the links."""
        return len(self.from_node)

    def __repr__(self) -> str:
        """Return a text with the numbers of links and nodes."""
        return f"Links({len(self)} links, {len(self.first_out) - 1} nodes)"


@dataclass(frozen=True, eq=False, repr=False)
class Shapes:
    """The geometry of every link: a straight segment, or a polyline where the road bends.

    Parameters
    ----------
    start_xy, end_xy
        First and last point of each link in metres, shape (links, 2).
    polyline
        Index of the polyline that a link follows, int32, shape (links,); -1 for a straight link.
    first_vertex
        Polyline ``b`` consists of the vertices ``first_vertex[b]:first_vertex[b + 1]``, shape (polylines + 1,).
    vertices
        Vertices of all polylines in metres, one after another, shape (vertices, 2).
    milestones
        Fraction of its polyline's length at which each vertex lies, shape (vertices,).
    """

    start_xy: NDArray[np.float64]
    end_xy: NDArray[np.float64]
    polyline: NDArray[np.int32]
    first_vertex: NDArray[np.int64]
    vertices: NDArray[np.float64]
    milestones: NDArray[np.float64]

    @classmethod
    def from_geometries(
        cls, start_xy: NDArray[np.float64], end_xy: NDArray[np.float64], geometries: Sequence[shapely.LineString | None]
    ) -> Shapes:
        """Build the shapes from each link's geometry if it has one, else from the segment between its nodes.

        Parameters
        ----------
        start_xy, end_xy
            Positions of each link's end nodes, in metres, shape (links, 2).
        geometries
            One LineString per link, from its first node to its last; None for a straight link.

        Returns
        -------
        Shapes
            The shapes, in the order of the links.
        """
        start_xy, end_xy = start_xy.copy(), end_xy.copy()
        polyline = np.full(len(start_xy), -1, dtype=np.int32)
        first, vertices, milestones = [0], [np.empty((0, 2))], [np.empty(0)]
        for link, geometry in enumerate(geometries):
            if geometry is None:
                continue
            points = shapely.get_coordinates(geometry)
            start_xy[link], end_xy[link] = points[0], points[-1]
            walked = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
            if len(points) == 2 or walked[-1] == 0:
                continue
            polyline[link] = len(first) - 1
            milestones.append(walked / walked[-1])
            vertices.append(points)
            first.append(first[-1] + len(points))
        bends = np.array(first, dtype=np.int64), np.concatenate(vertices), np.concatenate(milestones)
        return cls(start_xy, end_xy, polyline, *bends)

    def lines(self) -> NDArray[np.object_]:
        """Return a LineString in metres for every link, (links,) shapely geometries."""
        links = np.arange(len(self.polyline))
        straight = self.polyline < 0
        sizes = np.where(straight, 2, np.diff(self.first_vertex)[self.polyline] if len(self.vertices) else 2)
        points = np.empty((int(sizes.sum()), 2))
        first = np.concatenate(([0], np.cumsum(sizes)))[:-1]
        points[first[straight]], points[first[straight] + 1] = self.start_xy[straight], self.end_xy[straight]
        for link in links[~straight]:
            bend = self.polyline[link]
            begin, stop = self.first_vertex[bend : bend + 2]
            points[first[link] : first[link] + sizes[link]] = self.vertices[begin:stop]
        return np.asarray(shapely.linestrings(points, indices=np.repeat(links, sizes)), dtype=object)


@compiled
def _locate(
    link: NDArray[np.int64],
    fraction: NDArray[np.float64],
    offset_m: NDArray[np.float64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    bends: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Interpolate each point as a·(1 - f) + b·f, which is exact at both ends."""
    start_xy, end_xy = ends
    polyline, first_vertex, vertices, milestones = bends
    place = np.empty((len(link), 2))
    for i in range(len(link)):
        on, share = link[i], fraction[i]
        x_from, y_from, x_to, y_to = start_xy[on, 0], start_xy[on, 1], end_xy[on, 0], end_xy[on, 1]
        bend = polyline[on]
        if bend >= 0 and 0.0 < share < 1.0:
            # A loop, as `searchsorted` and `min` take half a second to compile.
            before, after = first_vertex[bend], first_vertex[bend + 1] - 1
            while after - before > 1:
                middle = (before + after) >> 1
                if milestones[middle] <= share:
                    before = middle
                else:
                    after = middle
            x_from, y_from = vertices[before, 0], vertices[before, 1]
            x_to, y_to = vertices[after, 0], vertices[after, 1]
            share = (share - milestones[before]) / (milestones[after] - milestones[before])
        place[i, 0] = x_from * (1.0 - share) + x_to * share
        place[i, 1] = y_from * (1.0 - share) + y_to * share
        if offset_m[i] != 0.0:
            dx, dy = x_to - x_from, y_to - y_from
            length = np.hypot(dx, dy)
            if length > 0.0:
                place[i, 0] -= offset_m[i] * dy / length
                place[i, 1] += offset_m[i] * dx / length
    return place


@dataclass(frozen=True, eq=False, repr=False)
class RoadNetwork:
    """A road network in a projected coordinate system; built by :meth:`from_graph`.

    Parameters
    ----------
    nodes
        The attributes of each node by its key, as :mod:`simulator.roads.schema` has them.
    edges
        The nodes, key and attributes of each edge, with its ``link`` id, in the order of the graph.
    links
        The same links as arrays; ids 0 … links - 1.
    node_xy
        Positions of the nodes, in metres, float64, shape (nodes, 2).
    node_names
        Each node's key in the graph; a node's index is its position in this list and in the order of the graph.
    crs
        The projected coordinate system, in metres.
    shapes
        The geometry of every link.
    surroundings
        Water and places, of :func:`~simulator.roads.surroundings.surroundings_of`; None where the source has none.
    movements, signals
        Tables of :mod:`simulator.roads.movements`, by link ids and indices of nodes; empty where the source has none.
    side
        The side of the road on which traffic drives, of :func:`~simulator.roads.driving_side.side_of`.
    """

    nodes: dict[Hashable, dict[str, Any]]
    edges: list[Any]
    links: Links
    node_xy: NDArray[np.float64]
    node_names: list[Hashable]
    crs: pyproj.CRS
    shapes: Shapes = field(repr=False)
    surroundings: gpd.GeoDataFrame | None = field(default=None, repr=False)
    movements: pd.DataFrame = field(default_factory=movement_table, repr=False)
    signals: pd.DataFrame = field(default_factory=signal_table, repr=False)
    side: DrivingSide = field(default=DrivingSide(), repr=False)

    @cached_property
    def graph(self) -> nx.MultiDiGraph[Any]:
        """The road graph, in the schema of :mod:`simulator.roads.schema`, each edge with its ``link`` id."""
        import networkx as nx  # noqa: PLC0415 - a thirtieth of a run of `tiny`, which needs no graph

        graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(crs=self.crs)
        graph.add_nodes_from(self.nodes.items())
        graph.add_edges_from(self.edges)
        return graph

    @classmethod
    def from_graph(cls, graph: nx.MultiDiGraph[Any]) -> RoadNetwork:
        """Check a road graph and compile it.

        Nothing is removed: a graph that is not strongly connected is kept as it is. To reduce it first, see
        :func:`~simulator.roads.connectivity.largest_strong_component`.

        Parameters
        ----------
        graph
            A graph in the schema of :mod:`simulator.roads.schema`. It is copied, not changed.

        Returns
        -------
        RoadNetwork
            Links are sorted by (from node's index, to node's index, edge key).

        Raises
        ------
        InputError
            If the graph is faulty; every fault names node or edge, attribute, rule and value received.
        """
        if faults := faults_of(graph):
            raise InputError(faults)
        edges = [(*edge, dict(data)) for *edge, data in graph.edges(keys=True, data=True)]
        return cls.of({node: dict(data) for node, data in graph.nodes(data=True)}, edges, graph.graph["crs"])

    @classmethod
    def of(cls, nodes: dict[Hashable, dict[str, Any]], edges: list[Any], crs: object) -> RoadNetwork:
        """Compile nodes, and edges with their keys, that fit the schema; the attribute ``link`` of edges is set."""
        index = {node: position for position, node in enumerate(nodes)}
        ordered = sorted(edges, key=lambda edge: (index[edge[0]], index[edge[1]], _key_order(edge[2])))
        for link, (_, _, _, data) in enumerate(ordered):
            data["link"] = link
        node_xy = np.array([(data["x"], data["y"]) for data in nodes.values()], dtype=np.float64)
        from_node = np.array([index[start] for start, _, _, _ in ordered], dtype=np.int32)
        numbers = {name: np.array([data[name] for *_, data in ordered], dtype=np.float64) for name in EDGE_NUMBERS}
        links = Links(
            from_node=from_node,
            to_node=np.array([index[end] for _, end, _, _ in ordered], dtype=np.int32),
            length_m=numbers["length_m"],
            speed_mps=numbers["speed_mps"],
            lanes=numbers["lanes"].astype(np.int32),
            capacity_vph=numbers["capacity_vph"],
            first_out=np.searchsorted(from_node, np.arange(len(index) + 1)).astype(np.int32),
        )
        curves = [data.get("geometry") for _, _, _, data in ordered]
        shapes = Shapes.from_geometries(node_xy[links.from_node], node_xy[links.to_node], curves)
        return cls(nodes, edges, links, node_xy, list(index), pyproj.CRS.from_user_input(crs), shapes)

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of nodes and link geometries: (x_min, y_min, x_max, y_max) in metres."""
        shapes = self.shapes
        points = np.concatenate((self.node_xy, shapes.start_xy, shapes.end_xy, shapes.vertices))
        (x_min, y_min), (x_max, y_max) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return x_min, y_min, x_max, y_max

    def links_named_by(self, attribute: str) -> dict[str, int]:
        """Return the link of each value of an attribute of edges, as ``sumo_edge``; empty if no edge has it."""
        return {data[attribute]: data["link"] for *_, data in self.edges if attribute in data}

    @cached_property
    def classes(self) -> list[str | None]:
        """The class of each link, None where its source states none."""
        of_link = {data["link"]: data.get("class") for *_, data in self.edges}
        return [of_link[link] for link in range(len(self.links))]

    @cached_property
    def total_length_m(self) -> float:
        """Total length of all links in metres, each direction counted."""
        return float(self.links.length_m.sum())

    @cached_property
    def through(self) -> NDArray[np.bool_]:
        """Whether routes may pass through each node, shape (nodes,); its attribute ``through``, True if it has none."""
        return np.array([data.get("through", True) for data in self.nodes.values()], dtype=np.bool_)

    @cached_property
    def banned_turns(self) -> NDArray[np.int32]:
        """Turns without an allowed movement: pairs of link ids, ascending, shape (turns, 2)."""
        return self.banned_to([])

    def banned_to(self, classes: Iterable[str]) -> NDArray[np.int32]:
        """Return the turns that no movement allows, or none to one of some vehicle classes.

        Returns
        -------
        numpy.ndarray
            (turns, 2) int32: pairs of link ids, ascending.
        """
        rows = self.movements[["from_link", "to_link", "allowed"]].copy()
        for place, name in enumerate(classes):
            rows[f"to {place}"] = self.movements["allowed"] & is_open_to(self.movements, name)
        allowed = rows.groupby(["from_link", "to_link"]).any().all(axis=1)
        return np.array(allowed.index[~allowed].tolist(), dtype=np.int32).reshape(-1, 2)

    def locate(
        self, link: ArrayLike, fraction: ArrayLike, offset_m: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the coordinates of vehicles on links.

        Parameters
        ----------
        link
            Link ids, shape (n,).
        fraction
            Position of each vehicle along its link, 0 … 1 of the length of the link's geometry, shape (n,) or
            one number for all.
        offset_m
            Distance to the left of the geometry in metres, shape (n,); by default, 0.

        Returns
        -------
        ndarray
            Metres in the network's coordinate system, float64, shape (n, 2); exactly the ends of a shape at 0 and 1.

        Raises
        ------
        ValueError
            If a link id or a fraction is out of range.
        """
        ids = np.asarray(link)
        shares = np.broadcast_to(np.asarray(fraction, dtype=np.float64), ids.shape)
        if ids.size == 0:
            return np.empty((0, 2))
        if not np.issubdtype(ids.dtype, np.integer) or ids.ndim != 1:
            raise ValueError(f"link must be whole numbers of shape (n,), got {ids.dtype} of {ids.shape}")
        if ids.min() < 0 or ids.max() >= len(self.links):
            raise ValueError(f"link must be 0 … {len(self.links) - 1}, got {ids.min()} … {ids.max()}")
        if not (shares.min() >= 0.0 and shares.max() <= 1.0):
            raise ValueError(f"fraction must be 0 … 1, got {shares.min()} … {shares.max()}")
        shapes = self.shapes
        points = np.ascontiguousarray(ids, dtype=np.int64), np.ascontiguousarray(shares)
        offsets = np.zeros(len(ids)) if offset_m is None else offset_m
        bends = (shapes.polyline, shapes.first_vertex, shapes.vertices, shapes.milestones)
        return np.asarray(_locate(*points, offsets, (shapes.start_xy, shapes.end_xy), bends))

    @cached_property
    def link_ids(self) -> dict[str, int]:
        """The link of each identifier in the roads' source that one link alone has; if none has one, of its number."""
        named = [(str(data[key]), data["link"]) for *_, data in self.edges for key in LINK_IDS if data.get(key)]
        often = Counter(name for name, _ in named)
        return {name: link for name, link in named if often[name] == 1} or {str(n): n for n in range(len(self.links))}

    def nearest_links(self, xy: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the link nearest to each point, and how far it is.

        Of links at nearly one distance, within a metre, as the two directions of a street, the one with the lowest id
        is taken.

        Parameters
        ----------
        xy
            Metres in the network's coordinate system, shape (n, 2).

        Returns
        -------
        link : numpy.ndarray
            (n,) int64; 0 for a point that is not finite.
        distance_m : numpy.ndarray
            (n,) float64; infinite for a point that is not finite.
        """
        link, far_m = np.zeros(len(xy), dtype=np.int64), np.full(len(xy), np.inf)
        known = np.flatnonzero(np.isfinite(xy).all(axis=1))
        points = shapely.points(xy[known])
        _, far_m[known] = self._link_tree.query_nearest(points, return_distance=True, all_matches=False)
        of, near = self._link_tree.query(points, predicate="dwithin", distance=far_m[known] + _SAME_PLACE_M)
        order = np.lexsort((near, of))
        first = order[np.unique(of[order], return_index=True)[1]]
        link[known] = near[first]
        return link, far_m

    def nearest_positions(
        self, xy: NDArray[np.float64], *, within_m: float, heading_deg: NDArray[np.float64], allowed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Find the position on a link that is nearest to each point.

        Parameters
        ----------
        xy
            Metres in the network's coordinate system, shape (n, 2); NaN for no point.
        within_m
            Maximum distance.
        heading_deg
            Direction of traffic, clockwise from north, shape (n,): only links whose direction there differs from it by
            less than a right angle are near; NaN for any.
        allowed
            Links that are considered, shape (links,).

        Returns
        -------
        tuple of ndarray
            The link, -1 for none, int32, and the fraction of its geometry, float64, shape (n,) each. Of links that are
            equally near, to the millimetre, the first.
        """
        lines, points = self.shapes.lines(), np.asarray(shapely.points(xy))
        points[~np.isfinite(xy).all(axis=1)] = None
        of, link = self._link_tree.query(points, predicate="dwithin", distance=within_m)
        of, link = of[allowed[link]], link[allowed[link]]
        along_m = np.asarray(shapely.line_locate_point(lines[link], points[of]))
        ends = [shapely.line_interpolate_point(lines[link], np.maximum(along_m + by, 0.0)) for by in (-1.0, 1.0)]
        east, north = (shapely.get_coordinates(ends[1]) - shapely.get_coordinates(ends[0])).T
        agrees = east * np.sin(np.radians(heading_deg[of])) + north * np.cos(np.radians(heading_deg[of]))
        apart = np.round(shapely.distance(lines[link], points[of]), 3)
        order = np.lexsort((link, apart, of))
        order = order[~(agrees[order] <= 0.0)]  # NaN, of no direction, agrees
        best = order[np.unique(of[order], return_index=True)[1]]
        nearest, fraction = np.full(len(xy), -1, dtype=np.int32), np.zeros(len(xy))
        nearest[of[best]] = link[best]
        fraction[of[best]] = np.clip(along_m[best] / np.maximum(shapely.length(lines[link[best]]), 1e-9), 0.0, 1.0)
        return nearest, fraction

    @cached_property
    def _link_tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.shapes.lines())

    def to_wgs84(self, xy: ArrayLike) -> NDArray[np.float64]:
        """Convert positions in the network's coordinate system to longitude and latitude.

        Parameters
        ----------
        xy
            Metres, shape (n, 2).

        Returns
        -------
        ndarray
            Degrees (longitude, latitude) of WGS84, float64, shape (n, 2).
        """
        return transform(self.crs, WGS84, np.asarray(xy, dtype=np.float64).reshape(-1, 2))

    def __repr__(self) -> str:
        """Return a text with the network's size and coordinate system."""
        return (
            f"RoadNetwork({len(self.node_names)} nodes, {len(self.links)} links, "
            f"{self.total_length_m / 1000:.1f} km, crs {self.crs.name!r})"
        )


def _key_order(key: object) -> tuple[bool, int, str]:
    """Return the sort key of parallel edges: whole-number keys by value, then others by their text."""
    return (False, key, "") if isinstance(key, int) else (True, 0, str(key))
