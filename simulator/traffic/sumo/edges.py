"""SUMO's edges as far as a trip begins or ends on them."""

from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt

UNKNOWN = -1
Ends = Callable[[str], tuple[tuple[float, float], tuple[float, float]]]
"""From an edge to where it begins and ends, in SUMO's coordinates."""


class Edges:
    """Numbers edges as trips name them, and knows their links and their ends.

    Parameters
    ----------
    driven
        The network's edges, by SUMO's id.
    link_of
        The city's link of each edge; of those it has.
    """

    def __init__(self, driven: Collection[str], link_of: Mapping[str, int]) -> None:
        self._driven, self._link_of = driven, link_of
        self._number: dict[str, int] = {}
        self._ends: list[tuple[float, float, float, float]] = []
        self._links: list[int] = []

    def number(self, edge: str, ends: Ends) -> int:
        """Return the edge's number, -1 where the network has no such edge; `ends` is asked the first time."""
        known = self._number.get(edge)
        if known is None:
            if edge not in self._driven:
                return UNKNOWN
            (x0, y0), (x1, y1) = ends(edge)
            known = self._number[edge] = len(self._ends)
            self._ends.append((x0, y0, x1, y1))
            self._links.append(self.link(edge))
        return known

    def link(self, edge: str) -> int:
        """Return the city's link of an edge; -1 of one it has not, and within a junction."""
        return self._link_of.get(edge, -1)

    def starts(self, numbers: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return links and SUMO's coordinates of where edges begin; -1 and NaN of number -1."""
        return self._take(numbers, slice(0, 2))

    def finishes(self, numbers: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return links and SUMO's coordinates of where edges end; -1 and NaN of number -1."""
        return self._take(numbers, slice(2, 4))

    def _take(
        self, numbers: npt.NDArray[np.int32], which: slice
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        # Number -1 takes the last row: nowhere.
        ends = np.array([*self._ends, (np.nan,) * 4], dtype=np.float64)
        links = np.array([*self._links, -1], dtype=np.int32)
        return links[numbers], ends[numbers, which]
