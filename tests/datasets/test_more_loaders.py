"""Loaders of sensors, patients, roads, traces and SUMO files, on synthetic files."""

import gzip

import numpy as np
import pandas as pd
import pytest

from simulator.datasets.loader import reader_of
from simulator.files.errors import InputError

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def read(tmp_path):
    """Write a file and read it by a loader."""

    def call(loader, text, name="file.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return reader_of(loader)(path)

    return call


def test_three_sensor_file_formats_are_read(read):
    kinds = (
        "400001,37.36,-121.9\n400017,37.25,-121.94\n",
        "index,sensor_id,latitude,longitude\n0,400001,37.36,-121.9\n1,400017,37.25,-121.94\n",
        ",ID,Fwy,Dir,District,Latitude,Longitude\n0,400001,5,S,7,37.36,-121.9\n1,400017,5,N,7,37.25,-121.94\n",
    )
    for text in kinds:
        frame, _ = read("sensors", text)
        assert frame["sensor"].tolist() == [400001, 400017]
        assert frame["lat"].tolist() == [37.36, 37.25]
    assert frame["direction"].tolist() == ["S", "N"]
    with pytest.raises(InputError, match="row 2: sensor must be unique"):
        read("sensors", "1,37.36,-121.9\n1,37.25,-121.94\n")
    with pytest.raises(InputError, match="no column 'sensor_id'"):
        read("sensors", "latitude,longitude\n37.36,-121.9\n")


def test_sensor_distances_with_or_without_header(read):
    with_header, notes = read("sensor_distances", "from,to,cost\n1,2,3.5\n1,2,3.5\n2,1,3.5\n")
    assert notes == ["1 rows equal to an earlier one, left out"]
    without, _ = read("sensor_distances", "1,2,3.5\n2,1,3.5\n")
    assert with_header.equals(without)
    assert with_header["distance_m"].tolist() == [3.5, 3.5]


PATIENT = "event,age,menopause,tumor-size,inv-nodes,node-caps,deg-malig,breast,breast-quad,irradiat\n"
ONE = "recurrence-events,30-39,premeno,5-9,0-2,?,3,left,left_low,no\n"


def test_equal_patients_are_kept_and_values_grouped(read):
    frame, notes = read("patients", PATIENT + ONE + ONE, "a.data")
    assert len(frame) == 2
    assert notes == ["2 values are not known"]
    assert frame["node_caps"].isna().all()
    assert frame["recurrence"].all()
    assert len(frame["tumor_size"].cat.categories) == 11
    assert len(frame["age"].cat.categories) == 6
    assert frame["tumor_size"].cat.codes.tolist() == [1, 1]
    row = "'30-39','premeno','5-9','0-2',?,'3','left','left_low','no','recurrence-events'"
    arff = f"% words, with commas\n@relation x\n@data\n{row}\n"
    again, _ = read("patients", arff, "a.arff")
    assert again.equals(frame.head(1))


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (PATIENT + ONE.replace("5-9", "9-May"), "a.data", "row 1: tumor-size must be one of 0-4, 5-9"),
        (PATIENT + ONE.replace(",3,", ",4,"), "a.data", "deg-malig must be a whole number, 1 to 3, got '4'"),
        (PATIENT + ONE.replace("30-39", "?"), "a.data", "age must be one of"),
        (PATIENT + ONE.replace("recurrence-events", "maybe"), "a.data", "event must be one of"),
        (PATIENT.replace("age", "years") + ONE, "a.data", "no column 'age'"),
        ("@relation x\n", "a.arff", "it has no line @data"),
        ("@data\n", "a.arff", "it holds no rows"),
        (
            "@data\n1,2\n",
            "a.arff",
            "row 1: event must be one of no-recurrence-events, recurrence-events, got NaN or nothing",
        ),
    ],
    ids=range(8),
)
def test_invalid_patients_are_refused(read, text, name, words):
    with pytest.raises(InputError) as caught:
        read("patients", text, name)
    assert words in str(caught.value)


def test_drive_edges_use_the_posted_speed(read):
    head = "src,dst,osm_src,osm_dst,length,highway,maxspeed,lanes,oneway,speed_kph,free_flow_time_s,capacity_vph\n"
    rows = "1,2,10,20,160.9344,primary,25.0,2,False,25,23,3600\n2,1,20,10,100,residential,,1,True,36,10,1800\n"
    frame, notes = read("drive_edges", head + rows)
    assert frame["speed_mps"].tolist() == pytest.approx([25 * 0.44704, 10])
    assert frame["free_flow_s"].tolist() == pytest.approx([14.4, 10])
    assert frame["capacity_vph"].tolist() == [1800, 1800]
    assert frame["one_way"].tolist() == [False, True]
    assert notes == ["speeds of 1 edges are maxspeed in mph, of 1 the file's guess in km/h"]
    with pytest.raises(InputError, match="row 2: lanes must be a whole number, 1"):
        read("drive_edges", head + rows.replace(",1,True", ",0,True"))
    with pytest.raises(InputError, match="oneway must be True or False, got 'yes'"):
        read("drive_edges", head + rows.replace("True", "yes"))


def test_trip_that_leaves_new_york_is_dropped(read):
    def trip(*points):
        stamps = [10.0 * place for place in range(len(points))]
        return {"vendor": 0, "path": [list(point) for point in points], "timestamps": stamps}

    inside, near, away = (-73.98, 40.72), (-74.30, 40.72), (-74.31, 40.72)
    text = pd.Series([trip(inside, inside), trip(inside, near), trip(inside, away)]).to_json(orient="values")
    frame, notes = read("timed_paths", text, "t.json.gz")
    assert frame["vehicle"].unique().tolist() == ["trip 1", "trip 2"]
    assert notes == ["trips that leave New York City, left out: trip 3 (2 points)"]


def test_traces_have_dates_if_the_file_has_them(read):
    frame, _ = read("traces", "37.75 -122.39 0 1211033530\n37.76 -122.38 1 1211033630\n", "new_cab.txt")
    assert frame["vehicle"].tolist() == ["cab", "cab"]
    assert frame["time"].tolist() == list(pd.to_datetime([1211033530, 1211033630], unit="s", utc=True))
    frame, _ = read("traces", "time,vehicle,lon,lat,speed_mps\n0,a,11,44,5\n10,a,11.1,44,6\n")
    assert "time" not in frame.columns
    assert frame["time_s"].tolist() == [0, 10]
    with pytest.raises(InputError, match=r"file\.csv"):
        read("traces", "time,vehicle,lon\n0,a,11\n")


def test_truncated_gmns_column_names_are_restored(read):
    text = BOM + b"link_id,from_node_,to_node_id,length,facility_t,name\n1,7,8,12.5, ,\n"
    frame, notes = read("gmns_table", text)
    assert list(frame.columns) == ["link_id", "from_node_id", "to_node_id", "length", "facility_type", "name"]
    assert frame.loc[0, "from_node_id"] == "7"
    assert frame.loc[0, "length"] == 12.5
    assert frame["facility_type"].isna().all()
    assert notes == ["column names cut short are restored: from_node_ is from_node_id, facility_t is facility_type"]
    with pytest.raises(InputError, match="row 1: length must be a finite number, got 'long'"):
        read("gmns_table", text.replace(b"12.5", b"long"))


def test_vehicles_and_trips_of_sumo(read):
    text = """<routes><vType id="car"/>
    <vehicle id="a" depart="3" type="car"><route edges="e1 e2 e3"/><stop busStop="x"/></vehicle>
    <trip id="b" depart="7.5" from="e1" to="e9"/></routes>"""
    frame, _ = read("sumo_vehicles", text, "r.rou.xml.gz")
    assert frame["vehicle"].tolist() == ["a", "b"]
    assert frame["to_edge"].tolist() == ["e3", "e9"]
    assert frame["edges"].iloc[0] == 3
    assert np.isnan(frame["edges"].iloc[1])
    for old, new, words in (
        ('depart="3"', 'depart="soon"', "line 2: depart must be a number of seconds, got 'soon'"),
        ('<route edges="e1 e2 e3"/>', "", "line 2: a vehicle must have a route with edges"),
        ('to="e9"', "", "line 3: a trip must have a from and a to"),
        ('id="b"', 'id="a"', "must occur only once"),
        ("</routes>", "", "not well-formed"),
        ("<routes>", '<!DOCTYPE r [<!ENTITY x "y">]><routes>', "document type"),
    ):
        with pytest.raises(InputError) as caught:
            read("sumo_vehicles", text.replace(old, new), "r.rou.xml")
        assert words in str(caught.value)


@pytest.mark.parametrize("loader", ["tntp_links", "tntp_nodes", "tntp_trips", "tntp_flow", "sumo_links", "osm_roads"])
def test_loaders_from_other_modules_raise_input_errors(read, loader):
    with pytest.raises(InputError, match="junk"):
        read(loader, b"\x00\x01junk", "junk.osm" if loader == "osm_roads" else "junk.xml")
