"""The clock of a run: times of seconds and seconds of times, over midnight and summer time, in every key."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdveil as cv
from scenarios import Scenario, ScenarioError
from scenarios.run_clock import RunClock
from simulator.pages.report import build_report
from simulator.results.tables import with_times

SPRING = RunClock.starting("2026-03-29T01:30", "Europe/Berlin")
AUTUMN = RunClock.starting("2026-10-25T01:30", "Europe/Berlin")


@pytest.mark.parametrize(
    ("clock", "seconds", "text"),
    [
        (RunClock(), 90_061.0, "25:01:01"),
        (RunClock(), None, "–"),
        (RunClock.starting("07:00"), 0.0, "07:00:00"),
        (RunClock.starting("7:00:30"), 90.5, "07:02:00.500000"),
        (RunClock.starting("23:50"), 600.0, "day 2 00:00:00"),
        (RunClock.starting("00:10"), 10 * 86_400.0, "day 11 00:10:00"),
        (RunClock.starting("2026-02-28T23:50"), 600.0, "2026-03-01 00:00:00"),
        (RunClock.starting("2026-02-28T23:50+05:30"), 600.0, "2026-03-01 00:00:00+05:30"),
        (RunClock.starting("2026-02-28T23:50Z", "Asia/Tokyo"), 600.0, "2026-03-01 09:00:00+09:00"),
        (SPRING, 1_799.0, "2026-03-29 01:59:59+01:00"),
        (SPRING, 1_800.0, "2026-03-29 03:00:00+02:00"),
        (AUTUMN, 5_399.0, "2026-10-25 02:59:59+02:00"),
        (AUTUMN, 5_400.0, "2026-10-25 02:00:00+01:00"),
    ],
)
def test_time_of_a_second(clock, seconds, text):
    assert clock.text(seconds) == text
    assert clock.start is None or clock.seconds(clock.text(round(seconds))) == round(seconds)


@pytest.mark.parametrize("clock", [RunClock(), RunClock.starting("23:50"), SPRING, AUTUMN])
def test_times_of_a_table_are_the_texts_of_its_seconds(clock):
    seconds = [1_799.0, 0.5, 1.5, 5_399.5, 1_799.0, 2.499, float("nan"), 1_800.0]
    assert [*with_times(pd.DataFrame({"time_s": seconds}), clock)["time"]] == [*map(clock.text, seconds)]


@pytest.mark.parametrize(
    ("clock", "moment", "seconds"),
    [
        (RunClock.starting("22:00"), "22:00", 0),
        (RunClock.starting("22:00"), "01:00", 3 * 3600),
        (RunClock.starting("22:00"), "day 1 23:00", 3600),
        (RunClock.starting("22:00"), "day 3 01:00:05", 27 * 3600 + 5),
        (SPRING, "04:00", 5_400),
        (SPRING, "2026-03-30T01:30", 23 * 3600),
        (SPRING, "2026-03-29T02:30Z", 7_200),
        (AUTUMN, "02:30", 3_600),
        (AUTUMN, "2026-10-25T02:30+01:00", 7_200),
        (RunClock.starting("2026-10-25T02:58", "Europe/Berlin"), "02:01", 180),
        (RunClock.starting("2026-10-25T02:58", "Europe/Berlin"), "01:00", 23 * 3600 + 120),
        (AUTUMN, "day 2 01:30", 25 * 3600),
    ],
)
def test_second_of_a_moment(clock, moment, seconds):
    assert clock.seconds(moment) == seconds


@given(st.integers(0, 400 * 86_400), st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"]))
def test_text_is_the_time_that_the_zone_has_then(seconds, zone):
    clock = RunClock.starting("2025-12-31T12:00", zone)
    there = datetime.fromisoformat(clock.text(seconds))
    assert there - clock.at(0.0) == timedelta(seconds=seconds)
    assert there.utcoffset() == there.astimezone(UTC).astimezone(ZoneInfo(zone)).utcoffset()
    assert clock.seconds(clock.text(seconds)) == seconds


def test_a_page_is_told_every_change_of_the_offset():
    clock = RunClock.starting("2026-01-01T00:00", "Europe/Berlin")
    parts = clock.of_page(365 * 86_400)["parts"]
    assert [offset for _, _, offset in parts] == ["+01:00", "+02:00", "+01:00"]
    for first, face, offset in parts:
        shown = datetime.fromtimestamp(face + first, UTC).replace(tzinfo=None)
        assert f"{shown}{offset}" == clock.text(first)
        assert first == 0 or clock.text(first - 1)[-6:] != offset


BASE = {
    "scenario": {"name": "clocked", "duration_s": 7200, "start": "22:30"},
    "roads": {"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200},
    "cells": {"kind": "square", "size_m": 400},
    "traffic": {"vehicles": 20},
    "campaigns": [{"name": "one", "start_s": "00:10"}],
    "mechanisms": [{"kind": "no_privacy"}],
}


def test_every_key_of_a_moment_takes_a_time():
    windows = [{"from_s": "22:40", "to_s": "23:30", "share": 1.0}]
    made = Scenario.model_validate(
        {
            **BASE,
            "traffic": {"vehicles": 20, "departures": windows},
            "channel": {"outages": [{"server": 1, "from_s": "23:00", "to_s": "day 2 00:00"}]},
            "fcd": {"every_s": 60, "from_s": "22:31", "to_s": "00:15"},
        }
    )
    assert made.campaigns[0].start_s == 6_000.0
    assert (made.traffic.departures[0].from_s, made.traffic.departures[0].to_s) == (600.0, 3_600.0)
    assert (made.channel.outages[0].from_s, made.channel.outages[0].to_s) == (1_800.0, 5_400.0)
    assert (made.fcd.from_s, made.fcd.to_s) == (60.0, 6_300.0)
    assert made.clock.epoch_s == datetime(2020, 1, 1, 22, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("written", ["23:00", "23:00:00", "1800", 1800])
def test_overrides_and_toml_times_are_moments(written, tmp_path):
    file = tmp_path / "clocked.toml"
    file.write_text(cv.scenarios.dump(Scenario.model_validate(BASE)).replace('"22:30"', "22:30:00"), encoding="utf-8")
    assert cv.scenarios.load(file).scenario.start == "22:30:00"
    assert cv.scenarios.load(file, overrides=[f"campaigns.one.start_s={written}"]).campaigns[0].start_s == 1_800.0
    assert cv.scenarios.load(file, overrides=["scenario.start=2026-01-01"]).clock.text(1.0) == "2026-01-01 00:00:01"


def test_a_file_of_trips_and_a_profile_begin_at_the_start(tmp_path):
    trips = tmp_path / "trips.csv"
    trips.write_text("origin,destination,trips\n1,2,3\n")
    driven = {**BASE, "traffic": {"demand": "trips", "trips": str(trips)}}
    assert Scenario.model_validate(driven).traffic.begin_s == 22.5 * 3600
    assert (
        Scenario.model_validate({**driven, "traffic": {**driven["traffic"], "begin_s": "06:00"}}).traffic.begin_s
        == 21_600
    )
    assert Scenario.model_validate({**driven, "traffic": {**driven["traffic"], "begin_s": 0}}).traffic.begin_s == 0


@pytest.mark.parametrize(
    ("heading", "start_s", "fault"),
    [
        ({"start": None}, "08:00", "campaigns.one.start_s: must be seconds of the run, since scenario.start does not"),
        (
            {},
            "soon",
            'campaigns.one.start_s: must be a time of day, as "08:00", "08:00:30" or "day 2 08:00", or a date',
        ),
        ({}, "25:00", 'campaigns.one.start_s: must be a time of day, as "08:00"'),
        ({}, "day 1 08:00", "campaigns.one.start_s: must not be before the run starts, at 22:30:00"),
        ({}, "2026-01-01T08:00", "campaigns.one.start_s: must be a time of day, as scenario.start is"),
        ({}, "00:40", "it would be at 7830 s (day 2 00:40:30), after scenario.duration_s = 7200 s (day 2 00:30:00)"),
        ({"warmup_s": 600}, "22:35", "must be at least scenario.warmup_s = 600 s (22:40:00): warm-up is without"),
        ({"start": "2026-01-01T22:30"}, "2026-01-01T22:40Z", "must name no time zone, since scenario.start names none"),
        ({"start": "7 am"}, 100, "scenario.start: must be a time of day, as"),
        ({"start": 7}, 100, "scenario.start: must be a text in quotes"),
        ({"time_zone": "Berlin"}, 100, 'scenario.time_zone: must be the name of a time zone, as "Europe/Berlin"'),
        ({"time_zone": "Europe/Berlin"}, 100, "scenario.start: must have a date for time_zone to apply"),
        (
            {"start": "2026-03-29T02:30", "time_zone": "Europe/Berlin"},
            100,
            "scenario.start: must be a time that there is: in Europe/Berlin the clock is put forward over it",
        ),
    ],
)
def test_faults_of_times(heading, start_s, fault):
    heading = {key: value for key, value in {**BASE["scenario"], **heading}.items() if value is not None}
    with pytest.raises(ScenarioError, match=re.escape(fault)):
        Scenario.model_validate({**BASE, "scenario": heading, "campaigns": [{"name": "one", "start_s": start_s}]})


def test_tables_and_the_record_of_a_run_state_times(tmp_path):
    changed = {"scenario.start": "2026-10-25T02:58", "scenario.time_zone": "Europe/Berlin"}
    made = cv.run("tiny", overrides={**changed, "campaigns.occupancy.start_s": "02:59"})
    assert made.record.start == "2026-10-25 02:58:00+02:00"
    stated = ["2026-10-25 02:59:30+02:00", "2026-10-25 02:01:00+01:00"]
    for table in (made.estimates, cv.load(made.save(tmp_path / "run")).estimates):
        assert table["time"].unique().tolist() == stated
        assert table.columns[3] == "time"
    assert [query.time for query in made.record.traffic_at_queries] == [
        "2026-10-25 02:59:00+02:00",
        "2026-10-25 02:00:30+01:00",
    ]
    assert made.entries["time"].iloc[0] == made.record.clock.text(made.entries["time_s"].iloc[0])
    page = build_report(tmp_path / "run")
    assert "2026-10-25 02:59:00+02:00" in page
    assert '"clock":{"dated":true,"parts":[[0,' in page
    assert len(cv.compare(made, cv.run("tiny", overrides={"campaigns.occupancy.start_s": 60})))


@pytest.mark.parametrize(
    ("times", "heading", "starts"),
    [
        (["2008-02-03T07:00:00", "2008-02-03T07:05:00"], {}, "2008-02-03 07:00:00+00:00"),
        (["2008-02-03T07:00:00Z", "2008-02-03T07:05:00Z"], {"time_zone": "Asia/Shanghai"}, "2008-02-03 15:00:00+08:00"),
        (["2008-02-03T07:00:00Z", "2008-02-03T07:05:00Z"], {"start": "2008-02-03T07:01Z"}, "2008-02-03 07:01:00+00:00"),
        (["0", "300"], {"start": "07:00"}, "07:00:00"),
        (["0", "300"], {}, None),
    ],
)
def test_recorded_data_bring_their_own_start(times, heading, starts, tmp_path):
    lines = [f"{time},{11.30 + place / 100},44.5" for place, time in enumerate(times)]
    (tmp_path / "trace.csv").write_text("\n".join(["time,lon,lat", *lines]))
    (tmp_path / "owners.csv").write_text("\n".join(["time,lon,lat", *lines]))
    columns = {"time": "time", "lon": "lon", "lat": "lat"}
    trace = {"engine": "trace", "trace": str(tmp_path / "trace.csv"), "one_vehicle_a_file": True}
    static = {"engine": "static", "owners": str(tmp_path / "owners.csv"), "columns": columns}
    for traffic in (trace, static):
        made = cv.run(
            Scenario.model_validate(
                {
                    **BASE,
                    "scenario": {"name": "recorded", "duration_s": 200, **heading},
                    "roads": {"source": "none"},
                    "traffic": traffic,
                    "campaigns": [{"name": "one", "start_s": 120}],
                }
            )
        )
        assert made.record.start == starts
        assert made.estimates["time"].unique().tolist() == [made.record.clock.text(made.estimates["time_s"].iloc[0])]


@pytest.mark.parametrize(
    ("heading", "traffic", "fault"),
    [
        ({"start": "07:00"}, {}, "scenario.start: must be left out, or be second 0 of the recorded data, which is"),
        ({"start": "2008-02-03T07:00"}, {"start": "2008-02-03T07:01"}, "which is 2008-02-03 07:01:00+00:00"),
    ],
)
def test_a_start_against_the_recording_is_refused(heading, traffic, fault, tmp_path):
    (tmp_path / "trace.csv").write_text("time,lon,lat\n2008-02-03T07:00:00,11.3,44.5\n2008-02-03T07:05:00,11.31,44.5\n")
    replayed = {"engine": "trace", "trace": str(tmp_path / "trace.csv"), "one_vehicle_a_file": True, **traffic}
    changed = {
        **BASE,
        "scenario": {"name": "recorded", "duration_s": 200, **heading},
        "roads": {"source": "none"},
        "traffic": replayed,
        "campaigns": [{"name": "one", "start_s": 120}],
    }
    with pytest.raises(ScenarioError, match=re.escape(fault)):
        cv.run(Scenario.model_validate(changed))


def test_a_time_zone_without_a_start_is_refused():
    with pytest.raises(ScenarioError, match=r"scenario\.time_zone: needs scenario\.start, or recorded times"):
        cv.run("tiny", overrides={"scenario.time_zone": "Europe/Berlin"})
