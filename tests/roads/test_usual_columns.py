"""Tables whose columns are found by their usual names, and capacities of whole links."""

from __future__ import annotations

import numpy as np
import pytest
from read_roads import read_tables

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.files.tables import comparable_name
from simulator.formats.column_names import LINK_NAMES, NODE_NAMES

OSMNX_NODES = "osmid,y,x,street_count\n11,40.750,-73.990,3\n12,40.751,-73.989,3\n13,40.752,-73.988,3\n"
OSMNX_EDGES = """u,v,key,osmid,highway,lanes,maxspeed,oneway,length
11,12,0,5,primary,4,25 mph,False,140.0
12,13,0,5,primary,"['2', '3']",50,True,141.0
13,11,0,"[6, 7]","['residential', 'service']",,,True,282.0
"""
VISUM_NODES = "$NODE:NO;XCOORD;YCOORD\n1;500000;5600000\n2;500500;5600000\n3;500500;5600400\n"
VISUM_LINKS = """NO;FROMNODENO;TONODENO;TSYSSET;LENGTH;NUMLANES;CAPPRT;V0PRT
1;1;2;B,C;0.512km;2;3600;50km/h
1;2;1;;0.512km;0;0;0km/h
2;2;3;C;0.400km;1;900;30km/h
3;3;1;C;0.650km;1;1800;100km/h
"""


@pytest.fixture
def read(tmp_path):
    def _read(nodes, edges, **more):
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "edges.csv").write_text(edges)
        return read_tables(nodes=tmp_path / "nodes.csv", edges=tmp_path / "edges.csv", **more)

    return _read


def test_osmnx_tables_need_no_columns(read):
    """x and y are degrees, lanes count both directions, several values are written as a list."""
    roads, report = read(OSMNX_NODES, OSMNX_EDGES)
    assert roads.crs.to_epsg() == 32618
    np.testing.assert_array_equal(roads.links.length_m, [140.0, 141.0, 282.0])
    np.testing.assert_array_equal(roads.links.lanes, [2, 2, 1])
    np.testing.assert_allclose(roads.links.speed_mps, [25 * 0.44704, 50 / 3.6, 30 / 3.6])
    np.testing.assert_array_equal(roads.links.capacity_vph, [1500, 1500, 600])  # by class
    found = next(text for text in texts_of(report.notes()) if "edges.csv: columns found" in text)
    assert "from = 'u', to = 'v', length_m = 'length', speed_kph = 'maxspeed'" in found
    assert found.endswith("not read: 'key', 'osmid'")


def test_visum_exports_have_units_in_their_values_and_closed_directions(read):
    roads, report = read(VISUM_NODES, VISUM_LINKS, crs="EPSG:32632")
    np.testing.assert_allclose(roads.links.length_m, [512.0, 400.0, 650.0])
    np.testing.assert_allclose(roads.links.speed_mps * 3.6, [50, 30, 100])
    np.testing.assert_array_equal(roads.links.lanes, [2, 1, 1])
    np.testing.assert_array_equal(roads.links.capacity_vph, [1800, 900, 1800])
    (closed,) = report.dropped
    assert (closed.reason, closed.rows) == ("its TSYSSET names no transport system", (2,))


def test_planar_coordinates_that_are_found_need_a_system(read):
    with pytest.raises(InputError, match="x and y are not degrees, and need a coordinate reference system") as caught:
        read(VISUM_NODES, VISUM_LINKS)
    assert caught.value.key == "roads.crs"


def test_tntp_columns_give_capacities_of_whole_links(read):
    nodes = "node,lon,lat\n1,-71.06,42.35\n2,-71.05,42.35\n3,-71.05,42.36\n"
    edges = "init_node,term_node,capacity,length_km,speed\n1,2,4400,0.9,60\n2,3,1000,1.2,60\n3,1,3600,1.5,60\n"
    roads, report = read(nodes, edges)
    np.testing.assert_array_equal(roads.links.lanes, [2, 1, 2])
    np.testing.assert_array_equal(roads.links.capacity_vph, [2200, 1000, 1800])
    assert any("lanes are guessed in 3 of 3 rows" in text for text in texts_of(report.notes()))
    (doubt,) = texts_of(report.warnings)
    assert doubt.endswith("as speed_kph, speed_mph or speed_mps; unread columns are 'speed'")


@pytest.mark.parametrize(
    ("capacity", "columns", "words"),
    [
        (3600, {}, "above 2,600 vehicles/h per lane in 3 of 3 links (100%), median of these 3,600"),
        (250, {}, "below 300 vehicles/h per lane in 3 of 3 links (100%), median of these 250"),
        (500, {"capacity_total_vph": "cap"}, "name the column as capacity_vph in roads.columns"),
        (2600, {}, None),
        (300, {}, None),
        (5200, {"capacity_total_vph": "cap"}, None),
    ],
)
def test_implausible_capacities_of_a_lane_cause_a_doubt(read, capacity, columns, words):
    nodes = "id,lon,lat\n1,-71.06,42.35\n2,-71.05,42.35\n3,-71.05,42.36\n"
    rows = "".join(f"{start},{end},2,{capacity}\n" for start, end in ((1, 2), (2, 3), (3, 1)))
    _, report = read(nodes, "source,target,lanes,cap\n" + rows, columns=columns)
    texts = texts_of(report.warnings)
    assert len(texts) == (words is not None)
    assert words is None or words in texts[0]
    if words and not columns:
        assert "name the column as capacity_total_vph in roads.columns" in texts[0]


def test_one_coordinate_alone_is_a_missing_column(read):
    with pytest.raises(InputError, match="no column 'y' for y; its columns are 'id', 'x'"):
        read("id,x\n1,2\n", OSMNX_EDGES)


def test_missing_columns_list_those_of_the_file(read):
    with pytest.raises(InputError) as caught:
        read("knoten,lon,lat\n1,2,3\n", "von,nach\n1,2\n")
    assert [fault.split(": ", maxsplit=1)[1] for fault in caught.value.faults] == [
        "no column 'node' for node; its columns are 'knoten', 'lon', 'lat'",
        "no column 'from' for from; its columns are 'von', 'nach'",
        "no column 'to' for to; its columns are 'von', 'nach'",
    ]


def test_gmns_tables_need_no_columns(read):
    nodes = "node_id,name,x_coord,y_coord,zone_id\n1,a,-71.06,42.35,7\n2,b,-71.05,42.35,\n3,c,-71.05,42.36,\n"
    edges = "link_id,from_node_id,to_node_id,length,free_speed,lanes,capacity\n"
    edges += "".join(f"{start}{end},{start},{end},900,36,2,1500\n" for start, end in ((1, 2), (2, 3), (3, 1)))
    roads, _ = read(nodes, edges)
    np.testing.assert_allclose(roads.links.speed_mps, 10.0)
    np.testing.assert_array_equal(roads.links.capacity_vph, 1500)


@pytest.mark.parametrize("names", [NODE_NAMES, LINK_NAMES])
def test_no_usual_name_has_two_meanings(names):
    plain = [comparable_name(name) for spellings in names.values() for name in {*map(comparable_name, spellings)}]
    assert len(plain) == len(set(plain))
