"""Report section: maps of ground truth, estimate and error; for a single cell, its course over time."""

import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import shapely  # type: ignore[import-untyped,unused-ignore]
from numpy.typing import NDArray

from simulator.pages.charts.spec import Chart, with_shared_ends
from simulator.pages.document import PageSection
from simulator.pages.motion_section import motion_section
from simulator.pages.run_charts import over_queries, style
from simulator.results.formatting import LARGE, finite
from simulator.results.names import ALL_VEHICLES, COUNT
from simulator.results.run import RunResult

VALUE_LIMIT = 600_000
_SCALES = ((4.0, "linear"), (100.0, "square-root"), (np.inf, "logarithmic"))
"""Kinds of colour scale: up to what skew each is used. Logarithms are of 1 plus the number, which may be 0."""
_WIDTH = 1000.0
_METRES_A_DEGREE = 111_195.0
_BESIDE_M = 60.0
"""How far from the roads a cell is drawn, metres: a vehicle is on a road."""
_FINEST = 0.4
"""Distance in the drawing below which bends of roads are left out."""
_CLASSES = (("major", 22.0, 3), ("middle", 13.0, 2), ("minor", 0.0, 1))
"""Classes of roads: the least free-flow speed in m/s and number of lanes; one of the two suffices."""
_SPECK = 150.0
"""Area in the drawing below which water is left out."""
_RIVER = 1.5
"""Half the width of a river that is a line, in the drawing."""
_LEAST_LAND = 0.2
"""Share of a cell's area below which its land alone would be too small to show its colour."""
_TEXT = 24.0
"""Size of the letters of names, in the drawing, as in its legend."""
_MOST_NAMES = 12


def city_outlines(
    cells: Any,
    roads: pd.DataFrame | None = None,
    surroundings: pd.DataFrame | None = None,
    *,
    districts: bool = False,
    extent: Any = None,
) -> dict[str, Any]:
    """
    Draw the cells and the roads in local coordinates, north up.

    Parameters
    ----------
    cells
        A GeoDataFrame in WGS84 with `cell`, `name` and geometry: areas, lines or points.
    roads
        A frame with `speed_mps`, `lanes` and `geometry`, lines in WGS84; None where there are none. Cells that
        are areas are drawn where they have roads only.
    surroundings
        A frame with `kind`, `name` and `geometry`, in WGS84, of `simulator.roads.surroundings`, or None. Cells
        that are areas are drawn without its water.
    districts
        Whether the cells are areas with names of their own: they are drawn whole, with their names.
    extent
        Shapes in the coordinates of the cells that the drawing has room for; by default the cells.

    Returns
    -------
    outlines
        `width` and `height` of the drawing, `frame`, the coordinates of its left upper corner and the units of the
        drawing in a unit of each, `kind`, the SVG `paths` in the frame's order (empty where a
        cell has no geometry), `cells` and `names`; `roads`, pairs of a class and its SVG path; `water`, the SVG path of
        all water; `labels`, the x, y and text of names of places, or where there are none of streets; and `metres`, the
        length that one unit of the drawing stands for, None where the coordinates are not geographic.
    """
    geometries = np.asarray(cells.geometry.array, dtype=object)
    names = cells["name"].astype("string").fillna("").tolist()
    outlines: dict[str, Any] = {"cells": [int(cell) for cell in cells["cell"]], "names": names, "kind": "area"}
    outlines |= {"water": "", "labels": []}
    lines = np.empty(0, dtype=object) if roads is None else roads["geometry"].to_numpy()
    dimension = int(shapely.get_dimensions(geometries).max())
    outlines["kind"] = {0: "point", 1: "line"}.get(dimension, "area")
    geographic = cells.crs is not None and cells.crs.is_geographic
    points = shapely.get_coordinates([*(geometries if extent is None else extent), *lines])
    if not len(points):
        return {**outlines, "width": 0, "height": 0, "paths": [], "roads": [], "metres": None}
    middle = float(np.radians(points[:, 1].mean())) if geographic else 0.0
    metres = np.array([np.cos(middle), 1.0]) * (_METRES_A_DEGREE if geographic else 1.0)
    geometries, lines = (shapely.transform(shapes, lambda points: points * metres) for shapes in (geometries, lines))
    if len(lines) and dimension == 2 and not districts:
        geometries = _near(geometries, lines)
    drawn = (
        geometries if extent is None else shapely.transform(np.asarray(extent, dtype=object), lambda at: at * metres)
    )
    points = shapely.get_coordinates([*drawn, *lines])
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    scale = _WIDTH / max(east - west, north - south, 1e-9)
    to_page = np.array([scale, -scale])
    box = (0.0, 0.0, float((east - west) * scale), float((north - south) * scale))
    geometries, lines = (
        shapely.transform(shapes, lambda points: np.round((points - [west, north]) * to_page, 1))
        for shapes in (geometries, lines)
    )
    if surroundings is not None and geographic:
        kinds, around = surroundings["kind"].to_numpy(), surroundings["geometry"].to_numpy()
        around = shapely.transform(around, lambda points: (points * metres - [west, north]) * to_page)
        water = _water(around[kinds == "water"], box)
        outlines["water"] = "".join(map(_path, shapely.get_parts(water)))
        if dimension == 2:
            geometries = _land(geometries, water)
        named = kinds == ("place" if (kinds == "place").any() else "street")
        outlines["labels"] = _labels(surroundings["name"].to_numpy()[named], around[named], box)
    if districts:
        largest = np.argsort(-shapely.area(geometries))
        inside = shapely.point_on_surface(geometries[largest])
        outlines["labels"] = _labels(np.array(names, dtype=object)[largest], inside, box, most=len(names))
    return {
        **outlines,
        "width": round(box[2], 1),
        "height": round(box[3], 1),
        "paths": ["".join(map(_path, shapely.get_parts(geometry))) for geometry in geometries],
        "roads": [] if roads is None else _roads_by_class(lines, roads),
        "metres": 1.0 / scale if geographic else None,
        "frame": [west / metres[0], north / metres[1], *(metres * scale)],
    }


def _near(areas: NDArray[np.object_], lines: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the parts of the areas that have roads; an area without any stays as it is."""
    around = shapely.concave_hull(shapely.MultiPoint(shapely.get_coordinates(lines)), ratio=0.05)
    around = shapely.buffer(around, _BESIDE_M, quad_segs=2)
    shapely.prepare(around)
    edge = ~shapely.contains_properly(around, areas)
    near = areas.copy()
    near[edge] = shapely.intersection(areas[edge], around)
    polygons = shapely.get_dimensions(near) == 2
    return np.where(polygons, near, areas)


def _water(shapes: NDArray[np.object_], box: tuple[float, ...]) -> Any:
    """Return all water inside the drawing as one shape, as fine as roads are drawn."""
    lines = shapely.get_dimensions(shapes) == 1
    shapes[lines] = shapely.buffer(shapely.simplify(shapes[lines], _FINEST), _RIVER, quad_segs=2)
    parts = shapely.get_parts(shapely.clip_by_rect(shapely.union_all(shapely.make_valid(shapes)), *box))
    simple = shapely.simplify(parts[shapely.area(parts) >= _SPECK], _FINEST)
    return shapely.set_precision(shapely.union_all(simple), 0.1)


def _land(areas: NDArray[np.object_], water: Any) -> NDArray[np.object_]:
    """Return the areas without their water; an area with hardly any land, such as a bridge's, stays as it is."""
    shapely.prepare(water)
    wet = np.flatnonzero(shapely.intersects(water, areas))
    land = shapely.difference(areas[wet], water)
    enough = shapely.area(land) >= _LEAST_LAND * shapely.area(areas[wet])
    areas = areas.copy()
    areas[wet[enough]] = shapely.transform(land[enough], lambda points: np.round(points, 1))
    return areas


def _labels(
    names: NDArray[np.object_], shapes: NDArray[np.object_], box: tuple[float, ...], *, most: int = _MOST_NAMES
) -> list[tuple[float, float, str]]:
    """Return the middle and text of the first names that fit into the drawing without touching an earlier one."""
    placed: list[tuple[float, float, float]] = []
    labels: list[tuple[float, float, str]] = []
    for name, shape in zip(names, shapely.clip_by_rect(shapes, *box), strict=True):
        parts = shapely.get_parts(shapely.line_merge(shape) if shape.geom_type == "MultiLineString" else shape)
        half = 0.29 * _TEXT * sum(1.8 if unicodedata.east_asian_width(sign) in "WF" else 1.0 for sign in name)
        if not len(parts) or 2 * half > box[2] or len(labels) == most:
            continue
        longest = parts[np.argmax(shapely.length(parts))]
        point = longest if longest.geom_type == "Point" else longest.interpolate(0.5, normalized=True)
        x = min(max(point.x, half), box[2] - half)
        y = min(max(point.y, _TEXT), box[3] - _TEXT / 2)
        if all(abs(x - other) > half + wide or abs(y - down) > 1.3 * _TEXT for other, down, wide in placed):
            placed.append((x, y, half))
            labels.append((round(x, 1), round(y, 1), name))
    return labels


def _roads_by_class(lines: NDArray[np.object_], roads: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the SVG path of each class of roads; both directions of a road are drawn once."""
    _, once = np.unique(shapely.to_wkb(shapely.normalize(lines)), return_index=True)
    left, drawn = np.sort(once), []
    speed, lanes = roads["speed_mps"].to_numpy(), roads["lanes"].to_numpy()
    for name, least_mps, least_lanes in _CLASSES:
        chosen = (speed[left] >= least_mps) | (lanes[left] >= least_lanes)
        simple = shapely.simplify(lines[left[chosen]], _FINEST)
        path = "".join(_stroke(part.coords) for part in simple if part.length > 0)
        left = left[~chosen]
        drawn += [(name, path)] if path else []
    return drawn


def _path(part: Any) -> str:
    """Return the SVG path of a polygon, a line or a point; a point is the round cap of a line of length zero."""
    if part.is_empty:
        return ""
    if part.geom_type != "Polygon":
        return _stroke(part.coords) + ("h0" if part.geom_type == "Point" else "")
    return "".join(f"{_stroke(ring.coords[:-1])}Z" for ring in (part.exterior, *part.interiors))


def _stroke(points: Any) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def query_numbers(run: RunResult, *, asked: bool = False) -> list[dict[str, Any]]:
    """
    Gather truth, estimate and interval by campaign, mechanism and query.

    Parameters
    ----------
    run
        The finished run.
    asked
        Of the devices asked, even if fewer than all vehicles take part.

    Returns
    -------
    campaigns
        Each with the `partition` of its cells, its `queries`, `times`, `asked` (the times of round one), `truths`
        (lists by query, then cell), `mechanisms`, the kind and the ends of its colour scales, its `unit`, a description
        of its truth in `words`, and `labels` of the published estimates by mechanism. If a run is too large for one
        page, `queries` lists only a share of its queries; `all_queries` is the number of all of them.
    """
    asked_s = {(query.campaign, query.query): query.time_s for query in run.record.traffic_at_queries}
    gathered = []
    estimates = run.asked.estimates if asked else run.estimates
    for campaign, frame in estimates.groupby("campaign", sort=False, observed=True):
        queries = np.sort(np.array(frame["query"].unique()))
        every = max(1, -(-4 * len(frame) // VALUE_LIMIT))
        kept = queries[::every]
        frame = frame[frame["query"].isin(kept)] if every > 1 else frame  # noqa: PLW2901 - fewer rows of the same frame
        times = frame.groupby("query")["time_s"].first().reindex(kept)
        statistic, of_campaign = run.statistics[str(campaign)], run.cells_of(str(campaign))
        cells = of_campaign["cell"].to_numpy(dtype=np.int64)
        numbers: dict[str, Any] = {
            "name": str(campaign),
            "partition": of_campaign["partition"].iloc[0],
            "unit": run.record.owners.unit(statistic.unit),
            "words": run.record.owners.replace_in(
                ALL_VEHICLES if run.partial and statistic is COUNT and not asked else statistic.of_truth
            ),
            "counts": statistic is COUNT,
            "labels": {str(m): run.record.published_label(str(campaign), str(m)) for m in frame["mechanism"].unique()},
            "queries": [int(query) for query in kept],
            "all_queries": len(queries),
            "times": [round(float(time), 3) for time in times],
            "asked": [asked_s.get((str(campaign), int(query)), float(times[query])) for query in kept],
            "truths": [],
            "mechanisms": {},
        }
        for mechanism, rows in frame.groupby("mechanism", sort=False, observed=True):
            numbers["mechanisms"][str(mechanism)] = _mechanism_numbers(rows, kept, cells, numbers["truths"])
        values = [value for truth in numbers["truths"] for row in truth for value in row if value is not None]
        numbers["top"] = max(1.0, max(values, default=0))
        numbers["scale"] = _scale(numbers["top"] / max(1.0, float(np.median(values or [0.0]))))
        numbers["error"] = max([1e-9, *(entry["error"] for entry in numbers["mechanisms"].values())])
        gathered.append(numbers)
    return gathered


def _scale(skew: float) -> str:
    """Return the kind of colour scale for cells of which the fullest has so many times as much as the median."""
    return next(name for most, name in _SCALES if skew <= most)


def _mechanism_numbers(
    rows: pd.DataFrame, queries: NDArray[Any], cells: NDArray[np.int64], truths: list[list[list[float | None]]]
) -> dict[str, Any]:
    place = np.searchsorted(queries, rows["query"].to_numpy()), np.searchsorted(cells, rows["cell"].to_numpy())
    shape = (len(queries), len(cells))

    def grid(column: str) -> list[list[float | None]]:
        values = np.full(shape, np.nan)
        values[place] = rows[column].to_numpy(dtype=float)
        return _rounded(values)

    truth = grid("truth")
    if truth not in truths:  # mechanisms that answer about the same time share one copy
        truths.append(truth)
    error = np.abs(rows["estimate"].to_numpy(dtype=float) - rows["truth"].to_numpy(dtype=float))
    error = error[np.isfinite(error)]
    return {
        "truth": truths.index(truth),
        "estimate": grid("estimate"),
        "lower": grid("lower"),
        "upper": grid("upper"),
        "error": float(np.quantile(error, 0.98)) if len(error) else 0.0,
    }


def _rounded(values: NDArray[np.float64]) -> list[list[float | None]]:
    values = np.where(np.abs(values) < LARGE, np.round(values, 2), values)
    if np.isfinite(values).all():
        integral = bool((values == np.round(values)).all() and np.abs(values).max(initial=0) < LARGE)
        rows: list[list[float | None]] = (values.astype(np.int64) if integral else values).tolist()
        return rows
    return [finite(row) for row in values]


def map_section(run: RunResult) -> PageSection:
    """
    Show truth, estimate and error, as a map or, for a single cell, over time.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        The section.
    """
    if run.estimates.empty:  # campaigns of speeds alone may publish no cell
        return _city({"empty": True})
    if len(run.cells) == 1:
        name = str(run.cells["name"].iloc[0]) or "unnamed"
        return _city({"empty": False, "one_cell": name, "charts": _series(run)})
    campaigns = query_numbers(run)
    extent = run.cells.geometry if run.cells["partition"].nunique() > 1 else None
    districts = run.settings.districts
    outlines = {
        str(name): city_outlines(own, run.roads, run.surroundings, districts=name in districts, extent=extent)
        | ({} if run.record.city.on_earth else {"metres": None})
        for name, own in run.cells.groupby("partition", sort=False)
    }
    city = outlines[campaigns[0]["partition"]]
    differ = ("cells", "names", "kind", "paths", "water", "labels")
    motion = motion_section(run, city)
    # What the reader may choose to see instead, where fewer than all vehicles take part.
    asked = query_numbers(run, asked=True) if run.partial else None
    data = {
        "city": city,
        # What is drawn instead where a campaign asks about the cells of another partition.
        "partitions": {name: {key: one[key] for key in differ} for name, one in outlines.items()}
        if len(outlines) > 1
        else {},
        "campaigns": campaigns,
        "asked": asked,
        "looks": {name: style(run, name)._asdict() for one in campaigns for name in one["mechanisms"]},
        "minutes": run.record.clock.minutes_axis,
        "motion": None if motion is None else motion["page"],
    }
    thinned = [campaign for campaign in campaigns if len(campaign["queries"]) < campaign["all_queries"]]
    values = {"empty": False, "one_cell": None, "truth": campaigns[0]["words"], "thinned": thinned, "motion": motion}
    return _city(values, data)


def _city(values: dict[str, object], data: dict[str, object] | None = None) -> PageSection:
    return PageSection("map", "City", template="map", values=values, data=data or {})


def _series(run: RunResult) -> list[Chart]:
    drawn: list[Chart] = []
    campaigns = list(dict.fromkeys(map(str, run.estimates["campaign"])))
    for campaign in campaigns:
        group = []
        own = run.estimates["campaign"] == campaign
        for mechanism in dict.fromkeys(map(str, run.estimates.loc[own, "mechanism"])):
            where = f", campaign {campaign}" if len(campaigns) > 1 else ""
            label = run.record.published_label(campaign, mechanism) + where
            group.append(over_queries(run, campaign, mechanism, label))
        drawn += with_shared_ends(group, f"series {campaign}")
    return drawn
