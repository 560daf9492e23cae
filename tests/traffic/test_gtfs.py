"""Buses of a GTFS feed on the streets of a small grid."""

import zipfile
from datetime import date

import numpy as np
import pytest

from simulator.files.errors import InputError
from simulator.roads.grid import build_grid
from simulator.traffic.clock import Clock
from simulator.traffic.demand.gtfs import read_gtfs

ROADS = build_grid(rows=4, columns=4, spacing_x_m=400.0, spacing_y_m=400.0, speed_mps=10.0, lanes=1, anchor=(8.0, 50.0))
TUESDAY = date(2024, 3, 5)


def feed():
    """Return tables: line 1 runs east on the southern street, then north; line 2 is a tram; line 3 has headways."""
    spots = {"west": (20, 10), "middle": (600, -8), "east": (1180, 10), "north": (1208, 700), "away": (5000, 0)}
    lonlat = ROADS.to_wgs84(np.array(list(spots.values())) + ROADS.node_xy.min(axis=0))
    stops = "".join(f"{name},{lat:.7f},{lon:.7f}\n" for name, (lon, lat) in zip(spots, lonlat.tolist(), strict=True))
    days = "monday,tuesday,wednesday,thursday,friday,saturday,sunday"
    return {
        "stops.txt": f"stop_id,stop_lat,stop_lon\n{stops}",
        "routes.txt": "route_id,route_type\n1,3\n2,0\n3,700\n",
        "trips.txt": "route_id,service_id,trip_id\n1,week,out\n1,week,night\n2,week,tram\n3,week,often\n"
        "1,sunday,sun\n1,week,gone\n",
        "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
        "out,,06:04:00,middle,20\nout,,06:00:00,west,3\nout,,,east,30\nout,,06:10:00,north,40\nout,,06:20:00,away,50\n"
        "night,,30:30:00,west,1\nnight,,30:40:00,east,2\ntram,,06:00:00,west,1\ntram,,06:09:00,east,2\n"
        "often,,00:10:00,away,1\noften,,00:12:00,east,2\noften,,00:20:00,west,3\n"
        "sun,,06:00:00,west,1\nsun,,06:05:00,east,2\ngone,,06:00:00,away,1\ngone,,06:10:00,west,2\n",
        "calendar.txt": f"service_id,{days},start_date,end_date\nweek,1,1,1,1,1,0,0,20240101,20241231\n"
        "sunday,0,0,0,0,0,0,1,20240101,20241231\n",
        "calendar_dates.txt": "service_id,date,exception_type\nweek,20240306,2\nsunday,20240306,1\n",
        "frequencies.txt": "trip_id,start_time,end_time,headway_secs\noften,06:00:00,06:30:00,900\n",
    }


def read(path, tables, *, day=TUESDAY, **options):
    with zipfile.ZipFile(path / "feed.zip", "w") as archive:
        for name, text in tables.items():
            archive.writestr(f"feed/{name}", text)
    run = {"clock": Clock(1.0), "begin_s": 21600.0, "duration_s": 3600.0, "share": 1.0, "vehicles": None}
    return read_gtfs(path / "feed.zip", ROADS, day=day, rng=np.random.default_rng(1), **run, **options)


def nodes(demand):
    """Departure of each vehicle, and its nodes as metres east and north of the first, in hundreds."""
    corner = ROADS.node_xy.min(axis=0)
    ends = [
        [*ROADS.links.from_node[route[:1]], *ROADS.links.to_node[route]]
        for route in map(demand.routes.of, range(len(demand.trips)))
    ]
    places = [np.rint((ROADS.node_xy[each] - corner) / 100).astype(int).tolist() for each in ends]
    return list(zip(demand.trips.departure_tick.tolist(), places, strict=True))


OUT = [[0, 0], [4, 0], [8, 0], [12, 0], [12, 4], [12, 8]]
EAST, WEST = OUT[:4], [[12, 0], [8, 0], [4, 0], [0, 0]]


def test_buses_of_a_weekday(tmp_path):
    demand = read(tmp_path, feed())
    # "often" is at its first stop on the roads two minutes after its start; "night" began on Monday.
    assert nodes(demand) == [(0, OUT), (120, WEST), (1020, WEST), (1800, EAST)]
    assert demand.notes == (
        "feed.zip: left out 1 of 5 stops, more than 200 m from every link",
        "feed.zip: left out 1 of 4 trips: fewer than two of their stops are on the roads",
        "feed.zip: left out trips of other route types: 0 (1)",
    )


def test_exceptions_of_the_calendar(tmp_path):
    # The night bus of Tuesday still arrives; "sun" runs instead of the others.
    assert nodes(read(tmp_path, feed(), day=date(2024, 3, 6))) == [(0, EAST), (1800, EAST)]
    with pytest.raises(InputError, match="no trip of the route types departs on 2025-03-05"):
        read(tmp_path, feed(), day=date(2025, 3, 5))


def test_route_types_and_missing_tables(tmp_path):
    tables = feed()
    del tables["frequencies.txt"]
    tables["calendar.txt"] = tables["calendar.txt"].partition("\n")[0]
    tables["calendar_dates.txt"] += "week,20240305,1\n"
    assert nodes(read(tmp_path, tables, route_types=[0])) == [(0, EAST)]
    assert [tick for tick, _ in nodes(read(tmp_path, tables))] == [0]


def test_folder_is_read_as_an_archive_is(tmp_path):
    expected = nodes(read(tmp_path, feed()))
    for name, text in feed().items():
        (tmp_path / name).write_text(text)
    run = {"clock": Clock(1.0), "begin_s": 21600.0, "duration_s": 3600.0, "share": 1.0, "vehicles": None}
    assert nodes(read_gtfs(tmp_path, ROADS, day=TUESDAY, rng=np.random.default_rng(1), **run)) == expected


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("trips.txt", None, r"feed.zip/trips.txt: no such file"),
        ("stops.txt", "stop_id,stop_lat\n1,1\n", r"feed.zip/stops.txt: .*stop_lon"),
        (
            "stop_times.txt",
            "trip_id,departure_time,stop_id,stop_sequence\nout,noon,west,1\n",
            "a time, HH:MM:SS, got 'noon'",
        ),
        ("routes.txt", "route_id,route_type\n1,bus\n", "row 1: route_type .*whole number"),
        ("frequencies.txt", "trip_id,start_time,end_time,headway_secs\nout,06:00:00,07:00:00,0\n", "headway_secs"),
        ("frequencies.txt", "trip_id,start_time,end_time,headway_secs\nout,,07:00:00,9\n", "start_time"),
    ],
)
def test_faults_name_the_table(tmp_path, table, text, message):
    tables = {name: old for name, old in feed().items() if name != table} | ({} if text is None else {table: text})
    with pytest.raises(InputError, match=message):
        read(tmp_path, tables)


def test_file_that_is_no_archive_is_refused(tmp_path):
    file = tmp_path / "feed.zip"
    file.write_text("no zip")
    with pytest.raises(InputError, match="cannot be read as a zip archive"):
        read_gtfs(file, ROADS, day=TUESDAY, begin_s=0.0, duration_s=1.0)
