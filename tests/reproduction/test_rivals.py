"""The comparison of all mechanisms: its rows follow from plans and simulations, its findings from its rows."""

import math

import numpy as np
import pytest

from mechanisms.planning import plan
from simulator.reproduction.command import find_entries
from simulator.reproduction.ldp_baselines import (
    FORMS,
    OCCUPANCY,
    VIEWS,
    Comparison,
    Setting,
    SimulatedPlan,
    add_rows,
    answer,
    compare_in,
    draw,
    findings,
    settings,
)
from simulator.reproduction.published_results import Results, read_paper


@pytest.fixture(scope="module", params=list(VIEWS))
def comparison(request):
    return compare_in(Setting(request.param, 10**5, 100), rng=np.random.default_rng(5))


def new_results():
    paper = read_paper("ldp_baselines")
    return Results(paper.entry[0], paper.shared)


def test_simulated_error_contains_the_theoretical_one(comparison):
    assert len(comparison.ranking) > 8
    for one in comparison.ranking:
        assert one.agrees, one
        assert one.low < one.plan.std_error < one.high


def test_wrong_theoretical_error_is_detected(comparison):
    """A theoretical error too small by a third would be detected, except where almost no device is sampled."""
    found_out = [one.simulated > one.high / 1.5 for one in comparison.ranking if one.low > 0.0]
    assert len(found_out) > 8
    assert all(found_out)


def test_winner_has_the_least_error_of_all_plans(comparison):
    results = new_results()
    add_rows(results, comparison)
    rows = {row.key: row for row in results.rows}
    key = comparison.setting.key
    best = min((row.published, row.key) for row in rows.values() if row.published is not None)
    assert f"{key}, {rows[f'{key}: winner'].computed}" == best[1]
    planned = plan(comparison.setting.target, [one.plan.name for one in comparison.plans], claims=False)
    assert rows[f"{key}: winner"].computed == planned.best.name
    for one in comparison.plans:
        row = rows[f"{key}, {one.plan.name}"]
        assert (row.published is None) == (not one.plan.meets)
        assert row.note


def test_truths_have_the_stated_occupancy_and_population():
    for view in VIEWS:
        listed = settings(view)
        assert len(set(listed)) == len(listed) == 7
        for setting in listed:
            assert setting.truth.sum() == setting.population
            assert (setting.truth[1:] == OCCUPANCY).all()
            assert setting.target.expected == OCCUPANCY


def exchanged(comparison, scale):
    """The same comparison with Sampling Privacy's errors scaled."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    entered = []
    for one in comparison.plans:
        ours = one.plan.meets and one.plan.name.startswith("sampling_privacy")
        made = replace(one.plan, std_error=one.plan.std_error * scale) if ours else one.plan
        entered.append(SimulatedPlan(made, one.simulated, one.low, one.high))
    return Comparison(comparison.setting, entered)


def test_conclusion_follows_from_the_errors(comparison):
    view = comparison.setting.view
    assert f"1 of 1 for {VIEWS[view]}" in answer({view: [exchanged(comparison, 1e-6)]})
    assert "has the least error in 1 of 1 settings" in answer({view: [exchanged(comparison, 1e-6)]})
    assert "has the least error in 0 of 1 settings" in answer({view: [exchanged(comparison, 1e6)]})


@pytest.mark.slow
def test_findings_of_a_view_name_the_winners():
    rng = np.random.default_rng(1)
    comparisons = [compare_in(setting, rng=rng) for setting in settings("linked_reports")]
    sentences = list(findings("linked_reports", comparisons))
    winners = {comparison.ranking[0].plan.name for comparison in comparisons}
    assert all(name in sentences[0] for name in winners)
    ratios = [c.error_of(*FORMS) / c.ranking[0].plan.std_error for c in comparisons]
    assert f"{min(ratios):.3g}" in sentences[1]
    assert f"{max(ratios):.3g}" in sentences[1]
    # The error of the sampled device's own answer does not grow; that of every mechanism of finite ε does.
    constant, growing = sentences[-1].split(" stays")
    assert "sampling_privacy" in constant
    assert "oue" in growing
    results = new_results()
    draw(results, "linked_reports", comparisons)
    assert len(results.drawings) == 2
    for panel in results.drawings:
        assert panel.log_x
        assert panel.log_y
        assert any(curve.kind == "points" for curve in panel.curves)
        for curve in panel.curves:
            assert len(curve.x) == len(curve.y) == 4
            assert all(y is None or (y > 0 and math.isfinite(y)) for y in curve.y)


def test_the_entry_is_in_the_catalogue():
    (entry,) = find_entries("rivals")
    assert entry.paper == "crowdveil"
