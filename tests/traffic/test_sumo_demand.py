"""SUMO's route files on road networks: compared with plain parsing, and by hand."""

import gzip
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from read_roads import read_sumo_net
from scipy import stats
from sumo_by_hand import tool
from zoned_roads import ring, roads_of

from simulator.files.errors import InputError
from simulator.files.times import seconds
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.clock import Clock

LEVEL = 1e-6
SUMO = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), "sumo")


def edges_of_sumo(*names):
    """Edge "ab" from node a to node b, for the given ids; a repeated pair is "ab2"."""
    return roads_of([(name[0], name[1], {"sumo_edge": name}) for name in names])


#: a → b → c → d → a, and back along each
ROADS = edges_of_sumo("ab", "bc", "cd", "da", "ba", "cb", "dc", "ad")


def read(tmp_path, body, *, roads=ROADS, root="routes", seed=1, net=None, **options):
    file = tmp_path / "demand.rou.xml"
    file.write_text(f"<{root}>{body}</{root}>")
    return read_sumo_routes([file], roads, net=net, clock=Clock(1.0), rng=np.random.default_rng(seed), **options)


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    """The roads of `ROADS` as a network of SUMO's."""
    folder = tmp_path_factory.mktemp("net")
    corners = {"a": (0, 0), "b": (200, 0), "c": (200, 200), "d": (0, 200)}
    nodes = "".join(f'<node id="{name}" x="{x}" y="{y}"/>' for name, (x, y) in corners.items())
    names = [data["sumo_edge"] for _, _, data in ROADS.graph.edges(data=True)]
    edges = "".join(f'<edge id="{name}" from="{name[0]}" to="{name[1]}"/>' for name in names)
    (folder / "n.nod.xml").write_text(f"<nodes>{nodes}</nodes>")
    (folder / "e.edg.xml").write_text(f"<edges>{edges}</edges>")
    tool("netconvert", "-n", folder / "n.nod.xml", "-e", folder / "e.edg.xml", "-o", folder / "square.net.xml")
    return folder / "square.net.xml"


def edges_driven(read_, roads=ROADS):
    """Route of each vehicle as edge ids."""
    names = {data["link"]: data["sumo_edge"] for _, _, data in roads.graph.edges(data=True)}
    return [[names[link] for link in read_.routes.of(i).tolist()] for i in range(len(read_.ids))]


def test_vehicles_use_their_given_routes(tmp_path):
    found = read(
        tmp_path,
        """
        <vType id="car"/>
        <route id="round" edges="ab bc cd da"/>
        <vehicle id="late" depart="00:01:05.5"><route edges="ab ba ab bc"/></vehicle>
        <vehicle id="early" depart="3" route="round"/>
        <vehicle id="begin" depart="begin" type="car"><route edges="cd"/><stop lane="cd_0" duration="9"/></vehicle>
        """,
    )
    assert found.ids == ["begin", "early", "late"]
    assert found.trips.departure_tick.tolist() == [0, 3, 65]
    assert edges_driven(found) == [["cd"], ["ab", "bc", "cd", "da"], ["ab", "ba", "ab", "bc"]]
    assert found.trips.origin.tolist() == [ROADS.node_names.index(node) for node in "caa"]
    assert found.trips.destination.tolist() == [ROADS.node_names.index(node) for node in "dac"]
    assert found.notes == []


def test_a_repeated_route_is_driven_again(tmp_path):
    round_ = '<vehicle id="a" depart="0"><route edges="ab ba" repeat="2"/></vehicle>'
    named = '<route id="r" edges="bc cb" repeat="1"/><vehicle id="b" depart="1" route="r"/>'
    assert edges_driven(read(tmp_path, round_ + named)) == [["ab", "ba"] * 3, ["bc", "cb"] * 2]
    open_ = read(tmp_path, round_ + '<vehicle id="b" depart="0"><route edges="ab bc" repeat="1"/></vehicle>')
    assert open_.ids == ["a"]  # its last edge does not lead to its first
    assert "its edges are not consecutive (as in demand.rou.xml: line 1: edge 'ab' after edge 'bc')" in open_.notes[0]


@pytest.mark.parametrize(("repeat", "rule"), [("x", "a number"), ("1.5", "whole"), ("1e9", "at most 1,000,000 edges")])
def test_repetitions_are_checked(tmp_path, repeat, rule):
    with pytest.raises(InputError, match=rule):
        read(tmp_path, f'<vehicle id="a" depart="0"><route edges="ab ba" repeat="{repeat}"/></vehicle>')


def test_trips_use_their_edges_and_shortest_paths_between(tmp_path):
    found = read(
        tmp_path,
        """
        <trip id="t" depart="0" from="ab" to="cd"/>
        <trip id="same" depart="1" from="ab" to="ab"/>
        <trip id="next" depart="2" from="ab" to="bc"/>
        <trip id="via" depart="3" from="ab" to="ba" via="cb ba"/>
        """,
    )
    assert edges_driven(found) == [["ab", "bc", "cd"], ["ab"], ["ab", "bc"], ["ab", "bc", "cb", "ba"]]


def test_undriven_trips_are_counted_by_reason(tmp_path):
    roads = edges_of_sumo("ab", "bc", "cb", "xy", "yx", "ba")
    found = read(
        tmp_path,
        """
        <vehicle id="1" depart="0"><route edges="ab bc"/></vehicle>
        <vehicle id="2" depart="0"><route edges="ab bus bc"/></vehicle>
        <vehicle id="3" depart="0"><route edges="bus"/></vehicle>
        <vehicle id="4" depart="0"><route edges="ab xy"/></vehicle>
        <trip id="5" depart="0" from="ab" to="xy"/>
        <vehicle id="6" depart="triggered"><route edges="ab"/></vehicle>
        <vehicle id="9" depart="100"><route edges="ab"/></vehicle>
        <person id="10" depart="0"><walk edges="ab"/></person>
        <include href="other.rou.xml"/>
        """,
        roads=roads,
        duration_s=100.0,
    )
    assert found.ids == ["1"]
    notes = "\n".join(found.notes)
    for words in (
        "2 not driven: its edges are not all among the roads (as in",
        "line 3: edge 'bus')",
        "1 not driven: its edges are not consecutive (as in",
        "line 5: edge 'xy' after edge 'ab')",
        "1 not driven: no path leads along its edges (as in",
        "line 6: trip '5': from edge 'ab' to edge 'xy')",
        "1 not driven: departs on an event instead of at a time (depart='triggered')",
        "1 not driven: they depart after the run ends (second 100)",
        "1 not driven: a person, which is not a road vehicle",
        "1 not driven: an <include> of another file",
    ):
        assert words in notes
    assert len(found.notes) == 7


@pytest.mark.parametrize(
    ("rates", "ticks"),
    [
        ('begin="10" end="20" number="5"', [10, 12, 14, 16, 18]),
        ('begin="10" end="20" period="4"', [10, 14, 18]),
        ('begin="10" period="4" number="2"', [10, 14]),
        ('begin="10" vehsPerHour="360"', [10, 20, 30, 40, 50]),
        ('end="6" perHour="1800"', [0, 2, 4]),
        ('begin="0:00:57" probability="1"', [57, 58, 59]),
        ('begin="10" end="70" number="3"', [10, 30, 50]),
        ('probability="1" number="2"', [0, 1]),
    ],
)
def test_flows(tmp_path, net, rates, ticks):
    found = read(tmp_path, f'<flow id="f" from="ab" to="bc" type="unknown" {rates}/>', net=net, duration_s=60.0)
    assert edges_driven(found) == [["ab", "bc"]] * len(ticks)
    assert found.trips.departure_tick.tolist() == ticks
    assert found.ids == [f"f.{i}" for i in range(len(ticks))]


def test_flows_are_shifted_by_begin_s_and_drawn_by_seed(tmp_path, net):
    random = '<flow id="q" begin="30" probability="0.5"><route edges="cd"/></flow>'
    flows = f'<flow id="p" period="10" from="ab" to="bc"/>{random}'
    found = [read(tmp_path, flows, net=net, begin_s=25.0, duration_s=60.0, seed=seed) for seed in (1, 1, 2)]
    ticks = [dict(zip(one.ids, one.trips.departure_tick.tolist(), strict=True)) for one in found]
    assert ticks[0] == ticks[1] != ticks[2]
    assert [ticks[0][f"p.{number}"] for number in range(6)] == [0, 10, 20, 30, 40, 50]
    assert min(tick for name, tick in ticks[0].items() if name.startswith("q.")) >= 5


def test_vehicles_between_zones_and_junctions(tmp_path, net):
    found = read(
        tmp_path,
        """
        <taz id="west"><tazSource id="da" weight="1"/><tazSource id="ad" weight="1"/><tazSink id="da" weight="1"/></taz>
        <taz id="east" edges="bc cb"/>
        <trip id="t" depart="7" fromTaz="west" toTaz="east"/>
        <flow id="f" begin="0" end="100" number="400" fromTaz="west" toTaz="east"/>
        <trip id="j" depart="3" fromJunction="a" toJunction="c"/>
        """,
        net=net,
        duration_s=100.0,
    )
    driven = dict(zip(found.ids, edges_driven(found), strict=True))
    assert len(driven) == 402
    assert driven["t"][-1] in {"bc", "cb"}
    assert driven["j"] in (["ab", "bc"], ["ad", "dc"])
    assert {driven[f"f.{number}"][0] for number in range(400)} <= {"da", "ad"}
    assert found.notes == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<flow id="f" from="ab" to="zz" end="9" number="3"/>', "zz"),
        ('<flow id="f" fromTaz="north" toTaz="south" end="9" number="3"/>', "north"),
        ('<flow id="f" from="ab" to="bc" end="9"/>', "is needed in flow 'f'"),
        ('<flow id="f" from="ab" to="bc" number="3" period="3" probability="0.1"/>', "'f'"),
        ('<routeDistribution id="d"/><vehicle id="v" depart="0" route="d"/>', "'d'"),
    ],
)
def test_sumo_refuses_what_it_cannot_draw(tmp_path, net, body, words):
    with pytest.raises(InputError, match=rf"demand\.rou\.xml: SUMO .*{words}"):
        read(tmp_path, body, net=net, duration_s=60.0)


@pytest.mark.parametrize("element", ['<e1Detector id="e" file="here:8080"/>', '<include href="/etc/passwd"/>'])
def test_network_that_names_a_file_is_refused_for_flows(tmp_path, net, element):
    other = tmp_path / "other.net.xml"
    other.write_text(net.read_text().replace("</net>", f"{element}</net>"))
    with pytest.raises(InputError, match=r"other\.net\.xml: line \d+: .*must"):
        read(tmp_path, '<flow id="f" from="ab" to="bc" end="9" number="3"/>', net=other, duration_s=60.0)


def test_flows_that_sumo_takes_too_long_to_draw_are_refused(tmp_path, net, monkeypatch):
    monkeypatch.setattr("simulator.sumo.process._ANSWER_S", 0.3)
    with pytest.raises(InputError, match=r"rou\.xml: while it draws vehicles: SUMO has not answered for 0\.3 s"):
        read(tmp_path, '<flow id="f" from="ab" to="ab" end="60" number="9000000"/>', net=net, duration_s=60.0)


def test_flows_need_a_network_of_sumo(tmp_path):
    with pytest.raises(InputError, match=r"line 1: flow 'f': SUMO draws it on its network"):
        read(tmp_path, '<flow id="f" from="ab" to="bc" end="9" number="3"/>', duration_s=60.0)


def test_random_flows(tmp_path, net):
    found = read(
        tmp_path,
        '<flow id="p" begin="0" probability="0.25"><route edges="ab"/></flow>'
        '<flow id="e" begin="0" period="exp(0.25)" from="bc" to="bc"/>',
        net=net,
        duration_s=4_000.0,
    )
    bernoulli = found.trips.departure_tick[[name.startswith("p.") for name in found.ids]]
    poisson = found.trips.departure_tick[[name.startswith("e.") for name in found.ids]]
    assert len(set(bernoulli.tolist())) == len(bernoulli)
    assert stats.binomtest(len(bernoulli), 4_000, 0.25).pvalue > LEVEL
    assert stats.poisson(1_000).cdf(len(poisson)) == pytest.approx(0.5, abs=0.5 - LEVEL)
    assert stats.kstest(poisson / 4_000, "uniform").pvalue > LEVEL


def test_routes_drawn_from_a_distribution(tmp_path, net):
    found = read(
        tmp_path,
        """
        <route id="one" edges="ab"/>
        <routeDistribution id="by_name" routes="one two" probabilities="3 1"/>
        <routeDistribution id="inside">
            <route edges="cd" probability="1"/>
            <route refId="one" probability="1"/>
        </routeDistribution>
        <route id="two" edges="bc"/>
        <flow id="f" begin="0" end="4000" period="1" route="by_name"/>
        <flow id="g" begin="0" end="4000" period="1" route="inside"/>
        <vehicle id="w" depart="5" route="by_name"/>
        <vehicle id="v" depart="0">
            <routeDistribution last="1"><route edges="ab"/><route edges="dc"/></routeDistribution>
        </vehicle>
        """,
        net=net,
        duration_s=4000.0,
    )
    driven = dict(zip(found.ids, edges_driven(found), strict=True))
    assert driven["v"] == ["dc"]
    assert driven["w"] in (["ab"], ["bc"])
    first = [driven[f"f.{i}"] for i in range(4000)]
    assert stats.binomtest(first.count(["ab"]), 4000, 0.75).pvalue > LEVEL
    assert first.count(["ab"]) + first.count(["bc"]) == 4000
    second = [driven[f"g.{i}"] for i in range(4000)]
    assert stats.binomtest(second.count(["cd"]), 4000, 0.5).pvalue > LEVEL


def test_share_scales_the_number_of_vehicles(tmp_path):
    body = "".join(f'<vehicle id="{i}" depart="{i}"><route edges="ab"/></vehicle>' for i in range(101))
    assert len(read(tmp_path, body, share=0.25).ids) in {25, 26}
    more = read(tmp_path, body, share=2.5)
    assert len(more.ids) in {252, 253}
    assert set(Counter(more.ids).values()) == {2, 3}
    assert len(set(more.ids)) == 101
    assert len(read(tmp_path, body, vehicles=17).ids) == 17
    halves = [read(tmp_path, body, vehicles=50, seed=seed).ids for seed in (1, 1, 2)]
    assert halves[0] == halves[1] != halves[2]


def test_departures_are_shifted_by_begin_s(tmp_path):
    body = "".join(f'<vehicle id="{i}" depart="{100 * i}"><route edges="ab"/></vehicle>' for i in range(6))
    found = read(tmp_path, body, begin_s=200.0, duration_s=200.0)
    assert found.ids == ["2", "3"]
    assert found.trips.departure_tick.tolist() == [0, 100]
    notes = "\n".join(found.notes)
    assert "2 not driven: they depart before the run starts (second 200)" in notes
    assert "2 not driven: they depart after the run ends (second 400)" in notes


def test_several_files_with_and_without_compression(tmp_path):
    routes = tmp_path / "routes.add.xml"
    routes.write_text('<additional><route id="r" edges="ab bc"/></additional>')
    packed = tmp_path / "v.rou.xml.gz"
    packed.write_bytes(gzip.compress(b'<routes><vehicle id="v" route="r" depart="1"/></routes>'))
    found = read_sumo_routes([packed, routes], ROADS, net=None, clock=Clock(1.0), rng=np.random.default_rng(1))
    assert edges_driven(found) == [["ab", "bc"]]


@pytest.mark.parametrize(
    ("place", "net", "files"),
    [
        ("acosta", "acosta_buslanes", ("acosta", "acosta_busses")),
        ("pasubio", "pasubio_buslanes", ("pasubio", "pasubio_busses")),
        ("cologne8", "cologne8", ("cologne8",)),
    ],
)
def test_real_demand_equals_plain_parsing(place, net, files):
    if not (SUMO / place).is_dir():
        pytest.skip(f"set CROWDVEIL_DATA to a folder with sumo/{place} to read it")
    roads, _ = read_sumo_net(SUMO / place / f"{net}.net.xml.gz")
    routes = [SUMO / place / f"{file}.rou.xml.gz" for file in files]
    found = read_sumo_routes(routes, roads, net=None, clock=Clock(1.0), rng=np.random.default_rng(1))
    found.routes.check_connected(roads.links)
    text = "".join(gzip.decompress(file.read_bytes()).decode() for file in routes)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    plain = re.findall(r"<(?:vehicle|trip)\b[^>]*>", text)
    dropped = sum(int(re.search(r"([\d,]+) not driven", note)[1].replace(",", "")) for note in found.notes)
    assert len(found.ids) + dropped == len(plain)
    departs = {re.search(r'\bid="([^"]*)"', tag)[1]: float(re.search(r'depart="([^"]*)"', tag)[1]) for tag in plain}
    assert found.trips.departure_tick.tolist() == [int(departs[name]) for name in found.ids]
    known = {data["sumo_edge"]: data["link"] for _, _, data in roads.graph.edges(data=True)}
    given = dict(re.findall(r'<vehicle\b[^>]*\bid="([^"]*)"[^>]*>\s*<route edges="([^"]*)"', text))
    given = {name: [known.get(edge) for edge in edges.split()] for name, edges in given.items()}
    assert {name for name in given if None not in given[name]} == set(found.ids) & set(given)
    ends = {
        re.search(r'\bid="([^"]*)"', tag)[1]: [re.search(rf'{end}="([^"]*)"', tag)[1] for end in ("from", "to")]
        for tag in plain
        if tag.startswith("<trip")
    }
    for i, name in enumerate(found.ids):
        if name in given:
            assert found.routes.of(i).tolist() == given[name]
        else:
            assert found.routes.of(i)[[0, -1]].tolist() == [known[edge] for edge in ends[name]]


def test_roads_not_from_sumo_are_refused(tmp_path):
    with pytest.raises(InputError, match="need roads read from SUMO's network"):
        read(tmp_path, '<vehicle id="v" depart="0"><route edges="ab"/></vehicle>', roads=ring(3))


@pytest.mark.parametrize(
    ("text", "as_sumo", "strictly"),
    [
        ("7:0:0", 25200.0, None),
        ("0:90:90", 5490.0, None),
        ("1:00:00:00", 86400.0, 86400.0),
        ("07:30:00.5", 27000.5, 27000.5),
        ("12", 12.0, 12.0),
        ("7:30", None, None),
    ],
)
def test_clock_times_in_sumo_and_strict_form(text, as_sumo, strictly):
    assert seconds(text) == as_sumo
    assert seconds(text, as_sumo=False) == strictly


TYPES = (
    '<vType id="car"/><vType id="van" length="6" minGap="1.5"/><vType id="coach" vClass="coach" minGap="3"/>'
    '<vTypeDistribution id="mixed"><vType id="short" length="3" probability="3"/>'
    '<vType id="long" length="7" probability="1"/></vTypeDistribution>'
    '<vTypeDistribution id="named" vTypes="van coach" probabilities="0.25 0.75"/>'
)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([""], 7.5),
        (["van"], 7.5),
        (["coach"], 17.0),
        (["mixed"], (3 * 5.5 + 9.5) / 4),
        (["named"], 0.25 * 7.5 + 0.75 * 17.0),
        (["", "coach", "mixed", "undefined"], (7.5 + 17.0 + 6.5 + 7.5) / 4),
    ],
)
def test_spacing_is_the_mean_of_the_types_of_the_vehicles(tmp_path, kinds, expected):
    types = [f'type="{kind}"' if kind else "" for kind in kinds]
    vehicles = "".join(
        f'<vehicle id="{i}" {kind} depart="{i}"><route edges="ab bc"/></vehicle>' for i, kind in enumerate(types)
    )
    assert read(tmp_path, TYPES + vehicles).classes.spacing_m == pytest.approx(expected)


def test_the_usual_type_can_be_redefined_and_flows_have_their_type(tmp_path, net):
    usual = '<vType id="DEFAULT_VEHTYPE" length="4" minGap="1"/>'
    usual += '<vehicle id="a" depart="0"><route edges="ab"/></vehicle>'
    assert read(tmp_path, usual).classes.spacing_m == 5.0
    flow = '<flow id="a.b" type="bus" begin="0" end="60" number="3" from="ab" to="bc"/>'
    assert read(tmp_path, '<vType id="bus" vClass="bus"/>' + flow, net=net, duration_s=60.0).classes.spacing_m == 14.5


def test_a_vehicle_without_length_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"length and minGap must be 0\.5 m or more together, got 0\.1 m"):
        read(tmp_path, '<vType id="dot" length="0.1" minGap="0"/>')


@pytest.mark.parametrize("only", [None, "passenger"])
def test_vehicles_of_several_classes_are_counted(tmp_path, only):
    one = '<vehicle id="{}" type="{}" depart="1"><route edges="ab bc"/></vehicle>'
    body = '<vType id="bike" vClass="bicycle"/><vType id="own"/>'
    body += "".join(one.format(number, kind) for number, kind in enumerate(["bike", "own", "own"]))
    note = "demand.rou.xml: vehicles by class: 1 bicycle, 2 passenger"
    note += f"; all drive as roads.vehicle_class = {only!r}" if only else ""
    assert read(tmp_path, body, vehicle_class=only).notes == [note]
    assert read(tmp_path, body.replace("bicycle", "passenger")).notes == []
