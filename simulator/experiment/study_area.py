"""Study area: roads or recorded places, the cells over them, and the cell of each vehicle."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyproj

from simulator.arrays import Cells
from simulator.cells import LinkCells, NameCells, Partition
from simulator.files.messages import Note
from simulator.roads import RoadNetwork
from simulator.roads.projection import LOCAL
from simulator.traffic.engine import VehicleStates
from simulator.traffic.recording import Recording


@dataclass(frozen=True, eq=False)
class Ground:
    """Extent and coordinate system of a city: those of its roads or, without roads, of its recording.

    Attributes
    ----------
    roads
        The network; None if there is none.
    recorded
        The recorded traffic; None if there is none.

    Raises
    ------
    ValueError
        If there is neither.
    """

    roads: RoadNetwork | None
    recorded: Recording | None

    @property
    def _extent(self) -> RoadNetwork | Recording:
        extent = self.roads or self.recorded
        if extent is None:
            raise ValueError("a city needs roads or a recording, received neither")
        return extent

    @property
    def crs(self) -> pyproj.CRS:
        """Projected coordinate system, in metres."""
        return self._extent.crs

    @property
    def crs_text(self) -> str:
        """The coordinate system by its authority's number, such as "EPSG:32618"; its definition if it has none."""
        # The search for a number takes a third of a second, and local systems have none.
        return self.crs.srs if self.crs.name.startswith(LOCAL) else self.crs.to_string()

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x_min, y_min, x_max, y_max) in metres: of the roads, or without them of the recording."""
        return self._extent.bounds


@dataclass(frozen=True, eq=False)
class City:
    """The study area: roads or recorded traffic, and cells.

    Attributes
    ----------
    ground
        Roads, recorded traffic, and the coordinate system of both.
    cells
        The partition in which vehicles are counted.
    notes
        What was left out or filled in while it was built, in words.
    """

    ground: Ground
    cells: Partition
    notes: tuple[Note, ...] = ()

    @property
    def has_roads(self) -> bool:
        """Whether the city has roads."""
        return self.ground.roads is not None

    @property
    def roads(self) -> RoadNetwork:
        """The network on which vehicles drive.

        Raises
        ------
        ValueError
            If there is none: check `has_roads` first.
        """
        if self.ground.roads is None:
            raise ValueError("this city has no roads")
        return self.ground.roads

    def cells_of(self, places: VehicleStates) -> Cells:
        """Return each vehicle's cell, (departed,) int32; 0 is outside every cell.

        It is determined by the most precise information available: the vehicle's site, its link if cells are links, or
        its coordinates.
        """
        if places.site is not None:
            return self._cell_of_site[places.site]
        if isinstance(self.cells, LinkCells) and self.cells.maps_links:
            on_link = places.link >= 0
            if on_link.all():
                return self.cells.cell_of_link(places.link)
            cells = np.zeros(len(places), dtype=np.int32)
            cells[on_link] = self.cells.cell_of_link(places.link[on_link])
            if places.xy is not None:
                cells[~on_link] = self.cells.cell_of(places.xy[~on_link])
            return cells
        return self.cells.cell_of(self.roads.locate(places.link, places.fraction) if places.xy is None else places.xy)

    @cached_property
    def _cell_of_site(self) -> Cells:
        """The cell of each site of a table of owners: by its name if cells are named places, else by its location."""
        sites = None if self.ground.recorded is None else self.ground.recorded.sites
        if sites is None:
            raise TypeError(f"only a table of data owners has sites, received {self.ground.recorded!r}")
        if sites.names is not None and isinstance(self.cells, NameCells) and self.cells.maps_names:
            return self.cells.cell_named(sites.names)
        return self.cells.cell_of(sites.xy)

    def __repr__(self) -> str:
        return f"<City: {self.ground.roads if self.has_roads else 'no roads'}, {self.cells!r}>"
