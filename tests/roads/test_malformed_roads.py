"""Malformed files of roads, of every format: the message names the file, its place and the rule.

A row of the table is a fault: its content, and the message, in which … stands for any text. Other faults of a format,
such as those of two files at once, are tested with the format.
"""

import gzip
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import geopandas as gpd
import pandas as pd
import pytest
from osm_town import HEADER, NODES, WAYS, blob, node_line, way_lines, xml
from read_roads import read_geopackage, read_gmns, read_osm, read_sumo_net, read_tables, read_tntp
from small_networks import GMNS_NODES, PLACES, RING, ROWS, gmns_links, tntp_network, tntp_nodes, write_gmns_text
from test_sumo_net import CONNECTIONS, EDGES, JUNCTIONS, LOCATION, edge, junction, lane, net

from simulator.files.errors import InputError
from simulator.formats.geo.geopackage import write_geopackage
from simulator.roads import build_grid

SWAPPED = "node_id,x_coord,y_coord\n1,42.36,-171.10\n2,42.36,-171.09\n3,42.37,-171.09\n"
XML = "cannot be read as OpenStreetMap's XML"
PBF = "cannot be read as OpenStreetMap's PBF"
NODE_TABLE = "id,lon,lat\n1,-73.99,40.75\n2,-73.989,40.751\n3,-73.988,40.752\n"
GZIPPED = gzip.compress(b"src,dst,len\n1,2,100\n2,3,200\n3,1,300\n", mtime=0)
COLUMNS = {"node": "id", "lon": "lon", "lat": "lat", "from": "src", "to": "dst", "length_m": "len"}


def town(**changed):
    """The town with some nodes moved; node 1 is in line 3."""
    return xml(nodes=NODES | {int(node.removeprefix("n")): place for node, place in changed.items()})


GEOMETRY = gmns_links().replace(",allowed_uses", ",geometry")
GEOMETRY_IDS = gmns_links().replace(",allowed_uses", ",geometry_id").replace(",auto", ",9")
ON_FOOT = ((",auto", ",walk"), ("walk;auto", "walk"), ("b,2,3,0,1115,residential,,,,", "b,2,3,0,9,,,,,bus"))


def with_row(*row):
    """A TNTP network whose first row, in line 8, is another one."""
    return {"network": tntp_network(rows=(row, *ROWS, *RING))}


def with_place(*place):
    """A TNTP file of nodes whose first row, in line 2, is another one."""
    return {"nodes": tntp_nodes((place, *PLACES[1:]))}


def with_lane(**values):
    """A SUMO network of one edge."""
    return net(edge("AB", "A", "B", lane("AB", 0, **values)), *JUNCTIONS)


NO_ID = {"features": [{"properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}

MALFORMED = {
    "gmns": {
        "no nodes": ({"nodes": None}, "must hold a table of nodes: one of node.csv, node.csv.gz, node.parquet"),
        "no links": ({"links": None}, "must hold a table of links"),
        "empty": ({"nodes": ""}, "node.csv: it is empty"),
        "node twice": (
            {"nodes": GMNS_NODES + "1,-71.1,42.4,\n"},
            "rows 1, 4: node_id … must be an identifier no other",
        ),
        "no id": ({"nodes": GMNS_NODES + ",-71.1,42.4,\n"}, "row 4: node_id (column 'node_id') must be an identifier"),
        "word": ({"nodes": GMNS_NODES.replace("42.37", "north")}, "row 3: y_coord … a finite number, got 'north'"),
        "swapped": ({"nodes": SWAPPED}, "node.csv: rows 1, 2, 3: coordinates must be a longitude and a latitude from"),
        "no such node": ({"links": gmns_links(("b,2,3", "b,2,9"))}, "row 2: to_node_id … in the node table, got '9'"),
        "link twice": ({"links": gmns_links(("\nb,", "\na,"))}, "rows 1, 2: link_id … must be an identifier no other"),
        "maybe": ({"links": gmns_links((",true,", ",maybe,"))}, "row 3: directed … must be true or false, got 'maybe'"),
        "negative": ({"links": gmns_links((",830,", ",-830,"))}, "row 1: length … must be a finite number, 0 or more"),
        "lanes": ({"links": gmns_links((",36,2,", ",36,1.5,"))}, "row 1: lanes … must be a whole number"),
        "many lanes": ({"links": gmns_links((",36,2,", ",36,1e12,"))}, "row 1: lanes … a whole number, 0 to 10000"),
        "no roads": ({"links": gmns_links(*ON_FOOT)}, "the road network is empty: no link can be used"),
        "point": ({"links": GEOMETRY.replace(",auto", ",POINT (1 2)")}, "rows 1, 3, 4: geometry … a LINESTRING"),
        "wkt cut": ({"links": GEOMETRY.replace(",auto", ",LINESTRING (1 2")}, "rows 1, 3, 4: geometry … a LINESTRING"),
        "no geometry table": ({"links": GEOMETRY_IDS}, "links name a geometry_id, and"),
        "no such geometry": ({"links": GEOMETRY_IDS, "geometry": "geometry_id,geometry\n8,\n"}, "must be one of"),
    },
    "tntp": {
        "network, empty": ({"network": ""}, "net.tntp: it is empty"),
        "no zones": ({"network": tntp_network().replace("<NUMBER OF ZONES> 2\n", "")}, "<NUMBER OF ZONES> is missing"),
        "no end": ({"network": tntp_network().replace("<END OF METADATA>", "")}, "line 8: must have the form <NAME> v"),
        "only metadata": ({"network": "<NUMBER OF NODES> 5\n"}, "<END OF METADATA> is missing"),
        "word": (
            {"network": tntp_network(nodes="five")},
            "line 2: <NUMBER OF NODES> must be a whole number, 2 or more",
        ),
        "zones": ({"network": tntp_network(zones=9)}, "line 1: <NUMBER OF ZONES> is 9, more than the 5 nodes"),
        "first through": ({"network": tntp_network(first=7)}, "line 3: <FIRST THRU NODE> is 7"),
        "links": ({"network": tntp_network(links=9)}, "line 4: <NUMBER OF LINKS> is 9, and 7 usable rows follow"),
        "no links": ({"network": tntp_network(rows=())}, "line 4: the road network is empty"),
        "twice": ({"network": tntp_network(extra="<NUMBER OF NODES> 5\n")}, "line 5: … must occur only once"),
        "commas": ({"network": tntp_network().replace("\t", ",")}, "lines 8, 9, 10, … 14: a link must have 10 fields"),
        "self-loop": (with_row(1, 1, 1, 1, 1), "line 8: term_node must be another node than init_node, got '1'"),
        "node 6": (with_row(6, 1, 1, 1, 1), "line 8: init_node must be a node, 1 … 5"),
        "node 1.5": (with_row(1.5, 2, 1, 1, 1), "line 8: init_node must be a node"),
        "length -1": (with_row(1, 2, 1, -1, 1), "line 8: length must be a finite number, 0 or more, got '-1'"),
        "nan": (with_row(1, 2, "nan", 1, 1), "line 8: capacity must be a finite number"),
        "too long": (
            with_row(1, 2, 1, 1e308, 1e-308),
            "line 8: length_m must be a finite number above 0, and comes out",
        ),
        "cut after a number": ({"network": tntp_network()[:-3]}, "line 14: all rows must end in ';', or none"),
        "cut within a row": ({"network": tntp_network()[:-16]}, "line 14: a link must have 10 fields"),
        "utf-16": ({"network": tntp_network().encode("utf-16")}, "line 1: must be text (UTF-8 or ASCII)"),
        "gzip cut": ({"network": gzip.compress(tntp_network().encode())[:-20]}, "net.tntp: cannot be read"),
        "gzip of zeros": ({"network": gzip.compress(bytes(17 * 2**20))}, "line 1: a line must not be longer"),
        "nodes, empty": ({"nodes": ""}, "node.tntp: it is empty"),
        "header alone": ({"nodes": "Node X Y ;\n"}, "node.tntp: it holds no node"),
        "node twice": (
            {"nodes": tntp_nodes((*PLACES, PLACES[2]))},
            "lines 4, 7: node must be in one row only, got '3'",
        ),
        "one missing": ({"nodes": tntp_nodes(PLACES[:4])}, "use others; without coordinates: 5"),
        "one more": ({"nodes": tntp_nodes((*PLACES, (6, 0, 0)))}, "line 7: nodes must be 1 … 5"),
        "place in words": (with_place(1, "x", 2), "line 2: x must be a finite number, got 'x'"),
        "node one": (with_place("one", 1, 2), "line 2: node must be a whole number, 1 or more, got 'one'"),
        "infinite": (with_place(1, "inf", 2), "line 2: x must be a finite number, got 'inf'"),
        "nodes, commas": ({"nodes": tntp_nodes().replace("\t", ",")}, "lines 2, 3, 4, 5, 6: a node must have 3 fields"),
        "swapped": (
            {"nodes": tntp_nodes([(node, y, x) for node, x, y in PLACES])},
            "lines 2, 3, 4, 5, 6: coordinates must be a longitude and a latitude from -90 to 90 (are the two swapped?)",
        ),
        "json cut": ({"nodes": "{"}, "cannot be read as GeoJSON"),
        "json deep": ({"nodes": "[" * 100_000}, "cannot be read as GeoJSON"),
        "json of nothing": ({"nodes": "{}"}, 'GeoJSON must have a list of "features"'),
        "no feature": ({"nodes": '{"features": [1]}'}, "feature 1: must have a Point"),
        "no id": ({"nodes": json.dumps(NO_ID)}, "feature 1: node must be a whole number, 1 or more, got 'None'"),
    },
    "osm": {
        "empty": ("", "it is empty"),
        "gpx": ("<gpx/>", f"{XML}: Unknown top-level element: gpx"),
        "changes": ('<osmChange version="0.6"/>', "must be a map, and is a file of changes"),
        "cut": (xml()[:-30], f"{XML}: XML parsing error at line 18"),
        "lat": (town(n1=(24.94, 91.0)), "node 1: lon must be degrees … got 24.94 and 91 (are lat and lon"),
        "lon": (town(n1=(181.0, 60.0)), "node 1: lon must be degrees from -180 to 180 and lat from -90 to 90"),
        "node twice": (xml(more=[node_line(1, 24.94, 60.17)]), "node 1 occurs twice"),
        "way twice": (xml(more=['<way id="10"/>']), "way 10 occurs twice"),
        "nowhere": (xml(more=['<node id="77"/>', way_lines(78, (1, 77), WAYS[11][1])]), "node 77: lon must be"),
        "nothing": ('<osm version="0.6"/>', "the road network is empty: it holds no street"),
        "feet": (xml(ways={14: WAYS[14]}), "the road network is empty: of its 1 way, none is a street open to cars"),
        "one node": (xml(ways={1: ((1,), WAYS[11][1])}), "the road network is empty: no street connects two nodes"),
        "one place": (xml(ways={1: ((1, 1, 1), WAYS[11][1])}), "the road network is empty: no street connects two"),
        "no nodes": (
            xml(nodes={99: (24.0, 60.0)}),
            "the road network is empty: left out 2 of 7 ways, which are not streets open to cars; streets refer to 7",
        ),
        "no way back": (xml(ways={11: WAYS[11]}), "no two nodes are connected in both directions"),
    },
    "pbf": {
        "empty": (b"", "it is empty"),
        "two bytes": (b"\x00\x00", PBF),
        "noise": (b"\xff" * 40, "invalid BlobHeader size"),
        "1 GB": (blob(b"OSMHeader", b"", size=2**30), "invalid blob size: 1073741824"),
        "bomb": (HEADER + blob(b"OSMData", b"\0" * (33 * 2**20)), "illegal blob size"),
        "data": (HEADER + blob(b"OSMData", b"\xff" * 30), PBF),
    },
    "sumo": {
        "no XML": ("no xml", "line 1: not well-formed XML"),
        "routes": ("<routes/>", "line 1: the file must begin with <net>, got <routes>"),
        "no version": ("<net>", "line 1: <net> cannot be used: it lacks, or nothing has the name, 'version'"),
        "cut": (net()[:-20], "not well-formed XML"),
        "no projection": (
            net(location=LOCATION.replace("projParameter", "projection")),
            "line 3: <location> cannot be used: it lacks, or nothing has the name, 'projParameter'",
        ),
        "length 0": (with_lane(length=0), "length of a lane must be above 0, got 0"),
        "length x": (with_lane(length="x"), "line 5: <lane> cannot be used: could"),
        "speed -1": (with_lane(speed=-1), "speed of a lane must be above 0, got -1"),
        "speed nan": (with_lane(speed="nan"), "speed of a lane must be above 0, got nan"),
        "point of one number": (with_lane(shape="0,0 1"), "line 5: <lane> cannot be used"),
        "one point": (with_lane(shape="3,3"), "two points or more, finite, got 1"),
        "infinite point": (with_lane(shape="0,0 1,inf"), "shape of a lane must have two points or more, finite, got 2"),
        "no lanes": (net('<edge id="AB" from="A" to="B"/>', *JUNCTIONS), "edge 'AB': it has no lanes"),
        "no end": (net('<edge id="AB" from="A"/>', *JUNCTIONS), "edge 'AB': to must be a junction … got none"),
        "edge twice": (net(*EDGES, *JUNCTIONS, edge("AB", "A", "C")), "edge 'AB' is defined twice, first in line 4"),
        "junction twice": (net(*EDGES, *JUNCTIONS, junction("A")), "junction 'A' is defined twice"),
        "no junction": (net(edge("AB", "A", "Z"), *JUNCTIONS), "edge 'AB': to must be a junction of the file, got 'Z'"),
        "to nowhere": (
            net(*EDGES, *JUNCTIONS, CONNECTIONS[0].replace("BC", "no")),
            "<connection> cannot be used: it lacks, or nothing has the name, 'no'",
        ),
        "from no lane": (
            net(*EDGES, *JUNCTIONS, CONNECTIONS[0].replace('"1"', '"9"')),
            "<connection> cannot be used: ",
        ),
        "no edges": (net(*JUNCTIONS), "of its 0 edges, none has a lane … 'passenger'; its lanes allow no edge at all"),
        "buses only": (net(EDGES[3], *JUNCTIONS), "of its 1 edge, none has a lane … 'passenger'; its lanes allow bus"),
        "entity": ('<!DOCTYPE net [<!ENTITY a "aaaa">]><net/>', "line 1: must not declare a document type or entities"),
    },
    "tables": {
        "gzip cut": ({"edges.csv.gz": GZIPPED[:-12]}, "cannot be read: it is incomplete: its gzip ends early"),
        "empty": ({"edges.csv": b""}, "it is empty"),
        "no rows": ({"edges.csv": b"src,dst,len\n"}, "it holds no rows"),
        "blanks": ({"edges.csv": b"src dst len\n1 2 3\n"}, "'src dst len'; is it separated by commas"),
        "longer row": ({"edges.csv": b"src,dst,len\n1,2,3\n2,3,4,5\n"}, "cannot be read as a table: … in line 3"),
        "more values": ({"edges.csv": b"src,dst,len\n1,2,3,4\n2,3,4,5\n"}, "its rows hold more values than its header"),
        "two columns": ({"edges.csv": b"src,dst,len,len\n1,2,3,4\n"}, "called 'len': which of them is length_m"),
        "not UTF-8": ({"edges.csv": b"src,dst,len\n\xff\xfe,2,3\n"}, "must be text in UTF-8: invalid"),
        "no Parquet": ({"edges.parquet": b"src,dst,len\n1,2,3\n"}, "cannot be read as Parquet"),
        "suffix": ({"edges.xlsx": b""}, "the name must end in .csv, .csv.gz or .parquet"),
    },
    "geopackage": {
        "fewer nodes": (("nodes", lambda t: t.iloc[:3]), "layer links: row … : from and to must be in"),
        "node twice": (
            ("nodes", lambda t: t.assign(node_json="[0, 0]")),
            "layer nodes: row 2: … that no other row has",
        ),
        "JSON cut": (("nodes", lambda t: t.assign(node_json="[0,")), "layer nodes: row 1: node_json must be JSON"),
        "no x": (("nodes", lambda t: t.drop(columns="x")), "layer nodes: no column 'x'"),
        "x in words": (("nodes", lambda t: t.assign(x="east")), "x must be a finite number"),
        "links twice": (("links", lambda t: pd.concat([t, t])), "layer links: row 9: … that no other link"),
        "loops": (("links", lambda t: t.assign(from_json=t["to_json"], key=range(8))), "from a node to itself"),
        "length 0": (("links", lambda t: t.assign(length_m=0.0)), "row 1: edge … : length_m must be a finite number"),
        "no speed": (("links", lambda t: t.drop(columns="speed_mps")), "layer links: no column 'speed_mps'"),
        "many lanes": (("links", lambda t: t.assign(lanes=10**9)), "lanes must be at most 10,000"),
        "no links": (("links", lambda t: t.iloc[:0]), "layer links: it holds no rows"),
        "points": (
            ("links", lambda t: t.set_geometry(t.centroid).assign(straight=False)),
            "geometry must be a LineString",
        ),
        "in degrees": (("links", lambda t: t.to_crs("EPSG:4326")), "layer links: crs must be that of … got 'WGS 84'"),
    },
}


def put(path, content):
    """Write text or bytes, and return the path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def gmns(folder, tables):
    read_gmns(write_gmns_text(folder / "g", **tables))


def tntp(folder, files):
    network = put(folder / "net.tntp", files.get("network", tntp_network()))
    nodes = put(folder / "node.tntp", files.get("nodes", tntp_nodes()))
    read_tntp(network=network, nodes=nodes, length_m=1000.0, time_s=60.0)


def tables(folder, files):
    ((name, content),) = files.items()
    read_tables(nodes=put(folder / "nodes.csv", NODE_TABLE), edges=put(folder / name, content), columns=COLUMNS)


@cache
def layers_of_a_grid():
    grid = build_grid(rows=2, columns=2, spacing_x_m=100, spacing_y_m=100, speed_mps=10, lanes=1)
    with TemporaryDirectory() as folder:
        write_geopackage(grid, Path(folder) / "grid.gpkg")
        return {layer: gpd.read_file(Path(folder) / "grid.gpkg", layer=layer) for layer in ("nodes", "links")}


def geopackage(folder, changed):
    """Write a grid of which one layer is changed, and read it."""
    table, change = changed
    for layer, frame in layers_of_a_grid().items():
        (change(frame) if layer == table else frame).to_file(folder / "roads.gpkg", layer=layer)
    read_geopackage(folder / "roads.gpkg")


READ = {
    "gmns": gmns,
    "tntp": tntp,
    "osm": lambda folder, text: read_osm(put(folder / "town.osm", text)),
    "pbf": lambda folder, content: read_osm(put(folder / "town.osm.pbf", content)),
    "sumo": lambda folder, text: read_sumo_net(put(folder / "small.net.xml", text)),
    "tables": tables,
    "geopackage": geopackage,
}
"""By format: write a folder with the content, and read it."""
NEEDS = {"osm": "osmium", "pbf": "osmium", "sumo": "sumolib"}
CASES = [pytest.param(form, name, id=f"{form}, {name}") for form, rows in MALFORMED.items() for name in rows]


@pytest.mark.parametrize(("form", "name"), CASES)
def test_malformed_files_are_refused(form, name, tmp_path):
    if form in NEEDS:
        pytest.importorskip(NEEDS[form])
    content, message = MALFORMED[form][name]
    with pytest.raises(InputError) as caught:
        READ[form](tmp_path, content)
    text = str(caught.value)
    assert all(part.strip() in text for part in message.split("…")), text
    assert str(tmp_path) in text
    if form in {"osm", "pbf"}:
        assert len(caught.value.faults) == 1
