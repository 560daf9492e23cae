"""Streets as OpenStreetMap keeps them: ways along nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, eq=False)
class OsmWay:
    """One way that is open to cars.

    Parameters
    ----------
    way
        OpenStreetMap's id.
    tags
        Those in :data:`~simulator.roads.osm.tags.WAY_TAGS`.
    nodes
        Ids along the way, in its order.
    """

    way: int
    tags: Mapping[str, str]
    nodes: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class OsmWays:
    """The ways of a file that are open to cars, and where nodes are.

    Parameters
    ----------
    nodes
        Node id to longitude and latitude, WGS84 degrees.
    ways
        In the order of the file.
    others
        How many ways of the file are not among them.
    """

    nodes: dict[int, tuple[float, float]]
    ways: list[OsmWay]
    others: int
    _stands_for: dict[int, int] = field(default_factory=dict)

    def segments(self, way: OsmWay) -> Iterator[tuple[int, int]]:
        """Go along a way from node to node.

        A node that the file does not hold breaks the way; of neighbours at the same place, one stands for both.

        Parameters
        ----------
        way
            One of :attr:`ways`.

        Yields
        ------
        tuple of int
            Two node ids, at different places.
        """
        before = None
        for node in way.nodes:
            here = self._first_at(node) if node in self.nodes else None
            if here is not None and before is not None and here != before:
                yield before, here
            before = here

    def merge_places(self) -> int:
        """Let one node stand for those next to it, along a way, at the very same place.

        Returns
        -------
        int
            How many nodes are stood for.
        """
        for way in self.ways:
            for before, here in zip(way.nodes, way.nodes[1:], strict=False):
                if before != here and before in self.nodes and self.nodes[before] == self.nodes.get(here):
                    one, other = sorted((self._first_at(before), self._first_at(here)))
                    if one != other:
                        self._stands_for[other] = one
        return len(self._stands_for)

    def missing(self) -> int:
        """Count the nodes that ways name and the file does not hold."""
        return len({node for way in self.ways for node in way.nodes if node not in self.nodes})

    def _first_at(self, node: int) -> int:
        """Return the node that stands for this one."""
        while node in self._stands_for:
            node = self._stands_for[node]
        return node
