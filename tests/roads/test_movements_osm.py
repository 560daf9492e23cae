"""Turn restrictions, signals, signs and turn lanes read from OpenStreetMap."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from osm_town import node_line, way_lines
from read_roads import read_osm

from simulator.files.messages import texts_of

osmium = pytest.importorskip("osmium", reason="OpenStreetMap is read by osmium")
pytest.importorskip("osmnx", reason="streets are joined by OSMnx")

EXTRACTS = Path(os.environ.get("CROWDVEIL_DATA", "nowhere")) / "osm_extracts"

NODES = {
    0: (24.94, 60.17),  # the crossing
    1: (24.94, 60.175),
    2: (24.95, 60.17),
    3: (24.94, 60.165),
    4: (24.93, 60.17),
    5: (24.9405, 60.17),  # on the eastern arm, 28 m from the crossing
    6: (24.946, 60.17),  # on the eastern arm, far from both ends
}
ROAD = {"highway": "residential"}
WAYS = {
    10: ((0, 1), ROAD),
    11: ((2, 6, 5, 0), ROAD | {"turn:lanes:forward": "left|through;right", "lanes:forward": "2"}),
    12: ((0, 3), ROAD),
    13: ((4, 0), ROAD | {"turn:lanes": "left"}),  # of both directions, so it says nothing
}


def restriction(identifier, kind, start, via, end, more="", via_type="node"):
    members = (("way", start, "from"), (via_type, via, "via"), ("way", end, "to"))
    lines = "".join(f'<member type="{kind_}" ref="{ref}" role="{role}"/>' for kind_, ref, role in members)
    tags = f'<tag k="type" v="restriction"/><tag k="restriction" v="{kind}"/>{more}'
    return f'<relation id="{identifier}" version="1">{lines}{tags}</relation>'


@pytest.fixture
def read(tmp_path):
    def _read(*relations, tags=None, ways=WAYS):
        lines = ['<osm version="0.6">']
        for node, place in NODES.items():
            inside = "".join(f'<tag k="{key}" v="{value}"/>' for key, value in (tags or {}).get(node, {}).items())
            lines.append(node_line(node, *place).replace("/>", f">{inside}</node>"))
        lines += [way_lines(way, *rest) for way, rest in ways.items()]
        path = tmp_path / "crossing.osm"
        path.write_text("\n".join([*lines, *relations, "</osm>"]))
        roads, report = read_osm(path)
        return roads, "\n".join(text for text in texts_of(report.notes()) if "junctions:" in text)

    return _read


def rows_of(roads):
    """Return movements over node 0 by the nodes at which they begin and end."""
    links, names = roads.links, roads.node_names
    rows = {}
    for row in roads.movements.itertuples(index=False):
        assert links.to_node[row.from_link] == links.from_node[row.to_link] == row.node
        key = names[links.from_node[row.from_link]], names[links.to_node[row.to_link]]
        if names[row.node] == 0:
            rows.setdefault(key, []).append(row)
    return rows


def test_a_town_without_controls_has_no_movements(read):
    roads, words = read(ways={way: (nodes, ROAD) for way, (nodes, _) in WAYS.items()})
    assert roads.movements.empty
    assert words == ""


def test_turns_and_lanes_are_read(read):
    """Coming from the east: south is left, west straight on, north right; lane 0 is the right one."""
    roads, words = read()
    rows = rows_of(roads)
    assert len(rows) == 16
    assert {key[1]: ([row.from_lane for row in rows[key]], rows[key][0].turn) for key in rows if key[0] == 2} == {
        3: ([1], "left"),
        4: ([0], "straight"),
        1: ([0], "right"),
        2: ([1], "u_turn"),
    }
    assert all(row.from_lane == -1 for key in rows if key[0] != 2 for row in rows[key])
    assert all(row.allowed and row.signal is None and row.right_of_way is None for one in rows.values() for row in one)
    assert "1 link with lanes for turns" in words


def test_restrictions_bar_turns(read):
    roads, words = read(
        restriction(1, "no_left_turn", 11, 0, 12),
        restriction(2, "only_straight_on", 10, 0, 12),
        restriction(3, "no_right_turn", 12, 0, 11, more='<tag k="except" v="motorcar;bus"/>'),
        restriction(4, "no_left_turn", 13, 12, 10, via_type="way"),
        restriction(5, "no_u_turn", 12, 7, 12),
    )
    barred = {key for key, rows in rows_of(roads).items() if not rows[0].allowed}
    assert barred == {(2, 3), (1, 1), (1, 2), (1, 4)}
    assert "4 turns barred by restrictions, 2 restrictions left out, not at a node of their links" in words


def test_a_way_that_continues_over_the_node_is_told_apart_by_the_turn(read):
    """Way 20 goes from north to south: from the east, its left turn is the one to the south."""
    ways = {20: ((1, 0, 3), ROAD), 11: ((2, 5, 0), ROAD), 13: ((4, 0), ROAD)}
    roads, _ = read(restriction(1, "no_left_turn", 11, 0, 20), ways=ways)
    assert {key for key, rows in rows_of(roads).items() if not rows[0].allowed} == {(2, 3)}


def test_signals_at_the_junction_and_before_it(read):
    roads, words = read(tags={0: {"highway": "traffic_signals"}})
    assert {row.signal for rows in rows_of(roads).values() for row in rows} == {0}
    assert "1 junction with signals" in words
    roads, _ = read(tags={5: {"highway": "traffic_signals"}})
    assert {key[0] for key, rows in rows_of(roads).items() if rows[0].signal == 0} == {2}
    far, words = read(tags={6: {"highway": "traffic_signals"}})
    assert "signals" not in words
    assert far.signals.empty


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"highway": "give_way"}, "yield"),
        ({"highway": "stop"}, "stop"),
        ({"highway": "stop", "stop": "all"}, "all_way_stop"),
        ({"highway": "stop", "direction": "forward"}, "stop"),
        ({"highway": "stop", "direction": "backward"}, None),
    ],
)
def test_signs_give_the_right_of_way(read, tags, expected):
    """Node 5 is 28 m before the crossing, along way 11."""
    roads, _ = read(tags={5: tags})
    signs = {key[0]: rows[0].right_of_way for key, rows in rows_of(roads).items()}
    others = None if expected is None else "priority"
    assert signs == {1: others, 2: expected, 3: others, 4: others}


def test_a_roundabout_has_priority(read):
    """The crossing is on a roundabout of nodes 0, 1 and 4: streets from 2 and 3 enter it."""
    circle = ROAD | {"junction": "roundabout"}
    ways = {20: ((0, 1, 4, 0), circle), 11: ((2, 6, 5, 0), ROAD), 12: ((0, 3), ROAD)}
    roads, words = read(ways=ways)
    rights = {key[0]: rows[0].right_of_way for key, rows in rows_of(roads).items()}
    assert {rights.pop(2), rights.pop(3)} == {"yield"}
    assert set(rights.values()) == {"priority"}
    assert "2 entries of roundabouts" in words
    assert "sign" not in words


def test_a_stop_at_the_node_itself_is_for_all(read):
    roads, _ = read(tags={0: {"highway": "stop"}})
    assert {row.right_of_way for rows in rows_of(roads).values() for row in rows} == {"all_way_stop"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Helsinki.osm.pbf", "West-Oakland.osm.bz2"])
def test_real_extracts_have_the_controls_of_their_nodes(name):
    """Signals at nodes of the network, and barred turns, are those that the file itself states there."""
    path = EXTRACTS / name
    if not path.is_file():
        pytest.skip("the data set is not there")
    roads, _ = read_osm(path)
    signals, restricted = set(), set()
    for element in osmium.FileProcessor(str(path)):
        if element.is_node() and element.tags.get("highway") == "traffic_signals":
            signals.add(element.id)
        elif element.is_relation() and element.tags.get("type") == "restriction":
            restricted |= {member.ref for member in element.members if member.role == "via"}
    names, movements = roads.node_names, roads.movements
    at = {names[node]: rows for node, rows in movements.groupby("node")}
    found = {node for node, rows in at.items() if rows["signal"].notna().any()}
    assert found
    for node in signals & set(names):
        assert (at[node]["signal"] == node).all(), node
    for node in found - signals:  # then one stands on a link before it
        x, y = roads.node_xy[names.index(node)]
        assert any(math.dist((x, y), place) <= 51 for place in _places(path, signals, roads)), node
    assert {node for node, rows in at.items() if not rows["allowed"].all()} <= restricted


def _places(path, nodes, roads):
    found = [
        (node.location.lon, node.location.lat)
        for node in osmium.FileProcessor(str(path), osmium.osm.NODE)
        if node.id in nodes
    ]
    import pyproj  # noqa: PLC0415 - of this check only

    to_metres = pyproj.Transformer.from_crs("EPSG:4326", roads.crs, always_xy=True)
    return [to_metres.transform(*place) for place in found]
