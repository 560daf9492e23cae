"""Loading: every trip on its shortest path, and how far volumes are from that."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.roads.links import Links
from simulator.traffic.assignment.bpr import Bpr
from simulator.traffic.assignment.od_pairs import OdPairs
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Loading:
    """All trips on paths that are shortest at some travel times (all-or-nothing assignment).

    Attributes
    ----------
    volume
        (links,) float64, vehicles.
    total_s
        Seconds that all of them drive together, at those times.
    """

    volume: FloatArray
    total_s: float

    @classmethod
    def at_times(
        cls, time_s: FloatArray, pairs: OdPairs, *, links: Links, through: npt.NDArray[np.bool_] | None = None
    ) -> "Loading":
        """Load `pairs` where links take `time_s`.

        Parameters
        ----------
        time_s
            (links,) seconds, above 0.
        pairs
            The trips.
        links
            The network.
        through
            (nodes,) bool: whether paths may pass through a node; left out, through every one.

        Raises
        ------
        NoPathError
            If no path joins some pair.
        """
        paths = ShortestPaths(links, through=through, time_s=time_s)
        at_once = np.zeros(len(pairs), dtype=np.int32)
        routes = paths.routes(Trips(pairs.origin, pairs.destination, at_once))
        along = np.repeat(pairs.trips, np.diff(routes.offsets))
        volume = np.bincount(routes.links, weights=along, minlength=len(links)).astype(np.float64)
        return cls(volume, float(volume @ time_s))


def relative_gap(
    volume: FloatArray, bpr: Bpr, pairs: OdPairs, *, links: Links, through: npt.NDArray[np.bool_] | None = None
) -> float:
    """Return how much longer all trips take together than on the shortest paths at the same travel times.

    (Σ v·t(v) − Σ d·shortest) / Σ d·shortest: 0 in a user equilibrium, where nobody has a quicker way (Wardrop's first
    principle), and above 0 for any other volumes that carry these trips. Below 0 they cannot carry them all.

    Parameters
    ----------
    volume
        (links,) vehicles.
    bpr
        Travel times by volume.
    pairs
        The trips that the volumes carry.
    links, through
        As in `Loading.at_times`.
    """
    time_s = bpr.time_s(volume)
    shortest_s = Loading.at_times(time_s, pairs, links=links, through=through).total_s
    return (float(volume @ time_s) - shortest_s) / shortest_s
