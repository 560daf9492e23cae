"""Ground: what cells are laid over, roads or recorded places or both."""

from dataclasses import dataclass

import pyproj

from simulator.roads import RoadNetwork
from simulator.traffic.recorded import Recorded


@dataclass(frozen=True, eq=False)
class Ground:
    """Extent and coordinate system of a city, roads first.

    Attributes
    ----------
    roads
        The network, None where there is none.
    recorded
        What was recorded there, None where nothing was.

    Raises
    ------
    ValueError
        If there is neither.
    """

    roads: RoadNetwork | None
    recorded: Recorded | None

    def __post_init__(self) -> None:
        if self.roads is None and self.recorded is None:
            raise ValueError("a city needs roads or a recording, received neither")

    @property
    def _extent(self) -> RoadNetwork | Recorded:
        extent = self.roads or self.recorded
        if extent is None:
            raise ValueError("a city needs roads or a recording, received neither")
        return extent

    @property
    def crs(self) -> pyproj.CRS:
        """Projected, in metres."""
        return self._extent.crs

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x_min, y_min, x_max, y_max) in metres: of the roads, or without them of the recording."""
        return self._extent.bounds
