"""The config table of a GMNS folder: units and coordinate system, also where coordinates are planar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.roads.errors import RoadsError
from simulator.roads.gmns.tables import OWN_PREFIX, find_table, open_table, texts_of
from simulator.roads.projection import WGS84, crs_about

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

METRES: Mapping[str, float] = (
    dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0)
    | dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), 1000.0)
    | dict.fromkeys(("ft", "foot", "feet"), 0.3048)
    | dict.fromkeys(("mi", "mile", "miles"), 1609.344)
)
"""Metres by the names that ``long_length`` may be given."""
METRES_PER_SECOND: Mapping[str, float] = (
    dict.fromkeys(("mps", "m/s"), 1.0)
    | dict.fromkeys(("kph", "kmh", "kmph", "km/h", "km/hr"), 1000 / 3600)
    | dict.fromkeys(("mph", "mi/h", "mi/hr"), 1609.344 / 3600)
)
"""Metres per second by the names that ``speed`` may be given."""
KEEP = f"{OWN_PREFIX}keep"
"""Column of our own: "all" where a network was written that is to be read whole."""
_FIELDS = ("long_length", "speed", "crs", KEEP)


@dataclass(frozen=True)
class GmnsConfig:
    """Units and coordinate system of a folder.

    Parameters
    ----------
    length_m
        Metres that one unit of ``length`` is.
    speed_mps
        Metres per second that one unit of ``free_speed`` is.
    crs
        What the coordinates are in.
    crs_named
        Whether anybody says so.
    keep_all
        Whether the table asks for what routes cannot reach to be kept.
    remarks
        Where the config table says otherwise than the caller, and where neither says anything.
    """

    length_m: float
    speed_mps: float
    crs: object
    crs_named: bool
    keep_all: bool
    remarks: tuple[str, ...]

    @classmethod
    def from_folder(cls, folder: Path, *, length_m: float | None, speed_mps: float | None, crs: object) -> GmnsConfig:
        """Take what the caller says, then what the config table says, then metres, km/h and WGS84.

        Parameters
        ----------
        folder
            Of the network; the table is optional.
        length_m, speed_mps, crs
            None where the caller leaves it to the table.

        Returns
        -------
        GmnsConfig
            With every unit known.

        Raises
        ------
        RoadsError
            If the table has more than one row, or names a unit that is not known and not given.
        """
        said: dict[str, str] = {}
        file = find_table(folder, "config")
        if file is not None:
            table = open_table(file, required=(), optional=_FIELDS)
            if len(table) != 1:
                raise RoadsError([f"{file}: a config table must have one row, got {len(table):,}"])
            said = {name: text for name in _FIELDS if (text := texts_of(table, name)[0]) is not None}
        faults, remarks, units = [], [], []
        for name, given, known, default, column, words in (
            ("long_length", length_m, METRES, 1.0, "length", "metres"),
            ("speed", speed_mps, METRES_PER_SECOND, 1000 / 3600, "free_speed", "km/h"),
        ):
            named = known.get(said.get(name, "").lower())
            if given is None and named is None and name in said:
                faults.append(f"{file}: row 1: {name} must be one of {', '.join(known)}, got {said[name]!r}")
            if given is None and name not in said:
                rule = f"neither the scenario nor a config table says the unit of {column}"
                remarks.append(f"{folder}: {rule}: taken as {words}")
            if given is not None and named is not None and given != named:
                remarks.append(f"{file}: {name} is {said[name]}, and is taken as the scenario has it")
            units.append(given if given is not None else named if named is not None else default)
        if faults:
            raise RoadsError(faults)
        system = _crs(crs, said.get("crs"))
        return cls(
            length_m=units[0],
            speed_mps=units[1],
            crs=WGS84 if system is None else system,
            crs_named=system is not None,
            keep_all=said.get(KEEP) == "all",
            remarks=tuple(remarks),
        )


def _crs(given: object, said: str | None) -> object:
    if given is not None or said is None:
        return given
    return int(said) if said.isdecimal() and len(said) <= 9 else said


MOST_DEGREES = 360.0


def are_no_degrees(xy: NDArray[np.float64]) -> bool:
    """Say whether most places are beyond any degree: a few are mistakes, not another system.

    Parameters
    ----------
    xy
        Coordinates as the file has them, shape (n, 2), n ≥ 1.
    """
    return bool(np.median(np.abs(xy).max(axis=1)) > MOST_DEGREES)


def plane_about(xy: NDArray[np.float64], unit_m: float) -> tuple[pyproj.CRS, pyproj.CRS]:
    """Take coordinates as those of a plane that touches the globe at longitude 0, latitude 0, in their middle.

    Parameters
    ----------
    xy
        Coordinates as the file has them, finite, shape (n, 2), n ≥ 1.
    unit_m
        Metres that one unit of them is.

    Returns
    -------
    source, target : pyproj.CRS
        In the unit of the file and in metres, of one origin: a target's coordinate is the file's by `unit_m`.
    """
    east_m, north_m = ((xy.min(axis=0) + xy.max(axis=0)) / 2 * unit_m).tolist()
    metric = crs_about((0.0, 0.0), at_m=(east_m, north_m))
    parts = metric.to_json_dict()
    unit = {"type": "LinearUnit", "name": "unit of the file", "conversion_factor": unit_m}
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = unit
    return pyproj.CRS.from_json_dict(parts), metric


def said_of_plane(file: str) -> str:
    """Say what was made of such coordinates, and what to do about it."""
    return (
        f"{file}: the coordinates are not degrees and no crs is given, so the map is placed at longitude 0, latitude 0 "
        'and measured in the unit of length; set roads.crs: name it, as in crs = "EPSG:32618"'
    )
