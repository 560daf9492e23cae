"""Links by interval, trips and motion, compared with sums over single vehicles and with what the engine shows."""

import re
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from test_engines_agree import drive_both

from scenarios import ScenarioError, load
from simulator import run
from simulator.roads import build_grid
from simulator.traffic import link_intervals, motion
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.recording import Tracks

STEP_S = 0.5


@pytest.fixture(scope="module")
def engines():
    """Fleet and agents on a grid with queues, full links and vehicles that wait to enter, after 700 s."""
    size = {"rows": 4, "columns": 4, "spacing_x_m": 150.0, "spacing_y_m": 110.0}
    roads = build_grid(**size, speed_mps=7.0, lanes=1, capacity_vph=120.0)
    driven = drive_both(roads, vehicles=500, duration_s=600.0, step_s=STEP_S, stuck_s=30.0, seed=11)
    for engine, env in driven:
        env.run(until=700.0 / STEP_S + 0.25)
        engine.advance()
    return [engine for engine, _ in driven]


def by_interval(engine, every_s, end_s=700.0):
    driven = link_intervals.Traversals.of(engine, Clock(STEP_S), engine.log_by_vehicle())
    return link_intervals.links_by_interval(driven, engine.length_m, every_s=every_s, end_s=end_s)


def sums_by_hand(engine, every_s, end_s):
    """Sums for each link and interval, added vehicle by vehicle in steps of a hundredth of a second.

    A vehicle has driven freely since it entered, and is no further than k spacings before the end if the k-th vehicle
    ahead had not left k wave times ago, nor any j-th behind that one j wave times ago. One that leaves without delay
    was in no queue, though another that was late once may have held it for the time of a place.
    """
    sums, physics = defaultdict(lambda: np.zeros(6)), engine._physics
    log, stays = engine.log_by_vehicle(), defaultdict(list)
    for row, following in pairwise([*log.tolist(), [-1] * 4]):
        if row[1] >= 0:
            until_s = following[3] / 1024 * STEP_S if following[0] == row[0] else np.inf
            stays[row[1]].append((row[3] / 1024 * STEP_S, until_s))
    last = int(np.ceil(end_s / every_s)) - 1
    for link, on in stays.items():
        on.sort()
        wave_s = physics.lanes["hole"][link] / physics.lanes["storage"][link] / 1024 * STEP_S
        free_s = physics.free[link] / 1024 * STEP_S
        for place, (entry_s, left_s) in enumerate(on):
            until_s = min(left_s, end_s)
            sums[link, min(int(entry_s // every_s), last)][0] += 1
            if left_s < np.inf:
                sums[link, min(int(left_s // every_s), last)][[1, 5]] += 1, left_s - entry_s
            ends = np.append(np.arange(entry_s, until_s, 0.01), until_s)
            freely, most, held = (ends - entry_s) / free_s, np.ones(len(ends)), np.ones(len(ends), dtype=bool)
            for k in range(1, place + 1):
                held &= ends < on[place - k][1] + k * wave_s
                if not held.any():
                    break
                most[held] = 1.0 - k * physics.spacing[link]
            at = np.maximum(np.minimum(freely, most), 0.0)
            at[-1] = 1.0 if left_s < np.inf else at[-1]
            middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
            held = np.logical_or.accumulate((freely > most + 1e-9) & (left_s > entry_s + free_s + 1e-6))[:-1]
            for interval in np.unique(np.minimum(middles // every_s, last)).astype(int):
                here = np.minimum(middles // every_s, last) == interval
                driven_m = np.diff(at)[here].sum() * engine.length_m[link]
                sums[link, interval][2:5] += widths[here].sum(), (widths * held)[here].sum(), driven_m
    return sums


def test_sums_are_those_of_single_vehicles(engines):
    every_s = 97.5
    table = by_interval(engines[0], every_s)
    expected = sums_by_hand(engines[0], every_s, 700.0)
    seconds = (table["to_s"] - table["from_s"]).to_numpy()
    assert table["to_s"].max() == 700.0
    for row, lasts in zip(table.itertuples(), seconds, strict=True):
        entered, left, occupied, queued, driven, travel = expected.pop((row.link, int(row.from_s / every_s)))
        assert (row.entered, row.left) == (entered, left)
        # Steps of 0.01 s at both ends of each vehicle's time.
        tolerance = 0.02 * (entered + left + occupied / lasts + 1)
        assert row.occupied_s == pytest.approx(occupied, abs=tolerance)
        assert row.queue_vehicles * lasts == pytest.approx(queued, abs=tolerance)
        assert row.mean_speed_mps * row.occupied_s == pytest.approx(driven, abs=7.0 * tolerance, nan_ok=True)
        assert row.density_vpkm == pytest.approx(1000 * row.occupied_s / lasts / engines[0].length_m[row.link])
        assert row.travel_time_s == pytest.approx(travel / left if left else np.nan, nan_ok=True)
    assert not expected


def test_entered_and_left_are_what_the_engine_counts_and_both_engines_agree(engines):
    fleet, agents = (by_interval(engine, 60.0) for engine in engines)
    assert fleet.equals(agents)
    totals, places = engines[0].totals(), engines[0].places()
    assert fleet["left"].sum() == totals.link_crossings
    on_link = np.bincount(places.link[places.state == State.ON_ROAD], minlength=len(engines[0].length_m))
    sums = fleet.groupby("link")[["entered", "left"]].sum().reindex(range(len(on_link)), fill_value=0)
    np.testing.assert_array_equal(sums["entered"] - sums["left"], on_link)
    assert 0 < totals.on_road < totals.departed
    assert fleet["queue_vehicles"].max() > 1.0


def test_batches_do_not_change_the_result(engines, monkeypatch):
    whole = by_interval(engines[0], 60.0)
    monkeypatch.setattr(link_intervals, "_AT_ONCE", 100)
    parts = by_interval(engines[0], 60.0)
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-9, atol=1e-9)


def test_trips_are_those_of_the_log(engines):
    engine = engines[0]
    driven = link_intervals.Traversals.of(engine, Clock(STEP_S), engine.log_by_vehicle())
    trips = link_intervals.trip_table(driven, engine, Clock(STEP_S))
    totals, places = engine.totals(), engine.places()
    assert len(trips) == totals.departed
    assert trips["trip_s"].sum() == pytest.approx(totals.trip_time_s)
    assert set(trips["state"]) == {"waiting", "on_road", "arrived"}
    assert (trips["state"].astype(str).str.upper() == [State(state).name for state in places.state]).all()
    assert (trips["entry_s"].isna() == (places.state == State.WAITING)).all()
    assert (trips["arrival_s"].isna() == (places.state != State.ARRIVED)).all()
    for vehicle in (0, 123, len(trips) - 1):
        route = engine.routes.of(vehicle)
        assert trips["route_length_m"][vehicle] == pytest.approx(engine.length_m[route].sum())
        assert trips["free_flow_s"][vehicle] == pytest.approx((engine._physics.free[route] / 1024 * STEP_S).sum())
    assert (trips["trip_s"].dropna() >= trips["free_flow_s"][trips["trip_s"].notna()] - STEP_S).all()


def test_the_log_must_be_of_every_vehicle(engines):
    whole = engines[0]
    part = Fleet(whole._road_links, whole._physics, whole.trips, whole.routes, clock=Clock(STEP_S), record_entries=2)
    with pytest.raises(ValueError, match="record_entries = 2"):
        link_intervals.Traversals.of(part, Clock(STEP_S), np.empty((0, 4)))


def test_a_run_has_both_tables_if_they_are_requested(tmp_path):
    result = run("tiny", overrides=["report.link_interval_s=120"])
    assert result.links["left"].sum() == result.record.link_crossings
    assert len(result.trips) == result.record.traffic.departed[-1]
    saved = type(result).load(result.save(tmp_path / "run"))
    assert saved.links.equals(result.links)
    assert run("tiny").links is None


def test_tracks_on_links_give_what_the_log_of_the_same_vehicles_gives(engines):
    """Recorded with a waypoint at each entry, and one in the middle of each link."""
    log = engines[0].log_by_vehicle()
    time_s, link = log[:, 3] / 1024 * STEP_S, log[:, 1].astype(np.int32)
    lasts_s = np.where(link >= 0, np.append(np.diff(time_s), 0.0), 0.0)
    open_ended = np.append(log[1:, 0] != log[:-1, 0], True) & (link >= 0)
    lasts_s[open_ended] = 10_000.0  # on the road at the end: the recording goes on
    begins = np.append(time_s[:, None], time_s[:, None] + lasts_s[:, None] / 2, axis=1)
    last = np.flatnonzero(open_ended)
    kept = np.repeat(link >= 0, 2)
    row = np.repeat(log[:, 0], 2)
    times = np.append(begins.ravel(), np.append(time_s[link < 0], time_s[last] + 10_000.0))
    vehicles = np.append(row, np.append(log[link < 0, 0], log[last, 0]))
    links = np.append(np.repeat(link, 2), np.full(len(times) - len(row), -1))
    half = np.append(np.tile([0.0, 0.5], len(log)), np.zeros(len(times) - len(row)))
    used = np.append(kept, np.ones(len(times) - len(row), dtype=bool))
    order = np.flatnonzero(used)[np.lexsort((np.flatnonzero(used), times[used], vehicles[used]))]
    first = np.searchsorted(vehicles[order], np.arange(int(log[:, 0].max()) + 2))
    known = np.ones(len(order), dtype=bool)
    known[first[1:] - 1] = False
    nothing = np.zeros(len(order), dtype=np.float32)
    on, start = links[order].astype(np.int32), half[order]
    tracks = Tracks(first, times[order], np.zeros((len(order), 2)), known, nothing, nothing, on, start, start + 0.5)
    length_m = engines[0].length_m
    recorded = link_intervals.Traversals.of_tracks(tracks, end_s=700.0)
    table = link_intervals.links_by_interval(recorded, length_m, every_s=60.0, end_s=700.0, queued=False)
    expected = by_interval(engines[0], 60.0)
    for name in ("link", "from_s", "to_s", "entered", "left", "occupied_s", "density_vpkm", "travel_time_s"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-6, err_msg=name)
    assert table["queue_vehicles"].isna().all()


def test_parts_of_links_gaps_and_links_entered_again():
    """One vehicle of 100 m links: known from 20 s before the run, half of link 0 in 40 s; twice round link 1; a gap."""
    time_s = np.array([-20.0, 20.0, 30.0, 40.0, 100.0, 110.0])
    on, start, stop = [0, 1, 1, 1, 1, -1], [0.25, 0.0, 0.0, 1.0, 0.5, 0.0], [0.75, 1.0, 1.0, 1.0, 0.7, 0.0]
    known = np.array([True, True, True, False, True, False])
    nothing = np.zeros(6, dtype=np.float32)
    places = np.array(on), np.array(start), np.array(stop)
    tracks = Tracks(np.array([0, 6]), time_s, np.zeros((6, 2)), known, nothing, nothing, *places)
    driven = link_intervals.Traversals.of_tracks(tracks, end_s=105.0)
    assert driven.link.tolist() == [0, 1, 1, 1]
    assert driven.entry_s.tolist() == [0.0, 20.0, 30.0, 100.0]
    np.testing.assert_array_equal(driven.leave_s, [20.0, 30.0, 40.0, np.nan])
    np.testing.assert_allclose(driven.share, [0.25, 1.0, 1.0, 0.2])
    table = link_intervals.links_by_interval(driven, np.array([100.0, 100.0]), every_s=105.0, end_s=105.0, queued=False)
    assert table[["entered", "left", "occupied_s"]].to_numpy().tolist() == [[1, 1, 20.0], [3, 2, 25.0]]
    np.testing.assert_allclose(table["mean_speed_mps"], [25 / 20, (100 + 100 + 10) / 25])


@pytest.mark.parametrize(
    ("traffic", "rule"),
    [
        ('{engine="static", owners="owners.csv"}', "needs traffic.engine fleet, agents, sumo, trace or entries"),
        ('{engine="sumo", net="a.net.xml", routes=["a.rou.xml"]}', 'needs roads.source = "sumo" with engine sumo'),
    ],
)
def test_engines_that_do_not_know_links_are_refused(traffic, rule):
    with pytest.raises(ScenarioError, match=rf"report\.link_interval_s: {re.escape(rule)}"):
        load("tiny", overrides=["report.link_interval_s=120", f"traffic={traffic}"])


def test_a_recording_needs_its_vehicles_on_links_and_its_trips_are_shown_on_request(tmp_path):
    driven = run("tiny", overrides=["report.link_interval_s=60", "fcd.every_s=5"])
    fixes = driven.fcd.table.assign(time=driven.fcd.time_s)
    fixes.to_csv(tmp_path / "fixes.csv", columns=["vehicle", "time", "lon", "lat"])
    trace = f'traffic={{engine="trace", trace="{tmp_path}/fixes.csv", start=0, MATCH}}'
    wanted = ["report.link_interval_s=60"]
    with pytest.raises(ScenarioError, match=r"report\.link_interval_s: needs vehicles on links: set traffic\.match"):
        run("tiny", overrides=[*wanted, trace.replace("MATCH", 'match="none"')])
    wanted.append(trace.replace("MATCH", 'match="nearest"'))
    hidden, shown = (run("tiny", overrides=[*wanted, f"report.vehicles={word}"]) for word in ("false", "true"))
    assert hidden.trips is None
    assert hidden.links.equals(shown.links)
    covered_m = [(one.links["mean_speed_mps"] * one.links["occupied_s"]).sum() for one in (driven, shown)]
    assert covered_m[1] == pytest.approx(covered_m[0], rel=0.05)
    assert shown.trips["route_length_m"].sum() == pytest.approx(covered_m[1])
    assert shown.trips["free_flow_s"].sum() == pytest.approx(covered_m[1] / 5.0)
    every = range(len(driven.roads))
    left = [one.links.groupby("link")["left"].sum().reindex(every, fill_value=0) for one in (driven, shown)]
    assert np.corrcoef(*left)[0, 1] > 0.9


STATES = {"departure": State.WAITING, "entry": State.ON_ROAD, "arrival": State.ARRIVED}


def _grid(rows, **options):
    size = {"rows": rows, "columns": rows, "spacing_x_m": 150.0, "spacing_y_m": 110.0}
    return build_grid(**size, speed_mps=7.0, lanes=1, **options)


@pytest.mark.parametrize("step_s", [0.5, 1.0])
def test_entries_give_the_places_of_the_engine_at_any_time(step_s):
    roads = _grid(4, capacity_vph=120.0)  # queues, and full links
    engines = drive_both(roads, vehicles=500, duration_s=600.0, step_s=step_s, stuck_s=30.0, seed=3)
    clock, takes_part, seen = Clock(step_s), np.arange(500) % 3 > 0, set()
    for time_s in (0.0, 40.0, 333.5, 590.0, 3000.0):
        tables = []
        for engine, env in engines:
            env.run(until=clock.ticks(time_s) + 0.25)
            engine.advance()
            table = motion.motion_of_entries(engine, clock, takes_part, engine.log_by_vehicle(), every=1).entries
            tables.append(table)
            last = table.groupby("vehicle").tail(1)
            places, number = engine.places(), last["vehicle"].to_numpy()
            assert number.tolist() == list(range(len(places)))
            state = last["event"].astype(str).map(STATES).to_numpy()
            np.testing.assert_array_equal(state, places.state)
            np.testing.assert_array_equal(last["link"], places.link)
            on_road = state == State.ON_ROAD
            np.testing.assert_allclose(places.fraction[~on_road], state[~on_road] == State.ARRIVED)
            expected = _places_by_hand(engine)
            assert expected.keys() == set(np.flatnonzero(on_road).tolist())
            np.testing.assert_allclose(places.fraction[on_road], list(expected.values()), atol=1e-4)
            seen |= set(state)
        assert tables[0].equals(tables[1])
        assert (tables[0]["takes_part"] == takes_part[tables[0]["vehicle"]]).all()
    assert seen == set(STATES.values())


def _places_by_hand(engine):
    """Place of each vehicle on the road, by its number, from the log and Newell's rule for one queue a link.

    A vehicle has driven freely since it entered, and is no further than k spacings before the end if the k-th vehicle
    ahead had not left k wave times ago, nor any j-th behind that one j wave times ago.
    """
    log, physics, now = engine.log_by_vehicle().tolist(), engine._physics, engine._now * ONE_TICK
    on_link = defaultdict(list)
    for row, following in pairwise([*log, [-1] * 4]):
        if row[1] >= 0:
            on_link[row[1]].append((row[3], row[0], following[3] if following[0] == row[0] else np.inf))
    places = {}
    for link, on in on_link.items():
        lane, stays = physics.lanes[link], sorted(on)
        wave = lane["hole"] / lane["storage"]
        for i, (entry, vehicle, left) in enumerate(stays):
            if left == np.inf:
                left_behind = (k for k in range(1, i + 1) if stays[i - k][2] <= now - k * wave)
                ahead, free = next(left_behind, i + 1) - 1, (now - entry) / lane["free"]
                places[vehicle] = max(0.0, min(free, 1.0 - ahead * physics.spacing[link]))
    return dict(sorted(places.items()))


def test_of_many_entries_those_of_every_nth_vehicle_are_kept(monkeypatch):
    roads = _grid(6)
    (whole, env), _ = drive_both(roads, vehicles=800, duration_s=300.0, step_s=1.0, stuck_s=30.0, seed=5)
    links = len(whole.routes.links)
    monkeypatch.setattr(motion, "MOST_ENTRIES", links / 3)
    every = motion.logged_every(whole.routes)
    assert every == 4
    part = Fleet(
        roads.links,
        whole._physics,
        whole.trips,
        whole.routes,
        clock=Clock(1.0),
        record_entries=every,
    )
    part.advance_to(250)
    whole.advance_to(250)
    everyone = np.ones(800, dtype=bool)
    kept, of_all, all_ = (
        motion.motion_of_entries(engine, Clock(1.0), everyone, engine.log_by_vehicle(), every=n).entries
        for engine, n in ((part, 4), (whole, 4), (whole, 1))
    )
    assert kept.equals(all_[all_["vehicle"] % 4 == 0].reset_index(drop=True))
    assert kept.equals(of_all)
    del env
    with pytest.raises(ValueError, match="power of 2"):
        Fleet(roads.links, whole._physics, whole.trips, whole.routes, clock=Clock(1.0), record_entries=3)


def test_moments_are_whole_steps_and_places_have_a_limit():
    assert motion.moments_every_s(3600.0, step_s=1.0) == 10.0
    assert motion.moments_every_s(60.0, step_s=2.0) == 2.0
    assert motion.sampled_every(1000, 361) == 1
    assert motion.sampled_every(100_000, 361) == 10
