"""Loaders on synthetic files: each known defect by its rule, each invalid row by its number."""

import gzip

import numpy as np
import pandas as pd
import pytest

from simulator.datasets.loader import reader_of
from simulator.files.errors import InputError

BOM = b"\xef\xbb\xbf"
PEMS = (
    "station,district,route,direction,type,hour,lanes,median_flow,avg_flow,sd_flow,median_speed,avg_speed,sd_speed,"
    "median_occup,avg_occup,sd_occupancy,days_observed,state_pm,abs_pm,latitude,longitude,year\n"
)


def pems_row(station=1, hour=0, lanes=4, flow=10, days=60, lat="38.0", lon="-122.0", speed="60"):
    measured = f"{flow},{flow},2.5,{speed},{speed},1,0.5,0.5,0.1"
    return f"{station},4,101,S,ML,{hour},{lanes},{measured},{days},1,10,{lat},{lon},2019\n"


@pytest.fixture
def read(tmp_path):
    """Write a file and read it by a loader."""

    def call(loader, text, name="file.csv"):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return reader_of(loader)(path)

    return call


def test_check_ins(read):
    lines = [
        "7\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5",
        "7\t2010-10-19 23:55:27+0000\t40.7\t-73.8\t6",
        "8\t2010-10-20T01:00:00+02:00\t40.7\t-73.8\t6",
    ]
    frame, notes = read("check_ins", "\n".join(lines) + "\n", "a.csv.gz")
    assert list(frame.columns) == ["user", "time", "lon", "lat", "place"]
    assert frame["time"].tolist() == list(
        pd.to_datetime(["2010-10-12 00:21:28", "2010-10-19 23:55:27", "2010-10-19 23:00:00"], utc=True)
    )
    assert frame["user"].tolist() == [7, 7, 8]
    assert frame["lon"].tolist() == [-73.7, -73.8, -73.8]
    assert notes == []


def test_duplicate_check_ins_and_moved_places_are_cleaned(read):
    at = "1\t2010-10-12T00:0{}:00Z\t{}\t-73.7\t5\n"
    text = at.format(1, 40.61) + at.format(2, 40.6) + at.format(3, 40.6) + at.format(2, 40.6) + at.format(4, 40.61)
    frame, notes = read("check_ins", text)
    assert frame["time"].dt.minute.tolist() == [1, 2, 3, 4]
    assert (frame["lat"] == 40.61).all(), "equally common, once the repeated row is gone: the first in the file"
    assert notes == [
        "1 rows equal to an earlier one, left out",
        "1 places with more than one coordinate take the most frequent one: replaced in 2 rows",
    ]
    frame, _ = read("check_ins", text + at.format(5, 40.6))
    assert (frame["lat"] == 40.6).all(), "the most frequent one"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("x\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5", "row 2: user must be a whole number"),
        ("1\tyesterday\t40.6\t-73.7\t5", "row 2: time must be a time such as 2010-10-12T00:21:28Z, got 'yesterday'"),
        ("1\t2010-10-12T00:21:28Z\t-73.7\t140.6\t5\t6", "cannot be read as a table"),
        ("1\t2010-10-12T00:21:28Z\t140.6\t-73.7\t5", "row 2: lat must be a finite number, -90 to 90, got '140.6'"),
        (
            "1\t2010-10-12T00:21:28Z\t40.6\t-73.7",
            "row 2: place must be a whole number, 0 or more, got NaN or nothing",
        ),
        ("1,2010-10-12T00:21:28Z,40.6,-73.7,5", "row 2: user must be a whole number"),
        ("", "row 2: user must be a whole number"),
        ("1\t2010-10-12T00:21:28Z\tnan\t-73.7\t5", "lat must be a finite number"),
        ("1\t2010-10-12T00:21:28Z\tinf\t-73.7\t5", "lat must be a finite number"),
        ("1.5\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5", "user must be a whole number"),
    ],
    ids=range(10),
)
def test_invalid_check_ins_are_refused(read, row, words):
    with pytest.raises(InputError) as caught:
        read("check_ins", f"1\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5\n{row}\n1\t2010-10-12T00:21:28Z\t40.6\t-73.7\t5\n")
    assert words in str(caught.value)
    assert "file.csv" in str(caught.value)


def test_check_ins_with_a_header(read):
    frame, _ = read("check_ins", "place,user,time,lon,lat\nmill,3,2024-05-01T08:00:00Z,3,51\n")
    assert frame.loc[0, ["user", "lon", "lat", "place"]].tolist() == [3, 3.0, 51.0, "mill"]
    with pytest.raises(InputError, match="no column 'place'"):
        read("check_ins", "user,time,lon,lat\n3,2024-05-01T08:00:00Z,3,51\n")


def test_place_names_may_contain_quotation_marks(read):
    frame, _ = read("places", '5\tJoe\'s "Diner\t40.6\t-73.7\n6\t"Bar\t40.6\t-73.7\n')
    assert frame["name"].tolist() == ["Joe's \"Diner", '"Bar']
    with pytest.raises(InputError, match="row 2: place must be unique"):
        read("places", "5\ta\t40.6\t-73.7\n5\tb\t40.6\t-73.7\n")


def test_two_rows_per_station_and_hour_are_merged(read):
    text = PEMS + pems_row(hour=1, flow=7, days=16) + pems_row(hour=1, flow=8, days=40, lanes=5)
    text += pems_row(hour=0, flow=5, days=30) + pems_row(hour=0, flow=6, days=30, lanes=5)
    text += pems_row(hour=2, flow=1, days=30) + pems_row(hour=2, flow=2, days=30)
    frame, notes = read("counts", text, "c.csv.gz")
    assert frame["hour"].tolist() == [0, 1, 2]
    assert frame["vehicles"].tolist() == [6, 8, 1], "more days; then more lanes; then the first"
    assert notes == [
        "3 rows of a station and hour that another row has too, left out: the one observed on more days is kept"
    ]


def test_counts_without_coordinates_or_speeds_are_kept(read):
    text = (
        PEMS + pems_row() + pems_row(station=2, lat="", lon="", speed="") + pems_row(station=2, hour=1, lat="", lon="")
    )
    frame, notes = read("counts", text)
    assert frame["lon"].isna().tolist() == [False, True, True]
    assert frame["speed_mps"].tolist()[0] == pytest.approx(26.8224)
    assert np.isnan(frame["speed_mps"].tolist()[1])
    assert frame["postmile_m"].tolist()[0] == pytest.approx(16_093.44)
    assert notes == ["2 rows, of 1 stations, have no coordinates and are kept without"]


def test_counts_by_period_are_in_the_order_of_the_day(read):
    head = PEMS.replace("hour", "time_period")
    text = head + "".join(pems_row(hour=period) for period in ("PM", "EV", "AM", "EA", "MD"))
    assert read("counts", text)[0]["period"].tolist() == ["EA", "AM", "MD", "PM", "EV"]
    with pytest.raises(InputError, match="row 1: time_period must be one of EA, AM, MD, PM, EV, got 'XX'"):
        read("counts", head + pems_row(hour="XX"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PEMS + pems_row(hour=24), "hour must be a whole number, 0 to 23, got '24'"),
        (PEMS + pems_row(flow=-1), "median_flow must be a finite number, 0 or more, got '-1'"),
        (PEMS + pems_row(lat="91"), "latitude must be a finite number, -90 to 90, got '91'"),
        (PEMS.replace(",hour,", ",minute,") + pems_row(), "'hour' or 'time_period'"),
        (PEMS.replace("median_flow", "flow") + pems_row(), "no column 'median_flow'"),
        ((PEMS + pems_row()).replace(",", " "), "no column 'station'"),
        (PEMS, "it holds no rows"),
        ("", "it is empty"),
    ],
    ids=range(8),
)
def test_invalid_counts_are_refused(read, text, words):
    with pytest.raises(InputError) as caught:
        read("counts", text)
    assert words in str(caught.value)


FIVE = "5 Minutes,Lane 1 Flow (Veh/5 Minutes),# Lane Points,% Observed\n"


def test_five_minute_file_has_day_first_dates_and_a_byte_order_mark(read):
    rows = "04/01/2016 0:00,12,1,100\n04/01/2016 0:05,13,1,50\n13/01/2016 0:00,14,1,100\n"
    frame, notes = read("five_minutes", BOM + (FIVE + rows).encode())
    assert frame["time"].tolist() == list(pd.to_datetime(["2016-01-04 00:00", "2016-01-04 00:05", "2016-01-13 00:00"]))
    assert frame["observed"].tolist() == [1.0, 0.5, 1.0]
    assert notes == ["the clock jumps 1 times, over days that are not in the file"]
    assert read("five_minutes", FIVE + rows)[0].equals(frame), "with the mark or without"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            "01/13/2016 0:00,12,1,100",
            "row 2: 5 Minutes must be a time in the form %d/%m/%Y %H:%M, got '01/13/2016 0:00'",
        ),
        ("03/01/2016 0:00,12,1,100", "row 2: 5 Minutes must be later than the row before"),
        ("05/01/2016 0:00,-1,1,100", "must be a whole number, 0"),
        ("05/01/2016 0:00,1,1,101", "% Observed must be a finite number, 0 to 100"),
    ],
    ids=range(4),
)
def test_invalid_five_minute_rows_are_refused(read, row, words):
    with pytest.raises(InputError) as caught:
        read("five_minutes", f"{FIVE}04/01/2016 0:00,12,1,100\n{row}\n")
    assert words in str(caught.value)
