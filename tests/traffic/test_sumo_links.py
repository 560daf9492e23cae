"""Links by interval and trips of SUMO's vehicles, compared with SUMO's own outputs of a plain run."""

from collections import defaultdict

import numpy as np
import pytest
from sumo_by_hand import Driven, engine, inputs, plain_run, tool

from simulator.files.xml_elements import elements_of
from simulator.sumo.outputs import EdgeOutput
from simulator.traffic.engine import State

END_S = 300.0


def edges_of(net):
    edges = (element.attributes for element in elements_of(net) if element.name == "edge" and element.attributes)
    return {edge["id"]: number for number, edge in enumerate(edges) if edge.get("function") != "internal"}


def tables(given, link_of, every_s):
    output = EdgeOutput(every_s, given.begin_s, END_S, link_of, np.full(1 + max(link_of.values()), 100.0))
    with Driven(engine(given, until_s=END_S, link_of=link_of, edge_output=output)) as driven:
        sumo = driven.to(END_S)
        states, totals = driven.rows(), sumo.totals()
    return (*sumo.link_tables(), states, totals, sumo)


def own_measures(given, every_s):
    """SUMO's measures of every second, written by SUMO alone, added up to intervals."""
    folder = given.net.parent
    extra = folder / "own.add.xml"
    extra.write_text('<additional><edgeData id="own" period="1" file="own.xml" excludeEmpty="true"/></additional>')
    tool("sumo", *given.arguments(), "--additional-files", extra, "--end", given.begin_s + END_S + 1)
    sums = defaultdict(lambda: np.zeros(4))
    time_s = 0.0
    for element in elements_of(folder / "own.xml", ends=False):
        at = element.attributes
        if element.name == "interval":
            time_s = float(at["begin"]) - given.begin_s
        elif element.name == "edge":
            interval = min(int(time_s // every_s), int(np.ceil(END_S / every_s)) - 1)
            entered, left = (
                int(at[one]) + int(at[other]) for one, other in (("entered", "departed"), ("left", "arrived"))
            )
            seconds = float(at["sampledSeconds"]) if time_s < END_S else 0.0
            sums[at["id"], interval] += entered, left, seconds, seconds * float(at.get("speed", 0.0))
    return sums


@pytest.mark.parametrize(
    ("every_s", "options"), [(60.0, {}), (70.0, {"begin_s": 20.0}), (60.0, {"mesoscopic": True}), (400.0, {})]
)
def test_links_are_those_that_sumo_itself_counts(net, every_s, options):
    given, link_of = inputs(net, **options), edges_of(net)
    links, _, _, totals, _ = tables(given, link_of, every_s)
    sums = own_measures(given, every_s)
    assert links["to_s"].max() == END_S or given.mesoscopic  # whose vehicles have all arrived
    edge_of = {number: edge for edge, number in link_of.items()}
    for row in links.itertuples():
        entered, left, occupied, driven = sums.pop((edge_of[row.link], int(row.from_s // every_s)))
        assert (row.entered, row.left) == (entered, left)
        assert row.occupied_s == pytest.approx(occupied, abs=0.005 * every_s + 0.01)
        assert row.density_vpkm == pytest.approx(row.occupied_s / (row.to_s - row.from_s) / 0.1)
        if occupied and not given.mesoscopic:  # whose distances count where a vehicle leaves
            assert row.mean_speed_mps == pytest.approx(driven / occupied, rel=0.02, abs=0.01)
    assert not sums
    on_links = links["entered"].sum() - links["left"].sum()
    assert totals.on_road * 0.8 - 1 <= on_links <= totals.on_road  # all others are within junctions, one is parked
    assert links["queue_vehicles"].max() > 0.2


def test_trips_are_those_of_sumo_and_edges_off_the_roads_are_counted(net):
    given = inputs(net)
    link_of = {edge: number for edge, number in edges_of(net).items() if edge != "A1B1"}
    links, trips, _, totals, sumo = tables(given, link_of, 60.0)
    _, own = plain_run(given, until_s=END_S)
    done = trips[trips["state"] == "arrived"]
    assert len(done) == totals.arrived == len(own) > 20
    for column, expected in (
        ("arrival_s", [trip["arrival"] for trip in own]),
        ("entry_s", [trip["depart"] for trip in own]),
        ("departure_s", [trip["depart"] - trip["departDelay"] for trip in own]),
    ):
        np.testing.assert_allclose(np.sort(done[column]), np.sort(expected), atol=0.011)
    assert (done["trip_s"] >= done["free_flow_s"] - 1.0).all()
    assert (trips["entry_s"].isna() == (trips["state"] == State.WAITING.name.lower())).all()
    assert trips["departure_s"].is_monotonic_increasing
    entered = next(note.text for note in sumo.notes() if note.code == "edges_not_counted")
    assert "entries into edges that are not among the roads, left out" in entered
    assert set(links["link"]) <= set(link_of.values())
