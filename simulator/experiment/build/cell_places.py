"""Check that the cells of a city are where its traffic is: no axis swapped, no other city, no other unit."""

import numpy as np
import pyproj
import shapely

from simulator.arrays import Cells, FloatArray
from simulator.cells import LinkCells
from simulator.experiment.study_area import City, Ground
from simulator.files.errors import InputError
from simulator.roads.projection import WGS84, transform
from simulator.traffic.engine import State, VehicleStates


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
    words = (
        f"the middle of the cells, longitude {lon:.4f} and latitude {lat:.4f}, is {_km(away_m)} from that of "
        f"the {_traffic(ground)}s, longitude {city_lon:.4f} and latitude {city_lat:.4f}"
    )
    for system in (WGS84, given):
        if system is None:
            continue
        there = transform(system, ground.crs, transform(WGS84, system, lonlat)[:, ::-1])
        inside = (there >= (x_min, y_min)) & (there <= (x_max, y_max))
        if inside.all(axis=1).any():
            return f"{words}; with their two coordinates swapped they are in the city: swap them"
    return f"{words}: are they of this city, and is their coordinate system stated rightly?"


def _km(metres: float) -> str:
    return f"{metres / 1000:,.{0 if metres >= 1e5 else 1}f} km"


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
