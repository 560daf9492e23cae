"""An invalid recording is refused with file, line or row, and rule."""

from __future__ import annotations

import gzip
import json
import re
import warnings

import geopandas as gpd
import pandas as pd
import pyarrow.parquet as pq
import pytest
import trace_files as files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.files.errors import InputError
from simulator.formats.recorded import read_trace

HEADER = "vehicle,time,lon,lat\n"
FINE = "a,0,11.3,44.5\n"

BROKEN = {
    "empty": ("t.csv", "", "t.csv: it is empty"),
    "header only": ("t.csv", HEADER, "t.csv: it holds no rows"),
    "empty gzip": ("t.csv.gz", "", "t.csv.gz: it is empty"),
    "swapped": (
        "t.csv",
        f"{HEADER}a,0,44.5,116.3\n",
        "line 2: lat must be -90 … 90 degrees; longitude and latitude look swapped",
    ),
    "far east": ("t.csv", f"{HEADER}{FINE}a,1,190,44.5\n", "line 3: lon must be -180 … 180 degrees, got 190"),
    "no place": (
        "t.csv",
        f"{HEADER}{FINE}a,1,,44.5\na,2,x,44.5\n",
        "lines 3, 4: lon and lat must be numbers, got nothing and '44.5'",
    ),
    "decimal comma": (
        "t.csv",
        "vehicle;time;lon;lat\na;0;11,3;44,5\na;1;11.35;44,5\n",
        "line 2: lon and lat must be numbers, got '11,3'",
    ),
    "infinite": ("t.csv", f"{HEADER}{FINE}a,1,inf,44.5\n", "line 3: lon and lat must be numbers"),
    "no time": (
        "t.csv",
        f"{HEADER}{FINE}a,soon,11.3,44.5\n",
        "line 3: time must be a time: ISO 8601 text.*, got 'soon'",
    ),
    "far future": ("t.csv", f"{HEADER}{FINE}a,9e30,11.3,44.5\n", "line 3: time must be within the years to 9999"),
    "nobody": ("t.csv", f"{HEADER}{FINE},1,11.3,44.5\n", "line 3: vehicle must have a name"),
    "blank name": ("t.csv", f"{HEADER}{FINE}  ,1,11.3,44.5\n", "line 3: vehicle must have a name"),
    "many": ("t.csv", HEADER + "a,0,999,1\n" * 50, r"lines 2, 3, .*, 21 … \(50 in all\): lon must be"),
    "too wide": ("t.csv", f"{HEADER}{FINE}a,1,11.3,44.5,9,9\n", "cannot be read as a table: .*line 3"),
    "delimiter": ("t.csv", "vehicle/time/lon/lat\na/0/1/1\n", "is it separated by something else"),
    "unknown": (
        "t.csv",
        "p,q,r,s\n1,2,3,4\n",
        r"vehicle: no column has a known name for it; its columns are 'p', 'q', 'r', 's'",
    ),
    "ambiguous": ("t.csv", "taxi,cab,time,lon,lat\n1,2,3,4,5\n", "vehicle: columns 'taxi', 'cab' are all candidates"),
    "twice": (
        "t.csv",
        "vehicle,time,lon,lat,lat\na,0,1,1,1\n",
        "line 1: columns must differ in name, but 'lat' occurs twice",
    ),
    "binary": ("t.csv", bytes(range(256)) * 4, "t.csv: "),
    "utf-16": ("t.csv", (HEADER + FINE).encode("utf-16"), "t.csv: "),
    "negative speed": ("t.csv", "vehicle,time,lon,lat,speed_mps\na,0,1,1,-3\n", "line 2: speed must not be below 0"),
    "clock": (
        "drive.txt",
        "1,2008-02-02 10:00:00,1,2\n1,2008-02-02 11:00:00,1,2\n1,2008-02-02 10:30:00,1,2\n",
        "drive.txt: line 3: the clock of vehicle '1' must not go back, got 2008-02-02 10:30:00 UTC after line 2's",
    ),
    "not packed": ("t.csv.gz", None, "its name ends in .gz, but it is not gzip"),
    "fcd of roads": ("net.xml", "<net/>", "net.xml: line 1: the file must begin with <fcd-export>, got <net>"),
    "fcd without vehicles": ("f.xml", '<fcd-export><timestep time="0"/></fcd-export>', "f.xml: it holds no vehicle"),
    "fcd clock": (
        "f.xml",
        '<fcd-export>{0}5">{1}\n\n\n{0}4">{1}</fcd-export>'.format(
            '<timestep time="', '<vehicle id="a" x="1" y="9"/></timestep>'
        ),
        "f.xml: line 4: the clock of vehicle 'a' must not go back, got 4 s after line",
    ),
    "fcd in metres": (
        "f.xml",
        '<fcd-export><timestep time="0"><vehicle id="a" x="500" y="900"/></timestep></fcd-export>',
        "f.xml: x and y look like metres: SUMO writes metres of its network",
    ),
    "fcd number": (
        "f.xml",
        '<fcd-export><timestep time="0">\n<vehicle id="a" x="?" y="9"/></timestep></fcd-export>',
        "f.xml: line 2: lon and lat must be numbers, got '[?]'",
    ),
    "fcd nobody": (
        "f.xml",
        '<fcd-export><timestep time="0">\n<vehicle x="1" y="9"/></timestep></fcd-export>',
        "f.xml: line 2: vehicle must have a name",
    ),
    "fcd loose": (
        "f.xml",
        '<fcd-export>\n<vehicle id="a" x="1" y="9"/></fcd-export>',
        "f.xml: line 2: time must be a time: .*, got nothing",
    ),
    "cut xml": ("f.xml", files.sumo_xml()[:300], "f.xml: line .*: not well-formed XML"),
    "bomb": (
        "f.xml",
        '<!DOCTYPE a [<!ENTITY b "bb">]>\n<fcd-export>&b;</fcd-export>',
        "f.xml: line 1: must not declare a document type",
    ),
    "gpx bomb": (
        "f.gpx",
        '<!DOCTYPE a [<!ENTITY b "bb">]>\n<gpx>&b;</gpx>',
        "f.gpx: line 1: must not declare a document type",
    ),
    "deep": ("f.xml", "<fcd-export>" + "<a>" * 5000, "elements must be nested in at most"),
    "gpx without time": (
        "f.gpx",
        re.sub("<time>.*?</time>", "", files.gpx()),
        "f.gpx: lines 4, 5, 6: time must be a time",
    ),
    "gpx without track": ("f.gpx", "<gpx></gpx>", "f.gpx: it holds no point of a track"),
    "cut json": ("f.json", files.deck_json()[:200], "f.json: must be JSON: line"),
    "deep json": ("f.json", "[" * 100_000, "f.json: must be JSON"),
    "json of numbers": ("f.json", "[1, 2]", "f.json: path 1: must be a path of places"),
    "json lengths": (
        "f.json",
        '[{"path": [[1, 2]], "timestamps": [1, 2]}]',
        "f.json: path 1: must be a path .* as many timestamps",
    ),
    "json clock": (
        "f.json",
        '[{"path": [[1, 2], [1, 2]], "timestamps": [2, 1]}]',
        "f.json: path 1: the clock of vehicle 'trip 1' must not go back",
    ),
    "kepler flat": (
        "f.json",
        '{"features": [{"geometry": {"type": "LineString", "coordinates": [[1, 2]]}}]}',
        "f.json: path 1: must be a LineString whose points are .longitude, latitude, altitude, time",
    ),
    "no parquet": ("f.parquet", b"PAR1" + b"\xff" * 40 + b"PAR1", "f.parquet: cannot be read as Parquet"),
    "geolife place": ("f.plt", files.geolife().replace("44.51", "x"), "f.plt: line 8: lon and lat must be numbers"),
    "geolife cut": ("f.plt", "Geolife trajectory\nWGS 84\n", "f.plt: it "),
    "porto places": (
        "t.csv",
        files.porto().replace("[-8.61, 41.14]", "-8.61"),
        r"t.csv: line 2: POLYLINE must be a list of places .longitude, latitude., got '\[-8.61\]'",
    ),
    "porto range": ("t.csv", files.porto().replace("41.14", "141.14"), "t.csv: line 2: lat must be -90"),
    "taxi zones": (
        "t.csv",
        "tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n2019-01-01,2019-01-01,1,2\n",
        "t.csv: its trips are between taxi zones",
    ),
    "prose": ("readme.md", "# A folder of things\n", "its format cannot be recognised"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_fault_has_its_message(tmp_path, case):
    name, content, words = BROKEN[case]
    file = tmp_path / name
    if content is None:
        file.write_bytes(b"plain text")
    else:
        files.written(tmp_path, name, content)
    with pytest.raises(InputError, match=words) as caught:
        read_trace(file)
    assert all(str(file) in fault for fault in caught.value.faults)


def test_truncated_gzip_is_refused(tmp_path):
    whole = gzip.compress(files.taxi_csv().encode() * 50)
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) - 12])
    with pytest.raises(InputError, match=r"t\.csv\.gz: cannot be read: it is incomplete: its gzip ends early"):
        read_trace(tmp_path / "t.csv.gz")


def test_decompression_bomb_is_refused(tmp_path, monkeypatch):
    for module in ("available_memory", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
        monkeypatch.setattr(f"simulator.files.{module}.available_nbytes", lambda: 1 << 20)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((HEADER + "a,0,11.3,44.5\n" * 400_000).encode()))
    with pytest.raises(InputError, match=r"t\.csv\.gz: memory needed to hold the"):
        read_trace(tmp_path / "t.csv.gz")


def test_all_invalid_files_are_reported_together(tmp_path):
    files.written(tmp_path, "a.csv", HEADER + FINE)
    files.written(tmp_path, "b.csv", "")
    files.written(tmp_path, "c.csv", f"{HEADER}x,0,1,100\n")
    with pytest.raises(InputError) as caught:
        read_trace(tmp_path)
    assert len(caught.value.faults) == 2
    with pytest.raises(InputError, match="no such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(InputError, match="the folder holds no file"):
        read_trace(tmp_path / "hollow")


def test_dates_and_relative_times_must_not_be_mixed(tmp_path):
    pair = [files.written(tmp_path, "a.csv", files.taxi_csv()), files.written(tmp_path, "b.csv", HEADER + FINE)]
    with pytest.raises(InputError, match=r"b\.csv: its times are relative, and those of .*a\.csv are dates"):
        read_trace(pair)


def test_files_of_one_vehicle_differ_in_name(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        files.written(tmp_path / folder, "new_x.txt", files.cabspotting("a"))
    with pytest.raises(InputError, match="must differ in name"):
        read_trace([tmp_path / "one", tmp_path / "two"])


def test_missing_named_columns_are_refused(tmp_path):
    file = files.written(tmp_path, "t.csv", HEADER + FINE)
    with pytest.raises(InputError, match="no column 'wo' for lon; its columns are 'vehicle', 'time', 'lon', 'lat'"):
        read_trace(file, columns={"lon": "wo"})
    with pytest.raises(InputError, match="format must be one of auto, csv"):
        read_trace(file, format="excel")


SMALL = {
    "t.csv": files.taxi_csv().encode(),
    "t.csv.gz": gzip.compress(files.taxi_csv().encode(), mtime=0),
    "drive.txt": files.tdrive().encode(),
    "new_a.txt": files.cabspotting("a").encode(),
    "a.gpx": files.gpx().encode(),
    "p.csv": files.porto().encode(),
    "g.plt": files.geolife().encode(),
    "f.xml": files.sumo_xml().encode(),
    "f.csv": files.sumo_csv().encode(),
    "t.json": files.deck_json().encode(),
    "t.geojson": files.kepler_json().encode(),
}


def _mutated(data: st.DataObject, content: bytes) -> bytes:
    spoiled = bytearray(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(len(spoiled) - 1, 0)))
        junk = data.draw(
            st.sampled_from([b"", b"\x00", b"\xff", b"<", b'"', b"-", b"9" * 30, b",", b"\n", b"nan", b"e9"])
        )
        spoiled[at : at + data.draw(st.integers(0, 3))] = junk
    return bytes(spoiled)


@pytest.mark.parametrize("name", SMALL)
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_raise_only_input_errors(tmp_path, name, data):
    file = tmp_path / name
    file.write_bytes(_mutated(data, SMALL[name]))
    try:
        trace = read_trace(file)
    except InputError as error:
        assert error.faults  # noqa: PT017 - either result is allowed, and no other exception
    else:
        frame = trace.frame()
        assert frame[["time_s", "lon", "lat"]].notna().all().all()
        assert frame["lat"].between(-90, 90).all()
        assert (frame.groupby("vehicle")["time_s"].diff().dropna() > 0).all()


@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_parquet_raises_only_input_errors(tmp_path, data):
    whole = tmp_path / "whole.parquet"
    if not whole.is_file():
        files.TIDY.rename(columns={"time_s": "time"}).to_parquet(whole)
    (tmp_path / "t.parquet").write_bytes(_mutated(data, whole.read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.PerformanceWarning)
        try:
            assert len(read_trace(tmp_path / "t.parquet")) > 0
        except InputError as error:
            assert error.faults  # noqa: PT017 - either result is allowed, and no other exception


NOT_PLAIN = {
    "lists": [[1.0, 2.0]],
    "structures": [{"a": 1}],
    "bytes that are no text": [b"\xff\xfe"],
}


@pytest.mark.parametrize("values", NOT_PLAIN.values(), ids=NOT_PLAIN)
@pytest.mark.parametrize("column", ["vehicle", "time", "lon", "lat"])
def test_parquet_columns_of_other_types_raise_only_input_errors(tmp_path, column, values):
    frame = files.TIDY.rename(columns={"time_s": "time"})
    frame.assign(**{column: values * len(frame)}).to_parquet(tmp_path / "t.parquet")
    try:
        assert len(read_trace(tmp_path / "t.parquet")) > 0
    except InputError as error:
        assert error.faults  # noqa: PT017 - either result is allowed, and no other exception


@pytest.mark.parametrize("crs", ["EPSG:4326 x", 5])
def test_geoparquet_in_no_known_system_is_refused(tmp_path, crs):
    points = gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"])
    frame = gpd.GeoDataFrame(files.TIDY[["vehicle", "time_s"]], geometry=points, crs="EPSG:4326")
    frame.to_parquet(tmp_path / "t.parquet")
    stored = pq.read_table(tmp_path / "t.parquet")
    about = json.loads(stored.schema.metadata[b"geo"])
    about["columns"]["geometry"]["crs"] = crs
    stored = stored.replace_schema_metadata({**stored.schema.metadata, b"geo": json.dumps(about).encode()})
    pq.write_table(stored, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_trace(tmp_path / "t.parquet")


def test_number_of_thousands_of_digits_is_refused(tmp_path):
    """Python refuses to convert it, with an exception of its own."""
    spoiled = files.deck_json().replace("11.3", "9" * 5_000, 1)
    assert spoiled != files.deck_json()
    path = files.written(tmp_path, "d.json", spoiled)
    with pytest.raises(InputError, match=r"d\.json: must be JSON: ") as caught:
        read_trace(path)
    assert len(str(caught.value)) < 400


def test_points_in_a_damaged_coordinate_system_raise_an_input_error(tmp_path):
    file = tmp_path / "points.parquet"
    points = gpd.GeoDataFrame({"time_s": [0.0, 1.0]}, geometry=gpd.points_from_xy([13, 13.1], [52, 52]), crs=4326)
    points.to_parquet(file)
    table = pq.read_table(file)
    geo = table.schema.metadata[b"geo"].replace(b'"GeographicCRS"', b'"Geographic"')
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"geo": geo}), file)
    with pytest.raises(InputError, match=r"points\.parquet: cannot be read as Parquet"):
        read_trace(file)
