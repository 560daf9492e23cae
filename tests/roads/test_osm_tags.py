"""Interpretation of OpenStreetMap tags of a way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.formats.osm.streets import Street, guesses_of, link_of
from simulator.formats.osm_tags import WAY_TAGS, directions, lanes, noted, open_to_cars, speed_limit

STREET = {"highway": "residential"}


def speed_kph(tags, *, along):
    return speed_limit(tags, along=along)[0]


@pytest.mark.parametrize(
    ("tags", "is_open"),
    [
        (STREET, True),
        ({"highway": "motorway_link"}, True),
        ({"highway": "living_street"}, True),
        ({}, False),
        ({"highway": "footway"}, False),
        ({"highway": "service"}, False),
        ({"highway": "construction"}, False),
        ({"building": "yes"}, False),
        (STREET | {"area": "yes"}, False),
        (STREET | {"service": "alley"}, False),
        (STREET | {"access": "private"}, False),
        (STREET | {"access": "no"}, False),
        (STREET | {"access": "destination"}, True),
        (STREET | {"access": "private;delivery"}, False),
        (STREET | {"access": "no", "motor_vehicle": "yes"}, True),
        (STREET | {"access": "yes", "motorcar": "no"}, False),
        (STREET | {"vehicle": "no", "motorcar": "yes"}, True),
        (STREET | {"bicycle": "no"}, True),
        (STREET | {"access": "No"}, False),
        (STREET | {"motor_vehicle": "agricultural;forestry"}, False),
        (STREET | {"motor_vehicle": "agricultural;destination"}, True),
        (STREET | {"motor_vehicle": "forestry"}, False),
        (STREET | {"motor_vehicle": "permit"}, False),
        (STREET | {"motor_vehicle": "official"}, False),
        (STREET | {"motor_vehicle": "bus"}, False),
        (STREET | {"access": "psv"}, False),
        (STREET | {"access": "emergency"}, False),
        (STREET | {"access": "military"}, False),
        (STREET | {"vehicle": "delivery"}, False),
        (STREET | {"access": "military", "vehicle": "yes"}, True),
        (STREET | {"motorcar": "customers"}, True),
        (STREET | {"motorcar": "whoever"}, True),
        (STREET | {"motor_vehicle:forward": "no"}, True),
        (STREET | {"motor_vehicle:forward": "no", "motor_vehicle:backward": "private"}, False),
    ],
)
def test_streets_are_ways_open_to_cars(tags, is_open):
    assert open_to_cars(tags) is is_open


@pytest.mark.parametrize(
    ("tags", "leads"),
    [
        (STREET, (True, True)),
        (STREET | {"oneway": "yes"}, (True, False)),
        (STREET | {"oneway": "1"}, (True, False)),
        (STREET | {"oneway": "-1"}, (False, True)),
        (STREET | {"oneway": "reverse"}, (False, True)),
        (STREET | {"oneway": "no"}, (True, True)),
        (STREET | {"oneway": "reversible"}, (True, True)),
        (STREET | {"junction": "roundabout"}, (True, False)),
        (STREET | {"junction": "circular"}, (True, False)),
        (STREET | {"junction": "roundabout", "oneway": "-1"}, (False, True)),
        ({"highway": "motorway"}, (True, False)),
        ({"highway": "motorway", "oneway": "no"}, (True, True)),
        ({"highway": "trunk"}, (True, True)),
        (STREET | {"oneway": "Yes"}, (True, False)),
        (STREET | {"oneway": "REVERSE"}, (False, True)),
        (STREET | {"oneway": "alternating"}, (True, True)),
        (STREET | {"oneway": "perhaps"}, (True, True)),
        (STREET | {"oneway:motorcar": "yes"}, (True, False)),
        (STREET | {"oneway:motorcar": "-1"}, (False, True)),
        (STREET | {"oneway:vehicle": "true"}, (True, False)),
        (STREET | {"oneway:motor_vehicle": "1", "oneway:vehicle": "-1"}, (True, False)),
        (STREET | {"oneway": "yes", "oneway:motorcar": "no"}, (True, True)),
        (STREET | {"oneway": "yes", "oneway:bicycle": "no"}, (True, False)),
        (STREET | {"vehicle:backward": "no"}, (True, False)),
        (STREET | {"motor_vehicle:forward": "no"}, (False, True)),
        (STREET | {"access:backward": "private", "motorcar": "yes"}, (True, True)),
        (STREET | {"vehicle": "no", "vehicle:forward": "yes"}, (True, False)),
        ({"highway": "motorway", "oneway": "perhaps"}, (True, False)),
    ],
)
def test_directions(tags, leads):
    assert directions(tags) == leads


@pytest.mark.parametrize(
    ("written", "kph"),
    [
        ("50", 50),
        ("50 km/h", 50),
        ("30 mph", 30 * 1.609344),
        ("30mph", 30 * 1.609344),
        ("10 knots", 18.52),
        ("50;30", 40),
        ("50, 30", 40),
        ("50,5", 50.5),
        ("31,25 mph", 31.25 * 1.609344),
        ("50,5; 30", 40.25),
        ("50|80|110", 80),
        ("50; signals", 50),
        ("FI:urban", 50),
        ("DE:zone:30", 30),
        ("FR:zone30", 30),
        ("walk", 7),
        ("signals", None),
        ("none", None),
        ("variable", None),
        ("DE:rural", 100),
        ("ru:urban", 60),
        ("KZ:urban", 60),
        ("UY:urban", 45),
        ("US:urban", 25 * 1.609344),
        ("GB:nsl_single", 60 * 1.609344),
        ("GB:zone:20", 20 * 1.609344),
        ("DE:living_street", 7),
        ("RU:living_street", 20),
        ("DE:motorway", None),
        ("BE-VLG:rural", 70),
        ("XX:urban", None),
        ("25 MPH", 25 * 1.609344),
        ("25mph", 25 * 1.609344),
        ("50KM/H", 50),
        ("1,000", None),
        ("12,000 mph", None),
        ("0", None),
        ("5000", None),
        ("fifty", None),
        ("-50", None),
        ("nan", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_speed_limits(written, kph):
    assert speed_kph(STREET | {"maxspeed": written}, along=True) == (None if kph is None else pytest.approx(kph))


def test_direction_may_have_its_own_speed_limit():
    tags = STREET | {"maxspeed": "80", "maxspeed:backward": "60"}
    assert (speed_kph(tags, along=True), speed_kph(tags, along=False)) == (80, 60)
    assert speed_kph(STREET | {"maxspeed": "signals", "speed_kph": "41.5"}, along=True) == 41.5


@pytest.mark.parametrize(
    ("tags", "limit"),
    [
        ({}, (None, None)),
        ({"maxspeed:motorcar": "40", "maxspeed": "60"}, (40, None)),
        ({"maxspeed:motor_vehicle:forward": "40", "maxspeed:forward": "50"}, (40, None)),
        ({"maxspeed:hgv": "40"}, (None, None)),
        ({"maxspeed:type": "RU:urban"}, (60, None)),
        ({"source:maxspeed": "sign", "zone:maxspeed": "DE:30"}, (30, None)),
        ({"maxspeed": "foo", "source:maxspeed": "DE:urban"}, (50, None)),
        ({"source:maxspeed": "survey"}, (None, None)),
        ({"source:maxspeed": "XX:urban"}, (None, "source:maxspeed = XX:urban")),
        ({"maxspeed": "none"}, (None, "maxspeed = none")),
        ({"maxspeed": "1,000"}, (None, "maxspeed = 1,000")),
        ({"maxspeed:lanes": "50|30"}, (None, None)),
    ],
    ids=str,
)
def test_a_limit_is_that_of_the_most_specific_key_and_what_is_not_read_is_kept(tags, limit):
    assert speed_limit(STREET | tags, along=True) == limit


@pytest.mark.parametrize(
    ("tags", "notes"),
    [
        ({"oneway": "yes", "access": "yes"}, set()),
        ({"motor_vehicle": "Forestry"}, {("closed", "motor_vehicle = forestry")}),
        ({"vehicle:backward": "no"}, {("closed", "vehicle:backward = no")}),
        ({"access": "destination"}, {("restricted", "access = destination")}),
        ({"access": "whoever"}, {("unknown access", "access = whoever")}),
        ({"oneway": "perhaps"}, {("unknown oneway", "oneway = perhaps")}),
        ({"oneway": "reversible"}, {("hourly oneway", "oneway = reversible")}),
        ({"maxspeed:lanes": "50|30"}, {("not read", "maxspeed:lanes")}),
        ({"highway": "footway", "access": "no"}, {("left out", "highway = footway")}),
        ({"service": "alley"}, {("left out", "service = alley")}),
    ],
    ids=str,
)
def test_what_is_left_out_or_not_understood_is_noted_by_value(tags, notes):
    assert set(noted(STREET | tags)) == notes


@pytest.mark.parametrize(
    ("tags", "along", "against"),
    [
        ({}, None, None),
        ({"lanes": "2"}, 1, 1),
        ({"lanes": "4"}, 2, 2),
        ({"lanes": "1"}, 1, 1),
        ({"lanes": "3"}, 1, 1),
        ({"lanes": "3", "lanes:forward": "2"}, 2, 1),
        ({"lanes": "3", "lanes:backward": "2"}, 1, 2),
        ({"lanes": "5", "lanes:both_ways": "1"}, 2, 2),
        ({"lanes:forward": "3"}, 3, None),
        ({"lanes": "3", "oneway": "yes"}, 3, 3),
        ({"lanes": "3", "oneway": "True"}, 3, 3),
        ({"lanes": "2;3", "oneway": "yes"}, 2, 2),
        ({"lanes": "1.5", "oneway": "yes"}, 1, 1),
        ({"lanes": "0", "oneway": "yes"}, None, None),
        ({"lanes": "99", "oneway": "yes"}, None, None),
        ({"lanes": "two"}, None, None),
        ({"lanes": "9" * 400}, None, None),
        ({"lanes": "2", "lanes:forward": "3"}, 3, 1),
    ],
)
def test_lanes_of_a_two_way_street_are_divided(tags, along, against):
    tags = STREET | tags
    assert (lanes(tags, along=True), lanes(tags, along=False)) == (along, against)


@given(
    st.dictionaries(
        st.sampled_from(sorted(WAY_TAGS)), st.one_of(st.text(max_size=12), st.from_regex(r"[0-9.;| ]{1,9}"))
    ),
    st.booleans(),
)
def test_any_tag_value_can_be_read(tags, along):
    street = Street.from_tags(tags, way="1", length_m=10.0, along=along, capacity_vph=1800.0)
    assert 0 < street.speed_mps <= 330 / 3.6 + 1e-9
    assert 1 <= street.lanes <= 20
    assert isinstance(open_to_cars(tags), bool)
    assert any(directions(tags)) or open_to_cars(STREET | tags) is False


def test_merged_link_keeps_travel_time_and_least_lanes():
    def stretch(length_m, **tags):
        return Street.from_tags(tags, way="7", length_m=length_m, along=True, capacity_vph=1800.0)

    streets = (
        stretch(300.0, highway="primary", maxspeed="60", lanes="3", oneway="yes"),
        stretch(100.0, highway="residential", oneway="yes"),
    )
    link = link_of(streets)
    assert link["length_m"] == 400.0
    assert link["length_m"] / link["speed_mps"] == pytest.approx(300 / (60 / 3.6) + 100 / (30 / 3.6))
    assert (link["lanes"], link["capacity_vph"], link["class"], link["osm_ways"]) == (1, 600.0, "primary", "7")
    assert guesses_of(streets) == {
        "speed_mps": ("residential", "30 km/h"),
        "lanes": ("residential", "1"),
        "capacity_vph": ("primary", "1,500"),
        "limit": ("residential", ""),
    }


def test_street_of_unknown_class_has_the_given_capacity():
    street = Street.from_tags({}, way="1", length_m=1.0, along=True, capacity_vph=1234.0)
    assert (street.capacity_vph, street.lanes, street.speed_mps) == (1234.0, 1, pytest.approx(45 / 3.6))
