"""Plans: targets, what they spend, and that they meet their targets."""

import json
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mechanism_statistics import planned_truth
from scipy.stats import qmc

from mechanisms.central.grid_noise import draw_noise
from mechanisms.planning import FAMILIES, RELEASED, VIEWS, Target, plan
from mechanisms.planning.candidate import bound_view, margin
from mechanisms.planning.error_distribution import error_interval, excess_kurtosis
from mechanisms.planning.families import families_named
from mechanisms.planning.search import SPREAD_POINTS, spread_out
from mechanisms.privacy import LinkedReports, ParameterError, ReleasedCounts, ReleasedDifferences, Report, Shuffled
from mechanisms.privacy.released import worst_move_delta

# Fast ones of every group: those that take seconds are planned elsewhere.
QUICK = ("sampling_privacy", "warner", "k_randomized_response", "oue", "subset_selection", "laplace_counts")


def test_default_occupancy_is_uniform_over_cells_and_outside():
    assert Target(cells=99, population=1000, epsilon=1.0).expected == 10
    assert Target(cells=99, population=3, epsilon=1.0).expected == 1
    assert Target(cells=99, population=3, occupancy=0, epsilon=1.0).expected == 0
    assert Target(cells=2, population=9, epsilon=1.0).expected == 3


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


def test_a_target_of_the_error_is_scored_by_epsilon():
    target = Target(cells=3, population=400, view="linked_reports", error=25.0)
    [family] = families_named(("k_randomized_response",))
    assert family.at(target, 1.0).score == pytest.approx(1.0)


def test_a_finite_epsilon_above_the_target_is_not_called_infinite():
    target = Target(cells=2, population=100, view="report_round_1", epsilon=1e-7)
    [made] = plan(target, ("warner",), claims=False).plans
    assert made.reason.startswith("Even with the log odds")


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


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
            bound = bound_view(made.mechanism, view, devices=target.population)
            assert margin(bound, target.epsilon, target.delta) <= 0.0
    if target.error is None and planning.least is not None:
        assert planning.best == (planning.least if planning.least.better_than_zero else None)
        assert all(planning.least.std_error <= made.std_error for made in planning.plans if made.meets)


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


NAMES = [family.name for family in FAMILIES]
# Many parameters take seconds for views of all devices; linked and single reports of these families are planned below.
SLOW = {"anonymized_deniable", "anonymized_first_attempt", "sampling_privacy_refreshed"}
QUICK_FAMILIES = [name for name in NAMES if name not in SLOW]
TARGETS = {
    "linked, δ": Target(cells=3, population=400, view="linked_reports", epsilon=0.7, delta=0.05),
    "report, pure": Target(cells=3, population=400, occupancy=40, view="report", epsilon=1.0),
    "linked, tiny δ": Target(cells=3, population=400, view="linked_reports", epsilon=1.0, delta=1e-6),
    "an error": Target(cells=3, population=400, view="linked_reports", error=25.0),
}


@cache
def planned(name):
    return {made.name: made for made in plan(TARGETS[name]).plans}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "linked, tiny δ")) for name in TARGETS]
)
def test_plans_spend_the_target(name):
    """By the mechanisms' own claims, which `test_claims_by_enumeration` compares with what is enumerated."""
    target = TARGETS[name]
    for family, made in planned(name).items():
        if not made.meets or made.release is not None or made.aggregation is not None:
            continue
        epsilon = made.epsilon if target.epsilon is None else target.epsilon
        reports = [LinkedReports()]
        if target.view == "report":
            reports = [Report(round_) for round_ in range(1, made.mechanism.rounds + 1)]
        claims = [made.mechanism.claim(view) for view in reports]
        delta, always = (
            max(found) for found in ([claim.delta(epsilon) for claim in claims], [c.epsilon for c in claims])
        )
        if target.error is not None:
            assert 0.98 * target.error < made.std_error <= target.error * (1 + 1e-9), family
            assert not math.isfinite(made.epsilon) or delta <= target.delta + 1e-6, family
            assert math.isfinite(made.epsilon) or target.delta > 0.0 or math.isinf(always), family
            continue
        assert delta <= target.delta, family
        # The target is used up: less noise would violate it. (Coins with equal probabilities stop short of it.)
        used = delta / target.delta if target.delta else always / target.epsilon
        # A tiny δ is below the resolution of the parameter: then ε itself is used up.
        spent = used > 0.98 or (target.delta < 1e-5 and always > 0.999 * target.epsilon)
        # Where what is published is covered too, that may be what is used up.
        assert spent or made.std_error < 1e-9 or made.covers[-1].startswith("released"), family


PUBLISHED = Target(cells=5, population=3000, view="released", epsilon=1.0, delta=1e-4)


@pytest.mark.parametrize("name", ["linked, δ", "an error"])
def test_planned_error_is_that_of_the_mechanism(name):
    """Which `test_mechanism_theory` simulates; with the range of the error that a run shows."""
    target = TARGETS[name]
    made = [one for one in planned(name).values() if one.meets and one.release is None and one.aggregation is None]
    assert len(made) > 12
    for one in made:
        assert one.std_error == pytest.approx(one.mechanism.std_error(planned_truth(target))[0], rel=1e-9), one.name
        shown = error_interval(one.std_error, cells=target.simulated, excess=excess_kurtosis(one.mechanism, target))
        assert one.error_interval == pytest.approx(shown, rel=1e-12)


@pytest.mark.parametrize(
    "family",
    ["sampling_privacy_suppressed", "sample_then_suppress", "laplace_counts", "server_noise", "gaussian_counts"],
)
def test_simulated_release_error_equals_the_planned_error(family):
    target, rng, repeats = PUBLISHED, np.random.default_rng(3), 3000
    [one] = (
        plan(target, [family]).plans
        if family != "sampling_privacy_suppressed"
        else [made for made in plan(target, [family]).plans if made.name == family]
    )
    counts = np.full(repeats, target.expected)
    if family == "laplace_counts":
        errors = one.mechanism.release.publish(counts, rng=rng).count - counts
    elif one.aggregation is not None:
        servers = one.aggregation.get("servers", 1)
        errors = sum(draw_noise(one.mechanism.noise, repeats, rng=rng) for _ in range(servers))
    else:
        sampling = {**one.parameters, **one.release}["sampling"]
        seen = rng.binomial(counts, sampling)
        errors = np.where(seen >= one.release["k"], seen / sampling, 0.0) - counts
    squares = errors**2
    spread = squares.std() / math.sqrt(repeats)
    assert abs(squares.mean() - one.std_error**2) < 5.5 * spread


@pytest.mark.parametrize("name", ["released", "shuffled", "released_counts"])
def test_plans_for_aggregate_views_meet_their_proved_bounds(name):
    target = Target(cells=4, population=5000, view=name, epsilon=0.8, delta=1e-5)
    shares = []
    plans = plan(target, QUICK_FAMILIES, progress=shares.append).plans
    assert shares == [1 / len(plans)] * len(plans)
    made = [one for one in plans if one.meets]
    assert len(made) > 10
    for one in made:
        if one.release is not None:
            continue
        views = target.views(
            rounds=one.mechanism.rounds, differences="differences" in str([c.view for c in one.claims])
        )
        for view in views:
            assert bound_view(one.mechanism, view, devices=target.population).delta(0.8) <= 1e-5


def test_a_plan_searches_the_worst_two_crowds_few_times():
    """Each search takes a hundred times as long as the approximation that the planner uses."""
    worst_move_delta.cache_clear()
    target = Target(cells=100, population=100_000, view="released", epsilon=1.0, delta=1e-6, k=300)
    made = plan(target, ["sampling_privacy"]).plans[0]
    assert made.meets
    assert worst_move_delta.cache_info().misses <= 4  # to set π_s; its claims have been searched by then


def test_left_out_mechanisms_are_not_the_best():
    target = Target(cells=20, population=20_000, view="released", epsilon=1.0, delta=1e-6, queries=4)
    names = ("laplace_counts", "sampling_privacy", "randomized_response", "oue", "sue", "hadamard_response")
    whole, part = (plan(target, names, claims=False, best_only=only) for only in (False, True))
    for made in ("best", "best_without_crowd"):
        assert getattr(part, made).name == getattr(whole, made).name
        assert getattr(part, made).std_error == pytest.approx(getattr(whole, made).std_error, rel=1e-3)
    assert [made.name for made in part.plans] == [made.name for made in whole.plans]
    assert sum(made.meets for made in part.plans) < sum(made.meets for made in whole.plans)


def test_a_search_goes_on_beyond_what_clones_allow():
    """Clones allow ε₀ = 3.49; stronger clones more, where a report's two distributions are near each other."""
    target = Target(cells=300, population=200_000, view="shuffled", epsilon=1.0, delta=1e-6, queries=96)
    [made] = plan(target, ["hadamard_response"], claims=False).plans
    assert made.parameters["epsilon"] > 4.5
    assert made.std_error < 455


def test_starting_points_of_a_search_are_a_sobol_sequence():
    for size in range(3, 8):
        points = qmc.Sobol(size, scramble=False).random(SPREAD_POINTS)
        expected = np.clip(1.67 * points - 0.335, 0.0, 1.0)
        np.testing.assert_array_equal(np.array(list(spread_out(size))), expected)
