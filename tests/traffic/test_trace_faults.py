"""An invalid recording is refused with file, line or row, and rule."""

from __future__ import annotations

import gzip
import json

import geopandas as gpd
import pyarrow.parquet as pq
import pytest
import trace_files as files

from simulator.files.errors import InputError
from simulator.formats.recordings import read_trace

HEADER = "vehicle,time,lon,lat\n"
FINE = "a,0,11.3,44.5\n"


def test_decompression_bomb_is_refused(tmp_path, monkeypatch):
    for module in ("resources", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
        monkeypatch.setattr(f"simulator.files.{module}.available_nbytes", lambda: 1 << 20)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((HEADER + "a,0,11.3,44.5\n" * 400_000).encode()))
    with pytest.raises(InputError, match=r"t\.csv\.gz: memory needed to hold the"):
        read_trace(tmp_path / "t.csv.gz")


def test_all_invalid_files_are_reported_together(tmp_path):
    files.written(tmp_path, "a.csv", HEADER + FINE)
    files.written(tmp_path, "b.csv", "")
    files.written(tmp_path, "c.csv", f"{HEADER}x,0,1,100\n")
    with pytest.raises(InputError) as caught:
        read_trace(tmp_path)
    assert len(caught.value.faults) == 2
    with pytest.raises(InputError, match="no such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(InputError, match="the folder holds no file"):
        read_trace(tmp_path / "hollow")


def test_dates_and_relative_times_must_not_be_mixed(tmp_path):
    pair = [files.written(tmp_path, "a.csv", files.taxi_csv()), files.written(tmp_path, "b.csv", HEADER + FINE)]
    with pytest.raises(InputError, match=r"b\.csv: its times are relative, and those of .*a\.csv are dates"):
        read_trace(pair)


def test_files_of_one_vehicle_differ_in_name(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        files.written(tmp_path / folder, "new_x.txt", files.cabspotting("a"))
    with pytest.raises(InputError, match="must differ in name"):
        read_trace([tmp_path / "one", tmp_path / "two"])


def test_missing_named_columns_are_refused(tmp_path):
    file = files.written(tmp_path, "t.csv", HEADER + FINE)
    with pytest.raises(InputError, match="no column 'wo' for lon; its columns are 'vehicle', 'time', 'lon', 'lat'"):
        read_trace(file, columns={"lon": "wo"})
    with pytest.raises(InputError, match="format must be one of auto, csv"):
        read_trace(file, format="excel")


NOT_PLAIN = {
    "lists": [[1.0, 2.0]],
    "structures": [{"a": 1}],
    "bytes that are no text": [b"\xff\xfe"],
}


@pytest.mark.parametrize("values", NOT_PLAIN.values(), ids=NOT_PLAIN)
@pytest.mark.parametrize("column", ["vehicle", "time", "lon", "lat"])
def test_parquet_columns_of_other_types_raise_only_input_errors(tmp_path, column, values):
    frame = files.TIDY.rename(columns={"time_s": "time"})
    frame.assign(**{column: values * len(frame)}).to_parquet(tmp_path / "t.parquet")
    try:
        assert len(read_trace(tmp_path / "t.parquet")) > 0
    except InputError as error:
        assert error.faults  # noqa: PT017 - either result is allowed, and no other exception


@pytest.mark.parametrize("crs", ["EPSG:4326 x", 5])
def test_geoparquet_in_no_known_system_is_refused(tmp_path, crs):
    points = gpd.points_from_xy(files.TIDY["lon"], files.TIDY["lat"])
    frame = gpd.GeoDataFrame(files.TIDY[["vehicle", "time_s"]], geometry=points, crs="EPSG:4326")
    frame.to_parquet(tmp_path / "t.parquet")
    stored = pq.read_table(tmp_path / "t.parquet")
    about = json.loads(stored.schema.metadata[b"geo"])
    about["columns"]["geometry"]["crs"] = crs
    stored = stored.replace_schema_metadata({**stored.schema.metadata, b"geo": json.dumps(about).encode()})
    pq.write_table(stored, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_trace(tmp_path / "t.parquet")


def test_points_in_a_damaged_coordinate_system_raise_an_input_error(tmp_path):
    file = tmp_path / "points.parquet"
    points = gpd.GeoDataFrame({"time_s": [0.0, 1.0]}, geometry=gpd.points_from_xy([13, 13.1], [52, 52]), crs=4326)
    points.to_parquet(file)
    table = pq.read_table(file)
    geo = table.schema.metadata[b"geo"].replace(b'"GeographicCRS"', b'"Geographic"')
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"geo": geo}), file)
    with pytest.raises(InputError, match=r"points\.parquet: cannot be read as Parquet"):
        read_trace(file)
