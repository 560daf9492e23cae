"""Runs of engine ``trace``: the shipped scenarios over real recordings, matched recordings, and faults."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run

SCENARIO = """
scenario = {name = "replay", duration_s = 300}
campaigns = [{start_s = 60, queries = 4, every_s = 50, round_gap_s = 10, deadline_s = 10}]
mechanisms = [{kind = "no_privacy"}]

[roads]
ROADS

[cells]
CELLS

[traffic]
engine = "trace"
trace = "cabs.csv"
gap_s = 60
TRAFFIC
"""
GRID = 'source = "grid"\nrows = 3\ncolumns = 3\nspacing_m = 200\nanchor = {lon = 11.3, lat = 44.5}'
SQUARES = 'kind = "square"\nsize_m = 150'
CABS = "".join(
    f"{cab},{time},{11.3 + 0.00002 * time:.6f},{44.5 + 0.0018 * cab:.6f}\n"
    for cab in (0, 1, 2)
    for time in range(0, 240, 10)
)


def _write(folder: Path, *, roads: str = GRID, cells: str = SQUARES, traffic: str = "", cabs: str = CABS) -> Path:
    (folder / "cabs.csv").write_text("cab,time,lon,lat\n" + cabs, encoding="utf-8")
    file = folder / "replay.toml"
    text = SCENARIO.replace("ROADS", roads).replace("CELLS", cells).replace("TRAFFIC", traffic)
    file.write_text(text, encoding="utf-8")
    return file


def _data(*inside: str) -> None:
    root = os.environ.get("CROWDVEIL_DATA")
    missing = [name for name in inside if not root or not (Path(root) / name).exists()]
    if missing:
        pytest.skip(f"CROWDVEIL_DATA holds no {missing[0]}")


def test_truth_equals_counts_from_the_file():
    """Bologna's truth at a moment of the file, counted by hand from its rows."""
    inside = "sumo_fcd/acosta_fcd_0_1800_10s.csv.gz"
    _data(inside)
    overrides = [
        "campaigns.occupancy.start_s=310",
        "campaigns.occupancy.every_s=100",
        "campaigns.occupancy.round_gap_s=0.001",
    ]
    scenario = scenarios.load("bologna-fcd", overrides=[*overrides, "campaigns.occupancy.deadline_s=0.001"])
    result = run(scenario)
    truth = result.estimates.query("mechanism == 'baseline'").groupby("time_s")["truth"].sum()
    rows = pd.read_csv(Path(os.environ["CROWDVEIL_DATA"]) / inside).groupby("time").size()
    assert len(truth) == 14
    for time_s, count in truth.items():
        assert count == rows[round(time_s)]


def test_matched_vehicles_are_on_road_cells(tmp_path):
    file = _write(tmp_path, cells='kind = "roads"', traffic='match = "nearest"\nmatch_m = 20')
    result = run(file)
    truth = result.estimates.groupby("query")["truth"].sum()
    assert truth.tolist() == [3, 3, 3, 3]
    notes = " ".join(result.facts["city"]["notes"])
    assert "72 of 72 fixes are matched to roads (nearest)" in notes


def test_notes_state_interpolation_and_omitted_fixes(tmp_path):
    result = run(_write(tmp_path, traffic='start = 50\norder = "ascending"'))
    notes = " ".join([*result.facts["city"]["notes"], *result.facts["traffic"]["notes"]])
    assert "second 0 is 50 s" in notes
    assert "15 fixes are before second 0 and left out" in notes
    assert "a vehicle moves evenly between fixes at most 60 s apart" in notes


def test_mean_speed_campaign_on_a_trace(tmp_path):
    file = _write(tmp_path)
    keys = 'queries = 4, statistic = "mean_speed", lower_mps = 0, upper_mps = 20, min_vehicles = 1'
    file.write_text(file.read_text().replace("queries = 4", keys) + '\n[release]\nkind = "none"\n')
    estimates = run(file).estimates
    assert len(estimates) > 0
    # 0.00002 degrees of longitude a second at latitude 44.5 are 1.59 m/s.
    np.testing.assert_allclose(estimates["truth"], 1.59, atol=0.01)


BROKEN = {
    "swapped": (
        {"cabs": "0,0,44.5,111.3\n"},
        "cabs.csv: line 2: lat (column 'lat') must be degrees from -90 to 90; are lon and lat",
    ),
    "elsewhere": ({"cabs": "0,0,44.5,11.3\n"}, "no fix is in the area of the roads"),
    "clock": (
        {"cabs": "0,5,11.3,44.5\n0,9,11.3,44.5\n0,7,11.3,44.5\n"},
        "cabs.csv: line 4: the clock of vehicle '0' must",
    ),
    "empty": ({"cabs": ""}, "cabs.csv: it holds no rows"),
    "no roads": ({"roads": 'source = "none"', "traffic": 'match = "hmm"'}, "match needs roads"),
    "column": (
        {"traffic": 'columns = {vehicle = "taxi"}'},
        "no column 'taxi' for vehicle; its columns are 'cab', 'time'",
    ),
    "format": ({"traffic": 'format = "gpx"'}, "cabs.csv: line 1: not well-formed XML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_faults_name_the_section(tmp_path, case):
    change, words = BROKEN[case]
    with pytest.raises(ScenarioError) as caught:
        run(_write(tmp_path, **change))
    assert {fault.path for fault in caught.value.faults} == {"traffic"}
    assert words in str(caught.value)


def test_recording_outside_the_run_gives_a_no_device_warning(tmp_path):
    path = _write(tmp_path, traffic="start = -5000")
    path.write_text(path.read_text(encoding="utf-8") + "\n[population]\noutside = 7\n", encoding="utf-8")
    run_warnings = run(path).facts["warnings"]
    assert [words for words in run_warnings if "no device" in words] == [
        "campaigns.campaign: no device was present at any of its 4 queries"
    ]
