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


OPEN = [
    {}, {"highway": "motorway_link"}, {"highway": "living_street"}, {"bicycle": "no"}, {"access": "destination"},
    {"access": "no", "motor_vehicle": "yes"}, {"vehicle": "no", "motorcar": "yes"},
    {"motor_vehicle": "agricultural;destination"}, {"access": "military", "vehicle": "yes"}, {"motorcar": "customers"},
    {"motorcar": "whoever"}, {"motor_vehicle:forward": "no"},
]  # fmt: skip
CLOSED = [
    {"highway": None}, {"highway": "footway"}, {"highway": "service"}, {"highway": "construction"}, {"area": "yes"},
    {"service": "alley"}, {"access": "private"}, {"access": "No"}, {"access": "private;delivery"},
    {"access": "yes", "motorcar": "no"}, {"motor_vehicle": "agricultural;forestry"}, {"motor_vehicle": "forestry"},
    {"motor_vehicle": "permit"}, {"motor_vehicle": "official"}, {"motor_vehicle": "bus"}, {"access": "psv"},
    {"access": "emergency"}, {"access": "military"}, {"vehicle": "delivery"},
    {"motor_vehicle:forward": "no", "motor_vehicle:backward": "private"},
]  # fmt: skip


@pytest.mark.parametrize(("tags", "is_open"), [*((tags, True) for tags in OPEN), *((tags, False) for tags in CLOSED)])
def test_streets_are_ways_open_to_cars(tags, is_open):
    assert open_to_cars({key: value for key, value in (STREET | tags).items() if value}) is is_open


BOTH_WAYS = [
    {}, {"oneway": "no"}, {"oneway": "reversible"}, {"highway": "motorway", "oneway": "no"}, {"highway": "trunk"},
    {"oneway": "alternating"}, {"oneway": "perhaps"}, {"oneway": "yes", "oneway:motorcar": "no"},
    {"access:backward": "private", "motorcar": "yes"},
]  # fmt: skip
ALONG = [
    {"oneway": "yes"}, {"oneway": "1"}, {"junction": "roundabout"}, {"junction": "circular"}, {"highway": "motorway"},
    {"oneway": "Yes"}, {"oneway:motorcar": "yes"}, {"oneway:vehicle": "true"},
    {"oneway:motor_vehicle": "1", "oneway:vehicle": "-1"}, {"oneway": "yes", "oneway:bicycle": "no"},
    {"vehicle:backward": "no"}, {"vehicle": "no", "vehicle:forward": "yes"},
    {"highway": "motorway", "oneway": "perhaps"},
]  # fmt: skip
AGAINST = [
    {"oneway": "-1"}, {"oneway": "reverse"}, {"junction": "roundabout", "oneway": "-1"}, {"oneway": "REVERSE"},
    {"oneway:motorcar": "-1"}, {"motor_vehicle:forward": "no"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("tags", "leads"),
    [
        *((tags, (True, True)) for tags in BOTH_WAYS),
        *((tags, (True, False)) for tags in ALONG),
        *((tags, (False, True)) for tags in AGAINST),
    ],
)
def test_directions(tags, leads):
    assert directions(STREET | tags) == leads


MILE_KM = 1.609344
SPEEDS_KPH = {
    "50": 50, "50 km/h": 50, "50KM/H": 50, "30 mph": 30 * MILE_KM, "25MPH": 25 * MILE_KM, "10 knots": 18.52,
    "50;30": 40, "50, 30": 40, "50,5": 50.5, "31,25 mph": 31.25 * MILE_KM, "50,5; 30": 40.25, "50|80|110": 80,
    "50; signals": 50, "FI:urban": 50, "DE:zone:30": 30, "FR:zone30": 30, "walk": 7, "DE:rural": 100, "ru:urban": 60,
    "KZ:urban": 60, "UY:urban": 45, "US:urban": 25 * MILE_KM, "GB:nsl_single": 60 * MILE_KM,
    "GB:zone:20": 20 * MILE_KM, "DE:living_street": 7, "RU:living_street": 20, "BE-VLG:rural": 70,
}  # fmt: skip
NO_SPEEDS = [
    "signals", "none", "variable", "DE:motorway", "XX:urban", "1,000", "12,000 mph", "0", "5000", "fifty", "-50", "nan",
    "9" * 400, "",
]  # fmt: skip


@pytest.mark.parametrize("written", SPEEDS_KPH)
def test_speed_limits(written):
    assert speed_kph(STREET | {"maxspeed": written}, along=True) == pytest.approx(SPEEDS_KPH[written])


@pytest.mark.parametrize("written", NO_SPEEDS)
def test_what_is_no_speed_limit(written):
    assert speed_kph(STREET | {"maxspeed": written}, along=True) is None


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
