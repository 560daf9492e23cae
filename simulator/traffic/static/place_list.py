"""Place list: named places of a table, for cells to be laid over."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyproj

from simulator.traffic.static.rows import FileFormat, Rows
from simulator.traffic.static.site_rows import SiteRows
from simulator.traffic.static.sites import Sites


@dataclass(frozen=True, eq=False)
class PlaceList:
    """Places that have a name, each once, where its first row says.

    Attributes
    ----------
    sites
        The places, in the city's coordinate system, in natural order of their names.
    notes
        What was left out, one sentence each.
    """

    sites: Sites
    notes: tuple[str, ...]

    @classmethod
    def from_file(
        cls,
        file: str | Path,
        *,
        columns: Mapping[str, str | int],
        format_: FileFormat,
        given: str | None,
        crs: pyproj.CRS,
    ) -> Self:
        """Read a table of places.

        Parameters
        ----------
        file
            One or more rows a place.
        columns
            `name`, and `lon` and `lat` or `x` and `y`, to the file's names or numbers.
        format_
            How it is written, and which rows count.
        given
            The system of `x` and `y`.
        crs
            The system of the city.

        Raises
        ------
        TrafficError
            For whatever is wrong with it: file, row, rule and value.
        """
        ours = {"place" if key == "name" else key: column for key, column in columns.items()}
        rows = Rows.from_file(file, columns=ours, format_=format_)
        placed = SiteRows.from_rows(rows, crs=crs, given=given)
        counting = set(placed.site.tolist())
        names = placed.sites.names or []
        chosen = [place for place in range(len(names)) if place in counting]
        sites = Sites([names[place] for place in chosen], placed.sites.xy[chosen], placed.sites.crs)
        return cls(sites, placed.notes)
