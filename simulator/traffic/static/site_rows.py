"""Site rows: at which site each row of a table is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyproj

from simulator.files.counted import counted
from simulator.traffic.errors import TrafficError
from simulator.traffic.static.rows import Rows
from simulator.traffic.static.sites import Sites, check_degrees, natural_order

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SiteRows:
    """Rows that are somewhere.

    Attributes
    ----------
    rows
        Those that count and have a place.
    site
        (rows,) int32: which of the sites.
    sites
        Every place of the file, those included of which no row counts.
    notes
        What was left out, one sentence each.
    """

    rows: Rows
    site: npt.NDArray[np.int32]
    sites: Sites
    notes: tuple[str, ...]

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        *,
        crs: pyproj.CRS | None,
        given: str | None,
        window: tuple[float, float, float, float] | None = None,
    ) -> Self:
        """Find the places that rows name.

        Parameters
        ----------
        rows
            With `place`, or `lon` and `lat`, or `x` and `y`, or a place and coordinates.
        crs
            The system to project to; None for one that fits.
        given
            The system of `x` and `y`.
        window
            (lon_min, lat_min, lon_max, lat_max), degrees.

        Raises
        ------
        TrafficError
            If coordinates are no numbers or out of range, or no row is left.
        """
        notes: list[str] = []
        axes = ("lon", "lat") if rows.has("lon") else ("x", "y") if rows.has("x") else ()
        keep = np.ones(len(rows), dtype=bool)
        east, north = _coordinates(rows, axes) if axes else (np.zeros(0), np.zeros(0))
        if axes:
            known = np.isfinite(east) & np.isfinite(north)
            _left_out(notes, rows, rows.chosen & ~known, f"without {axes[0]} and {axes[1]}")
            keep &= known
        if window is not None:
            inside = (east >= window[0]) & (east <= window[2]) & (north >= window[1]) & (north <= window[3])
            _left_out(notes, rows, rows.chosen & keep & ~inside, "outside the window")
            keep &= inside
        name = rows.texts("place") if rows.has("place") else None
        if name is not None:
            named = name.notna().to_numpy(dtype=bool)
            _left_out(notes, rows, rows.chosen & keep & ~named, "without a place")
            keep &= named
        if not (keep & rows.chosen).any():
            raise TrafficError([f"{rows.file}: no row is left: none of those that count says where it is{_in(window)}"])
        site, first, names = _distinct(name, east, north, keep)
        if not axes:
            sites = Sites.in_a_row(names or [])
        else:
            x, y = east[first], north[first]
            used = np.zeros(len(first), dtype=bool)
            used[site[keep & rows.chosen]] = True
            sites = _projected(rows.file, names, x, y, used, axes=axes, crs=crs, given=given)
            if names is not None:
                moved = (east != x[site]) | (north != y[site])
                several = len(np.unique(site[moved & keep & rows.chosen]))
                if several:
                    places = counted(several, "place has", "places have")
                    notes.append(f"{rows.file}: {places} more than one coordinate; each is where it is first")
        keep &= rows.chosen
        return cls(rows.kept(keep), site[keep].astype(np.int32), sites, tuple(notes))


def _in(window: Sequence[float] | None) -> str:
    return "" if window is None else f" in the window {list(window)}"


def _left_out(notes: list[str], rows: Rows, which: BoolArray, why: str) -> None:
    if which.any():
        notes.append(f"{rows.file}: left out {counted(int(which.sum()), 'row')} {why}: {rows.words(which)}")


def _coordinates(rows: Rows, axes: tuple[str, str]) -> tuple[FloatArray, FloatArray]:
    """Read both axes of every row, NaN where there is nothing; those that count must be as they should."""
    (east, odd_east), (north, odd_north) = rows.numbers(axes[0]), rows.numbers(axes[1])
    rules = ["must be a number of degrees" if axes[0] == "lon" else "must be a number of metres"] * 2
    wrong = [odd_east & rows.chosen, odd_north & rows.chosen]
    if axes[0] == "lon":
        wrong_lon, wrong_lat, hint = check_degrees(east[rows.chosen], north[rows.chosen])
        for axis, beyond, most in ((0, wrong_lon, 180), (1, wrong_lat, 90)):
            if beyond.any() and not wrong[axis].any():
                wrong[axis][np.flatnonzero(rows.chosen)[beyond]] = True
                rules[axis] = f"must be within -{most} and {most}{hint}"
        outside = (np.abs(east) > 180) | (np.abs(north) > 90)
        east[outside & ~rows.chosen], north[outside & ~rows.chosen] = np.nan, np.nan
    faults = [rows.fault(axes[i], wrong[i], rules[i]) for i in (0, 1) if wrong[i].any()]
    if faults:
        raise TrafficError(faults)
    return east, north


def _distinct(
    name: "pd.Series[str] | None", east: FloatArray, north: FloatArray, keep: BoolArray
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[str] | None]:
    """Return the place of each row, numbered in natural order, the first row of each place, and its name."""
    rows = np.flatnonzero(keep)
    site = np.zeros(len(keep), dtype=np.int64)
    if name is None:
        pairs = east[rows] + 1j * north[rows]
        _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
        site[rows] = inverse
        return site, rows[first], None
    codes, found = pd.factorize(name[keep])
    order = natural_order(found)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    site[rows] = rank[codes]
    first = np.full(len(order), len(keep), dtype=np.int64)
    np.minimum.at(first, site[rows], rows)
    return site, first, [str(found[i]) for i in order]


def _projected(
    file: str,
    names: list[str] | None,
    x: FloatArray,
    y: FloatArray,
    used: BoolArray,
    *,
    axes: tuple[str, ...],
    crs: pyproj.CRS | None,
    given: str | None,
) -> Sites:
    if axes[0] == "x":
        return Sites.on_the_plane(names, x, y, given=given or "", crs=crs)
    if crs is None:
        # The zone is that of the places that count; others may be far away.
        crs = Sites.on_the_globe(None, x[used], y[used], crs=None, file=file).crs
    return Sites.on_the_globe(names, x, y, crs=crs, file=file)
