"""Data owners: tables of them are read or refused, and in the engine they arrive, stay and leave."""

import gzip
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from single_places import advance_and_compare

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.files.tables import FileFormat
from simulator.formats.recordings.owners import OwnerOptions, read_owners
from simulator.roads.projection import crs_about
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.recording import Recording, Replay, Sites

STATIONS = """station,type,hour,flow,latitude,longitude
10,ML,7,5,37.80,-122.40
10,ML,8,3,37.80,-122.40
9,ML,7,0,37.81,-122.41
2,OR,7,9,37.82,-122.42
2,OR,8,1,,
11,ML,8,4,37.83,-122.43
"""
COLUMNS = {"place": "station", "count": "flow", "lon": "longitude", "lat": "latitude", "period": "hour"}


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="owners.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return to_file


def read(path, columns=COLUMNS, *, separator=None, header=True, where=None, **how):
    return read_owners(path, OwnerOptions(columns, FileFormat(separator, None, header, where or {}), **how))


def by_name(owners):
    return dict(zip(owners.sites.names, owners.sites.owners.tolist(), strict=True))


def faults(path, columns=COLUMNS, **how):
    with pytest.raises(InputError) as caught:
        read(path, columns, **how)
    messages = caught.value.faults
    assert all(str(path) in fault for fault in messages)
    return "\n".join(messages)


def test_count_column_gives_that_many_owners(write):
    owners = read(write(STATIONS))
    assert owners.sites.names == ["2", "9", "10", "11"], "in the order of numbers"
    assert by_name(owners) == {"2": 9, "9": 0, "10": 8, "11": 4}
    assert owners.tracks.vehicles == 21
    assert (owners.tracks.time_s <= 0.0).all(), "from the beginning"
    assert owners.crs.to_epsg() == 32610
    assert len(texts_of(owners.notes())) == 1
    assert "left out 1 row without lon and lat: row 5" in texts_of(owners.notes())[0]
    x_min, y_min, x_max, y_max = owners.bounds
    assert 2000 < x_max - x_min < 3000
    assert 3000 < y_max - y_min < 4000


def test_rows_are_selected_by_number_text_or_several_values(write):
    path = write(STATIONS)
    assert by_name(read(path, where={"hour": (8,)}))["10"] == 3
    assert read(path, where={"hour": (8.0,), "type": ("ML",)}).tracks.vehicles == 7
    assert read(path, where={"station": (10, "11")}).tracks.vehicles == 12
    assert read(path, where={"station": ("2", 9)}).tracks.vehicles == 9
    none = faults(path, where={"hour": (9,), "type": ("ML", "OR")})
    assert "of its 6 rows, none has hour = 9, type = 'ML' or 'OR'" in none


@pytest.mark.parametrize("pack", ["csv.gz", "tsv", "no header", "parquet"])
def test_all_file_formats_are_read_alike(write, tmp_path, pack):
    columns, how = COLUMNS, {}
    if pack == "csv.gz":
        path = write(gzip.compress(STATIONS.encode()), "owners.csv.gz")
    elif pack == "tsv":
        path = write(STATIONS.replace(",", "\t"), "owners.tsv")
    elif pack == "no header":
        path = write("\ufeff" + STATIONS.partition("\n")[2].replace(",", ";"), "owners.txt")
        columns = {"place": 1, "count": 4, "lon": 6, "lat": 5, "period": 3}
        how = {"separator": ";", "header": False}
    else:
        path = tmp_path / "owners.parquet"
        pd.read_csv(write(STATIONS)).to_parquet(path)
    owners = read(path, columns, **how)
    assert by_name(owners) == {"2": 9, "9": 0, "10": 8, "11": 4}
    if pack == "no header":
        assert read(path, columns, where={"2": ("ML",)}, **how).tracks.vehicles == 12


def test_places_without_coordinates_are_placed_in_a_row(write):
    path = write("group,back\n10-14,y\n5-9,n\n0-4,y\n10-14,y\n15-19,n\n")
    owners = read(path, {"place": "group"}, where={"back": ("y",)})
    assert by_name(owners) == {"0-4": 1, "5-9": 0, "10-14": 2, "15-19": 0}
    assert owners.bounds == (0.0, 0.0, 4000.0, 1000.0)
    assert owners.sites.xy[:, 0].tolist() == [500.0, 1500.0, 2500.0, 3500.0]


def test_place_has_the_coordinates_of_its_first_row(write):
    path = write("p,x,y\na,0,0\na,5,5\nb,9,9\na,0,0\n")
    owners = read(path, {"place": "p", "x": "x", "y": "y"}, crs="EPSG:32610")
    assert owners.sites.xy.tolist() == [[0.0, 0.0], [9.0, 9.0]]
    assert texts_of(owners.notes()) == [f"{path}: 1 place has more than one coordinate; each is where it is first"]
    nameless = read(path, {"x": "x", "y": "y"}, crs="EPSG:32610")
    assert nameless.sites.names is None
    assert nameless.sites.owners.tolist() == [2, 1, 1]


DOUBLE = "place,n,hour\na,2,1\na,7,1\na,5,2\nb,1,1\na,4,1\n"


@pytest.mark.parametrize(("rule", "there"), [("first", 7), ("last", 9), ("greatest", 12), ("sum", 18)])
def test_duplicates_follow_the_given_rule_and_are_counted(write, rule, there):
    path = write(DOUBLE)
    owners = read(path, {"place": "place", "count": "n", "period": "hour"}, duplicates=rule)
    assert by_name(owners) == {"a": there, "b": 1}
    assert texts_of(owners.notes())[0].startswith(f"{path}: 2 rows of the same place and period as an earlier one: ")


def test_duplicate_counts_are_refused_without_a_rule(write):
    path = write(DOUBLE)
    without = faults(path, {"place": "place", "count": "n", "period": "hour"})
    assert "2 rows of the same place and period as an earlier one: rows 2, 5" in without
    assert "columns.period" in faults(path, {"place": "place", "count": "n"})


def test_equal_owner_rows_are_all_counted(write):
    path = write("who,when,place\n1,5,a\n1,5,a\n2,5,a\n1,6,b\n")
    with pytest.raises(InputError, match=r"columns 'who', 'when' hold numbers that are not read: name the number of"):
        read(path, {"place": "place"})  # either may be the number of owners of a row
    assert by_name(read(path, {"place": "place"}, ignored=("who", "when"))) == {"a": 3, "b": 1}
    owners = read(path, {"place": "place", "owner": "who", "period": "when"})
    assert by_name(owners) == {"a": 3, "b": 1}
    (note,) = texts_of(owners.notes())
    assert note == f"{path}: 1 row of the same place and period and owner as an earlier one: each counts"
    once = read(path, {"place": "place", "owner": "who", "period": "when"}, duplicates="first")
    assert by_name(once) == {"a": 2, "b": 1}


def test_one_per_owner_keeps_its_last_row(write):
    path = write("who,when,place\n1,2020-01-03,a\n1,2020-01-02,b\n2,2020-01-01,b\n3,2020-01-01,b\n3,2020-01-01,c\n")
    owners = read(path, {"place": "place", "owner": "who", "time": "when"}, one_per="owner")
    assert by_name(owners) == {"a": 1, "b": 1, "c": 1}
    assert "3 owners, each where it was last in 5 rows" in texts_of(owners.notes())[-1]
    untimed = read(path, {"place": "place", "owner": "who"}, one_per="owner")
    assert by_name(untimed) == {"a": 0, "b": 2, "c": 1}


def test_times_are_converted_to_seconds_of_the_run(write):
    path = write("place,t\na,2020-01-01T00:01:00Z\nb,2020-01-01T01:00:30+01:00\na,\nc,2020-01-01T00:00:00Z\n")
    owners = read(path, {"place": "place", "time": "t"}, dwell_s=45.0)
    assert owners.tracks.time_s.tolist() == [0.0, 30.0, 60.0]
    assert np.nextafter(owners.leaves_s, np.inf).tolist() == [45.0, 75.0, 105.0]
    assert [owners.sites.names[site] for site in owners.sites.of_owner] == ["c", "b", "a"]
    assert "left out 1 row without a time: row 3" in texts_of(owners.notes())[0]
    later = read(path, {"place": "place", "time": "t"}, start="2020-01-01T00:00:40", dwell_s=45.0)
    assert later.tracks.time_s.tolist() == [-40.0, -10.0, 20.0]
    latest = read(path, {"place": "place", "time": "t"}, start="2020-01-01T00:00:46", dwell_s=45.0)
    assert latest.tracks.time_s.tolist() == [-16.0, 14.0]
    assert "1 row whose time ends before the run starts" in texts_of(latest.notes())[1]
    assert "start must be one, as ISO 8601" in faults(path, {"place": "place", "time": "t"}, start="noon")


def test_times_may_be_numbers_of_a_unit(write):
    path = write("place,h,n\na,7,2\nb,8,1\na,8.5,3\n")
    owners = read(path, {"place": "place", "time": "h", "count": "n"}, time_unit_s=3600.0, start=7)
    assert owners.tracks.time_s.tolist() == [0.0, 0.0, 3600.0, 5400.0, 5400.0, 5400.0]
    assert np.isinf(owners.leaves_s).all()
    assert "start must be one" in faults(path, {"place": "place", "time": "h"}, start="seven")


def test_fractional_counts_are_refused_or_rounded_per_place(write):
    path = write("place,n,hour\na,0.5,1\nb,1.5,1\na,0.25,2\na,0.75,3\nb,2,2\n")
    columns = {"place": "place", "count": "n", "period": "hour"}
    assert "rows 1, 2, 3, 4: count (column 'n') must be whole" in faults(path, columns)
    assert by_name(read(path, columns, fractions="nearest")) == {"a": 2, "b": 4}  # 1.5 and 3.5, halves to even


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 300).map(lambda n: n / 8)), min_size=1, max_size=40),
    timed=st.booleans(),
)
def test_rounded_totals_equal_rounding_the_totals(counts, timed, tmp_path_factory):
    path = tmp_path_factory.mktemp("f") / "o.csv"
    rows = [(f"p{place}", n, i % 3) for i, (place, n) in enumerate(counts)]
    path.write_text("place,n,t,i\n" + "".join(f"{p},{n},{t},{i}\n" for i, (p, n, t) in enumerate(rows)))
    columns = {"place": "place", "count": "n", "period": "i", **({"time": "t"} if timed else {})}
    total = {}
    for place, n, t in rows:
        total[place, t if timed else 0] = total.get((place, t if timed else 0), 0.0) + n
    expected = {key: round(value) for key, value in total.items()}
    if not sum(expected.values()):
        return
    owners = read(path, columns, fractions="nearest", start=0 if timed else None)
    assert owners.tracks.vehicles == sum(expected.values())
    for place in owners.sites.names:
        assert by_name(owners)[place] == sum(n for (p, _), n in expected.items() if p == place)


def test_window_keeps_only_the_rows_inside(write):
    path = write("lon,lat\n-74,40.7\n-73.9,40.8\n2.3,48.9\n139.7,35.7\n")
    owners = read(path, {"lon": "lon", "lat": "lat"}, window=(-75.0, 40.0, -73.0, 41.0))
    assert owners.tracks.vehicles == 2
    assert "left out 2 rows outside the window: rows 3, 4" in texts_of(owners.notes())[0]
    assert "within 1,000 km of their middle" in faults(path, {"lon": "lon", "lat": "lat"})
    elsewhere = faults(path, {"lon": "lon", "lat": "lat"}, window=(0.0, 0.0, 1.0, 1.0))
    assert "none of the selected rows has a place in the window" in elsewhere


def test_swapped_coordinates_are_detected(write):
    path = write("a,b\n-122.4,37.8\n-122.5,37.9\n")
    messages = faults(path, {"lon": "b", "lat": "a"})
    assert "rows 1, 2: lat (column 'a') must be degrees from -90 to 90; are lon and lat swapped?, got" in messages
    new_york = write("a,b\n-73.9,40.7\n", "ny.csv")
    assert "every latitude is beyond -60" in faults(new_york, {"lon": "b", "lat": "a"})


def test_more_owners_than_memory_are_refused(write, monkeypatch):
    path = write(STATIONS.replace("OR,7,9", "OR,7,90000009").replace("ML,8,4", "ML,8,90000004"))
    monkeypatch.setattr("simulator.files.resources.available_nbytes", lambda: 1e9)
    assert "a vehicle is a data owner: memory needed to hold 180,000,021 vehicles is about 11.5 GB" in faults(path)


def test_columns_without_a_header_are_numbers(write):
    path = write("a,1\n")
    messages = faults(path, {"place": "name"}, header=False)
    assert "columns of a file without header are known by number, not by name, got 'name'" in messages
    assert "no column 3 for place; it has 2" in faults(path, {"place": 3}, header=False)
    assert "got 'type' in where" in faults(path, {"place": 1}, header=False, where={"type": (1,)})


ODD = {
    "list": [[1], [2], None],
    "flag": [True, False, None],
    "moment": pa.array([1, None, 3], pa.timestamp("s", "America/New_York")),
    "day": pa.array([1, None, 3], pa.date32()),
    "lasting": pa.array([1, None, 3], pa.duration("s")),
    "bytes": [b"\xff", b"a", None],
    "coded": pa.array(["a", "b", None]).dictionary_encode(),
    "decimal": pa.array([1, 2, None]).cast(pa.decimal128(25, 1)),
    "pair": [{"a": 1}, {"a": 2}, None],
    "endless": [math.inf, 1.0, -math.inf],
    "huge": [1e300, 2.0**62, 2.0],
    "text": ["x", "y", None],
}
ROLES = [("place", "count", "time"), ("place", "lon", "lat"), ("place", "owner", "period"), ("x", "y", "count")]


@settings(max_examples=40, deadline=None)
@given(
    columns=st.tuples(*[st.sampled_from(list(ODD))] * 3),
    roles=st.sampled_from(ROLES),
    wanted=st.none() | st.sampled_from([1, "a", True, 1e300]),
)
def test_any_parquet_content_is_read_or_refused(columns, roles, wanted, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "odd.parquet"
    if not path.exists():
        pq.write_table(pa.table(ODD), path)
    where = {} if wanted is None else {columns[0]: (wanted,)}
    mapping = dict(zip(roles, columns, strict=True))
    messages = [str(path)]
    try:
        how = {"duplicates": "sum", "fractions": "nearest", "crs": "EPSG:32618"}
        assert read(path, mapping, where=where, **how).tracks.vehicles > 0
    except InputError as error:
        messages = error.faults
    assert messages
    assert all(str(path) in fault for fault in messages)


def sites(*of_owner):
    xy = np.array([[0.0, 0.0], [10.0, 5.0]])
    return Sites(["a", "b"], xy, crs_about((0.0, 0.0)), of_owner=np.array(of_owner, np.int32))


def at(engine, tick):
    env = simpy.Environment(initial_time=tick)
    engine.start(env)
    return advance_and_compare(engine)


def test_owners_without_times_are_always_present():
    engine = Replay(
        Recording.of_owners(sites(1, 0, 1), np.zeros(3), np.full(3, np.inf)), clock=Clock(1.0), duration_s=1e6
    )
    for tick in (0, 1000.5):
        places = at(engine, tick)
        assert places.state.tolist() == [State.ON_ROAD] * 3
        assert places.site.tolist() == [1, 0, 1]
        assert places.xy.tolist() == [[10.0, 5.0], [0.0, 0.0], [10.0, 5.0]]
        assert places.link.tolist() == [-1] * 3
    totals = engine.totals()
    assert (totals.departed, totals.on_road, totals.arrived, totals.waiting) == (3, 3, 0, 0)
    assert engine.speeds().tolist() == [0.0] * 3
    assert engine.vehicles == 3
    assert len(texts_of(engine.notes())) == 1


def test_owners_arrive_and_leave_at_their_times():
    arrive, leave = np.array([-5.0, 0.0, 10.0, 20.0]), np.array([5.0, 10.0, 20.0, np.inf])
    engine = Replay(Recording.of_owners(sites(0, 1, 1, 0), arrive, leave), clock=Clock(2.0), duration_s=1e6)
    on, gone = State.ON_ROAD, State.ARRIVED
    for tick, expected in (
        (0, [on, on]),
        (2.4, [on, on]),
        (2.5, [gone, on]),
        (5, [gone, gone, on]),
        (9.9, [gone, gone, on]),
        (10, [gone, gone, gone, on]),
        (1e6, [gone, gone, gone, on]),
    ):
        assert at(engine, tick).state.tolist() == expected
        totals = engine.totals()
        assert totals.departed == len(expected) == len(engine.speeds())
        assert totals.arrived == expected.count(gone)
        assert totals.departed == totals.waiting + totals.on_road + totals.arrived + totals.absent
    assert engine.totals().mean_trip_s == pytest.approx(10.0, rel=1e-12)
    assert len(texts_of(engine.notes())) == 1
    at(engine, 0)
    assert texts_of(engine.notes())[1] == "2 of 4 data owners come after the end of the run"
