"""The config table of a GMNS folder: units and coordinate system, and the system of planar coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyproj

from simulator.files.errors import InputError
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
"""Metres of each unit that ``long_length`` may name."""
METRES_PER_SECOND: Mapping[str, float] = (
    dict.fromkeys(("mps", "m/s"), 1.0)
    | dict.fromkeys(("kph", "kmh", "kmph", "km/h", "km/hr"), 1000 / 3600)
    | dict.fromkeys(("mph", "mi/h", "mi/hr"), 1609.344 / 3600)
)
"""Metres per second of each unit that ``speed`` may name."""
KEEP = f"{OWN_PREFIX}keep"
"""Column that this project adds: "all" in a folder that was written to be read completely."""
_FIELDS = ("long_length", "speed", "crs", KEEP)


@dataclass(frozen=True)
class GmnsConfig:
    """Units and coordinate system of a folder.

    Parameters
    ----------
    length_m
        Length of one unit of ``length`` in metres.
    speed_mps
        One unit of ``free_speed`` in metres per second.
    crs
        The system of the coordinates.
    crs_named
        Whether the caller or the config table names that system.
    keep_all
        Whether the table requests that nodes and links which routes cannot reach are kept.
    remarks
        Remarks on units for which the config table contradicts the caller, or which neither of them states.
    """

    length_m: float
    speed_mps: float
    crs: object
    crs_named: bool
    keep_all: bool
    remarks: tuple[str, ...]

    @classmethod
    def from_folder(cls, folder: Path, *, length_m: float | None, speed_mps: float | None, crs: object) -> GmnsConfig:
        """Use the caller's values, else those of the config table, else metres, km/h and WGS84.

        Parameters
        ----------
        folder
            The folder of the network; its config table is optional.
        length_m, speed_mps, crs
            The caller's values; None for those of the table.

        Returns
        -------
        GmnsConfig
            A configuration in which every unit is known.

        Raises
        ------
        InputError
            If the table has more than one row, or names an unknown unit that the caller does not give.
        """
        said: dict[str, str] = {}
        file = find_table(folder, "config")
        if file is not None:
            table = open_table(file, required=(), optional=_FIELDS)
            if len(table) != 1:
                raise InputError([f"{file}: a config table must have one row, got {len(table):,}"])
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
            raise InputError(faults)
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
    """Return whether most coordinates are too large for degrees; a few too large ones are mistakes of the file.

    Parameters
    ----------
    xy
        Coordinates as in the file, shape (n, 2), n ≥ 1.
    """
    return bool(np.median(np.abs(xy).max(axis=1)) > MOST_DEGREES)


def plane_about(xy: NDArray[np.float64], unit_m: float) -> tuple[pyproj.CRS, pyproj.CRS]:
    """Make systems for planar coordinates: a plane whose middle touches the globe at longitude 0, latitude 0.

    Parameters
    ----------
    xy
        Coordinates as in the file, finite, shape (n, 2), n ≥ 1.
    unit_m
        Length of one unit of the coordinates in metres.

    Returns
    -------
    source, target : pyproj.CRS
        Systems with the same origin, in the unit of the file and in metres: a coordinate in `target` is that of the
        file times `unit_m`.
    """
    east_m, north_m = ((xy.min(axis=0) + xy.max(axis=0)) / 2 * unit_m).tolist()
    metric = crs_about((0.0, 0.0), at_m=(east_m, north_m))
    parts = metric.to_json_dict()
    unit = {"type": "LinearUnit", "name": "unit of the file", "conversion_factor": unit_m}
    for axis in parts["coordinate_system"]["axis"]:
        axis["unit"] = unit
    return pyproj.CRS.from_json_dict(parts), metric


def said_of_plane(file: str) -> str:
    """Return a sentence that states how planar coordinates were placed, and how to set their system."""
    return (
        f"{file}: the coordinates are not degrees and no crs is given, so the map is placed at longitude 0, latitude 0 "
        'and measured in the unit of length; set roads.crs: name it, as in crs = "EPSG:32618"'
    )
