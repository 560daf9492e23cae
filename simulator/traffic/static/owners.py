"""Owners: a table of who is where, read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pyproj

from simulator.files.counted import counted
from simulator.traffic.errors import TrafficError
from simulator.traffic.static.counted import counts_of, expanded, without_duplicates
from simulator.traffic.static.moments import Moments
from simulator.traffic.static.rows import FileFormat, Rows
from simulator.traffic.static.site_rows import SiteRows
from simulator.traffic.static.sites import Sites

Duplicates = Literal["refuse", "first", "last", "greatest", "sum"]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """How a table of owners is understood.

    Attributes
    ----------
    columns
        Our name of a column to the file's: `place`, `lon`, `lat`, `x`, `y`, `count`, `time`, `owner`, `period`.
    format
        How the file is written, and which of its rows count.
    crs
        The system of `x` and `y`.
    window
        (lon_min, lat_min, lon_max, lat_max) in degrees: rows outside are left out.
    duplicates
        What becomes of rows of the same place, period, time and owner; None for "refuse" where rows have counts and
        "sum" where they are owners.
    fractions
        What becomes of counts that are not whole.
    one_per
        Whether each row is an owner, or each owner is one, at the last place.
    start
        The time of the file that is the run's 0; None for the earliest.
    time_unit_s
        Seconds that one is, where times are numbers.
    dwell_s
        How long an owner stays from its time on; None for the rest of the run.
    """

    columns: Mapping[str, str | int]
    format: FileFormat = field(default_factory=FileFormat)
    crs: str | None = None
    window: tuple[float, float, float, float] | None = None
    duplicates: Duplicates | None = None
    fractions: Literal["refuse", "nearest"] = "refuse"
    one_per: Literal["row", "owner"] = "row"
    start: str | float | None = None
    time_unit_s: float = 1.0
    dwell_s: float | None = None


@dataclass(frozen=True, eq=False)
class Owners:
    """Data owners, in the order in which they come.

    Attributes
    ----------
    sites
        Every place of the table, those included where nobody is.
    site
        (owners,) int32: where each is.
    arrive_s, leave_s
        (owners,) float64: from when to when, seconds of the run; both None where everybody is there throughout.
        `leave_s` is infinity of those who stay.
    remarks
        What was left out or filled in, one sentence each.
    """

    sites: Sites
    site: npt.NDArray[np.int32]
    arrive_s: FloatArray | None = None
    leave_s: FloatArray | None = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_file(cls, file: str | Path, reading: Reading, *, crs: pyproj.CRS | None = None) -> Self:
        """Read a table of owners.

        Parameters
        ----------
        file
            One row an owner, or one a place with how many; `read_frame` says which kinds of file.
        reading
            How it is understood.
        crs
            The system of the roads; if None, the one of `x` and `y`, or the UTM zone of the places.

        Raises
        ------
        TrafficError
            For whatever is wrong with it: file, row, rule and value.
        """
        rows = Rows.from_file(file, columns=reading.columns, format_=reading.format)
        placed = SiteRows.from_rows(rows, crs=crs, given=reading.crs, window=reading.window)
        notes, rows, site = list(placed.notes), placed.rows, placed.site
        count = counts_of(rows) if rows.has("count") else None
        moments = Moments.from_rows(rows, start=reading.start, unit_s=reading.time_unit_s, dwell_s=reading.dwell_s)
        notes += moments.notes
        keep = moments.keep
        arrive_s = None if moments.arrive_s is None else moments.arrive_s[keep]
        rows, site = rows.kept(keep), site[keep]
        count = None if count is None else count[keep]
        keep, told = without_duplicates(rows, site, arrive_s, count, rule=reading.duplicates)
        notes += told
        if reading.one_per == "owner":
            last = _last_of_each(rows, arrive_s, keep)
            owners, of_rows = counted(int(last.sum()), "owner"), counted(int(keep.sum()), "row")
            notes.append(f"{rows.file}: {owners}, each where it was last in {of_rows}")
            keep = last
        arrive_s = None if arrive_s is None else arrive_s[keep]
        count = None if count is None else count[keep]
        rows, site = rows.kept(keep), site[keep]
        number, told = expanded(rows, site, arrive_s, count, fractions=reading.fractions)
        notes += told
        if number is not None:
            site = np.repeat(site, number)
            arrive_s = None if arrive_s is None else np.repeat(arrive_s, number)
        if not len(site):
            raise TrafficError([f"{file}: it holds no data owner: every count is 0"])
        if arrive_s is None:
            return cls(placed.sites, site, remarks=tuple(notes))
        order = np.argsort(arrive_s, kind="stable")
        arrive_s = arrive_s[order]
        leave_s = np.full(len(order), np.inf) if reading.dwell_s is None else arrive_s + reading.dwell_s
        return cls(placed.sites, site[order], arrive_s, leave_s, tuple(notes))

    @property
    def crs(self) -> pyproj.CRS:
        """Projected, in metres."""
        return self.sites.crs

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Extent of the places where somebody is: (x_min, y_min, x_max, y_max) in metres."""
        return self.sites.bounds(self.at_sites() > 0)

    def at_sites(self) -> npt.NDArray[np.int64]:
        """How many owners each site has in all, (sites,) int64."""
        return np.bincount(self.site, minlength=len(self.sites))

    def notes(self) -> list[str]:
        """Say what was left out or filled in while reading, one sentence each."""
        return list(self.remarks)

    def __len__(self) -> int:
        return len(self.site)

    def __repr__(self) -> str:
        return f"<Owners: {len(self):,} at {len(self.sites):,} places>"


def _last_of_each(rows: Rows, arrive_s: FloatArray | None, keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Choose of each owner the row of its last time, of one time the last row; (rows,) bool."""
    owner = rows.texts("owner")
    if owner.isna()[keep].any():
        raise TrafficError([rows.fault("owner", owner.isna().to_numpy(dtype=bool) & keep, "must say who it is")])
    code = owner.astype("category").cat.codes.to_numpy()
    place = np.flatnonzero(keep)
    time = np.zeros(len(place)) if arrive_s is None else arrive_s[place]
    order = place[np.lexsort((place, time, code[place]))]
    ends = np.ones(len(order), dtype=bool)
    ends[:-1] = code[order[1:]] != code[order[:-1]]
    last = np.zeros(len(rows), dtype=bool)
    last[order[ends]] = True
    return last
