"""Columns of a trace: given by the user, or recognised by name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

METRES_PER_SECOND: Mapping[str, float] = {"speed_mps": 1.0, "speed_kph": 1 / 3.6, "speed_mph": 1609.344 / 3600}
"""Metres per second per unit of a speed column, by our name of the column."""

ROLES = ("vehicle", "time", "lon", "lat", "x", "y", *METRES_PER_SECOND)

_KNOWN: Mapping[str, tuple[frozenset[str], ...]] = {
    "vehicle": (
        frozenset(
            [
                "vehicle",
                "vehicleid",
                "vehid",
                "veh",
                "taxi",
                "taxiid",
                "cab",
                "cabid",
                "car",
                "carid",
                "bus",
                "busid",
                "medallion",
                "device",
                "deviceid",
                "driver",
                "driverid",
                "trajectory",
                "trajectoryid",
                "trajid",
            ]
        ),
        frozenset(["trip", "tripid", "object", "objectid", "user", "userid", "uid", "oid"]),
        frozenset(["id", "name"]),
    ),
    "time": (
        frozenset(
            [
                "time",
                "timestamp",
                "datetime",
                "dateandtime",
                "gpstime",
                "unixtime",
                "unixtimestamp",
                "utc",
                "timesteptime",
                "times",
                "timesec",
                "seconds",
            ]
        ),
        frozenset(["t", "ts", "epoch", "date"]),
    ),
    "lon": (frozenset(["lon", "lng", "long", "longitude"]), frozenset(["x", "vehiclex"])),
    "lat": (frozenset(["lat", "latitude"]), frozenset(["y", "vehicley"])),
    "x": (frozenset(["x", "vehiclex", "easting"]),),
    "y": (frozenset(["y", "vehicley", "northing"]),),
    "speed_mps": (frozenset(["speedmps", "speedms", "vehiclespeed"]),),
    "speed_kph": (frozenset(["speedkph", "speedkmh"]),),
    "speed_mph": (frozenset(["speedmph"]),),
}
"""Column names in lower case, with letters and digits only, the most reliable first."""

_NEEDED = ("vehicle", "time")


@dataclass(frozen=True)
class Columns:
    """Columns of a table by our names.

    Attributes
    ----------
    by_role
        Map from a role in `ROLES` to the file's column, for the columns that exist.
    notes
        Notes on columns that are not used, with the reason.
    """

    by_role: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @classmethod
    def find(
        cls, seen: Sequence[str], *, given: Mapping[str, str], projected: bool, one_vehicle: bool
    ) -> "Columns | list[str]":
        """Select columns as given by the user, and by their names otherwise.

        Parameters
        ----------
        seen
            The table's columns.
        given
            Map from our names to the file's, as given by the user.
        projected
            Whether places are in metres, in columns x and y.
        one_vehicle
            Whether the table is of one vehicle, so that no vehicle column is needed.

        Returns
        -------
        Columns or list of str
            The columns, or one message per broken rule, to follow the file's name.
        """
        faults = [
            f"no column {column!r} for {role}; its columns are {_listed(seen)}"
            for role, column in given.items()
            if column not in seen
        ]
        places = ("x", "y") if projected else ("lon", "lat")
        wanted = (*(() if one_vehicle else ("vehicle",)), "time", *places)
        found = {role: column for role, column in given.items() if role in (*ROLES,)}
        taken = set(found.values())
        for role in (*wanted, *METRES_PER_SECOND):
            if role in found or (role in METRES_PER_SECOND and any(speed in found for speed in METRES_PER_SECOND)):
                continue
            candidates = next(_candidates(role, [name for name in seen if name not in taken]), [])
            if len(candidates) == 1:
                found[role] = candidates[0]
                taken.add(candidates[0])
            elif role in wanted:
                many = f"columns {_listed(candidates)} may each be it" if candidates else "no column is known to be it"
                faults.append(
                    f"{role}: {many}; its columns are {_listed(seen)}; say which one in traffic.columns"
                    f"{_hint(role, seen)}"
                )
        if faults:
            return faults
        unit = [name for name in seen if _plain(name) in ("speed", "velocity") and name not in taken]
        notes = () if not unit or any(speed in found for speed in METRES_PER_SECOND) else (_no_unit(unit[0]),)
        return cls(found, notes)


def plain_names(seen: Sequence[str]) -> set[str]:
    """Return the normalized names of columns: lower case, letters and digits only."""
    return {_plain(name) for name in seen}


def _candidates(role: str, seen: Sequence[str]) -> Iterator[list[str]]:
    for tier in _KNOWN[role]:
        here = [name for name in seen if _plain(name) in tier]
        if here:
            yield here


def _hint(role: str, seen: Sequence[str]) -> str:
    if len(seen) == 1:
        return '; is it separated by something else than ",", ";", tab or "|"?'
    if role in {"lon", "lat"} and {"x", "y"} <= plain_names(seen):
        return "; for places in metres give traffic.crs"
    return "; or is there one file a vehicle: one_vehicle_a_file = true?" if role == "vehicle" else ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(str(name)[:60]) for name in names[:20])
    return shown + (f" … ({len(names)} in all)" if len(names) > 20 else "")


def _no_unit(column: str) -> str:
    return f"column {column!r} says no unit of speed and is left out: name it as speed_mps, speed_kph or speed_mph"
