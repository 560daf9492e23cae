"""Each fault of a recording, in any format, is refused with file, line, row or path, and rule."""

from __future__ import annotations

import gzip
import re

import pytest
import trace_files as files

from simulator.files.errors import InputError
from simulator.formats.recordings import read_trace

NO_LON = "f.gpx: line 5: lon must be a finite number, got "
HEADER = "vehicle,time,lon,lat\n"
FINE = "a,0,11.3,44.5\n"

MALFORMED = {
    "empty": ("t.csv", "", "t.csv: it is empty"),
    "header only": ("t.csv", HEADER, "t.csv: it holds no rows"),
    "empty gzip": ("t.csv.gz", "", "t.csv.gz: it is empty"),
    "swapped": (
        "t.csv",
        f"{HEADER}a,0,44.5,116.3\n",
        "line 2: lat must be degrees from -90 to 90; are lon and lat swapped., got '116.3'",
    ),
    "far east": ("t.csv", f"{HEADER}{FINE}a,1,190,44.5\n", "line 3: lon must be degrees from -180 to 180, got '190.0'"),
    "no place": (
        "t.csv",
        f"{HEADER}{FINE}a,1,,44.5\na,2,x,44.5\n",
        "lines 3, 4: lon must be a finite number, got NaN or nothing",
    ),
    "decimal comma": (
        "t.csv",
        "vehicle;time;lon;lat\na;0;11,3;44,5\na;1;11.35;44,5\n",
        "line 2: lon must be a finite number, got '11,3'",
    ),
    "infinite": ("t.csv", f"{HEADER}{FINE}a,1,inf,44.5\n", "line 3: lon must be a finite number, got 'inf'"),
    "no time": (
        "t.csv",
        f"{HEADER}{FINE}a,soon,11.3,44.5\n",
        "line 3: time must be a time: ISO 8601 text.*, got 'soon'",
    ),
    "far future": ("t.csv", f"{HEADER}{FINE}a,9e30,11.3,44.5\n", "line 3: time must be within the years to 9999"),
    "no vehicle": ("t.csv", f"{HEADER}{FINE},1,11.3,44.5\n", "line 3: vehicle must be the name of a vehicle"),
    "blank name": ("t.csv", f"{HEADER}{FINE}  ,1,11.3,44.5\n", "line 3: vehicle must be the name of a vehicle"),
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
    "no speed": (
        "t.csv",
        "vehicle,time,lon,lat,speed_mps\na,0,1,1,fast\n",
        "line 2: speed_mps must be a finite number, 0 or more, got 'fast'",
    ),
    "negative speed": (
        "t.csv",
        "vehicle,time,lon,lat,speed_mps\na,0,1,1,-3\n",
        "line 2: speed_mps must be a finite number, 0 or",
    ),
    "clock": (
        "drive.txt",
        "1,2008-02-02 10:00:00,1,2\n1,2008-02-02 11:00:00,1,2\n1,2008-02-02 10:30:00,1,2\n",
        "drive.txt: line 3: the clock of vehicle '1' must not go back, got .* 10:30:00 UTC after line 2's .* sorts",
    ),
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
        "f.xml: line 2: lon .column 'vehicle_x'. must be a finite number, got '[?]'",
    ),
    "fcd without a vehicle": (
        "f.xml",
        '<fcd-export><timestep time="0">\n<vehicle x="1" y="9"/></timestep></fcd-export>',
        "f.xml: line 2: vehicle .column 'vehicle_id'. must be the name of a vehicle",
    ),
    "fcd loose": (
        "f.xml",
        '<fcd-export>\n<vehicle id="a" x="1" y="9"/></fcd-export>',
        "f.xml: line 2: time .column 'timestep_time'. must be a time: .*, got NaN or nothing",
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
    "json places": (
        "f.json",
        '[{"path": [[1, 2], [1, 2]], "timestamps": [1, 2]}, {"path": [[1, 99], [1, 98]], "timestamps": [1, 2]}]',
        "f.json: path 2: lat must be degrees from -90 to 90; are lon and lat swapped., got '99'",
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
    "geolife place": (
        "f.plt",
        files.geolife().replace("44.51", "x"),
        "f.plt: line 8: lat must be a finite number",
    ),
    "geolife cut": ("f.plt", "Geolife trajectory\nWGS 84\n", "f.plt: it "),
    "porto places": (
        "t.csv",
        files.porto().replace("[-8.61, 41.14]", "-8.61"),
        r"t.csv: line 2: POLYLINE must be a list of places .longitude, latitude., got '\[-8.61\]'",
    ),
    "porto range": (
        "t.csv",
        files.porto().replace("41.14", "141.14"),
        "t.csv: line 2: lat must be degrees from",
    ),
    "taxi zones": (
        "t.csv",
        "tpep_pickup_datetime,tpep_dropoff_datetime,PULocationID,DOLocationID\n2019-01-01,2019-01-01,1,2\n",
        "t.csv: its trips are between taxi zones",
    ),
    "prose": ("readme.md", "# A folder of things\n", "its format cannot be recognised"),
    "gpx east": ("f.gpx", files.gpx().replace('lon="11.31"', 'lon="east"'), f"{NO_LON}'east'"),
    "gpx half a place": ("f.gpx", files.gpx().replace('lon="11.31"', ""), f"{NO_LON}NaN or nothing"),
    "gpx blank place": ("f.gpx", files.gpx().replace('lat="44.51"', 'lat=""'), NO_LON.replace("lon", "lat")),
    "json digits": ("f.json", files.deck_json().replace("11.3", "9" * 5_000, 1), "f.json: must be JSON: .{1,300}$"),
    "cut gzip": (
        "t.csv.gz",
        gzip.compress(files.taxi_csv().encode() * 50)[:-12],
        "t.csv.gz: cannot be read: it is incomplete: its gzip ends early",
    ),
    "not packed": ("t.csv.gz", b"plain text", "its name ends in .gz, but it is not gzip"),
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
