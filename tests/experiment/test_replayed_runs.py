"""Runs whose vehicles move as in an earlier run, by its log of entries."""

import numpy as np
import pandas as pd
import pytest
import simpy
from pandas.testing import assert_frame_equal

import scenarios
from simulator import run
from simulator.roads import build_grid
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.entries import EntryReplay
from simulator.traffic.lanes import LinkPhysics

JAMMED = {
    "scenario.duration_s": 400,
    "roads": {"source": "grid", "rows": 3, "columns": 3, "spacing_m": 120, "speed_mps": 9, "lanes": 2},
    "cells.size_m": 60,
    "report.link_interval_s": 100,
}
TRAFFIC = {
    "jammed": {"vehicles": 900, "waiting": "answer", "parked": "answer", "step_s": 0.7, "spacing_m": 9.0},
    "tours": {"vehicles": 150, "tours": {"stay_s": 60.0, "stops": 2}, "routing": "reactive", "reroute_every_s": 30.0},
}
OF_TRIPS = ["vehicle", "departure_s", "entry_s", "arrival_s", "trip_s", "state", "takes_part"]


@pytest.mark.parametrize("traffic", TRAFFIC.values(), ids=TRAFFIC)
def test_a_replayed_run_has_the_tables_of_the_run_whose_entries_it_replays(tmp_path, traffic):
    first = run("tiny", overrides=JAMMED | {"traffic": traffic}, out=tmp_path / "first")
    kept = {name: traffic[name] for name in ("waiting", "parked", "step_s", "spacing_m") if name in traffic}
    replayed = {"engine": "entries", "entries": str(tmp_path / "first" / "entries.parquet"), **kept}
    again = run("tiny", overrides=JAMMED | {"traffic": replayed})
    assert first.facts["traffic"]["engine"] == "fleet"
    assert again.facts["traffic"]["engine"] == "entries"
    for name in ("estimates", "rounds", "servers", "scores", "claims", "entries", "links", "roads", "cells"):
        assert_frame_equal(getattr(again, name), getattr(first, name), check_exact=True)
    # Where a trip that has not ended was going is not in the log.
    assert_frame_equal(again.trips[OF_TRIPS], first.trips[OF_TRIPS], check_exact=True)
    for name in ("departed", "waiting", "on_road", "arrived", "mean_trip_s"):
        assert again.facts["traffic"][name] == first.facts["traffic"][name]


def log(**columns):
    """Return a log of two vehicles on a grid of 2 × 2: 0 → 1, and 1 → 0 → 2."""
    table = {
        "vehicle": [0, 0, 0, 1, 1, 1, 1],
        "time_s": [0.0, 1.0, 21.0, 5.0, 5.5, 25.5, 45.5],
        "event": ["departure", "entry", "arrival", "departure", "entry", "entry", "arrival"],
        "link": [0, 0, 0, 2, 2, 1, 1],
        "lane": [-1, 0, -1, -1, 0, 0, -1],
    }
    return pd.DataFrame(table | columns)


def test_vehicles_are_where_the_log_has_them_and_it_is_read_as_time_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.traffic.entries._ROWS", 2)
    log().to_parquet(tmp_path / "entries.parquet")
    links = build_grid(rows=2, columns=2, speed_mps=5.0, spacing_x_m=100, spacing_y_m=100, lanes=1).links
    clock, env = Clock(1.0), simpy.Environment()
    physics = LinkPhysics.build(links, clock)
    engine = EntryReplay(tmp_path / "entries.parquet", links, physics, clock=clock, vehicles=3, record_entries=1)
    engine.start(env)
    assert engine.vehicles == 3
    assert engine.nbytes[0] < 300
    expected = {0: [0.0], 11: [0.5, 0.275], 23: [1.0, 0.875], 30: [1.0, 0.225], 50: [1.0, 1.0]}
    for moment, fractions in expected.items():
        env.run(until=after_traffic(env, moment))
        engine.advance()
        places = engine.places()
        np.testing.assert_allclose(places.fraction, fractions, atol=1e-12)
        assert engine.place_of(np.arange(len(places))).fraction.tolist() == places.fraction.tolist()
    assert places.link.tolist() == [0, 1]
    totals = engine.totals()
    assert (totals.departed, totals.arrived, totals.link_crossings, totals.trip_time_s) == (2, 2, 3, 61.5)
    assert engine.origin_of(np.array([1])).link.tolist() == [2]
    assert engine.log_by_vehicle()[:, 1].tolist() == [0, -1, 2, 1, -1]


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (log(link=[0, 0, 0, 2, 2, 99, 99]), "it is of other roads: routes must name links 0 to 47"),
        (log(link=[0, 0, 0, 2, 2, 3, 3]), "it is of other roads: route of vehicle 1: link 2 does not lead to link 3"),
        (log(vehicle=[0, 0, 0, 4, 4, 4, 4]), "must have the entries of every vehicle; a run with more than"),
        (log().drop(columns="lane"), "cannot be read as entries.parquet of a run"),
        (b"text", "cannot be read as entries.parquet of a run"),
        (None, "no such file"),
    ],
)
def test_a_file_that_cannot_be_replayed_is_named(tmp_path, call_in_process, faulty, message):
    file = tmp_path / "entries.parquet"
    if isinstance(faulty, pd.DataFrame):
        faulty.to_parquet(file)
    elif faulty is not None:
        file.write_bytes(faulty)
    overrides = ("--set", "traffic.engine=entries", "--set", f"traffic={{engine='entries', entries='{file}'}}")
    done = call_in_process("run", "tiny", *overrides[2:], "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_fewer_vehicles_than_in_the_log_are_refused(tmp_path):
    log().to_parquet(tmp_path / "entries.parquet")
    traffic = {"engine": "entries", "entries": str(tmp_path / "entries.parquet"), "vehicles": 1}
    with pytest.raises(scenarios.ScenarioError, match=r"traffic.vehicles: must be at least 2, as in .*, got 1"):
        run("tiny", overrides={"traffic": traffic})
