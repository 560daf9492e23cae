"""Surroundings of roads, for maps: areas of water, names of places and names of streets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely

from simulator.roads.projection import WGS84

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from simulator.roads.network import RoadNetwork

PLACES = ("city", "town", "borough", "suburb", "quarter", "village", "neighbourhood")
"""Values of OpenStreetMap's ``place`` whose names are read, the most important first."""
WATER = {
    "natural": ("water", "coastline"),
    "waterway": ("riverbank", "river", "canal"),
    "landuse": ("reservoir", "basin"),
}
"""Tags of OpenStreetMap, and their values, of water that is read."""
SURROUNDING_TAGS = frozenset({*WATER, "place", "name", "tunnel", "type"})
MOST_STREETS = 30
_MARGIN = 0.05
"""How far around the roads water is kept, as a share of the width and height of their extent."""
_REACH = 0.15
"""How far from the edge of that area a coastline may end to be continued to it, as a share of its larger side."""
_BESIDE_DEG = 1e-6


def is_water(tags: Mapping[str, str]) -> bool:
    """Return whether OpenStreetMap's tags describe water that is visible: not in a tunnel."""
    return tags.get("tunnel", "no") == "no" and any(tags.get(key) in values for key, values in WATER.items())


def surroundings_of(
    features: Iterable[tuple[Mapping[str, str], shapely.Geometry]], network: RoadNetwork
) -> gpd.GeoDataFrame:
    """Select water and places about a network, from features of OpenStreetMap.

    Parameters
    ----------
    features
        Tags and shape of each, in WGS84: water as areas or lines, with land to the left of every coastline; places as
        points.
    network
        The network; water beyond its extent and a margin is cut off.

    Returns
    -------
    geopandas.GeoDataFrame
        ``kind`` ("water" or "place"), ``name`` (None where there is none) and ``geometry`` in WGS84; places with the
        most important first. The sea is one area, between the coastlines and the edge of the extent.
    """
    west, south, east, north = network.bounds
    lon, lat = network.to_wgs84([(west, south), (west, north), (east, south), (east, north)]).T
    x_margin, y_margin = _MARGIN * np.ptp(lon), _MARGIN * np.ptp(lat)
    box = shapely.box(lon.min() - x_margin, lat.min() - y_margin, lon.max() + x_margin, lat.max() + y_margin)
    coasts: list[shapely.Geometry] = []
    rows: list[tuple[int, str, str | None, shapely.Geometry]] = []
    for tags, shape in features:
        place = tags.get("place")
        if shapely.get_dimensions(shape) == 0:
            if place in PLACES and tags.get("name") and shapely.intersects(shape, box):
                rows.append((1 + PLACES.index(place), "place", tags["name"], shape))
        elif tags.get("natural") == "coastline":
            coasts.append(shapely.boundary(shape) if shapely.get_dimensions(shape) == 2 else shape)
        elif is_water(tags):
            rows.append((0, "water", tags.get("name"), shapely.make_valid(shape).intersection(box)))
    if coasts:
        rows.append((0, "water", None, sea_between(np.array(coasts, dtype=object), box)))
    kept = sorted((row for row in rows if not shapely.is_empty(row[3])), key=lambda row: row[0])
    return _frame([row[1:] for row in kept])


def sea_between(coasts: NDArray[np.object_], box: shapely.Polygon) -> shapely.Geometry:
    """Return the area of the sea.

    Coastlines divide the box into faces. A face is sea if it lies to the right of coastlines, and nowhere to the left:
    where the coastlines of an extract have gaps, no sea is assumed.

    Parameters
    ----------
    coasts
        Lines with land to the left, as in OpenStreetMap.
    box
        The area that is divided. A coastline that ends inside, near its edge, is continued to the edge.
    """
    west, south, east, north = box.bounds
    lines = shapely.line_merge(shapely.union_all(shapely.intersection(coasts, box)))
    joins = shapely.shortest_line(shapely.get_parts(shapely.boundary(lines)), box.exterior)
    lengths = shapely.length(joins)
    joins = joins[(lengths > 0) & (lengths < _REACH * max(east - west, north - south))]
    faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(shapely.union_all([lines, box.exterior, *joins]))))
    points, of = shapely.get_coordinates(shapely.get_parts(coasts), return_index=True)
    pieces = np.stack([points[:-1], points[1:]], axis=1)[of[1:] == of[:-1]]
    inside = shapely.intersection(shapely.linestrings(pieces), box)
    real = shapely.length(inside) > 0
    along = pieces[real, 1] - pieces[real, 0]
    right = along[:, ::-1] * (_BESIDE_DEG, -_BESIDE_DEG) / np.hypot(*along.T)[:, None]
    middle = shapely.get_coordinates(shapely.centroid(inside[real]))
    tree = shapely.STRtree(faces)
    wet, dry = (np.unique(tree.query(shapely.points(middle + side * right), predicate="within")[1]) for side in (1, -1))
    return shapely.union_all(faces[np.setdiff1d(wet, dry)])


def with_streets(network: RoadNetwork) -> gpd.GeoDataFrame | None:
    """Return a network's surroundings and its named streets.

    Parameters
    ----------
    network
        The network; streets are named by the edges' attribute ``name``.

    Returns
    -------
    geopandas.GeoDataFrame or None
        Rows as of :func:`surroundings_of`, then up to 30 of kind "street", those with the largest area (length times
        lanes) first; None if there is nothing of either.
    """
    metres: dict[str, float] = {}
    links: dict[str, list[int]] = {}
    for *_, data in network.edges:
        if isinstance(name := data.get("name"), str):
            metres[name] = metres.get(name, 0.0) + data["length_m"] * data["lanes"]
            links.setdefault(name, []).append(data["link"])
    largest = sorted(metres, key=lambda name: -metres[name])[:MOST_STREETS]
    known = network.surroundings
    rows = [] if known is None else list(zip(known["kind"], known["name"], known.geometry, strict=True))
    if largest:
        lines = shapely.normalize(network.shapes.lines())  # so that both directions of a road are equal
        streets = [shapely.multilinestrings(list(dict.fromkeys(lines[links[name]]))) for name in largest]
        rows += [("street", *row) for row in zip(largest, shapely.transform(streets, network.to_wgs84), strict=True)]
    return _frame(rows) if rows else None


def _frame(rows: list[tuple[Any, ...]]) -> gpd.GeoDataFrame:
    kinds, names, shapes = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"kind": pd.Series(kinds, dtype="string"), "name": pd.Series(names, dtype="string")}
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=WGS84)
