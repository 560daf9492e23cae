"""Targets: refused values, defaults, and plans for any target."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms.parameter import ParameterError
from mechanisms.planning import FAMILIES, VIEWS, Target, plan
from mechanisms.planning.candidate import bound_view
from mechanisms.planning.error_distribution import error_interval
from mechanisms.planning.families import families_named
from mechanisms.planning.search import Dial
from mechanisms.planning.target import RELEASED
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shuffled

# Fast ones of every group: those that take seconds are planned elsewhere.
QUICK = ("sampling_privacy", "warner", "k_randomized_response", "oue", "subset_selection", "laplace_counts")


def test_default_occupancy_is_uniform_over_cells_and_outside():
    assert Target(cells=99, population=1000, epsilon=1.0).expected == 10
    assert Target(cells=99, population=3, epsilon=1.0).expected == 1
    assert Target(cells=99, population=3, occupancy=0, epsilon=1.0).expected == 0
    assert Target(cells=2, population=9, epsilon=1.0).truth.tolist() == [6, 3, 0]


def test_one_round_mechanism_uses_its_report_for_any_round():
    target = Target(cells=2, population=9, view="report_round_2", epsilon=1.0, queries=3)
    assert target.views(rounds=1, differences=False) == (Report(1, 3),)
    assert replace(target, published=False).views(rounds=2, differences=True) == (Report(2, 3),)


def test_target_views_of_mechanisms():
    def views(view, rounds, *, differences=False, **more):
        return Target(cells=2, population=9, view=view, epsilon=1.0, **more).views(
            rounds=rounds, differences=differences
        )

    counts, differences = ReleasedCounts(None, 1, 9, adjacency="move"), ReleasedDifferences(3, adjacency="move")
    assert views("report", 2) == (Report(1), Report(2), counts)
    assert views("report", 2, differences=True) == (Report(1), Report(2), differences)
    assert views("report", 2, published=False) == (Report(1), Report(2))
    assert views("report", 1) == (Report(1),)  # which bounds what is published of it
    assert views("linked_reports", 2) == (LinkedReports(),)
    assert views("released", 2, honest=0, k=3) == (LinkedReports(),)
    assert views("shuffled", 2) == (Shuffled(1, 9), Shuffled(2, 9), counts)
    assert views("shuffled_round_2", 2) == (Shuffled(2, 9), counts)
    assert views("released", 2, differences=True) == (ReleasedDifferences(3, adjacency="move"),)
    entering = partial(views, adjacency="enter_leave")
    assert entering("released", 2, differences=True) == (ReleasedDifferences(3),)
    assert entering("released", 1) == (ReleasedCounts(None, 1, 9),)
    assert entering("released", 1, batch=7) == (ReleasedCounts(None, 1, 7),)
    assert entering("shuffled", 1, batch=7) == (Shuffled(1, 7, adjacency="enter_leave"),)
    assert entering("released_counts", 2, differences=True, crowd=5) == (ReleasedCounts(5, 1, 9),)
    assert entering("released_differences", 2, differences=True, k=4) == (ReleasedDifferences(None, 4),)
    assert entering("released_differences", 2, differences=True, k=4, crowd=6) == (ReleasedDifferences(6, 4),)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("cells", {"cells": 0}),
        ("cells", {"cells": 2.0}),
        ("population", {"population": 0}),
        ("occupancy", {"occupancy": 10}),
        ("view", {"view": "shares"}),
        ("epsilon", {"epsilon": None}),
        ("epsilon", {"epsilon": math.inf}),
        ("epsilon", {"epsilon": math.nan}),
        ("delta", {"delta": 1.0}),
        ("delta", {"delta": -0.1}),
        ("delta", {"delta": math.nan}),
        ("error", {"error": 3.0}),
        ("error", {"epsilon": None, "error": 0.0}),
        ("error", {"epsilon": None, "error": math.inf}),
        ("queries", {"queries": 0}),
        ("adjacency", {"adjacency": "swap"}),
        ("batch", {"batch": 10}),
        ("k", {"k": 3}),
        ("honest", {"honest": -1}),
        ("crowd", {"view": "report", "published": False, "crowd": 3}),
        ("crowd", {"crowd": 3}),
        ("k", {"view": "released_counts", "k": 3}),
        ("k", {"view": "released", "k": 0}),
        ("crowd", {"view": "released", "crowd": 10}),
        ("simulated", {"simulated": 0}),
    ],
)
def test_invalid_target_names_its_field(field, change):
    with pytest.raises(ParameterError) as refusal:
        Target(**{"cells": 3, "population": 9, "epsilon": 1.0, **change})
    assert refusal.value.field == field


def test_families_are_selected_by_name_and_kind():
    assert [family.name for family in families_named(("oue", "sampling_privacy"))] == ["sampling_privacy", "oue"]
    assert {family.name for family in families_named(("no_privacy",))} == {
        "sample_then_suppress",
        "server_noise",
        "gaussian_counts",
        "laplace_counts",
    }
    assert families_named() == FAMILIES
    with pytest.raises(ParameterError, match="mechanism"):
        families_named(("magic",))


@st.composite
def targets(draw):
    population = draw(st.integers(1, 10**8))
    goal = draw(
        st.one_of(
            st.fixed_dictionaries(
                {"epsilon": st.floats(0.01, 20.0), "delta": st.one_of(st.just(0.0), st.floats(1e-9, 0.5))}
            ),
            st.fixed_dictionaries(
                {"error": st.floats(0.1, 1e6), "delta": st.one_of(st.just(0.0), st.floats(1e-9, 0.5))}
            ),
        )
    )
    view = draw(st.sampled_from(VIEWS))
    occupancy = draw(st.one_of(st.none(), st.integers(0, min(population, 10**5))))
    more = {"k": draw(st.one_of(st.none(), st.integers(1, 50)))} if view in RELEASED[:2] else {}
    return Target(
        cells=draw(st.integers(1, 10**4)),
        population=population,
        occupancy=occupancy,
        view=view,
        adjacency=draw(st.sampled_from(["move", "enter_leave"])),
        **goal,
        **more,
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(targets())
def test_plan_of_any_target_meets_it(target):
    planning = plan(target, QUICK)
    json.dumps(planning.to_dict(), allow_nan=False)
    for made in planning.plans:
        if not made.meets:
            assert made.reason
            continue
        if target.error is not None:
            assert made.std_error <= target.error * (1 + 1e-9)
            continue
        assert made.epsilon <= target.epsilon * (1 + 1e-5)
        rounds = made.mechanism.rounds
        differences = rounds > 1 and made.mechanism.claim(ReleasedDifferences(1)).kind != "unknown"
        for view in target.views(rounds=rounds, differences=differences):
            assert bound_view(made.mechanism, view, devices=target.population).meets(target.epsilon, target.delta)
    if target.error is None and planning.best is not None:
        assert all(planning.best.std_error <= made.std_error for made in planning.plans if made.meets)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("randomized_response", Target(cells=7, population=50, view="shuffled", epsilon=100.0, delta=0.5)),
        ("sampled_response", Target(cells=2, population=1000, occupancy=914, view="report_round_1", error=1e-9)),
    ],
)
def test_target_at_the_end_of_a_range_gives_a_plan_or_a_reason(name, target):
    # logit(1 − 1e-16) is not the position of exactly 1: the last double below it may meet a target that 1 does not.
    [made] = plan(target, [name], claims=False).plans
    assert made.meets or made.reason


def test_non_estimable_mechanism_is_no_plan():
    target = Target(cells=2, population=12345, view="shuffled_round_3", epsilon=0.0, delta=1e-12)
    [made] = plan(target, ["sampling_and_noise"]).plans
    assert not made.meets
    assert "the answers do not depend on the truth" in made.reason


def test_dial_ends_map_to_its_limits():
    for dial in (Dial(1e-9, 1.0, "logit"), Dial(0.5, 1.0 - 1e-12, "logit"), Dial(1e-6, 50.0), Dial(0.3, 0.7)):
        assert dial.value(dial.place(dial.low)) == dial.low
        assert dial.value(dial.place(dial.high)) == dial.high


def test_error_interval_holds_with_rare_large_errors():
    # One device sampled with probability p adds 1/p, almost never: errors of σ = √((1 − p)/p), nearly all equal to 1.
    chance, cells, repeats = 1e-9, 10, 20_000
    excess = (1 - 6 * chance * (1 - chance)) / (chance * (1 - chance))
    std_error = math.sqrt((1 - chance) / chance)
    low, high = error_interval(std_error, cells=cells, excess=excess)
    seen = np.random.default_rng(3).random((repeats, cells)) < chance
    shown = np.sqrt(((seen / chance - 1.0) ** 2).mean(axis=1))
    assert ((low <= shown) & (shown <= high)).mean() >= 0.95
    assert low <= std_error <= high


@pytest.mark.parametrize("queries", [3])
def test_target_over_queries_is_met_over_queries(queries):
    target = Target(cells=5, population=10**4, view="report", epsilon=1.0, delta=1e-4, queries=queries)
    once = plan(Target(cells=5, population=10**4, view="report", epsilon=1.0, delta=1e-4), QUICK[:5], claims=False)
    for made, single in zip(plan(target, QUICK[:5], claims=False).plans, once.plans, strict=True):
        for round_ in range(1, made.mechanism.rounds + 1):
            assert made.mechanism.claim(Report(round_, queries)).delta(1.0) <= 1e-4
        # No better than once, and no better than T·(ε/T, δ/T) allows.
        added = Target(cells=5, population=10**4, view="report", epsilon=1.0 / queries, delta=1e-4 / queries)
        [each] = plan(added, [made.name], claims=False).plans
        assert single.std_error < made.std_error <= each.std_error * 1.001
