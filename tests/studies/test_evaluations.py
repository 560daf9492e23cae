"""Evaluations: what the planner sets, which claim is compared with the target, errors by decile, and missing data."""

import math
import os

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import crowdveil as cv
from mechanisms.planning import Target, plan
from simulator.files.errors import InputError
from simulator.results.formatting import related
from simulator.results.tables import relative_errors
from simulator.studies.evaluate import DATA, MECHANISMS, Evaluation
from simulator.studies.tables import Goal, interval, sentences
from simulator.studies.workers import processes

needs_data = pytest.mark.skipif("CROWDVEIL_DATA" not in os.environ, reason="needs the folder of data sets")


def evaluated(tmp_path, mechanisms, data=("tiny",), *, replicates=2, options=None, **goal):
    work = Evaluation(
        Goal(**goal),
        data,
        mechanisms,
        directory=tmp_path / "evaluation",
        replicates=replicates,
        running={"start": processes(0)},
        options=options or {},
    )
    for stage in work.stages():
        with stage.opened():
            for _ in stage.outcomes():
                pass
    return work, work.write()


def test_mechanisms_are_set_for_the_target_and_run_as_set(tmp_path):
    names = ["oue", "sampling_privacy", "olh"]
    work, tables = evaluated(tmp_path, names, view="linked_reports", epsilon=1.5, delta=0.2)
    table = tables["evaluation"].set_index("mechanism")
    assert table["meets"].all()
    assert (table["runs"] == 2).all()
    for name, row in table.iterrows():
        runs = [
            cv.run(
                "tiny",
                seed=seed,
                overrides={"mechanisms": [{"name": name, "kind": name, **work.plans["tiny", name].parameters}]},
            )
            for seed in (1, 2)
        ]
        errors = [run.scores["rmse"].iloc[0] for run in runs]
        assert row["rmse"] == pytest.approx(np.mean(errors), rel=1e-12)
        variation = np.std(errors, ddof=1) / np.mean(errors)
        factor = math.exp(stats.t.ppf(0.975, 1) * variation * math.sqrt((1 + variation**2) / 2))
        assert (row["lower"], row["upper"]) == pytest.approx((row["rmse"] / factor, row["rmse"] * factor), rel=1e-9)
        assert row["lower"] >= 0
        rounds = runs[0].rounds
        one_query = rounds[rounds["query"] == rounds["query"].min()]
        bytes_up = one_query["bytes_up"].sum() / one_query["asked"].max()
        assert row["bytes_up"] == pytest.approx(bytes_up, rel=1e-9)
    assert table.loc["oue", "delta"] <= 0.2
    assert math.isinf(table.loc["sampling_privacy", "epsilon"])  # a sampled device's two reports reveal its cell


def test_the_planner_gets_the_size_of_the_data_set(tmp_path):
    work, tables = evaluated(tmp_path, ["oue"], view="released", epsilon=1.0, delta=1e-3)
    counted = pd.concat(
        [cv.run("tiny", seed=seed, overrides={"mechanisms": [{"kind": "no_privacy"}]}).rounds for seed in (1, 2)]
    )["counted"]
    target = Target(
        cells=9,
        population=round(float(counted.median())),
        occupancy=2,
        batch=int(counted.min()),
        view="released",
        epsilon=1.0,
        delta=1e-3,
    )
    assert plan(target, ["oue"]).plans[0].parameters == work.plans["tiny", "oue"].parameters
    row = tables["evaluation"].iloc[0]
    assert row["meets"]
    assert 0 < row["delta"] <= 1e-3


@pytest.mark.parametrize(
    "view", ["report", "report_round_2", "linked_reports", "released", "released_counts", "shuffled"]
)
def test_every_view_of_the_planner_is_compared_with_the_claim_of_the_run(tmp_path, view):
    _, tables = evaluated(tmp_path, ["k_randomized_response", "oue"], view=view, epsilon=1.0, delta=1e-3, replicates=1)
    table = tables["evaluation"]
    assert table["meets"].all()
    assert (table["delta"] <= 1e-3 * (1 + 1e-9)).all()
    assert table["lower"].isna().all()  # one run has no interval
    names = set(tables["leaks"]["view"])
    assert {"linked_reports", "released_counts", "report_round_1"} <= names


def test_a_release_has_a_run_of_its_own_with_the_same_traffic(tmp_path):
    _, tables = evaluated(tmp_path, ["oue", "laplace_counts", "server_noise"], view="released", epsilon=1.0, delta=1e-6)
    table = tables["evaluation"].set_index("mechanism")
    assert table["meets"].all()
    truth = tables["deciles"].groupby("mechanism")["occupancy"].apply(list)
    assert truth["oue"] == truth["laplace_counts"] == truth["server_noise"]


def test_a_claim_that_relies_on_a_crowd_says_so(tmp_path):
    work, tables = evaluated(tmp_path, ["sampling_privacy"], view="released", epsilon=1.0, delta=0.3)
    row = tables["evaluation"].iloc[0]
    assert row["crowd"] == work.plans["tiny", "sampling_privacy"].crowd > 0
    assert row["meets"]


def test_mechanisms_from_a_file_or_a_class_are_taken_as_they_are(tmp_path, monkeypatch):
    (tmp_path / "paper.toml").write_text(
        '[[mechanisms]]\nname = "paper"\nkind = "sampling_privacy"\nsampling = 0.45\n'
        '[[mechanisms]]\nkind = "randomized_response"\nfirst_coin = 0.8\nsecond_coin = 0.2\n'
    )
    monkeypatch.chdir(tmp_path)
    names = ["paper.toml", "mechanisms.local:NoPrivacy"]
    _, tables = evaluated(tmp_path, names, epsilon=1.0, options={"allow_plugins": True})
    table = tables["evaluation"].set_index("mechanism")
    truths = [cv.run("tiny", seed=seed).estimates.query("mechanism == 'sampling'")["truth"] for seed in (1, 2)]
    assert table["zero_rmse"].to_numpy() == pytest.approx(np.sqrt(np.mean(np.square(truths))))
    assert dict(table["beats_zero"]) == dict(table["rmse"] < table["zero_rmse"])
    assert table.loc["NoPrivacy", "beats_zero"]
    assert [*table.index] == ["paper", "randomized_response", "NoPrivacy"]
    assert table.loc["paper", "parameters"] == "sampling = 0.45"
    assert not table["meets"].any()
    assert table.loc["randomized_response", "epsilon"] > 1.0
    run = cv.run("tiny", seed=1)  # the same three mechanisms
    of_paper = tables["differences"].query("mechanism == 'paper' and against == 'randomized_response'").iloc[0]
    other = cv.run("tiny", seed=2)
    ratios = []
    for one in (run, other):
        rmse = one.scores.set_index("mechanism")["rmse"]
        ratios.append(np.log(rmse["sampling"] / rmse["randomized"]))
    assert of_paper["ratio"] == pytest.approx(np.exp(np.mean(ratios)), rel=0.5)


def test_data_that_are_missing_are_named_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    work, tables = evaluated(tmp_path, ["oue"], ["gowalla-nyc", "tiny", "speeds"], epsilon=1.0)
    table = tables["evaluation"].set_index("data")
    assert table.loc["tiny", "runs"] == 2
    assert table.loc["gowalla-nyc", "runs"] == 0
    assert "crowdveil data fetch gowalla_nyc" in table.loc["gowalla-nyc", "reason"]
    assert 'none has statistic = "count"' in table.loc["speeds", "reason"]
    said = sentences(tables, "released")
    assert table.loc["tiny", "rmse"] > table.loc["tiny", "zero_rmse"]
    assert any(text.startswith("tiny: no mechanism errs less than an estimate of 0") for text in said)
    assert any("crowdveil data fetch gowalla_nyc" in text for text in said)
    assert set(work.missing) == {"gowalla-nyc", "speeds"}


def test_views_of_one_round_say_what_the_rounds_reveal_together(tmp_path):
    goal = {"epsilon": 1.0, "delta": 0.05}
    work, tables = evaluated(tmp_path, ["sampling_privacy"], view="shuffled", **goal)
    leaks = tables["leaks"].set_index(["view", "queries"])
    (queries,) = {number for view, number in leaks.index if view == "linked_reports"} - {1}
    assert np.isinf(leaks.loc["linked_reports", "epsilon"]).all()
    delta = related("δ", "=", leaks.loc[("linked_reports", queries), "delta"])
    linked = f"whoever links its rounds, over {queries} queries, has no finite ε and {delta}"
    [said] = sentences(tables, work.goal.view)
    assert f"each round alone: {linked} at the target's ε" in said
    assert "links its rounds" not in sentences(tables, "linked_reports")[0]


def test_an_evaluation_without_any_data_or_plan_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    with pytest.raises(InputError, match="crowdveil data fetch"):
        evaluated(tmp_path, ["oue"], ["gowalla-nyc"], epsilon=1.0)
    with pytest.raises(InputError, match="tiny, sampling_privacy: "):
        evaluated(tmp_path, ["sampling_privacy"], epsilon=1.0, delta=0.0)
    with pytest.raises(InputError, match=r"mechanisms \(--mechanisms\): must be .*; got 'oeu'"):
        evaluated(tmp_path, ["oeu"], epsilon=1.0)


def test_errors_by_decile_are_those_of_the_cells_ranked_by_occupancy():
    rng = np.random.default_rng(5)
    cells, queries = 23, 4
    truth = rng.poisson(rng.uniform(0, 50, cells), (queries, cells))
    estimate = truth + rng.normal(0, 3, truth.shape)
    table = pd.DataFrame(
        {
            "campaign": "day",
            "mechanism": "one",
            "query": np.repeat(np.arange(1, queries + 1), cells),
            "cell": np.tile(np.arange(1, cells + 1), queries),
            "truth": truth.ravel(),
            "estimate": estimate.ravel(),
        }
    )
    found = relative_errors(table.sample(frac=1.0, random_state=1)).set_index("decile")
    assert found["cells"].sum() == cells
    assert found.index.tolist() == list(range(1, 11))
    order = np.argsort(truth.mean(axis=0), kind="stable")
    starts = [i for i in range(1, cells) if i * 10 // cells > (i - 1) * 10 // cells]
    for decile, ranked in enumerate(np.split(order, starts), start=1):
        row = found.loc[decile]
        assert row["cells"] == len(ranked)
        assert row["occupancy"] == pytest.approx(truth[:, ranked].mean())
        rmse = np.sqrt(np.square(estimate - truth)[:, ranked].mean())
        assert row["rmse"] == pytest.approx(rmse)
        assert row["relative_error"] == pytest.approx(rmse / truth[:, ranked].mean())


def test_the_interval_of_a_mean_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(1)
    held = sum(low <= 3.0 <= high for low, _, high in (interval(rng.gamma(4.0, 0.75, 5)) for _ in range(300)))
    assert abs(held - 0.95 * 300) < 5 * np.sqrt(300 * 0.95 * 0.05)
    assert np.isnan(interval(np.array([1.0]))[0])


@needs_data
@pytest.mark.slow
@pytest.mark.thorough
def test_eight_mechanisms_over_six_real_data_sets(tmp_path):
    data = [name for name in DATA if name not in {"manhattan", "bologna-sumo"}]
    goal = {"view": "linked_reports", "epsilon": 2.0, "delta": 0.1}
    tables = cv.evaluate(MECHANISMS, data, replicates=3, out=tmp_path / "evaluation", **goal)
    table = tables["evaluation"]
    assert len(table) == 48
    assert (table["runs"] == 3).all()
    assert table["meets"].all()
    assert tables["deciles"].groupby(["data", "mechanism"]).ngroups == 48
    # At this target the sampled device's two reports cost Sampling Privacy no more than other mechanisms' noise:
    # unary and Hadamard responses have more error, at every data set.
    errors = table.pivot_table(index="data", columns="mechanism", values="rmse")
    assert (errors["sue"] > errors["sampling_privacy"]).all()
    assert (errors["hadamard_response"] > errors["sampling_privacy"]).all()


def test_a_class_that_may_not_be_imported_is_refused_before_anything_is_computed(tmp_path):
    with pytest.raises(cv.ScenarioError, match="imported only with permission"):
        evaluated(tmp_path, ["own_module:Own"], epsilon=1.0)
    assert not (tmp_path / "evaluation").exists()
