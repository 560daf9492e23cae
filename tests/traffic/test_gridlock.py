"""A city that has jammed says so, with the numbers that show it; one that flows says nothing."""

import re

import pytest
from test_engines_agree import drive_both

from simulator.files.counted import doubts_of
from simulator.roads import build_grid
from simulator.traffic.places import Totals

END = 700
CITIES = {
    "blocks": {"rows": 6, "columns": 6, "spacing_x_m": 40, "spacing_y_m": 30, "speed_mps": 8, "lanes": 1}
    | {"one_way": True, "capacity_vph": 900},
    "avenues": {"rows": 8, "columns": 8, "spacing_x_m": 90, "spacing_y_m": 70, "speed_mps": 10, "lanes": 1}
    | {"one_way": True, "capacity_vph": 900},
}


def driven(city, vehicles, *, stuck_s=30.0, seed=3):
    """Return both engines, `END` seconds after vehicles began to depart."""
    roads = build_grid(**CITIES[city])
    engines = drive_both(roads, vehicles=vehicles, duration_s=500.0, step_s=1.0, stuck_s=stuck_s, seed=seed)
    for engine, env in engines:
        env.run(until=END + 0.5)
        engine.advance()
    return [engine for engine, _ in engines]


def due(engine):
    """Count by hand those who would be there by now at half of free-flow speed."""
    ticks = engine._physics.free_ticks
    trips = (sum(int(ticks[link]) for link in engine.routes.of(v)) for v in range(engine.vehicles))
    return sum(int(at) + 2 * trip <= END for at, trip in zip(engine.trips.departure_tick, trips, strict=True))


@pytest.mark.parametrize(("city", "vehicles", "stuck_s"), [("blocks", 2000, 30.0), ("avenues", 2700, 1e6)])
def test_gridlock_is_said_by_both_engines_with_the_numbers_that_show_it(city, vehicles, stuck_s):
    fleet, agents = driven(city, vehicles, stuck_s=stuck_s)
    (said,) = doubts_of(fleet.notes())
    assert [said] == doubts_of(agents.notes())
    totals = fleet.totals()
    assert (totals.stuck_released > 0) == (stuck_s < END), "a patience beyond the run hides no jam"
    assert totals.arrived < 0.75 * due(fleet)
    numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?= vehicles| planned| arrived)", said)]
    assert numbers == [totals.departed, vehicles, totals.arrived]
    assert f"(at half of free-flow speed {due(fleet):,} would have)" in said
    assert f"{totals.stuck_released:,} times, {totals.stuck_released / totals.link_crossings:.1%} of link" in said
    assert f"{totals.waiting:,} ({totals.waiting / totals.departed:.0%}) still wait to enter" in said


@pytest.mark.parametrize("city", CITIES)
@pytest.mark.parametrize("vehicles", [5, 300])
def test_traffic_that_flows_says_nothing(city, vehicles):
    for engine in driven(city, vehicles):
        assert doubts_of(engine.notes()) == []


def test_a_run_that_ends_before_the_trips_do_is_no_gridlock():
    (fleet, env), (agents, _) = drive_both(
        build_grid(rows=4, columns=4, spacing_x_m=800, spacing_y_m=800, speed_mps=8, lanes=1),
        vehicles=200, duration_s=60.0, step_s=1.0, stuck_s=30.0, seed=1,
    )  # fmt: skip
    env.run(until=120.5)
    fleet.advance()
    assert fleet.totals().arrived < 200
    assert doubts_of(fleet.notes()) == doubts_of(agents.notes()) == []


def totals(**changed):
    return Totals(**{"departed": 1000, "waiting": 0, "on_road": 0, "arrived": 1000, "stuck_released": 0,
                     "link_crossings": 20_000, **changed})  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "due", "jammed"),
    [
        ({}, 1000, False),
        ({"stuck_released": 200}, 1000, False),
        ({"stuck_released": 201}, 1000, True),
        ({"arrived": 600, "on_road": 400}, 800, False),
        ({"arrived": 599, "on_road": 401}, 800, True),
        ({"arrived": 0, "on_road": 1000}, 0, False),
        # SUMO counts no crossings, and says of nobody when it was due.
        ({"link_crossings": 0, "stuck_released": 100}, None, False),
        ({"link_crossings": 0, "stuck_released": 101}, None, True),
        ({"link_crossings": 0, "arrived": 600, "waiting": 334, "on_road": 66}, None, True),
        ({"link_crossings": 0, "arrived": 600, "waiting": 333, "on_road": 67}, None, False),
        ({"departed": 19, "arrived": 0, "waiting": 19, "stuck_released": 500}, 19, False),
        ({"departed": 0, "arrived": 0, "link_crossings": 0}, None, False),
    ],
)
def test_the_rule(changed, due, jammed):
    assert bool(totals(**changed).gridlock(planned=1200, due=due)) == jammed
