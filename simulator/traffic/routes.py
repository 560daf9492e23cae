"""Routes: the links of each vehicle's route in compressed rows, fixed or changed while they are driven."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.compiled import compiled
from simulator.arrays import Int32Array, IntArray, LinkIds, Mask
from simulator.roads.network import Links


def link_dtype(links: int) -> type[np.uint16] | type[np.int32]:
    """Return the type of the ids of a network's links in routes: 2 bytes where they suffice, else 4."""
    return np.uint16 if links <= np.iinfo(np.uint16).max else np.int32


@dataclass(frozen=True, eq=False)
class Routes:
    """Routes of all vehicles: row i holds the links of vehicle i, in driving order.

    Parameters
    ----------
    offsets
        (vehicles + 1,) int64; route i is links[offsets[i]:offsets[i + 1]], never empty.
    links
        (total,) link ids, of `link_dtype`: 2 bytes per link driven, 4 if there are more than 65,535 links.
    """

    offsets: IntArray
    links: LinkIds

    @classmethod
    def gathered(cls, links: LinkIds, starts: IntArray, lengths: IntArray) -> "Routes":
        """Copy the routes that begin at `starts` in `links`, (vehicles,) int64 each."""
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        routes = cls(offsets, np.empty(offsets[-1], dtype=links.dtype))
        copy_rows(links, starts, lengths, routes.links, offsets[:-1])
        return routes

    def check_connected(self, links: Links) -> None:
        """Check that every route is drivable on `links`.

        Raises
        ------
        ValueError
            If a route is empty, names a link that does not exist, or has consecutive links that do not meet.
        """
        lengths = np.diff(self.offsets)
        if np.any(lengths < 1):
            raise ValueError(f"route of vehicle {int(np.flatnonzero(lengths < 1)[0])} is empty")
        if len(self.links) and (self.links.min() < 0 or self.links.max() >= len(links.to_node)):
            raise ValueError(f"routes must name links 0 to {len(links.to_node) - 1}")
        meets = links.to_node[self.links[:-1]] == links.from_node[self.links[1:]]
        meets[self.offsets[1:-1] - 1] = True  # between one vehicle's last link and the next one's first
        if not meets.all():
            at = int(np.flatnonzero(~meets)[0])
            vehicle = int(np.searchsorted(self.offsets, at, side="right")) - 1
            raise ValueError(
                f"route of vehicle {vehicle}: link {self.links[at]} does not lead to link {self.links[at + 1]}"
            )

    def has_turn(self, turns: Int32Array) -> Mask:
        """Return whether each route has one of `turns`, pairs of consecutive links of shape (turns, 2); (vehicles,)."""
        most = np.iinfo(np.int32).max
        made, wanted = self.links.astype(np.int64) * most, turns[:, 0].astype(np.int64) * most + turns[:, 1]
        found = np.isin(made[:-1] + self.links[1:], wanted)
        found[self.offsets[1:-1] - 1] = False  # between one vehicle's last link and the next one's first
        vehicle = np.searchsorted(self.offsets, np.flatnonzero(found), side="right") - 1
        return np.bincount(vehicle, minlength=len(self)) > 0

    @property
    def first(self) -> Int32Array:
        """(vehicles,) int32: each vehicle's first link."""
        return self.links[self.offsets[:-1]].astype(np.int32)

    @property
    def last(self) -> Int32Array:
        """(vehicles,) int32: each vehicle's last link."""
        return self.links[self.offsets[1:] - 1].astype(np.int32)

    def of(self, vehicle: int) -> LinkIds:
        """Return the link ids of one vehicle's route."""
        return self.links[self.offsets[vehicle] : self.offsets[vehicle + 1]]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.offsets.nbytes + self.links.nbytes

    def __repr__(self) -> str:
        return f"<Routes: {len(self):,} vehicles, {len(self.links):,} links>"


_SLACK = 4
"""A rewritten book has spare room for 1 / `_SLACK` (a quarter) of its links, besides the links needed at once."""


class RouteBook:
    """Row of links of each vehicle, including the links already driven; the rest of a row may be replaced.

    A changed row is written again after the other rows. When the room there is used up, all rows are rewritten without
    the obsolete ones. So the book holds its live links, a quarter more, and the links of one change. As long as no row
    has changed, it allocates no memory of its own.

    Parameters
    ----------
    routes
        The vehicles' first routes; never changed.

    Attributes
    ----------
    start, end
        (vehicles,) int64; the row of vehicle i is links[start[i]:end[i]], never empty.
    links
        Link ids. `replace` may replace all three arrays.
    live
        Number of links in all current rows.
    """

    def __init__(self, routes: Routes) -> None:
        self._routes: Routes | None = routes
        self.start, self.end, self.links = routes.offsets[:-1], routes.offsets[1:], routes.links
        self._used = len(routes.links)
        self.live = len(routes.links)
        self._own = False

    def of(self, vehicle: int) -> LinkIds:
        """Return the links of one vehicle's row."""
        return self.links[self.start[vehicle] : self.end[vehicle]]

    def last(self, vehicles: int) -> Int32Array:
        """Return the last link of each of the first `vehicles` rows."""
        return self.links[self.end[:vehicles] - 1].astype(np.int32)

    def at(self, vehicles: IntArray, position: npt.NDArray[np.integer]) -> Int32Array:
        """Return the link at `position` of the row of each of `vehicles`."""
        return self.links[self.start[vehicles] + position].astype(np.int32)

    def has_ahead(self, vehicles: IntArray, position: npt.NDArray[np.integer], marked: Mask) -> Mask:
        """Return whether a marked link is after `position` in the row of each of `vehicles`; `marked` is (links,)."""
        return _has_marked(self.links, self.start[vehicles] + position + 1, self.end[vehicles], marked)

    def replace(self, vehicles: IntArray, keep: IntArray, rest: Routes) -> Mask:
        """Replace the links after the first `keep` links of each vehicle's row.

        Parameters
        ----------
        vehicles
            (n,) int64, vehicles whose rows change; no vehicle twice.
        keep
            (n,) int64, number of links at the start of the row that stay.
        rest
            n rows: the links after them.

        Returns
        -------
        numpy.ndarray
            (n,) bool: whether each vehicle's row changed.
        """
        after = self.start[vehicles] + keep
        changed = _differs(self.links, after, self.end[vehicles] - after, rest.links, rest.offsets)
        if not changed.any():
            return changed
        rows = np.flatnonzero(changed)
        lengths = keep[rows] + np.diff(rest.offsets)[rows]
        needed = int(lengths.sum())
        if not self._own or self._used + needed > len(self.links):
            self._write_anew(needed)
        self.live += needed - int((self.end - self.start)[vehicles[rows]].sum())
        at = self._used + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        changing, kept = vehicles[rows], keep[rows]
        copy_rows(self.links, self.start[changing], kept, self.links, at)
        copy_rows(rest.links, rest.offsets[rows], lengths - kept, self.links, at + kept)
        self.start[changing], self.end[changing] = at, at + lengths
        self._used += needed
        self._routes = None
        return changed

    def _write_anew(self, needed: int) -> None:
        lengths = self.end - self.start
        ends = np.cumsum(lengths)
        links = np.empty(self.live + self.live // _SLACK + needed, dtype=self.links.dtype)
        copy_rows(self.links, self.start, lengths, links, ends - lengths)
        self.start, self.end, self.links = ends - lengths, ends, links
        self._used, self._own = self.live, True

    @property
    def routes(self) -> Routes:
        """All current rows, one after the other."""
        if self._routes is None:
            self._routes = Routes.gathered(self.links, self.start, self.end - self.start)
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
def copy_rows(source: LinkIds, starts: IntArray, lengths: IntArray, target: LinkIds, at: IntArray) -> None:
    """Copy rows of `source`, each from its start and with its length, to the places `at` in `target`."""
    for row in range(len(starts)):
        for step in range(lengths[row]):
            target[at[row] + step] = source[starts[row] + step]


@compiled
def _has_marked(links: LinkIds, starts: IntArray, ends: IntArray, marked: Mask) -> Mask:
    found = np.zeros(len(starts), dtype=np.bool_)
    for i in range(len(starts)):
        for at in range(starts[i], ends[i]):
            if marked[links[at]]:
                found[i] = True
                break
    return found


@compiled
def _differs(links: LinkIds, starts: IntArray, lengths: IntArray, rest: LinkIds, offsets: IntArray) -> Mask:
    changed = np.zeros(len(starts), dtype=np.bool_)
    for i in range(len(starts)):
        changed[i] = lengths[i] != offsets[i + 1] - offsets[i]
        if not changed[i]:
            for step in range(lengths[i]):
                if links[starts[i] + step] != rest[offsets[i] + step]:
                    changed[i] = True
                    break
    return changed
