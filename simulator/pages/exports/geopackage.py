"""GeoPackage of a run for QGIS: cells with means over the queries, estimates and links with their times, and roads."""

from datetime import UTC, datetime
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely  # type: ignore[import-untyped,unused-ignore]

from simulator.formats.geo.geopackage import write_layers
from simulator.pages.exports.link_tables import named_links
from simulator.results.run import RunResult


def write_geopackage(data: RunResult, file: str | Path, *, overwrite: bool) -> None:
    """Write a run as a GeoPackage.

    Parameters
    ----------
    data
        The run.
    file
        The file, whose name ends in ``.gpkg``. Its layers are ``cells`` (`mean_estimates`), ``estimates``
        (`timed_estimates`) and, if the run has any, ``roads``, ``links`` (`timed_links`), ``detectors`` and ``counts``
        (`timed_places`).
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the file has another name, exists and may not be replaced, or cannot be written.
    """
    layers = {"cells": mean_estimates(data), "estimates": timed_estimates(data)}
    if data.roads is not None:
        layers["roads"] = data.roads
        if data.links is not None:
            layers["links"] = timed_links(data)
        counted = {"detectors": data.detectors, "counts": data.counts}.items()
        layers |= {name: timed_places(data, table, data.roads) for name, table in counted if table is not None}
    facts = {"scenario": data.record.scenario, "seed": str(data.record.seed), "crowdveil": data.record.version}
    credit = "; ".join(data.attributions)
    write_layers(layers, Path(file), metadata=facts | ({"attribution": credit} if credit else {}), overwrite=overwrite)


def mean_estimates(data: RunResult) -> gpd.GeoDataFrame:
    """Return one row per cell, in WGS84, with means over the queries that have a value for it.

    Returns
    -------
    geopandas.GeoDataFrame
        `cell`, `name`, and with the mechanism's name for M: `truth`, `estimate_M`, `error_M` (estimate − truth), all in
        vehicles or m/s, and `rmse_M`, the root mean square of the error. If the run has several campaigns, each name
        ends in its campaign's name. If fewer than all vehicles take part, truth and estimates are of all vehicles.
    """
    frame = data.leading.estimates
    frame = frame.assign(error=frame["estimate"] - frame["truth"])
    frame["rmse"] = np.square(frame["error"])
    several = frame["campaign"].nunique() > 1
    columns: dict[str, pd.Series] = {}

    def add(name: str, values: "pd.Series[float]") -> None:
        while name.lower() in {known.lower() for known in columns}:
            name += "_"  # a GeoPackage does not distinguish upper and lower case
        columns[name] = data.cells["cell"].map(values)

    for campaign, rows in frame.groupby("campaign", sort=False):
        tail = f"_{campaign}" if several else ""
        add(f"truth{tail}", rows.drop_duplicates(["query", "cell"]).groupby("cell")["truth"].mean())
        for mechanism, own in rows.groupby("mechanism", sort=False):
            means = own.groupby("cell")[["estimate", "error", "rmse"]].mean()
            means["rmse"] = np.sqrt(means["rmse"])
            for quantity in means:
                add(f"{quantity}_{mechanism}{tail}", means[quantity])
    return gpd.GeoDataFrame({**data.cells[["cell", "name"]], **columns}, geometry=data.cells.geometry)


def timed_estimates(data: RunResult) -> gpd.GeoDataFrame:
    """Return one row per campaign, query, mechanism and cell, in WGS84, with times for QGIS's temporal controller.

    Returns
    -------
    geopandas.GeoDataFrame
        The columns of `estimates.parquet`, the cell's `name`, `error` (estimate − truth, of all vehicles if fewer than
        all take part), and `time` and `until` (dates
        and times in UTC): from the query to the campaign's next one, or to the end of the run. Second 0 of the run is
        the `epoch` of its section `fcd`, or second 0 of its clock.
    """
    frame = data.to_geodataframe()
    lead = data.leading.estimates
    frame.insert(frame.columns.get_loc("estimate") + 1, "error", lead["estimate"] - lead["truth"])
    times = frame.drop_duplicates(["campaign", "query"])[["campaign", "query", "time_s"]].sort_values("time_s")
    ends = times.groupby("campaign")["time_s"].shift(-1).fillna(data.scenario.scenario.duration_s)
    frame = frame.merge(times.assign(until=ends).drop(columns="time_s"), on=["campaign", "query"], how="left")
    return frame.assign(time=_dates(data, frame["time_s"]), until=_dates(data, frame["until"]))


def timed_links(data: RunResult) -> gpd.GeoDataFrame:
    """Return one row per link and interval, in WGS84, with times for QGIS's temporal controller.

    Returns
    -------
    geopandas.GeoDataFrame
        The columns of `links.parquet` and the link's columns in `roads.parquet`, `id` (of `named_links`), `volume_vph`
        (vehicles that left it, an hour), `time` and `until` as `timed_estimates`.
    """
    table = named_links(data)
    hours = (table["to_s"] - table["from_s"]) / 3600.0
    return gpd.GeoDataFrame(_timed(data, table.assign(volume_vph=table["left"] / hours)), crs="EPSG:4326")


def timed_places(data: RunResult, table: pd.DataFrame, roads: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Return the rows of `detectors.parquet` or `counts.parquet` as points on their links, in WGS84.

    Returns
    -------
    geopandas.GeoDataFrame
        The columns of the table, and `time` and `until` as `timed_estimates`.
    """
    below = roads.set_index("link").loc[table["link"]]
    shares = table["position_m"].to_numpy() / below["length_m"].to_numpy()
    points = shapely.line_interpolate_point(below.geometry.to_numpy(), shares, normalized=True)
    return gpd.GeoDataFrame(_timed(data, table), geometry=points, crs="EPSG:4326")


def _timed(data: RunResult, table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of intervals with their beginning and end as dates and times in UTC."""
    return table.assign(time=_dates(data, table["from_s"]), until=_dates(data, table["to_s"]))


def _dates(data: RunResult, seconds: "pd.Series[float]") -> "pd.Series[pd.Timestamp]":
    """Return seconds of the run as dates and times in UTC."""
    epoch = pd.Timestamp(datetime.fromtimestamp(data.record.clock.epoch_s, UTC))
    return (epoch + pd.to_timedelta(seconds, unit="s")).dt.round("ms")
