"""The examples of roads.md on tables and lines, and of demand.md on trips, are read as they are printed."""

import re
import tomllib
from pathlib import Path

import geopandas as gpd
import h5py
import numpy as np
import pandas as pd
import pytest
import shapely

import crowdveil as cv

DOCS = Path(__file__).parents[2] / "docs"
GRID = {"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200}


def section_of(page, heading, folder):
    """Return the scenarios of a section of a page, whose files are written to a folder."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.split(f"# {heading}\n", maxsplit=1)[1]
    section = re.split(r"\n#+ ", section, maxsplit=1)[0]
    for name, content in re.findall(r"^`([\w.]+)`:\n\n```\n(.*?)```", section, flags=re.DOTALL | re.MULTILINE):
        (folder / name).write_text(content, encoding="utf-8")
    return [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", section, flags=re.DOTALL)]


def located(table, folder):
    """Return a table with the files that exist as paths."""
    files = {key: folder / str(value) for key, value in table.items() if (folder / str(value)).is_file()}
    inner = {key: located(value, folder) for key, value in table.items() if isinstance(value, dict)}
    return table | files | inner


def run(folder, **sections):
    heading = {"name": "example", "duration_s": 300}
    rest = {"campaigns": [{"start_s": 60}], "mechanisms": [{"kind": "no_privacy"}]}
    given = {"scenario": heading, "cells": {"kind": "roads"}, "traffic": {"vehicles": 40}, **rest} | sections
    return cv.run(
        cv.Scenario(**{name: located(part, folder) if isinstance(part, dict) else part for name, part in given.items()})
    )


def test_tables_of_nodes_and_edges(tmp_path):
    plain, renamed = section_of("how/roads.md", "Tables of nodes and edges", tmp_path)
    roads = plain["roads"]
    del roads["crs"]  # only for x and y
    result = run(tmp_path, roads=roads)
    assert len(result.cells) == 3
    german = pd.read_csv(tmp_path / "edges.csv").set_axis(
        ["von", "nach", "laenge", "lanes", "speed_kph", "kapazitaet"], axis=1
    )
    german["laenge"] /= 1000
    german.to_csv(tmp_path / "edges.csv", index=False)
    again = run(tmp_path, roads=roads | {"columns": renamed["roads"]["columns"]})
    pd.testing.assert_frame_equal(again.estimates, result.estimates)


def test_lines(tmp_path):
    (given,) = section_of("how/roads.md", "Lines: Shapefile, GeoJSON, GeoPackage", tmp_path)
    result = run(tmp_path, roads=given["roads"])
    assert len(result.cells) == 5


def test_trips_between_points(tmp_path):
    (given,) = section_of("how/demand.md", "Trips between points", tmp_path)
    heading = {"name": "points", "duration_s": 300, **given["scenario"]}
    result = run(tmp_path, roads=GRID, traffic=given["traffic"], scenario=heading)
    notes = "\n".join(one["text"] for one in result.facts["statements"])
    assert result.facts["vehicles"] == 2
    assert "1 of 3 trips not driven: an end is more than 300 m from the nearest road" in notes


@pytest.mark.parametrize("heading", ["Zones as polygons", "Open Matrix files"])
def test_zones_and_matrices(tmp_path, heading):
    (given,) = section_of("how/demand.md", heading, tmp_path)
    traffic = given["traffic"]
    rows = [1, 2, 3]
    if "matrix" in traffic:
        with h5py.File(tmp_path / traffic["trips"], "w") as file:
            file.create_dataset(f"data/{traffic['matrix']}", data=np.full((3, 3), 5.0))
            file.create_dataset(f"lookup/{traffic['mapping']}", data=rows)
    else:
        times = {"tpep_pickup_datetime": pd.Timestamp("2026-03-02 00:01")}
        table = pd.DataFrame({"PULocationID": rows * 10, "DOLocationID": [2, 3, 1] * 10}).assign(**times)
        table.to_parquet(tmp_path / traffic["trips"])
    zones = [shapely.box(-0.001 + x, -0.001, -0.001 + x + 0.0025, 0.01) for x in (0.0, 0.0025, 0.005)]
    gpd.GeoDataFrame({"LocationID": rows}, geometry=zones, crs="EPSG:4326").to_file(tmp_path / "taxi_zones.shp")
    traffic["trip_zones"] = {"file": "taxi_zones.shp", "name": "LocationID"}
    assert run(tmp_path, roads=GRID, traffic=traffic).facts["vehicles"] == 30
