"""Scores of mobility research against linear programs, closed forms and scipy."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import jensenshannon
from scipy.stats import kendalltau, wasserstein_distance

import simulator
from simulator.experiment.mobility_scores import TOP, _groups, earth_movers_distance, mobility_scores, share_found


def normalised(values):
    return values / values.sum()


def linear_program(p, q, points):
    """Return the distance as the optimum over all plans, mass that stays included."""
    n = len(p)
    costs = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    rows = np.kron(np.eye(n), np.ones(n))
    columns = np.kron(np.ones(n), np.eye(n))
    plan = linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]), method="highs")
    return plan.fun


@pytest.mark.parametrize("seed", range(12))
def test_distance_is_the_optimum_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    points = rng.uniform(-500, 500, (n, 2))
    p, q = (normalised(rng.poisson(1.5, n) + rng.random(n) * (seed % 2) + (np.arange(n) == 0)) for _ in range(2))
    distance = earth_movers_distance(p, q, points)
    assert distance == pytest.approx(linear_program(p, q, points), rel=1e-9, abs=1e-9)
    assert distance == earth_movers_distance(p, q, points)


def test_distance_in_a_row_of_cells_is_the_area_between_the_distribution_functions():
    rng = np.random.default_rng(5)
    points = np.stack([np.arange(60) * 100.0, np.zeros(60)], axis=1)
    p, q = normalised(rng.random(60)), normalised(rng.random(60))
    expected = 100.0 * np.abs(np.cumsum(p - q)).sum()
    assert earth_movers_distance(p, q, points) == pytest.approx(expected, rel=1e-9)
    assert wasserstein_distance(points[:, 0], points[:, 0], p, q) == pytest.approx(expected, rel=1e-9)


def independent_errors(side):
    """Return two distributions over a square of cells of 100 m, the second with independent errors, and centroids."""
    rng = np.random.default_rng(side)
    points = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) * 100.0
    truth = rng.poisson(5 * np.exp(-np.square(points - 40 * side).sum(1) / (25 * side) ** 2))
    return normalised(np.maximum(truth + rng.normal(0, 1, side**2), 0)), normalised(truth), points


@pytest.mark.parametrize("side", [30, 60])
def test_groups_of_many_cells_change_the_distance_by_less_than_the_bound(side):
    from ot import emd2  # noqa: PLC0415 - as in the module

    p, q, points = independent_errors(side)
    exact = emd2(p, q, np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1)), numItermax=10**7)
    moved, differs = np.abs(p - q), p != q
    group, moved, at = _groups(points[differs]), moved[differs], points[differs]
    assert np.bincount(group).min() >= len(at) // 256
    assert len(np.bincount(group)) == 256
    middle = np.stack([np.bincount(group, moved * x) / np.bincount(group, moved) for x in at.T], 1)[group]
    bound = (moved * np.hypot(*(at - middle).T)).sum()
    distance = earth_movers_distance(p, q, points)
    assert abs(distance - exact) <= bound
    assert distance == pytest.approx(exact, rel=0.02)


def test_a_million_cells_are_scored():
    rng = np.random.default_rng(7)
    n = 10**6
    points, truth = rng.uniform(0, 30_000, (n, 2)), rng.poisson(0.1, n)
    # All mass moves 40 km east.
    p, q = normalised(truth.astype(float)), normalised(truth.astype(float))
    both, east = np.concatenate([p, np.zeros(n)]), np.concatenate([np.zeros(n), q])
    distance = earth_movers_distance(both, east, np.concatenate([points, points + np.array([40_000, 0])]))
    assert distance == pytest.approx(40_000, rel=0.01)
    scores = mobility_scores(truth, truth + rng.normal(0, 1, n), points)
    assert all(math.isfinite(score) for score in scores)


def test_divergence_and_ranks_are_those_of_scipy():
    rng = np.random.default_rng(3)
    truth, points = rng.poisson(2, 50), rng.random((50, 2))
    estimate = truth + rng.normal(0, 2, 50)
    scores = mobility_scores(truth, estimate, points)
    p, q = normalised(np.maximum(estimate, 0)), normalised(truth)
    assert scores.jensen_shannon == pytest.approx(jensenshannon(p, q, base=2) ** 2, rel=1e-12)
    assert scores.kendall_tau == pytest.approx(kendalltau(truth, estimate).statistic, rel=1e-12)
    assert scores.earth_movers_m == earth_movers_distance(p, q, points)


def test_equal_and_disjoint_distributions():
    points = np.array([[0.0, 0.0], [300.0, 400.0], [600.0, 800.0]])
    truth = np.array([1, 2, 3])
    assert mobility_scores(truth, truth.astype(float), points) == (0.0, 0.0, 1.0, 1.0)
    # Proportional estimates have no error as distributions, except for rounding.
    assert mobility_scores(truth, 0.3 * truth, points) == pytest.approx((0.0, 0.0, 1.0, 1.0), abs=1e-9)
    assert mobility_scores(np.array([0, 0, 7]), np.array([7.0, 0.0, -2.0]), points)[:2] == pytest.approx((1000.0, 1.0))


def test_scores_that_are_not_defined_are_nan():
    points = np.zeros((4, 2))
    nothing = mobility_scores(np.zeros(4, dtype=int), np.array([1.0, 2.0, 3.0, 4.0]), points)
    assert np.isnan(nothing[:3]).all()
    below = mobility_scores(np.array([1, 2, 3, 4]), np.array([-4.0, -3.0, -2.0, 0.0]), points)
    assert np.isnan(below[:2]).all()
    assert below[2:] == pytest.approx((1.0, 1.0))
    placeless = mobility_scores(np.array([1, 2]), np.array([2.0, 1.0]), np.full((2, 2), np.nan))
    assert math.isnan(placeless.earth_movers_m)
    assert placeless.jensen_shannon > 0
    alone = mobility_scores(np.array([3]), np.array([2.5]), points[:1])
    assert alone[:2] == (0.0, 0.0)
    assert math.isnan(alone.kendall_tau)
    assert alone.top_n_overlap == 1.0


def test_cells_tied_with_the_last_busiest_one_count_as_found():
    truth = np.array([5, 3, 3, 3, 0])
    assert share_found(truth, np.array([9.0, 0.0, 0.0, 8.0, 7.0]), 2) == 1.0
    assert share_found(truth, np.array([9.0, 0.0, 0.0, 0.0, 7.0]), 2) == 0.5


def test_scores_of_a_run_are_means_over_its_queries():
    result = simulator.run("tiny")
    middles = result.cells.to_crs(result.record.city.crs).geometry.centroid
    points = np.column_stack([middles.x, middles.y])
    for row in result.scores.itertuples():
        mine = result.estimates[result.estimates["mechanism"] == row.mechanism]
        each = [
            mobility_scores(group["truth"].to_numpy(), group["estimate"].to_numpy(), points)
            for _, group in mine.groupby("query")
        ]
        means = np.mean(each, axis=0)
        assert (row.earth_movers_m, row.jensen_shannon, row.kendall_tau, row.top_n_overlap) == pytest.approx(
            tuple(means), rel=1e-6
        )
        count = min(TOP, len(points))
        busiest = [
            np.isin(
                np.argsort(-group["estimate"].to_numpy(), kind="stable")[:count],
                np.flatnonzero(group["truth"] >= group["truth"].nlargest(count).min()),
            ).mean()
            for _, group in mine.groupby("query")
        ]
        assert row.top_n_overlap == pytest.approx(np.mean(busiest))


def test_the_report_of_a_run_shows_the_scores(tmp_path):
    result = simulator.run("tiny", out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Errors as distributions and ranks" in page
    for column in ("earth_movers_m", "jensen_shannon", "kendall_tau", "top_n_overlap"):
        assert all(f'<data value="{value!r}">' in page for value in result.scores[column].tolist())
