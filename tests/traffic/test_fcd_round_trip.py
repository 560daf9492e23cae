"""Floating-car data of a run: other tools read it, and a replay gives the run's truth again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import scenarios
from simulator import run
from simulator.formats.recordings import read_trace

EVERY_S = 10

DRIVEN = """
scenario = {name = "driven", duration_s = 400}
roads = {source = "grid", rows = 5, columns = 5, spacing_m = 200, anchor = {lon = 11.3, lat = 44.5}}
campaigns = [
    {name = "at-once", start_s = 60, queries = 5, every_s = 60, round_gap_s = 0.001, deadline_s = 0.001},
    {name = "later", start_s = 60, queries = 5, every_s = 60, round_gap_s = 20, deadline_s = 10},
]
mechanisms = [{kind = "no_privacy"}, {kind = "sampling_privacy", sampling = 0.45}]

[cells]
kind = "square"
size_m = 130
bounds = [-75, -75, 900, 900]  # no crossing is on the side of a cell, where the last written digit would tell

[traffic]
TRAFFIC
"""
FLEET = "vehicles = 150"
FCD = '\n[fcd]\nevery_s = 10\nformats = ["sumo", "parquet"]\n'
REPLAY = 'engine = "trace"\ntrace = "{file}"\ngap_s = 10\nstart = {start}'


def _load(folder: Path, traffic: str, after: str = "") -> scenarios.Scenario:
    file = folder / "driven.toml"
    file.write_text(DRIVEN.replace("TRAFFIC", traffic) + after, encoding="utf-8")
    return scenarios.load(file)


@pytest.fixture(scope="module", params=["silent", "answer"])
def parked(request: pytest.FixtureRequest) -> str:
    return f'parked = "{request.param}"'


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory, parked: str):
    """A run of the fleet, its directory and its result."""
    folder = tmp_path_factory.mktemp("driven")
    result = run(_load(folder, f"{FLEET}\n{parked}", FCD))
    return result, result.save(folder / "run")


def _truth(result, campaign: str) -> pd.DataFrame:
    frame = result.estimates
    mine = frame[(frame["mechanism"] == "no_privacy") & (frame["campaign"] == campaign)]
    return mine[["query", "time_s", "cell", "truth"]].reset_index(drop=True)


@pytest.mark.parametrize("file", ["fcd.xml.gz", "fcd.parquet"])
def test_replayed_fcd_gives_the_same_positions_and_truth(driven, parked, file, tmp_path):
    result, directory = driven
    seen = result.fcd.frame()
    frame = read_trace(directory / file).frame().assign(vehicle=lambda f: f["vehicle"].astype(int))
    both = seen.merge(frame, on=["vehicle", "time_s"], suffixes=("", "_read"), validate="one_to_one")
    assert len(both) == len(seen) == len(frame)
    assert np.abs(both["lon"] - both["lon_read"]).max() <= 0.5e-8 + 1e-12
    assert np.abs(both["lat"] - both["lat_read"]).max() <= 0.5e-8 + 1e-12
    assert np.abs(both["speed_mps"] - both["speed_mps_read"]).max() <= 0.0051
    again = run(_load(tmp_path, REPLAY.format(file=directory / file, start=0) + f"\n{parked}"))
    # If parked vehicles are silent, the end of a trip between two recorded times is not written, so a vehicle that
    # arrives between two rounds answers from its last recorded position.
    for campaign in ["at-once", "later"] if "answer" in parked else ["at-once"]:
        truth = _truth(result, campaign)
        pd.testing.assert_frame_equal(_truth(again, campaign), truth)
        assert truth["truth"].sum() > 80


def test_equal_runs_write_equal_bytes(driven, parked, tmp_path):
    _, directory = driven
    again = run(_load(tmp_path, f"{FLEET}\n{parked}", FCD)).save(tmp_path / "run")
    for file in ("fcd.xml.gz", "fcd.parquet"):
        assert (again / file).read_bytes() == (directory / file).read_bytes()


def test_writing_changes_no_estimate(driven, parked, tmp_path):
    result, _ = driven
    without = run(_load(tmp_path, f"{FLEET}\n{parked}"))
    pd.testing.assert_frame_equal(without.estimates, result.estimates)
    assert without.fcd is None
    assert not list(without.save(tmp_path / "run").glob("fcd*"))


def test_vehicles_in_fcd_equal_those_a_query_would_ask(driven, parked):
    result, directory = driven
    seen = result.fcd.frame().groupby("time_s").size()
    for query in result.facts["traffic_at_queries"]:
        asked = query["waiting"] + query["on_road"] + (query["arrived"] if "answer" in parked else 0)
        assert seen[query["time_s"]] == asked
    facts = json.loads((directory / "run.json").read_text())
    assert facts["wall_s"]["fcd"] > 0
    assert result.fcd.moments_s.tolist() == list(range(0, 401, EVERY_S))


@pytest.mark.parametrize("waiting", ["silent", "answer"])
def test_fcd_has_waiting_vehicles_only_if_they_answer(waiting, tmp_path):
    crowd = f'vehicles = 3000\nwaiting = "{waiting}"\ndepartures = [{{from_s = 0, to_s = 60, share = 1.0}}]'
    result = run(_load(tmp_path, crowd, FCD))
    rows = result.fcd.frame().groupby("time_s")
    for query in result.facts["traffic_at_queries"]:
        assert query["waiting"] > 50
        there = rows.get_group(query["time_s"])
        assert len(there) == query["on_road"] + (query["waiting"] if waiting == "answer" else 0)
        assert ((there["along_m"] == 0) & (there["speed_mps"] == 0)).sum() == len(there) - query["on_road"]


def test_sumolib_reads_the_fcd(driven, tmp_path):
    result, directory = driven
    home = pytest.importorskip("sumo").SUMO_HOME
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sumolib warns of missing programs
        os.environ.setdefault("SUMO_HOME", home)
        sumolib = pytest.importorskip("sumolib")
        steps = list(sumolib.xml.parse(str(directory / "fcd.xml.gz"), "timestep"))
    frame = result.fcd.frame()
    assert [float(step.time) for step in steps] == result.fcd.moments_s.tolist()
    vehicles = [(float(step.time), int(v.id), float(v.x), float(v.y)) for step in steps for v in step.vehicle or []]
    assert len(vehicles) == len(frame)
    np.testing.assert_allclose(
        np.array(vehicles), frame[["time_s", "vehicle", "lon", "lat"]].to_numpy(), atol=1e-8, rtol=0
    )
    tool = Path(home) / "tools" / "traceExporter.py"
    if not tool.is_file():
        pytest.skip("this SUMO has no traceExporter.py")
    command = [sys.executable, tool, "--fcd-input", directory / "fcd.xml.gz", "--gpx-output", tmp_path / "fcd.gpx"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "SUMO_HOME": home})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "fcd.gpx").read_text().count("<trkpt") == len(frame)


def test_fcd_angles_speeds_and_link_positions(driven):
    frame = driven[0].fcd.frame()
    # Streets of the grid run along its axes, which near its origin coincide with north and east.
    off = np.abs((frame["angle"] + 45) % 90 - 45)
    assert off.max() < 0.1
    assert frame["speed_mps"].between(0, 14).all()
    assert frame["link"].notna().all()
    assert frame["along_m"].between(0, 200).all()
    moving = frame[frame["speed_mps"] > 5].sort_values(["vehicle", "time_s"])
    east = moving[(moving["angle"] - 90).abs() < 1]
    ahead = east.groupby(["vehicle", "link"])["lon"].diff().dropna()
    assert len(ahead) > 20
    assert (ahead > 0).all()


def test_vehicle_with_a_gap_is_absent_in_between(tmp_path):
    rows = [f"a,{t},11.30{t % 7},44.50{t % 5}" for t in (0, 10, 20, 200, 210, 220)]
    (tmp_path / "a.csv").write_text("vehicle,time,lon,lat\n" + "\n".join(rows) + "\n")
    result = run(_load(tmp_path, REPLAY.format(file="a.csv", start=0), FCD))
    directory = result.save(tmp_path / "run")
    frame = read_trace(directory / "fcd.xml.gz").frame()
    assert frame["time_s"].tolist() == [0, 10, 20, 200, 210, 220]
    assert result.fcd.frame()["link"].isna().all()


def test_fcd_times_between_from_s_and_to_s(tmp_path):
    section = "\n[fcd]\nevery_s = 7.5\nfrom_s = 30\nto_s = 60\n"
    result = run(_load(tmp_path, FLEET, section))
    assert result.fcd.moments_s.tolist() == [30, 37.5, 45, 52.5, 60]
    assert {path.name for path in result.save(tmp_path / "run").glob("*fcd*")} == {"fcd.xml.gz"}
