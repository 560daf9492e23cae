"""For any file content a loader returns a table or raises an InputError."""

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.datasets.loader import reader_of
from simulator.files.errors import InputError

COUNTS = b"""station,district,route,direction,type,hour,lanes,median_flow,avg_flow,sd_flow,median_speed,median_occup,\
days_observed,abs_pm,latitude,longitude
400000,4,101,S,ML,0.0,4.0,7.0,7.8,6.5,69.0,0.1,73,459,38.0,-122.5
"""
PATIENTS = b"""event,age,menopause,tumor-size,inv-nodes,node-caps,deg-malig,breast,breast-quad,irradiat
no-recurrence-events,30-39,premeno,30-34,0-2,no,3,left,left_low,no
"""
ROUTES = b"""<routes><vehicle id="a" depart="3"><route edges="e1 e2"/></vehicle>
<trip id="b" depart="4" from="x" to="y"/></routes>
"""
FILES = {
    "check_ins": (b"7\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5\n8\t2010-10-19 23:55:27+0000\t40.7\t-73.8\t6\n", "a.txt"),
    "places": (b"5\tJoe's\t40.6\t-73.7\n6\tBar\t40.7\t-73.8\n", "a.csv"),
    "five_minutes": (
        b"5 Minutes,Lane 1 Flow (Veh/5 Minutes),# Lane Points,% Observed\n04/01/2016 0:00,12,1,100\n",
        "a.csv",
    ),
    "counts": (COUNTS, "a.csv"),
    "sensors": (b"index,sensor_id,latitude,longitude\n0,773869,34.15,-118.3\n", "a.csv"),
    "sensor_distances": (b"from,to,cost\n73,5,352.6\n", "a.csv"),
    "patients": (PATIENTS, "a.data"),
    "drive_nodes": (b"idx,osm_idx,lat,lon\n1,42421728,40.79,-73.96\n", "a.csv"),
    "drive_edges": (
        b"src,dst,length,highway,maxspeed,lanes,oneway,speed_kph,capacity_vph\n1,2,85.3,primary,25.0,1,False,25,1800\n",
        "a.csv",
    ),
    "gmns_table": (b"node_id,x_coord,y_coord\n1,3.0,51.8\n", "a.csv"),
    "sumo_vehicles": (ROUTES, "a.rou.xml"),
    "traces": (b"time,vehicle,lon,lat,speed_mps\n0,a,11,44,5\n10,a,11.1,44,6\n", "a.csv"),
    "tntp_trips": (
        b"<NUMBER OF ZONES> 2\n<TOTAL OD FLOW> 3.0\n<END OF METADATA>\nOrigin 1\n2 : 3.0;\n",
        "a.tntp",
    ),
}


@st.composite
def broken(draw, whole):
    """A file cut short, with bytes replaced, put in or taken out."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(
            st.sampled_from([b"\x00", b"\xff\xfe", b"\n", b",", b"\t", b'"', b"<", b"-", b"1e999", b"nan", b"9" * 25])
        )
        match draw(st.sampled_from(["cut", "put", "take", "replace"])):
            case "cut":
                del data[place:]
            case "put":
                data[place:place] = piece
            case "take":
                del data[place : place + 5]
            case _:
                data[place : place + 1] = piece
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("loader", FILES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_raise_only_input_errors(loader, data, tmp_path):
    whole, name = FILES[loader]
    path = tmp_path / name
    path.write_bytes(data.draw(broken(whole)))
    try:
        frame, notes = reader_of(loader)(path)
    except InputError as error:
        handled = all(name in fault for fault in error.faults)
    else:
        handled = len(frame.columns) > 1 and all(isinstance(note, str) for note in notes)
    assert handled


@pytest.mark.parametrize("loader", [name for name in FILES if FILES[name][1].endswith((".csv", ".txt"))])
def test_truncated_gzip_raises_an_input_error(loader, tmp_path):
    whole, name = FILES[loader]
    path = tmp_path / f"{name}.gz"
    packed = gzip.compress(whole)
    for junk in (packed[:-6], packed[: len(packed) // 2], whole, b"", packed[:4]):
        path.write_bytes(junk)
        with pytest.raises(InputError, match=name):
            reader_of(loader)(path)


@pytest.mark.parametrize("loader", FILES)
def test_missing_file_or_folder_raises_an_input_error(loader, tmp_path):
    for path in (tmp_path / FILES[loader][1], tmp_path):
        with pytest.raises(InputError, match=path.name):
            reader_of(loader)(path)
