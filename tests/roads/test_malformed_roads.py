"""Malformed files of roads, of every format: the message names the file, its place and the rule.

A row of the table is a fault: its content, and the message, in which … stands for any text. Other faults of a format,
such as those of two files at once, are tested with the format.
"""

import gzip
import json
import struct

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


MALFORMED = {
    "gmns": {
        "no nodes": ({"nodes": None}, "must hold a table of nodes: one of node.csv, node.csv.gz, node.parquet"),
        "no links": ({"links": None}, "must hold a table of links"),
        "empty": ({"nodes": ""}, "node.csv: it is empty"),
        "no rows": ({"nodes": "node_id,x_coord,y_coord\n"}, "node.csv: it holds no rows"),
        "blanks": ({"nodes": GMNS_NODES.replace(",", " ")}, "is it separated by commas?"),
        "node twice": (
            {"nodes": GMNS_NODES + "1,-71.1,42.4,\n"},
            "rows 1, 4: node_id (column 'node_id') must be an identifier no other",
        ),
        "no id": ({"nodes": GMNS_NODES + ",-71.1,42.4,\n"}, "row 4: node_id (column 'node_id') must be an identifier"),
        "word": (
            {"nodes": GMNS_NODES.replace("42.37", "north")},
            "row 3: y_coord (column 'y_coord') must be a finite number, got 'north'",
        ),
        "infinite": ({"nodes": GMNS_NODES.replace("42.37", "1e999")}, "row 3: y_coord"),
        "swapped": (
            {"nodes": SWAPPED},
            "node.csv: rows 1, 2, 3: coordinates must be a longitude and a latitude from -90 to 90",
        ),
        "no such node": (
            {"links": gmns_links(("b,2,3", "b,2,9"))},
            "link.csv: row 2: to_node_id (column 'to_node_id') must be in the node table, got '9'",
        ),
        "link twice": (
            {"links": gmns_links(("\nb,", "\na,"))},
            "rows 1, 2: link_id (column 'link_id') must be an identifier no other row has",
        ),
        "maybe": (
            {"links": gmns_links((",true,", ",maybe,"))},
            "row 3: directed (column 'directed') must be true or false, got 'maybe'",
        ),
        "negative": (
            {"links": gmns_links((",830,", ",-830,"))},
            "row 1: length (column 'length') must be a finite number, 0 or more",
        ),
        "far": (
            {"links": gmns_links((",830,", ",far,"))},
            "row 1: length (column 'length') must be a finite number, 0 or more, got 'far'",
        ),
        "lanes": (
            {"links": gmns_links((",36,2,", ",36,1.5,"))},
            "row 1: lanes (column 'lanes') must be a whole number",
        ),
        "many lanes": (
            {"links": gmns_links((",36,2,", ",36,1e12,"))},
            "row 1: lanes (column 'lanes') must be a whole number, 0 to 10000",
        ),
        "no roads": (
            {
                "links": gmns_links(
                    (",auto", ",walk"), ("walk;auto", "walk"), ("b,2,3,0,1115,residential,,,,", "b,2,3,0,9,,,,,bus")
                )
            },
            "the road network is empty: no link can be used",
        ),
        "point": (
            {"links": gmns_links().replace(",allowed_uses", ",geometry").replace(",auto", ",POINT (1 2)")},
            "rows 1, 3, 4: geometry (column 'geometry') must be a LINESTRING",
        ),
        "wkt cut": (
            {"links": gmns_links().replace(",allowed_uses", ",geometry").replace(",auto", ",LINESTRING (1 2")},
            "rows 1, 3, 4: geometry (column 'geometry') must be a LINESTRING",
        ),
        "no geometry table": (
            {"links": gmns_links().replace(",allowed_uses", ",geometry_id").replace(",auto", ",9")},
            "links name a geometry_id, and",
        ),
        "no such geometry": (
            {
                "links": gmns_links().replace(",allowed_uses", ",geometry_id").replace(",auto", ",9"),
                "geometry": "geometry_id,geometry\n8,\n",
            },
            "must be one of",
        ),
    },
    "tntp": {
        "network, empty": ({"network": ""}, "net.tntp: it is empty"),
        "network, no zones": (
            {"network": tntp_network().replace("<NUMBER OF ZONES> 2\n", "")},
            "<NUMBER OF ZONES> is missing",
        ),
        "network, no end": (
            {"network": tntp_network().replace("<END OF METADATA>", "")},
            "line 8: must have the form <NAME> value",
        ),
        "network, only metadata": ({"network": "<NUMBER OF NODES> 5\n"}, "<END OF METADATA> is missing"),
        "network, word": (
            {"network": tntp_network(nodes="five")},
            "line 2: <NUMBER OF NODES> must be a whole number, 2 or more",
        ),
        "network, negative": (
            {"network": tntp_network(nodes="-5")},
            "line 2: <NUMBER OF NODES> must be a whole number",
        ),
        "network, zones": ({"network": tntp_network(zones=9)}, "line 1: <NUMBER OF ZONES> is 9, more than the 5 nodes"),
        "network, first through": ({"network": tntp_network(first=7)}, "line 3: <FIRST THRU NODE> is 7"),
        "network, links": (
            {"network": tntp_network(links=9)},
            "line 4: <NUMBER OF LINKS> is 9, and 7 usable rows follow",
        ),
        "network, no links": ({"network": tntp_network(rows=())}, "line 4: the road network is empty"),
        "network, twice": (
            {"network": tntp_network(extra="<NUMBER OF NODES> 5\n")},
            "line 5: <NUMBER OF NODES> must occur only once",
        ),
        "network, commas": (
            {"network": tntp_network().replace("\t", ",")},
            "lines 8, 9, 10, 11, 12, 13, 14: a link must have 10 fields",
        ),
        "network, self-loop": (
            {"network": tntp_network(rows=((1, 1, 1, 1, 1), *ROWS, *RING))},
            "line 8: term_node must be another node than init_node, got '1'",
        ),
        "network, node 6": (
            {"network": tntp_network(rows=(*ROWS, *RING, (6, 1, 1, 1, 1)))},
            "line 15: init_node must be a node, 1 … 5",
        ),
        "network, node 1.5": (
            {"network": tntp_network(rows=((1.5, 2, 1, 1, 1), *ROWS, *RING))},
            "line 8: init_node must be a node",
        ),
        "network, length -1": (
            {"network": tntp_network(rows=((1, 2, 1, -1, 1), *ROWS, *RING))},
            "line 8: length must be a finite number, 0 or more, got '-1'",
        ),
        "network, nan": (
            {"network": tntp_network(rows=((1, 2, "nan", 1, 1), *ROWS, *RING))},
            "line 8: capacity must be a finite number",
        ),
        "network, too long": (
            {"network": tntp_network(rows=((1, 2, 1, 1e308, 1e-308), *ROWS, *RING))},
            "line 8: length_m must be a finite number above 0, and comes out as inf",
        ),
        "network, cut after a number": ({"network": tntp_network()[:-3]}, "line 14: all rows must end in ';', or none"),
        "network, cut within a row": ({"network": tntp_network()[:-16]}, "line 14: a link must have 10 fields"),
        "network, utf-16": ({"network": tntp_network().encode("utf-16")}, "line 1: must be text (UTF-8 or ASCII)"),
        "network, gzip cut": ({"network": gzip.compress(tntp_network().encode())[:-20]}, "net.tntp: cannot be read"),
        "network, no gzip": ({"network": b"\x1f\x8b" + bytes(range(200))}, "net.tntp: cannot be read"),
        "network, gzip of zeros": ({"network": gzip.compress(bytes(17 * 2**20))}, "line 1: a line must not be longer"),
        "nodes, empty": ({"nodes": ""}, "node.tntp: it is empty"),
        "nodes, header alone": ({"nodes": "Node X Y ;\n"}, "node.tntp: it holds no node"),
        "nodes, twice": (
            {"nodes": tntp_nodes((*PLACES, PLACES[2]))},
            "lines 4, 7: node must be in one row only, got '3'",
        ),
        "nodes, one missing": ({"nodes": tntp_nodes(PLACES[:4])}, "use others; without coordinates: 5"),
        "nodes, one more": ({"nodes": tntp_nodes((*PLACES, (6, 0, 0)))}, "line 7: nodes must be 1 … 5"),
        "nodes, word": (
            {"nodes": tntp_nodes(((1, "x", 2), *PLACES[1:]))},
            "line 2: x must be a finite number, got 'x'",
        ),
        "nodes, node one": (
            {"nodes": tntp_nodes((("one", 1, 2), *PLACES[1:]))},
            "line 2: node must be a whole number, 1 or more, got 'one'",
        ),
        "nodes, infinite": (
            {"nodes": tntp_nodes(((1, "inf", 2), *PLACES[1:]))},
            "line 2: x must be a finite number, got 'inf'",
        ),
        "nodes, commas": ({"nodes": tntp_nodes().replace("\t", ",")}, "lines 2, 3, 4, 5, 6: a node must have 3 fields"),
        "nodes, swapped": (
            {"nodes": tntp_nodes([(node, y, x) for node, x, y in PLACES])},
            "lines 2, 3, 4, 5, 6: coordinates must be a longitude and a latitude from -90 to 90 (are the two swapped?)",
        ),
        "nodes, json cut": ({"nodes": "{"}, "cannot be read as GeoJSON"),
        "nodes, json deep": ({"nodes": "[" * 100_000}, "cannot be read as GeoJSON"),
        "nodes, json of nothing": ({"nodes": "{}"}, 'GeoJSON must have a list of "features"'),
        "nodes, no feature": ({"nodes": '{"features": [1]}'}, "feature 1: must have a Point"),
        "nodes, no id": (
            {
                "nodes": json.dumps(
                    {"features": [{"properties": {}, "geometry": {"type": "Point", "coordinates": [1, 2]}}]}
                )
            },
            "feature 1: node must be a whole number, 1 or more, got 'None'",
        ),
    },
    "osm": {
        "empty": ("", "it is empty"),
        "zip": ("PK\x03\x04", f"{XML}: XML parsing error at line 1"),
        "gpx": ("<gpx/>", f"{XML}: Unknown top-level element: gpx"),
        "changes": ('<osmChange version="0.6"/>', "must be a map, and is a file of changes"),
        "cut": (xml()[:-30], f"{XML}: XML parsing error at line 18"),
        "entity": ('<!DOCTYPE osm [<!ENTITY a "b">]><osm/>', f"{XML}: XML entities are not supported"),
        "encoding": ('<?xml version="1.0" encoding="no"?><osm/>', "unknown encoding"),
        "no version": ("<osm/>", f"{XML}: Can not read file without version"),
        "lat": (
            town(n1=(24.94, 91.0)),
            "node 1: lon must be degrees from -180 to 180 and lat from -90 to 90, got 24.94 and 91 (are lat and lon",
        ),
        "lon": (town(n1=(181.0, 60.0)), "node 1: lon must be degrees from -180 to 180"),
        "nan": (town(n2=(float("nan"), 60.0)), f"{XML}: wrong format for coordinate: 'nan'"),
        "node twice": (xml(more=[node_line(1, 24.94, 60.17)]), "node 1 occurs twice"),
        "way twice": (xml(more=['<way id="10"/>']), "way 10 occurs twice"),
        "id": (xml(more=['<node id="x" lat="1" lon="1"/>']), f"{XML}: illegal id: 'x'"),
        "nowhere": (xml(more=['<node id="77"/>', way_lines(78, (1, 77), WAYS[11][1])]), "node 77: lon must be"),
        "ref": (xml(more=['<way id="77"><nd ref="a"/></way>']), f"{XML}: illegal id: 'a'"),
        "nothing": ('<osm version="0.6"/>', "the road network is empty: it holds no street"),
        "feet": (xml(ways={14: WAYS[14]}), "the road network is empty: of its 1 way, none is a street open to cars"),
        "one node": (xml(ways={1: ((1,), WAYS[11][1])}), "the road network is empty: no street connects two nodes"),
        "one place": (
            xml(ways={1: ((1, 1, 1), WAYS[11][1])}),
            "the road network is empty: no street connects two nodes",
        ),
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
        "no header": (blob(b"OSMData", b""), PBF),
        "1 GB": (blob(b"OSMHeader", b"", size=2**30), "invalid blob size: 1073741824"),
        "too long": (blob(b"OSMHeader", b"", size=9999), PBF),
        "header": (blob(b"OSMHeader", b"", header_bytes=60000), PBF),
        "raw size": (HEADER + blob(b"OSMData", b"a", raw_size=2), PBF),
        "bomb": (HEADER + blob(b"OSMData", b"\0" * (33 * 2**20)), "illegal blob size"),
        "checksum": (HEADER + blob(b"OSMData", b"")[:-3] + b"abc", PBF),
        "content": (blob(b"OSMHeader", b"\xff" * 30), PBF),
        "data": (HEADER + blob(b"OSMData", b"\xff" * 30), PBF),
        "field": (struct.pack(">I", 2) + b"\x0a\x7f", PBF),
        "wire type": (struct.pack(">I", 1) + b"\x0b", PBF),
        "number": (struct.pack(">I", 11) + b"\x80" * 11, PBF),
        "short number": (struct.pack(">I", 1) + b"\x80", PBF),
        "no type": (struct.pack(">I", 2) + b"\x18\x00", PBF),
    },
    "sumo": {
        "empty": ("", "it is empty"),
        "no XML": ("no xml", "line 1: not well-formed XML"),
        "routes": ("<routes/>", "line 1: the file must begin with <net>, got <routes>"),
        "no version": ("<net>", "line 1: <net> cannot be used: it lacks, or nothing has the name, 'version'"),
        "cut": (net()[:-20], "not well-formed XML"),
        "no projection": (
            net(location=LOCATION.replace("projParameter", "projection")),
            "line 3: <location> cannot be used: it lacks, or nothing has the name, 'projParameter'",
        ),
        "length 0": (
            net(edge("AB", "A", "B", lane("AB", 0, length=0)), *JUNCTIONS),
            "length of a lane must be above 0, got 0",
        ),
        "length x": (
            net(edge("AB", "A", "B", lane("AB", 0, length="x")), *JUNCTIONS),
            "line 5: <lane> cannot be used: could",
        ),
        "speed -1": (
            net(edge("AB", "A", "B", lane("AB", 0, speed=-1)), *JUNCTIONS),
            "speed of a lane must be above 0, got -1",
        ),
        "speed nan": (
            net(edge("AB", "A", "B", lane("AB", 0, speed="nan")), *JUNCTIONS),
            "speed of a lane must be above 0, got nan",
        ),
        "point of one number": (
            net(edge("AB", "A", "B", lane("AB", 0, shape="0,0 1")), *JUNCTIONS),
            "line 5: <lane> cannot be used",
        ),
        "no shape": (
            net(edge("AB", "A", "B", lane("AB", 0, shape="")), *JUNCTIONS),
            "two points or more, finite, got 0",
        ),
        "one point": (
            net(edge("AB", "A", "B", lane("AB", 0, shape="3,3")), *JUNCTIONS),
            "two points or more, finite, got 1",
        ),
        "infinite point": (
            net(edge("AB", "A", "B", lane("AB", 0, shape="0,0 1,inf")), *JUNCTIONS),
            "shape of a lane must have two points or more, finite, got 2",
        ),
        "no lanes": (net('<edge id="AB" from="A" to="B"/>', *JUNCTIONS), "edge 'AB': it has no lanes"),
        "no end": (
            net('<edge id="AB" from="A"/>', *JUNCTIONS),
            "edge 'AB': to must be a junction of the file, got none",
        ),
        "edge twice": (net(*EDGES, *JUNCTIONS, edge("AB", "A", "C")), "edge 'AB' is defined twice, first in line 4"),
        "junction twice": (net(*EDGES, *JUNCTIONS, junction("A")), "junction 'A' is defined twice"),
        "no junction": (net(edge("AB", "A", "Z"), *JUNCTIONS), "edge 'AB': to must be a junction of the file, got 'Z'"),
        "connection to nowhere": (
            net(*EDGES, *JUNCTIONS, CONNECTIONS[0].replace("BC", "no")),
            "<connection> cannot be used: it lacks, or nothing has the name, 'no'",
        ),
        "connection from no lane": (
            net(*EDGES, *JUNCTIONS, CONNECTIONS[0].replace('"1"', '"9"')),
            "<connection> cannot be used: ",
        ),
        "no edges": (
            net(*JUNCTIONS),
            "of its 0 edges, none has a lane for class 'passenger'; its lanes allow no edge at all",
        ),
        "buses only": (
            net(EDGES[3], *JUNCTIONS),
            "of its 1 edge, none has a lane for class 'passenger'; its lanes allow bus",
        ),
        "entity": ('<!DOCTYPE net [<!ENTITY a "aaaa">]><net/>', "line 1: must not declare a document type or entities"),
        "document type": ('<!DOCTYPE net SYSTEM "file:///etc/passwd"><net/>', "must not declare a document type"),
    },
    "tables": {
        "gzip cut": ({"edges.csv.gz": GZIPPED[:-12]}, "cannot be read: it is incomplete: its gzip ends early"),
        "no gzip": (
            {"edges.csv.gz": b"src,dst,len\n1,2,3\n"},
            "cannot be read: its name ends in .gz, but it is not gzip",
        ),
        "empty": ({"edges.csv": b""}, "it is empty"),
        "no rows": ({"edges.csv": b"src,dst,len\n"}, "it holds no rows"),
        "blanks": ({"edges.csv": b"src dst len\n1 2 3\n"}, "'src dst len'; is it separated by commas"),
        "longer row": (
            {"edges.csv": b"src,dst,len\n1,2,3\n2,3,4,5\n"},
            "cannot be read as a table: … Expected 3 fields in line 3",
        ),
        "more values": (
            {"edges.csv": b"src,dst,len\n1,2,3,4\n2,3,4,5\n"},
            "its rows hold more values than its header names",
        ),
        "two columns": (
            {"edges.csv": b"src,dst,len,len\n1,2,3,4\n"},
            "two columns are called 'len': which of them is length_m",
        ),
        "not UTF-8": ({"edges.csv": b"src,dst,len\n\xff\xfe,2,3\n"}, "must be text in UTF-8: invalid"),
        "no Parquet": ({"edges.parquet": b"src,dst,len\n1,2,3\n"}, "cannot be read as Parquet"),
        "empty Parquet": ({"edges.parquet": b""}, "cannot be read as Parquet"),
        "suffix": ({"edges.xlsx": b""}, "the name must end in .csv, .csv.gz or .parquet"),
    },
    "geopackage": {
        "fewer nodes": (("nodes", lambda t: t.iloc[:3]), "layer links: row … : from and to must be in"),
        "node twice": (
            ("nodes", lambda t: t.assign(node_json="[0, 0]")),
            "layer nodes: row 2: node must be a name that no other row has",
        ),
        "JSON cut": (("nodes", lambda t: t.assign(node_json="[0,")), "layer nodes: row 1: node_json must be JSON"),
        "no x": (("nodes", lambda t: t.drop(columns="x")), "layer nodes: no column 'x'"),
        "x in words": (("nodes", lambda t: t.assign(x="east")), "x must be a finite number"),
        "links twice": (
            ("links", lambda t: pd.concat([t, t])),
            "layer links: row 9: key must be one that no other link",
        ),
        "loops": (
            ("links", lambda t: t.assign(from_json=t["to_json"], key=range(8))),
            "layer links: … from a node to itself",
        ),
        "length 0": (
            ("links", lambda t: t.assign(length_m=0.0)),
            "layer links: row 1: edge … : length_m must be a finite number above 0",
        ),
        "no speed": (("links", lambda t: t.drop(columns="speed_mps")), "layer links: no column 'speed_mps'"),
        "many lanes": (("links", lambda t: t.assign(lanes=10**9)), "lanes must be at most 10,000"),
        "no links": (("links", lambda t: t.iloc[:0]), "layer links: it holds no rows"),
        "points": (
            ("links", lambda t: t.set_geometry(t.centroid).assign(straight=False)),
            "geometry must be a LineString",
        ),
        "nodes in degrees": (
            ("nodes", lambda t: t.to_crs("EPSG:4326")),
            "layer links: crs must be that of … layer nodes, 'WGS 84', got",
        ),
        "links in degrees": (
            ("links", lambda t: t.to_crs("EPSG:4326")),
            "layer links: crs must be that of … got 'WGS 84'",
        ),
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


def geopackage(folder, changed):
    """Write a grid, change one layer, and read it."""
    table, change = changed
    grid = build_grid(rows=2, columns=2, spacing_x_m=100, spacing_y_m=100, speed_mps=10, lanes=1)
    write_geopackage(grid, folder / "grid.gpkg")
    for layer in ("nodes", "links"):
        frame = gpd.read_file(folder / "grid.gpkg", layer=layer)
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
