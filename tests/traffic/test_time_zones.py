"""Time zones of recorded times: every form of ISO 8601, and no file in which only some times have a zone."""

import itertools
from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest

from simulator.files.errors import InputError
from simulator.files.messages import texts_of, warnings_among
from simulator.files.tables import FileFormat
from simulator.files.times import Times, moment_of
from simulator.formats.recordings import read_trace
from simulator.formats.recordings.owners import OwnerOptions, read_owners

ZONES = {
    "": 0, "Z": 0, "z": 0, "+00": 0, "+01": 60, "+1": 60, "-8": -480, "+5:30": 330,
    "-08": -480, "+0100": 60, "-0330": -210, "+05:30": 330, "-09:30": -570,
}  # fmt: skip
"""A zone as it is written, and its minutes east of UTC."""
CLOCKS = ("23:59:58", "23:59:58.250", "23:59:58 ")
WRITTEN = [
    f"2008-02-03{between}{clock}{zone}"
    for between, clock, zone in itertools.product("Tt ", CLOCKS, ZONES)
    if zone or clock.strip() == clock
]


def moment(text):
    """Read a time by the standard library, which needs upper case and two digits of minutes."""
    day, clock = text[:10], text[11:].upper()
    digits = clock[: 12 if "." in clock else 8]
    zone = clock[len(digits) :].strip()
    east = timedelta(minutes={name.upper(): minutes for name, minutes in ZONES.items()}[zone])
    return datetime.fromisoformat(f"{day}T{digits}").replace(tzinfo=timezone(east)).timestamp()


@pytest.mark.parametrize("text", WRITTEN)
def test_time_is_read_with_or_without_zone(text):
    read = Times.from_column(pd.Series([text, text]))
    assert read.seconds.tolist() == [moment(text)] * 2
    assert read.naive == (not any(text.endswith(zone) for zone in ZONES if zone))
    assert moment_of(text) == moment(text)


@pytest.mark.parametrize("day", ["2008-02-03", "2008/02/03", "2008-02"])
def test_the_end_of_a_date_is_no_zone(day):
    read = Times.from_column(pd.Series([day]))
    assert read.naive
    assert read.seconds[0] == datetime(2008, 2, 1 if day == "2008-02" else 3, tzinfo=UTC).timestamp()


MIXED = ["2008-02-03T10:00:00", "2008-02-03T10:05:00+01", "2008-02-03T10:10:00Z", "2008-02-03T10:15:00"]
FORMS = {
    "csv": ("t.csv", "vehicle,time,lon,lat\n" + "".join(f"a,{at},11.3,44.5\n" for at in MIXED), "lines 2, 5: "),
    "taxi trips": (
        "t.csv",
        ",".join(f"{end}_{what}" for what in ("datetime", "longitude", "latitude") for end in ("pickup", "dropoff"))
        + f"\n{MIXED[1]},{MIXED[3]},11.3,11.4,44.5,44.5\n",
        "line 2: ",
    ),
    "gpx": (
        "t.gpx",
        '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n'
        + "".join(f'<trkpt lat="44.5" lon="11.3"><time>{at.replace("+01", "+01:00")}</time></trkpt>\n' for at in MIXED)
        + "</trkseg></trk></gpx>",
        "lines 2, 5: ",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_recording_with_zones_on_some_times_only_is_refused(form, tmp_path):
    name, text, place = FORMS[form]
    (tmp_path / name).write_text(text)
    message = f"{name}: {place}time must be like the others: some times name a time zone"
    with pytest.raises(InputError, match=message) as told:
        read_trace(tmp_path / name, order="any")
    rule = "as line 3's '2008-02-03T10:05:00+01', and these do not: give all of them one, or none, got '2008-02-03T10:"
    assert form != "csv" or rule in str(told.value)


def owners(folder, moments, **reading):
    (folder / "o.csv").write_text("station,when\n" + "".join(f"s,{at}\n" for at in moments))
    how = {"columns": {"place": "station", "time": "when"}, "format": FileFormat(), **reading}
    return read_owners(folder / "o.csv", OwnerOptions(**how), crs=None)


def test_owners_with_zones_on_some_times_only_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"o\.csv: rows 1, 4: time .* some times name a time zone.*, got '2008-02-03T"):
        owners(tmp_path, MIXED)


def test_owner_times_are_converted_from_their_zones(tmp_path):
    zoned = [text for text in MIXED if text != MIXED[0] and text != MIXED[3]]
    read = owners(tmp_path, [zoned[0].replace("T", "t"), zoned[1].replace("Z", "z")], start="2008-02-03t09:00:00z")
    assert sorted(read.tracks.time_s.tolist()) == [300.0, 4200.0]


@pytest.mark.parametrize("zone", ["+1", "+5:30", "+530", "+05:3", "+053", "+1:", "+", "+001", "+00530"])
def test_zone_detection_agrees_with_the_parser(zone):
    text = pd.Series([f"2008-02-03T10:00:00{zone}", "2008-02-03T10:00:00"])
    parsed = pd.to_datetime(text[:1], format="ISO8601", errors="coerce")[0]
    read = Times.from_text(text)
    assert read.zoned.tolist() == [not pd.isna(parsed) and parsed.tzinfo is not None, False]
    assert read.without_zone.tolist() == [False, bool(read.zoned[0])]


def test_owner_times_without_zone_are_taken_as_utc_with_a_note(tmp_path):
    note = "times without a time zone are taken as UTC"
    naive = [MIXED[0], MIXED[3]]
    read = owners(tmp_path, naive, start="2008-02-03T09:00:00")
    assert sorted(read.tracks.time_s.tolist()) == [3600.0, 4500.0]
    assert sum(note in told for told in texts_of(read.notes())) == 1
    assert not any(note in told for told in texts_of(owners(tmp_path, MIXED[1:3]).notes()))
    with pytest.raises(InputError, match=r"o\.csv: its times name no time zone, so start must name none, got '2008"):
        owners(tmp_path, naive, start="2008-02-03T09:00:00+01:00")


@pytest.mark.parametrize(("zones", "warned"), [(("", "Z"), True), (("", ""), False), (("+01", "Z"), False)])
def test_files_with_and_without_zones_give_a_warning(zones, warned, tmp_path):
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for file, zone in zip(files, zones, strict=True):
        file.write_text(f"vehicle,time,lon,lat\n{file.stem},2008-02-03T10:00:00{zone},11.3,44.5\n")
    found_warnings = texts_of(warnings_among(read_trace(files).left_out))
    assert len(found_warnings) == warned
    if warned:
        assert "first.csv: its times name no time zone" in found_warnings[0]
        assert "second.csv are in UTC" in found_warnings[0]


def fixes_at(folder, clocks, **options):
    """Seconds since 1970 of the fixes of vehicles a, b, …, one list of local times each, interleaved."""
    rows = [
        f"{'ab'[v]},2023-10-29 {at},10,50\n" for together in zip(*clocks, strict=True) for v, at in enumerate(together)
    ]
    (folder / "f.csv").write_text("vehicle,time,lon,lat\n" + "".join(rows))
    return read_trace(folder / "f.csv", **options)


def utc(*clocks):
    return [datetime(2023, 10, 29, *map(int, clock.split(":")), tzinfo=UTC).timestamp() for clock in clocks]


@pytest.mark.parametrize(("order", "newest_first"), [("auto", False), ("auto", True), ("any", False)])
def test_local_times_over_the_end_of_summer_time(tmp_path, order, newest_first):
    local = ["01:58", "02:58", "02:59", "02:00", "02:01", "02:59", "03:05"]
    written = local[::-1] if newest_first else local
    with pytest.raises(InputError, match=r"the clock of vehicle 'a' must not go .*traffic\.time_zone"):
        fixes_at(tmp_path, [written], order=order)
    trace = fixes_at(tmp_path, [written, written], order=order, time_zone="Europe/Berlin")
    expected = [utc("0:00")[0] - 120, *utc("0:58", "0:59", "1:00", "1:01", "1:59", "2:05")]
    assert trace.time_s.tolist() == 2 * expected
    assert trace.left_out == ()


def test_a_log_in_disorder_is_sorted_on_request(tmp_path):
    trace = fixes_at(tmp_path, [["02:58", "02:00", "09:00", "08:30"]], order="any")
    assert trace.time_s.tolist() == utc("2:00", "2:58", "8:30", "9:00")


@pytest.mark.parametrize(
    ("local", "expected"),
    [(["01:58", "02:10", "05:00"], ["0:10", "4:00"]), (["00:00", "02:50", "03:01"], ["1:50", "2:01"])],
)
def test_times_in_the_repeated_hour_are_of_the_nearer_pass(tmp_path, local, expected):
    trace = fixes_at(tmp_path, [local], time_zone="Europe/Berlin")
    assert trace.time_s.tolist()[1:] == utc(*expected)
    assert sum("the end of summer time repeats" in note for note in texts_of(trace.left_out)) == 1


def test_local_times_that_do_not_exist_are_refused(tmp_path):
    (tmp_path / "f.csv").write_text("vehicle,time,lon,lat\na,2024-03-31 01:59,10,50\na,2024-03-31 02:30,10,50\n")
    with pytest.raises(InputError, match=r"line 3: time must be a time that there is.* Europe/Berlin skip.*02:30"):
        read_trace(tmp_path / "f.csv", time_zone="Europe/Berlin")


def test_a_time_zone_is_not_used_for_times_that_name_theirs(tmp_path):
    (tmp_path / "f.csv").write_text("vehicle,time,lon,lat\na,2024-03-31T01:59Z,10,50\n")
    trace = read_trace(tmp_path / "f.csv", time_zone="Europe/Berlin")
    assert texts_of(trace.left_out) == [
        f"{tmp_path / 'f.csv'}: its times are numbers or name their time zone: Europe/Berlin is not used",
    ]


def test_owner_times_are_those_of_a_time_zone(tmp_path):
    zone = "America/New_York"
    read = owners(tmp_path, ["2024-07-01T08:00", "2024-01-01T08:00"], start="2024-01-01T00:00", time_zone=zone)
    assert read.tracks.time_s.tolist() == [8 * 3600.0, 182 * 86400.0 + 7 * 3600.0]
    with pytest.raises(InputError, match=r"row 1: time .* must be a time"):
        owners(tmp_path, ["2024-03-10T02:30", "2024-01-01T08:00"], time_zone=zone)


SECONDS = [*range(0, 600, 10)]
DAYS = [45356.5 + second / 86400 for second in SECONDS]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1.7e9 + t if t < 300 else 1.7e12 + 1000 * t for t in SECONDS], "lines 2, 3.*of the others: seconds and m"),
        ([1.7e9 + t if t < 400 else 1.7e12 + 1000 * t for t in SECONDS], "lines 42, 43.*in the unit of the others"),
        ([1.7e9 + t if t else 0 for t in SECONDS], "line 2: time must be of the size of the others"),  # a missing time
        ([t if t < 300 else 1000 * t for t in SECONDS], "lines 32, 33.*of the size of the others"),
        ([t if t < 590 else 1000 * t for t in SECONDS], ""),  # one late fix is none of another unit
        ([t if t < 300 else t + 86_400 for t in SECONDS], ""),
        ([1.7e12 + 1000 * t for t in SECONDS], ""),
    ],
)
def test_numbers_of_several_units_are_refused(times, message, tmp_path):
    rows = "".join(f"a,{at:.0f},{11.5 + 1e-4 * number},48.1\n" for number, at in enumerate(times))
    (tmp_path / "t.csv").write_text("vehicle,time,lon,lat\n" + rows)
    if not message:
        assert len(read_trace(tmp_path / "t.csv")) == len(times)
        return
    with pytest.raises(InputError, match=message):
        read_trace(tmp_path / "t.csv", order="any")


@pytest.mark.parametrize(
    ("times", "refused"),
    [
        (DAYS, True),
        ([round(day, 5) for day in DAYS], True),
        ([day % 1 for day in DAYS], True),
        ([45356.5 + second / 10 for second in SECONDS], False),  # seconds of a day, each tenth
        ([45356.5 + second / 86400 * 1e4 for second in (0, 1, 2, 5)], True),
        ([0.001 * number for number in range(60)], False),
        ([45356.123 + 1.000001 * number for number in range(60)], False),
        ([*range(45356, 45400)], False),
    ],
)
def test_day_numbers_of_spreadsheets_are_refused(times, refused):
    assert Times.from_column(pd.Series(times)).are_day_numbers == refused
