"""The traffic log of a run: what it holds for each engine, and that it changes nothing."""

import json
import math

import pytest
import simpy

from simulator import run
from simulator.experiment.traffic_log import TrafficLog, drive_alone
from simulator.files.messages import Note
from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Totals
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips

ENGINES = ("fleet", "agents")
SERIES = ("departed", "waiting", "on_road", "arrived", "absent", "mean_trip_s")


def fleet(clock):
    links = build_grid(rows=3, columns=3, spacing_x_m=100, spacing_y_m=100, speed_mps=10, lanes=1).links
    trips = Trips.from_unsorted([0, 8, 2], [8, 0, 6], [0, 5, 40])
    routes = ShortestPaths(links).routes(trips.origin, trips.destination)
    return Fleet(links, LinkPhysics.build(links, clock), trips, routes, clock=clock)


@pytest.mark.parametrize("engine", ["fleet", "agents"])
def test_traffic_is_logged_at_a_hundred_times(engine, tmp_path):
    result = run("tiny", overrides=[f"traffic.engine={engine}"])
    log = json.loads((result.save(tmp_path / "run") / "run.json").read_text(encoding="utf-8"))["traffic"]
    assert log["engine"] == engine
    assert "beside" not in log
    assert log["times_s"] == pytest.approx([3.0 * beat for beat in range(1, 101)])
    assert all(len(log[name]) == 100 for name in SERIES)
    for departed, *parts in zip(*(log[name] for name in SERIES[:-1]), strict=True):
        assert departed == sum(parts)
    assert log["departed"] == sorted(log["departed"])
    assert log["departed"][-1] == result.facts["vehicles"] == 60
    assert log["arrived_total"] == log["arrived"][-1] > 0
    assert log["mean_trip_s"][-1] == pytest.approx(100, rel=0.5)
    known = [arrived > 0 for arrived in log["arrived"]]
    assert [mean is not None for mean in log["mean_trip_s"]] == known


def test_engines_of_one_physics_give_one_log():
    logs = [run("tiny", overrides=[f"traffic.engine={engine}"]).facts["traffic"] for engine in ("fleet", "agents")]
    for name in SERIES:
        assert logs[0][name] == logs[1][name]


@pytest.mark.parametrize("bounds", ["[0, 0, 500, 500]", "[1, 1, 599, 599]"])
def test_vehicles_in_no_cell_are_counted_alike_by_both_engines(bounds):
    """The fleet engine locates only those on links that leave the cells, the other engine all."""
    size = ["traffic.vehicles=400", "roads.lanes=2", f"cells.bounds={bounds}"]
    notes = [run("tiny", overrides=[*size, f"traffic.engine={engine}"]).facts["traffic"]["notes"] for engine in ENGINES]
    fleet, agents = ([note for note in each if "in no cell" in note] for each in notes)
    assert fleet == agents != []


def test_log_agrees_with_totals_at_queries():
    facts = run("tiny").facts
    log = facts["traffic"]
    for query in facts["traffic_at_queries"]:
        if query["time_s"] in log["times_s"]:
            at = log["times_s"].index(query["time_s"])
            assert {name: log[name][at] for name in SERIES[:-1]} == {name: query[name] for name in SERIES[:-1]}
    assert any(query["time_s"] in log["times_s"] for query in facts["traffic_at_queries"])


def test_logging_does_not_change_the_run():
    clock = Clock(0.5)
    often, _ = drive_alone("fleet", fleet(clock), clock=clock, times_s=[0.5 * k for k in range(1, 119)])
    seldom, _ = drive_alone("fleet", fleet(clock), clock=clock, times_s=[20.0, 59.0])
    for name in SERIES:
        assert [getattr(often, name)[39], getattr(often, name)[117]] == getattr(seldom, name)
    assert seldom.arrived_total == 2, "the third departs at tick 40 of half a second and needs 80 more"


def test_log_between_ticks_gives_the_earlier_state():
    clock = Clock(1.0)
    engine, env, log = fleet(clock), simpy.Environment(), TrafficLog("fleet")
    engine.start(env)
    env.run(until=5.0)
    engine.advance()
    log.take(5.0, engine)
    alone, _ = drive_alone("fleet", fleet(clock), clock=clock, times_s=[4.9, 5.0, 5.7])
    assert alone.departed == [1, 2, 2]
    assert log.record([]).departed == [2]


def test_mean_trip_time_without_trips_is_null():
    seen = [Totals(5, 0, 5, 0, 0, 0), Totals(5, 0, 2, 3, 1, 0), Totals(5, 0, 1, 4, 2, trip_time_s=50.0)]
    record = TrafficLog("trace", [1.0, 2.0, 3.0], seen).record([Note("own", "a note")])
    facts = record.model_dump(exclude_unset=True)
    assert facts["mean_trip_s"] == [None, None, 12.5]
    assert (facts["arrived_total"], facts["stuck_released"], facts["notes"]) == (4, 2, ["a note"])
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert math.isnan(seen[0].mean_trip_s)
