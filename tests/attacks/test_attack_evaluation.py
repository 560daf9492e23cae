"""Attack evaluation: how games are played, which attacks run on which records, what is refused, and the table."""

import dataclasses
import inspect

import numpy as np
import pytest
from synthetic_campaigns import CELLS, DEPLOYMENTS, SAMPLING, attack, campaign, evaluate_attacks, filed_of, run_attacks

from mechanisms.local import KRandomizedResponse, SamplingPrivacy
from scenarios.kinds import names_of
from simulator.aggregation.servers import PerRound, SecretShared, ShuffledReports, Trusted
from simulator.attacks.scores import Score, pool_scores
from simulator.attacks.world import Game, Member, Observer, Truth
from simulator.experiment.assembly.attacks import games_of
from simulator.files.errors import InputError
from simulator.results.schema import TABLES
from simulator.streams import Streams

COLUMNS = [column.name for column in TABLES["attacks"].columns]
RATES = ("prior", "success", "gain", "gain_low", "gain_high", "theory", "epsilon_lower", "value")


class NoLikelihood:
    """A plug-in that answers and is aggregated, without a likelihood of its reports."""

    def __init__(self, mechanism):
        self._mechanism = mechanism

    def __getattr__(self, name):
        return getattr(self._mechanism, name)


def every_attack(coalition):
    members = (*coalition, "vehicles:1")
    return [
        *(attack(kind, members, asked=(1,)) for kind in names_of("attack")),
        attack("drop_out", members, name="target", dropped="target"),
    ]


def check_numbers(rows):
    table = TABLES["attacks"].frame(map(vars, rows))
    assert list(table.columns) == COLUMNS
    assert len(table) == len(rows)
    for row in rows:
        for column in RATES:
            value = getattr(row, column)
            assert value is None or np.isfinite(value), (row, column)
        for column in ("prior", "success", "theory"):
            value = getattr(row, column)
            assert (
                value is None
                or row.metric in {"inflation", "crafted_inflation", "vehicles_added"}
                or 0.0 <= value <= 1.0 + 1e-12
            )
        if row.gain is not None:
            assert row.gain == row.success - row.prior
            assert row.gain_low <= row.gain <= row.gain_high
        assert (row.metric is None) <= (row.success is not None)
    return table


@pytest.mark.parametrize("deployment", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
@pytest.mark.parametrize("case", ["one device", "one cell", "all lost", "no targets", "nobody asked", "as usual"])
def test_edge_cases_give_numeric_rows_or_notes(deployment, case):
    mechanism = SamplingPrivacy(cells=1, sampling=0.3) if case == "one cell" else SAMPLING
    vehicles = {"one device": 1}.get(case, 60)
    targets = 0 if case == "no targets" else None
    record = campaign(deployment, mechanism, vehicles=vehicles, loss=float(case == "all lost"), targets=targets)
    if case == "nobody asked":
        (query,) = record.queries
        without_devices = query.among(np.empty(0, dtype=np.int64))
        empty = dataclasses.replace(
            without_devices,
            occupancy=np.zeros(CELLS + 1, dtype=np.int64),
            counts=np.zeros_like(query.counts),
            asked=(0, 0),
            counted=(0, 0),
        )
        record = dataclasses.replace(record, queries=(empty,))
    rows, notes = evaluate_attacks(record, *every_attack(["server:1"]))
    check_numbers(rows)
    if case in {"no targets", "nobody asked"}:
        assert rows == []
        assert all("there are no targets" in note or "its servers hold no shares" in note for note in notes)
    else:
        assert {row.attack for row in rows} | {note.split(":")[0].removeprefix("attacks.") for note in notes} >= {
            kind for kind in names_of("attack") if kind != "shares" or deployment.sharing is not None
        }
    if case == "one device":
        assert all(
            row.prior == 1.0
            for row in rows
            if row.success is not None and row.metric is None and row.attack != "known_others"
        )


def test_attack_runs_on_campaigns_that_have_its_parties():
    records = {
        ("one", "a"): campaign(Trusted(), vehicles=50),
        ("two", "a"): campaign(PerRound(), vehicles=50),
        ("two", "b"): campaign(PerRound(), KRandomizedResponse(cells=3, epsilon=1.0), vehicles=50),
        ("three", "a"): campaign(SecretShared(servers=2), vehicles=50),
        ("four", "a"): campaign(ShuffledReports(), vehicles=50),
    }

    def where(*attacks):
        found = run_attacks(attacks, records, streams=Streams(1)).findings
        return [(row.campaign, row.mechanism) for row in found]

    both = ["server:1", "server:2"]
    assert where(attack("link_rounds", both)) == [("two", "a"), ("three", "a")]
    assert where(attack("link_rounds", ["server:1", "mixer"])) == [("four", "a")]
    assert where(attack("link_rounds", ["server:1"], mechanisms=("b",))) == [("two", "b")]
    assert where(attack("link_rounds", ["server:1"], campaigns=("one", "two"), mechanisms=("a",))) == [
        ("one", "a"),
        ("two", "a"),
    ]
    assert where(attack("shares", ["server:1"])) == [("three", "a")]

    def noted(*attacks):
        return [note.text.partition(": ")[2] for note in run_attacks(attacks, records, streams=Streams(1)).notes]

    untried = "coalition server:1, server:2 was not tried: there is no server:2"
    assert noted(attack("link_rounds", both), attack("shares", ["server:1"])) == [
        f"{place}: {untried}" for place in ("one, a", "two, b", "four, a")
    ]
    assert noted(attack("link_rounds", both, campaigns=("two",))) == [f"two, b: {untried}"]
    assert noted(attack("link_rounds", both, campaigns=("two",), mechanisms=("a",))) == []
    assert noted(attack("shares", both, campaigns=("one", "three"))) == ["one, a: its servers hold no shares"]


def test_a_growing_coalition_has_a_row_for_each_size():
    record = campaign(SecretShared(servers=3), vehicles=100)
    rows, _ = evaluate_attacks(record, attack("shares", ["server:3", "server:1", "server:2"], growing=True))
    assert [(row.colluding, row.coalition) for row in rows] == [
        (1, "server:3"),
        (2, "server:3, server:1"),
        (3, "server:3, server:1, server:2"),
    ]
    assert {row.servers for row in rows} == {3}


def test_faults_found_at_run_time_name_their_key():
    record = campaign(Trusted(), vehicles=10)
    with pytest.raises(InputError, match=r"there are only 10 targets in query 1") as fault:
        evaluate_attacks(record, attack("poisoning", ["vehicles:11"]))
    assert fault.value.key == "attacks.poisoning.coalition"
    with pytest.raises(InputError, match=r"cell must be in 1..6, got 7") as fault:
        evaluate_attacks(record, attack("poisoning", ["vehicles:1"], cell=7))
    assert fault.value.key == "attacks.poisoning"


def test_mechanism_without_likelihood_gives_a_note_and_no_row():
    mechanism = NoLikelihood(SAMPLING)
    record = dataclasses.replace(campaign(PerRound(), vehicles=50), mechanism=mechanism)
    coalition = ["server:1", "server:2"]
    kinds = ("round_one", "round_two", "link_rounds", "longitudinal", "poisoning", "drop_out")
    coalition.append("vehicles:3")
    rows, notes = evaluate_attacks(record, *(attack(kind, coalition) for kind in kinds))
    assert rows == []
    assert [note.split(":")[0] for note in notes] == [f"attacks.{kind}" for kind in kinds]
    assert all("NoLikelihood" in note for note in notes)


def test_targets_are_the_same_devices_in_every_query():
    record = campaign(Trusted(), vehicles=500, queries=3)
    few = record.with_targets(50, rng=np.random.default_rng(1))
    devices = [query.recorded.devices.tolist() for query in few.queries]
    assert devices[0] == devices[1] == devices[2]
    assert len(set(devices[0])) == 50
    for before, after in zip(record.queries, few.queries, strict=True):
        places = {device: place for place, device in enumerate(before.recorded.devices.tolist())}
        kept = [places[device] for device in after.recorded.devices.tolist()]
        assert np.array_equal(after.truth, before.truth[kept])
        assert np.array_equal(after.recorded.reports[1], before.recorded.reports[1][kept])
        assert after.counts is before.counts
    assert len(record.with_targets(10_000, rng=np.random.default_rng(1)).queries[0].truth) == 500


def test_transcripts_too_large_to_keep_are_regenerated_identically(monkeypatch):
    record = campaign(SecretShared(servers=2), vehicles=50, queries=2)
    kept, _ = evaluate_attacks(record, attack("link_rounds", ["server:1", "server:2"]))
    monkeypatch.setattr("simulator.attacks.records.MOST_WORDS", 10)
    again, _ = evaluate_attacks(record, attack("link_rounds", ["server:1", "server:2"]))
    assert kept == again


def test_guesses_that_follow_the_prior_give_no_epsilon_bound():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 10_000).astype(np.int32)
    usual = np.full(len(truth), 2, dtype=np.int32)

    def pooled(guesses, truth, prior):
        score = Score(guesses=guesses, truth=truth, prior=prior, theory=prior, pairs=True)
        return next(pool_scores([score], rng=rng))

    assert pooled(usual, truth, 1 / 3)["epsilon_lower"] == 0.0
    certain = pooled(truth, truth, 1 / 3)
    assert certain["epsilon_lower"] > 5
    assert certain["success"] == 1.0
    same = np.zeros(10, dtype=np.int32)
    assert pooled(same, same, 1.0)["epsilon_lower"] is None
    assert list(pool_scores([], rng=rng)) == []


@pytest.mark.parametrize("kind", names_of("attack"))
def test_every_attack_is_played_through_the_same_method(kind):
    filed = filed_of(campaign(DEPLOYMENTS["shared"], vehicles=40, queries=3))
    members = (Member("server:1"), Member("server:2"), Member("server:3"), Member("vehicles:2"))
    games = games_of(attack(kind, [], asked=(1, 3)))
    assert len(games) == (2 if kind == "longitudinal" else 1)
    for game in games:
        assert inspect.signature(type(game).play) == inspect.signature(Game.play)
        rng = np.random.default_rng(1)
        scores = list(game.play(Observer(filed, members), Truth(filed.record), rng=rng))
        assert scores
        assert all(isinstance(score, Score) for score in scores)
        assert all(0 <= score.hits <= len(score.truth) for score in scores)
        rows = list(pool_scores(scores, rng=rng))
        assert {row["metric"] for row in rows} == {score.metric for score in scores}


def test_scores_of_a_metric_are_pooled_and_the_greatest_value_is_reported():
    cells = np.arange(4)
    scores = [
        Score(guesses=cells, truth=cells, prior=0.5, theory=1.0),
        Score(metric="seen", value=0.3, unit="probability"),
        Score(guesses=cells, truth=cells[::-1], prior=0.25, theory=0.5),
        Score(guesses=cells[:2], truth=cells[:2], prior=0.5, theory=0.5, metric="seen", value=0.2, unit="probability"),
    ]
    first, second = pool_scores(scores, rng=np.random.default_rng(1))
    assert (first["trials"], first["success"], first["prior"], first["theory"]) == (8, 0.5, 0.375, 0.75)
    assert (first["metric"], first["epsilon_lower"]) == (None, None)
    assert (second["trials"], second["success"], second["value"]) == (2, 1.0, 0.3)
