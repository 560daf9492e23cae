"""Report section: the summary, and maps of ground truth, estimate and error."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simulator.reporting import figures
from simulator.reporting.campaign_text import COUNT, published_label, statistics
from simulator.reporting.formatting import whole
from simulator.reporting.markup import Safe, definitions, details, element, figure, same_scale
from simulator.reporting.run_reader import FinishedRun
from simulator.reporting.summary_text import accuracy, price, question

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
            path += "h0" if dimension == 0 else ""  # a point is drawn as the round cap of a line of length zero
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
        its colour scales, its `unit`, a description of its truth in `words`, and `labels` of the published
        estimates by mechanism. If a run is too large for one page, `queries` lists only a share of its queries;
        `all_queries` is the number of all of them.
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
    if np.isfinite(values).all():
        rounded = np.round(values, 2)
        integral = bool((rounded == np.round(rounded)).all())
        rows: list[list[float | None]] = (rounded.astype(np.int64) if integral else rounded).tolist()
        return rows
    return [[round(float(value), 2) if np.isfinite(value) else None for value in row] for row in values]


Figures = dict[str, Any]
SHOWN_WARNINGS = 4
"""Number of warnings shown at first, so that the result still fits on the first screen."""


def header(run: FinishedRun) -> Safe:
    """
    Build the head of the page: the question, the result and the size of the run.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The page's ``header``.
    """
    facts = run.run
    cells = len(run.cells)
    asked = sorted({round(value) for value in run.mean_asked.values()})
    each = "–".join(whole(value) for value in dict.fromkeys((asked[0], asked[-1]))) if asked else "–"
    keys = [
        (f"{run.called.many} in the run", whole(facts.get("vehicles"))),
        ("cell" if cells == 1 else "cells", whole(cells)),
        ("query" if facts.get("queries") == 1 else "queries", whole(facts.get("queries"))),
        ("devices asked per query", each),
        ("mechanisms compared", whole(len(run.facts))),
        ("answers made", whole(facts.get("device_answers"))),
    ]
    verdict = element("div", *(element("p", sentence) for sentence in accuracy(run)), class_="verdict")
    prices = element("ul", *(element("li", sentence) for sentence in price(run)))
    return element(
        "header",
        element("p", "crowdveil · report of a run", class_="kicker"),
        element("h1", facts.get("scenario", "")),
        element("p", facts["description"], class_="described") if facts.get("description") else "",
        _warnings(facts),
        element("p", question(run), class_="question"),
        element("h2", "How good is the picture?"),
        verdict,
        element("h2", f"What does it cost {run.called.who_pays}?"),
        prices,
        definitions(keys, class_="keys"),
    )


def _warnings(facts: Mapping[str, Any]) -> Safe:
    """List the run's warnings at the top of the page; all but the first few are collapsed."""
    items = [element("li", warning) for warning in facts.get("warnings") or []]
    if not items:
        return Safe("")
    shown, more = items[:SHOWN_WARNINGS], items[SHOWN_WARNINGS:]
    folded = details(f"{len(more)} more", element("ul", *more)) if more else ""
    heading = "1 warning" if len(items) == 1 else f"{len(items)} warnings"
    return element("div", element("h3", heading), element("ul", *shown), folded, class_="warnings", id="warnings")


def map_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show truth, estimate and error, as a map or, for a single cell, over time.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the section's figures are added to it.

    Returns
    -------
    html
        The section.
    """
    if len(run.cells) == 1:
        return _series_section(run, page)
    page["city"] = cell_outlines(run.cells)
    page["campaigns"] = query_numbers(run)
    every = [campaign for campaign in page["campaigns"] if len(campaign["queries"]) < campaign["all_queries"]]
    thinned = [
        f"Of {campaign['name']}’s {campaign['all_queries']} queries {len(campaign['queries'])}, evenly "
        "spaced, can be shown here; the tables count all."
        for campaign in every
    ]
    panels = [
        element(
            "figure",
            element("figcaption", element("strong", title), " ", element("span", words, data_words=panel)),
            element("div", class_="canvas", data_panel=panel),
            element("div", class_="scale", data_scale=panel, aria_hidden="true"),
        )
        for panel, title, words in (
            ("truth", "Truth", run.called.of(next(iter(statistics(run.scores).values())).of_truth)),
            ("estimate", "Estimate", "what the aggregator worked out"),
            ("error", "Error", "estimate minus truth"),
        )
    ]
    return element(
        "section",
        element("h2", "The city: truth, estimate and error"),
        element("div", class_="controls", id="controls"),
        element("p", class_="status", id="status", role="status"),
        element("div", *panels, class_="panels", id="panels"),
        element("p", class_="status", id="clipped"),
        element("div", id="hover", class_="hover", hidden="hidden"),
        *(element("p", sentence, class_="note") for sentence in thinned),
        element(
            "details",
            element("summary", "The same numbers as a table"),
            element(
                "div",
                class_="scroll tall",
                id="values",
                tabindex="0",
                role="region",
                aria_label="Numbers by cell",
            ),
            id="values-box",
        ),
        id="map",
    )


def _series_section(run: FinishedRun, page: Figures) -> Safe:
    name = str(run.cells["name"].iloc[0])
    campaigns = list(dict.fromkeys(run.estimates["campaign"]))
    drawn = []
    for campaign in campaigns:
        group = []
        own = run.estimates["campaign"] == campaign
        for mechanism in dict.fromkeys(run.estimates.loc[own, "mechanism"]):
            key = f"series-{len(page['figures'])}"
            page["figures"][key] = figures.series(run, str(campaign), str(mechanism))
            group.append(page["figures"][key])
            where = f", campaign {campaign}" if len(campaigns) > 1 else ""
            label = published_label(run, str(campaign), str(mechanism)) + where
            words = f"{label}: truth, estimate and 95 % interval by query."
            drawn.append(figure(key, label, described=words))
        figures.share_scales(group)
    return element(
        "section",
        element("h2", "The watched cell: truth, estimate and interval over time"),
        element("p", f"There is one cell, {name or 'unnamed'}, so time takes the place of a map."),
        same_scale("series"),
        *drawn,
        id="map",
    )
