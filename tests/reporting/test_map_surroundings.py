"""Water and names on the report's map: right, apart from each other, and safe."""

import re
from itertools import combinations

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import crowdveil as cv
from simulator.pages import report
from simulator.pages.map_section import city_outlines
from simulator.results.run import RunResult

SCRIPT = "<script>document.title='stolen'</script>"
NAMES = ("ميدان التحرير", "天安门", SCRIPT)
CELLS = gpd.GeoDataFrame(
    {"cell": [1, 2, 3], "name": ["", "", ""]},
    geometry=[shapely.box(0, 0, 0.01, 0.01), shapely.box(0.01, 0, 0.02, 0.01), shapely.box(0.02, 0, 0.03, 0.01)],
    crs="EPSG:4326",
)


def around(*rows):
    kinds, names, shapes = zip(*rows, strict=True)
    return pd.DataFrame({"kind": kinds, "name": names, "geometry": np.array(shapes, dtype=object)})


def drawn(path):
    """The rings of an SVG path, as polygons."""
    rings = [re.findall(r"([-\d.]+) ([-\d.]+)", ring) for ring in path.split("Z") if ring]
    return [shapely.Polygon([tuple(map(float, point)) for point in ring]) for ring in rings]


def test_cells_end_at_the_water():
    half = shapely.box(0.005, -1, 0.0295, 1)  # of the third cell, too little land is left
    city = city_outlines(CELLS, None, around(("water", None, half)))
    plain = city_outlines(CELLS)
    assert (city["width"], city["height"]) == (plain["width"], plain["height"])
    (water,) = drawn(city["water"])
    assert water.bounds == pytest.approx((166.7, 0, 983.3, 333.3), abs=0.2)
    (first,) = drawn(city["paths"][0])
    assert first.bounds == pytest.approx((0, 0, 166.7, 333.3), abs=0.2)
    assert city["paths"][1:] == plain["paths"][1:]
    assert plain["water"] == ""
    assert plain["labels"] == []


def test_water_is_as_fine_as_the_drawing():
    angles = np.linspace(0, 2 * np.pi, 20_000)
    pond = shapely.Polygon(np.column_stack([0.015 + 0.004 * np.cos(angles), 0.005 + 0.004 * np.sin(angles)]))
    speck = shapely.box(0.001, 0.001, 0.0011, 0.0011)
    river = shapely.LineString([(0.021, -1), (0.021, 1)])
    city = city_outlines(CELLS, None, around(*(("water", None, shape) for shape in (pond, speck, river))))
    assert len(city["water"]) < 1000
    shapes = drawn(city["water"])
    assert len(shapes) == 2
    lake, stream = sorted(shapes, key=lambda shape: -shape.area)
    assert lake.area == pytest.approx(np.pi * (0.004 / 0.03 * 1000) ** 2, rel=0.01)
    assert stream.bounds == pytest.approx((698.5, 0, 701.5, 333.3), abs=0.2)


def test_names_stay_inside_and_apart():
    rng = np.random.default_rng(1)
    points = [shapely.Point(*at) for at in rng.uniform(0, (0.03, 0.01), (200, 2))]
    rows = [("place", f"Place {i}", point) for i, point in enumerate(points)]
    rows += [("place", "x" * 300, points[0]), ("place", "outside", shapely.Point(1, 1))]
    rows += [("street", "a street", shapely.LineString([(0, 0), (0.03, 0.01)]))]
    city = city_outlines(CELLS, None, around(*rows))
    labels = city["labels"]
    assert 3 < len(labels) <= 12
    assert labels[0][2] == "Place 0"
    boxes = []
    for x, y, text in labels:
        assert text.startswith("Place ")
        half = 0.25 * 24 * len(text)
        boxes.append(shapely.box(x - half, y - 12, x + half, y + 12))
    assert all(shapely.box(0, 0, city["width"], city["height"]).contains(box) for box in boxes)
    assert not any(one.intersects(other) for one, other in combinations(boxes, 2))


def test_without_places_streets_have_names_at_their_middle():
    lines = shapely.MultiLineString([[(0, 0.005), (0.01, 0.005)], [(0.01, 0.005), (0.03, 0.005)]])
    city = city_outlines(CELLS, None, around(("water", None, shapely.box(0, 0, 1, 0.001)), ("street", "大街", lines)))
    ((x, y, text),) = city["labels"]
    assert (x, y) == pytest.approx((500, 166.7), abs=0.2)
    assert text == "大街"


OSM = """<osm version="0.6">
<node id="1" lat="60.170" lon="24.940"/><node id="2" lat="60.170" lon="24.945"/>
<node id="3" lat="60.173" lon="24.945"/><node id="4" lat="60.173" lon="24.940"/>
{places}
<node id="11" lat="60.1710" lon="24.942"/><node id="12" lat="60.1710" lon="24.944"/>
<node id="13" lat="60.1715" lon="24.944"/><node id="14" lat="60.1715" lon="24.942"/>
<way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="highway" v="residential"/></way>
<way id="2"><nd ref="1"/><nd ref="3"/><tag k="highway" v="primary"/></way>
<way id="3"><nd ref="11"/><nd ref="12"/><nd ref="13"/><nd ref="14"/><nd ref="11"/><tag k="natural" v="water"/></way>
</osm>
"""


@pytest.fixture(scope="module")
def lakeside(tmp_path_factory):
    pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmnx")
    folder = tmp_path_factory.mktemp("lakeside")
    places = "".join(
        f'<node id="{20 + i}" lat="{60.1705 + i / 1000}" lon="24.943"><tag k="place" v="suburb"/>'
        f'<tag k="name" v="{name.replace("<", "&lt;")}"/></node>'
        for i, name in enumerate(NAMES)
    )
    (folder / "lakeside.osm").write_text(OSM.format(places=places), encoding="utf-8")
    overrides = {"roads": {"source": "osm", "path": str(folder / "lakeside.osm")}, "cells.size_m": 100}
    cv.run("tiny", overrides=overrides, out=folder / "run")
    return folder / "run"


def test_a_run_keeps_its_surroundings(lakeside):
    around = gpd.read_parquet(lakeside / "surroundings.parquet")
    assert around["kind"].tolist() == ["water", "place", "place", "place"]
    assert around["name"].tolist()[1:] == list(NAMES)
    loaded = cv.load(lakeside)
    assert loaded.surroundings.geometry.geom_equals(around.geometry).all()
    run = RunResult.load(lakeside)
    assert run.surroundings["name"].tolist()[1:] == list(NAMES)


def test_names_of_any_script_are_right_and_safe_in_the_report(lakeside, browse):
    written = report.write_report(lakeside)
    assert SCRIPT not in written.read_text(encoding="utf-8")
    page = browse(written)
    assert page.count('class="water"') == 4  # truth, estimate, error and vehicles
    for name in NAMES:
        assert len(re.findall(f"<text[^>]*>{re.escape(name)}</text>", page)) == 4
    assert "<title>stolen" not in page


def test_districts_are_drawn_whole_with_their_names():
    named = CELLS.assign(name=["Altstadt", "Hafen", "West"])
    road = pd.DataFrame({"speed_mps": [10.0], "lanes": [1]})
    road["geometry"] = [shapely.LineString([(0.001, 0.001), (0.029, 0.002)])]
    whole = city_outlines(named, road, districts=True)
    assert sorted(text for _, _, text in whole["labels"]) == ["Altstadt", "Hafen", "West"]
    assert [shape.area for path in whole["paths"] for shape in drawn(path)] == pytest.approx([333.3**2] * 3, rel=0.01)
    cut = city_outlines(named, road)
    assert cut["labels"] == []
    assert sum(shape.area for path in cut["paths"] for shape in drawn(path)) < 0.5 * 3 * 333.3**2
