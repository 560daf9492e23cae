"""Malformed demand of every kind: the message names the file, its line or row, and the rule."""

import gzip

import numpy as np
import pandas as pd
import pytest
from zoned_roads import ring, roads_of

from simulator.files.errors import InputError
from simulator.formats.recordings.owners import OwnerOptions, read_owners
from simulator.formats.trip_files import read_trip_table
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import read_profile
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.demand.zone_gravity import ZoneMasses
from simulator.traffic.paths import ShortestPaths

ROADS = roads_of([("a", "b", {"sumo_edge": "ab"}), ("b", "a", {"sumo_edge": "ba"})])
HEAD = "<NUMBER OF ZONES> 2\n<END OF METADATA>\n"
VEHICLE = '<vehicle id="v" depart="0"><route edges="ab"/></vehicle>'
STATIONS = "station,type,hour,flow,latitude,longitude\n10,ML,7,5,37.8,-122.4\n9,ML,7,0,37.81,-122.41\n"
OWNERS = OwnerOptions({"place": "station", "count": "flow", "lon": "longitude", "lat": "latitude", "period": "hour"})


def read_routes(file, **options):
    return read_sumo_routes([file], ROADS, net=None, clock=Clock(1.0), rng=np.random.default_rng(1), **options)


def read_flows(file):
    """Flows are checked before SUMO draws them on its network."""
    routes = "<routes>\n<flow id='f' from='ab' to='ab' {}/>\n</routes>"
    file.write_text(routes.format(file.read_text()))
    never = file.parent / "never read"
    rng = np.random.default_rng(1)
    return read_sumo_routes([file], ROADS, net=never, clock=Clock(1.0), rng=rng, duration_s=100.0)


ROUTES = [
    ('<vehicle depart="0"><route edges="ab"/></vehicle>', "line 2: a vehicle must have an id"),
    ('<vehicle id="v"><route edges="ab"/></vehicle>', "line 2: vehicle 'v': depart must be seconds, 0 or more"),
    ('<vehicle id="v" depart="-3"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got '-3'"),
    ('<vehicle id="v" depart="nan"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got 'nan'"),
    ('<vehicle id="v" depart="soon"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got 's"),
    (VEHICLE + "\n" + VEHICLE, "line 3: vehicle 'v': another vehicle, trip or flow has this id"),
    ('<vehicle id="v" depart="0"/>', "line 2: vehicle 'v' must have a route, or from and to"),
    ('<vehicle id="v" depart="0"><route edges=" "/></vehicle>', "line 2: a route must have at least one edge"),
    ('<vehicle id="v" depart="0"><route/></vehicle>', "line 2: a route must have edges, got nothing"),
    ('<vehicle id="v" depart="0" route="r"/>', "line 2: vehicle 'v': there is no route with the id 'r'"),
    ('<route id="r" edges="ab"/>\n<route id="r" edges="ba"/>', "line 3: another route has the id 'r'"),
    ('<trip id="t" depart="0" from="ab" to="zz"/>', "no vehicle of 1 can be driven on these roads"),
    ('<vehicle id="v" depart="1e300"><route edges="ab"/></vehicle>', "must be before tick 2³¹, got second 1e+300"),
    ("", "no vehicle of 0 can be driven on these roads"),
]  # fmt: skip
READ = {
    "trips.tntp": lambda file: read_trip_table(file, columns={}),
    "od.csv": lambda file: read_trip_table(file, columns={}),
    "profile.csv": read_profile,
    "zones.csv": ZoneMasses.read,
    "owners.csv": lambda file: read_owners(file, OWNERS),
    "demand.rou.xml": read_routes,
    "flows.rou.xml": read_flows,
}
MALFORMED = {
    "trips.tntp": [
        ("", "it is empty"),
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
        ("<TOTAL OD FLOW> 2.52257e+007\n<END OF METADATA>\nOrigin 1\n2 : 25225800.7;\n",
         "must be the sum of the trips, 25,225,800.7, within rounding; got 25,225,700"),
        ("<TOTAL OD FLOW> 12\n<END OF METADATA>\nOrigin 1\n2 : 10.0;\n", "must be the sum of the trips, 10,"),
    ],
    "od.csv": [
        ("origin destination trips\n1 2 3\n", "is it separated by commas?"),
        ("origin;destination;trips\n1;2;1,234\n", "'1,234' in column 'trips' may be decimal, or group thousands: give"),
        ("origin,destination,trips\n1,2,3,5\n", "and its numbers written with decimal points?"),
        ("origin,destination,Zahl\n1,2,3\n", "column 'Zahl' holds numbers that are not read: name the number of trips"),
        ("origin,destination,trips,hour\n1,2,3,8\n", 'others as ignored = ["hour"]'),
        ("origin,destination,flow_vph\n1,2,3\n", "as trips, or as rate_vph or rate_vps with from_s and to_s"),
        ("orig,dest,start_t,end_t,q\n1,2,0,900,450\n", "rate_vps (column 'q') must be at most 2 to be"),
        ("1,2,3\n1,2,4\n", "no column 'origin' for origin"),
        ("origin,destination,trips\n1,2,-1\n1,2,x\n", "rows 1, 2: trips (column 'trips') must be a finite number"),
        ("origin,destination,trips\n1,2,inf\n", "row 1: trips (column 'trips') must be a finite number"),
        ("origin,destination,trips\n1,,4\n", "row 1: destination (column 'destination') must be the identifier"),
        ("origin,destination,trips\n1,2\n,2,3\n", "row 2: origin (column 'origin') must be the identifier"),
        ("origin,destination,departure\n1,2,noon\n", "row 1: departure_s (column 'departure') must be seconds, HH:MM"),
        ("origin,destination,departure\n1,2,-4\n", "row 1: departure_s (column 'departure') must be seconds"),
        ("origin,destination,departure\n1,2,7:00:99\n", "row 1: departure_s (column 'departure') must be seconds"),
        ("origin,destination,trips\n1,2,0\n2,1,0\n", "it holds no trips: all of its rows have 0"),
        ("origin,destination,trips\n1,2,1e308\n2,1,1e308\n", "its trips must sum to a finite number"),
        ("origin,destination,from_s,to_s\n1,2,9,3\n", "row 1: to_s (column 'to_s') must be after from_s, got '3'"),
    ],
    "profile.csv": [
        ("time,share\n1,2\n", "no column 'hour' for hour"),
        ("hour,part\n1,2\n", "no column 'share' for share"),
        ("hour,share\n24,2\n", "row 1: hour (column 'hour') must be a whole number, 0 to 23, got"),
        ("hour,share\n1.5,2\n", "row 1: hour (column 'hour') must be a whole number, 0 to 23, got"),
        ("hour,share\n1,-2\n", "row 1: share (column 'share') must be a finite number, 0 or more"),
        ("hour,share\n1,2\n1,3\n", "row 2: hour (column 'hour') must be of an interval that overlaps no other row's"),
        ("hour,share\n1,0\n", "shares must sum to more than 0"),
        ("hour,share\n1,1e308\n2,1e308\n", "and to a finite number, got inf"),
        ("from_s,to_s,share\n5,5,1\n", "row 1: to_s (column 'to_s') must be a finite number above from_s"),
        ("from_s,to_s,share\n5,9,1\n0,6,1\n", "row 1: to_s (column 'to_s') must be of an interval that overlaps no"),
        ("from_s,to_s,share\n-5,9,1\n", "row 1: from_s (column 'from_s') must be a finite number, 0 or more"),
    ],
    "zones.csv": [
        ("zone,production\n1,2\n", "no column 'attraction' for attraction"),
        (
            "zone,production,attraction\n1,2,3\n1,2,3\n",
            "rows 1, 2: zone (column 'zone') must be an identifier no other",
        ),
        ("zone,production,attraction\n1,-2,3\n", "row 1: production (column 'production') must be a finite number"),
        ("zone,production,attraction\n,2,3\n", "row 1: zone (column 'zone') must be an identifier, got NaN or nothing"),
        ("zone,production,attraction\n1,0,3\n2,0,1\n", "the productions must sum to more than 0"),
        ("zone,production,attraction\n1,1e308,3\n2,1e308,1\n", "and to a finite number, got inf"),
    ],
    "owners.csv": [
        (STATIONS.replace("7,5", "7,many"), "count (column 'flow') must be a finite number, 0 or more, got 'many'"),
        (STATIONS.replace("7,5", "7,"), "count (column 'flow') must be a finite number, 0 or more, got NaN or nothing"),
        (STATIONS.replace("7,5", "7,-5"), "count (column 'flow') must be a finite number, 0 or more, got '-5'"),
        (STATIONS.replace("7,5", "7,1e12"), "there must be at most 2,147,483,647 vehicles, got 1e+12"),
        (STATIONS.replace("37.81", "north"), "lat (column 'latitude') must be a finite number, got 'north'"),
        (STATIONS.replace("-122.41", "-1122"), "lon (column 'longitude') must be degrees from -180 to 180, got '-1122"),
        (STATIONS.replace("flow", "flows"), "no column 'flow' for count; its columns are 'station', 'type', 'hour'"),
        (STATIONS.replace("type", "hour"), "two columns are called 'hour': which of them is period?"),
        (STATIONS.replace("7,5", "7,0"), "it holds no data owner: every count is 0"),
        ("station,hour,flow,latitude,longitude\n1,1,5,,\n,1,4,37,-122\n", "no row is left"),
    ],
    "demand.rou.xml": [
        ("", "it is empty"),
        (f"<routes>\n{VEHICLE}", "line 2: not well-formed XML"),
        ("<net/>", "line 1: the outermost element must be one of routes, additional,"),
        (gzip.compress(f"<routes>{VEHICLE * 99}</routes>".encode(), mtime=0)[:-30], "cannot be read"),
        *((f"<routes>\n{body}\n</routes>", words) for body, words in ROUTES),
    ],
    "flows.rou.xml": [
        ('period="0"', "line 2: flow 'f': period must be above 0, or exp(a rate), got '0'"),
        ('period="exp(x)"', "period must be above 0, or exp(a rate), got 'exp(x)'"),
        ('probability="-1"', "probability must be a number, 0 or more, got '-1'"),
        ('end="9" number="1e12"', "there must be at most 2,147,483,647 vehicles"),
        ('begin="x" period="1"', "begin must be a number, 0 or more, got 'x'"),
        ('end="9" period="1e-300"', "there must be at most 2,147,483,647 vehicles"),
    ],
}  # fmt: skip
CASES = [
    pytest.param(form, *row, id=f"{form} {number}")
    for form, rows in MALFORMED.items()
    for number, row in enumerate(rows)
]


def faults_of(call, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    return "\n".join(caught.value.faults)


@pytest.mark.parametrize(("form", "content", "words"), CASES)
def test_malformed_demand_is_refused(tmp_path, form, content, words):
    file = tmp_path / form
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    faults = faults_of(READ[form], file)
    assert words in faults
    assert str(file) in faults


def test_routes_that_leave_no_vehicle_or_have_no_end_are_refused(tmp_path):
    file = tmp_path / "demand.rou.xml"
    file.write_text(f"<routes>{VEHICLE}</routes>")
    assert "a share of 1e-12 of 1 vehicle leaves none" in faults_of(read_routes, file, share=1e-12)
    file.write_text('<routes><flow id="f" from="ab" to="ab" period="1"/></routes>')
    rng = np.random.default_rng(1)
    endless = faults_of(read_sumo_routes, [file], ROADS, net=tmp_path / "never read", clock=Clock(1.0), rng=rng)
    assert "a flow without an end needs a run that ends" in endless


def drawn(file, roads, **taking):
    paths = ShortestPaths(roads.links, through=roads.through)
    table = read_trip_table(file, columns={})
    taking = SamplingOptions(**{"duration_s": 100.0, **taking})
    return draw_table_trips(table, roads, paths, taking, clock=Clock(1.0), rng=np.random.default_rng(1))


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
    assert "trip_columns apply only to a table" in faults_of(read_trip_table, junk, columns={"origin": "a"})


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
