"""Intervals of means of shares contain the true mean as often as they state, at every number of values, or are none."""

import numpy as np
import pandas as pd
import pytest

from simulator.results.compare import paired_difference
from simulator.results.mean_intervals import FEWEST_SHARES, LEVEL, error_interval, share_interval
from simulator.studies.summary import HALF, HIGH, LOW, means

RUNS = 200
MISSED = (1 - LEVEL) * RUNS + 4 * (RUNS * LEVEL * (1 - LEVEL)) ** 0.5
"""Most misses of intervals with the nominal level, four standard deviations above their mean."""


@pytest.mark.parametrize("count", [2, 3, FEWEST_SHARES, 40])
@pytest.mark.parametrize(("cells", "share"), [(16, 0.95), (1, 0.9), (1, 0.03)])
def test_shares_over_few_replicates_have_the_nominal_coverage_or_no_interval(count, cells, share):
    rng = np.random.default_rng(count * 100 + cells)
    drawn = rng.binomial(cells, share, (RUNS, count)) / cells
    table = pd.DataFrame({"of": np.repeat(np.arange(RUNS), count), "coverage": drawn.ravel()})
    found = means(table, ["of"], ["coverage"])
    assert ((found["coverage"] - share).abs() > found[f"coverage{HALF}"]).sum() <= MISSED
    assert found[f"coverage{HALF}"].notna().all() == (count >= FEWEST_SHARES)


@pytest.mark.parametrize("count", [2, 3, 12, 40])
def test_differences_of_coverage_over_few_queries_have_the_nominal_coverage_or_no_interval(count):
    rng = np.random.default_rng(count)
    query, missed = np.repeat(np.arange(count), 16), 0
    for _ in range(RUNS):
        a, b = (rng.binomial(1, share, len(query)).astype(np.float64) for share in (0.9, 0.95))
        found = paired_difference(query, a, b, root=False, shares=True)
        assert np.isfinite(found["lower"]) == (count >= FEWEST_SHARES)
        missed += found["lower"] > 0.05 or found["upper"] < 0.05
    assert missed <= MISSED


def test_scores_that_may_be_negative_keep_the_t_interval():
    found = means(pd.DataFrame({"of": 0, "bias": [1.0, 3.0]}), ["of"], ["bias"])
    assert found[f"bias{HALF}"].iloc[0] == pytest.approx(12.706, abs=1e-3)
    assert f"bias{LOW}" not in found
    assert np.isnan(means(pd.DataFrame({"of": 0, "bias": [1.0]}), ["of"], ["bias"])[f"bias{HALF}"].iloc[0])


LAWS = {
    "log-normal .2": (lambda rng, shape: rng.lognormal(0.0, 0.2, shape), np.exp(0.02)),
    "log-normal .5": (lambda rng, shape: rng.lognormal(0.0, 0.5, shape), np.exp(0.125)),
    "log-normal .8": (lambda rng, shape: rng.lognormal(0.0, 0.8, shape), np.exp(0.32)),
    "gamma .5": (lambda rng, shape: rng.gamma(0.5, 2.0, shape), 1.0),
    "gamma 4": (lambda rng, shape: rng.gamma(4.0, 0.25, shape), 1.0),
    "error of one cell": (lambda rng, shape: np.abs(rng.normal(size=shape)), np.sqrt(2.0 / np.pi)),
}


@pytest.mark.parametrize("count", [2, 3, 5, 12])
@pytest.mark.parametrize("law", LAWS)
def test_mean_errors_over_few_replicates_have_the_nominal_coverage_and_no_negative_end(law, count):
    draw, mean = LAWS[law]
    values = draw(np.random.default_rng(count), (4000, count))
    lower, upper = error_interval(values.mean(axis=1), values.std(axis=1, ddof=1), np.full(4000, count))
    held = np.mean((lower <= mean) & (mean <= upper))
    assert held >= 0.93 - 2.0 * (0.93 * 0.07 / 4000) ** 0.5
    assert (lower >= 0.0).all()
    assert (lower <= values.mean(axis=1)).all()


def test_mean_errors_of_a_table_are_those_of_their_groups():
    rows = {"of": ["b", None, "b", "a", None, "c", "c"], "rmse": [1.0, 4.0, 3.0, 2.0, 4.0, 0.0, 0.0]}
    found = means(pd.DataFrame(rows), ["of"], ["rmse"])
    assert found["rmse"].tolist() == [2.0, 4.0, 2.0, 0.0]
    factor = np.exp(12.7062 * np.sqrt(0.5) * np.sqrt(1.5 / 2.0))  # variance 2, mean 2
    assert found[f"rmse{LOW}"].tolist() == pytest.approx([2.0 / factor, 4.0, np.nan, 0.0], rel=1e-4, nan_ok=True)
    assert found[f"rmse{HIGH}"].tolist() == pytest.approx([2.0 * factor, 4.0, np.nan, 0.0], rel=1e-4, nan_ok=True)
    assert found[f"rmse{HALF}"].iloc[0] == pytest.approx(2.0 * factor - 2.0, rel=1e-4)


def test_shares_of_a_table_have_ends_between_0_and_1():
    rows = pd.DataFrame({"of": ["x", "y"] * FEWEST_SHARES, "coverage": [1.0, 0.25] * FEWEST_SHARES})
    found = means(rows, ["of"], ["coverage"])
    assert (found[f"coverage{LOW}"] >= 0.0).all()
    assert (found[f"coverage{HIGH}"] <= 1.0).all()
    assert found[f"coverage{HIGH}"].iloc[0] == 1.0
    assert found[f"coverage{LOW}"].iloc[1] < 0.25 < found[f"coverage{HIGH}"].iloc[1]


@pytest.mark.parametrize(("value", "ends"), [(1.0, (0.6, 1.0)), (0.0, (0.0, 0.4)), (0.5, (0.25, 0.75))])
def test_shares_that_are_all_equal_still_have_an_interval(value, ends):
    lower, upper = share_interval(np.full(FEWEST_SHARES, value))
    assert ends[0] <= lower <= value <= upper <= ends[1]
    assert upper - lower > 0.2
