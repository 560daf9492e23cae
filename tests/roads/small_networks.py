"""Small TNTP and GMNS networks as text, and small random graphs, for tests of readers and writers."""

import networkx as nx
import shapely
from hypothesis import strategies as st

ROWS = ((1, 3, 3600, 1.0, 2.0), (3, 1, 3600, 1.0, 2.0), (2, 4, 1800, 1.0, 2.0), (4, 2, 1800, 1.0, 2.0))
RING = ((3, 4, 900, 0.5, 1.0), (4, 5, 900, 0.5, 1.0), (5, 3, 900, 0.7, 1.0))
PLACES = ((1, -96.78, 43.61), (2, -96.70, 43.60), (3, -96.77, 43.61), (4, -96.71, 43.60), (5, -96.74, 43.58))


def tntp_network(*, zones=2, nodes=5, first=3, links=None, rows=(*ROWS, *RING), end=" ;", extra=""):
    """A network file: two centroids, 1 and 2, on a one-way ring of 3, 4, 5."""
    count = len(rows) if links is None else links
    head = f"<NUMBER OF ZONES> {zones}\n<NUMBER OF NODES> {nodes}\n<FIRST THRU NODE> {first}\n"
    head += (
        f"<NUMBER OF LINKS> {count}\n{extra}<END OF METADATA>\n\n~ init term cap length fft b power speed toll type ;\n"
    )
    return head + "".join(
        f"\t{a}\t{b}\t{capacity}\t{length}\t{time}\t0.15\t4\t0\t0\t1{end}\n" for a, b, capacity, length, time in rows
    )


def tntp_nodes(places=PLACES, header="Node\tX\tY\t;", end="\t;"):
    """A node file."""
    return f"{header}\n" + "".join(f"{node}\t{x}\t{y}{end}\n" for node, x, y in places)


GMNS_NODES = "node_id,x_coord,y_coord,zone_id\n1,-71.10,42.36,7\n2,-71.09,42.36,\n3,-71.09,42.37,8\n"
GMNS_LINKS = (
    "link_id,from_node_id,to_node_id,directed,length,facility_type,capacity,free_speed,lanes,allowed_uses\n"
    "a,1,2,1,830,primary,1500,36,2,auto\n"
    "b,2,3,0,1115,residential,,,,\n"
    "c,3,1,true,1400,,1000,36,1,walk;auto\n"
    "d,1,3,1,1400,footway,,5,0,walk\n"
)


GMNS_LINE = "LINESTRING (-71.1 42.36, -71.095 42.365, -71.09 42.36)"


def gmns_links(*changes):
    """The usual link table with text replaced."""
    text = GMNS_LINKS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def gmns_links_with_shape(*changes):
    """The usual link table with text replaced, and a shape for the first link."""
    shapes = ["geometry", f'"{GMNS_LINE}"', "", "", ""]
    return "\n".join(f"{row},{shape}" for row, shape in zip(gmns_links(*changes).splitlines(), shapes, strict=True))


def write_gmns_text(folder, nodes=GMNS_NODES, links=GMNS_LINKS, **others):
    """Write tables of a GMNS folder, and return it."""
    folder.mkdir(exist_ok=True)
    for name, text in {"node": nodes, "link": links, **others}.items():
        if text is not None:
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def same_network(one, other):
    """Assert that two networks are equal: node order, link keys, attributes, geometry, coordinate system."""
    assert list(one.graph.nodes(data=True)) == list(other.graph.nodes(data=True))
    edges = [{(a, b, key): data for a, b, key, data in net.graph.edges(keys=True, data=True)} for net in (one, other)]
    assert edges[0].keys() == edges[1].keys()
    for edge, data in edges[0].items():
        assert data == edges[1][edge], edge
    assert one.crs == other.crs
    assert (one.shapes.vertices == other.shapes.vertices).all()


_numbers = st.floats(0.1, 1e6, allow_nan=False)
_text = st.text(max_size=8)
_values = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.booleans(),
    _text,
    st.tuples(st.integers(), _text),
)
_names = st.sampled_from(["bpr_b", "toll", "name", "u_tag", "zäh l"])
_keys = st.one_of(
    st.lists(st.integers(-5, 10**12), min_size=2, max_size=6, unique=True),
    st.lists(_text, min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(st.integers(), st.integers()), min_size=2, max_size=6, unique=True),
)


@st.composite
def graphs(draw):
    """A strongly connected road graph: a ring of all nodes, and further links, including parallel ones."""
    keys = draw(_keys)
    north = {"EPSG:32618": 4.5e6, "EPSG:2154": 6.6e6, "+proj=tmerc +lat_0=5 +lon_0=3": 0.0}
    crs = draw(st.sampled_from(sorted(north)))
    graph = nx.MultiDiGraph(crs=crs)
    coordinate = st.floats(-1e5, 1e5, allow_nan=False, allow_subnormal=False)
    for key in keys:
        data = draw(st.dictionaries(_names, _values, max_size=2))
        if draw(st.booleans()):
            data["zone"] = draw(st.one_of(st.integers(0, 99), _text))
        graph.add_node(key, **data, x=500_000 + draw(coordinate), y=north[crs] + draw(coordinate))
    ring = [(keys[i], keys[(i + 1) % len(keys)]) for i in range(len(keys))]
    ends = st.tuples(st.sampled_from(keys), st.sampled_from(keys)).filter(lambda pair: pair[0] != pair[1])
    for start, end in ring + draw(st.lists(ends, max_size=5)):
        data = draw(st.dictionaries(_names, _values, max_size=2))
        if draw(st.booleans()):
            data["class"] = draw(_text)
        if draw(st.booleans()):
            points = draw(st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=4, unique=True))
            data["geometry"] = shapely.LineString([(500_000 + x, north[crs] + y) for x, y in points])
        key = draw(st.one_of(st.none(), st.sampled_from([0, 3, "b", "07"])))
        graph.add_edge(
            start,
            end,
            key,
            length_m=draw(_numbers),
            speed_mps=draw(_numbers),
            lanes=draw(st.integers(1, 9)),
            capacity_vph=draw(_numbers),
            **data,
        )
    return graph
