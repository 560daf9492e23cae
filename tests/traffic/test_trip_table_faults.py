"""Invalid trip tables: faults with file, line or row, and rule, and no other exception."""

import gzip

import numpy as np
import pandas as pd
import pytest
from zoned_roads import ring, roads_of

from simulator.files.errors import InputError
from simulator.formats.trip_files import read_trip_table
from simulator.traffic.clock import Clock
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.paths import ShortestPaths

HEAD = "<NUMBER OF ZONES> 2\n<END OF METADATA>\n"


def faults_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    return "\n".join(caught.value.faults)


def drawn(file, roads, **taking):
    paths = ShortestPaths(roads.links, through=roads.through)
    table = read_trip_table(file, columns={})
    taking = SamplingOptions(**{"duration_s": 100.0, **taking})
    return draw_table_trips(table, roads, paths, taking, clock=Clock(1.0), rng=np.random.default_rng(1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("~ nothing\n", "it is empty"),
        ("<NUMBER OF ZONES> 2\n", "<END OF METADATA> is missing"),
        ("<END OF METADATA>\n", "no line begins with Origin"),
        ("<NUMBER OF ZONES> many\n<END OF METADATA>\nOrigin 1\n", "line 1: <NUMBER OF ZONES> must be a whole number"),
        ("<TOTAL OD FLOW> nan\n<END OF METADATA>\nOrigin 1\n", "line 1: <TOTAL OD FLOW> must be a finite number"),
        (HEAD + "1 : 2;\n", "line 3: must be the Origin of a block, got '1 : 2;'"),
        (HEAD + "Origin x\n", "line 3: a zone must be a whole number, got 'x'"),
        (HEAD + "Origin 3\n", "line 3: a zone must be from 1 to <NUMBER OF ZONES> = 2 (renumber"),
        (HEAD + "Origin 1\n7 : 2;\n", "line 4: a zone must be from 1 to <NUMBER OF ZONES> = 2 (renumber"),
        (HEAD + "Origin 1\n2 : -2;\n", "must be a finite number, 0 or more, got '-2' to zone 2"),
        (HEAD + "Origin 1\n2 : nan;\n", "must be a finite number, 0 or more, got 'nan' to zone 2"),
        (HEAD + "Origin 1\n2 : 1e999;\n", "line 4: trips to a zone must be a finite number"),
        (HEAD + "Origin 1\n2 : 1_000;\n", "line 4: trips to a zone must be a finite number"),
        (HEAD + "Origin 1\n2, 5\n", "line 4: must be pairs of destination : trips, each ended by a semicolon"),
        (HEAD + "Origin 1\n2 : 10; 1 : 4", "line 4: the last pair of the file must be ended by a semicolon"),
        (HEAD + "Origin 1\n2 :;\n", "line 4: trips to a zone must be a finite number, 0 or more, got '' to zone 2"),
        (
            "<TOTAL OD FLOW> 2.52257e+007\n<END OF METADATA>\nOrigin 1\n2 : 25225800.7;\n",
            "must be the sum of the trips, 25,225,800.7, within rounding; got 25,225,700",
        ),
        ("<TOTAL OD FLOW> 3e+007\n<END OF METADATA>\nOrigin 1\n2 : 25225700;\n", "must be the sum of the trips"),
        ("<TOTAL OD FLOW> 12\n<END OF METADATA>\nOrigin 1\n2 : 10.0;\n", "must be the sum of the trips, 10,"),
    ],
)  # fmt: skip
def test_tntp_trip_faults(tmp_path, text, words):
    file = tmp_path / "trips.tntp"
    file.write_text(text)
    faults = faults_of(read_trip_table, file, columns={})
    assert words in faults
    assert str(file) in faults


def test_one_fault_of_many_lines_is_one_fault(tmp_path):
    """As in Munich's published trips, whose zones are numbered from 1,000,000."""
    blocks = "".join(f"Origin {zone}\n {zone + 1} : 2.0; {zone + 2} : 1.0;\n" for zone in range(1_000_000, 1_000_065))
    file = tmp_path / "trips.tntp"
    file.write_text("<NUMBER OF ZONES> 65\n<END OF METADATA>\n" + blocks + "Origin 2\n 1 : x;\n")
    with pytest.raises(InputError) as caught:
        read_trip_table(file, columns={})
    zones, trips = caught.value.faults
    assert "lines 3, 4, 5, 6," in zones
    assert "(130 in all): a zone must be from 1 to <NUMBER OF ZONES> = 65" in zones
    assert zones.endswith("got 1000000")
    assert "line 134: trips to a zone must be a finite number" in trips


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("origin,destination,trips\n", "it holds no rows"),
        ("origin destination trips\n1 2 3\n", "is it separated by commas?"),
        ("origin;destination;trips\n1;2;1,234\n", "'1,234' in column 'trips' may be decimal, or group thousands: give"),
        ("origin,destination,trips\n1,2,3,5\n", "and its numbers written with decimal points?"),
        ("origin,destination,Zahl\n1,2,3\n", "column 'Zahl' holds numbers that are not read: name the number of trips"),
        ("origin,destination,trips,hour\n1,2,3,8\n", 'others as ignored = ["hour"]'),
        ("origin,destination,flow_vph\n1,2,3\n", "as trips, or as rate_vph or rate_vps with from_s and to_s"),
        ("orig,dest,start_t,end_t,q\n1,2,0,900,450\n", "rate_vps (column 'q') must be at most 2 to be"),
        ("1,2,3\n1,2,4\n", "no column 'origin' for origin"),
        ("origin,destination,trips\n1,2,-1\n1,2,x\n", "rows 1, 2: trips (column 'trips') must be a finite number"),
        ("origin,destination,trips\n1,2,NaN\n", "row 1: trips (column 'trips') must be a finite number"),
        ("origin,destination,trips\n1,2,inf\n", "row 1: trips (column 'trips') must be a finite number"),
        ("origin,destination,trips\n1,,4\n", "row 1: destination (column 'destination') must be the identifier"),
        ("origin,destination,trips\n1,2\n,2,3\n", "row 2: origin (column 'origin') must be the identifier"),
        ("origin,destination,departure\n1,2,noon\n", "row 1: departure_s (column 'departure') must be seconds, HH:MM"),
        ("origin,destination,departure\n1,2,-4\n", "row 1: departure_s (column 'departure') must be seconds"),
        ("origin,destination,departure\n1,2,07:61\n", "row 1: departure_s (column 'departure') must be seconds"),
        ("origin,destination,departure\n1,2,7:00:99\n", "row 1: departure_s (column 'departure') must be seconds"),
        ("origin,destination,trips\n1,2,0\n2,1,0\n", "it holds no trips: all of its rows have 0"),
        ("origin,destination,trips\n1,2,1e308\n2,1,1e308\n", "its trips must sum to a finite number"),
        ("origin,destination,trips,trips\n1,2,3,4\n", "two columns are called 'trips': which of them is trips?"),
        ("origin,destination,from_s,to_s\n1,2,9,3\n", "row 1: to_s (column 'to_s') must be after from_s, got '3'"),
        ("origin,destination,trips\n1,2,3,4,5\n", "cannot be read as a table"),
    ],
)  # fmt: skip
def test_trip_table_faults(tmp_path, text, words):
    file = tmp_path / "od.csv"
    file.write_text(text)
    faults = faults_of(read_trip_table, file, columns={})
    assert words in faults
    assert str(file) in faults


def test_dates_and_booleans_are_no_numbers(tmp_path):
    file = tmp_path / "od.parquet"
    base = {"origin": [1, 1], "destination": [2, 3]}
    pd.DataFrame({**base, "trips": [True, False]}).to_parquet(file)
    assert "trips (column 'trips') must be a finite number" in faults_of(read_trip_table, file, columns={})
    moment = pd.to_datetime(["2020-01-01 10:00", "2020-01-01 11:00"])
    pd.DataFrame({**base, "departure": moment}).to_parquet(file)
    assert "departure_s (column 'departure') must be seconds" in faults_of(read_trip_table, file, columns={})


def test_lists_are_no_places_and_no_times(tmp_path):
    file = tmp_path / "od.parquet"
    pd.DataFrame({"origin": [[1], [2]], "destination": [2, 3], "departure": [[0], [1]]}).to_parquet(file)
    assert "rows 1, 2: departure_s (column 'departure') must be seconds" in faults_of(read_trip_table, file, columns={})
    pd.DataFrame({"origin": [[1], [2]], "destination": [2, 3]}).to_parquet(file)
    assert "row 1: '[1]' is no node of the roads" in faults_of(drawn, file, ring(3))


def test_unknown_or_missing_files_are_refused(tmp_path):
    junk = tmp_path / "trips.txt"
    junk.write_bytes(b"once upon a time")
    assert "must be a table (.csv, .csv.gz, .parquet), SUMO routes" in faults_of(read_trip_table, junk, columns={})
    assert "no such file" in faults_of(read_trip_table, tmp_path / "none.tntp", columns={})
    assert "no such file" in faults_of(read_trip_table, tmp_path / "none.csv.gz", columns={})
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"origin,destination,trips\n" + b"1,2,3\n" * 1000)[:40])
    assert "cannot be read" in faults_of(read_trip_table, cut, columns={})
    assert "trip_columns apply only to a table" in faults_of(read_trip_table, junk, columns={"origin": "a"})


def test_gzip_bomb_is_refused(tmp_path, monkeypatch):
    for module in ("resources", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
        monkeypatch.setattr(f"simulator.files.{module}.available_nbytes", lambda: 1 << 20)
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"origin,destination,trips\n" + b"1,2,3\n" * (1 << 23)))
    assert "memory needed to hold the" in faults_of(read_trip_table, bomb, columns={})
    monkeypatch.undo()
    bomb.write_bytes(gzip.compress(b"origin,destination,trips\n" + b"0" * (1 << 26)))
    assert "a line must not be longer than" in faults_of(read_trip_table, bomb, columns={})


def test_unknown_zone_is_refused(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,2,5\n1,9,5\n8,2,1\n9,1,1\n")
    faults = faults_of(drawn, file, ring(3))
    assert f"{file}: row 2: '9' is no node of the roads, which have 3" in faults
    assert f"{file}: row 3: '8' is no node" in faults
    assert "row 4" not in faults
    assert 'undrivable = "leave_out"' in faults
    planned = drawn(file, ring(3), undrivable="leave_out")
    assert len(planned.trips) == 5
    assert "7 trips (3 pairs) not driven: there is no such node among the roads" in planned.notes[0]
    zoned = faults_of(drawn, file, ring(3, zones={1: 1, 2: 2}))
    assert "row 2: '9' is no zone of the roads, which have 2, and no node" in zoned


def test_unreachable_zone_is_refused(tmp_path):
    file = tmp_path / "trips.tntp"
    file.write_text("<END OF METADATA>\nOrigin 12\n3 : 4;\nOrigin 3\n12 : 5;\n")
    roads = roads_of([(12, 3), (3, 5), (5, 3)])
    assert f"{file}: line 5: node 12 cannot be reached from node 3: no path" in faults_of(drawn, file, roads)
    planned = drawn(file, roads, undrivable="leave_out")
    assert len(planned.trips) == 4
    assert "5 trips (1 pair) not driven: no path leads from one node to the other" in planned.notes[0]


def test_zone_reachable_only_through_a_centroid_is_refused(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,3,5\n")
    roads = roads_of([(1, 2), (2, 1), (2, 3), (3, 2)], closed=[2])
    assert "row 1: node 3 cannot be reached from node 1: no path" in faults_of(drawn, file, roads)


def test_table_without_drivable_trips_is_refused(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips,from_s,to_s\n1,1,5,0,10\n")
    assert "of 5 trips, none can be driven" in faults_of(drawn, file, ring(3))
    file.write_text("origin,destination,trips,from_s,to_s\n1,2,5,0,10\n")
    faults = faults_of(drawn, file, ring(3), begin_s=50.0)
    assert "no trip departs within the run, seconds 50 to 150 of the file's clock (begin_s says" in faults
    assert "they depart from second 0 to 10" in faults
    assert "a share of 1e-09 of 5 trips leaves no vehicle" in faults_of(drawn, file, ring(3), share=1e-9)
    file.write_text("origin,destination,trips\n1,2,1e300\n")
    assert "share × trips: there must be at most 2,147,483,647 vehicles" in faults_of(drawn, file, ring(3))
