"""Partition into road segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyproj
import shapely

from simulator.cells.coarsening import DrawnCells
from simulator.cells.partition import first_match
from simulator.files.errors import InputError, positive_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False, repr=False)
class RoadSegments(DrawnCells):
    """Links of a network, each alone or together with the opposite link; built by :meth:`build`.

    A vehicle whose link is known is in that link's cell. A vehicle known by its coordinates is in the cell of the
    nearest segment (the first of equally near ones), unless that is further away than ``within_m``.

    Parameters
    ----------
    crs
        Projected coordinate system, metres.
    shapes
        Geometry of each cell, shape (V,): a line, or two lines.
    names
        One name per cell.
    cell_of_links
        The cell of each link, 0 for a link in no cell, int32, shape (links,).
    within_m
        Maximum distance of a point from its segment, metres.
    """

    crs: pyproj.CRS
    shapes: NDArray[np.object_]
    names: list[str]
    cell_of_links: NDArray[np.int32]
    within_m: float

    kind = "roads"
    maps_links = True

    @classmethod
    def build(
        cls,
        geometries: NDArray[np.object_],
        *,
        cell_of_links: NDArray[np.int32],
        names: Sequence[str],
        crs: object,
        within_m: float,
    ) -> RoadSegments:
        """Build cells from links.

        Parameters
        ----------
        geometries
            One line per link, shape (links,).
        cell_of_links
            The cell of each link, 1 … V without gaps, 0 for none; shape (links,).
        names
            One name per cell; a repeated name gets a number.
        crs
            Projected coordinate system of the lines.
        within_m
            Maximum distance of a point from its segment, metres.

        Returns
        -------
        RoadSegments
            With at least one cell.

        Raises
        ------
        InputError
            If no link is a cell, or the distance is not above 0.
        """
        faults = positive_faults(within_m=within_m)
        if not cell_of_links.any():
            faults.append("no road is a cell")
        if faults:
            raise InputError(faults)
        order = np.argsort(cell_of_links, kind="stable")[np.count_nonzero(cell_of_links == 0) :]
        groups = np.split(geometries[order], np.flatnonzero(np.diff(cell_of_links[order])) + 1)
        lines = np.empty(len(groups), dtype=object)
        lines[:] = [_drawn(group) for group in groups]
        return cls(pyproj.CRS.from_user_input(crs), lines, numbered(names), cell_of_links, float(within_m))

    def cell_of_link(self, link: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the cell of each link, 0 for none; (n,) link ids to (n,) int32."""
        return np.asarray(self.cell_of_links[link])

    def cell_of(self, xy: ArrayLike) -> NDArray[np.int32]:
        """Return the cell of each point: the nearest segment; shapes, units and errors as `Partition.cell_of`."""
        return first_match(
            xy, lambda points: self._tree.query_nearest(points, max_distance=self.within_m), count=self.count
        )

    @cached_property
    def middles(self) -> NDArray[np.float64]:
        """Midpoint of each cell's first line, (V, 2)."""
        first = shapely.get_geometry(self.shapes, 0)
        return np.asarray(shapely.get_coordinates(shapely.line_interpolate_point(first, 0.5, normalized=True)))

    def __repr__(self) -> str:
        """Describe the number of cells and links."""
        return f"RoadSegments({self.count} cells on {len(self.cell_of_links)} links)"


def pairs_of(
    from_node: NDArray[np.integer], to_node: NDArray[np.integer], geometries: NDArray[np.object_]
) -> NDArray[np.int64]:
    """Pair the two directions of each road.

    A link and an opposite link between the same two nodes are one road. If there are several opposite links, each
    link, in ascending order, is paired with the unpaired one whose midpoint is nearest to its own.

    Parameters
    ----------
    from_node, to_node
        Nodes of each link, shape (links,).
    geometries
        One line per link, shape (links,).

    Returns
    -------
    ndarray
        The road of each link, 0 … roads - 1 in the order of their first links; int64, shape (links,).
    """
    low, high = np.minimum(from_node, to_node), np.maximum(from_node, to_node)
    road = np.arange(len(low), dtype=np.int64)
    order = np.lexsort((high, low))
    ends = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(ends) + 1))
    sizes = np.diff(np.append(starts, len(order)))
    two = starts[sizes == 2]
    first, second = order[two], order[two + 1]
    back = from_node[first] == to_node[second]
    road[np.maximum(first, second)[back]] = np.minimum(first, second)[back]
    for start, size in zip(starts[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
        links = np.sort(order[start : start + size])
        middles = shapely.line_interpolate_point(geometries[links], 0.5, normalized=True)
        out = from_node[links] == low[links]
        left = np.flatnonzero(~out).tolist()
        for place in np.flatnonzero(out).tolist():
            if left:
                nearest = left.pop(int(np.argmin(shapely.distance(middles[place], middles[left]))))
                road[max(links[place], links[nearest])] = min(links[place], links[nearest])
    return np.unique(road, return_inverse=True)[1].reshape(-1).astype(np.int64)


def numbered(names: Sequence[str]) -> list[str]:
    """Return unique names: a repeated name gets ``#2``, then ``#3``, and so on."""
    seen: dict[str, int] = {}
    labels, taken = [], set(names)
    for name in names:
        again = seen.get(name, 0) + 1
        shown = name
        while again > 1 and (shown := f"{name} #{again}") in taken:
            again += 1
        seen[name] = again
        taken.add(shown)
        labels.append(shown)
    return labels


def _drawn(lines: NDArray[np.object_]) -> shapely.Geometry:
    """Return the first of two lines if the second is the same line reversed, else both."""
    if len(lines) == 1 or shapely.equals_exact(lines[0], shapely.reverse(lines[1]), tolerance=1e-6):
        first: shapely.Geometry = lines[0]
        return first
    return shapely.MultiLineString(list(lines))
