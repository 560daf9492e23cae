"""The real data sets, if available: row numbers as in the manifest, and each known defect by its rule."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulator.datasets import load
from simulator.datasets.check import check_file
from simulator.datasets.manifest import folder_of, read_manifest
from simulator.datasets.table_loaders import AGES, TUMOR_SIZES

ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
TABLES = [
    (known.folder, file.name)
    for known in read_manifest()
    for file in known.files
    if file.loader and known.folder != "samples"
]
LESS = {
    "gowalla_nyc/gowalla_events.csv.gz": 6,
    "pems_typical_weekday/pems_hour_d03_2019.csv.gz": 24,
    "pems_typical_weekday/pems_hour_d04_2019.csv.gz": 86,
    "pems_typical_weekday/pems_hour_d05_2019.csv.gz": 23,
    "pems_typical_weekday/pems_period_d04_2019.csv.gz": 9,
    "pems_sensors/PEMS08_distance.csv": 18,
    "beijing_tdrive_sample/Beijing_taxi.csv.gz": 6,
}
"""Rows that a rule leaves out."""
ANOTHER_UNIT = {"osm_roads", "sumo_links", "timed_paths", "tntp_trips"}
"""Loaders whose rows are not the manifest's: links, points, pairs."""


def need(folder, name):
    if not (ROOT / folder / name).is_file():
        pytest.skip(f"there is no {folder}/{name} under CROWDVEIL_DATA: real data is not part of the project")


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "name"), TABLES, ids=[f"{folder}/{name}" for folder, name in TABLES])
def test_row_numbers_equal_those_of_the_manifest(folder, name):
    need(folder, name)
    file = read_manifest().data_set(folder).file(name)
    frame = load(folder, file=name)
    assert not any("not the manifest's file" in note for note in frame.attrs["notes"])
    if file.loader not in ANOTHER_UNIT:
        assert len(frame) == file.rows - LESS.get(f"{folder}/{name}", 0)
    assert len(frame) > 0
    if {"lon", "lat"} <= set(frame.columns):
        assert frame["lon"].dropna().between(-180, 180).all()


@pytest.mark.slow
def test_gowalla():
    need("gowalla_nyc", "gowalla_events.csv.gz")
    frame = load("gowalla_nyc")
    assert frame.attrs["notes"] == [
        "6 rows equal to an earlier one, left out",
        "127 places with more than one coordinate take the most frequent one: replaced in 390 rows",
    ]
    assert (frame.groupby("place")[["lon", "lat"]].nunique() == 1).all(axis=None)
    assert not frame.duplicated().any()
    assert frame["lon"].between(-74.2589, -73.7003).all()
    assert frame["lat"].between(40.4774, 40.9177).all()
    busiest = frame["place"].value_counts().head(2)
    assert busiest.index.tolist() == [12505, 23261]
    assert (abs(busiest.to_numpy() - [1680, 1654]) <= 6).all()
    assert str(frame["time"].dt.tz) == "UTC"


@pytest.mark.slow
@pytest.mark.parametrize(("district", "nowhere"), [("03", 118), ("04", 0), ("05", 0)])
def test_pems(district, nowhere):
    name = f"pems_hour_d{district}_2019.csv.gz"
    need("pems_typical_weekday", name)
    frame = load("pems_typical_weekday", file=name)
    assert not frame.duplicated(["station", "hour"]).any()
    # All 23 rows without coordinates of district 5 are the ones observed on fewer days of the two.
    assert frame["lon"].isna().sum() == nowhere
    if district == "04":
        days = frame[frame["type"] == "ML"].groupby("station")["vehicles"].sum()
        assert days[[401595, 400052]].tolist() == [50_019, 49_881.5]
        assert frame[frame["station"] == 400331]["lanes"].unique().tolist() == [5]


def test_five_minute_counts_cover_weekdays():
    need("pems_5min_one_station", "train.csv")
    frame = load("pems_5min_one_station")
    assert frame["time"].dt.date.nunique() == 27
    assert set(frame["time"].dt.month) == {1, 2}
    assert set(frame["time"].dt.day_of_week) <= set(range(5))


def test_trips_of_new_york():
    need("nyc_trips", "tripstest.json.gz")
    frame = load("nyc_trips")
    assert frame["vehicle"].nunique() == 994
    assert not {"trip 4", "trip 388"} & set(frame["vehicle"])
    assert "trip 388, trip 4" in frame.attrs["notes"][-1]
    assert frame["time_s"].between(6, 2487).all()


def test_breast_cancer():
    need("uci_breast_cancer", "breast-cancer.data")
    need("uci_breast_cancer", "breast-cancer.arff")
    frame = load("uci_breast_cancer")

    def counts(rows, column):
        return rows[column].value_counts(sort=False).tolist()

    recurred = frame[frame["recurrence"]]
    assert len(recurred) == 85
    assert counts(recurred, "tumor_size") == [1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3]
    assert counts(recurred, "age") == [0, 15, 27, 25, 17, 1]
    assert counts(frame, "tumor_size") == [8, 4, 28, 30, 50, 54, 60, 19, 22, 3, 8]
    assert counts(frame, "age") == [1, 36, 90, 96, 57, 6]
    assert (frame["tumor_size"].cat.categories.tolist(), frame["age"].cat.categories.tolist()) == (
        list(TUMOR_SIZES),
        list(AGES),
    )
    other = load("uci_breast_cancer", file="breast-cancer.arff")
    columns = list(frame.columns)
    both = [table.astype(str).sort_values(columns).reset_index(drop=True) for table in (frame, other)]
    assert both[0].equals(both[1])


def test_cab_traces_are_concatenated():
    need("sf_cabspotting", "new_ugthfu.txt.gz")
    frame = load("sf_cabspotting")
    assert frame["vehicle"].value_counts().to_dict() == {"abboip": 23_495, "aiwalb": 21_241, "ugthfu": 18_317}
    assert (frame.groupby("vehicle", sort=False)["time"].diff().dropna() > pd.Timedelta(0)).all()


def test_manhattan_speeds_are_the_posted_limits():
    need("osm_drive_graphs", "manhattan_edges.csv.gz")
    frame = load("osm_drive_graphs")
    assert frame["speed_mps"].value_counts().index[0] == pytest.approx(25 * 0.44704)
    assert np.allclose(frame["capacity_vph"], 1800)
    nodes = load("osm_drive_graphs", file="manhattan_nodes.csv.gz")
    assert set(frame["from_node"]) | set(frame["to_node"]) <= set(nodes["node"])


def test_totals_of_the_tntp_test_problems():
    need("tntp", "SiouxFalls/SiouxFalls_trips.tntp")
    for name, total in (("SiouxFalls/SiouxFalls", 360_600), ("Anaheim/Anaheim", 104_694.4)):
        assert load("tntp", file=f"{name}_trips.tntp")["trips"].sum() == pytest.approx(total, abs=0.01)
        links, flow = load("tntp", file=f"{name}_net.tntp"), load("tntp", file=f"{name}_flow.tntp")
        pairs = [set(zip(table["from_node"], table["to_node"], strict=True)) for table in (links, flow)]
        assert pairs[0] == pairs[1]
    text, points = (
        load("tntp", file="SiouxFalls/SiouxFalls_node.tntp"),
        load("tntp", file="SiouxFalls/SiouxFallsCoordinates.geojson"),
    )
    assert np.allclose(text, points, atol=1e-5)


def test_file_that_differs_from_the_manifest_is_read_with_a_note(tmp_path, monkeypatch):
    need("pems_sensors", "PEMS04_distance.csv")
    whole = (ROOT / "pems_sensors" / "PEMS04_distance.csv").read_text()
    (tmp_path / "pems_sensors").mkdir()
    (tmp_path / "pems_sensors" / "PEMS04_distance.csv").write_text(whole + "1,2,3.5\n")
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    frame = load("pems_sensors", file="PEMS04_distance.csv")
    assert len(frame) == 341
    assert "not the manifest's file" in frame.attrs["notes"][0]


@pytest.mark.slow
def test_floating_car_data_are_reproduced_by_the_documented_commands(tmp_path):
    need("sumo_fcd", "acosta_fcd_0_1800_10s.csv.gz")
    need("sumo", "acosta/acosta.rou.xml.gz")
    sumo = pytest.importorskip("sumo", reason="making floating cars needs eclipse-sumo")
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    shell = page.split("```sh\nsumo ", 1)[1].split("\n```", 1)[0].replace("\\\n", " ").split()
    program = page.split("```python\n# fcd.xml to CSV\n", 1)[1].split("\n```", 1)[0]
    acosta = folder_of("sumo") / "acosta"
    command = [str(Path(sumo.SUMO_HOME) / "bin" / "sumo"), *shell]
    command[command.index("fcd.xml")] = str(tmp_path / "fcd.xml")
    done = subprocess.run([*command, "--no-warnings"], cwd=acosta, capture_output=True, text=True, check=False)
    if "1.28.0" not in subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("another version of SUMO drives otherwise")
    assert done.returncode == 0, done.stderr
    made = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    known = read_manifest().data_set("sumo_fcd")
    assert check_file(known, known.files[0], tmp_path).state == "ok"
