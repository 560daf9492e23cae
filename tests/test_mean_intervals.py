"""Intervals of means of shares contain the true mean as often as they state, at every number of values, or are none."""

import numpy as np
import pandas as pd
import pytest

from simulator.mean_intervals import FEWEST_SHARES, LEVEL, share_interval
from simulator.results.compare import paired_difference
from simulator.studies.summary import HALF, means

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


def test_other_scores_keep_the_t_interval():
    found = means(pd.DataFrame({"of": 0, "rmse": [1.0, 3.0]}), ["of"], ["rmse"])
    assert found[f"rmse{HALF}"].iloc[0] == pytest.approx(12.706, abs=1e-3)
    assert np.isnan(means(pd.DataFrame({"of": 0, "rmse": [1.0]}), ["of"], ["rmse"])[f"rmse{HALF}"].iloc[0])


@pytest.mark.parametrize(("value", "ends"), [(1.0, (0.6, 1.0)), (0.0, (0.0, 0.4)), (0.5, (0.25, 0.75))])
def test_shares_that_are_all_equal_still_have_an_interval(value, ends):
    lower, upper = share_interval(np.full(FEWEST_SHARES, value))
    assert ends[0] <= lower <= value <= upper <= ends[1]
    assert upper - lower > 0.2
