"""Measured counts beside those of a run and of its mechanisms: files, figures by hand, the report, real detectors."""

import os
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely import Point

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.pages.exports.geopackage import write_geopackage
from simulator.pages.report import build_report
from simulator.results.run import RunResult

SCENARIO = """
scenario = {name = "counted", duration_s = 1200, start = "2026-03-02T07:00+01:00"}
roads = {source = "grid", rows = 4, columns = 4, spacing_m = 200, speed_mps = 10, anchor = { lon = 8.0, lat = 50.0 }}
cells = {kind = "roads"}
traffic = {vehicles = 4000}
mechanisms = [{name = "baseline", kind = "no_privacy"}]
detectors = [
    {name = "in", link = 5, fraction = 0, every_s = 600},
    {name = "out", link = 5, fraction = 1, every_s = 600},
]
counts = {file = "counts.csv"}
[[campaigns]]
name = "occupancy"
start_s = 5
queries = 59
every_s = 20
round_gap_s = 3
[[campaigns]]
name = "speeds"
statistic = "mean_speed"
start_s = 5
queries = 59
every_s = 20
round_gap_s = 3
min_vehicles = 1
"""
BY_NAME = "detector,from,to,count,speed_kph\nin,07:00,07:10,100,30\nout,07:10,07:20,90,\n"


def counted(folder, table, *, overrides=()):
    (folder / "counts.csv").write_text(table, encoding="utf-8")
    (folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    return run(folder / "scenario.toml", overrides=overrides)


@pytest.fixture(scope="module")
def by_name(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    return RunResult.load(counted(folder, BY_NAME).save(folder / "run"))


def test_figures_are_those_by_hand(by_name):
    detectors, counts = (
        table.set_index(name) for table, name in ((by_name.detectors, "detector"), (by_name.counts, "place"))
    )
    simulated = counts[counts["source"] == "simulated"]
    model = np.array([detectors["count"]["in"].iloc[0], detectors["count"]["out"].iloc[1]])
    np.testing.assert_array_equal(simulated["count"], model)
    measured = np.array([100, 90])
    error, flows = 6.0 * (model - measured), 6.0 * (model + measured)
    np.testing.assert_allclose(simulated["geh"], np.sqrt(2 * error**2 / flows))
    fit = by_name.count_fit.iloc[0]
    assert (fit["source"], fit["against"], fit["flows"], fit["speeds"]) == ("simulated", "measured", 2, 1)
    assert fit["flow_rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert fit["flow_bias"] == pytest.approx(error.mean())
    assert fit["flow_rmse_percent"] == pytest.approx(100 * fit["flow_rmse"] / 570)
    assert abs(fit["flow_correlation"]) == pytest.approx(1)
    assert fit["speed_bias"] == pytest.approx(simulated["speed_mps"].iloc[0] - 30 / 3.6)


def test_flow_of_exact_reports_is_that_of_the_detectors_by_the_fundamental_relation(by_name, tmp_path):
    # Every link in both halves of the run: density times speed at 29 or 30 moments, beside the vehicles that passed.
    # With some 4 vehicles on a link, as if independent from one moment to the next, a density is off by 9 %.
    links = by_name.roads["link"]
    table = "link,from_s,to_s,count\n" + "".join(f"{n},0,600,1\n{n},600,1200,1\n" for n in links)
    fit = counted(tmp_path, table).count_fit.set_index(["source", "against"]).loc["baseline", "simulated"]
    assert fit["flows"] > 90
    assert abs(fit["flow_bias"] / fit["flow_rmse"] * fit["flow_rmse_percent"]) < 3
    assert fit["flow_rmse_percent"] < 1.5 * 9
    assert fit["speed_rmse_percent"] < 5


@pytest.mark.parametrize(
    "table",
    [
        "station;lat;lon;dir;time;end;volume\nA;50,0;8,00279;E;2026-03-02 07:00;2026-03-02 07:10;12,5\n",
        "station,lat,lon,heading,time,end,volume\nA,50.0,8.00279,90,2026-03-02T06:00Z,2026-03-02T06:10Z,12.5\n",
        "place;link;pos;from;to;vph\nA;3;0,0;0;600;75,0\n",
        "station,lat,lon,direction,begin,end,count\nA,50.0,8.00279,Eastbound,7:00,7:10,12.5\nB,51,8,N,7:00,7:10,3\n",
    ],
)
def test_usual_tables_are_read(tmp_path, table):
    result = counted(tmp_path, table)
    (row,) = result.counts[result.counts["source"] == "simulated"].to_dict("records")
    assert (row["place"], row["link"], row["from_s"], row["to_s"], row["measured_count"]) == ("A", 3, 0.0, 600.0, 12.5)
    assert row["position_m"] == pytest.approx(0.0, abs=1.0)


def test_an_hour_a_scale_and_rows_that_are_left_out(tmp_path):
    table = "detector,hour,count\nin,6,1\nin,7,1200\nin,7,1300\nin,8,3\nout,7,\nelsewhere,7,5\n"
    result = counted(tmp_path, table, overrides=["scenario.duration_s=3600", "counts.scale=2"])
    simulated = result.counts[result.counts["source"] == "simulated"]
    assert simulated["measured_count"].tolist() == [1200]
    assert simulated["count"].iloc[0] == 2 * result.detectors.set_index("detector")["count"]["in"].sum()
    notes = [note.text.partition(": left out ")[2] for note in result.record.noticed if "left out" in note.text]
    assert [note[:30] for note in notes] == [
        "1 row not at a detector of thi",
        "1 row without a value",
        "2 rows whose interval is not w",
        "1 row of the place and interva",
    ]


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (
            "detector,from,to,flow\nin,07:00,07:10,3\n",
            "it has no known column of values: name a count, flow_vph or a speed",
        ),
        ("detector,from,count\nin,07:00,3\n", "give counts.interval_s"),
        ("detector,from,to,count\nin,08:00,08:10,3\n", "no row is left to compare"),
        ("detector,from,to,count\nin,600,500,-3\n", r"row 1: to_s \(column 'to'\) must be after from_s, got '500'"),
        ("detector,from,to,count\nin,600,700,-3\n", r"row 1: count .* must be a finite number, 0 or more, got '-3'"),
        ("link,from,to,count\n3,0,60,3\n99,0,60,3\n", "row 2: link .* must be the identifier of one link .* got '99'"),
        ("from,to,count\n0,60,3\n", "its places need columns link, lon and lat, or x and y"),
        ("lon,lat,from,to,count\n9,50,0,60,3\n", "no place is within 50 m of a link"),
    ],
)
def test_faults_of_tables_name_file_row_rule_and_value(tmp_path, table, fault):
    with pytest.raises(ScenarioError, match=rf"counts\.csv: {fault}"):
        counted(tmp_path, table)


def test_faults_of_detectors():
    given = scenarios.load("tiny").tables()
    wrong = [{"name": "a"}, {"name": "b", "link": 3, "lon": 1.0}, {"name": "c", "link": 1, "heading_deg": 5.0}]
    with pytest.raises(ScenarioError, match="must give a file, link, lon and lat, or x and y") as caught:
        scenarios.Scenario.model_validate({**given, "detectors": wrong})
    assert [fault.path for fault in caught.value.faults] == ["detectors.a", "detectors.b", "detectors.c.heading_deg"]
    far = [{"name": "far", "x": 1e6, "y": 0.0}, {"name": "long", "link": 1, "position_m": 1e6}]
    with pytest.raises(ScenarioError, match=r"detectors\.far: no place is within 50 m") as caught:
        run(scenarios.Scenario.model_validate({**given, "detectors": far}))
    assert "detectors.long: row 1: position_m must be at most the length of its link" in str(caught.value)


def test_without_speeds_or_links_as_cells_nothing_is_estimated(tmp_path):
    result = counted(tmp_path, BY_NAME, overrides=['cells={kind="square", size_m=200}'])
    assert set(result.counts["source"]) == {"simulated"}
    assert any(note.code == "not_compared" for note in result.record.noticed)


def test_report_and_summary_show_the_comparison(by_name):
    page, summary = build_report(by_name), " ".join(by_name.summary().split())
    assert "Measured counts" in page
    assert "Places by the mean GEH of their intervals" in page
    assert "Counts, simulated against measured: GEH below 5 for 0 % of 2 flows" in summary
    assert "Counts, Exact reports (occupancy, speeds) against simulated:" in summary


def test_a_geopackage_has_the_counts_where_they_were_measured(by_name, tmp_path):
    write_geopackage(by_name, tmp_path / "run.gpkg", overwrite=False)
    for layer, table in (("counts", by_name.counts), ("detectors", by_name.detectors)):
        rows = gpd.read_file(tmp_path / "run.gpkg", layer=layer)
        assert np.array_equal(rows["count"], table["count"])
        ends = by_name.roads.set_index("link").geometry[5].coords
        for place, point in zip(table["position_m"], rows.geometry, strict=True):
            assert point.distance(Point(ends[0 if place == 0 else -1])) < 1e-9
    assert rows["until"].iloc[0] == pd.Timestamp("2026-03-02T07:10+01:00"), "of the first interval"


def test_a_check_states_how_much_is_compared(tmp_path, call_in_process):
    (tmp_path / "counts.csv").write_text(BY_NAME + "elsewhere,07:00,07:10,5,\n", encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    done = call_in_process("scenarios", "check", "scenario.toml", cwd=tmp_path)
    assert "2 detectors on links, 2 measured values at 2 places on links to compare with" in done.stdout
    assert "left out 1 row not at a detector of this name" in done.stderr


def test_freeway_detectors_of_san_francisco():
    example = Path(__file__).parents[2] / "docs" / "how" / "san-francisco-pems.toml"
    data = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
    if not all((data / folder).is_dir() for folder in ("osm_drive_graphs", "pems_typical_weekday")):
        pytest.skip("CROWDVEIL_DATA names no folder with osm_drive_graphs and pems_typical_weekday")
    result = run(example, overrides=["traffic.vehicles=5000", "campaigns.speeds.min_vehicles=2"])
    simulated = result.counts[result.counts["source"] == "simulated"].set_index("place")
    assert len(simulated) == 26
    assert simulated["measured_count"]["400043"] == 4948  # of the file, station 400043, hour 8
    assert (simulated["from_s"].eq(1800) & simulated["to_s"].eq(5400)).all()
    fit = result.count_fit.set_index(["source", "against"])
    assert fit["flow_correlation"]["baseline", "simulated"] > 0.9
