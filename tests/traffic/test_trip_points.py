"""Trips between points, with dates, and between zones of a file of polygons."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import crowdveil as cv
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.demand import plan_traffic
from simulator.experiment.components import RunComponents
from simulator.files.errors import InputError
from simulator.formats.column_names import POINT_NAMES
from simulator.roads import build_grid
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.paths import ShortestPaths

GRID = build_grid(rows=3, columns=3, spacing_x_m=200, spacing_y_m=200, speed_mps=13.9, lanes=1, anchor=(0.0, 0.0))
"""Its nodes are 200 m apart, at longitude 0, latitude 0 eastwards and northwards."""


def scenario_of(folder, table, *, name="trips.csv", heading=None, **traffic):
    """Return a scenario whose trips are in a table."""
    path = folder / name
    table.to_parquet(path) if name.endswith(".parquet") else table.to_csv(path, index=False)
    return cv.Scenario(
        scenario={"name": "points", "duration_s": 600, **(heading or {})},
        roads={"source": "grid", "rows": 3, "columns": 3, "spacing_m": 200},
        cells={"kind": "square", "size_m": 200},
        traffic={"demand": "trips", "trips": path, **traffic},
        campaigns=[{"name": "c", "start_s": 0, "deadline_s": 5, "round_gap_s": 10}],
        mechanisms=[{"kind": "no_privacy"}],
    )


def planned(folder, table, **given):
    """Return the demand of a scenario whose trips are in a table."""
    scenario = scenario_of(folder, table, **given)
    roads, clock = build_city(scenario).roads, Clock(1.0)
    return plan_traffic(scenario, roads, ShortestPaths.of(roads), clock=clock, streams=Streams(1))


def degrees(*places):
    """Metres from the south-west corner as longitude and latitude."""
    return GRID.to_wgs84(np.array(places, dtype=float) + GRID.node_xy.min(axis=0))


def taxi(*trips, names=("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"), **more):
    """A table of trips, each given as four metres."""
    ends = [degrees(trip[:2], trip[2:]).ravel() for trip in trips]
    return pd.DataFrame(ends, columns=names).assign(**more)


def ends(demand):
    """Metres of the origin and destination nodes of each trip."""
    trips = demand.trips
    metres = GRID.node_xy - GRID.node_xy.min(axis=0)
    return np.column_stack([metres[trips.origin], metres[trips.destination]]).round().astype(int).tolist()


def test_points_go_to_the_nearer_end_of_the_nearest_link(tmp_path):
    """70 m along a street its western end is nearer, 130 m along the eastern one, however close other nodes are."""
    demand = planned(tmp_path, taxi((70, 10, 330, 404)))
    assert ends(demand) == [[0, 0, 400, 400]]
    assert "in the median 7 m away" in demand.notes[0]


@pytest.mark.parametrize("start", ["start_lng start_lat end_lng end_lat", "from_lon from_lat to_lon to_lat"])
def test_usual_names(tmp_path, start):
    assert ends(planned(tmp_path, taxi((0, 0, 400, 200), names=start.split()))) == [[0, 0, 400, 200]]
    assert "pickup_centroid_longitude" in POINT_NAMES["origin_lon"]


def test_paths_geometries_and_metres_give_the_same_trips(tmp_path):
    trips = [(5, 0, 390, 210), (200, 400, 0, 0)]
    expected = ends(planned(tmp_path, taxi(*trips)))
    assert len(expected) == 2
    lonlat = taxi(*trips).to_numpy()
    porto = pd.DataFrame({"POLYLINE": [json.dumps([[a, b], [0.0, 0.0], [c, d]]) for a, b, c, d in lonlat]})
    assert ends(planned(tmp_path, porto)) == expected
    begin, end = (gpd.GeoSeries(shapely.points(lonlat[:, at : at + 2]), crs="EPSG:4326") for at in (0, 2))
    lines = gpd.GeoSeries([shapely.LineString([a, b]) for a, b in zip(begin, end, strict=True)], crs="EPSG:4326")
    frames = [
        gpd.GeoDataFrame(geometry=lines).to_crs(GRID.crs),
        gpd.GeoDataFrame({"dropoff": end, "pickup": begin}, geometry="pickup"),
    ]
    for frame in frames:
        assert ends(planned(tmp_path, frame, name="trips.parquet")) == expected
    xy = np.array(trips) + np.tile(GRID.node_xy.min(axis=0), 2)
    plane = pd.DataFrame(xy, columns=["o_x", "o_y", "d_x", "d_y"])
    assert ends(planned(tmp_path, plane, trips_crs=GRID.crs.to_wkt())) == expected
    with pytest.raises(InputError, match='trips_crs = "EPSG:32618"'):
        planned(tmp_path, plane)


def test_trips_outside_are_left_out_and_counted(tmp_path):
    table = taxi((0, 0, 400, 400), (0, 0, 900, 400), (0, 0, 400, 0), (0, 0, 10, 10))
    table.loc[2, "pickup_latitude"] = np.nan
    demand = planned(tmp_path, table, snap_m=250.0)
    assert len(demand.trips) == 1
    notes = "\n".join(demand.notes)
    assert "1 of 4 trips not driven: a coordinate is missing or out of range" in notes
    assert "1 of 4 trips not driven: an end is more than 250 m from the nearest road" in notes
    assert "1 trip (1 pair) not driven: they begin and end in one place" in notes


def test_trips_that_are_all_elsewhere_are_an_error_with_the_nearest_distance(tmp_path):
    with pytest.raises(InputError, match=r"none begins and ends within snap_m = 50 m .* nearest are at 100 m"):
        planned(tmp_path, taxi((0, 0, 500, 400), (0, 0, 800, 0)), snap_m=50.0)


@pytest.mark.parametrize(
    ("column", "times"),
    [
        ("pickup_datetime", ["2026-03-29 01:59:00", "2026-03-29 03:01:00"]),  # two minutes apart: clocks go forward
        ("started_at", ["2026-03-29T01:59:00+01:00", "2026-03-29T03:01:00+02:00"]),
        ("timestamp", [1774745940, 1774746060]),
    ],
)
def test_dates_are_seconds_from_the_start_in_its_time_zone(tmp_path, column, times):
    table = taxi((0, 0, 400, 400), (400, 0, 0, 400), **{column: times})
    heading = {"start": "2026-03-29T01:58:00", "time_zone": "Europe/Berlin", "duration_s": 7200}
    demand = planned(tmp_path, table, heading=heading)
    assert demand.trips.departure_tick.tolist() == [60, 180]
    with pytest.raises(InputError, match="second 0 is 2026-03-28 22:00:00 UTC"):
        planned(tmp_path, table, heading=heading | {"start": "2026-03-29T12:00:00", "duration_s": 60})


def test_dates_without_a_date_of_the_run_count_from_the_midnight_before_the_first(tmp_path):
    table = taxi((0, 0, 400, 400), (400, 0, 0, 400), start_time=["2015-01-15 07:01", "2015-01-15 07:30"], end_time="x")
    demand = planned(tmp_path, table, begin_s="07:00")
    assert demand.trips.departure_tick.tolist() == [60]
    assert "second 0 of their clock is 2015-01-15 00:00:00 UTC" in "\n".join(demand.notes)


@pytest.mark.parametrize(
    ("times", "zone", "message"),
    [
        (["2026-03-29 01:30", "2026-03-29T01:40Z"], None, "rows 1, 3.*as row 2's '2026-03-29T01:40Z', and these do"),
        (["2026-03-29 01:30", "2026-03-29 02:30"], "Europe/Berlin", "rows 2, 4.*the clocks of Europe/Berlin skip"),
        ([46110.25 + second / 86400 for second in (0, 40)] * 3, None, "no day number of a spreadsheet"),
        ([t if t < 300 else 1000 * t for t in range(0, 600, 60)], None, "rows 6, 7.*of the size of the others"),
    ],
)
def test_departures_of_several_kinds_are_refused(tmp_path, times, zone, message):
    times = times if len(times) > 2 else times * 5
    table = taxi(*[(0, 0, 400, 400)] * len(times), pickup_datetime=times)
    heading = {} if zone is None else {"start": "2026-03-29T00:00:00", "time_zone": zone}
    with pytest.raises(InputError, match=message):
        planned(tmp_path, table, heading=heading)


def test_departures_in_the_repeated_hour_are_said(tmp_path):
    table = taxi((0, 0, 400, 400), (400, 0, 0, 400), pickup_datetime=["2023-10-29 02:30", "2023-10-29 02:40"])
    heading = {"start": "2023-10-29T02:00:00+02:00", "time_zone": "Europe/Berlin", "duration_s": 7200}
    notes = planned(tmp_path, table, heading=heading).notes
    assert any("2 times are in the hour that the end of summer time repeats" in note for note in notes)


def test_both_ends_of_an_interval_have_a_time_zone_or_none(tmp_path):
    table = pd.DataFrame({"origin": ["(0, 0)"], "destination": ["(1, 1)"], "begin": ["2026-03-29T01:30Z"]})
    with pytest.raises(InputError, match="from_s and to_s must both name a time zone, or neither"):
        planned(tmp_path, table.assign(end="2026-03-29T01:40"))


@pytest.mark.parametrize(
    ("heading", "time", "start"),
    [
        ({}, "2015-01-15 07:01", "2015-01-15T07:00:00"),
        ({}, "2015-01-15T07:01Z", "2015-01-15T07:00:00+00:00"),
        ({"time_zone": "Europe/Berlin"}, "2015-07-15 07:01", "2015-07-15T07:00:00+02:00"),
        ({"start": "07:00"}, "2015-01-15 07:01", "2015-01-15T07:00:00"),
        ({"start": "2015-01-14T07:00"}, "2015-01-15 07:01", "2015-01-14T07:00:00"),
        ({}, 60, None),
    ],
)
def test_dates_of_trips_are_those_of_the_run(tmp_path, heading, time, start):
    table = pd.DataFrame({"origin": ["(0, 0)"], "destination": ["(1, 1)"], "departure_time": [time]})
    clock = RunComponents.build(scenario_of(tmp_path, table, heading=heading, begin_s="07:00")).clock
    assert (clock.start.isoformat() if clock.start else None) == start


def test_taxi_zones_are_polygons_in_which_nodes_are_drawn(tmp_path):
    """The western zone has six nodes in two polygons, the eastern one three, and zone 264 none."""
    shapes = [
        shapely.box(-50, -50, 100, 450),
        shapely.box(100, -50, 250, 450),
        shapely.box(250, -50, 450, 450),
        shapely.box(2000, 0, 2100, 100),
    ]
    west = GRID.node_xy[:, 0].min()
    moved = shapely.transform(np.array(shapes, dtype=object), lambda xy: xy + GRID.node_xy.min(axis=0))
    zones = gpd.GeoDataFrame({"LocationID": [4, 4, 7, 264]}, geometry=moved, crs=GRID.crs).to_crs("EPSG:4326")
    zones.to_file(tmp_path / "zones.geojson", driver="GeoJSON")
    rides = {"PULocationID": [4] * 400 + [264], "DOLocationID": 7, "passenger_count": 1, "total_amount": 9.5}
    table = pd.DataFrame(rides).assign(tpep_pickup_datetime="2026-01-05 08:00:30")
    heading = {"start": "2026-01-05T08:00:00"}
    given = {"trip_zones": {"file": tmp_path / "zones.geojson", "name": "LocationID"}, "heading": heading}
    with pytest.raises(InputError, match="'PULocationID' names taxi zones") as caught:
        planned(tmp_path, table, heading=heading)
    assert caught.value.key == "traffic.trip_zones"
    with pytest.raises(InputError, match="'264' is no zone"):
        planned(tmp_path, table, **given)
    demand = planned(tmp_path, table, undrivable="leave_out", **given)
    from_nodes = np.bincount(demand.trips.origin, minlength=9)
    east = np.isclose(GRID.node_xy[:, 0], west + 400)
    assert len(demand.trips) == 400
    assert not from_nodes[east].any()
    # Each of six nodes has 400/6 of the trips; 5 standard deviations are 37.
    assert np.abs(from_nodes[~east] - 400 / 6).max() < 37
    assert set(np.flatnonzero(np.bincount(demand.trips.destination, minlength=9))) == set(np.flatnonzero(east))
