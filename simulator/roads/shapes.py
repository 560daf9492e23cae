"""Shapes of links, and where along them a vehicle is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from mechanisms.kernel import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Shapes:
    """The geometry of every link: a straight segment, or a polyline where the road bends.

    Parameters
    ----------
    start_xy, end_xy
        First and last point of each link in metres, shape (links, 2).
    polyline
        Which polyline a link follows, int32, shape (links,); -1 for a straight link.
    first_vertex
        Polyline ``b`` owns the vertices ``first_vertex[b]:first_vertex[b + 1]``, shape (polylines + 1,).
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
        cls,
        start_xy: NDArray[np.float64],
        end_xy: NDArray[np.float64],
        geometries: Sequence[shapely.LineString | None],
    ) -> Shapes:
        """Take each link's geometry where it has one, else the segment between its nodes.

        Parameters
        ----------
        start_xy, end_xy
            Where each link's end nodes are, in metres, shape (links, 2).
        geometries
            One LineString a link, from its first node to its last; None for a straight link.

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
        return cls(
            start_xy=start_xy,
            end_xy=end_xy,
            polyline=polyline,
            first_vertex=np.array(first, dtype=np.int64),
            vertices=np.concatenate(vertices),
            milestones=np.concatenate(milestones),
        )

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Smallest rectangle around every shape: (x_min, y_min, x_max, y_max) in metres."""
        points = np.concatenate((self.start_xy, self.end_xy, self.vertices))
        (x_min, y_min), (x_max, y_max) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return x_min, y_min, x_max, y_max

    def locate(self, link: NDArray[np.integer], fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """Place points on links.

        Parameters
        ----------
        link
            Link ids, shape (n,).
        fraction
            How far along its link each point is, 0 … 1 of the length of the link's shape, shape (n,).

        Returns
        -------
        ndarray
            Metres, float64, shape (n, 2); exactly the shape's ends at 0 and 1.
        """
        return np.asarray(
            _locate(
                np.ascontiguousarray(link, dtype=np.int64),
                np.ascontiguousarray(fraction, dtype=np.float64),
                (self.start_xy, self.end_xy),
                (self.polyline, self.first_vertex, self.vertices, self.milestones),
            )
        )


@compiled
def _locate(
    link: NDArray[np.int64],
    fraction: NDArray[np.float64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    bends: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Point by point; a·(1 - f) + b·f is exact at both ends."""
    start_xy, end_xy = ends
    polyline, first_vertex, vertices, milestones = bends
    place = np.empty((len(link), 2))
    for i in range(len(link)):
        on, share = link[i], fraction[i]
        x_from, y_from, x_to, y_to = start_xy[on, 0], start_xy[on, 1], end_xy[on, 0], end_xy[on, 1]
        bend = polyline[on]
        if bend >= 0 and 0.0 < share < 1.0:
            first, last = first_vertex[bend], first_vertex[bend + 1] - 1
            after = first + np.searchsorted(milestones[first : last + 1], share, side="right")
            after = min(after, last)
            before = after - 1
            x_from, y_from, x_to, y_to = (
                vertices[before, 0],
                vertices[before, 1],
                vertices[after, 0],
                vertices[after, 1],
            )
            share = (share - milestones[before]) / (milestones[after] - milestones[before])
        place[i, 0] = x_from * (1.0 - share) + x_to * share
        place[i, 1] = y_from * (1.0 - share) + y_to * share
    return place
