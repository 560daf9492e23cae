"""The side of the road on which traffic drives: stated, or the side of a country, by ``driving_side.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import shapely

from simulator.roads.projection import WGS84, transform

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DrivingSide(NamedTuple):
    """The side on which traffic drives.

    Attributes
    ----------
    left
        Whether it is the left side.
    why
        How it is known, in words; empty for a default without a place.
    """

    left: bool = False
    why: str = ""

    def __str__(self) -> str:
        """Return a sentence."""
        return f"traffic drives on the {'left' if self.left else 'right'}: {self.why}"


@cache
def _regions() -> tuple[list[str], list[shapely.Polygon]]:
    """Return the name and the shape of each region in which traffic drives on the left, in degrees."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    rings = [(name, ring) for name, listed in table.items() for ring in listed]
    points = [np.array(ring.split(), dtype=np.float64).reshape(-1, 2) for _, ring in rings]
    return [name for name, _ in rings], [shapely.Polygon(ring) for ring in points]


def side_of(xy: NDArray[np.float64], crs: object, stated: str | None = None) -> DrivingSide:
    """Return the side on which traffic drives on a network.

    Parameters
    ----------
    xy
        Places of its nodes, shape (n, 2), n ≥ 1.
    crs
        Their coordinate system.
    stated
        "left" or "right", if the scenario or the file of roads states it; None for the side of the country in which
        the middle of the network is. At places in no country, as of a schematic plan, traffic drives on the right.

    Returns
    -------
    DrivingSide
        The side, and why.
    """
    if stated is not None:
        return DrivingSide(stated == "left", "the roads state it")
    lon, lat = transform(crs, WGS84, (xy.min(axis=0) + xy.max(axis=0))[None] / 2)[0].tolist()
    where = f"{abs(lat):.2f} {'N' if lat >= 0 else 'S'}, {abs(lon):.2f} {'E' if lon >= 0 else 'W'}"
    names, shapes = _regions()
    inside = np.flatnonzero(shapely.intersects_xy(shapes, lon, lat))
    if len(inside):
        return DrivingSide(True, f"the middle of the network, {where}, is in {names[inside[0]]}")  # noqa: FBT003
    return DrivingSide(False, f"the middle of the network, {where}, is in no country known to drive on the left")  # noqa: FBT003
