"""Exports of a run for QGIS, kepler.gl and SimWrapper, read again and compared with its tables and positions."""

import gzip
import json
from io import StringIO

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely
import yaml

import crowdveil as cv
from simulator.files.errors import InputError
from simulator.pages.exports.geopackage import mean_estimates, write_geopackage
from simulator.pages.exports.positions import kept_positions, write_trips
from simulator.pages.exports.simwrapper import write_folder
from simulator.pages.plots import RunPlots

EPOCH_S = 1_577_836_800  # 2020-01-01
MECHANISMS = ("sampling", "randomized", "baseline")


@pytest.fixture(scope="module", params=["sumo", "kepler", "parquet"])
def kept(request, tmp_path_factory):
    """A run that kept its positions in one format."""
    directory = tmp_path_factory.mktemp(request.param) / "tiny"
    overrides = {"fcd": {"every_s": 10, "from_s": 20, "formats": [request.param]}, "traffic.vehicles": 40}
    return directory, cv.run("tiny", overrides=overrides, out=directory)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plain") / "tiny"
    return directory, cv.run("tiny", out=directory)


@pytest.fixture(scope="module")
def several():
    return cv.run("collusion", overrides={"traffic.vehicles": 200})


def positions_of(result):
    table = result.fcd.table.assign(time_s=result.fcd.time_s)
    return {(row.vehicle, row.time_s): (row.lon, row.lat) for row in table.itertuples()}


def test_a_geopackage_has_the_estimates_of_the_run(plain, tmp_path):
    directory, result = plain
    write_geopackage(cv.load(directory), tmp_path / "run.gpkg", overwrite=False)
    layers = gpd.list_layers(tmp_path / "run.gpkg")
    assert layers["name"].tolist() == ["cells", "estimates", "roads"]

    long = gpd.read_file(tmp_path / "run.gpkg", layer="estimates")
    kept = pd.read_parquet(directory / "estimates.parquet")
    assert len(long) == len(kept)
    for column in kept.columns.drop("time"):  # there a date and time, for QGIS's temporal controller
        assert np.array_equal(long[column], kept[column]), column
    assert np.allclose(long["error"], kept["estimate"] - kept["truth"])
    assert (long["time"] - pd.Timestamp(EPOCH_S, unit="s", tz="UTC")).dt.total_seconds().tolist() == kept[
        "time_s"
    ].tolist()
    times = sorted(kept["time_s"].unique())
    ends = dict(zip(times, [*times[1:], 300.0], strict=True))
    until = (long["until"] - pd.Timestamp(EPOCH_S, unit="s", tz="UTC")).dt.total_seconds()
    assert until.tolist() == kept["time_s"].map(ends).tolist()
    shapes = result.cells.set_index("cell").geometry
    assert all(shape.equals(shapes[cell]) for cell, shape in zip(long["cell"], long.geometry, strict=True))

    cells = gpd.read_file(tmp_path / "run.gpkg", layer="cells").set_index("cell")
    assert cells.crs == "EPSG:4326"
    for name in MECHANISMS:
        own = kept[kept["mechanism"] == name]
        error = own["estimate"] - own["truth"]
        assert np.allclose(cells[f"estimate_{name}"], own.groupby("cell")["estimate"].mean())
        assert np.allclose(cells[f"error_{name}"], error.groupby(own["cell"]).mean())
        assert np.allclose(cells[f"rmse_{name}"], np.sqrt((error**2).groupby(own["cell"]).mean()))
        assert np.allclose(cells["truth"], own.groupby("cell")["truth"].mean())

    roads = gpd.read_file(tmp_path / "run.gpkg", layer="roads")
    assert len(roads) == result.record.city.links
    assert set(roads.geom_type) == {"LineString"}


def test_campaigns_have_columns_of_their_own(several):
    cells = mean_estimates(several)
    for (campaign, mechanism), rows in several.estimates.groupby(["campaign", "mechanism"]):
        means = rows.groupby("cell")[["truth", "estimate"]].mean()
        assert np.allclose(cells[f"estimate_{mechanism}_{campaign}"], means["estimate"])
        assert np.allclose(cells[f"truth_{campaign}"], means["truth"])


def test_names_that_differ_in_case_only_and_cells_without_an_estimate_are_kept(plain, tmp_path):
    _, result = plain
    names = result.estimates["mechanism"].replace({"randomized": "Sampling"})
    estimates = result.estimates.assign(mechanism=names)
    estimates = estimates[estimates["cell"] != 1]
    write_geopackage(result.with_tables(estimates=estimates), tmp_path / "run.gpkg", overwrite=False)
    cells = gpd.read_file(tmp_path / "run.gpkg", layer="cells").set_index("cell")
    assert {"estimate_sampling", "estimate_Sampling_"} <= set(cells)
    assert np.isnan(cells.loc[1, "estimate_sampling"])
    assert len(cells) == len(result.cells)


def test_lost_reports_and_hostile_names_are_exported(tmp_path):
    lost = cv.run("tiny", overrides={"channel.loss": 1})
    names = ["<script>alert(1)</script>", "شارع الملك", "北京市", "- a: b # c\n\"'"]
    cells = lost.cells.assign(name=(names * len(lost.cells))[: len(lost.cells)])
    record = lost.record.model_copy(update={"description": names[3], "scenario": names[0]})
    hostile = lost.with_tables(cells=cells, record=record)
    write_geopackage(hostile, tmp_path / "run.gpkg", overwrite=False)
    assert gpd.read_file(tmp_path / "run.gpkg", layer="cells")["name"].tolist() == cells["name"].tolist()
    assert not write_folder(hostile, tmp_path, tmp_path / "simwrapper", overwrite=False)
    header = yaml.safe_load((tmp_path / "simwrapper" / "dashboard-1.yaml").read_text(encoding="utf-8"))["header"]
    assert header["title"] == names[0]
    assert names[3] in header["description"]
    shapes = gpd.read_file(tmp_path / "simwrapper" / "cells.geojson")
    assert shapes["name"].tolist() == cells["name"].tolist()


def test_one_cell_is_exported(tmp_path):
    one = cv.run("tiny", overrides={"cells.size_m": 10_000})
    write_geopackage(one, tmp_path / "run.gpkg", overwrite=False)
    assert len(gpd.read_file(tmp_path / "run.gpkg", layer="cells")) == 1
    write_folder(one, tmp_path, tmp_path / "simwrapper", overwrite=False)
    assert len(pd.read_csv(tmp_path / "simwrapper" / "occupancy.csv")) == 1


def test_trips_for_kepler_are_the_vehicles_positions(kept, tmp_path):
    directory, result = kept
    write_trips(cv.load(directory), directory, tmp_path / "trips.geojson", overwrite=False)
    features = json.loads((tmp_path / "trips.geojson").read_text(encoding="utf-8"))["features"]
    known, seen = positions_of(result), 0
    for feature in features:
        vehicle, line = int(feature["properties"]["vehicle"]), feature["geometry"]
        assert line["type"] == "LineString"
        times = [point[3] - EPOCH_S for point in line["coordinates"]]
        assert np.diff(times).tolist() == [10] * (len(times) - 1)  # no absence within a line
        for (lon, lat, altitude, _), time_s in zip(line["coordinates"], times, strict=True):
            assert altitude == 0
            assert (lon, lat) == pytest.approx(known[vehicle, time_s], abs=1e-8)
            seen += 1
    alone = [vehicle for vehicle, rows in result.fcd.table.groupby("vehicle") if len(rows) == 1]
    assert seen == len(known) - len(alone) > 100


def test_positions_are_read_with_their_moments(kept):
    directory, result = kept
    samples = kept_positions(directory, result)
    first = result.fcd.table
    if (directory / "trips.geojson").exists():  # which has no vehicle that was seen once
        first = first[first.groupby("vehicle")["moment"].transform("size") > 1]
    both = [table.sort_values(["moment", "vehicle"]) for table in (samples.table, first)]
    assert both[0]["vehicle"].tolist() == both[1]["vehicle"].tolist()
    assert samples.moments_s[both[0]["moment"]].tolist() == result.fcd.moments_s[both[1]["moment"]].tolist()


def test_a_simwrapper_folder_agrees_with_the_run(kept, tmp_path):
    directory, result = kept
    folder = tmp_path / "simwrapper"
    assert write_folder(cv.load(directory), directory, folder, overwrite=False)
    dashboard = yaml.safe_load((folder / "dashboard-1.yaml").read_text(encoding="utf-8"))
    assert dashboard["header"]["tab"] == "occupancy"
    panels = [panel for row in dashboard["layout"].values() for panel in row]
    assert {panel["type"] for panel in panels} == {"map", "xytime"}
    means = pd.read_csv(folder / "occupancy.csv").set_index("cell")
    shapes = gpd.read_file(folder / "cells.geojson").set_index("cell")
    assert sorted(shapes.index) == sorted(means.index) == result.cells["cell"].tolist()
    west, south, east, north = result.cells.total_bounds
    for panel in panels:
        if panel["type"] == "map":
            assert panel["shapes"] == {"file": "cells.geojson", "join": "cell"}
            assert panel["display"]["fill"]["columnName"] in means
            assert panel["display"]["fill"]["dataset"] in panel["datasets"]
            assert west < panel["center"][0] < east
            assert south < panel["center"][1] < north
        else:
            assert (folder / panel["file"]).is_file()
    for place, name in enumerate(MECHANISMS, start=1):
        own = result.estimates[result.estimates["mechanism"] == name]
        assert np.allclose(means[f"estimate_{place}"], own.groupby("cell")["estimate"].mean())
        assert np.allclose(means[f"error_{place}"], (own["estimate"] - own["truth"]).groupby(own["cell"]).mean())
        lines = (folder / f"occupancy-{name}.xyt.csv").read_text(encoding="utf-8").splitlines()
        assert lines[:2] == ["# EPSG:4326", "time,x,y,value"]
        points = pd.read_csv(StringIO("\n".join(lines[1:])))
        assert points["time"].is_monotonic_increasing
        own = own.sort_values(["time_s", "cell"])
        assert np.allclose(points["value"], own["estimate"])
        assert points["time"].tolist() == own["time_s"].tolist()
        inside = shapely.contains_xy(shapes.geometry.loc[own["cell"]].to_numpy(), points["x"], points["y"])
        assert inside.all()


def test_vehicles_of_a_simwrapper_folder_are_the_positions(kept, tmp_path):
    directory, result = kept
    write_folder(cv.load(directory), directory, tmp_path / "simwrapper", overwrite=False)
    panel = yaml.safe_load((tmp_path / "simwrapper" / "dashboard-vehicles.yaml").read_text(encoding="utf-8"))
    (vehicles,) = panel["layout"]["vehicles"]
    content = json.loads(gzip.decompress((tmp_path / "simwrapper" / vehicles["drtTrips"]).read_bytes()))
    assert content["drtRequests"] == []
    known = positions_of(result)
    assert len({trip["id"] for trip in content["trips"]}) == len(content["trips"]) > 30
    for trip in content["trips"]:
        assert len(trip["path"]) == len(trip["timestamps"]) == len(trip["passengers"])
        for place, time_s in zip(trip["path"], trip["timestamps"], strict=True):
            assert place == pytest.approx(known[int(trip["id"].partition("-")[0]), time_s], abs=1e-8)


def test_a_run_without_positions_states_how_to_keep_them(plain, tmp_path):
    directory, result = plain
    with pytest.raises(InputError, match=r"kept no positions of its vehicles; .* --set fcd\.every_s=10$"):
        write_trips(result, directory, tmp_path / "trips.geojson", overwrite=False)
    assert not write_folder(result, directory, tmp_path / "simwrapper", overwrite=False)
    assert not list((tmp_path / "simwrapper").glob("*vehicles*"))


def test_existing_files_are_replaced_only_on_request(plain, tmp_path):
    directory, result = plain
    target, folder = tmp_path / "run.gpkg", tmp_path / "simwrapper"
    target.write_text("mine")
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="--overwrite"):
        write_geopackage(result, target, overwrite=False)
    with pytest.raises(InputError, match="--overwrite"):
        write_folder(result, directory, folder, overwrite=False)
    assert target.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    write_geopackage(result, target, overwrite=True)
    write_folder(result, directory, folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "mine"
    assert set(gpd.list_layers(target)["name"]) == {"cells", "estimates", "roads"}
    with pytest.raises(InputError, match=r"the name of a GeoPackage must end in \.gpkg"):
        write_geopackage(result, tmp_path / "run.sqlite", overwrite=False)


OSM = """<osm version="0.6"><node id="1" lat="60.17" lon="24.94"/><node id="2" lat="60.171" lon="24.945"/>
<node id="3" lat="60.173" lon="24.94"/><way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="1"/>
<tag k="highway" v="residential"/></way></osm>"""


def test_credits_of_map_data_are_kept(tmp_path, call_in_process):
    (tmp_path / "town.osm").write_text(OSM)
    scenario = cv.Scenario(
        scenario={"name": "town", "duration_s": 300},
        roads={"source": "osm", "path": str(tmp_path / "town.osm")},
        cells={"kind": "square", "size_m": 300},
        traffic={"vehicles": 30},
        campaigns=[{"start_s": 60, "every_s": 60, "queries": 2}],
        mechanisms=[{"kind": "no_privacy"}],
        fcd={"every_s": 10},
    )
    directory = tmp_path / "run"
    result = cv.run(scenario, out=directory)
    credit = "© OpenStreetMap contributors, ODbL 1.0"
    for target, name in (("geopackage", "run.gpkg"), ("kepler", "kepler.geojson"), ("simwrapper", "simwrapper")):
        done = call_in_process("export", str(directory), "--to", target, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"{directory / name}: written for {target}\n"), done.stderr
        assert f"note: wherever this is shown, state the source of the data: {credit}" in done.stderr
    assert pyogrio.read_info(directory / "run.gpkg", layer="cells")["dataset_metadata"]["attribution"] == credit
    for file in ("kepler.geojson", "simwrapper/cells.geojson"):
        assert json.loads((directory / file).read_text(encoding="utf-8"))["attribution"] == credit
    assert credit in (directory / "simwrapper" / "dashboard-1.yaml").read_text(encoding="utf-8")
    assert f"# {credit}\n" in next((directory / "simwrapper").glob("*.xyt.csv")).read_text(encoding="utf-8")
    assert credit in {text.get_text() for text in RunPlots(result, shown=False).map().texts}
