"""Routes: the links each vehicle drives, in compressed rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.roads.links import Links


@dataclass(frozen=True, eq=False)
class Routes:
    """Row i holds the links of vehicle i, in driving order.

    Parameters
    ----------
    offsets
        (vehicles + 1,) int64; route i is links[offsets[i]:offsets[i + 1]], never empty.
    links
        (total,) int32 link ids: 4 bytes a link driven.
    """

    offsets: npt.NDArray[np.int64]
    links: npt.NDArray[np.int32]

    @classmethod
    def from_lists(cls, routes: list[list[int]]) -> "Routes":
        """Compress one list of link ids a vehicle."""
        lengths = np.array([len(route) for route in routes], dtype=np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(offsets, np.array([link for route in routes for link in route], dtype=np.int32))

    def check_connected(self, links: Links) -> None:
        """Check that every route is drivable on `links`.

        Raises
        ------
        ValueError
            If a route is empty, names a link that is not there, or jumps between links that do not meet.
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

    @property
    def first(self) -> npt.NDArray[np.int32]:
        """(vehicles,) int32: each vehicle's first link."""
        return self.links[self.offsets[:-1]]

    @property
    def last(self) -> npt.NDArray[np.int32]:
        """(vehicles,) int32: each vehicle's last link."""
        return self.links[self.offsets[1:] - 1]

    def of(self, vehicle: int) -> npt.NDArray[np.int32]:
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
