"""Folder of a run for SimWrapper: dashboards, cells, estimates over time, and the vehicles that the run kept.

The formats are those of https://docs.simwrapper.app as of 3 March 2025 (github.com/simwrapper/docs, 6726883):
dashboards (guide-dashboards), maps of GeoJSON joined to CSV (ref-shapefiles), points over time (ref-xy-time) and
vehicles (matsim-drt-animation). The panel type ``vehicles`` and the fields of a trip (id, path, timestamps, passengers)
are those that github.com/simwrapper/simwrapper, 2b99122, reads.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd

from simulator.files.atomic_write import export_folder, plain_name
from simulator.pages.exports.positions import kept_positions
from simulator.results.run import RunResult
from simulator.traffic.fcd import Samples, paths_of

CRS = "EPSG:4326"
"""Coordinate system of all files: longitude and latitude."""
CELLS, VEHICLES = "cells.geojson", "drt-vehicles.json.gz"


def write_folder(data: RunResult, directory: Path, folder: Path, *, overwrite: bool) -> bool:
    """Write a folder that SimWrapper shows, all files or none.

    Parameters
    ----------
    data, directory
        The run and its directory.
    folder
        The folder to write.
    overwrite
        Whether existing files of the same names are replaced.

    Returns
    -------
    bool
        Whether the run kept positions, so that its vehicles are shown.

    Raises
    ------
    InputError
        If the folder holds files and may not be replaced, or cannot be written.
    """
    samples = kept_positions(directory, data)
    credit = "; ".join(data.attributions)

    def fill(staging: Path) -> None:
        cells = data.cells[["cell", "name", "geometry"]].to_geo_dict()
        _write_json(staging / CELLS, {**cells, **({"attribution": credit} if credit else {})})
        for number, (campaign, rows) in enumerate(data.leading.estimates.groupby("campaign", sort=False), start=1):
            layout = _write_campaign(staging, data, str(campaign), rows, credit)
            _write_dashboard(staging / f"dashboard-{number}.yaml", data, str(campaign), layout, credit)
        if samples is not None:
            _write_vehicles(staging / VEHICLES, samples)
            panel = {"type": "vehicles", "title": "Vehicles", "drtTrips": VEHICLES, "height": 15, **_view(data)}
            _write_dashboard(staging / "dashboard-vehicles.yaml", data, "vehicles", {"vehicles": [panel]}, credit)

    export_folder(folder, fill, overwrite=overwrite)
    return samples is not None


def _write_campaign(folder: Path, data: RunResult, campaign: str, rows: pd.DataFrame, credit: str) -> dict[str, Any]:
    """Write the tables of a campaign, and return the rows of its dashboard."""
    name = plain_name(campaign)
    truth = rows.drop_duplicates(["query", "cell"])
    means = pd.DataFrame({"truth": truth.groupby("cell")["truth"].mean()})
    shown = [("Truth", truth, "truth", f"{name}-truth.xyt.csv")]
    for place, (mechanism, own) in enumerate(rows.groupby("mechanism", sort=False), start=1):
        of_cell = own.groupby("cell")[["truth", "estimate"]].mean()
        means[f"estimate_{place}"], means[f"error_{place}"] = (
            of_cell["estimate"],
            of_cell["estimate"] - of_cell["truth"],
        )
        shown.append((str(mechanism), own, "estimate", f"{name}-{plain_name(str(mechanism))}.xyt.csv"))
    means.to_csv(folder / f"{name}.csv", lineterminator="\n")
    layout = {}
    for place, (title, own, column, file) in enumerate(shown):
        _write_points(folder / file, data, own, column, credit)
        columns = (
            {f"estimate_{place}": "estimate", f"error_{place}": "estimate − truth"} if place else {"truth": "mean"}
        )
        maps = [_map(data, f"{title}: {words}", f"{name}.csv", key) for key, words in columns.items()]
        points = {"type": "xytime", "title": f"{title}, over time", "height": 8, "radius": 20, "file": file}
        layout[f"row{place}"] = [*maps, points]
    return layout


def _write_points(file: Path, data: RunResult, rows: pd.DataFrame, column: str, credit: str) -> None:
    """Write ``time,x,y,value``: seconds of the run, a point inside each cell, and a value; in ascending time."""
    inside = data.cells.geometry.representative_point()
    places = pd.DataFrame({"cell": data.cells["cell"], "x": inside.x.round(7), "y": inside.y.round(7)})
    known = rows[rows[column].notna()].merge(places, on="cell").sort_values(["time_s", "cell"], kind="stable")
    table = known[["time_s", "x", "y", column]].set_axis(["time", "x", "y", "value"], axis=1)
    with file.open("w", encoding="utf-8", newline="") as text:
        text.write(f"# {CRS}\n" + (f"# {credit}\n" if credit else ""))
        table.to_csv(text, index=False, lineterminator="\n")


def _write_vehicles(file: Path, samples: Samples) -> None:
    trips: list[dict[str, Any]] = []
    for number, path in enumerate(paths_of(samples)):
        places = list(zip(path.lon, path.lat, strict=True))
        riders = {"passengers": [1] * len(places), "vendor": 0}
        # A vehicle has a further trip after each absence, and ids differ.
        trips.append({"id": f"{path.vehicle}-{number}", "path": places, "timestamps": path.time_s, **riders})
    text = json.dumps({"trips": trips, "drtRequests": []}, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def _map(data: RunResult, title: str, file: str, column: str) -> dict[str, Any]:
    """Return the panel of a map of means over the queries."""
    ramp = {"ramp": "RdBu" if column.startswith("error") else "Blues", "steps": 7}
    fill = {"dataset": "estimates", "join": "cell", "columnName": column, "colorRamp": ramp}
    source = {"shapes": {"file": CELLS, "join": "cell"}, "datasets": {"estimates": {"file": file}}}
    return {"type": "map", "title": title, "height": 8, **_view(data), **source, "display": {"fill": fill}}


def _view(data: RunResult) -> dict[str, Any]:
    west, south, east, north = data.cells.total_bounds.tolist()
    return {"center": [round((west + east) / 2, 6), round((south + north) / 2, 6)], "zoom": 11}


def _write_dashboard(file: Path, data: RunResult, tab: str, layout: dict[str, Any], credit: str) -> None:
    words = f"seed {data.record.seed}. {data.record.description or ''}".strip()
    header = {"tab": tab, "title": data.record.scenario, "description": f"{words} {credit}".strip()}
    _write_json(file, {"header": header, "layout": layout})


def _write_json(file: Path, content: object) -> None:
    """Write JSON, which is YAML too, and in which no name of a run can be anything but text."""
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
