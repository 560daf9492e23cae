"""One recording gives one table in every format."""

from __future__ import annotations

import json
import os
import tracemalloc
import warnings
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import simpy
import trace_files as files
from pandas.testing import assert_frame_equal

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.formats.recordings import Trace, read_trace, recording_of
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.recording import Replay

SUMO_TIDY = files.TIDY.assign(time_s=files.TIDY["time_s"] - files.EPOCH_S, speed_mps=5.0)
ABSOLUTE = {
    "taxis.csv": files.taxi_csv(),
    "taxis.csv.gz": files.taxi_csv(),
    "taxis.tsv": files.taxi_csv().replace(",", "\t"),
    "semicolons.csv": files.taxi_csv().replace(",", ";"),
    "slashes.csv": files.taxi_csv().replace("2008-05-17", "2008/05/17"),
    "zones.csv": files.taxi_csv().replace(" 10:", " 12:").replace(":00,", ":00+02:00,").replace(":30,", ":30+02:00,"),
    "bom.csv": "\ufeff" + files.taxi_csv(),
    "crlf.csv": files.taxi_csv().replace("\n", "\r\n"),
    "drive.txt": files.tdrive(),
    "drive.txt.gz": files.tdrive(),
    "kepler.geojson": files.kepler_json(),
    "blank-lines.csv": files.taxi_csv().replace("\n", "\n\n"),
}
RELATIVE = {
    "fcd.xml": files.sumo_xml(),
    "fcd.xml.gz": files.sumo_xml(),
    "fcd.csv": files.sumo_csv(),
    "fcd.csv.gz": files.sumo_csv(),
}


@pytest.mark.parametrize("name", ABSOLUTE)
def test_formats_with_dates(tmp_path, name):
    trace = read_trace(files.written(tmp_path, name, ABSOLUTE[name]))
    assert trace.calendar
    assert_frame_equal(trace.frame(), files.TIDY, check_dtype=False)


@pytest.mark.parametrize("name", RELATIVE)
def test_formats_with_relative_times(tmp_path, name):
    trace = read_trace(files.written(tmp_path, name, RELATIVE[name]))
    assert not trace.calendar
    assert_frame_equal(trace.frame(), SUMO_TIDY, check_dtype=False)


def test_sumo_parquet_with_an_empty_timestep(tmp_path):
    files.sumo_frame().to_parquet(tmp_path / "fcd.parquet")
    assert_frame_equal(read_trace(tmp_path / "fcd.parquet").frame(), SUMO_TIDY, check_dtype=False)


def test_each_timed_path_is_one_vehicle(tmp_path):
    frame = read_trace(files.written(tmp_path, "trips.json", files.deck_json())).frame()
    assert list(frame["vehicle"].unique()) == ["trip 1", "trip 2"]
    assert_frame_equal(frame.drop(columns="vehicle"), SUMO_TIDY.drop(columns="vehicle").assign(speed_mps=np.nan))


@pytest.mark.parametrize("newest_first", [False, True])
def test_cabspotting_vehicle_is_named_after_its_file(tmp_path, newest_first):
    for vehicle in "ab":
        files.written(tmp_path, f"new_{vehicle}.txt.gz", files.cabspotting(vehicle, newest_first=newest_first))
    (tmp_path / "_cabs.txt").write_text("an index, which is no trace")
    assert_frame_equal(read_trace(tmp_path).frame(), files.TIDY, check_dtype=False)


def test_gpx_vehicle_is_named_after_its_file(tmp_path):
    pair = [files.written(tmp_path, f"{vehicle}.gpx", files.gpx(vehicle)) for vehicle in "ab"]
    assert_frame_equal(read_trace(pair).frame(), files.TIDY, check_dtype=False)


def segments(*spans):
    """Track segments, eastward along a parallel: from and to which second of a day."""
    point = '<trkpt lat="50" lon="{:.5f}"><time>2024-06-15T12:{:02}:{:02}Z</time></trkpt>'
    points = ("".join(point.format(10 + second / 1e4, *divmod(second, 60)) for second in span) for span in spans)
    return "<trk>" + "".join(f"<trkseg>{inside}</trkseg>" for inside in points) + "</trk>"


def test_gpx_speeds_are_those_of_the_points_themselves(tmp_path):
    point = '<trkpt lat="44.5" lon="11.3">{}<time>2024-06-15T12:00:0{}Z</time></trkpt>'
    inside = (
        "<speed>3.5</speed>",
        "<extensions><speed>9</speed><x:speed xmlns:x='x'>9</x:speed></extensions>",
        "<ele>9</ele><desc>at <b>9</b></desc>",
    )
    points = "".join(point.format(text, second) for second, text in enumerate(inside))
    waypoint = '<wpt lat="0" lon="9"><time>2024-06-15T12:00:00Z</time></wpt>'
    file = files.written(tmp_path, "a.gpx", f'<gpx version="1.0">{waypoint}<trk><trkseg>{points}</trkseg></trk></gpx>')
    frame = read_trace(file).frame()
    np.testing.assert_array_equal(frame["speed_mps"], [3.5, np.nan, np.nan])
    assert frame["lon"].tolist() == [11.3] * 3


def test_gpx_segments_are_separate_pieces(tmp_path):
    file = files.written(tmp_path, "a.gpx", f'<gpx version="1.1">{segments((0, 30), (90, 120))}</gpx>')
    trace = read_trace(file)
    assert trace.names == ["a"]
    engine = Replay(recording_of(trace, None, gap_s=300.0), clock=Clock(1.0), duration_s=120.0)
    env, seen = simpy.Environment(), []
    engine.start(env)
    for second in (15, 31, 89, 90, 105):
        env.run(second)
        engine.advance()
        seen.append(State(engine.places().state[0]))
    assert seen == [State.ON_ROAD, State.ABSENT, State.ABSENT, State.ON_ROAD, State.ON_ROAD]
    assert "1 break between segments of a recording: the vehicle is absent there" in texts_of(trace.left_out)
    after = recording_of(trace, None, gap_s=300.0, start="2024-06-15T12:01:00Z")
    assert after.fix_times_s.tolist() == [30, 60]  # a fix before the break does not lead into the run


def test_kepler_paths_of_a_vehicle_are_separate_pieces(tmp_path):
    paths = [[[10 + s / 1e4, 50, 0, 1.7e9 + s] for s in span] for span in ((0, 30), (90, 120))]
    lines = [{"properties": {"vehicle": "a"}, "geometry": {"type": "LineString", "coordinates": at}} for at in paths]
    trace = read_trace(files.written(tmp_path, "a.geojson", json.dumps({"features": lines})))
    assert (trace.vehicles, trace.piece.tolist()) == (1, [1, 1, 2, 2])


def test_a_copied_track_counts_once(tmp_path):
    track, other = segments((0, 30), (90, 120)), segments((0, 30), (90, 121))
    files.written(tmp_path, "a.gpx", f'<gpx version="1.1">{track}{other}{track}</gpx>')
    files.written(tmp_path, "copy of a.gpx", f'<gpx version="1.1">{track}</gpx>')
    trace = read_trace(tmp_path)
    assert trace.names == ["a/1", "a/2"]
    assert "2 recordings are copies of another, fix by fix, as 'a/3' is of 'a/1': left out" in texts_of(trace.left_out)


def test_two_named_vehicles_at_one_place_both_count(tmp_path):
    rows = "".join(f"{vehicle},{second},10,50\n" for vehicle in "ab" for second in (0, 30))
    assert read_trace(files.written(tmp_path, "a.csv", f"vehicle,time,lon,lat\n{rows}")).vehicles == 2


def test_a_copied_file_of_one_vehicle_counts_once(tmp_path):
    for name in ("a.csv", "b.csv"):
        files.written(tmp_path, name, "time,lon,lat\n0,10,50\n30,10.1,50\n")
    assert read_trace(tmp_path, one_vehicle_a_file=True).names == ["a"]


def test_parquet_of_timestamps_and_geoparquet(tmp_path):
    stamps = pd.to_datetime(files.TIDY["time_s"], unit="s", utc=True)
    files.TIDY.assign(time=stamps)[["vehicle", "time", "lon", "lat"]].to_parquet(tmp_path / "a.parquet")
    points = gpd.GeoDataFrame(
        {"vehicle": files.TIDY["vehicle"], "time": stamps},
        geometry=gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"]),
        crs="EPSG:4326",
    ).to_crs("EPSG:32632")
    points.to_parquet(tmp_path / "b.parquet")
    for name in ("a", "b"):
        assert_frame_equal(read_trace(tmp_path / f"{name}.parquet").frame(), files.TIDY, check_dtype=False)


def test_trace_from_a_geodataframe(tmp_path):
    del tmp_path
    stamps = pd.to_datetime(files.TIDY["time_s"], unit="s")
    points = gpd.GeoDataFrame(
        {"who": files.TIDY["vehicle"].to_numpy()},
        index=stamps,
        geometry=gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"]),
        crs="EPSG:4326",
    )
    assert_frame_equal(Trace.from_geodataframe(points, vehicle="who").frame(), files.TIDY, check_dtype=False)
    flat = points.reset_index(names="when").to_crs("EPSG:32632")
    assert_frame_equal(Trace.from_geodataframe(flat, vehicle="who", time="when").frame(), files.TIDY, check_dtype=False)
    with pytest.raises(InputError, match="coordinate system"):
        Trace.from_geodataframe(points.set_crs(None, allow_override=True), vehicle="who")
    with pytest.raises(InputError, match="no column 'nobody' for vehicle"):
        Trace.from_geodataframe(points, vehicle="nobody")


def test_trace_from_a_movingpandas_collection():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # movingpandas warns of its own dependencies when imported
        movingpandas = pytest.importorskip("movingpandas")
        stamps = pd.DatetimeIndex(pd.to_datetime(files.TIDY["time_s"], unit="s"))
        points = gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"])
        who = files.TIDY["vehicle"].to_numpy()
        frame = gpd.GeoDataFrame({"vehicle": who}, index=stamps, geometry=points, crs="EPSG:4326")
        collection = movingpandas.TrajectoryCollection(frame, "vehicle")
    assert_frame_equal(Trace.from_trajectories(collection).frame(), files.TIDY, check_dtype=False)


def test_named_columns_in_metres_with_speeds(tmp_path):
    points = gpd.GeoSeries(gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"]), crs="EPSG:4326").to_crs(32632)
    pd.DataFrame(
        {"wer": [f"{v}01" for v in files.TIDY["vehicle"]], "wann": files.TIDY["time_s"] * 1000, "rechts": points.x,
         "hoch": points.y, "tempo": 36.0}
    ).to_csv(tmp_path / "log.csv", index=False)  # fmt: skip
    columns = {"vehicle": "wer", "time": "wann", "x": "rechts", "y": "hoch", "speed_kph": "tempo"}
    frame = read_trace(tmp_path / "log.csv", columns=columns, crs="EPSG:32632").frame()
    assert list(frame["vehicle"].unique()) == ["a01", "b01"]
    assert frame["speed_mps"].to_numpy() == pytest.approx(10.0)
    assert frame["time_s"].to_numpy() == pytest.approx(files.TIDY["time_s"].to_numpy())
    assert frame["lon"].to_numpy() == pytest.approx(files.TIDY["lon"].to_numpy(), abs=1e-9)


def test_vehicle_names_keep_leading_zeros(tmp_path):
    rows = "vehicle_id,time,lon,lat\n007,1,11.3,44.5\n7,2,11.3,44.5\n"
    assert read_trace(files.written(tmp_path, "t.csv", rows)).names == ["007", "7"]


def test_pickups_and_dropoffs_are_two_fixes(tmp_path):
    header = "medallion,pickup_datetime,dropoff_datetime"
    header += ",pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude"
    rows = (
        "M1,2013-01-01 15:11:48,2013-01-01 15:18:10,-73.978,40.757,-73.989,40.751\n"
        "M1,2013-01-01 15:30:00,2013-01-01 15:40:00,-73.98,40.76,-73.99,40.77\n"
        "M2,2013-01-01 15:00:00,2013-01-01 15:05:00,-73.95,40.7,-73.96,40.71\n"
    )
    frame = read_trace(files.written(tmp_path, "nyc.csv", f"{header}\n{rows}")).frame()
    assert frame.groupby("vehicle").size().to_dict() == {"M1": 4, "M2": 2}
    assert frame["lon"].tolist() == [-73.95, -73.96, -73.978, -73.989, -73.98, -73.99]


@pytest.mark.parametrize(
    "columns",
    [
        ["Trip_Pickup_DateTime", "Trip_Dropoff_DateTime", "Start_Lon", "Start_Lat", "End_Lon", "End_Lat"],
        [f"{end}_{what}" for what in ("datetime", "longitude", "latitude") for end in ("pickup", "dropoff")],
        [f"tpep_{end}_datetime" for end in ("pickup", "dropoff")]
        + [f"{end}_{axis}" for end in ("pickup", "dropoff") for axis in ("longitude", "latitude")],
    ],
    ids=["2009", "2010", "2015"],
)
def test_columns_of_new_yorks_taxis_by_year(tmp_path, columns):
    values = {"time": ("2009-01-04 02:52:00", "2009-01-04 03:02:00"), "lon": (-73.99, -73.95), "lat": (40.72, 40.77)}
    row = {}
    for column in columns:
        role = "time" if "time" in column.lower() else "lon" if "lon" in column.lower() else "lat"
        row[column] = values[role][any(end in column.lower() for end in ("drop", "end_"))]
    pd.DataFrame([row]).assign(vendor_name="VTS").to_csv(tmp_path / "t.csv", index=False)
    read = read_trace(tmp_path / "t.csv").frame()
    assert read["lon"].tolist() == [-73.99, -73.95]
    assert read["lat"].tolist() == [40.72, 40.77]
    assert read["time_s"].diff().tolist()[1:] == [600]


def test_porto_trips_of_a_taxi_are_pieces_in_the_order_of_their_starts(tmp_path):
    trace = read_trace(files.written(tmp_path, "train.csv", files.porto()))
    assert trace.names == ["7"]
    assert (trace.time_s - files.EPOCH_S).tolist() == [0, 15, 600]
    assert trace.lon.tolist() == [-8.62, -8.63, -8.61]
    assert trace.piece.tolist() == [4, 4, 2]
    assert any("left out 1 trip without a place" in note for note in texts_of(trace.left_out))


def test_geolife_users_are_folders_and_their_files_pieces(tmp_path):
    for user, name, vehicle in (("000", "1.plt", "a"), ("001", "2.plt", "b")):
        (tmp_path / user / "Trajectory").mkdir(parents=True)
        files.written(tmp_path / user / "Trajectory", name, files.geolife(vehicle))
    later = files.geolife("a").replace("2008-05-17", "2008-05-18")
    files.written(tmp_path / "000" / "Trajectory", "3.plt", later)
    trace = read_trace(tmp_path)
    assert trace.names == ["000", "001"]
    frame = trace.frame()
    tidy = files.TIDY.assign(vehicle=["000"] * 3 + ["001"] * 2)
    first_day = frame[frame["time_s"] < files.EPOCH_S + 86_400].reset_index(drop=True)
    assert_frame_equal(first_day, tidy, check_dtype=False)
    assert len(np.unique(trace.piece[trace.vehicle == 0])) == 2
    assert "times without a time zone" not in " ".join(texts_of(trace.left_out))


def test_dropped_fixes_are_counted(tmp_path):
    rows = (
        "vehicle,time,lon,lat\na,0,11.3,44.5\na,0,11.3,44.5\na,0,11.4,44.5\na,0,11.4,44.5\na,10,0,0\na,20,11.3,44.6\n"
    )
    trace = read_trace(files.written(tmp_path, "t.csv", rows))
    assert trace.frame()[["time_s", "lon"]].to_numpy().tolist() == [[0, 11.3], [20, 11.3]]
    notes = " ".join(texts_of(trace.left_out))
    assert "1 fix repeated" in notes
    assert "2 fixes of a vehicle that is elsewhere at the same moment" in notes
    assert "1 fix at longitude 0, latitude 0" in notes


def test_order_of_fixes(tmp_path):
    turning = "vehicle,time,lon,lat\na,0,11.3,44.5\nb,7,11.3,44.5\na,20,11.3,44.5\na,10,11.4,44.5\n"
    file = files.written(tmp_path, "t.csv", turning)
    with pytest.raises(InputError, match=r"line 5: the clock of vehicle 'a' must not go back, got 10 s after line 4"):
        read_trace(file)
    assert read_trace(file, order="any").frame()["time_s"].tolist() == [0, 10, 20, 7]
    rows = "vehicle,time,lon,lat\na,9,1,1\na,5,1,1\nb,1,2,2\nb,3,2,2\na,4,1,1\n"
    newest_first = files.written(tmp_path, "n.csv", rows)
    assert read_trace(newest_first).frame()["time_s"].tolist() == [1, 3, 4, 5, 9]
    with pytest.raises(InputError, match="line 3: the clock of vehicle 'a' must not go back"):
        read_trace(newest_first, order="ascending")
    forward_again = files.written(tmp_path, "f.csv", "vehicle,time,lon,lat\na,9,1,1\na,5,1,1\na,7,1,1\n")
    with pytest.raises(InputError, match=r"line 4: .* must not go forward again in a log that runs backward"):
        read_trace(forward_again)


def test_vehicles_are_numbered_by_first_fix(tmp_path):
    rows = "vehicle,time,lon,lat\nlate,5,1,1\nearly,1,1,1\nearly,9,1,1\nlate,6,1,1\nalso,1,1,1\n"
    assert read_trace(files.written(tmp_path, "t.csv", rows)).names == ["early", "also", "late"]


@pytest.mark.parametrize(
    ("inside", "vehicles", "fixes"),
    [
        ("beijing_tdrive_sample/Beijing_taxi.csv.gz", 72, 36_677 - 6),
        ("sf_cabspotting", 3, 23_495 + 21_241 + 18_317),
        ("sumo_fcd/acosta_fcd_0_1800_10s.csv.gz", 4_124, 95_794),
    ],
)
def test_real_recordings(inside, vehicles, fixes):
    root = os.environ.get("CROWDVEIL_DATA")
    if not root or not (Path(root) / inside).exists():
        pytest.skip(f"CROWDVEIL_DATA holds no {inside}")
    trace = read_trace(Path(root) / inside)
    assert (trace.vehicles, len(trace)) == (vehicles, fixes)


@pytest.mark.parametrize(
    ("written", "stated"), [("%m-%d-%y %I:%M:%S %p", True), ("%d/%m/%Y %H:%M:%S%z", True), ("%Y%m%d%H%M%S", False)]
)
def test_times_in_other_formats(tmp_path, written, stated):
    zone = "Europe/Berlin" if "%z" in written else None
    moments = pd.to_datetime(files.TIDY["time_s"], unit="s", utc=True).dt.tz_convert(zone or "UTC").dt.strftime(written)
    file = tmp_path / "taxis.csv"
    files.TIDY.drop(columns=["time_s", "speed_mps"]).assign(time=moments).to_csv(file, index=False)
    trace = read_trace(file, time_format=written if stated else None)
    assert_frame_equal(trace.frame(), files.TIDY, check_dtype=False)
    assert texts_of(trace.left_out) == ([] if zone else ["times without a time zone are taken as UTC"])


def test_row_numbers_are_refused_as_times():
    frame = gpd.GeoDataFrame({"who": [1, 1]}, geometry=gpd.points_from_xy([11.3, 11.4], [44.5, 44.5]), crs="EPSG:4326")
    with pytest.raises(InputError, match="holds row numbers, not times"):
        Trace.from_geodataframe(frame, vehicle="who")


def test_invalid_crs_and_missing_files_are_refused():
    frame = pd.DataFrame({"vehicle": [1], "time": [3], "x": [1.0], "y": [2.0]})
    with pytest.raises(InputError, match="crs: not a coordinate system pyproj knows: 'EPSG:nope'"):
        Trace.from_frame(frame, crs="EPSG:nope")
    with pytest.raises(InputError, match="no files"):
        read_trace([])


@pytest.mark.parametrize("batch", [1, 7])
def test_sumo_xml_is_read_alike_in_batches_of_any_size(tmp_path, monkeypatch, batch):
    whole = read_trace(files.written(tmp_path, "f.xml", files.sumo_xml())).frame()
    monkeypatch.setattr("simulator.formats.recordings.trace_documents._BATCH", batch)
    assert_frame_equal(read_trace(tmp_path / "f.xml").frame(), whole)
    files.written(tmp_path, "f.xml", files.sumo_xml().replace('speed="', 'speed="?', 1))
    with pytest.raises(InputError, match=r"line \d+: speed_mps .* must be a finite number, 0 or more, got '\?"):
        read_trace(tmp_path / "f.xml")


def test_a_fix_of_sumo_xml_takes_less_than_300_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.formats.recordings.trace_documents._BATCH", 1_000)
    line = '<vehicle id="flow.{0}" x="11.{0:06}" y="44.5" angle="90.00" speed="13.25" lane="e_0"/>\n'
    with (tmp_path / "f.xml").open("w", encoding="utf-8") as file:
        file.write("<fcd-export>")
        for moment in range(10):
            file.write(f'<timestep time="{moment}">{"".join(map(line.format, range(2_000)))}</timestep>')
        file.write("</fcd-export>")
    read_trace(tmp_path / "f.xml")  # so that modules and caches are not counted
    tracemalloc.start()
    try:
        fixes = len(read_trace(tmp_path / "f.xml"))
        assert tracemalloc.get_traced_memory()[1] < 300 * fixes
    finally:
        tracemalloc.stop()
