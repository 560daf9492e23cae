"""A user's own SimPy processes: what they see, what they may ask, and that they change nothing else."""

import pandas as pd
import pytest

import crowdveil as cv

TABLES = ("estimates", "rounds", "servers", "scores", "claims")


@pytest.fixture(scope="module")
def plain():
    return cv.run("tiny")


def test_a_process_that_only_watches_changes_no_table(plain):
    seen = []

    def watch(run):
        while run.time_s + 20.0 <= run.end_s:
            yield run.wait(20.0)
            seen.append((run.time_s, run.vehicles(), run.published()))

    watched = cv.run("tiny", processes=[watch])
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(watched, table), getattr(plain, table), check_exact=True)
    campaign = plain.scenario.campaigns[0]
    open_s = campaign.round_gap_s + campaign.deadline_s
    closed_s = {number: campaign.start_s + (number - 1) * campaign.every_s + open_s for number in (1, 2)}
    times = [time_s for time_s, _, _ in seen]
    assert times == [20.0 * beat for beat in range(1, len(times) + 1)]
    for time_s, vehicles, published in seen:
        assert list(vehicles.columns) == ["vehicle", "state", "cell"]
        assert set(vehicles["state"]) <= {"waiting", "on_road", "arrived"}
        assert "truth" not in published
        before, until = ({query for query, at_s in closed_s.items() if at_s < time_s + own} for own in (0.0, 1e-6))
        assert before <= set(published["query"]) <= until
    assert seen[0][2].empty
    assert set(seen[-1][2]["query"]) == {1, 2}


def test_vehicles_are_those_that_a_query_counts(plain):
    counted = []

    def count(run):
        yield run.until(plain.estimates["time_s"].iloc[0])
        vehicles = run.vehicles()
        counted.append(vehicles[vehicles["state"] != "arrived"].groupby("cell").size())

    cv.run("tiny", processes=[count])
    first = plain.estimates[(plain.estimates["query"] == 1) & (plain.estimates["mechanism"] == "baseline")]
    truth = first.set_index("cell")["truth"]
    # A vehicle asked at round one may arrive, or a further one depart, before round two.
    assert counted[0].drop(0, errors="ignore").sum() == pytest.approx(truth.sum(), abs=10)


def test_a_query_asked_again_has_rows_of_its_own(plain):
    numbers = []

    def repeat(run):
        yield run.until(100.0)
        numbers.append((yield run.ask("occupancy")))
        numbers.append(run.time_s)
        assert set(run.published()["query"]) == {3}

    asked = cv.run("tiny", processes=[repeat])
    assert numbers[0] == 3
    assert asked.record.queries == plain.record.queries + 1
    scheduled = asked.estimates[asked.estimates["query"] <= 2]
    columns = ["query", "mechanism", "cell"]
    pd.testing.assert_frame_equal(
        scheduled.sort_values(columns, ignore_index=True), plain.estimates.sort_values(columns, ignore_index=True)
    )
    again = asked.estimates[asked.estimates["query"] == 3]
    assert len(again) == len(plain.estimates) / 2
    exact = again[again["mechanism"] == "baseline"]
    assert (exact["estimate"] == exact["truth"]).all()
    assert (asked.rounds.groupby("query")["asked"].min() > 0).all()


def test_impossible_requests_are_refused():
    refused = []

    def process(run):
        yield run.until(50.0)
        for attempt in (lambda: run.until(10.0), lambda: run.ask("rush"), lambda: None):
            try:
                attempt()
            except (KeyError, ValueError) as error:
                refused.append(str(error))
        yield run.until(run.end_s - 1.0)
        with pytest.raises(ValueError, match=r"asked at .* closes at .*, after the end of the run"):
            run.ask("occupancy")

    cv.run("tiny", processes=[process])
    assert refused[0] == "time_s must be at least 50, the current time, got 10"
    assert refused[1] == "\"there is no campaign 'rush'; there are occupancy\""


def test_an_error_of_a_process_ends_the_run():
    def fails(run):
        yield run.wait(10.0)
        raise RuntimeError("the user's own error")

    with pytest.raises(RuntimeError, match="the user's own error"):
        cv.run("tiny", processes=[fails])


def test_a_server_of_ones_own_needs_devices_that_answer_one_by_one():
    class Deaf(cv.Party):
        """Receives nothing."""

        def receive(self, answer):
            pass

    behaviour = cv.Behaviour(parties={"server:1": Deaf})
    with pytest.raises(cv.ScenarioError, match=r'population\.answers: must be auto or reports .*; got "counts"'):
        cv.run("tiny", overrides={"population.answers": "counts"}, behaviour=behaviour)
    result = cv.run("tiny", behaviour=behaviour)
    assert (result.rounds["counted"] == 0).all()
    assert (result.rounds["lost"] == result.rounds["answered"]).all()


def test_links_have_their_nodes_and_cells(plain):
    seen = []

    def look(run):
        seen.append(run.links())
        yield run.wait(1.0)

    result = cv.run("tiny", processes=[look])
    links = seen[0]
    assert list(links.columns) == ["link", "from_node", "to_node", "length_m", "cell"]
    assert links["link"].tolist() == list(range(len(links)))
    assert links["length_m"].min() > 0
    assert set(links["cell"]) <= {0, *plain.cells["cell"]}
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(result, table), getattr(plain, table), check_exact=True)


def test_a_closed_link_changes_traffic_from_then_on_and_equally_in_both_engines(plain):
    def close(run):
        yield run.until(20.0)
        for link in run.links()["link"][::2]:
            run.close_link(link, 30.0, 90.0)

    fleet = cv.run("tiny", processes=[close])
    agents = cv.run("tiny", processes=[close], overrides={"traffic.engine": "agents"})
    assert not fleet.estimates.equals(plain.estimates)
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(agents, table), getattr(fleet, table), check_exact=True)
    assert "Link 2 was closed from 30 s to 90 s." in fleet.facts["traffic"]["notes"]


def test_a_closure_after_the_end_changes_no_table(plain):
    def close(run):
        yield run.wait(1.0)
        run.close_link(0, run.end_s + 10.0, run.end_s + 20.0)

    closed = cv.run("tiny", processes=[close])
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(closed, table), getattr(plain, table), check_exact=True)


def test_wrong_closures_are_refused():
    refused = []

    def process(run):
        yield run.until(50.0)
        for link, from_s, to_s in ((10_000, 60.0, 70.0), (0, 10.0, 70.0), (0, 60.0, 60.0)):
            with pytest.raises((KeyError, ValueError)) as error:
                run.close_link(link, from_s, to_s)
            refused.append(error.value.args[0])

    cv.run("tiny", processes=[process])
    assert refused[0].startswith("there is no link 10000; links are 0 to ")
    assert refused[1] == "from_s must be at least 50, the current time, got 10"
    assert refused[2] == "to_s must be a finite time after from_s = 60, got 60"


def test_data_owners_have_no_links_to_close():
    refused = []

    def process(run):
        for attempt in (lambda: run.close_link(0, 10.0, 20.0), run.links):
            with pytest.raises(ValueError, match=r"link") as error:
                attempt()
            refused.append(str(error.value))
        yield run.wait(1.0)

    owners = pd.DataFrame({"place": ["a", "b"], "lon": [9.0, 9.01], "lat": [45.0, 45.01], "count": [30, 40]})
    columns = {"place": "place", "lon": "lon", "lat": "lat", "count": "count"}
    still = cv.Scenario(
        scenario={"name": "still", "duration_s": 100},
        roads={"source": "none"},
        cells={"kind": "square", "size_m": 500},
        traffic={"engine": "static", "owners": owners, "columns": columns},
        campaigns=[{"start_s": 10, "queries": 1}],
        mechanisms=[{"kind": "no_privacy"}],
    )
    cv.run(still, processes=[process])
    assert refused == [
        "traffic engine static cannot close links: data owners do not move",
        "the scenario has no roads, so it has no links",
    ]


def test_recorded_vehicles_cannot_be_kept_from_a_link():
    def process(run):
        with pytest.raises(ValueError, match="engine trace cannot close links: vehicles move as they were recorded"):
            run.close_link(0, 10.0, 20.0)
        yield run.wait(1.0)

    fixes = pd.DataFrame({"vehicle": ["a", "b"] * 2, "time": [0, 0, 60, 60], "lon": 9.0, "lat": [45.0, 45.01] * 2})
    recorded = cv.Scenario(
        scenario={"name": "recorded", "duration_s": 60},
        roads={"source": "none"},
        cells={"kind": "square", "size_m": 500},
        traffic={"engine": "trace", "trace": fixes, "start": 0},
        campaigns=[{"start_s": 10, "queries": 1}],
        mechanisms=[{"kind": "no_privacy"}],
    )
    cv.run(recorded, processes=[process])


@pytest.mark.parametrize(("servers", "there_are"), [("trusted", "server:1"), ("per_round", "server:1, server:2")])
@pytest.mark.parametrize("party", ["server:99", "Server:1"])
def test_behaviour_of_a_party_that_does_not_exist_is_refused(servers, there_are, party):
    changes = {"sensing.engine": "messages", "aggregation.kind": servers}
    words = rf"1 fault\n  behaviour.parties: there is none; there are {there_are}; got \"{party}\""
    with pytest.raises(cv.ScenarioError, match=words):
        cv.run("tiny", overrides=changes, behaviour=cv.Behaviour(parties={"server:1": cv.Party, party: cv.Party}))
