"""Time zones of recorded times: every form of ISO 8601, and no file in which only some times have a zone."""

import itertools
from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest

from simulator.files.errors import InputError
from simulator.files.messages import warnings_in
from simulator.traffic.static.owners import OwnerOptions, Owners
from simulator.traffic.static.rows import FileFormat
from simulator.traffic.trace import read_trace
from simulator.traffic.trace.times import Times, moment_of

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
    if form == "gpx":
        pytest.importorskip("gpxpy", reason="GPX is read by gpxpy")
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{name}: {place}some times name a time zone") as told:
        read_trace(tmp_path / name, order="any")
    assert form != "csv" or "and these do not: give all of them one, or none, got '2008-02-03T10:00:00'" in str(
        told.value
    )
    (tmp_path / name).write_text(text.replace("+01:00", "Z").replace("+01", "Z").replace("Z", ""))
    trace = read_trace(tmp_path / name, order="any")
    assert "times without a time zone are taken as UTC" in trace.left_out


def owners(folder, moments, **reading):
    (folder / "o.csv").write_text("station,when\n" + "".join(f"s,{at}\n" for at in moments))
    how = {"columns": {"place": "station", "time": "when"}, "format": FileFormat(), **reading}
    return Owners.from_file(folder / "o.csv", OwnerOptions(**how), crs=None)


def test_owners_with_zones_on_some_times_only_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"o\.csv: rows 1, 4: time .* some times name a time zone.*, got '2008-02-03T"):
        owners(tmp_path, MIXED)


def test_owner_times_are_converted_from_their_zones(tmp_path):
    zoned = [text for text in MIXED if text != MIXED[0] and text != MIXED[3]]
    read = owners(tmp_path, [zoned[0].replace("T", "t"), zoned[1].replace("Z", "z")], start="2008-02-03t09:00:00z")
    assert sorted(read.arrive_s.tolist()) == [300.0, 4200.0]


@pytest.mark.parametrize(
    "zone", ["+1", "-5", "+5:30", "+530", "+05:3", "+1:5", "+053", "+1:", "+", "+01:", "+001", "+00530"]
)
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
    assert sorted(read.arrive_s.tolist()) == [3600.0, 4500.0]
    assert sum(note in told for told in read.notes()) == 1
    assert not any(note in told for told in owners(tmp_path, MIXED[1:3]).notes())
    with pytest.raises(InputError, match=r"o\.csv: its times name no time zone, so start must name none, got '2008"):
        owners(tmp_path, naive, start="2008-02-03T09:00:00+01:00")


@pytest.mark.parametrize(("zones", "warned"), [(("", "Z"), True), (("", ""), False), (("+01", "Z"), False)])
def test_files_with_and_without_zones_give_a_warning(zones, warned, tmp_path):
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for file, zone in zip(files, zones, strict=True):
        file.write_text(f"vehicle,time,lon,lat\n{file.stem},2008-02-03T10:00:00{zone},11.3,44.5\n")
    found_warnings = warnings_in(read_trace(files).left_out)
    assert len(found_warnings) == warned
    if warned:
        assert "first.csv: its times name no time zone" in found_warnings[0]
        assert "second.csv are in UTC" in found_warnings[0]
