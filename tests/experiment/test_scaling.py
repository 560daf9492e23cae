"""Estimates of all vehicles from those that take part: their truth, bias and coverage, and where they lead."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import binom

import scenarios
from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, SamplingPrivacy
from simulator import run
from simulator.experiment.tables import Participation, Rows, scale_to_all
from simulator.pages.findings_section import sentences
from simulator.pages.terminal_summary import print_run
from simulator.results.compare import compare
from simulator.results.tables import of_all_vehicles
from simulator.sensing.query import Occupancy


def _counting(found, states):
    """Return a process that counts the vehicles in some states at each query's moment of truth, by cell."""

    def process(handle):
        for number in range(1, 3):
            yield handle.until(150.0 + (number - 1) * 90.0)
            there = handle.vehicles()
            there = there[there["state"].isin(states)]
            found[number] = np.bincount(there["cell"], minlength=10)[1:]

    return process


@pytest.mark.parametrize("engine", ["batches", "messages"])
@pytest.mark.parametrize("waiting", ["silent", "answer"])
def test_vehicles_are_all_vehicles_at_the_second_of_the_query(engine, waiting):
    """Of 4,000 vehicles that depart within a minute, many wait to enter at both queries."""
    found, states = {}, ["on_road", "waiting"] if waiting == "answer" else ["on_road"]
    changes = {"population.participation": 0.3, "sensing.engine": engine, "traffic.waiting": waiting}
    changes |= {"traffic.vehicles": 4000, "traffic.departures": [{"from_s": 90, "to_s": 150, "share": 1.0}]}
    made = run("tiny", overrides=changes, processes=[_counting(found, states)])
    for query in made.facts["traffic_at_queries"]:
        asked = 0.3 * sum(query[state] for state in states)
        assert query["waiting"] > 300
        assert made.rounds.query(f"query == {query['query']}")["asked"].between(0.8 * asked, 1.2 * asked).all()
    times = made.estimates.groupby("query")["time_s"].first()
    assert times.tolist() == [150.0, 240.0]
    for (query, _), rows in made.estimates.groupby(["query", "mechanism"]):
        assert rows["vehicles"].tolist() == found[query].tolist()
        assert (rows["truth"] <= rows["vehicles"] + 3).all()
    assert made.estimates["vehicles"].sum() > 2 * made.estimates["truth"].sum()


@pytest.mark.parametrize("answers", ["reports", "counts"])
def test_scaled_estimates_are_divided_by_the_assumed_participation(answers):
    changes = {"population.participation": 0.5, "population.assumed_participation": 0.4, "population.answers": answers}
    made = run("tiny", overrides=changes)
    rows = made.estimates
    np.testing.assert_allclose(rows["scaled_estimate"], rows["estimate"] / 0.4)
    error = rows["scaled_estimate"] - rows["vehicles"]
    scores = made.scores.set_index("mechanism")
    for mechanism, own in error.groupby(rows["mechanism"]):
        assert scores.loc[mechanism, "scaled_bias"] == pytest.approx(own.mean())
        assert scores.loc[mechanism, "scaled_rmse"] == pytest.approx(np.sqrt((own**2).mean()))
    inside = rows["vehicles"].between(rows["scaled_lower"], rows["scaled_upper"])
    assert scores["scaled_coverage"].to_dict() == inside.groupby(rows["mechanism"]).mean().to_dict()
    assert scores["participation"].eq(0.5).all()
    assert scores["assumed_participation"].eq(0.4).all()


def test_errors_fall_as_more_take_part_although_those_of_the_devices_asked_rise():
    asked, everybody = [], []
    for share in (0.1, 0.3, 1.0):
        scores = [
            run("tiny", seed=seed, overrides={"population.participation": share}).scores.set_index("mechanism")
            for seed in range(1, 5)
        ]
        asked.append(np.mean([one.loc["sampling", "rmse"] for one in scores]))
        everybody.append(np.mean([one.loc["sampling", "scaled_rmse"] for one in scores]))
    assert asked == sorted(asked)
    assert everybody == sorted(everybody, reverse=True)


def _everybody(n):
    return Occupancy(n, n, int(n.sum()))


@pytest.mark.parametrize(("participation", "noise"), [(0.05, 0.0), (0.05, 1.0), (0.3, 0.0), (0.3, 2.0), (1.0, 2.0)])
def test_intervals_cover_at_their_level_and_theory_is_the_error(participation, noise):
    """With numbers of all sizes from 0 on, and the share of Bin(n, p) that takes part, observed with normal noise."""
    rng = np.random.default_rng(1)
    n = np.concatenate([[0], rng.integers(5, 400, 40_000)])
    taking = rng.binomial(n, participation)
    x = taking + rng.normal(0.0, noise, len(n))
    half = np.full(len(n), 1.959964 * noise)
    rows = Rows(
        np.arange(1, len(n)),
        n[1:],
        estimate=x[1:],
        std_error=half[1:] / 1.959964,
        lower=(x - half)[1:],
        upper=(x + half)[1:],
        theory=np.full(len(n) - 1, noise),
    )
    made = scale_to_all(_everybody(n), Participation(participation, participation), rows)
    covered = np.mean((made.lower <= n[1:]) & (n[1:] <= made.upper))
    # The score interval of a binomial is within a percentage point of its level; four standard errors of the share.
    assert covered == pytest.approx(0.95, abs=0.01 + 4 * np.sqrt(0.95 * 0.05 / 40_000))
    ratio = np.mean((made.estimate - n[1:]) ** 2) / np.mean(made.theory**2)
    assert ratio == pytest.approx(1.0, abs=0.05)


def test_with_everybody_asked_nothing_changes():
    n = np.array([0, 4, 10])
    x = np.array([3.0, 11.5])
    rows = Rows(np.array([1, 2]), n[1:], x, std_error=x / 3, lower=x - 2.5, upper=x + 3.5, theory=x / 4)
    made = scale_to_all(_everybody(n), Participation(), rows)
    np.testing.assert_allclose(made.estimate, x)
    np.testing.assert_allclose(made.std_error, x / 3)
    np.testing.assert_allclose(made.lower, x - 2.5)
    np.testing.assert_allclose(made.upper, x + 3.5)
    np.testing.assert_allclose(made.theory, x / 4)


def _scaled_ends(mechanism, q, *, turnover=0):
    """Return the interval of all vehicles in cells with 0, 1, 2 … devices sampled, among 10,000 that answer."""
    cells, asked = mechanism.cells, 10_000
    yes = np.arange(cells) + np.zeros((mechanism.rounds, 1), dtype=np.int64)
    yes[:-1] = 0
    binary = mechanism.tally_shape == (cells, 2)
    counts = np.stack([asked - yes, yes], axis=-1) if binary else np.pad(yes, ((0, 0), (1, 0)))
    if not binary:
        counts[:, 0] = asked - yes.sum(axis=1)
    made = mechanism.estimate(counts, counted=[asked] * mechanism.rounds, asked=[asked] * mechanism.rounds)
    columns = made.count, made.std_error, made.lower, made.upper, made.std_error
    there = np.append(asked, np.zeros(cells, dtype=np.int64))
    occupancy = Occupancy(there, there, asked - turnover)
    scaled = scale_to_all(occupancy, Participation(q, q), Rows(there[1:], there[1:], *columns), made.invert_sampled)
    return scaled.lower, scaled.upper


@pytest.mark.parametrize("q", [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(
    ("mechanism", "sampling"),
    [
        (SamplingPrivacy(cells=61, sampling=0.45), 0.45),
        (BinarySamplingPrivacy(cells=61, sampling=0.45), 0.45),
        (NoPrivacy(cells=61), 1.0),
    ],
    ids=["sampling", "binary", "exact"],
)
def test_scaled_intervals_cover_every_sparse_cell(mechanism, sampling, q):
    """The successes of n vehicles are Bin(n, qπ): coverage by enumeration, and length beside the shortest sets.

    The sets for comparison hold, for each n, the outcomes of greatest probability that reach 95 % together.
    """
    pi, n = q * sampling, np.arange(2_500)
    shown = n[:61]
    outcomes = np.arange(61)
    probability = binom.pmf(outcomes, n[:, np.newaxis], pi)
    lower, upper = _scaled_ends(mechanism, q)
    within = (lower - 1e-9 <= shown[:, np.newaxis]) & (shown[:, np.newaxis] <= upper + 1e-9)
    assert (probability[:61] * within).sum(axis=1).min() >= 0.95
    order = np.argsort(-probability, axis=1, kind="stable")
    ordered = np.take_along_axis(probability, order, axis=1)
    before = ordered.cumsum(axis=1) - ordered
    held = np.zeros_like(within, shape=probability.shape)
    np.put_along_axis(held, order, before < 0.95, axis=1)
    shortest, own = held.sum(axis=0), np.floor(upper + 1e-9) - np.ceil(lower - 1e-9) + 1
    seen = probability[:61].sum(axis=0)
    assert (seen * own).sum() <= 1.25 * (seen * shortest).sum()


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_turnover_widens_the_interval_of_sparse_cells(q):
    still, moving = (_scaled_ends(NoPrivacy(cells=20), q, turnover=turnover) for turnover in (0, 500))
    assert (moving[0] <= still[0]).all()
    assert (moving[1] > still[1]).all()


def test_vehicles_that_came_and_left_count_once_each():
    cells = np.array([1, 1, 2, 2, 0])
    now, before = np.array([True, False, True, True, True]), np.array([True, True, True])
    made = Occupancy.of(cells, now=now, before=before, minlength=3)
    assert made.vehicles.tolist() == [1, 1, 2]
    assert made.eligible.tolist() == [0, 2, 1]
    assert (made.came, made.left, made.stayed) == (2, 1, 2)


def test_a_wrong_participation_gives_the_bias_of_theory():
    """Estimates are p/q times too large; the mean over seeds is within four standard errors of that."""
    errors, expected = [], []
    for seed in range(1, 9):
        made = run("tiny", seed=seed, overrides={"population.assumed_participation": 0.5})
        score = made.scores.set_index("mechanism").loc["sampling"]
        errors.append(score["scaled_bias"] + made.estimates["vehicles"].mean())
        expected.append(made.estimates["truth"].mean() / 0.5)
    difference = np.array(errors) - np.array(expected)
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert np.mean(expected) > 1.5 * made.estimates["truth"].mean()


@pytest.fixture(scope="module")
def third():
    return run("tiny", overrides={"population.participation": 0.3})


def test_terminal_and_first_screen_lead_with_all_vehicles(third):
    finished = third.leading
    said = " ".join(sentences(finished))
    mean = third.estimates["vehicles"].mean()
    assert f"a cell holds {mean:.3g} on average" in said
    assert "30 % of the vehicles take part: truth and estimates are of all vehicles, asked or not." in said
    theory = third.scores.set_index("mechanism").loc["sampling", ["theory_rmse", "scaled_theory_rmse"]]
    protocol, whole = theory["theory_rmse"] / 0.3, theory["scaled_theory_rmse"]
    assert f"errs by {whole:.2f}: {protocol:.2f} of the protocol and {np.sqrt(whole**2 - protocol**2):.2f}" in said
    console = Console(file=io.StringIO(), width=160)
    print_run(finished, console)
    text = console.file.getvalue()
    assert "of all vehicles, asked or not" in text
    assert f"{third.scores['scaled_rmse'].iloc[0]:.2f}" in text
    assert finished.estimates["truth"].tolist() == third.estimates["vehicles"].tolist()
    assert finished.asked.estimates["truth"].tolist() == third.estimates["truth"].tolist()


def test_runs_of_different_participation_are_compared_over_all_vehicles(third):
    whole = run("tiny")
    table = compare(whole, third).set_index(["mechanism_a", "score"])
    for mechanism, score in (("sampling", "rmse"), ("randomized", "bias"), ("baseline", "coverage")):
        row = table.loc[(mechanism, score)]
        assert row["a"] == pytest.approx(whole.scores.set_index("mechanism").loc[mechanism, f"scaled_{score}"])
        assert row["b"] == pytest.approx(third.scores.set_index("mechanism").loc[mechanism, f"scaled_{score}"])


def test_rows_of_speeds_stay_as_they_are():
    rows = pd.DataFrame({"truth": [5.5, 3], "vehicles": [9, 8]})
    for name in ("estimate", "std_error", "lower", "upper"):
        rows[name], rows[f"scaled_{name}"] = [5.0, 2.0], [np.nan, 6.0]
    led = of_all_vehicles(rows)
    assert led["truth"].tolist() == [5.5, 8]
    assert led["estimate"].tolist() == [5.0, 6.0]


@pytest.mark.slow
@pytest.mark.parametrize(("participation", "loss"), [(0.05, 0.2), (0.3, 0.0), (1.0, 0.2)])
def test_coverage_of_runs(participation, loss):
    """Vehicles that depart or arrive between the rounds are covered too; cells of a run are not independent."""
    changes = {"population.participation": participation, "channel.loss": loss, "attacks": []}
    scenario = scenarios.load("tiny", overrides=changes)
    shares = [run(scenario, seed=seed).scores.set_index("mechanism")["scaled_coverage"] for seed in range(1, 26)]
    table = pd.DataFrame(shares)
    spread = table.std(ddof=1) / np.sqrt(len(table))
    assert (table.mean() > 0.93 - 4 * spread).all()
