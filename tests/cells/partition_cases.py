"""One partition of each kind over the same few kilometres of Manhattan, for the partition contract tests."""

from __future__ import annotations

from collections.abc import Callable

import geopandas as gpd
import numpy as np
import pyproj
import shapely

from simulator.cells import (
    Coarsened,
    GeographicGrid,
    HexagonGrid,
    NamedPlaces,
    Partition,
    RoadSegments,
    SquareGrid,
    Zones,
)

CRS = pyproj.CRS.from_epsg(32618)
BOUNDS = (584_000.0, 4_507_000.0, 588_000.0, 4_511_000.0)


def places(n: int, *, seed: int = 5, margin_m: float = 500.0) -> np.ndarray:
    """Points in and around the bounds, (n, 2) metres."""
    rng = np.random.default_rng(seed)
    x_min, y_min, x_max, y_max = BOUNDS
    low, high = (x_min - margin_m, y_min - margin_m), (x_max + margin_m, y_max + margin_m)
    return rng.uniform(low, high, size=(n, 2))


def links(*, seed: int = 3, n: int = 40) -> np.ndarray:
    """Lines between random places, with a bend; (n,)."""
    ends = places(3 * n, seed=seed, margin_m=0.0).reshape(n, 3, 2)
    lines = np.empty(n, dtype=object)
    lines[:] = list(shapely.linestrings(ends))
    return lines


def segments() -> RoadSegments:
    """Each line is one cell."""
    lines = links()
    cells = np.arange(1, len(lines) + 1, dtype=np.int32)
    names = [f"way {i}" for i in range(len(lines))]
    return RoadSegments.build(lines, cell_of_links=cells, names=names, crs=CRS, within_m=80.0)


def zones() -> Zones:
    """The Voronoi cells of random places, cut to the bounds."""
    cut = shapely.box(*BOUNDS)
    areas = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(places(25, seed=4, margin_m=0.0))))
    frame = gpd.GeoDataFrame(
        {"district": [f"d{i}" for i in range(25)]}, geometry=shapely.intersection(areas, cut), crs=CRS
    )
    return Zones.build(frame, name="district", crs=CRS)[0]


XY = places(30, seed=8, margin_m=0.0)
NAMES = [f"place {i}" for i in range(len(XY))]
ROW = np.column_stack([(np.arange(11) + 0.5) * 1000.0, np.full(11, 500.0)])
LABELS = {"place 3": "the third"}
MAKE: dict[str, Callable[[], Partition]] = {
    "square": lambda: SquareGrid.build_over(BOUNDS, size_m=300.0, crs=CRS),
    "geographic": lambda: GeographicGrid.build_over(BOUNDS, crs=CRS),
    "h3": lambda: HexagonGrid.build_over(BOUNDS, resolution=8, crs=CRS),
    "zones": zones,
    "roads": segments,
    "stations": lambda: NamedPlaces.build("stations", NAMES, XY, crs=CRS, radius_m=400.0),
    "locations": lambda: NamedPlaces.build("locations", NAMES, XY, crs=CRS, radius_m=200.0, labels=LABELS),
    "row": lambda: NamedPlaces.build("locations", NAMES[:11], ROW, crs=CRS, radius_m=100.0, side_m=1000.0),
}


def build(kind: str) -> Partition:
    """Make a partition of this kind; a trailing "+" merges its cells once."""
    return Coarsened(build(kind[:-1]), 1) if kind.endswith("+") else MAKE[kind]()


KINDS = list(MAKE)
EVERY = [*KINDS, *(f"{kind}+" for kind in KINDS), "h3++"]
