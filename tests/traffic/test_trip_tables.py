"""Trip tables: files compared with plain parsing, rounded vehicles with their expectations."""

import gzip
import os
import re
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from zoned_roads import ring, roads_of

from simulator.files.errors import InputError
from simulator.formats.tables.omx import read_omx
from simulator.formats.tables.trips import read_od_table
from simulator.formats.tntp.trips import read_tntp_trips
from simulator.formats.trip_files import read_trip_table
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Interval
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips, whole_vehicles
from simulator.traffic.paths import ShortestPaths

LEVEL = 1e-6
DATA = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
TNTP = """<NUMBER OF ZONES> 3
<TOTAL OD FLOW> 60.5
<END OF METADATA>
~ a comment

Origin  1
    1 :    0.0;    2 :  10.5;  3 : 20.0;
Origin 2
1 \t: \t30.000; \t3 \t: \t0.0
Origin 3
"""


def pairs(table):
    """The table as {(origin, destination): trips}."""
    return {
        (table.places[a], table.places[b]): n
        for a, b, n in zip(table.origin.tolist(), table.destination.tolist(), table.trips.tolist(), strict=True)
    }


def drawn(table, roads, *, seed=1, **taking):
    taking = SamplingOptions(**{"duration_s": 100.0, **taking})
    paths = ShortestPaths(roads.links, through=roads.through)
    return draw_table_trips(table, roads, paths, taking, clock=Clock(1.0), rng=np.random.default_rng(seed))


def test_tntp_text(tmp_path):
    file = tmp_path / "trips.tntp"
    file.write_bytes(gzip.compress(TNTP.encode()))
    table = read_trip_table(file, columns={})
    assert pairs(table) == {("1", "2"): 10.5, ("1", "3"): 20.0, ("2", "1"): 30.0}
    assert table.row.tolist() == [7, 7, 9]
    assert table.total == pytest.approx(60.5)


def test_repeated_pair_is_summed_and_noted(tmp_path):
    file = tmp_path / "trips.tntp"
    file.write_text("<END OF METADATA>\nOrigin 1\n2 : 1; 3 : 5;\n2 : 2.5;\n")
    table = read_tntp_trips(file)
    assert pairs(table) == {("1", "2"): 3.5, ("1", "3"): 5.0}
    assert "1 line, line 4 the first" in table.notes[0]


@pytest.mark.parametrize(
    ("name", "published", "zones"),
    [
        ("SiouxFalls/SiouxFalls_trips.tntp", 360_600.0, 24),
        ("Anaheim/Anaheim_trips.tntp", 104_694.4, 38),
        ("Chicago-Sketch/ChicagoSketch_trips.tntp.gz", 1_260_907.44, 387),
        ("Berlin-Mitte-Center/berlin-mitte-center_trips.tntp", 11_481.924, 36),
    ],
)
def test_published_totals(name, published, zones):
    file = DATA / "tntp" / name
    if not file.is_file():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with tntp/{name} to read it")
    table = read_tntp_trips(file)
    assert table.total == pytest.approx(published, abs=0.01)
    text = (gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()).decode()
    plain = {}
    for block in re.split(r"Origin", text)[1:]:
        origin, _, rest = block.strip().partition("\n")
        for destination, trips in re.findall(r"(\d+)\s*:\s*([\d.]+)\s*;", rest):
            if float(trips):
                plain[origin.strip(), destination] = float(trips)
    assert pairs(table) == plain
    assert max(map(int, table.places)) <= zones


def test_lima_demand_equals_pandas():
    file = DATA / "gmns" / "Lima" / "demand.csv.gz"
    if not file.is_file():
        pytest.skip("set CROWDVEIL_DATA to a folder with gmns/Lima/demand.csv.gz to read it")
    table = read_od_table(file)
    frame = pd.read_csv(file).groupby(["orig_taz", "dest_taz"])["total"].sum()
    assert table.total == frame.sum()
    assert pairs(table) == {(str(a), str(b)): float(n) for (a, b), n in frame[frame > 0].items()}


@pytest.mark.parametrize(
    ("total", "trips"),
    [("2.52257e+007", "25225746.76"), ("361", "360.6"), ("12.3", "12.34")],
)
def test_a_total_may_be_rounded_to_its_written_digits(tmp_path, total, trips):
    file = tmp_path / "t.tntp"
    file.write_text(f"<TOTAL OD FLOW> {total}\n<END OF METADATA>\nOrigin 1\n2 : {trips};\n")
    assert read_tntp_trips(file).total == float(trips)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_origin_destination_tables(tmp_path, suffix):
    frame = pd.DataFrame({"O_ZONE_ID": [1, 1, 2, 1], "d_zone_id": ["2", "3", "1", "2"], "volume": [1.5, 0, 4, 2]})
    file = tmp_path / f"demand{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False)
    table = read_trip_table(file, columns={})
    assert pairs(table) == {("1", "2"): 3.5, ("2", "1"): 4.0}
    assert table.from_s is None
    assert "1 row, row 4 the first" in table.notes[0]


def test_columns_may_have_any_name(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("von,nach,zahl,total\n1,2,3,100\n")
    table = read_od_table(file, columns={"origin": "von", "destination": "nach", "trips": "zahl"})
    assert pairs(table) == {("1", "2"): 3.0}


@pytest.mark.parametrize(
    ("header", "trips"),
    [
        ("O,D,Ton", 900),
        ("From Zone;To Zone;Demand", 900),
        ("orig,dest,start_t,end_t,q", 0.5 * 1800),
        ("origin,destination,from_s,to_s,Flow (veh/h)", 900 / 2),
        ("o_zone,d_zone,begin,end,vph", 900 / 2),
    ],
)
def test_usual_names_of_counts_and_rates_are_known(tmp_path, header, trips):
    file = tmp_path / "od.csv"
    separator = ";" if ";" in header else ","
    columns = header.split(separator)
    values = ["A", "NA", *(["600", "2400"] if len(columns) == 5 else []), "0.5" if "q" in columns else "900"]
    file.write_text(f"{header}\n{separator.join(values)}\n")
    assert pairs(read_od_table(file)) == {("A", "NA"): pytest.approx(trips)}


def test_number_that_is_not_read_is_mapped_or_ignored(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,Zahl,hour\n1,2,40,8\n")
    with pytest.raises(InputError, match=r"columns 'Zahl', 'hour' hold numbers that are not read.*one trip: as trips"):
        read_od_table(file)
    assert pairs(read_od_table(file, ignored=["Zahl", "hour"])) == {("1", "2"): 1}
    assert pairs(read_od_table(file, columns={"trips": "Zahl"}, ignored=["hour"])) == {("1", "2"): 40}
    rate = {"rate_vph": "Zahl"}
    with pytest.raises(InputError, match="rate_vph is a rate, so from_s and to_s must be columns too"):
        read_od_table(file, columns=rate)


def test_unread_columns_are_noted(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,from_s,leaves_at,\n1,2,600,10:00,\n")
    table = read_od_table(file)
    assert table.from_s is None
    assert table.notes == ["od.csv: columns not read: 'from_s', 'leaves_at'"]


def test_row_without_count_column_is_one_trip(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,departure_time\n1,2,00:01\n2,1,90\n1,2,0:00:05\n")
    table = read_od_table(file)
    assert table.notes == []
    planned = drawn(table, ring(3))
    assert planned.trips.departure_tick.tolist() == [5, 60, 90]
    assert planned.trips.origin.tolist() == [0, 0, 1]
    assert planned.notes == ()


def test_departures_within_windows_of_the_file(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips,from_s,to_s\n1,2,400,1000,1040\n1,3,100,1090,1110\n2,3,50,0,10\n")
    planned = drawn(read_od_table(file), ring(3), begin_s=1000.0, departures="peak")
    first, second = planned.trips.destination == 1, planned.trips.destination == 2
    assert (first.sum(), second.sum(), len(planned.trips)) == (400, 50, 450)
    ticks = planned.trips.departure_tick
    assert ticks[first].min() >= 0
    assert ticks[first].max() < 40
    assert ticks[second].min() >= 90
    assert ticks[second].max() < 100
    assert stats.chisquare(np.bincount(ticks[first], minlength=40)).pvalue > LEVEL
    assert "100 trips not driven: they depart outside the run, seconds 1000 to 1100" in planned.notes[1]
    assert "traffic.departures is not used" in planned.notes[0]


@given(
    st.lists(st.floats(0, 50, allow_subnormal=False), min_size=1, max_size=60),
    st.integers(0, 2**32 - 1),
    st.one_of(st.none(), st.integers(0, 500)),
)
def test_rounded_vehicles_differ_from_flows_by_less_than_one(flows, seed, total):
    flows = np.array(flows)
    if total and flows.sum() < 1e-6:
        return
    whole = whole_vehicles(flows, total=total, rng=np.random.default_rng(seed))
    expected = flows if total is None else flows / max(flows.sum(), 1e-6) * total
    assert (np.abs(whole - expected) < 1 + 1e-9).all()
    assert abs(whole.sum() - expected.sum()) < 1
    if total is not None:
        assert whole.sum() == total
    for start in range(0, len(flows), 7):  # groups of adjacent flows, like those of one origin
        assert abs(whole[start : start + 9].sum() - expected[start : start + 9].sum()) < 1 + 1e-9


def test_rounded_vehicles_are_unbiased():
    flows = np.array([0.1, 2.25, 0.0, 7.9, 0.5, 0.5])
    rng = np.random.default_rng(3)
    mean = np.mean([whole_vehicles(flows, rng=rng) for _ in range(20_000)], axis=0)
    # A rounded flow takes one of two values, so the standard deviation of its mean is at most 0.5 / √20,000.
    np.testing.assert_allclose(mean, flows, atol=6 * 0.5 / np.sqrt(20_000))


@pytest.mark.parametrize(("share", "vehicles", "total"), [(0.1, None, 3.07), (3.0, None, 92.1), (1.0, 1000, 1000)])
def test_share_of_a_trip_table(tmp_path, share, vehicles, total):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,2,10.2\n2,1,20.5\n1,1,99\n")
    planned = drawn(read_od_table(file), ring(3), share=share, vehicles=vehicles)
    assert abs(len(planned.trips) - total) < 1
    assert "99 trips (1 pair) not driven: they begin and end in one node" in planned.notes[0]


def test_zones_precede_nodes_and_use_their_nodes_evenly(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,A,6000\n")
    roads = ring(6, zones={2: "A", 3: "A", 4: "A", 5: 1})
    planned = drawn(read_od_table(file), roads)
    assert set(planned.trips.origin.tolist()) == {4}  # zone 1 is node 5, not node 1
    counts = np.bincount(planned.trips.destination, minlength=6)
    assert counts[[0, 4, 5]].sum() == 0
    assert stats.chisquare(counts[1:4]).pvalue > LEVEL


def test_node_pairs_of_zones_are_connected(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,2,6000\n")
    # From a and b to c; from b only to d: three of the four pairs of nodes are connected.
    roads = roads_of(
        [("a", "c"), ("b", "c"), ("b", "d"), ("c", "x"), ("x", "c")], zones={"a": 1, "b": 1, "c": 2, "d": 2}
    )
    trips = drawn(read_od_table(file), roads).trips
    joined = ShortestPaths(roads.links).reached(trips.origin, trips.destination)
    assert joined.all()
    seen = np.unique(trips.origin * 10 + trips.destination, return_counts=True)[1]
    assert stats.chisquare(seen).pvalue > LEVEL
    assert len(seen) == 3


def test_node_outside_zones_may_be_named_directly(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,4,10\n4,Z,3000\n")
    # Node 4 is named directly and also lies in zone Z, to which it sends trips, but none to itself.
    planned = drawn(read_od_table(file), ring(4, zones={2: 1, 3: "Z", 4: "Z"}))
    trips = planned.trips
    assert np.unique(np.column_stack([trips.origin, trips.destination]), axis=0).tolist() == [[1, 3], [3, 2]]
    assert len(trips) == 3010
    assert "no zone of the roads but a node has the name of 1 place ('4' the first)" in planned.notes[0]


def test_no_trip_departs_outside_the_windows(tmp_path):
    file = tmp_path / "od.csv"
    file.write_text("origin,destination,trips\n1,2,100\n")
    windows = [Interval(10.0, 20.0, 0.5), Interval(50.0, 60.0, 0.1)]
    planned = drawn(read_od_table(file), ring(3), departures=windows, inside=0.6)
    assert len(planned.trips) == 60
    assert "40 trips not driven: they depart outside the run" in planned.notes[0]


def test_million_rows_are_read_in_seconds(tmp_path):
    rng = np.random.default_rng(5)
    ends = rng.integers(1, 301, size=(1_000_000, 2))
    file = tmp_path / "od.parquet"
    frame = pd.DataFrame(ends, columns=["origin", "destination"])
    frame.assign(departure_s=rng.integers(0, 90, 1_000_000)).to_parquet(file)
    planned = drawn(read_od_table(file), ring(300))
    assert len(planned.trips) == np.count_nonzero(ends[:, 0] != ends[:, 1])


CARS = np.array([[0.0, 1.5, 0.0], [2.0, 3.0, 0.0], [0.0, 0.25, 0.0]])


@pytest.fixture
def write(tmp_path):
    def _write(matrices, mappings=None):
        path = tmp_path / "trips.omx"
        with h5py.File(path, "w") as file:
            file.attrs["OMX_VERSION"], file.attrs["SHAPE"] = b"0.2", np.array([3, 3])
            for name, cells in matrices.items():
                file.create_dataset(f"data/{name}", data=cells)
            for name, zones in (mappings or {}).items():
                file.create_dataset(f"lookup/{name}", data=zones)
        return path

    return _write


def test_the_only_matrix_with_its_only_mapping(write):
    table = read_omx(write({"cars": CARS}, {"taz": [101, 205, 7]}))
    assert pairs(table) == {("101", "205"): 1.5, ("205", "101"): 2.0, ("205", "205"): 3.0, ("7", "205"): 0.25}
    assert table.row.tolist() == [1, 2, 2, 3]


def test_zones_without_a_mapping_are_numbered(write):
    assert pairs(read_omx(write({"cars": CARS})))[("3", "2")] == 0.25


def test_one_of_several_matrices_and_mappings(write):
    path = write({"cars": CARS, "trucks": CARS * 2}, {"taz": [101, 205, 7], "county": [1, 2, 3]})
    assert pairs(read_omx(path, matrix="trucks", mapping="county"))[("1", "2")] == 3.0
    for named, key in (({}, "matrix"), ({"matrix": "car"}, "matrix"), ({"matrix": "cars"}, "mapping")):
        with pytest.raises(InputError, match=rf"traffic\.{key} must name one of") as caught:
            read_omx(path, **named)
        assert caught.value.key == f"traffic.{key}"
    with pytest.raises(InputError, match="'cars', 'trucks', got 'car'"):
        read_omx(path, matrix="car")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (CARS - 1.0, "from zone 1 to zone 1: trips must be a finite number, 0 or more, got -1.0"),
        (CARS * np.nan, "got nan"),
        (CARS * 0, "all cells are 0"),
        (CARS[:2], "a column for each of 2 zones with different names, got 2 × 3"),
    ],
)
def test_unusable_matrices_are_refused(write, cells, words):
    with pytest.raises(InputError, match=words):
        read_omx(write({"cars": cells}))


def test_files_that_are_no_omx_or_refer_to_other_files_are_refused(write, tmp_path):
    other = write({"cars": CARS})
    (tmp_path / "text.omx").write_text("origin,destination\n")
    with pytest.raises(InputError, match="cannot be read as OMX"):
        read_omx(tmp_path / "text.omx")
    with h5py.File(tmp_path / "link.omx", "w") as file:
        file["data/cars"] = h5py.ExternalLink(str(other), "/data/cars")
    with pytest.raises(InputError, match="'cars' is in another file"):
        read_omx(tmp_path / "link.omx")
    with h5py.File(tmp_path / "empty.omx", "w"):
        pass
    with pytest.raises(InputError, match="it has no matrix"):
        read_omx(tmp_path / "empty.omx")
