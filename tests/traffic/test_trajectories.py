"""Passages, queues and distances by Newell's trajectories: by hand, and as the engines' own positions show them."""

import numpy as np
import pandas as pd
import pytest
from random_roads import random_case
from roads_by_hand import ENGINES, chain, drive, network
from test_engines_agree import drive_both

from simulator.roads import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.link_intervals import Traversals, detector_table, links_by_interval, passages
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.places import passing_times, places_at, queued_from
from simulator.traffic.trips import VehicleClasses

END_S = 1200.0
BY_300_S = pd.DataFrame({"link": 0, "fraction": 0.5, "from_s": np.arange(4) * 300.0, "to_s": np.arange(1, 5) * 300.0})


def bottleneck(engine, *, downstream_first, until_s=END_S):
    """A vehicle every 2.5 s onto 1,500 m at 15 m/s, of which one every 6 s leaves: the engine, and the first link."""
    nodes = [2, 1, 0] if downstream_first else [0, 1, 2]
    first = {"length_m": 1500.0, "speed_mps": 15.0}
    second = {"length_m": 1000.0, "speed_mps": 15.0, "capacity_vph": 600.0}
    places = dict(sorted(zip(nodes, [(0.0, 0.0), (1500.0, 0.0), (2500.0, 0.0)], strict=True)))
    roads = network(places, [(*nodes[:2], first), (*nodes[1:], second)])
    trips = [(5 * k, nodes) for k in range(440)]
    return drive(engine, roads, trips, until=int(2 * until_s), step_s=0.5), int(downstream_first)


@pytest.mark.parametrize("downstream_first", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_detector_in_a_queue(engine, downstream_first):
    """100, 59, 50 and 50 vehicles pass the middle, by hand.

    The wave time is 2 s − 7.5 m / 15 m/s = 1.5 s, and the middle is 100 places before the end. Vehicle k, from 0,
    reaches the middle freely at 2.5 k + 50 s, and vehicle k − 100 leaves the link at 6 (k − 100) + 100 s. So k passes
    the middle at max(2.5 k + 50, 6 (k − 100) + 100 + 150): before 300 s those up to 99, before 600 s those up to 158,
    and then one every 6 s. The queue reaches back to the middle at 2.5 · 114.3 + 50 s = 336 s.
    """
    driven, link = bottleneck(engine, downstream_first=downstream_first, until_s=0.0)
    moments_s, beyond = np.append(np.arange(2.3, END_S, 2.0), END_S), []
    for time_s in moments_s:
        driven._env.run(until=2.0 * time_s + 1e-6)
        driven.advance()
        places = driven.places()
        on = places.link == link
        beyond.append(np.count_nonzero(~on | (on & (places.fraction > 0.5))))
    of = Traversals.of(driven, Clock(0.5), driven.log_by_vehicle())
    found = passages(of, driven.length_m, BY_300_S.assign(link=link), end_s=END_S)
    assert found["count"].tolist() == [100, 59, 50, 50]
    shown = pd.DataFrame({"link": link, "fraction": 0.5, "from_s": 0.0, "to_s": moments_s})
    counts = passages(of, driven.length_m, shown, end_s=END_S)["count"]
    np.testing.assert_array_equal(counts, beyond)
    for fraction in (0.4, 0.497, 0.502, 0.6):  # the flow is that of the bottleneck everywhere in the queue
        rows = BY_300_S.assign(link=link, fraction=fraction)[2:]
        np.testing.assert_allclose(passages(of, driven.length_m, rows, end_s=END_S)["count"], 50, atol=1)


@pytest.mark.parametrize("downstream_first", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_queued_vehicles_before_a_bottleneck(engine, downstream_first):
    """Vehicle k joins the queue where 2.5 k + 100 − j / 2 = 6 (k − j) + 100 + 1.5 j: j = .875 k places before the end.

    So k is in the queue from 100 + 2.0625 k s on, until it leaves at 100 + 6 k s: in seconds 200 to 300 there are
    (1 / 2.0625 − 1 / 6) · 150 = 47.7 on average. (If it stood at the end they would be (1 / 2.5 − 1 / 6) · 150 = 35.)
    Vehicles in the queue move one place in 6 s − 1.5 s, at 1.67 m/s, the others at 15 m/s.
    """
    driven, link = bottleneck(engine, downstream_first=downstream_first, until_s=300.0)
    of = Traversals.of(driven, Clock(0.5), driven.log_by_vehicle())
    table = links_by_interval(of, driven.length_m, every_s=100.0, end_s=300.0)
    row = table[(table["link"] == link) & (table["from_s"] == 200.0)].iloc[0]
    queued = (1 / 2.0625 - 1 / 6) * 150
    assert row["queue_vehicles"] == pytest.approx(queued, abs=1)
    there = 250 / 2.5 + 0.5 - 150 / 6
    assert row["occupied_s"] / 100.0 == pytest.approx(there, abs=1)
    driven_mps = queued * 7.5 / 4.5 + (there - queued) * 15.0
    assert row["mean_speed_mps"] * row["occupied_s"] / 100.0 == pytest.approx(driven_mps, rel=0.02)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_car_behind_a_bus(engine):
    """On 1,000 m at 20 m/s a bus drives 5 m/s from second 0, and a car that starts 10 s later meets it at 13.3 s.

    So both pass the middle at 100 s, and the car is in the queue from 13.3 s on, for 186.7 s of the first 200 s.
    """
    roads = chain({"length_m": 1000.0, "speed_mps": 20.0}, {"length_m": 1000.0, "speed_mps": 20.0})
    classes = VehicleClasses(("bus", "car"), np.array([0, 1], dtype=np.uint8), np.array([5.0, np.inf]), spacing_m=7.5)
    trips = [(0, [0, 1, 2]), (10, [0, 1, 2])]
    for until in (12, 60, 190):
        driven = drive(engine, roads, trips, until=until, classes=classes)
        bus, car = driven.places().fraction
        assert bus == pytest.approx(5.0 * (until + 0.51) / 1000.0, abs=1e-4)
        assert car == pytest.approx(min(bus, 20.0 * (until + 0.51 - 10.0) / 1000.0), abs=1e-4)
        assert driven.speeds()[1] == pytest.approx(20.0 if until == 12 else 5.0, rel=0.01)
    driven = drive(engine, roads, trips, until=250, classes=classes)
    of = Traversals.of(driven, Clock(1.0), driven.log_by_vehicle())
    rows = pd.DataFrame({"link": 0, "fraction": 0.5, "from_s": [0.0, 99.9, 100.1], "to_s": [99.9, 100.1, 200.0]})
    assert passages(of, driven.length_m, rows, end_s=250.0)["count"].tolist() == [0, 2, 0]
    table = links_by_interval(of, driven.length_m, every_s=200.0, end_s=250.0)
    assert table["queue_vehicles"][0] * 200.0 == pytest.approx(200.0 - 40.0 / 3.0, abs=0.01)


def seen_by(engine, env, ticks):
    """Look at an engine at each tick, and return where the trips on the road are, and where free driving had led them.

    The place of free driving goes on beyond the end of the link. Slow are vehicles that take longer than others.
    """
    looks = []
    for tick in range(1, ticks):
        env.run(until=tick + 1e-6)
        engine.advance()
        found, physics = engine._survey(), engine._physics
        on = np.flatnonzero(found.state == State.ON_ROAD)
        takes = physics.free[found.link[on]] + found.longer[on]
        freely = (tick * ONE_TICK - found.entry[on] + found.longer[on]) / takes
        at = {"tick": tick, "trip": on.astype(np.int32), "link": found.link[on], "lane": found.lane[on]}
        at |= {"place": found.fraction[on], "freely": freely, "slow": found.longer[on] > 0}
        at["begin"] = found.entry[on] - found.longer[on]
        looks.append(pd.DataFrame(at))
    return pd.concat(looks, ignore_index=True)


ROTATED, FORCED = [0, 12, 23], [4, 9]
"""Random cases in which circles of full lanes moved on together, and in which vehicles were forced onto full lanes."""
SEEDS = [2, 5, 14, 20, 32, *ROTATED]
"""Cases with closed links, slow classes, signals and new routes."""


def gained(driven, headway_s):
    """Return by how much those who can hold a vehicle left sooner, in all, than a headway one after another."""
    lane, exit_s, spacing, _ = driven.trajectories.lane, *driven.trajectories[3:]
    follows = np.append(False, (lane[1:] == lane[:-1]) & np.isfinite(exit_s[1:]))
    with np.errstate(invalid="ignore"):
        each = np.where(follows, headway_s[lane] - np.diff(exit_s, prepend=0.0), 0.0)
    sums, at = np.cumsum(np.maximum(each, 0.0)), np.arange(len(lane))
    return sums - sums[np.maximum(at - np.ceil(1.0 / spacing[lane]).astype(int), np.searchsorted(lane, lane))]


@pytest.fixture(scope="module", params=SEEDS)
def driven_and_seen(request):
    """Traversals of a random case, and what the fleet shows of each at every tick.

    A vehicle that waited for another's turn may be late: it is still shown on its lane after the moment at which, in
    the log, it has left. What is shown of its lane is left out meanwhile.
    """
    case = random_case(request.param, reactive=request.param % 5 == 4)
    engine, env = case.started(Fleet)
    looks = seen_by(engine, env, 400)
    driven, step_s = Traversals.of(engine, case.clock, engine.log_by_vehicle()), case.clock.step_s
    rows = pd.DataFrame({"trip": driven.trip, "link": driven.link, "row": np.arange(len(driven))})
    rows = rows.assign(entry_s=driven.entry_s).sort_values("entry_s", kind="stable")
    looks["time_s"], looks["begin_s"] = looks["tick"] * step_s, looks["begin"] / ONE_TICK * step_s
    # A vehicle on a junction is shown at the start of the next link before it enters it.
    ahead_s = 1e-9 + engine._physics.movements["crossing"].max(initial=0) / ONE_TICK * step_s
    seen = looks.assign(entry_s=looks["time_s"] + ahead_s).sort_values("entry_s", kind="stable")
    seen = pd.merge_asof(seen, rows, on="entry_s", by=["trip", "link"])
    late = seen["row"].isna() | (driven.trajectories.exit_s[seen["row"].fillna(0).astype(int)] <= seen["time_s"])
    whole = ~late.groupby([seen["tick"], seen["lane"]]).transform("any")
    assert whole.mean() > 0.9
    seen = seen[whole & (seen["time_s"] >= driven.entry_s[seen["row"].fillna(0).astype(int)])]
    physics, rules = engine._physics, engine._physics.rules
    seen["gained_s"] = gained(driven, physics.lanes["headway"] / ONE_TICK * step_s)[seen["row"].astype(int)]
    return driven, seen.astype({"row": int}), max(rules.start_loss, rules.entry_loss) / ONE_TICK * step_s


def test_passages_within_random_lanes_are_those_of_the_positions(driven_and_seen):
    """Before it passes a place a vehicle is shown before it, and then beyond it; but for what it lost as it started."""
    driven, seen, loss_s = driven_and_seen
    row, time_s = seen["row"].to_numpy(), seen["time_s"].to_numpy()
    for fraction in (0.03, 0.25, 0.5, 0.77, 0.96):
        passed_s = passing_times(driven.trajectories, 0, len(driven), fraction)
        wrong = (seen["place"].to_numpy() > fraction) != (passed_s[row] < time_s)
        assert (np.abs(passed_s[row] - time_s)[wrong] <= loss_s + 0.01).all()  # places are rounded to 1/1024 tick
        assert wrong.mean() < 0.01


def test_places_on_random_lanes_are_those_of_the_engine(driven_and_seen):
    driven, seen, loss_s = driven_and_seen
    found = places_at(driven.trajectories, seen["row"].to_numpy(), seen["time_s"].to_numpy())
    lost_s = seen["begin_s"] - driven.trajectories.begin_s[seen["row"]]
    assert lost_s.abs().max() <= loss_s + 0.01
    known = (lost_s.abs() < 0.01).groupby([seen["tick"], seen["lane"]]).transform("all").to_numpy()
    wrong = np.abs(found - seen["place"]) > 0.01
    # In a circle vehicles enter before the hole has arrived that engines no longer know then.
    assert wrong[known].sum() <= 1
    assert known.mean() > 0.3


def test_queues_on_random_lanes_are_of_vehicles_behind_their_free_driving(driven_and_seen):
    """A vehicle late by less than the drive over one place is shown free and behind in turn: it counts as queued.

    So does one that was late by more, and makes up for it as those ahead leave sooner than a headway after each other.
    """
    driven, seen, loss_s = driven_and_seen
    joined_s = queued_from(driven.trajectories, 0.01)
    row, time_s = seen["row"].to_numpy(), seen["time_s"].to_numpy()
    free_s, spacing = driven.trajectories.free_s[row], driven.trajectories.spacing[driven.trajectories.lane[row]]
    late_s = ((seen["freely"] - seen["place"]) * free_s).to_numpy()
    queued = joined_s[row] < time_s
    # A slow vehicle that the queue held for a while leaves without delay if the queue moved on faster than it drives.
    early = (
        (late_s > 0.02) & ~queued & (driven.trajectories.exit_s[row] > driven.trajectories.begin_s[row] + free_s + 0.02)
    )
    assert (late_s[early] <= loss_s + 0.02).all()
    most_s = pd.Series(late_s).groupby(row).cummax().to_numpy()
    shown_free = queued & (late_s <= 0.02) & ~seen["slow"].to_numpy()
    most_s = most_s - seen["gained_s"].to_numpy()
    assert (most_s[shown_free] <= (spacing * free_s)[shown_free] + loss_s + 0.02).all()
    assert shown_free.sum() < 0.1 * queued.sum()
    assert queued.mean() > 0.02


@pytest.mark.parametrize("seed", [*SEEDS, *FORCED])
def test_vehicles_pass_a_place_in_their_order_and_while_they_are_on_the_link(seed):
    case = random_case(seed, reactive=seed % 5 == 4)
    engine, env = case.started(Fleet)
    env.run(until=400.51)
    engine.advance()
    totals = engine.totals()
    assert (totals.rotated > 0) >= (seed in ROTATED)
    assert (totals.stuck_released > 0) == (seed in FORCED)
    driven = Traversals.of(engine, case.clock, engine.log_by_vehicle())
    behind = np.flatnonzero(driven.trajectories.lane[1:] == driven.trajectories.lane[:-1]) + 1
    assert len(behind) > 20
    before_s = driven.entry_s
    for fraction in (0.01, 0.25, 0.5, 0.77, 0.99):
        passed_s = passing_times(driven.trajectories, 0, len(driven), fraction)
        assert (passed_s[behind] >= passed_s[behind - 1]).all()
        assert (passed_s >= before_s).all()
        before_s = passed_s
    assert (before_s <= np.nan_to_num(driven.leave_s, nan=np.inf)).all()


STEP_S, UNTIL_S = 0.5, 700.0


@pytest.fixture(scope="module")
def grid():
    """A grid with queues, and what a fleet drove on it until 700 s, when some vehicles are still on the road."""
    size = {"rows": 4, "columns": 4, "spacing_x_m": 150.0, "spacing_y_m": 110.0}
    roads = build_grid(**size, speed_mps=7.0, lanes=1, capacity_vph=120.0)
    (engine, env), _ = drive_both(roads, vehicles=500, duration_s=600.0, step_s=STEP_S, stuck_s=30.0, seed=11)
    env.run(until=UNTIL_S / STEP_S + 0.25)
    engine.advance()
    return roads, Traversals.of(engine, Clock(STEP_S), engine.log_by_vehicle())


def detectors_of(links, fraction, every_s=97.5):
    names = [f"{link} at {fraction}" for link in links]
    return pd.DataFrame({"name": names, "link": links, "fraction": fraction, "every_s": every_s})


def test_both_ends_of_a_link_differ_by_what_is_on_it(grid):
    roads, driven = grid
    length_m, links = roads.links.length_m, np.arange(len(roads.links), dtype=np.int32)
    by_link = links_by_interval(driven, length_m, every_s=97.5, end_s=UNTIL_S).set_index(["link", "from_s"])
    ends = []
    for fraction, counted in ((0.0, "entered"), (1.0, "left")):
        table = detector_table(driven, length_m, detectors_of(links, fraction), end_s=UNTIL_S)
        assert len(table) == len(links) * 8
        assert table["to_s"].max() == UNTIL_S
        expected = by_link[counted].reindex(pd.MultiIndex.from_frame(table[["link", "from_s"]]), fill_value=0)
        np.testing.assert_array_equal(table["count"], expected)
        ends.append(table.groupby("link")["count"].sum())
    there = np.bincount(driven.link[np.isnan(driven.leave_s)], minlength=len(links))
    np.testing.assert_array_equal(ends[0] - ends[1], there)
    assert there.sum() > 20


def test_a_detector_within_a_link_counts_by_the_trajectories_and_takes_the_speed_over_the_link(grid):
    """A vehicle passes .3 freely, but k waves after the k-th vehicle ahead left, if k places are .7 of the link."""
    roads, driven = grid
    link = int(np.bincount(driven.link).argmax())
    rows = pd.DataFrame(
        {"link": link, "fraction": 0.3, "from_s": [50.0, 300.0], "to_s": [300.0, UNTIL_S]}, index=[7, 4]
    )
    found = passages(driven, roads.links.length_m, rows, end_s=UNTIL_S)
    length_m = roads.links.length_m[link]
    free_s, k = length_m / 7.0, int(np.ceil(0.7 * length_m / 7.5))
    wave_s = 3600.0 / 120.0 - free_s / (length_m // 7.5)
    on = driven.link == link
    stays = sorted(zip(driven.entry_s[on], np.nan_to_num(driven.leave_s[on], nan=np.inf), strict=True))
    late = 0
    for row in rows.itertuples():
        times, spent = 0, []
        for place, (entry_s, leave_s) in enumerate(stays):
            ahead_s = stays[place - k][1] + k * wave_s if place >= k else 0.0
            at_s = max(entry_s + 0.3 * free_s, ahead_s)
            late += at_s == ahead_s
            if row.from_s <= at_s and (at_s < row.to_s or row.to_s == at_s == UNTIL_S):
                times += 1
                spent += [leave_s - entry_s] if leave_s < np.inf else []
        assert found["count"][row.Index] == times > len(rows)
        assert found["speed_mps"][row.Index] == pytest.approx(length_m / np.mean(spent))
    assert late > len(rows)
    unused = passages(driven, roads.links.length_m, rows.assign(from_s=0.0, to_s=1e-3), end_s=UNTIL_S)
    assert (unused["count"] == 0).all()
    assert unused["speed_mps"].isna().all()


def test_the_nearest_link_is_that_of_the_direction_and_the_allowed_ones(grid):
    roads, _ = grid
    links, every = roads.links, np.ones(len(roads.links), dtype=bool)
    xy = np.array([[75.0, 8.0], [75.0, 8.0], [75.0, 8.0], [np.nan, 0.0], [75.0, -60.0]])
    heading = np.array([90.0, 270.0, np.nan, np.nan, 90.0])
    link, fraction = roads.nearest_positions(xy, within_m=50.0, heading_deg=heading, allowed=every)
    east, west = roads.node_xy[links.to_node[link[:2]], 0] - roads.node_xy[links.from_node[link[:2]], 0]
    assert (east, west) == (150.0, -150.0)
    assert link[2] == min(link[0], link[1])
    assert link[3:].tolist() == [-1, -1]
    np.testing.assert_allclose(roads.locate(link[:3], fraction[:3]), [[75.0, 0.0]] * 3)
    every[link[0]] = False
    assert roads.nearest_positions(xy[:1], within_m=50.0, heading_deg=heading[:1], allowed=every)[0].tolist() == [-1]
