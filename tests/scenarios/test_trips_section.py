"""Demand from files in a scenario: valid combinations of keys, and faults."""

from __future__ import annotations

import json

import pytest

import scenarios

FILES = ("trips.csv", "more.rou.xml", "zones.csv", "day.csv")

SPOILED = [
    (["traffic.demand='trips'"], "traffic.trips", ['is required with demand = "trips"']),
    (["traffic.trips='trips.csv'"], "traffic.trips", ['needs demand = "trips"']),
    (["traffic.demand='trips'", "traffic.trips='none.csv'"], "traffic.trips", ["there is no such file"]),
    (["traffic.demand='trips'", "traffic.trips=3"], "traffic.trips", ["must be a file, or a list of files", "3"]),
    (["traffic.demand='trips'", "traffic.trips=[]"], "traffic.trips", ["must have at least 1 item"]),
    (
        ["traffic.demand='trips'", "traffic.trips=['trips.csv', 'none.xml']"],
        "traffic.trips[1]",
        ["there is no such file", "none.xml"],
    ),
    (["traffic.demand='trips'", "traffic.trips='trips.csv'", "traffic.share=0"], "traffic.share", ["above 0", "0"]),
    (
        ["traffic.demand='trips'", "traffic.trips='trips.csv'", "traffic.share=0.5"],
        "traffic.share",
        ["either share or vehicles"],
    ),
    (["traffic.share=0.5"], "traffic.share", ['needs demand = "trips", or with zones']),
    (["traffic.zones='zones.csv'"], "traffic.zones", ['needs demand = "gravity"']),
    (["traffic.profile='day.csv'"], "traffic.profile", ['needs departures = "profile"']),
    (["traffic.departures='profile'"], "traffic.profile", ['is required with departures = "profile"']),
    (["traffic.departures='hourly'"], "traffic.departures", ['"uniform", "peak" or "profile"']),
    (["traffic.begin_s=-1"], "traffic.begin_s", ["at least 0"]),
    (["traffic.undrivable='ignore'"], "traffic.undrivable", ["refuse", "leave_out"]),
    (["traffic.gravity_constraint='triply'"], "traffic.gravity_constraint", ["doubly", "singly"]),
    (["traffic.trip_columns={from='a'}"], "traffic.trip_columns.from", ["unknown key"]),
    (["traffic.trip_columns={from_s='a'}"], "traffic.trip_columns.from_s", ["from_s and to_s need each other"]),
    (
        ["traffic.trip_columns={from_s='a', to_s='b', departure_s='c'}"],
        "traffic.trip_columns.departure_s",
        ["give either departure_s, or from_s and to_s"],
    ),
]


@pytest.fixture(autouse=True)
def _files(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text("some text")


@pytest.mark.parametrize(("overrides", "path", "words"), SPOILED, ids=[str(number) for number in range(len(SPOILED))])
def test_each_invalid_trip_section_gives_one_fault(load, only_fault, overrides, path, words):
    only_fault(lambda: load(overrides=overrides), path, *words)


@pytest.mark.parametrize("trips", ["trips.csv", ["trips.csv"], ["trips.csv", "more.rou.xml"]])
def test_one_or_several_trip_files_round_trip(load, valid_text, tmp_path, reloaded, trips):
    text = valid_text.replace("vehicles = 50", f'demand = "trips"\ntrips = {json.dumps(trips)}\nshare = 2.5')
    read = load(text)
    assert read.traffic.vehicles is None
    listed = [read.traffic.trips] if isinstance(trips, str) else list(read.traffic.trips)
    assert listed == [str(tmp_path / name) for name in ([trips] if isinstance(trips, str) else trips)]
    assert reloaded(read).traffic == read.traffic
    found = {file.name for _, file in scenarios.files_of(read.traffic)}
    assert found == {file.rpartition("/")[2] for file in listed}


def test_zone_demand_needs_no_vehicle_number(load, valid_text):
    read = load(valid_text.replace("vehicles = 50", 'demand = "gravity"\nzones = "zones.csv"\nshare = 0.5'))
    assert read.traffic.gravity_constraint == "doubly"


def test_columns_of_a_trip_table_are_read(load, valid_text):
    given = 'demand = "trips"\ntrips = "trips.csv"\ntrip_columns = {origin = "von", trips = "zahl"}'
    read = load(valid_text.replace("vehicles = 50", given))
    assert read.traffic.trip_columns.mapping() == {"origin": "von", "trips": "zahl"}
