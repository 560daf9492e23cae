"""Tours: several trips of a vehicle in both engines, drawn, read from tables, and repeated from day to day."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import simpy
from random_roads import random_case
from roads_by_hand import network, routes_of
from test_engines_agree import assert_equal_at
from zoned_roads import ring

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.trip_files import read_trip_table
from simulator.traffic.agents import Agents
from simulator.traffic.clock import DAY_S, Clock
from simulator.traffic.demand.synthetic import Demand, Interval, read_profile
from simulator.traffic.demand.tours import TourOptions, repeat_tours
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.link_intervals import Traversals, trip_table
from simulator.traffic.motion import motion_of_entries
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.trips import Trips


def on_two_links(engine, *, planned, stop_ticks=5):
    """One vehicle that drives a road of 100 s there and back as planned, and another that drives there only."""
    end = {"length_m": 1000.0, "speed_mps": 10.0}
    roads = network({0: (0.0, 0.0), 1: (1000.0, 0.0)}, [(0, 1, end), (1, 0, end)])
    ends = np.array([0, 0, 1]), np.array([1, 1, 0])
    trips = Trips.from_unsorted(*ends, [10, 20, planned], [7, 3, 7], stop_ticks)
    links = [[0], [0], [1]]
    routes = routes_of([links[leg] for leg in np.argsort([10, 20, planned], kind="stable")])
    clock = Clock(1.0)
    driven = engine(roads.links, LinkPhysics.build(roads.links, clock), trips, routes, clock=clock, record_entries=1)
    env = simpy.Environment()
    driven.start(env)
    return driven, env


@pytest.mark.parametrize("engine", [Fleet, Agents])
@pytest.mark.parametrize(("planned", "leaves"), [(200, 200), (50, 115), (15, 115)])
def test_a_trip_begins_as_planned_or_after_its_vehicle_has_arrived_and_stopped(engine, planned, leaves):
    """It departs at 10 and arrives at 110: with a stop of 5 s, it can depart again from 115 on."""
    driven, env = on_two_links(engine, planned=planned)
    states = {}
    for tick in (5, 60, 112, leaves - 1, leaves, 400):
        env.run(until=tick + 0.5)
        driven.advance()
        states[tick] = driven.places().state.tolist()
        assert driven.totals().departed == len(driven.begun())
    assert states[5] == []
    assert states[60] == [State.ON_ROAD, State.ON_ROAD]
    assert states[112][0] == states[leaves - 1][0] == State.ARRIVED
    assert states[leaves][0] == State.ON_ROAD
    assert states[400] == [State.ARRIVED] * 2
    assert driven.vehicles == 2
    assert driven.totals().arrived == driven.totals().due == 3
    assert driven.places().link.tolist() == [1, 0]
    assert driven.origin_of(np.arange(2)).link.tolist() == [0, 0]
    assert driven.class_of(np.arange(2)) == ["", ""]
    late = "" if planned == leaves else " 1 trip began later than planned, as the vehicle was still on its way."
    assert f"2 vehicles drive 3 trips; departures and arrivals are counted by trip.{late}" in texts_of(driven.notes())


@pytest.mark.parametrize("engine", [Fleet, Agents])
def test_tables_of_trips_and_of_motion_have_a_departure_for_each_trip(engine):
    driven, env = on_two_links(engine, planned=50)
    env.run(until=400)
    driven.advance()
    takes_part = np.array([True, False])
    log = driven.log_by_vehicle()
    table = trip_table(Traversals.of(driven, Clock(1.0), log), driven, Clock(1.0))
    assert table["vehicle"].tolist() == [0, 0, 1]
    assert table["departure_s"].tolist() == [10, 115, 20]
    assert table["arrival_s"].tolist() == pytest.approx([110, 215, 120], abs=1)
    events = motion_of_entries(driven, Clock(1.0), takes_part, log, every=1).entries
    assert events["vehicle"].tolist() == [0] * 6 + [1] * 3
    assert events["event"].tolist() == ["departure", "entry", "arrival"] * 3
    assert events.groupby("vehicle")["time_s"].is_monotonic_increasing.all()


@pytest.mark.parametrize("seed", [1, 4, 19])
def test_engines_agree_with_several_trips_a_vehicle(seed):
    """Lanes, signals, gaps, closures; at seeds 4 and 19 vehicles re-route. About a third of the trips are late."""
    case = random_case(seed, reactive=seed % 5 == 4)
    trips, rng = case.trips, np.random.default_rng(seed)
    vehicle = rng.integers(0, max(1, int(len(trips) * rng.choice([0.1, 0.4, 0.8]))), len(trips))
    stop = int(rng.integers(1, 30))
    case = replace(
        case,
        trips=Trips.from_unsorted(trips.origin, trips.destination, trips.departure_tick, vehicle, stop),
    )
    engines = [case.started(engine) for engine in (Fleet, Agents)]
    fleet, agents = (engine for engine, _ in engines)
    before = np.zeros(0, dtype=np.uint8)
    for tick in (0, 17, 60, 61, 150, 303, 500):
        assert_equal_at(engines, tick)
        np.testing.assert_array_equal(fleet.departure_tick, agents.departure_tick)
        np.testing.assert_array_equal(fleet.begun(), agents.begun())
        state = fleet.places().state
        assert len(state) >= len(before)  # rows of vehicles are only added at the end
        before = state
    assert np.any(fleet.departure_tick > case.trips.departure_tick)
    log = pd.DataFrame(fleet.log_by_vehicle(), columns=["trip", "link", "lane", "time"])
    span = log.groupby("trip")["time"].agg(["min", "max"])
    span.insert(0, "vehicle", case.trips.vehicle[span.index])
    again = span[span["vehicle"].duplicated()]
    previous = span.groupby("vehicle")["max"].shift()[again.index]
    assert (again["min"] >= previous).all()  # no vehicle is in two places


def toured(trips, *, days=1, seed=1, demand=None, nodes=40, **options):
    roads = ring(nodes)
    options = TourOptions(duration_s=days * DAY_S, **options)
    demand = demand or Demand(trips)
    paths, rng = ShortestPaths.of(roads), np.random.default_rng(seed)
    return repeat_tours(demand, options, paths, clock=Clock(1.0), rng=rng)


def legs(trips):
    table = {name: getattr(trips, name) for name in ("vehicle", "origin", "destination", "departure_tick")}
    return pd.DataFrame(table).sort_values(["vehicle", "departure_tick"], kind="stable")


def drawn(vehicles, *, seed=3, nodes=40):
    rng = np.random.default_rng(seed)
    origin = rng.integers(0, nodes, vehicles)
    destination = (origin + rng.integers(1, nodes, vehicles)) % nodes
    return Trips.from_unsorted(origin, destination, rng.integers(6 * 3600, 9 * 3600, vehicles))


@pytest.mark.parametrize("stops", [1, 3])
def test_each_day_a_vehicle_visits_its_places_and_returns(stops):
    first = drawn(300)
    table = legs(toured(first, days=3, stops=stops, stay_s=7200.0, departure_sd_s=600.0).trips)
    assert table["vehicle"].nunique() == 300
    for vehicle, rows in list(table.groupby("vehicle"))[:50]:
        origins, destinations = rows["origin"].to_numpy(), rows["destination"].to_numpy()
        assert (origins[1:] == destinations[:-1]).all()
        assert destinations[-1] == origins[0]
        assert (origins != destinations).all()
        assert (origins == origins[0]).sum() >= 3, vehicle
        assert len(rows) <= 3 * (stops + 1)
    assert len(table) > 0.9 * 300 * 3 * (stops + 1)
    usual = legs(toured(first, days=3, stops=stops, stay_s=7200.0).trips)
    by_day = usual.assign(day=usual["departure_tick"] // DAY_S, at=usual["departure_tick"] % DAY_S)
    assert (by_day.groupby(["vehicle", "origin", "destination"])["at"].nunique() == 1).all()


def test_departures_vary_from_day_to_day_and_vehicles_stay_or_go_elsewhere_as_often_as_stated():
    vehicles, days = 2000, 5
    options = {"stay_s": 36_000.0, "departure_sd_s": 300.0, "skip_share": 0.2, "other_share": 0.1}
    table = legs(toured(drawn(vehicles), days=days, **options).trips)
    table["day"] = table["departure_tick"] // DAY_S
    out = table.drop_duplicates(["vehicle", "day"])
    driven = len(out) / (vehicles * days)
    assert abs(driven - 0.8) < 4.5 * np.sqrt(0.16 / (vehicles * days))
    at = out["departure_tick"] - out["day"] * DAY_S
    within = at.groupby(out["vehicle"]).var(ddof=1).dropna()
    weights = at.groupby(out["vehicle"]).count()[within.index] - 1
    assert np.sqrt(np.average(within, weights=weights)) == pytest.approx(300.0, rel=0.04)
    usual = out["vehicle"].map(out.groupby("vehicle")["destination"].agg(lambda places: places.mode().iloc[0]))
    # Of those that draw another place, some draw their own or one that is their home.
    assert 0.06 < (out["destination"] != usual).mean() < 0.1


def test_a_profile_of_weekdays_sets_times_and_numbers_of_each_day(tmp_path):
    file = tmp_path / "week.csv"
    file.write_text("weekday,hour,share\nMon,7,4\ntuesday,8,2\n3,9,1\n3,17,3\nsun,12,1\n")
    profile = read_profile(file, days=[0, 1, 2, 3])
    assert profile == (
        Interval(25_200.0, 28_800.0, 0.4),
        Interval(DAY_S + 28_800.0, DAY_S + 32_400.0, 0.2),
        Interval(2 * DAY_S + 32_400.0, 2 * DAY_S + 36_000.0, 0.1),
        Interval(2 * DAY_S + 61_200.0, 2 * DAY_S + 64_800.0, 0.3),
    )
    days = [[Interval(25_200.0, 28_800.0, 0.4)], [Interval(28_800.0, 32_400.0, 0.2)], []]
    first = drawn(4000)
    table = legs(toured(first, days=3, stay_s=3600.0, profiles=days).trips)
    out = table.assign(day=table["departure_tick"] // DAY_S).drop_duplicates(["vehicle", "day"])
    number = out["day"].value_counts()
    assert number[0] == 4000
    assert abs(number[1] - 2000) < 4.5 * np.sqrt(1000)
    assert set(number.index) == {0, 1}
    hour = (out["departure_tick"] - out["day"] * DAY_S) // 3600
    assert (hour == 7 + out["day"]).all()
    monday = out[out["day"] == 0].set_index("vehicle")["departure_tick"]
    assert (np.argsort(monday.to_numpy(), kind="stable") == np.arange(4000)).all()  # the order is kept
    with pytest.raises(InputError, match=r"weekday needs scenario\.start with a date"):
        read_profile(file, days=[None])
    file.write_text("weekday,hour,share\nmoonday,7,4\n")
    with pytest.raises(InputError, match="the name of a day, or 1 to 7 from Monday on, got 'moonday'"):
        read_profile(file, days=[0])


def table_trips(tmp_path, text, *, seed=1, zones=None, columns=None, **taking):
    file = tmp_path / "diaries.csv"
    file.write_text(text)
    roads = ring(30, zones=zones or {})
    options = SamplingOptions(**{"duration_s": DAY_S, **taking})
    paths, rng = ShortestPaths.of(roads), np.random.default_rng(seed)
    return draw_table_trips(
        read_trip_table(file, columns=columns or {}), roads, paths, options, clock=Clock(1.0), rng=rng
    )


DIARIES = """person_id,household_id,origin,destination,departure_time
1,a,1,5,08:00
1,a,5,1,17:00
1,b,2,9,07:30
2,a,3,4,09:00
1,b,9,12,12:00
1,b,12,2,18:00
2,a,8,3,10:00
"""


def test_rows_of_one_person_are_one_vehicle(tmp_path):
    demand = table_trips(tmp_path, DIARIES)
    table = legs(demand.trips)
    found = {tuple(map(tuple, rows[["origin", "destination"]].to_numpy().tolist())) for _, rows in
             table.groupby("vehicle")}  # fmt: skip
    assert found == {((1, 8), (8, 11), (11, 1)), ((0, 4), (4, 0)), ((2, 3), (7, 2))}
    assert any("1 trip begins at another place than the vehicle's previous trip ends" in note for note in demand.notes)
    assert table_trips(tmp_path, DIARIES, share=2.0).trips.vehicles == 6
    assert table_trips(tmp_path, DIARIES, vehicles=2).trips.vehicles == 2
    repeated = toured(None, demand=demand, days=3, nodes=30)
    assert len(repeated.trips) == 3 * 7
    assert repeated.trips.vehicles == 3


def test_a_person_lives_at_one_node_of_a_zone(tmp_path):
    zones = {node: "home" if node <= 15 else "work" for node in range(1, 31)}
    rows = [f"{person},{way},{hour}" for person in range(60) for way, hour in (("home,work", 7), ("work,home", 17))]
    text = "person_id,origin,destination,departure_time\n" + "\n".join(f"{row}:00" for row in rows)
    table = legs(table_trips(tmp_path, text, zones=zones).trips)
    there, back = (table[table["departure_tick"] == hour * 3600].set_index("vehicle") for hour in (7, 17))
    assert (there["origin"] == back["destination"]).all()
    assert (there["destination"] == back["origin"]).all()
    assert there["origin"].nunique() > 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vehicle,origin,destination\n1,1,2\n", "departure_s, or from_s and to_s, must be columns where vehicle is"),
        ("vehicle,origin,destination,depart\n,1,2,60\n", "must be the identifier of a vehicle or person"),
    ],
)
def test_a_table_of_vehicles_without_times_or_names_is_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        table_trips(tmp_path, text, columns={"vehicle": "vehicle"})


@pytest.mark.parametrize(
    "text",
    ["vehicle_id,origin,destination\n1,1,2\n1,2,3\n", "vehicle,origin,destination,depart,trips\ncar,1,2,8:00,2\n"],
)
def test_a_column_of_vehicles_without_times_or_beside_numbers_of_trips_is_used_only_if_it_is_named(tmp_path, text):
    demand = table_trips(tmp_path, text)
    assert demand.trips.vehicle is None
    assert len(demand.trips) == 2
    assert "columns not read: 'vehicle" in demand.notes[0]
