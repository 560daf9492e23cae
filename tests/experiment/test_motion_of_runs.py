"""Which runs keep single vehicles, and what SUMO's are."""

import os

import numpy as np
import pandas as pd
import pytest

from simulator.api import load, run
from simulator.experiment.run import run_scenario

TRACE = """
scenario = {name = "replay", duration_s = 600}
roads = {source = "none"}
cells = {kind = "square", size_m = 500}
traffic = {engine = "trace", trace = "cab.csv"}
campaigns = [{start_s = 120}]
mechanisms = [{kind = "no_privacy"}]
"""


@pytest.fixture
def cab(tmp_path):
    """Return the path of a scenario that replays a cab, which drives east for ten minutes."""
    rows = [f"cab,{time},{11.3 + time * 4e-5},{44.5}" for time in range(0, 601, 20)]
    (tmp_path / "cab.csv").write_text("vehicle,time,lon,lat\n" + "\n".join(rows))
    (tmp_path / "replay.toml").write_text(TRACE)
    return tmp_path / "replay.toml"


def test_recorded_vehicles_are_kept_on_request_only(cab, tmp_path):
    assert run(cab, out=tmp_path / "plain").places is None
    assert "places.parquet" not in {path.name for path in (tmp_path / "plain").iterdir()}
    assert 'id="motion"' not in (tmp_path / "plain" / "report.html").read_text()
    run(cab, out=tmp_path / "shown", overrides={"report.vehicles": True})
    kept = load(tmp_path / "shown").places
    np.testing.assert_allclose(kept["lon"], 11.3 + kept["time_s"] * 4e-5, atol=1e-7)
    np.testing.assert_allclose(kept["lat"], 44.5, atol=1e-7)
    page = (tmp_path / "shown" / "report.html").read_text()
    assert "They may be real people’s places" in page


def test_simulated_vehicles_are_kept_and_those_of_studies_are_not():
    kept = run_scenario("tiny", overrides={"population.participation": 0.5})
    assert kept.entries["vehicle"].nunique() == 60
    shares = kept.entries.groupby("vehicle")["takes_part"]
    assert (shares.nunique() == 1).all()
    asked = kept.rounds.loc[kept.rounds["mechanism"] == "baseline", "asked"].max()
    assert 0 < asked <= shares.first().sum() < 60
    without = run_scenario("tiny", overrides={"population.participation": 0.5}, motion=False)
    assert without.entries is None
    pd.testing.assert_frame_equal(kept.estimates, without.estimates)


@pytest.mark.skipif("CROWDVEIL_DATA" not in os.environ, reason="needs the data set sumo")
@pytest.mark.slow
def test_places_of_sumo_are_those_that_it_writes(tmp_path):
    pytest.importorskip("sumo", reason="SUMO is an extra")
    short = {"scenario.duration_s": 400, "scenario.warmup_s": 0, "campaigns.occupancy.queries": 1}
    short |= {"campaigns.occupancy.start_s": 100, "fcd.every_s": 1, "fcd.formats": ["parquet"]}
    run("bologna-sumo", out=tmp_path / "run", overrides=short)
    kept, written = load(tmp_path / "run").places, pd.read_parquet(tmp_path / "run" / "fcd.parquet")
    both = kept.merge(written, on=["vehicle", "time_s"], suffixes=("", "_written"))
    assert len(both) == len(kept) > 1000
    assert (both[["lon", "lat"]].to_numpy() == both[["lon_written", "lat_written"]].to_numpy()).all()
