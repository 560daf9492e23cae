"""Water, places and streets about roads, read from OpenStreetMap, SUMO and GMNS."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from osm_town import NODES, WAYS, node_line, way_lines, write_pbf, xml
from read_roads import read_osm

from simulator.roads.surroundings import sea_between, with_streets

ox = pytest.importorskip("osmnx", reason="OpenStreetMap is read by osmnx")

BOX = shapely.box(0, 0, 10, 10)
LAKE = [(24.942, 60.172), (24.944, 60.172), (24.944, 60.174), (24.942, 60.174)]
BANKS = [(24.945, 60.171), (24.949, 60.171), (24.949, 60.174), (24.945, 60.174)]
ISLAND = [(24.946, 60.172), (24.947, 60.172), (24.947, 60.173)]
CANAL = [(24.941, 60.1701), (24.941, 60.1741)]
COAST = [(24.939, 60.16), (24.951, 60.1707), (24.96, 60.18)]
"""Runs north-east of the town's south-east corner, so that the town lies to its left."""
SCRIPT = "<script>document.title='stolen'</script>"


def area(outline, *holes):
    return shapely.Polygon(outline, holes)


def write_town(path, *, ways=None, more=()):
    """The town of `osm_town`, with a lake, a riverbank of two ways with an island, a canal, and places."""
    numbers, points, water = iter(range(100, 1000)), {}, []

    def way(number, outline, tags, *, closed=False):
        nodes = [next(numbers) for _ in outline]
        points.update(zip(nodes, outline, strict=True))
        water.append(way_lines(number, [*nodes, *nodes[: int(closed)]], tags))
        return nodes

    way(50, LAKE, {"natural": "water", "name": "Töölönlahti"}, closed=True)
    banks = way(51, BANKS[:3], {})
    last = next(numbers)
    points[last] = BANKS[3]
    water.append(way_lines(52, [banks[2], last, banks[0]], {"source": "survey"}))
    way(53, ISLAND, {}, closed=True)
    way(54, CANAL, {"waterway": "canal"})
    way(55, [(24.942, 60.1701), (24.942, 60.1741)], {"waterway": "river", "tunnel": "culvert"})
    way(56, [(24.9451, 60.1711), (24.9452, 60.1711), (24.9452, 60.1712)], {"natural": "wood"}, closed=True)
    members = ((51, "outer"), (52, "outer"), (53, "inner"))
    parts = "".join(f'<member type="way" ref="{ref}" role="{role}"/>' for ref, role in members)
    # A node with the number of a way is no part of the area.
    tags = '<tag k="type" v="multipolygon"/><tag k="waterway" v="riverbank"/>'
    water.append(f'<relation id="7">{parts}<member type="node" ref="56" role=""/>{tags}</relation>')

    def place(number, lon, lat, kind, name, attributes=""):
        tags = f'<tag k="place" v="{kind}"/><tag k="name" v="{name.replace("<", "&lt;")}"/>'
        return f'<node id="{number}" lon="{lon}" lat="{lat}"{attributes}>{tags}</node>'

    places = [
        place(200, 24.946, 60.1705, "suburb", SCRIPT),
        place(201, 24.945, 60.172, "city", "مدينة"),
        place(202, 24.947, 60.172, "suburb", "deleted", ' visible="false"'),
        place(203, 24.9, 60.3, "town", "far away"),
        place(204, 24.946, 60.1712, "square", "no district"),
    ]
    lines = [node_line(node, *at) for node, at in points.items()]
    path.write_text(xml(NODES, WAYS if ways is None else ways, more=[*lines, *places, *water, *more]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    network, _ = read_osm(write_town(tmp_path_factory.mktemp("town") / "town.osm"))
    return network


def test_water_and_places_are_those_of_the_file(town):
    around = town.surroundings
    water = around[around["kind"] == "water"]
    lake, canal, banks = water.geometry
    assert water["name"].fillna("").tolist() == ["Töölönlahti", "", ""]
    assert lake.equals(area(LAKE))
    assert banks.equals(area(BANKS, ISLAND))
    assert canal.equals(shapely.LineString(CANAL))
    places = around[around["kind"] == "place"]
    assert places["name"].tolist() == ["مدينة", SCRIPT]  # the city first; neither deleted nor far ones
    assert places.geometry.iloc[0].equals(shapely.Point(24.945, 60.172))
    assert around.crs.to_epsg() == 4326


def test_water_beyond_the_city_is_cut_off(tmp_path):
    wide = [(24.8, 60.1), (25.2, 60.1), (25.2, 60.3), (24.8, 60.3)]
    nodes = [node_line(300 + at, *point) for at, point in enumerate(wide)]
    more = [*nodes, way_lines(60, [300, 301, 302, 303, 300], {"natural": "water"})]
    network, _ = read_osm(write_town(tmp_path / "wide.osm", more=more))
    west, south, east, north = network.surroundings.total_bounds
    lon, lat = network.to_wgs84(np.concatenate((network.node_xy, network.shapes.vertices))).T
    # The extent is a rectangle in metres, which is slightly turned against longitude and latitude.
    for low, high, values in ((west, east, lon), (south, north, lat)):
        margins = (values.min() - low) / np.ptp(values), (high - values.max()) / np.ptp(values)
        assert all(0.05 <= margin < 0.1 for margin in margins)


def test_sea_lies_to_the_right_of_the_coast(tmp_path):
    nodes = [node_line(400 + at, *point) for at, point in enumerate(COAST)]
    more = [*nodes, way_lines(70, [400, 401, 402], {"natural": "coastline"})]
    network, _ = read_osm(write_town(tmp_path / "coast.osm", more=more))
    water = network.surroundings[network.surroundings["kind"] == "water"].geometry.union_all()
    assert water.contains(shapely.Point(24.9545, 60.1705))
    assert not water.intersects(shapely.Point(24.9405, 60.1745))
    reverse = [*nodes, way_lines(70, [402, 401, 400], {"natural": "coastline"})]
    network, _ = read_osm(write_town(tmp_path / "reverse.osm", more=reverse))
    water = network.surroundings[network.surroundings["kind"] == "water"].geometry.union_all()
    assert not water.intersects(shapely.Point(24.9545, 60.1705))
    assert water.contains(shapely.Point(24.9405, 60.1745))


@pytest.mark.parametrize(
    ("coasts", "sea"),
    [
        ([[(4, -5), (4, 15)]], shapely.box(4, 0, 10, 10)),  # northwards: land in the west
        ([[(4, 15), (4, -5)]], shapely.box(0, 0, 4, 10)),
        ([[(4, -5), (4, 5)], [(4, 5), (4, 15)]], shapely.box(4, 0, 10, 10)),
        ([[(4, 1), (4, 9)]], shapely.box(4, 0, 10, 10)),  # cut off near the edge
        ([[(4, -5), (4, 5)]], shapely.Polygon()),  # a gap: the same face on both sides
        ([[(4, 4), (6, 4), (6, 6), (4, 6), (4, 4)]], BOX - shapely.box(4, 4, 6, 6)),  # an island
        ([[(4, 4), (4, 6), (6, 6), (6, 4), (4, 4)]], shapely.box(4, 4, 6, 6)),  # an inlet
        ([[(3, -5), (3, 15)], [(7, 15), (7, -5)]], shapely.box(3, 0, 7, 10)),  # a strait
    ],
)
def test_sea_between_coastlines(coasts, sea):
    lines = np.array([shapely.LineString(line) for line in coasts], dtype=object)
    assert sea_between(lines, BOX).equals(sea)


def test_pbf_has_what_xml_has(tmp_path):
    nodes = NODES | {100 + at: point for at, point in enumerate(LAKE)} | {200: (24.946, 60.1705)}
    ways = WAYS | {50: ((100, 101, 102, 103, 100), {"natural": "water", "name": "Töölönlahti"})}
    tags = {200: {"place": "suburb", "name": SCRIPT}}
    path = write_pbf(tmp_path / "town.osm.pbf", nodes, ways, tags)
    network, _ = read_osm(path)
    assert network.surroundings["kind"].tolist() == ["water", "place"]
    assert network.surroundings["name"].tolist() == ["Töölönlahti", SCRIPT]
    assert network.surroundings.geometry.iloc[0].symmetric_difference(area(LAKE)).area < 1e-9


def test_streets_are_the_largest_and_each_road_is_one_line(town):
    streets = with_streets(town)
    streets = streets[streets["kind"] == "street"]
    assert streets["name"].tolist() == ["Long & <Bent>"]
    lines = streets.geometry.iloc[0]
    assert len(lines.geoms) == 1  # both directions
    expected = shapely.LineString([NODES[1], NODES[5], NODES[2]])
    assert lines.hausdorff_distance(expected) < 1e-6


def test_a_file_without_water_or_places_has_streets_only(tmp_path):
    (tmp_path / "plain.osm").write_text(xml(), encoding="utf-8")
    network, _ = read_osm(tmp_path / "plain.osm")
    assert network.surroundings is None
    assert with_streets(network)["kind"].tolist() == ["street"]
    unnamed = WAYS | {10: (WAYS[10][0], {"highway": "primary"})}
    (tmp_path / "unnamed.osm").write_text(xml(ways=unnamed), encoding="utf-8")
    assert with_streets(read_osm(tmp_path / "unnamed.osm")[0]) is None


def test_streets_of_sumo_and_gmns_have_names(tmp_path):
    pytest.importorskip("sumolib", reason="SUMO networks are read by sumolib")
    from read_roads import read_gmns, read_sumo_net  # noqa: PLC0415 - an extra

    lanes = '<lane id="{0}_0" index="0" speed="13.9" length="300" shape="0,-3 300,-3"/>'
    (tmp_path / "town.net.xml").write_text(
        '<net version="1.20">'
        '<location netOffset="0,0" convBoundary="0,0,1,1" origBoundary="0,0,1,1" projParameter="!"/>'
        f'<edge id="out" from="A" to="B" name="Via Emilia">{lanes.format("out")}</edge>'
        f'<edge id="back" from="B" to="A">{lanes.format("back")}</edge>'
        '<junction id="A" type="dead_end" x="0" y="0" incLanes=""/>'
        '<junction id="B" type="priority" x="300" y="0" incLanes=""/></net>'
    )
    network, _ = read_sumo_net(tmp_path / "town.net.xml")
    assert with_streets(network)["name"].tolist() == ["Via Emilia"]
    (tmp_path / "node.csv").write_text("node_id,x_coord,y_coord\n1,11.34,44.49\n2,11.35,44.49\n")
    (tmp_path / "link.csv").write_text(
        "link_id,name,from_node_id,to_node_id,directed\n1,Third Street,1,2,0\n2,,2,1,1\n"
    )
    network, _ = read_gmns(tmp_path)
    assert with_streets(network)["name"].tolist() == ["Third Street"]
