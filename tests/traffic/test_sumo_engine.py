"""The engine's vehicles equal SUMO's own output of the same run."""

import dataclasses
import gzip
from collections import Counter

import numpy as np
import pytest
import simpy
from single_places import advance_and_compare
from sumo_by_hand import ROUTES, Driven, engine, inputs, plain_run, tool

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.files.xml_elements import elements_of
from simulator.sumo.inputs import SumoInputs
from simulator.traffic.engine import State

MOMENTS = (0, 1, 30, 77, 150, 299)


def assert_agrees(given, moments, *, until_s):
    """Compare vehicle by vehicle with SUMO's own FCD output and trip information."""
    seen, trips = plain_run(given, until_s=until_s)
    tallies = Counter()
    with Driven(engine(given, until_s=until_s)) as driven:
        for tick in moments:
            sumo = driven.to(tick)
            advance_and_compare(sumo, departed=sumo.scheduled)
            now_s = given.begin_s + tick * given.step_s
            places, speeds, totals, rows = sumo.places(), sumo.speeds(), sumo.totals(), driven.rows()
            on_road = {v: row for v, row in rows.items() if places.state[row] == State.ON_ROAD}
            assert on_road.keys() == seen[now_s].keys()
            for vehicle, row in on_road.items():
                there = seen[now_s][vehicle]
                assert places.xy[row] == pytest.approx((there.x, there.y), abs=1e-4)
                assert speeds[row] == pytest.approx(there.speed, abs=1e-4)
            over = [trip for trip in trips if trip["arrival"] <= now_s]
            assert totals.arrived == len(over)
            assert totals.trip_time_s == pytest.approx(sum(t["duration"] + t["departDelay"] for t in over), abs=0.01)
            assert totals.departed == totals.waiting + totals.on_road + totals.arrived + totals.absent == len(places)
            assert np.isfinite(places.xy[places.state != State.ABSENT]).all()
            assert (speeds[places.state != State.ON_ROAD] == 0).all()
            tallies += Counter(waiting=totals.waiting, on_road=totals.on_road, arrived=totals.arrived)
    return tallies


def test_vehicle_positions_equal_the_fcd_output_of_sumo(net):
    tallies = assert_agrees(inputs(net), MOMENTS, until_s=300)
    assert min(tallies["waiting"], tallies["on_road"], tallies["arrived"]) > 20, "each state was there to be compared"


def test_half_second_steps_and_a_later_begin(net):
    assert assert_agrees(inputs(net, step_s=0.5, begin_s=40.0), (0, 11, 200, 399), until_s=200)["arrived"] > 20


def test_the_mesoscopic_model(net):
    given = inputs(net, mesoscopic=True)
    _, trips = plain_run(given, until_s=200)
    with Driven(engine(given, until_s=200)) as driven:
        totals = driven.to(199).totals()
        assert totals.arrived == sum(trip["arrival"] <= 199 for trip in trips) > 20
        assert totals.trip_time_s == pytest.approx(sum(t["duration"] + t["departDelay"] for t in trips), abs=1.0)
        assert np.isfinite(driven.sumo.places().xy).all()
        assert "mesoscopic" in texts_of(driven.sumo.notes())[0]


def test_seed_determines_the_run(net):
    def total(seed):
        with Driven(engine(inputs(net, seed=seed))) as driven:
            return driven.to(250).totals()

    assert total(5) == total(5) != total(6)


def test_vehicle_rows_are_appended_in_order_of_departure(net):
    with Driven(engine(inputs(net))) as driven:
        known = {}
        for tick in range(0, 60, 5):
            driven.to(tick)
            rows = driven.rows()
            assert all(known.get(vehicle, row) == row for vehicle, row in rows.items())
            fresh = [row for vehicle, row in rows.items() if vehicle not in known]
            assert not known or not fresh or min(fresh) > max(known.values())
            known.update(rows)
        queue = [row for vehicle, row in sorted(known.items()) if vehicle.startswith("queue.")]
        assert len(queue) > 30
    numbered = sorted((row, vehicle) for vehicle, row in known.items() if vehicle.startswith("queue."))
    order = [int(vehicle.split(".")[1]) for _, vehicle in numbered]
    assert order == sorted(order)


def test_waiting_and_arrived_vehicles_are_at_the_ends_of_their_route(net):
    routes = ROUTES.replace('id="slow"', 'id="slow" vClass="delivery"')
    with Driven(engine(inputs(net, routes), link_of={"A1B1": 7, "C1D1": 9})) as driven:
        sumo = driven.to(150)
        places, rows = sumo.places(), driven.rows()
        waiting = [row for v, row in rows.items() if places.state[row] == State.WAITING and v.startswith("queue.")]
        assert waiting
        assert (places.link[waiting] == 7).all()
        (start,) = np.unique(places.xy[waiting], axis=0)
        arrived = np.flatnonzero((places.state == State.ARRIVED) & (places.link == 9))
        assert len(arrived) > 3
        (end,) = np.unique(places.xy[arrived], axis=0)
        # A grid of 120 m: from A1 to D1 it is three blocks due east, minus the length of two junctions.
        assert end[1] == pytest.approx(start[1])
        assert 330 < end[0] - start[0] < 360
        came = np.concatenate([waiting, arrived])
        origin = sumo.origin_of(came)
        assert (origin.link == 7).all()
        assert (origin.xy == start).all()
        queued = [sumo._registry.names[row].startswith("queue.") for row in came]
        assert sumo.class_of(came) == ["delivery" if slow else "passenger" for slow in queued]
        assert len({*queued}) == 2


def test_vehicles_have_links_and_positions_on_known_edges_and_within_junctions(net):
    seen, _ = plain_run(inputs(net), until_s=141)
    link_of = {"A1B1": 0, "B1C1": 1, "C1D1": 2}
    lanes = [element.attributes for element in elements_of(net) if element.name == "lane" and element.attributes]
    length_m = {lane["id"].rpartition("_")[0]: float(lane["length"]) for lane in lanes}
    left, within = {}, Counter()
    with Driven(engine(inputs(net), link_of=link_of)) as driven:
        for tick in range(141):
            places, rows = driven.to(tick).places(), driven.rows()
            for vehicle, there in seen[tick].items():
                edge, row = there.lane.rpartition("_")[0], rows[vehicle]
                if not edge.startswith(":"):
                    left[vehicle] = edge
                # Within a junction a vehicle is at the end of the edge that it leaves.
                share = 1.0 if edge.startswith(":") else there.pos / length_m[edge]
                assert places.link[row] == link_of.get(left[vehicle], -1)
                assert places.fraction[row] == pytest.approx(share, abs=1e-6)
                within[edge.startswith(":"), places.link[row] >= 0] += 1
        assert (places.fraction[places.state == State.ARRIVED] == 1.0).all()
        assert (places.fraction[places.state == State.WAITING] == 0.0).all()
        assert min(within.values()) > 20
        assert len(within) == 4
        assert "45 edges of SUMO's network are not among the roads" in " ".join(texts_of(driven.sumo.notes()))


def test_roads_of_another_network_are_refused(net):
    elsewhere = engine(inputs(net), link_of={"nowhere": 0})
    with pytest.raises(InputError, match="must be the one the roads were read from"), Driven(elsewhere):
        pass


def test_gzipped_routes_and_additional_files(net):
    given = inputs(net)
    packed = net.parent / "packed.rou.xml.gz"
    types = net.parent / "types.add.xml.gz"
    text = ROUTES.replace('<vType id="slow" maxSpeed="6" sigma="0.5"/>', "")
    packed.write_bytes(gzip.compress(text.encode()))
    types.write_bytes(gzip.compress(b'<add><vType id="slow" maxSpeed="6" sigma="0.5"/></add>'))
    split = SumoInputs(net=net, routes=(packed,), additional=(types,), seed=5)
    with Driven(engine(given)) as whole, Driven(engine(split)) as parts:
        assert parts.to(120).totals() == whole.to(120).totals()


def test_a_configuration_gives_files_begin_and_scale(net):
    given = inputs(net)
    config = net.parent / "run.sumocfg"
    config.write_text(
        '<configuration><n value="small.net.xml"/><route-files value="by_hand.rou.xml"/><b value="0:00:20"/>'
        '<scale value="2"/></configuration>'
    )
    read = SumoInputs.from_config(config, seed=5, step_s=1.0)
    assert (read.net, read.routes, read.begin_s, read.scale) == (net, given.routes, 20.0, 2.0)
    assert assert_agrees(read, (0, 100), until_s=101)["on_road"] > 20


def test_vehicles_removed_by_sumo_are_absent(net):
    given = inputs(net)
    config = net.parent / "impatient.sumocfg"
    config.write_text(
        '<configuration><net-file value="small.net.xml"/><route-files value="by_hand.rou.xml"/>'
        '<max-depart-delay value="5"/></configuration>'
    )
    with Driven(engine(SumoInputs.from_config(config, seed=5, step_s=1.0))) as driven:
        sumo = driven.to(200)
        totals = sumo.totals()
        assert totals.absent > 5
        assert totals.waiting == 0
        assert totals.departed == totals.on_road + totals.arrived + totals.absent
        places = sumo.places()
        assert np.isnan(places.xy[places.state == State.ABSENT]).all()
    assert given.routes == SumoInputs.from_config(config, seed=5, step_s=1.0).routes


BLOCKED = """<routes><vType id="long" length="100" minGap="0"/><route id="east" edges="A1B1 B1C1 C1D1 D1D2"/>
  <vehicle id="blocks" type="long" depart="0" departPos="base"><route edges="C1D1 D1D2"/>
    <stop lane="C1D1_0" endPos="102" duration="80"/></vehicle>
  <flow id="behind" begin="1" end="60" number="8" route="east"/></routes>"""


def test_teleported_vehicles_are_absent_and_counted(net):
    with Driven(engine(inputs(net, BLOCKED, teleport_s=5.0))) as driven:
        absent = []
        for tick in range(260):
            totals = driven.to(tick).totals()
            assert totals.departed == totals.waiting + totals.on_road + totals.arrived + totals.absent
            states = np.bincount(driven.sumo.places().state, minlength=5)
            assert states[1:].tolist() == [totals.waiting, totals.on_road, totals.arrived, totals.absent]
            absent.append(totals.absent)
        assert max(absent) > 0
        assert totals.arrived > 0, "they came back further on"
        assert totals.stuck_released >= totals.arrived
        assert any(f"SUMO counted {totals.stuck_released} teleports" in note for note in texts_of(driven.sumo.notes()))
    with Driven(engine(inputs(net, BLOCKED, teleport_s=0.0))) as never:
        assert never.to(149).totals().stuck_released == 0


def test_vehicle_waiting_for_a_passenger_is_numbered_at_departure(net):
    routes = """<routes><route id="east" edges="A1B1 B1C1"/>
      <vehicle id="taxi" depart="triggered" route="east"/><vehicle id="own" depart="5" route="east"/>
      <person id="p" depart="20"><ride from="A1B1" to="B1C1" lines="taxi"/></person></routes>"""
    with Driven(engine(inputs(net, routes))) as driven:
        driven.to(10)
        assert driven.rows() == {"own": 0}
        assert driven.sumo.totals().waiting == 0
        driven.to(25)
        assert driven.rows()["taxi"] == 1


def test_a_trip_between_zones_starts_and_ends_on_edges_of_the_network(net):
    zones = net.parent / "zones.add.xml"
    zones.write_text('<add><taz id="here" edges="A0A1"/><taz id="there" edges="C3D3"/></add>')
    routes = '<routes><trip id="zones" depart="0" fromTaz="here" toTaz="there"/></routes>'
    given = dataclasses.replace(inputs(net, routes), additional=(zones,))
    with Driven(engine(given, link_of={"C3D3": 4})) as driven:
        places = driven.to(290).places()
    assert places.state.tolist() == [State.ARRIVED]
    assert np.isfinite(places.xy).all()
    assert places.link.tolist() == [4]


def test_more_vehicles_than_expected_are_an_error(net):
    with Driven(engine(inputs(net), most=3)) as driven, pytest.raises(InputError, match="at most 3 vehicles"):
        driven.to(30)


def test_configured_end_and_empty_road_do_not_end_the_run(net):
    given = inputs(net, '<routes><trip id="one" depart="0" from="A1B1" to="B1C1"/></routes>')
    config = net.parent / "short.sumocfg"
    tool("sumo", *given.arguments(), "--end", 20, "--save-configuration", config)
    with Driven(engine(SumoInputs.from_config(config, seed=5, step_s=1.0))) as driven:
        assert driven.to(400).totals().arrived == 1
        assert driven.to(500).places().state.tolist() == [State.ARRIVED]


def test_query_before_the_start_is_an_error(net):
    sumo = engine(inputs(net))
    with pytest.raises(RuntimeError, match="call start"):
        sumo.advance()
    assert texts_of(sumo.notes()) == []
    sumo.close()
    assert simpy.Environment().now == 0
