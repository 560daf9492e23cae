"""A road network: the graph people see and edit, and the arrays a simulation runs on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj

from simulator.roads.errors import RoadsError
from simulator.roads.links import Links
from simulator.roads.schema import faults_of
from simulator.roads.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Hashable

    import networkx as nx
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False, repr=False)
class RoadNetwork:
    """Roads in a projected coordinate system; made by :meth:`from_graph`.

    Parameters
    ----------
    graph
        The road graph, in the schema of :mod:`simulator.roads.schema`, each edge with its ``link`` id.
    links
        The same links as arrays; ids 0 … links - 1.
    node_xy
        Where nodes are, in metres, float64, shape (nodes, 2).
    node_names
        Each node's key in the graph; a node's index is its place here, and in the order of the graph.
    crs
        The projected coordinate system, in metres.
    shapes
        The geometry of every link.
    """

    graph: nx.MultiDiGraph[Any]
    links: Links
    node_xy: NDArray[np.float64]
    node_names: list[Hashable]
    crs: pyproj.CRS
    shapes: Shapes = field(repr=False)

    @classmethod
    def from_graph(cls, graph: nx.MultiDiGraph[Any]) -> RoadNetwork:
        """Check a road graph and compile it.

        Nothing is removed: a graph that is not strongly connected stays so. See
        :func:`~simulator.roads.component.largest_strong_component`.

        Parameters
        ----------
        graph
            A graph in the schema of :mod:`simulator.roads.schema`. It is copied, not changed.

        Returns
        -------
        RoadNetwork
            Link ids ascend by (from node's index, to node's index, edge key).

        Raises
        ------
        RoadsError
            With every fault of the graph: node or edge, attribute, rule and value received.
        """
        faults = faults_of(graph)
        if faults:
            raise RoadsError(faults)
        graph = graph.copy()
        index = {node: position for position, node in enumerate(graph)}
        edges = sorted(
            graph.edges(keys=True, data=True),
            key=lambda edge: (index[edge[0]], index[edge[1]], _key_order(edge[2])),
        )
        for link, (_, _, _, data) in enumerate(edges):
            data["link"] = link
        node_xy = np.array([(data["x"], data["y"]) for _, data in graph.nodes(data=True)], dtype=np.float64)
        links = Links.from_columns(
            nodes=len(index),
            from_node=np.array([index[start] for start, _, _, _ in edges], dtype=np.int32),
            to_node=np.array([index[end] for _, end, _, _ in edges], dtype=np.int32),
            length_m=np.array([data["length_m"] for _, _, _, data in edges], dtype=np.float64),
            speed_mps=np.array([data["speed_mps"] for _, _, _, data in edges], dtype=np.float64),
            lanes=np.array([data["lanes"] for _, _, _, data in edges], dtype=np.int32),
            capacity_vph=np.array([data["capacity_vph"] for _, _, _, data in edges], dtype=np.float64),
        )
        return cls(
            graph=graph,
            links=links,
            node_xy=node_xy,
            node_names=list(index),
            crs=pyproj.CRS.from_user_input(graph.graph["crs"]),
            shapes=Shapes.from_geometries(
                node_xy[links.from_node],
                node_xy[links.to_node],
                [data.get("geometry") for _, _, _, data in edges],
            ),
        )

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of nodes and link geometries: (x_min, y_min, x_max, y_max) in metres."""
        x_min, y_min, x_max, y_max = self.shapes.bounds
        (west, south), (east, north) = self.node_xy.min(axis=0).tolist(), self.node_xy.max(axis=0).tolist()
        return min(x_min, west), min(y_min, south), max(x_max, east), max(y_max, north)

    @cached_property
    def total_length_m(self) -> float:
        """Metres of link, each direction counted."""
        return float(self.links.length_m.sum())

    @cached_property
    def through(self) -> NDArray[np.bool_]:
        """Whether routes may pass through each node, shape (nodes,); its attribute ``through``, True if it has none."""
        return np.array([data.get("through", True) for _, data in self.graph.nodes(data=True)], dtype=np.bool_)

    def locate(self, link: ArrayLike, fraction: ArrayLike) -> NDArray[np.float64]:
        """Say where vehicles are.

        Parameters
        ----------
        link
            Link ids, shape (n,).
        fraction
            How far along its link each vehicle is, 0 … 1 of the length of the link's geometry, shape (n,) or
            one number for all.

        Returns
        -------
        ndarray
            Metres in the network's coordinate system, float64, shape (n, 2).

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
        return self.shapes.locate(ids, shares)

    def to_wgs84(self, xy: ArrayLike) -> NDArray[np.float64]:
        """Turn places in the network's coordinate system into longitude and latitude.

        Parameters
        ----------
        xy
            Metres, shape (n, 2).

        Returns
        -------
        ndarray
            Degrees (longitude, latitude) of WGS84, float64, shape (n, 2).
        """
        points = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        # pyproj takes an array of one number for a number, which numpy has deprecated: one place goes in twice.
        sent = points if len(points) != 1 else points.repeat(2, axis=0)
        lon, lat = (values[: len(points)] for values in self._to_wgs84.transform(sent[:, 0], sent[:, 1]))
        return np.column_stack((lon, lat))

    @cached_property
    def _to_wgs84(self) -> pyproj.Transformer:
        return pyproj.Transformer.from_crs(self.crs, "EPSG:4326", always_xy=True)

    def __repr__(self) -> str:
        """Say how large the network is and where it lies."""
        return (
            f"RoadNetwork({len(self.node_names)} nodes, {len(self.links)} links, "
            f"{self.total_length_m / 1000:.1f} km, crs {self.crs.name!r})"
        )


def _key_order(key: object) -> tuple[bool, int, str]:
    """Order of parallel edges: whole-number keys by value, then others by their text."""
    return (False, key, "") if isinstance(key, int) else (True, 0, str(key))
