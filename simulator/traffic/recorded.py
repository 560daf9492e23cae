"""Recorded: traffic whose places are known before the run, so that cells can be laid over them."""

from typing import Protocol

import pyproj


class Recorded(Protocol):
    """What was read of a recording, in the coordinate system the city takes."""

    @property
    def crs(self) -> pyproj.CRS:
        """Projected, in metres: that of the roads where there are any."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of every place: (x_min, y_min, x_max, y_max) in metres."""

    def notes(self) -> list[str]:
        """Say what was left out or filled in while reading, one sentence each."""
