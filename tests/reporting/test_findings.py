"""The first screen: its sentences and its table, from the tables of a run."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from synthetic_run import SyntheticRun

import crowdveil as cv
from simulator.pages.findings_section import first_screen, sentences
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import summary_text
from simulator.results.run import RunResult

PRIOR = 0.1


def attack(campaign, size, success, *, trials=1000, mechanism="sampling", kind="shares"):
    half = 1.96 * math.sqrt(max(success * (1 - success), PRIOR * (1 - PRIOR)) / trials)
    return {
        "name": "together",
        "attack": kind,
        "coalition": ", ".join(f"server:{number}" for number in range(1, size + 1)),
        "colluding": size,
        "campaign": campaign,
        "mechanism": mechanism,
        "trials": trials,
        "prior": PRIOR,
        "success": success,
        "gain": success - PRIOR,
        "gain_low": success - PRIOR - half,
        "gain_high": success - PRIOR + half,
        "theory": success,
        "metric": None,
        "value": None,
        "unit": None,
    }


def finished(tmp_path, attacks=(), **options):
    directory = SyntheticRun(**options).write(tmp_path / "run")
    if attacks:
        pd.DataFrame(attacks).to_parquet(directory / "attacks.parquet")
    return RunResult.load(directory)


def test_the_verdict_is_by_the_size_of_the_coalition(tmp_path):
    rows = [attack("shared", 1, 0.101), attack("shared", 2, 0.1), attack("shared", 3, 0.47)]
    rows += [attack("trusted", 1, 0.46), attack("trusted", 2, 0.47)]
    run = finished(tmp_path, rows, campaigns=("shared", "trusted"))
    verdict = sentences(run)[0]
    assert verdict == (
        "Sampling Privacy: in campaign shared up to 2 colluding parties learn nothing, and 3 together guess 47 % of "
        "the cells right; in campaign trusted one party alone guesses 46 % of the cells right. The baseline guess is "
        "right for 10 %."
    )
    screen = first_screen(run)
    assert screen["sizes"] == [1, 2, 3]
    of_shared = next(
        row for row in screen["rows"] if row["campaign"] == "shared" and row["label"] == "Sampling Privacy"
    )
    assert {size: better for size, (_, better) in of_shared["guesses"].items()} == {1: False, 2: False, 3: True}


def test_a_coalition_that_did_not_attack_is_not_said_to_learn_nothing(tmp_path):
    run = finished(tmp_path, [attack("shared", 1, 0.1), attack("shared", 4, 0.47)], campaigns=("shared",))
    assert "one party learns nothing, and 4 together guess 47 % of the cells right" in sentences(run)[0]
    (tmp_path / "other").mkdir()
    run = finished(tmp_path / "other", [attack("shared", 2, 0.3), attack("shared", 3, 0.47)], campaigns=("shared",))
    assert "2 together guess 30 % of the cells right" in sentences(run)[0]
    assert "nothing" not in sentences(run)[0]


def test_a_release_is_found_by_every_name_of_its_campaign(tmp_path):
    """Also by one that begins with the last letter of "campaigns"."""
    base = cv.scenarios.load("tiny").tables()
    asked = base["campaigns"][0]
    release = {"kind": "laplace", "epsilon": 1.0}
    names = ("suppressed", "saved", "noisy")
    campaigns = [{**asked, "name": name, "release": release} for name in names]
    mechanisms = [{"name": "exact", "kind": "no_privacy"}]
    cv.run("tiny", overrides={"campaigns": campaigns, "mechanisms": mechanisms}).save(tmp_path / "run")
    rows = first_screen(RunResult.load(tmp_path / "run"))["rows"]
    assert [row["campaign"] for row in rows] == list(names)
    assert [row["reveals"] for row in rows] == [
        ["from what is published over 2 queries: ε = 4 (exact)", "from what is published in one query: ε = 2 (exact)"]
    ] * 3


def test_a_row_states_the_claims_of_its_own_campaign(tmp_path):
    asked = cv.scenarios.load("tiny").tables()["campaigns"][0]
    budgets = {name: {"budget": {"kind": "uniform", "window": window}} for name, window in (("two", 2), ("four", 4))}
    campaigns = [asked, *({**asked, "name": name, **budget} for name, budget in budgets.items())]
    mechanisms = [{"name": "unary", "kind": "oue", "epsilon": 1.0}]
    cv.run("tiny", overrides={"campaigns": campaigns, "mechanisms": mechanisms}).save(tmp_path / "run")
    reveals = {row["campaign"]: row["reveals"] for row in first_screen(RunResult.load(tmp_path / "run"))["rows"]}
    assert reveals["occupancy"] == [
        "over 2 queries: its answers: ε = 2 (exact)",
        "in one query: its answer: ε = 1 (exact)",
    ]
    # Over the campaign's queries, over the window, and over one.
    assert reveals["two"] == ["over 2 queries: its answers: ε = 1 (exact)", "in one query: its answer: ε = 0.5 (exact)"]
    assert reveals["four"] == [
        "over 2 queries: its answers: ε = 0.5 (exact)",
        "over 4 queries: its answers: ε = 1 (exact)",
        "in one query: its answer: ε = 0.25 (exact)",
    ]


def test_chance_among_many_coalitions_is_no_gain(tmp_path):
    """Of forty coalitions that learn nothing, one or two have a 95 % interval above 0."""
    rng = np.random.default_rng(3)
    trials, said = 400, 0
    for seed in range(5):
        guesses = rng.binomial(trials, PRIOR, 40) / trials
        rows = [attack("shared", 1 + place % 4, rate, trials=trials) for place, rate in enumerate(guesses)]
        folder = tmp_path / str(seed)
        folder.mkdir()
        run = finished(folder, rows, campaigns=("shared",))
        said += "up to 4 colluding parties learn nothing" in sentences(run)[0]
    assert said >= 4  # each fails with a probability of about 2.5 %


def test_errors_are_named_with_the_mean_occupancy_and_their_interval(tmp_path):
    run = finished(tmp_path, queries=5)
    said = sentences(run)
    assert len(said) <= 3
    scores = run.scores.set_index("mechanism")["rmse"]
    truth = run.estimates["truth"].mean()
    assert f"a cell holds {truth:.1f} on average" in said[0]
    assert said[0].index("Sampling Privacy") < said[0].index("randomized response")
    row = next(one for one in first_screen(run)["rows"] if one["label"] == "Sampling Privacy")
    own = run.estimates[run.estimates["mechanism"] == "sampling"]
    squares = (own["estimate"] - own["truth"]).pow(2).groupby(own["query"]).mean()
    low, high = stats.t.interval(0.95, len(squares) - 1, squares.mean(), stats.sem(squares))
    assert (row["low"], row["high"]) == pytest.approx((math.sqrt(max(0.0, low)), math.sqrt(high)))
    assert row["rmse"] == pytest.approx(scores["sampling"])


def test_many_mechanisms_are_summed_up(tmp_path):
    kinds = ["oue", "sue", "olh", "subset_selection", "k_randomized_response"]
    tables = [{"name": kind, "kind": kind, "epsilon": 2.0} for kind in kinds]
    result = cv.run("tiny", overrides={"mechanisms": [cv.scenarios.load("tiny").tables()["mechanisms"][0], *tables]})
    result.save(tmp_path / "run")
    run = RunResult.load(tmp_path / "run")
    (errors,) = [text for text in sentences(run) if text.startswith("The error in a cell")]
    least = run.scores.sort_values("rmse").iloc[0]
    assert f"{least['rmse']:.2f} vehicles (root mean square) with" in errors
    assert " others; " in errors


def test_long_tables_show_one_mechanism_of_every_campaign(tmp_path):
    run = finished(tmp_path, campaigns=tuple(f"campaign-{number}" for number in range(8)), queries=2)
    screen = first_screen(run)
    assert len(screen["rows"]) == 8
    assert {row["label"] for row in screen["rows"]} == {"Sampling Privacy"}
    assert screen["hidden"] == len(run.scores) - 8
    assert f"{screen['hidden']} more rows" in build_report(run.directory)


def test_sentences_that_no_writer_would_write_are_gone(shipped_run):
    for name in ("tiny", "releases"):
        text = " ".join(build_report(shipped_run(name)).split())
        for words in ("probability at most 100 %", "at at most", "at most less than", "vehicles a cell"):
            assert words not in text, (name, words)


def test_the_headline_names_the_servers_that_each_campaign_has(tmp_path):
    """Where devices send shares no server receives an answer; a server that is alone receives both."""
    asked = cv.scenarios.load("tiny").tables()["campaigns"][0]
    kinds = {
        "alone": {"kind": "trusted"},
        "a-round-each": {"kind": "per_round"},
        "shares": {"kind": "secret_shared", "servers": 2},
        "mixed": {"kind": "shuffled"},
    }
    campaigns = [{**asked, "name": name, "aggregation": kind} for name, kind in kinds.items()]
    mechanisms = [cv.scenarios.load("tiny").tables()["mechanisms"][0]]
    cv.run("tiny", overrides={"campaigns": campaigns, "mechanisms": mechanisms}).save(tmp_path / "run")
    run = RunResult.load(tmp_path / "run")
    assert "a linking server" not in " ".join(sentences(run))  # as the first campaign is not about servers a round
    said = sentences(run)[-1]
    assert "a server that receives the two answers of a device (campaign alone), two servers that link " in said
    assert "(campaign a-round-each) or both servers that combine their shares (campaign shares) learn the" in said
    assert said.endswith("What observers learn in campaign mixed is in the table.")
    reveals = {row["campaign"]: row["reveals"][-1] for row in first_screen(run)["rows"]}
    assert reveals["alone"] == "in one query: linked reports: δ = 0.45 at every ε"
    assert reveals["a-round-each"].startswith("in one query: answer 2 alone: ε = ")
    assert reveals["shares"] == "in one query: shares of both servers: δ = 0.45 at every ε"
    assert reveals["mixed"].startswith("in one query: shuffled answers: ")
    first = cv.run("tiny", overrides={"campaigns": campaigns[1:3], "mechanisms": mechanisms})
    assert sentences(first)[0].startswith("With Sampling Privacy, in one query of campaign a-round-each, a server that")
    alone = {"campaigns": campaigns[2:3], "mechanisms": mechanisms}
    cv.run("tiny", overrides=alone).save(tmp_path / "alone")
    run = RunResult.load(tmp_path / "alone")
    assert "both servers that combine their shares learn the device’s exact cell" in sentences(run)[-1]
    assert "All 2 servers" not in build_report(run.directory)
    assert "A server that receives only the second answer of a device (none in this run)" in build_report(run.directory)


@pytest.mark.parametrize("kind", ["trusted", "per_round"])
def test_servers_apart_are_compared_with_a_linking_one_and_cannot_pair(kind):
    """A lost report is no reason to advise pairing to servers that cannot."""
    run = cv.run("tiny", overrides={"aggregation.kind": kind, "channel.loss": 0.1})
    first, said = sentences(run)[0], " ".join([*sentences(run), *run.record.warnings])
    own = run.claims.query("mechanism == 'sampling' and queries == 1 and view == 'report_round_2' and at_delta_zero")
    shown = " ".join(summary_text(run).split("Error of a cell")[0].split())
    apart = kind == "per_round"
    assert (f"(ε = {own['epsilon'].item():.2f}); a linking server, " in first) == apart
    assert first.endswith("(δ = 0.45 at every ε).") == shown.endswith(first) == apart
    assert ("; answer 2 alone: ε ≤ " in sentences(run)[-1]) == apart
    assert ("or pair the rounds" in said) == (not apart)
    assert ("these servers cannot know which" in said) == ("per_round servers cannot pair" in said) == apart


def test_labels_that_begin_alike_are_not_mixed(tmp_path):
    """Anonymized Local Privacy and Anonymized Local Privacy, cancelling."""
    mechanisms = ("exact", "sampling", "randomized")
    directory = SyntheticRun(mechanisms=mechanisms, campaigns=tuple("abcdefgh"), queries=2).write(tmp_path / "run")
    record = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    kinds = {"sampling": "anonymized_local", "randomized": "anonymized_cancelling"}
    for mechanism in record["mechanisms"]:
        mechanism["kind"] = kinds.get(mechanism["name"], mechanism["kind"])
    (directory / "run.json").write_text(json.dumps(record), encoding="utf-8")
    screen = first_screen(RunResult.load(directory))
    assert {row["label"] for row in screen["rows"]} == {"Anonymized Local Privacy"}
    assert len(screen["rows"]) == 8


def test_the_headline_names_mechanisms_that_are_no_better_than_zero(tmp_path):
    run = finished(tmp_path, mean=0.5, queries=4)
    assert "Estimating 0 everywhere would be no worse than randomized response." in sentences(run)[0]
    full = finished(tmp_path / "full", mean=300.0)
    assert "Estimating 0" not in " ".join(sentences(full))


def test_a_budget_stands_beside_as_many_queries_without_one(tmp_path):
    asked = {**cv.scenarios.load("tiny").tables()["campaigns"][0], "queries": 3, "every_s": 60}
    campaigns = [{**asked, "name": "fresh"}, {**asked, "name": "even", "budget": {"kind": "uniform", "window": 2}}]
    mechanisms = [{"name": "unary", "kind": "oue", "epsilon": 1.0}]
    cv.run("tiny", overrides={"campaigns": campaigns, "mechanisms": mechanisms}).save(tmp_path / "run")
    reveals = {row["campaign"]: row["reveals"] for row in first_screen(RunResult.load(tmp_path / "run"))["rows"]}
    assert "over 2 queries: its answers: ε = 2 (exact)" in reveals["fresh"]
    assert "over 2 queries: its answers: ε = 1 (exact)" in reveals["even"]
