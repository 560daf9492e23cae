"""Each fault of a recording, in any format, is refused with file, line, row or path, and rule."""

from __future__ import annotations

import gzip
import json
import re

import geopandas as gpd
import pyarrow.parquet as pq
import pytest
import trace_files as files

from simulator.files.errors import InputError
from simulator.formats.recordings import read_trace

NO_LON = "f.gpx: line 5: lon must be a finite number, got "
HEADER = "vehicle,time,lon,lat\n"
FINE = "a,0,11.3,44.5\n"


def fcd(vehicle, time='time="0"'):
    """Floating-car data of SUMO with one vehicle, in line 2."""
    return f"<fcd-export><timestep {time}>\n<vehicle {vehicle}/></timestep></fcd-export>"


def paths(*paths):
    """Timed paths of places and times."""
    return json.dumps([{"path": places, "timestamps": times} for places, times in paths])


CLOCK = "1,2008-02-02 10:00:00,1,2\n1,2008-02-02 11:00:00,1,2\n1,2008-02-02 10:30:00,1,2\n"
LATER = '<fcd-export>{0}5">{1}\n\n\n{0}4">{1}</fcd-export>'.format(
    '<timestep time="', '<vehicle id="a" x="1" y="9"/></timestep>'
)
FLAT = '{"features": [{"geometry": {"type": "LineString", "coordinates": [[1, 2]]}}]}'
TAXI_ZONES = "tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n2019-01-01,2019-01-01,1,2\n"
GPX = files.gpx()

MALFORMED = {
    "empty": ("t.csv", "", "t.csv: it is empty"),
    "header only": ("t.csv", HEADER, "t.csv: it holds no rows"),
    "swapped": (
        "t.csv",
        f"{HEADER}a,0,44.5,116.3\n",
        "line 2: lat must be degrees.* lon and lat swapped., got '116.3'",
    ),
    "far east": ("t.csv", f"{HEADER}{FINE}a,1,190,44.5\n", "line 3: lon must be degrees from -180 to 180, got '190.0'"),
    "no place": ("t.csv", f"{HEADER}{FINE}a,1,,44.5\na,2,x,44.5\n", "lines 3, 4: lon must be a finite number, got NaN"),
    "decimal comma": ("t.csv", "vehicle;time;lon;lat\na;0;11,3;44,5\na;1;11.35;44,5\n", "line 2: lon .*, got '11,3'"),
    "infinite": ("t.csv", f"{HEADER}{FINE}a,1,inf,44.5\n", "line 3: lon must be a finite number, got 'inf'"),
    "no time": ("t.csv", f"{HEADER}{FINE}a,soon,11.3,44.5\n", "line 3: time must be a time: ISO 8601 .*, got 'soon'"),
    "far future": ("t.csv", f"{HEADER}{FINE}a,9e30,11.3,44.5\n", "line 3: time must be within the years to 9999"),
    "no vehicle": ("t.csv", f"{HEADER}{FINE},1,11.3,44.5\n", "line 3: vehicle must be the name of a vehicle"),
    "blank name": ("t.csv", f"{HEADER}{FINE}  ,1,11.3,44.5\n", "line 3: vehicle must be the name of a vehicle"),
    "many": ("t.csv", HEADER + "a,0,999,1\n" * 50, r"lines 2, 3, .*, 21 … \(50 in all\): lon must be"),
    "too wide": ("t.csv", f"{HEADER}{FINE}a,1,11.3,44.5,9,9\n", "cannot be read as a table: .*line 3"),
    "delimiter": ("t.csv", "vehicle/time/lon/lat\na/0/1/1\n", "is it separated by something else"),
    "unknown": ("t.csv", "p,q\n1,2\n", r"vehicle: no column has a known name for it; its columns are 'p', 'q'"),
    "ambiguous": ("t.csv", "taxi,cab,time,lon,lat\n1,2,3,4,5\n", "vehicle: columns 'taxi', 'cab' are all candidates"),
    "twice": ("t.csv", "vehicle,time,lon,lat,lat\na,0,1,1,1\n", "line 1: columns must differ.* 'lat' occurs twice"),
    "binary": ("t.csv", bytes(range(256)) * 4, "t.csv: "),
    "utf-16": ("t.csv", (HEADER + FINE).encode("utf-16"), "t.csv: "),
    "no number": (
        "t.csv",
        "vehicle,time,lon,lat,speed_mps\na,0,1,1,fast\n",
        "line 2: speed_mps must be a .* got 'fast'",
    ),
    "no speed": ("t.csv", "vehicle,time,lon,lat,speed_mps\na,0,1,1,-3\n", "line 2: speed_mps must be a .* 0 or more"),
    "clock": ("d.txt", CLOCK, "line 3: the clock of vehicle '1' must not go back, got .* UTC after line 2's .* sorts"),
    "fcd of roads": ("net.xml", "<net/>", "net.xml: line 1: the file must begin with <fcd-export>, got <net>"),
    "fcd without vehicles": ("f.xml", '<fcd-export><timestep time="0"/></fcd-export>', "f.xml: it holds no vehicle"),
    "fcd clock": ("f.xml", LATER, "f.xml: line 4: the clock of vehicle 'a' must not go back, got 4 s after line"),
    "fcd in metres": ("f.xml", fcd('id="a" x="500" y="900"'), "f.xml: x and y look like metres: SUMO writes metres of"),
    "fcd number": ("f.xml", fcd('id="a" x="?" y="9"'), "f.xml: line 2: lon .column 'vehicle_x'. .*, got '[?]'"),
    "fcd without a vehicle": (
        "f.xml",
        fcd('x="1" y="9"'),
        "f.xml: line 2: vehicle .column 'vehicle_id'. must be the n",
    ),
    "fcd without a time": ("f.xml", fcd('id="a" x="1" y="9"', ""), "line 2: time .column 'timestep_time'. .*, got NaN"),
    "cut xml": ("f.xml", files.sumo_xml()[:300], "f.xml: line .*: not well-formed XML"),
    "bomb": (
        "f.xml",
        '<!DOCTYPE a [<!ENTITY b "bb">]>\n<fcd-export>&b;</fcd-export>',
        "must not declare a document type",
    ),
    "gpx bomb": ("f.gpx", '<!DOCTYPE a [<!ENTITY b "bb">]>\n<gpx>&b;</gpx>', "must not declare a document type"),
    "gpx without time": ("f.gpx", re.sub("<time>.*?</time>", "", GPX), "f.gpx: lines 4, 5, 6: time must be a time"),
    "gpx without track": ("f.gpx", "<gpx></gpx>", "f.gpx: it holds no point of a track"),
    "gpx east": ("f.gpx", GPX.replace('lon="11.31"', 'lon="east"'), f"{NO_LON}'east'"),
    "gpx half a place": ("f.gpx", GPX.replace('lon="11.31"', ""), f"{NO_LON}NaN or nothing"),
    "gpx blank place": ("f.gpx", GPX.replace('lat="44.51"', 'lat=""'), NO_LON.replace("lon", "lat")),
    "cut json": ("f.json", files.deck_json()[:200], "f.json: must be JSON: line"),
    "deep json": ("f.json", "[" * 100_000, "f.json: must be JSON"),
    "json digits": ("f.json", files.deck_json().replace("11.3", "9" * 5_000, 1), "f.json: must be JSON: .{1,300}$"),
    "json of numbers": ("f.json", "[1, 2]", "f.json: path 1: must be a path of places"),
    "json lengths": ("f.json", paths(([[1, 2]], [1, 2])), "f.json: path 1: must be a path .* as many timestamps"),
    "json places": (
        "f.json",
        paths(([[1, 2], [1, 2]], [1, 2]), ([[1, 99], [1, 98]], [1, 2])),
        "f.json: path 2: lat must be degrees .* are lon and lat swapped., got '99'",
    ),
    "json clock": (
        "f.json",
        paths(([[1, 2], [1, 2]], [2, 1])),
        "f.json: path 1: the clock of vehicle 'trip 1' must not",
    ),
    "kepler flat": ("f.json", FLAT, "path 1: must be a LineString whose points are .longitude, latitude, altitude, t"),
    "no parquet": ("f.parquet", b"PAR1" + b"\xff" * 40 + b"PAR1", "f.parquet: cannot be read as Parquet"),
    "geolife place": ("f.plt", files.geolife().replace("44.51", "x"), "f.plt: line 8: lat must be a finite number"),
    "geolife cut": ("f.plt", "Geolife trajectory\nWGS 84\n", "f.plt: it "),
    "porto places": ("t.csv", files.porto().replace("[-8.61, 41.14]", "-8.61"), r"line 2: POLYLINE must be a list of"),
    "porto range": ("t.csv", files.porto().replace("41.14", "141.14"), "t.csv: line 2: lat must be degrees from"),
    "taxi zones": ("t.csv", TAXI_ZONES, "t.csv: its trips are between taxi zones"),
    "prose": ("readme.md", "# A folder of things\n", "its format cannot be recognised"),
    "cut gzip": (
        "t.csv.gz",
        gzip.compress(files.taxi_csv().encode() * 50)[:-12],
        "it is incomplete: its gzip ends early",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_each_fault_has_its_message(tmp_path, case):
    name, content, words = MALFORMED[case]
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        files.written(tmp_path, name, content)
    with pytest.raises(InputError, match=words) as caught:
        read_trace(file)
    assert all(str(file) in fault for fault in caught.value.faults)


def test_decompression_bomb_is_refused(tmp_path, monkeypatch):
    for module in ("resources", "compressed_io"):
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


@pytest.mark.parametrize("crs", ["EPSG:4326 x", 5, {"type": "Geographic"}], ids=str)
def test_geoparquet_in_no_known_system_is_refused(tmp_path, crs):
    points = gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"])
    frame = gpd.GeoDataFrame(files.TIDY[["vehicle", "time_s"]], geometry=points, crs="EPSG:4326")
    frame.to_parquet(tmp_path / "t.parquet")
    stored = pq.read_table(tmp_path / "t.parquet")
    about = json.loads(stored.schema.metadata[b"geo"])
    given = about["columns"]["geometry"]
    given["crs"] = given["crs"] | crs if isinstance(crs, dict) else crs
    stored = stored.replace_schema_metadata({**stored.schema.metadata, b"geo": json.dumps(about).encode()})
    pq.write_table(stored, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_trace(tmp_path / "t.parquet")
