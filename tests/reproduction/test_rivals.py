"""The table of rivals: its rows follow from plans and simulations, its findings from its rows."""

import math

import numpy as np
import pytest

from mechanisms.planning import plan
from simulator.reproduction.ldp_baselines import (
    ENTRIES,
    FORMS,
    OCCUPANCY,
    VIEWS,
    Contest,
    Contestant,
    Setting,
    _rows,
    answer,
    draw,
    findings,
    hold,
    settings,
)


@pytest.fixture(scope="module", params=list(VIEWS))
def contest(request):
    return hold(Setting(request.param, 10**5, 100), rng=np.random.default_rng(5))


def test_a_simulation_is_where_theory_has_it(contest):
    assert len(contest.ranking) > 8
    for one in contest.ranking:
        assert one.agrees, one
        assert one.low < one.plan.std_error < one.high


def test_an_error_that_theory_does_not_have_is_seen(contest):
    """Theory by a third too small would be found out, but where almost no device is ever sampled."""
    found_out = [one.simulated > one.high / 1.5 for one in contest.ranking if one.low > 0.0]
    assert len(found_out) > 8
    assert all(found_out)


def test_the_winner_is_the_least_error_of_the_planners_plans(contest):
    rows = {row.key: row for row in _rows(contest)}
    key = contest.setting.key
    best = min((row.published, row.key) for row in rows.values() if row.published is not None)
    assert f"{key}, {rows[f'{key}: winner'].computed}" == best[1]
    planned = plan(contest.setting.target, [one.plan.name for one in contest.contestants], claims=False)
    assert rows[f"{key}: winner"].computed == planned.best.name
    for one in contest.contestants:
        row = rows[f"{key}, {one.plan.name}"]
        assert (row.published is None) == (not one.plan.meets)
        assert row.note


def test_truths_hold_so_many_vehicles():
    for view in VIEWS:
        listed = settings(view)
        assert len(set(listed)) == len(listed) == 7
        for setting in listed:
            assert setting.truth.sum() == setting.population
            assert (setting.truth[1:] == OCCUPANCY).all()
            assert setting.target.expected == OCCUPANCY


def exchanged(contest, scale):
    """The same contest with Sampling Privacy's errors scaled."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    entered = []
    for one in contest.contestants:
        ours = one.plan.meets and one.plan.name.startswith("sampling_privacy")
        made = replace(one.plan, std_error=one.plan.std_error * scale) if ours else one.plan
        entered.append(Contestant(made, one.simulated, one.low, one.high))
    return Contest(contest.setting, entered)


def test_the_answer_follows_from_the_errors(contest):
    view = contest.setting.view
    assert f"1 of 1 for {VIEWS[view]}" in answer({view: [exchanged(contest, 1e-6)]})
    assert "errs least in 1 of 1 settings" in answer({view: [exchanged(contest, 1e-6)]})
    assert "errs least in 0 of 1 settings" in answer({view: [exchanged(contest, 1e6)]})


def test_whole_views_say_what_wins_and_are_drawn():
    rng = np.random.default_rng(1)
    contests = [hold(setting, rng=rng) for setting in settings("linked_reports")]
    sentences = list(findings("linked_reports", contests))
    winners = {contest.ranking[0].plan.name for contest in contests}
    assert all(name in sentences[0] for name in winners)
    ratios = [min(map(c.error_of, FORMS)) / c.ranking[0].plan.std_error for c in contests]
    assert f"{min(ratios):.3g}" in sentences[1]
    assert f"{max(ratios):.3g}" in sentences[1]
    # The error of the sampled device's own answer does not grow; that of every finite ε does.
    constant, growing = sentences[-1].split(" stays")
    assert "sampling_privacy" in constant
    assert "oue" in growing
    for panel in draw("linked_reports", contests):
        assert panel.log_x
        assert panel.log_y
        assert any(curve.kind == "points" for curve in panel.curves)
        for curve in panel.curves:
            assert len(curve.x) == len(curve.y) == 4
            assert all(y is None or (y > 0 and math.isfinite(y)) for y in curve.y)


def test_the_entry_is_in_the_catalogue():
    from simulator.reproduction.command import ENTRIES as ALL  # noqa: PLC0415 - only here

    assert [entry.name for entry in ENTRIES] == ["rivals"]
    assert ENTRIES[0] in ALL
