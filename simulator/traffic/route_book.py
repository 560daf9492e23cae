"""Route book: routes that may change while they are driven."""

import numpy as np
import numpy.typing as npt

from mechanisms.kernel import compiled
from simulator.traffic.routes import Routes

IntArray = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

_SLACK = 4
"""A book that is written anew has room for a quarter of its links besides those that are needed at once."""


class RouteBook:
    """The row of links each vehicle drives, what it has driven included; the rest of a row may be replaced.

    A row that changes is written again behind the others, and when the room there is used up all rows are written
    anew without the dead ones; so the book holds its live links, a quarter more, and what one change takes. As
    long as no row has changed it holds nothing of its own.

    Parameters
    ----------
    routes
        What the vehicles set out with; never changed.

    Attributes
    ----------
    start, end
        (vehicles,) int64; the row of vehicle i is links[start[i]:end[i]], never empty.
    links
        int32 link ids. All three may be other arrays after `replace`.
    live
        Links of all rows.
    """

    def __init__(self, routes: Routes) -> None:
        self._routes: Routes | None = routes
        self.start, self.end, self.links = routes.offsets[:-1], routes.offsets[1:], routes.links
        self._used = len(routes.links)
        self.live = len(routes.links)
        self._own = False

    def of(self, vehicle: int) -> IntArray:
        """Return the links of one vehicle's row."""
        return self.links[self.start[vehicle] : self.end[vehicle]]

    def last(self, vehicles: int) -> IntArray:
        """Return the last link of each of the first `vehicles` rows."""
        return self.links[self.end[:vehicles] - 1]

    def at(self, vehicles: Longs, position: npt.NDArray[np.integer]) -> IntArray:
        """Return the link at `position` of the row of each of `vehicles`."""
        return self.links[self.start[vehicles] + position]

    def replace(self, vehicles: Longs, keep: Longs, rest: Routes) -> npt.NDArray[np.bool_]:
        """Let the first `keep` links of a vehicle's row be followed by new ones.

        Parameters
        ----------
        vehicles
            (n,) int64, whose; no vehicle twice.
        keep
            (n,) int64, how many of the row's links stay.
        rest
            n rows: the links after them.

        Returns
        -------
        numpy.ndarray
            (n,) bool: whose row is another one now.
        """
        changed = _differs(self.start, self.end, self.links, vehicles, keep, rest.offsets, rest.links)
        if not changed.any():
            return changed
        rows = np.flatnonzero(changed)
        lengths = keep[rows] + np.diff(rest.offsets)[rows]
        needed = int(lengths.sum())
        if not self._own or self._used + needed > len(self.links):
            self._write_anew(needed)
        self.live += needed - int((self.end - self.start)[vehicles[rows]].sum())
        at = self._used + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        _append(self.start, self.end, self.links, vehicles, keep, rest.offsets, rest.links, rows, at)
        self._used += needed
        self._routes = None
        return changed

    def _write_anew(self, needed: int) -> None:
        links = np.empty(self.live + self.live // _SLACK + needed, dtype=np.int32)
        offsets = _gather(self.start, self.end, self.links, links)
        self.start, self.end, self.links = offsets[:-1].copy(), offsets[1:].copy(), links
        self._used = self.live
        self._own = True

    @property
    def routes(self) -> Routes:
        """All rows as they are now, one after the other."""
        if self._routes is None:
            links = np.empty(self.live, dtype=np.int32)
            self._routes = Routes(_gather(self.start, self.end, self.links, links), links)
        return self._routes

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        if not self._own:
            return self.start.nbytes + self.links.nbytes
        return self.start.nbytes + self.end.nbytes + self.links.nbytes

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return f"<RouteBook: {len(self):,} vehicles, {self.live:,} links>"


@compiled
def _differs(
    start: Longs, end: Longs, links: IntArray, vehicles: Longs, keep: Longs, offsets: Longs, rest: IntArray
) -> npt.NDArray[np.bool_]:
    changed = np.zeros(len(vehicles), dtype=np.bool_)
    for i in range(len(vehicles)):
        old = start[vehicles[i]] + keep[i]
        length = offsets[i + 1] - offsets[i]
        changed[i] = end[vehicles[i]] - old != length
        if not changed[i]:
            for step in range(length):
                if links[old + step] != rest[offsets[i] + step]:
                    changed[i] = True
                    break
    return changed


@compiled
def _append(
    start: Longs,
    end: Longs,
    links: IntArray,
    vehicles: Longs,
    keep: Longs,
    offsets: Longs,
    rest: IntArray,
    rows: Longs,
    at: Longs,
) -> None:
    for i in range(len(rows)):
        row = rows[i]
        vehicle = vehicles[row]
        write = at[i]
        for read in range(start[vehicle], start[vehicle] + keep[row]):
            links[write] = links[read]
            write += 1
        for read in range(offsets[row], offsets[row + 1]):
            links[write] = rest[read]
            write += 1
        start[vehicle] = at[i]
        end[vehicle] = write


@compiled
def _gather(start: Longs, end: Longs, links: IntArray, into: IntArray) -> Longs:
    offsets = np.zeros(len(start) + 1, dtype=np.int64)
    write = 0
    for vehicle in range(len(start)):
        for read in range(start[vehicle], end[vehicle]):
            into[write] = links[read]
            write += 1
        offsets[vehicle + 1] = write
    return offsets
