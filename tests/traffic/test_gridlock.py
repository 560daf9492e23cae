"""A jammed city gives a warning with the numbers that show it; a flowing one gives none."""

import pytest
from roads_by_hand import ENGINES, chain, drive, movement, window
from test_engines_agree import drive_both

from simulator.experiment.traffic_log import drive_alone
from simulator.files.messages import texts_of, warnings_among
from simulator.roads import build_grid
from simulator.roads.movements import movement_table, signal_table
from simulator.traffic.clock import Clock
from simulator.traffic.engine import Totals
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import ONE_TICK

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
        env.run(until=END + 0.51)
        engine.advance()
    return [engine for engine, _ in engines]


def due(engine, end=END):
    """Count by hand the vehicles that would have arrived by now at half of free-flow speed."""
    free = engine._physics.free / ONE_TICK
    trips = (sum(float(free[link]) for link in engine.routes.of(v)) for v in range(engine.vehicles))
    return sum(int(at) + 2 * trip <= end for at, trip in zip(engine.trips.departure_tick, trips, strict=True))


@pytest.mark.parametrize(("city", "vehicles", "stuck_s"), [("blocks", 2000, 30.0), ("avenues", 2700, 1e6)])
def test_gridlock_warning_of_both_engines_has_its_numbers(city, vehicles, stuck_s):
    fleet, agents = driven(city, vehicles, stuck_s=stuck_s)
    (message,) = texts_of(warnings_among(fleet.notes()))
    assert [message] == texts_of(warnings_among(agents.notes()))
    totals = fleet.totals()
    assert (totals.stuck_released > 0) == (stuck_s < END), "a patience beyond the run hides no jam"
    assert totals.arrived < 0.75 * due(fleet)
    share = totals.arrived / due(fleet)
    arrived = f"only {totals.arrived:,} vehicles arrived ({100 * share:.2f} % of the {due(fleet):,} that would have at"
    assert f"{arrived} half of free-flow speed; the limit is 75 %)" in message
    held = f"{totals.arrived:,} arrived and {totals.waiting:,} still wait to enter"
    assert f"of {totals.departed:,} vehicles departed, of {vehicles:,} planned, {held}" in message
    forced = f"forced past full links {totals.stuck_released:,} times"
    assert message.count(forced) == 1
    if totals.stuck_released > 0.01 * totals.link_crossings:
        share = totals.stuck_released / totals.link_crossings
        assert f"{forced} ({100 * share:.2f} % of link crossings; the limit is 1 %)" in message
    waits = f"{totals.waiting:,} vehicles wait to enter ({100 * totals.waiting / totals.departed:.2f} % of vehicles"
    assert (waits in message) == (totals.waiting > totals.departed / 3)


@pytest.mark.parametrize(
    ("changed", "named", "others"),
    [
        ({"stuck_released": 209}, "209 times (1.04 % of link crossings; the limit is 1 %)", ("75 %", "33.33 %")),
        ({"link_crossings": 0, "stuck_released": 101}, "101 times (10.10 % of vehicles departed; the limit is 10 %)",
         ("75 %", "33.33 %")),
        ({"arrived": 749, "on_road": 251}, "(74.90 % of the 1,000 that would have at half of free-flow speed;",
         ("link crossings", "33.33 %")),
        ({"arrived": 760, "waiting": 334}, "334 vehicles wait to enter (33.40 % of vehicles departed;",
         ("75 %", "link crossings")),
    ],
)  # fmt: skip
def test_gridlock_message_names_only_the_broken_rule(changed, named, others):
    (message,) = texts_of(totals(**changed, due=1000).gridlock(planned=1200))
    assert named in message
    assert not any(other in message for other in others)
    assert all(
        part in message for part in ("1,000 vehicles departed, of 1,200 planned", "arrived", "wait to enter", "forced")
    )


def test_waiting_vehicles_are_gridlock_before_any_arrival_is_due():
    roads = build_grid(rows=6, columns=6, spacing_x_m=150, spacing_y_m=150, speed_mps=8.3, lanes=1)
    for engine, env in drive_both(roads, vehicles=4000, duration_s=100.0, step_s=1.0, stuck_s=30.0, seed=1):
        env.run(until=100.5)
        engine.advance()
        totals = engine.totals()
        assert totals.waiting > totals.departed / 3
        assert totals.arrived >= 0.75 * due(engine, end=100)
        (message,) = texts_of(warnings_among(engine.notes()))
        assert f"gridlock: {totals.waiting:,} vehicles wait to enter" in message


@pytest.mark.parametrize(("city", "vehicles"), [("blocks", 300), ("avenues", 5)])
def test_flowing_traffic_gives_no_warning(city, vehicles):
    for engine in driven(city, vehicles):
        assert warnings_among(engine.notes()) == []


def behind_a_signal(engine, *, until, departures, green_s=20.0, cycle_s=120.0, signals=1):
    """Drive trips of 100 m between signals that are red first; the free-flow time of a link is 10 s."""
    roads = chain(*[{"length_m": 100.0, "speed_mps": 10.0, "lanes": 2}] * (signals + 1))
    through = [
        movement(node, node - 1, node, from_lane=lane, to_lane=lane, signal=f"s{node}", group=0, place=lane)
        for node in range(1, signals + 1)
        for lane in (0, 1)
    ]
    plans = [window(f"s{node}", cycle_s - green_s, cycle_s, cycle_s=cycle_s) for node in range(1, signals + 1)]
    trips = [(at, list(range(signals + 2))) for at in departures]
    return drive(engine, roads, trips, until=until, movements=movement_table(through), signals=signal_table(plans))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("signals", [1, 3])
def test_a_wait_at_red_is_no_gridlock_though_it_is_longer_than_the_trip(engine, signals):
    for until in range(60, 600, 30):
        driven = behind_a_signal(engine, until=until, departures=range(0, 600, 6), signals=signals)
        assert warnings_among(driven.notes()) == [], until
    assert driven.totals().arrived > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_jam_behind_a_signal_is_gridlock(engine):
    """Green for 2 s of 120 s lets a vehicle a lane pass, and one departs every six seconds."""
    driven = behind_a_signal(engine, until=600, departures=range(0, 600, 6), green_s=2.0)
    (message,) = texts_of(warnings_among(driven.notes()))
    assert message.startswith("gridlock: ")
    assert "would have at half of free-flow speed" in message


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
        ({"arrived": 666, "waiting": 334}, 0, True),
        ({"arrived": 667, "waiting": 333}, 0, False),
        # SUMO counts no crossings and does not report when a vehicle was due.
        ({"link_crossings": 0, "stuck_released": 100}, None, False),
        ({"link_crossings": 0, "stuck_released": 101}, None, True),
        ({"link_crossings": 0, "arrived": 600, "waiting": 334, "on_road": 66}, None, True),
        ({"link_crossings": 0, "arrived": 600, "waiting": 333, "on_road": 67}, None, False),
        ({"departed": 19, "arrived": 0, "waiting": 19, "stuck_released": 500}, 19, False),
        ({"departed": 0, "arrived": 0, "link_crossings": 0}, None, False),
    ],
)
def test_gridlock_rule(changed, due, jammed):
    assert bool(totals(**changed, due=due).gridlock(planned=1200)) == jammed


@pytest.mark.parametrize(("vehicles", "jammed"), [(2000, True), (100, False)])
def test_cleared_jam_is_reported_with_its_worst_time(vehicles, jammed):
    city = {"rows": 6, "columns": 6, "spacing_x_m": 150, "spacing_y_m": 150, "speed_mps": 8.3, "lanes": 1}
    roads, clock = build_grid(**city, capacity_vph=300), Clock(1.0)
    (driven, _), _ = drive_both(roads, vehicles=vehicles, duration_s=300.0, step_s=1.0, stuck_s=1e6, seed=1)
    physics = LinkPhysics.build(roads.links, clock, stuck_s=1e6)
    fleet = Fleet(roads.links, physics, driven.trips, driven.routes, clock=clock)
    record, notes = drive_alone("fleet", fleet, clock=clock, times_s=[150.0, 300.0, 400.0, 7200.0])
    assert warnings_among(fleet.notes()) == []
    assert record.arrived[-1] == vehicles
    message = texts_of(warnings_among(notes))
    assert len(message) == jammed
    if jammed:
        ended = {at_s: due(driven, end=at_s) for at_s in record.times_s[:3]}
        share = {at_s: arrived / ended[at_s] for at_s, arrived in zip(ended, record.arrived, strict=False)}
        at_s = min(share, key=share.__getitem__)
        worst = record.times_s.index(at_s)
        late = f"only {record.arrived[worst]:,} vehicles arrived ({100 * share[at_s]:.2f} % of the {ended[at_s]:,} that"
        assert message[0].startswith(f"gridlock at second {at_s:g}, cleared by the end: {late}")
        assert f"of {record.departed[worst]:,} vehicles departed, of {vehicles:,} planned" in message[0]
