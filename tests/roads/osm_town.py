"""A town of a few streets, as OpenStreetMap XML and as PBF."""

from __future__ import annotations

import struct
import zlib

NODES = {
    1: (24.940, 60.170),
    2: (24.950, 60.170),
    3: (24.950, 60.175),
    4: (24.940, 60.175),
    5: (24.945, 60.1705),
    6: (24.955, 60.175),
    7: (24.945, 60.1695),
    8: (24.999, 60.179),
}
"""Longitude and latitude; 8 is on no street."""
WAYS = {
    10: ((1, 5, 2), {"highway": "primary", "maxspeed": "60", "lanes": "4", "name": "Long & <Bent>"}),
    11: ((2, 3), {"highway": "residential", "oneway": "yes"}),
    12: ((3, 4, 1), {"highway": "residential", "maxspeed": "30 mph", "lanes": "2"}),
    13: ((3, 6), {"highway": "tertiary", "maxspeed:forward": "40", "maxspeed": "50"}),
    14: ((2, 4), {"highway": "footway"}),
    15: ((1, 7, 2), {"highway": "living_street", "oneway": "-1"}),
    16: ((1, 8), {"highway": "residential", "access": "private"}),
}
LINKS = {("1", "2"): 1, ("2", "1"): 2, ("2", "3"): 1, ("3", "1"): 1, ("1", "3"): 1, ("3", "6"): 1, ("6", "3"): 1}
"""How many links lead from junction to junction: 4, 5 and 7 are points along them."""


def quoted(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def node_line(node, lon, lat):
    return f'<node id="{node}" lat="{lat!r}" lon="{lon!r}" version="1"/>'


def way_lines(way, nodes, tags):
    refs = "".join(f'<nd ref="{node}"/>' for node in nodes)
    tag_lines = "".join(f'<tag k="{quoted(key)}" v="{quoted(value)}"/>' for key, value in tags.items())
    return f'<way id="{way}" version="1">{refs}{tag_lines}</way>'


def xml(nodes=None, ways=None, more=()):
    """Line 1 is the declaration, line 2 the root; the nodes follow one per line, then the ways."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<osm version="0.6" generator="by hand">']
    lines += [node_line(node, *place) for node, place in (NODES if nodes is None else nodes).items()]
    lines += [way_lines(way, *rest) for way, rest in (WAYS if ways is None else ways).items()]
    lines += more
    lines.append('<relation id="1"><member type="way" ref="10" role=""/></relation>')
    return "\n".join([*lines, "</osm>"])


def write_pbf(path, nodes=None, ways=None, node_tags=None):
    """Write by pyosmium, nodes before ways."""
    import osmium  # noqa: PLC0415 - an extra

    with osmium.SimpleWriter(str(path)) as writer:
        for node, place in (NODES if nodes is None else nodes).items():
            writer.add_node(osmium.osm.mutable.Node(id=node, location=place, tags=(node_tags or {}).get(node, {})))
        for way, (refs, tags) in (WAYS if ways is None else ways).items():
            writer.add_way(osmium.osm.mutable.Way(id=way, nodes=refs, tags=tags))
    return path


def blob(kind, content, *, size=None):
    """One blob of a PBF file; its stated size may be wrong."""
    packed = zlib.compress(content)
    body = b"\x10" + number(len(content)) + b"\x1a" + number(len(packed)) + packed
    header = b"\x0a" + number(len(kind)) + kind + b"\x18" + number(len(body) if size is None else size)
    return struct.pack(">I", len(header)) + header + body


def number(value):
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


HEADER = blob(b"OSMHeader", b"\x22\x0eOsmSchema-V0.6\x22\x0aDenseNodes")
