"""The shipped scenarios have the results that their comments state."""

import numpy as np
import pytest
from scipy import stats

from simulator import RunResult, run

LEVEL = 1e-6
SAMPLING = 0.45


@pytest.fixture(scope="module")
def manhattan(shipped_run):
    return RunResult.load(shipped_run("manhattan"))


def test_sampling_privacy_z_scores_are_standard_normal(manhattan):
    rows = manhattan.estimates.query("mechanism == 'sampling' and truth >= 1")
    spread = np.sqrt(rows["truth"] * (1 - SAMPLING) / SAMPLING)
    z = (rows["estimate"] - rows["truth"]) / spread
    bound = stats.norm.isf(LEVEL / 4)
    assert abs(z.mean()) < bound / np.sqrt(len(z))
    # Var(z²) of a standardised binomial: 2 + its excess kurtosis.
    excess = (1 - 6 * SAMPLING * (1 - SAMPLING)) / (rows["truth"] * SAMPLING * (1 - SAMPLING))
    assert abs(z.var(ddof=0) - 1) < bound * np.sqrt((2 + excess).sum()) / len(z)


def test_sampling_privacy_intervals_have_nominal_coverage(manhattan):
    rows = manhattan.estimates.query("mechanism == 'sampling'")
    covered = int(((rows["lower"] <= rows["truth"]) & (rows["truth"] <= rows["upper"])).sum())
    assert stats.binomtest(covered, len(rows), 0.95, alternative="less").pvalue > LEVEL
    assert (rows.query("estimate == 0")["upper"] > 0).all()
    interval = dict(zip(manhattan.scores["mechanism"], manhattan.scores["interval"], strict=True))
    assert interval == {"sampling": "binomial inversion", "randomized": "score", "baseline": "exact"}


def test_manhattan_traffic_is_not_jammed(manhattan):
    """No jam: few vehicles are stuck, and most that departed a while ago have arrived."""
    last = manhattan.facts["traffic_at_queries"][-1]
    assert last["stuck_released"] < 0.001 * last["departed"]
    assert last["arrived"] > 0.6 * last["departed"]
    assert last["waiting"] < 0.02 * last["departed"]


@pytest.fixture(scope="module")
def highways():
    return {outside: run("highway", overrides=[f"population.outside={outside}"]) for outside in (0, 10_000, 1_000_000)}


def _rmse(result, mechanism):
    return float(result.scores.set_index("mechanism").loc[mechanism, "rmse"])


@pytest.mark.slow
def test_highway_stretch_holds_about_a_hundred_vehicles(highways):
    truth = highways[0].estimates.query("mechanism == 'sampling'")["truth"]
    assert len(truth) == 400
    assert 85 < truth.mean() < 115


@pytest.mark.slow
def test_sampling_privacys_error_is_constant_on_the_highway(highways):
    """400 squared errors of variance σ² each: the RMSE is within its sampling error of theory, at every population."""
    for result in highways.values():
        truth = result.estimates.query("mechanism == 'sampling'")["truth"].mean()
        theory = np.sqrt(truth * (1 - SAMPLING) / SAMPLING)
        assert abs(_rmse(result, "sampling") / theory - 1) < stats.norm.isf(LEVEL / 6) / np.sqrt(2 * 400)


@pytest.mark.slow
def test_randomized_response_error_grows_with_root_of_population(highways):
    asked = {outside: result.rounds["asked"].mean() for outside, result in highways.items()}
    false_yes = (1 - 0.85) * 0.3
    true_yes = 0.85 + false_yes
    for outside, result in highways.items():
        truth = result.estimates.query("mechanism == 'randomized'")["truth"].mean()
        variance = truth * true_yes * (1 - true_yes) + (asked[outside] - truth) * false_yes * (1 - false_yes)
        theory = np.sqrt(variance) / 0.85
        assert abs(_rmse(result, "randomized") / theory - 1) < stats.norm.isf(LEVEL / 6) / np.sqrt(2 * 400)
    growth = _rmse(highways[1_000_000], "randomized") / _rmse(highways[10_000], "randomized")
    assert 8 < growth < 12.5  # √100, within its sampling error
