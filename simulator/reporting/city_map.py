"""What the page's map needs: outlines of the cells, and their numbers by query and mechanism."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.published import COUNT, published_label, statistics

VALUE_LIMIT = 600_000
_WIDTH = 1000.0


def cell_outlines(cells: Any) -> dict[str, Any]:
    """
    Draw the cells in local coordinates, north up.

    Parameters
    ----------
    cells
        A GeoDataFrame in WGS84 with `cell`, `name` and geometry: areas, lines or points.

    Returns
    -------
    outlines
        `width` and `height` of the drawing, `kind`, the SVG `paths` in the frame's order (empty where a
        cell has no geometry), `cells` and `names`.
    """
    import shapely  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415  slow to import

    geometries = np.asarray(cells.geometry.array, dtype=object)
    names = cells["name"].astype("string").fillna("").tolist()
    outlines: dict[str, Any] = {
        "cells": [int(cell) for cell in cells["cell"]],
        "names": names,
        "kind": "area",
    }
    points = shapely.get_coordinates(geometries)
    if not len(points):
        return {**outlines, "width": 0, "height": 0, "paths": []}
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    if cells.crs is not None and cells.crs.is_geographic:
        squeeze = float(np.cos(np.radians((south + north) / 2)))
    else:
        squeeze = 1.0
    scale = _WIDTH / max((east - west) * squeeze, north - south, 1e-9)
    to_page = np.array([scale * squeeze, -scale])
    origin = np.array([west, north])
    dimensions = shapely.get_dimensions(geometries)
    outlines["kind"] = {0: "point", 1: "line"}.get(int(dimensions.max()), "area")
    return {
        **outlines,
        "width": round(float((east - west) * squeeze * scale), 1),
        "height": round(float((north - south) * scale), 1),
        "paths": [_path(shapely, geometry, origin, to_page) for geometry in geometries],
    }


def _path(shapely: Any, geometry: Any, origin: NDArray[np.float64], to_page: NDArray[np.float64]) -> str:
    if geometry is None or geometry.is_empty:
        return ""
    path = ""
    for part in shapely.get_parts(geometry):
        dimension = shapely.get_dimensions(part)
        strokes = [part.exterior, *part.interiors] if dimension == 2 else [part]
        for stroke in strokes:
            page = np.round((shapely.get_coordinates(stroke) - origin) * to_page, 1)
            if dimension == 2:
                page = page[:-1]
            path += "M" + "L".join(f"{x:g} {y:g}" for x, y in page) + ("Z" if dimension == 2 else "")
            path += "h0" if dimension == 0 else ""  # a point is drawn as the round end of a line of no length
    return path


def query_numbers(run: FinishedRun) -> list[dict[str, Any]]:
    """
    Gather truth, estimate and interval by campaign, mechanism and query.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    campaigns
        Each with its `queries`, `times`, `truths` (lists by query, then cell), `mechanisms`, and the ends of
        its colour scales, its `unit` and what its truth is in `words`, and `labels` of what is published by
        mechanism. Of a run too large for one page, `every` says which share of the queries is kept.
    """
    estimates = run.estimates
    cells = np.array([int(cell) for cell in run.cells["cell"]])
    gathered = []
    kinds = statistics(run.scores)
    for campaign, frame in estimates.groupby("campaign", sort=False, observed=True):
        queries = np.sort(np.array(frame["query"].unique()))
        every = max(1, -(-4 * len(frame) // VALUE_LIMIT))
        kept = queries[::every]
        frame = frame[frame["query"].isin(kept)] if every > 1 else frame  # noqa: PLW2901
        times = frame.groupby("query")["time_s"].first().reindex(kept)
        numbers: dict[str, Any] = {
            "name": str(campaign),
            "unit": run.called.unit(kinds[str(campaign)].unit),
            "words": run.called.of(kinds[str(campaign)].of_truth),
            "counts": kinds[str(campaign)] is COUNT,
            "labels": {str(m): published_label(run, str(campaign), str(m)) for m in frame["mechanism"].unique()},
            "queries": [int(query) for query in kept],
            "all_queries": len(queries),
            "times": [round(float(time), 3) for time in times],
            "truths": [],
            "mechanisms": {},
        }
        for mechanism, rows in frame.groupby("mechanism", sort=False, observed=True):
            numbers["mechanisms"][str(mechanism)] = _mechanism_numbers(rows, kept, cells, numbers["truths"])
        top = max(
            (value for truth in numbers["truths"] for row in truth for value in row if value is not None),
            default=0,
        )
        numbers["top"] = max(1.0, top)
        numbers["error"] = max([1e-9] + [entry["error"] for entry in numbers["mechanisms"].values()])
        gathered.append(numbers)
    return gathered


def _mechanism_numbers(
    rows: pd.DataFrame,
    queries: NDArray[Any],
    cells: NDArray[np.int64],
    truths: list[list[list[float | None]]],
) -> dict[str, Any]:
    place = (
        np.searchsorted(queries, rows["query"].to_numpy()),
        np.searchsorted(cells, rows["cell"].to_numpy()),
    )
    shape = (len(queries), len(cells))

    def grid(column: str) -> list[list[float | None]]:
        values = np.full(shape, np.nan)
        values[place] = rows[column].to_numpy(dtype=float)
        return _rounded(values)

    truth = grid("truth")
    if truth not in truths:  # mechanisms that answer about the same moment share one copy
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
    if np.isfinite(values).all():
        rounded = np.round(values, 2)
        integral = bool((rounded == np.round(rounded)).all())
        rows: list[list[float | None]] = (rounded.astype(np.int64) if integral else rounded).tolist()
        return rows
    return [[round(float(value), 2) if np.isfinite(value) else None for value in row] for row in values]
