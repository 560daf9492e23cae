"""Comparison of two runs: differences of scores, their intervals, and runs that cannot be compared."""

import math

import numpy as np
import pandas as pd
import pytest

from simulator import RunResult, run
from simulator.results.compare import DifferentTruthError, compare

QUERIES, CELLS = 8, 30


@pytest.fixture(scope="module")
def few() -> RunResult:
    """A run of `tiny` in which one vehicle in ten is sampled."""
    return run("tiny", overrides={"mechanisms.sampling.sampling": 0.1})


@pytest.fixture(scope="module")
def many() -> RunResult:
    """A run of the same traffic in which nearly half of the vehicles are sampled."""
    return run("tiny", overrides={"mechanisms.sampling.sampling": 0.45})


def test_scores_and_differences_equal_those_of_the_runs(few: RunResult, many: RunResult) -> None:
    table = compare(few, many)
    scores = [one.scores.set_index(["campaign", "mechanism"]) for one in (few, many)]
    assert len(table) == 4 * len(few.scores)
    for row in table.itertuples():
        assert row.a == pytest.approx(scores[0].loc[(row.campaign, row.mechanism_a), row.score], abs=1e-12)
        assert row.b == pytest.approx(scores[1].loc[(row.campaign, row.mechanism_b), row.score], abs=1e-12)
        assert row.difference == row.b - row.a


def test_an_unchanged_mechanism_has_no_difference(few: RunResult, many: RunResult) -> None:
    table = compare(few, many)
    same = table[table["mechanism_a"] != "sampling"]
    assert (same[["difference", "lower", "upper"]].dropna().to_numpy() == 0.0).all()
    changed = table[(table["mechanism_a"] == "sampling") & (table["score"] == "rmse")]
    assert (changed["difference"] < 0.0).all()


def test_mechanisms_of_other_names_are_paired_on_request(few: RunResult) -> None:
    table = compare(few, few, mechanisms={"sampling": "randomized"})
    assert set(table["mechanism_a"]) == {"sampling"}
    assert set(table["mechanism_b"]) == {"randomized"}
    with pytest.raises(KeyError, match="the second run has no mechanism oue; it has"):
        compare(few, few, mechanisms={"sampling": "oue"})


def test_runs_of_different_traffic_are_refused(few: RunResult) -> None:
    with pytest.raises(DifferentTruthError, match=r"the truth of the runs differs in .* campaign .*, query 1, cell"):
        compare(few, run("tiny", seed=2))
    with pytest.raises(DifferentTruthError, match="did not ask the same campaigns' queries"):
        compare(few, run("tiny", overrides={"campaigns.0.queries": 1}))


def test_a_single_query_has_no_interval() -> None:
    single = run("tiny", overrides={"campaigns.0.queries": 1})
    table = compare(single, single)
    assert table[["lower", "upper"]].isna().all(axis=None)


def test_intervals_cover_the_difference_of_the_expected_scores(few: RunResult) -> None:
    rng = np.random.default_rng(5)
    runs, sigma_a, sigma_b = 1_000, 2.0, 3.0
    truth = rng.integers(0, 100, (runs, QUERIES, CELLS)).astype(float)
    made = [truth + sigma * rng.standard_normal(truth.shape) for sigma in (sigma_a, sigma_b)]
    table = compare(*(_with_estimates(few, truth, estimates) for estimates in made))
    expected = {"mae": (sigma_b - sigma_a) * math.sqrt(2.0 / math.pi), "rmse": sigma_b - sigma_a, "bias": 0.0}
    for score, difference in expected.items():
        rows = table[table["score"] == score]
        covered = ((rows["lower"] <= difference) & (difference <= rows["upper"])).mean()
        # Three comparisons at a family-wise level of 10⁻⁶: 5.1 standard deviations; .01 for the linear approximation.
        assert abs(covered - 0.95) < 5.1 * math.sqrt(0.95 * 0.05 / runs) + 0.01, (score, covered)


def _with_estimates(result: RunResult, truth: np.ndarray, estimate: np.ndarray) -> RunResult:
    """Return the run with made-up estimates of one mechanism, (campaigns, queries, cells)."""
    campaign, query, cell = (index.ravel() for index in np.indices(truth.shape))
    estimates = pd.DataFrame(
        {
            "campaign": pd.Series(campaign).map("campaign {}".format),
            "query": query + 1,
            "time_s": query.astype(float),
            "mechanism": "sampling",
            "cell": cell + 1,
            "truth": truth.ravel(),
            "estimate": estimate.ravel(),
            "lower": estimate.ravel() - 1.0,
            "upper": estimate.ravel() + 1.0,
        }
    )
    names = estimates["campaign"].unique()
    scores = pd.DataFrame({"campaign": names, "mechanism": "sampling", "statistic": "count"})
    return result.with_tables(estimates=estimates, scores=scores)
