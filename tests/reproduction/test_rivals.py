"""The comparison of all mechanisms: its rows follow from plans and simulations, its findings from its rows."""

import math

import numpy as np
import pandas as pd
import pytest

from mechanisms.planning import plan
from simulator.papers import rivals
from simulator.papers.published_results import Reproduction, find_entries

SIZE = (10**5, 100)


FEW = ("linked_reports", "released")
"""Views whose comparison is simulated in the fast tests."""
FURTHER = [
    pytest.param(view, marks=[pytest.mark.slow, pytest.mark.thorough]) for view in rivals.VIEWS if view not in FEW
]


@pytest.fixture(scope="module", params=[*FEW, *FURTHER])
def comparison(request):
    return rivals.compare_in(request.param, *SIZE, rng=np.random.default_rng(5))


def new_results():
    (entry,) = find_entries("rivals")
    return Reproduction(entry)


def test_simulated_error_contains_the_theoretical_one(comparison):
    meeting = comparison[comparison["meets"]]
    assert len(meeting) > 8
    assert meeting["simulated"].between(meeting["low"], meeting["high"]).all()
    assert ((meeting["low"] < meeting["theory"]) & (meeting["theory"] < meeting["high"])).all()


def test_wrong_theoretical_error_is_detected(comparison):
    """A theoretical error too small by a third would be detected, except where almost no device is sampled."""
    sampled = comparison[comparison["low"] > 0.0]
    assert len(sampled) > 8
    assert (sampled["simulated"] > sampled["high"] / 1.5).all()


def test_winner_has_the_least_error_of_all_plans(comparison):
    results = new_results()
    rivals.add_rows(results, comparison)
    rows = {row.key: row for row in results.rows}
    view = comparison["view"].iloc[0]
    key = f"{view}, N=100,000, V=100"
    best = min((row.published, row.key) for row in rows.values() if row.published is not None)
    assert f"{key}, {rows[f'{key}: winner'].computed}" == best[1]
    planned = plan(rivals.target_of(view, *SIZE), list(comparison["name"]), claims=False)
    assert rows[f"{key}: winner"].computed == planned.least.name
    for one in comparison.itertuples():
        row = rows[f"{key}, {one.name}"]
        assert (row.published is None) == (not one.meets)
        assert row.note


def test_targets_have_the_stated_occupancy_and_population():
    sizes = {size for panel in rivals.SIZES.values() for size in panel}
    assert len(sizes) == 7
    for view in rivals.VIEWS:
        for population, cells in sizes:
            target = rivals.target_of(view, population, cells)
            assert (target.population, target.cells, target.expected) == (population, cells, rivals.OCCUPANCY)
            assert (target.adjacency == "enter_leave") == view.endswith("enter_leave")


def answer_where_ours_are_scaled(comparison, scale):
    """The answer with the errors of Sampling Privacy scaled."""
    ours = comparison["name"].str.startswith("sampling_privacy")
    results = new_results()
    scaled = comparison.assign(theory=comparison["theory"].where(~ours, comparison["theory"] * scale))
    rivals.add_answer(results, rivals.by_mechanism(scaled, "theory"))
    return results.findings[0]


def test_conclusion_follows_from_the_errors(comparison):
    view = comparison["view"].iloc[0]
    assert f"1 of 1 for {rivals.VIEWS[view]}" in answer_where_ours_are_scaled(comparison, 1e-6)
    assert "has the least error in 1 of 1 settings" in answer_where_ours_are_scaled(comparison, 1e-6)
    assert "has the least error in 0 of 1 settings" in answer_where_ours_are_scaled(comparison, 1e6)


@pytest.mark.slow
def test_findings_of_a_view_name_the_winners():
    rng, view = np.random.default_rng(1), "linked_reports"
    sizes = dict.fromkeys(size for panel in rivals.SIZES.values() for size in panel)
    table = pd.concat([rivals.compare_in(view, *size, rng=rng) for size in sizes], ignore_index=True)
    errors, results = rivals.by_mechanism(table, "theory").loc[view], new_results()
    rivals.add_findings(results, view, errors)
    winners = set(errors.idxmin(axis=1))
    assert all(name in results.findings[0] for name in winners)
    ratios = errors[rivals.FORMS].min(axis=1) / errors.min(axis=1)
    assert f"{ratios.min():.3g}" in results.findings[1]
    assert f"{ratios.max():.3g}" in results.findings[1]
    # The error of the sampled device's own answer does not grow; that of every mechanism of finite ε does.
    constant, growing = results.findings[-1].split(" stays")
    assert "sampling_privacy" in constant
    assert "oue" in growing
    rivals.draw(results, view, table)
    assert len(results.charts) == 2
    for panel in results.charts:
        assert panel.x.log
        assert panel.y.log
        assert any(series.mark == "points" for series in panel.series)
        for series in panel.series:
            assert len(series.x) == len(series.y) == 4
            assert all(y is None or (y > 0 and math.isfinite(y)) for y in series.y)
