"""The export of a run for QGIS, read again and compared with its tables."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest

import crowdveil as cv
from simulator.files.errors import InputError
from simulator.pages.exports.geopackage import mean_estimates, write_geopackage
from simulator.pages.plots import RunPlots

EPOCH_S = 1_577_836_800  # 2020-01-01
MECHANISMS = ("sampling", "randomized", "baseline")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plain") / "tiny"
    return directory, cv.run("tiny", out=directory)


@pytest.fixture(scope="module")
def several():
    return cv.run("collusion", overrides={"traffic.vehicles": 200})


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


def test_one_cell_is_exported(tmp_path):
    one = cv.run("tiny", overrides={"cells.size_m": 10_000})
    write_geopackage(one, tmp_path / "run.gpkg", overwrite=False)
    assert len(gpd.read_file(tmp_path / "run.gpkg", layer="cells")) == 1


def test_existing_files_are_replaced_only_on_request(plain, tmp_path):
    _, result = plain
    target = tmp_path / "run.gpkg"
    target.write_text("mine")
    with pytest.raises(InputError, match="--overwrite"):
        write_geopackage(result, target, overwrite=False)
    assert target.read_text() == "mine"
    write_geopackage(result, target, overwrite=True)
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
    )
    directory = tmp_path / "run"
    result = cv.run(scenario, out=directory)
    credit = "© OpenStreetMap contributors, ODbL 1.0"
    done = call_in_process("export", str(directory), "--to", "geopackage", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{directory / 'run.gpkg'}: written for geopackage\n"), done.stderr
    assert f"note: wherever this is shown, state the source of the data: {credit}" in done.stderr
    assert pyogrio.read_info(directory / "run.gpkg", layer="cells")["dataset_metadata"]["attribution"] == credit
    assert credit in {text.get_text() for text in RunPlots(result, shown=False).map().texts}
