"""Study area: roads or recorded places, the cells over them, and the cells in which its traffic is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyproj
import shapely

from simulator.arrays import Cells, FloatArray, Mask
from simulator.cells import LinkCells, NameCells, Partition, SquareGrid
from simulator.files.errors import InputError
from simulator.files.messages import Note
from simulator.roads import RoadNetwork
from simulator.roads.projection import LOCAL, WGS84, transform
from simulator.traffic.engine import State, VehicleStates
from simulator.traffic.queue_engine import LANE_WIDTH_M
from simulator.traffic.recording import Recording


@dataclass(frozen=True, eq=False)
class Ground:
    """Extent and coordinate system of a city: from its roads or, without roads, from its recording.

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
    partitions
        The partitions in which vehicles are counted, by name.
    notes
        What was left out or filled in while it was built, in words.
    """

    ground: Ground
    partitions: Mapping[str, Partition]
    notes: tuple[Note, ...] = ()

    @property
    def cells(self) -> Partition:
        """The first partition, about which campaigns ask by default."""
        return next(iter(self.partitions.values()))

    def divided(self, partition: str | None) -> "City":
        """Return the city with one of its partitions alone; with the first one for None."""
        name = next(iter(self.partitions)) if partition is None else partition
        if len(self.partitions) == 1:
            return self
        return replace(self, partitions={name: self.partitions[name]})

    def centres(self, partition: str | None = None) -> FloatArray:
        """Return the centres of the cells of a partition, by default the first, (V, 2) float64, metres."""
        centres = shapely.centroid(self.divided(partition).cells.polygons().geometry.to_numpy())
        return np.column_stack([shapely.get_x(centres), shapely.get_y(centres)])

    @property
    def cells_before(self) -> dict[str, int]:
        """By partition, the number of cells of those before it: tables number the cells of all one after another."""
        counts = [each.count for each in self.partitions.values()]
        return dict(zip(self.partitions, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))

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
        return self.cells.cell_of(self.located(places))

    @cached_property
    def leaves_cells(self) -> Mask:
        """(links,) bool: links on which a vehicle may be in no cell; False only where it cannot."""
        links, shapes = self.roads.links, self.roads.shapes
        leaves: Mask = np.ones(len(links), dtype=np.bool_)
        if isinstance(self.cells, SquareGrid):
            ends, width_m = np.stack([shapes.start_xy, shapes.end_xy]), links.lanes[:, None] * LANE_WIDTH_M
            outside = ends.min(axis=0) - width_m < self.cells.extent[:2]
            outside |= ends.max(axis=0) + width_m > self.cells.extent[2:]
            leaves = outside.any(axis=1) | (shapes.polyline >= 0)
        return leaves

    def measured_cells(self, places: VehicleStates, *, error_m: float, rng: np.random.Generator) -> Cells:
        """Return the cell that each vehicle's fix is in, (departed,) int32.

        The fix differs from the place by a normal error with standard deviation `error_m` in each direction.
        """
        xy = self.located(places)
        return self.cells.cell_of(xy + rng.normal(0.0, error_m, xy.shape))

    def located(self, places: VehicleStates) -> FloatArray:
        """Return the place of each vehicle, (departed, 2) metres; NaN where unknown."""
        # A city of recorded coordinates has no roads.
        return places.xy_on(self.roads) if places.xy is None else places.xy

    @cached_property
    def _cell_of_site(self) -> Cells:
        """The cell of each site of a table of owners: by its name if cells are named places, else by its location."""
        sites = None if self.ground.recorded is None else self.ground.recorded.sites
        if sites is None:
            raise TypeError(f"only a table of data owners has sites, received {self.ground.recorded!r}")
        if sites.names is not None and isinstance(self.cells, NameCells) and self.cells.maps_names:
            return self.cells.cell_named(sites.names)
        return self.cells.cell_of(sites.xy)


def refuse_elsewhere(city: City, *, given: object = None) -> None:
    """Raise if no road, fix or data owner is in any cell, so that every count would be 0.

    Parameters
    ----------
    city
        The study area.
    given
        System in which places of the cells were given besides longitude and latitude, if any.

    Raises
    ------
    InputError
        It names the distance, and swapped coordinates if swapping them mends it.
    """
    ground = city.ground
    if cells_of_traffic(city).any() or _meets_a_leg(city):
        return
    bounds = city.cells.polygons().total_bounds
    corners = np.array([bounds[:2], bounds[2:], (bounds[:2] + bounds[2:]) / 2])
    lonlat = transform(city.cells.crs, WGS84, corners)
    raise InputError([f"no {_traffic(ground)} is in any cell: {away(lonlat, ground, given=given)}"])


def away(lonlat: FloatArray, ground: Ground, *, given: object = None) -> str:
    """Say in words how far places are from a city, and whether they are in it with their coordinates swapped.

    Parameters
    ----------
    lonlat
        The places, degrees of WGS84, shape (n, 2), the last one their middle.
    ground
        The city.
    given
        As in `refuse_elsewhere`.
    """
    x_min, y_min, x_max, y_max = ground.bounds
    middle = transform(ground.crs, WGS84, np.array([[(x_min + x_max) / 2, (y_min + y_max) / 2]]))[0]
    _, _, away_m = pyproj.Geod(ellps="WGS84").inv(*lonlat[-1], *middle)
    (lon, lat), (city_lon, city_lat) = lonlat[-1].tolist(), middle.tolist()
    km = f"{away_m / 1000:,.{0 if away_m >= 1e5 else 1}f}"
    text = (
        f"the middle of the cells, longitude {lon:.4f} and latitude {lat:.4f}, is {km} km from the middle "
        f"of the {_traffic(ground)}s, longitude {city_lon:.4f} and latitude {city_lat:.4f}"
    )
    for system in (WGS84, given):
        if system is None:
            continue
        there = transform(system, ground.crs, transform(WGS84, system, lonlat)[:, ::-1])
        inside = (there >= (x_min, y_min)) & (there <= (x_max, y_max))
        if inside.all(axis=1).any():
            return f"{text}; with their two coordinates swapped they are in the city: swap them"
    return f"{text}: are they of this city, and is their coordinate system stated rightly?"


def _traffic(ground: Ground) -> str:
    """Return the word for what is in a city: of recorded traffic, what was recorded."""
    recorded = ground.recorded
    return "road" if recorded is None else "recording" if recorded.sites is None else "data owner"


def cells_of_traffic(city: City) -> Cells:
    """Return the cell of each place where vehicles can be, (places,): nodes or links, fixes, or sites of owners."""
    cells, recorded = city.cells, city.ground.recorded
    if recorded is not None and recorded.sites is not None:
        site = np.unique(recorded.sites.of_owner).astype(np.int32)
        state = np.full(len(site), State.ON_ROAD, dtype=np.uint8)
        return city.cells_of(VehicleStates(state, np.full_like(site, -1), np.zeros(len(site)), site=site))
    if recorded is not None:
        return cells.cell_of(recorded.tracks.xy)
    if isinstance(cells, LinkCells) and cells.maps_links:
        return cells.cell_of_link(np.arange(len(city.roads.links)))
    return cells.cell_of(city.roads.node_xy)


def _meets_a_leg(city: City) -> bool:
    """Return whether the roads between nodes, or straight lines between fixes, meet a cell."""
    recorded = city.ground.recorded
    if recorded is not None:
        leg = np.flatnonzero(recorded.tracks.known)
        lines = shapely.linestrings(np.stack((recorded.tracks.xy[leg], recorded.tracks.xy[leg + 1]), axis=1))
    else:
        lines = city.roads.shapes.lines()
    return len(shapely.STRtree(city.cells.polygons().geometry).query(lines, predicate="intersects")[0]) > 0
