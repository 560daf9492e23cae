"""Counts and speeds of road segments and hexagons, on a grid small enough to check every vehicle."""

import numpy as np
import pandas as pd
import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine
from simulator.files.resources import Stopwatch
from simulator.streams import Streams
from simulator.traffic.engine import State, VehicleStates

TEXT = """
scenario = {{name = "streets", duration_s = 400, seed = 3}}
roads = {{source = "grid", rows = 4, columns = 4, spacing_m = 250, speed_mps = 10}}
traffic = {{vehicles = 600}}
mechanisms = [{{name = "trusted", kind = "no_privacy"}}]
[cells]
{cells}
[[campaigns]]
name = "count"
start_s = 100
queries = 2
every_s = 100
round_gap_s = 30
{campaign}
"""
CELLS = {
    "link": 'kind = "roads"',
    "road": 'kind = "roads"\nper = "road"',
    "block": 'kind = "roads"\nper = "road"\nlevel = 1',
    "top": 'kind = "roads"\ntop = 20',
    "h3": 'kind = "h3"\nresolution = 9',
    "parents": 'kind = "h3"\nresolution = 10\nlevel = 1',
}


@pytest.fixture
def scenario(tmp_path):
    def write(cells, campaign=""):
        path = tmp_path / "streets.toml"
        path.write_text(TEXT.format(cells=cells, campaign=campaign))
        return path

    return write


def drive_to(path, *ticks):
    """Drive the scenario's traffic step by step; return the city, and positions and speeds at each tick."""
    loaded = scenarios.load(path)
    city = build_city(loaded)
    engine = build_engine(loaded, city, streams=Streams(loaded.seed), stopwatch=Stopwatch(), end_s=0.0)
    seen = []
    for tick in ticks:
        engine.advance_to(tick)
        seen.append((engine.places(), engine.speeds()))
    return city, *seen


def cell_by_hand(city, places, kind):
    """Each vehicle's cell computed independently: from the ends of its link, or by h3 itself."""
    links = city.roads.links
    if kind in {"h3", "parents"}:
        import h3  # noqa: PLC0415  an extra

        degrees = city.roads.to_wgs84(city.roads.locate(places.link, places.fraction))
        names = [h3.latlng_to_cell(lat, lon, 9 if kind == "h3" else 10) for lon, lat in degrees]
        if kind == "h3":
            return names
        return [h3.cell_to_parent(name, 9) for name in names]
    ends = [
        (city.roads.node_names[a], city.roads.node_names[b])
        for a, b in zip(links.from_node, links.to_node, strict=True)
    ]
    return [ends[link] if kind == "link" else tuple(sorted(ends[link])) for link in places.link.tolist()]


@pytest.mark.parametrize("kind", ["link", "road", "h3", "parents"])
def test_every_vehicle_is_counted_in_its_cell(scenario, kind):
    path = scenario(CELLS[kind])
    city, (before, _), (places, _) = drive_to(path, 100, 130)
    cells = city.cells_of(places)
    assert (cells > 0).all()
    by_hand = cell_by_hand(city, places, kind)
    assert len({*zip(cells.tolist(), by_hand, strict=True)}) == len(set(by_hand)) == len(set(cells.tolist()))
    asked = np.flatnonzero(before.state == State.ON_ROAD)  # in round one; their cells are those of round two
    expected = np.bincount(cells[asked], minlength=city.cells.count + 1)[1:]
    rows = run(path).estimates.query("query == 1").sort_values("cell")
    assert rows["truth"].tolist() == expected.tolist()
    assert rows["estimate"].tolist() == expected.tolist()
    assert expected.sum() > 20


@pytest.mark.parametrize(
    ("kind", "statistic"), [*((kind, "mean_speed") for kind in CELLS), ("road", "median_speed"), ("h3", "median_speed")]
)
def test_exact_segment_speeds_equal_the_computed_truth(scenario, kind, statistic):
    path = scenario(CELLS[kind], f'statistic = "{statistic}"\nmin_vehicles = 1')
    city, (places, speeds) = drive_to(path, 130)
    cells, there = city.cells_of(places), places.state == State.ON_ROAD
    of = np.mean if statistic == "mean_speed" else np.median
    expected = {cell: of(speeds[there & (cells == cell)]) for cell in np.unique(cells[there]) if cell}
    result = run(path)
    rows = result.estimates.query("query == 1").set_index("cell")
    assert set(rows.index) == set(expected)
    for cell, speed in expected.items():
        assert rows.loc[cell, "truth"] == pytest.approx(speed)
        assert rows.loc[cell, "estimate"] == pytest.approx(speed)
    asked = result.rounds.query("query == 1").iloc[0]
    assert asked["asked"] == asked["counted"] == there.sum()


def test_noisy_segment_speeds_are_published(scenario):
    release = 'statistic = "mean_speed"\nmin_vehicles = 3\nrelease = {kind = "laplace", epsilon = 5.0}'
    result = run(scenario(CELLS["road"], release))
    rows = result.estimates
    assert len(rows) > 10
    assert (rows["lower"] <= rows["upper"]).all()
    assert rows["estimate"].sub(rows["truth"]).abs().max() > 0


def test_roads_are_half_as_many_as_links_and_drawn_as_lines(scenario):
    cities = {kind: build_city(scenarios.load(scenario(CELLS[kind]))) for kind in ("link", "road", "block", "top")}
    links = len(cities["link"].roads.links)
    assert cities["link"].cells.count == links == 2 * cities["road"].cells.count
    assert 1 < cities["block"].cells.count < cities["road"].cells.count
    assert cities["top"].cells.count == 20
    for city in cities.values():
        assert set(city.cells.polygons().geometry.geom_type) <= {"LineString", "MultiLineString"}
        everywhere = np.arange(links, dtype=np.int32)
        state = np.full(links, State.ON_ROAD, dtype=np.uint8)
        by_link = city.cells_of(VehicleStates(state, everywhere, np.full(links, 0.5)))
        seen = city.cells_of(
            VehicleStates(state, np.full(links, -1), np.full(links, np.nan), city.roads.locate(everywhere, 0.5))
        )
        if city is cities["link"]:
            back = city.roads.links.to_node[by_link - 1], city.roads.links.from_node[by_link - 1]
            assert by_link.tolist() == list(range(1, links + 1))
            assert len(back[0]) == links
        elif city is not cities["top"]:
            np.testing.assert_array_equal(by_link, seen)


def test_class_without_roads_is_a_fault(scenario):
    with pytest.raises(ScenarioError, match="classes: no road is of class 'primary'"):
        build_city(scenarios.load(scenario('kind = "roads"\nclasses = ["primary"]')))


def test_only_roads_of_the_given_class_are_cells(tmp_path, scenario):
    (tmp_path / "n.csv").write_text("id,lon,lat\na,0,0\nb,0.002,0\nc,0.002,0.002\n")
    (tmp_path / "e.csv").write_text("f,t,kind\na,b,main\nb,a,main\nb,c,side\nc,b,side\na,c,main\nc,a,main\n")
    lines = scenario('kind = "roads"\nclasses = ["main"]\nper = "road"').read_text().splitlines()
    columns = '{node = "id", lon = "lon", lat = "lat", from = "f", to = "t", class = "kind"}'
    path = tmp_path / "tables.toml"
    roads = f'roads = {{source = "tables", nodes = "n.csv", edges = "e.csv", columns = {columns}}}'
    path.write_text("\n".join(roads if line.startswith("roads = ") else line for line in lines))
    city = build_city(scenarios.load(path))
    assert city.cells.names == ["a–b", "a–c"]
    everywhere = np.arange(6, dtype=np.int32)
    cells = city.cells_of(VehicleStates(np.full(6, State.ON_ROAD, np.uint8), everywhere, np.zeros(6)))
    assert sorted(cells.tolist()) == [0, 0, 1, 1, 2, 2]


def test_zones_that_are_squares_give_the_tables_of_squares(scenario, tmp_path):
    squares = 'kind = "square"\nsize_m = 133.7'
    drawn = build_city(scenarios.load(scenario(squares))).cells.polygons()
    drawn.to_file(tmp_path / "districts.gpkg", driver="GPKG")
    expected = run(scenario(squares))
    found = run(scenario('kind = "zones"\nfile = "districts.gpkg"\nname = "name"'))
    pd.testing.assert_frame_equal(found.estimates, expected.estimates)
    pd.testing.assert_frame_equal(found.scores, expected.scores)
    assert found.cells["name"].tolist() == expected.cells["name"].tolist()
    assert "districts.gpkg" in " ".join(found.facts["data"])


def test_zones_that_overlap_are_a_fault_of_the_section(scenario, tmp_path):
    drawn = build_city(scenarios.load(scenario('kind = "square"\nsize_m = 133.7'))).cells.polygons()
    drawn.geometry = drawn.geometry.buffer(20.0)
    drawn.to_file(tmp_path / "districts.gpkg", driver="GPKG")
    with pytest.raises(ScenarioError, match=r"cells: zones '1' and '2' overlap, by \d+% of the smaller one"):
        run(scenario('kind = "zones"\nfile = "districts.gpkg"'))
