"""`guesses.parquet`: what coalitions guessed about one vehicle, compared with enumeration, the engine and `attacks`."""

import numpy as np
import pandas as pd
import pytest

import crowdveil as cv
from simulator.aggregation.transcript import RecordedMessages
from simulator.attacks.scores import Guesser, Score, choose_vehicles, tabulate_guesses
from simulator.results.run import RunResult
from simulator.results.schema import TABLES
from simulator.sensing.query import QueryRecord

EPSILON, SAMPLING, OUTSIDE, GAP_S = 1.5, 0.4, 70, 30
STARTS_S = {1: 300, 2: 390, 3: 480}
BOTH = {"coalition": ["server:1", "server:2"], "mechanisms": ["sampling"]}


class Spy:
    """Keeps the reports that the servers stored, by query, round and vehicle; guesses nothing."""

    def __init__(self):
        self.reports, self.corrupted = {}, set()

    def guess(self, observation, prior, *, rng):  # noqa: ARG002
        for entry in observation.seen:
            for vehicle, report in zip(entry.handles.tolist(), np.asarray(entry.content).tolist(), strict=True):
                self.reports[entry.query, entry.round, vehicle] = report
        for own in observation.own:
            self.corrupted |= set(own.devices.tolist())
        return []


SPIES = {"sampling": Spy(), "k-ary": Spy()}
SMALL = {
    "scenario": {"name": "small", "duration_s": 700},
    "roads": {"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200},
    "cells": {"kind": "square", "size_m": 300},
    "traffic": {"vehicles": 150, "parked": "answer"},
    "population": {"outside": OUTSIDE},
    "campaigns": [{"name": "rush", "start_s": 300, "queries": 3, "every_s": 90, "round_gap_s": GAP_S}],
    "mechanisms": [
        {"name": "sampling", "kind": "sampling_privacy", "sampling": SAMPLING},
        {"name": "k-ary", "kind": "k_randomized_response", "epsilon": EPSILON},
    ],
    "aggregation": {"kind": "per_round"},
}
ATTACKS = [
    {"name": "first", "kind": "round_one", "coalition": ["server:1"]},
    {"name": "second", "kind": "round_two", **BOTH},
    {"name": "linked", "kind": "link_rounds", **BOTH, "growing": True},
    {"name": "again", "kind": "longitudinal", **BOTH, "asked": [1, 2, 3]},
    {"name": "even", "kind": "round_one", "coalition": ["server:1"], "prior": "uniform"},
    {"name": "others", "kind": "known_others", "coalition": ["network"]},
    {"name": "dropped", "kind": "drop_out", "coalition": ["network"], "dropped": "target"},
    {"name": "false", "kind": "poisoning", "coalition": ["vehicles:5"]},
]
READ_BY = [
    {"name": "spy", "kind": SPIES["sampling"], **BOTH},
    {"name": "spy-k-ary", "kind": SPIES["k-ary"], "coalition": ["server:1"], "mechanisms": ["k-ary"]},
]


def watched(scenario, times_s, **changes):
    """A run, and the cell and state of every departed vehicle at some times, as the engine has them."""
    found = {}

    def watch(run):
        for time_s in times_s:
            yield run.until(time_s)
            found[time_s] = run.vehicles().set_index("vehicle")

    return cv.run(scenario, processes=[watch], **changes), found


@pytest.fixture(scope="module")
def small():
    times_s = sorted(time_s + late_s for time_s in STARTS_S.values() for late_s in (0, GAP_S))
    return watched(cv.Scenario(**SMALL, attacks=[*ATTACKS, *READ_BY]), times_s)


def likelihood(mechanism, rounds, reports, cells):
    """Probability of a vehicle's reports of one query from every cell, by enumerating what its coins may be."""
    total = np.zeros(cells + 1)
    for cell in range(cells + 1):
        if mechanism == "k-ary":
            odds = np.ones(cells + 1)
            odds[cell] = np.exp(EPSILON)
            outcomes = [((value,), share) for value, share in enumerate(odds / odds.sum())]
        else:
            blanks = [((blank, blank), (1 - SAMPLING) / (cells + 1)) for blank in range(cells + 1)]
            outcomes = [((0, cell), SAMPLING), *blanks]
        for sent, share in outcomes:
            if [sent[round_ - 1] for round_ in rounds] == reports:
                total[cell] += share
    return total


def rounds_of(row):
    """The rounds that an attack on a single query reads."""
    if row.name_ == "second":
        return [2]
    return [1, 2] if row.coalition == "server:1, server:2" else [1]


def test_guesses_are_the_best_by_enumeration(small):
    result, engine = small
    cells, at = len(result.cells), {query: engine[time_s + GAP_S]["cell"] for query, time_s in STARTS_S.items()}
    asked = {query: engine[time_s].index for query, time_s in STARTS_S.items()}
    compared = 0
    for row in result.guesses.rename(columns={"name": "name_"}).itertuples():
        if row.name_.startswith("spy"):
            continue
        last = row.query
        if row.attack == "longitudinal":  # the prior is the distribution of those that stayed where they were
            stayed = [vehicle for vehicle in asked[1] if len({at[query][vehicle] for query in range(1, last + 1)}) == 1]
            posterior, queries = np.bincount(at[last][stayed], minlength=cells + 1) / len(stayed), range(1, last + 1)
        else:
            posterior, queries = np.bincount(at[last][asked[last]], minlength=cells + 1) / len(asked[last]), [last]
        if row.name_ == "even":
            posterior = np.full(cells + 1, 1 / (cells + 1))
        for query in queries:
            reports = [SPIES[row.mechanism].reports[query, round_, row.vehicle] for round_ in rounds_of(row)]
            posterior = posterior * likelihood(row.mechanism, rounds_of(row), reports, cells)
        posterior /= posterior.sum()
        assert row.probability == pytest.approx(posterior.max(), rel=1e-9)
        assert posterior[row.guess] == pytest.approx(posterior.max(), rel=1e-9)
        compared += 1
    assert compared == 3 * (2 + 1 + 2 + 1 + 2)  # two are on both mechanisms, and one by the first server alone too
    assert result.guesses["guess"].nunique() > 1
    assert result.guesses["probability"].max() == 1.0


def test_own_attack_that_names_no_device_guesses_by_the_prior(small):
    result, _ = small
    asked = result.rounds.query("mechanism == 'sampling' and round == 2").set_index("query")["asked"] - OUTSIDE
    truth = result.estimates.query("mechanism == 'sampling'").groupby("query")["truth"].max()
    rows = result.guesses[result.guesses["name"] == "spy"].set_index("query")
    assert rows["probability"].tolist() == pytest.approx((truth / asked).tolist())


def test_rows_are_of_one_vehicle_and_of_attacks_on_what_was_received(small):
    result, engine = small
    guesses = result.guesses
    assert guesses.dtypes.astype(str).to_dict() == {column.name: column.type for column in TABLES["guesses"].columns}
    assert set(guesses["name"]) == {"first", "second", "linked", "again", "even", "spy", "spy-k-ary"}
    assert guesses["vehicle"].nunique() == 1
    # Of the vehicles asked in every query and always in one cell, which all attacks guess most often, the lowest.
    cells = pd.concat([engine[time_s + GAP_S]["cell"] for time_s in STARTS_S.values()], axis=1).loc[
        engine[STARTS_S[1]].index
    ]
    assert guesses["vehicle"].iloc[0] == cells.index[cells.nunique(axis=1) == 1].min()
    assert not guesses.duplicated(["name", "coalition", "mechanism", "campaign", "query"]).any()


@pytest.mark.parametrize(
    ("name", "overrides", "times_s"),
    [
        ("collusion", {"traffic.vehicles": 1500}, [630.0, 870.0, 1110.0]),
        ("longitudinal", {"traffic.vehicles": 600}, [605.0 + 10 * query for query in range(8)]),
    ],
)
def test_truth_of_shipped_scenarios_is_the_cell_of_the_engine(name, overrides, times_s):
    result, engine = watched(name, times_s, overrides=overrides)
    guesses = result.guesses
    for row in guesses.itertuples():
        assert row.truth == engine[row.time_s]["cell"][row.vehicle]
    times = result.estimates.drop_duplicates(["campaign", "query"])[["campaign", "query", "time_s"]]
    assert len(guesses.merge(times, on=["campaign", "query", "time_s"])) == len(guesses)
    named = guesses[["name", "coalition", "mechanism", "campaign"]].drop_duplicates()
    scored = result.attacks[~result.attacks["attack"].isin(["known_others", "drop_out"])]
    assert len(named) == len(scored[named.columns].drop_duplicates())
    assert guesses.groupby("campaign")["vehicle"].nunique().max() == 1
    assert (guesses["guess"] == guesses["truth"]).nunique() == 2


def test_one_target_is_scored_as_its_guesses_are():
    attacks = [{**one, "targets": 1, "prior": "uniform"} for one in ATTACKS[:3]]
    result = cv.run(cv.Scenario(**{**SMALL, "attacks": attacks}))
    right = result.guesses.assign(right=result.guesses["truth"] == result.guesses["guess"])
    found = right.groupby(["name", "coalition", "mechanism"], sort=False)["right"].agg(["sum", "count"])
    rows = result.attacks[result.attacks["metric"].isna()].set_index(["name", "coalition", "mechanism"])
    assert found["count"].tolist() == rows["trials"].tolist() == [3] * 5
    assert found["sum"].tolist() == (rows["success"] * rows["trials"]).round().tolist()


def test_corrupted_vehicles_and_devices_outside_are_not_chosen():
    spies, few = (Spy(), Spy()), {"targets": 20}
    attacks = [
        {"name": "most", "kind": spies[0], "coalition": ["server:1", "vehicles:100"], **few},
        # Of nearly all vehicles several choices are corrupted, and each vehicle is a target in at most one of them.
        {"name": "nearly-all", "kind": spies[1], "coalition": ["server:1", "vehicles:145"], **few},
        {"name": "linked", "kind": "link_rounds", "coalition": ["server:1"], **few},
    ]
    changed = {"population": {"outside": 5000, "answers": "reports"}, "attacks": attacks}
    guesses = cv.run(cv.Scenario(**{**SMALL, **changed})).guesses
    assert set(guesses["name"]) == {"most", "nearly-all", "linked"}
    assert len(spies[0].corrupted) > 50
    assert not spies[0].corrupted & set(guesses.loc[guesses["name"] == "most", "vehicle"])
    assert guesses["vehicle"].between(0, 149).all()
    assert not guesses.duplicated(["name", "mechanism", "query"]).any()


def test_campaigns_attacked_together_keep_their_own_numbers():
    rush = SMALL["campaigns"][0]
    campaigns = [rush, {**rush, "name": "later", "start_s": 315}]
    attacks = [{"name": "both", "kind": "link_rounds", **BOTH, "together": True}]
    guesses = cv.run(cv.Scenario(**{**SMALL, "campaigns": campaigns, "attacks": attacks})).guesses
    assert list(zip(guesses["campaign"], guesses["query"], strict=True)) == [
        (name, query) for query in (1, 2, 3) for name in ("rush", "later")
    ]


def part(devices, *, query=1, guess=0):
    """Guesses about some devices, all of which are in cell 1."""
    n, numbers = len(devices), np.array(devices)
    sent = RecordedMessages(query, numbers, [], np.ones((0, n), dtype=bool), {}, numbers, np.ones((0, n), dtype=int))
    truth, counts = np.ones(n, dtype=np.int32), np.zeros((1, 2), dtype=np.int64)
    place = {"time_s": 60.0 * query, "campaign": "rush", "number_in_campaign": query}
    record = QueryRecord(sent, truth, np.array([0, n]), counts, (n,), (n,), **place)
    return Score(guesses=np.full(n, guess), truth=truth, query=record, probability=np.full(n, 0.5))


def coalition(name, *parts, campaigns=("rush",)):
    """A coalition and its scores."""
    return {Guesser(name, "link_rounds", "server:1", "sampling", campaigns): parts}


def chosen(*coalitions):
    """The vehicle that is shown of each coalition, by its name."""
    found = choose_vehicles({guesser: parts for one in coalitions for guesser, parts in one.items()})
    return {guesser.name: vehicle for guesser, vehicle in found.items()}


def test_vehicle_with_most_guesses_is_chosen_whatever_they_are():
    for guess in (0, 1):
        one = coalition("one", part([7, 3, 5], guess=guess), part([5, 9, 3], query=2))
        two = coalition("two", part([9, 5]), part([5, 9], query=2, guess=guess))
        assert chosen(one, two) == {"one": 5, "two": 5}
        assert chosen(one) == {"one": 3}  # of 3 and 5 the lower
        apart = coalition("apart", part([8, 2]), part([8], query=2, guess=guess))
        assert chosen(one, apart, two) == {"one": 5, "two": 5, "apart": 8}
        elsewhere = coalition("elsewhere", part([2, 5]), campaigns=("other",))
        assert chosen(one, elsewhere) == {"one": 3, "elsewhere": 2}
    rows = tabulate_guesses({**one, **coalition("none", part([]))})[["query", "time_s", "vehicle", "truth", "guess"]]
    assert rows.to_numpy().tolist() == [[1, 60, 3, 1, 1], [2, 120, 3, 1, 0]]


def test_no_table_without_attacks_that_guess_cells(tmp_path):
    assert tabulate_guesses(coalition("none", part([]))) is None
    for attacks in ([], ATTACKS[5:]):
        result = cv.run(cv.Scenario(**SMALL, attacks=attacks), out=tmp_path / "run", overwrite=True)
        assert result.guesses is None
        assert not (tmp_path / "run" / "guesses.parquet").exists()
        assert RunResult.load(tmp_path / "run").guesses is None
        assert result.leading.guesses is None


def test_table_is_saved_and_read(small, tmp_path):
    result, _ = small
    folder = result.save(tmp_path / "run")
    for read in (cv.load(folder).guesses, RunResult.load(folder).guesses, result.leading.guesses):
        pd.testing.assert_frame_equal(read, result.guesses, check_exact=True)


def test_recorded_vehicles_are_in_the_table_only_on_request(tmp_path):
    rows = [(cab, time, 11.3 + 2e-5 * time, 44.5 + 1.8e-3 * cab) for cab in (4, 2, 8) for time in range(0, 240, 10)]
    pd.DataFrame(rows, columns=["cab", "time", "lon", "lat"]).to_csv(tmp_path / "cabs.csv", index=False)
    traffic = {"engine": "trace", "trace": str(tmp_path / "cabs.csv"), "gap_s": 60}
    campaigns = [{"name": "rush", "start_s": 60, "queries": 3, "every_s": 50, "round_gap_s": 10, "deadline_s": 10}]
    changed = {"traffic": traffic, "campaigns": campaigns, "roads": {"source": "none"}, "attacks": ATTACKS[:3]}
    replay = cv.Scenario(**{**SMALL, **changed})
    hidden = cv.run(replay, out=tmp_path / "hidden")
    assert len(hidden.attacks)
    assert hidden.guesses is None
    assert not (tmp_path / "hidden" / "guesses.parquet").exists()
    shown, engine = watched(replay.with_({"report.vehicles": True}), [70.0, 120.0, 170.0], out=tmp_path / "shown")
    pd.testing.assert_frame_equal(shown.attacks, hidden.attacks, check_exact=True)
    guesses = cv.load(tmp_path / "shown").guesses
    assert guesses["query"].tolist() == [1, 2, 3] * 5
    for row in guesses.itertuples():
        assert row.truth == engine[row.time_s]["cell"][row.vehicle]
