"""Plans meet their targets: by the mechanisms' own claims, by enumerated reports, and by simulation."""

import math
from functools import cache

import numpy as np
import pytest
from mechanism_statistics import estimate_counts

from mechanisms.central.grid_noise import draw_noise
from mechanisms.planning import FAMILIES, Target, plan
from mechanisms.planning.candidate import bound_view
from mechanisms.planning.error_distribution import error_interval, excess_kurtosis
from mechanisms.planning.plan import _plan
from mechanisms.privacy import LinkedReports, Report

NAMES = [family.name for family in FAMILIES]
# Many parameters take seconds for views of all devices; linked and single reports of these families are planned below.
SLOW = {"anonymized_deniable", "anonymized_first_attempt", "sampling_privacy_refreshed"}
QUICK = [name for name in NAMES if name not in SLOW]
TARGETS = {
    "linked, δ": Target(cells=3, population=400, view="linked_reports", epsilon=0.7, delta=0.05),
    "report, pure": Target(cells=3, population=400, occupancy=40, view="report", epsilon=1.0),
    "linked, tiny δ": Target(cells=3, population=400, view="linked_reports", epsilon=1.0, delta=1e-6),
    "one cell": Target(cells=1, population=100, view="linked_reports", epsilon=2.0, delta=1e-3),
    "an error": Target(cells=3, population=400, view="linked_reports", error=25.0),
}


@cache
def planned(name):
    return {made.name: made for made in plan(TARGETS[name]).plans}


@pytest.mark.parametrize("name", TARGETS)
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


def simulate(mechanism, target, repeats, rng):
    received = (target.population,) * mechanism.rounds
    tallies = [mechanism.sample_counts(target.truth, rng=rng) for _ in range(repeats)]
    errors = estimate_counts(mechanism, tallies, counted=received, asked=received)[:, 0] - target.expected
    return math.sqrt(np.mean(np.square(errors)))


RELEASED = Target(cells=5, population=3000, view="released", epsilon=1.0, delta=1e-4)
SIMULATED = {"linked, δ": TARGETS["linked, δ"], "report, pure": TARGETS["report, pure"], "released": RELEASED}


@pytest.mark.parametrize(
    "name", ["released", *(pytest.param(name, marks=pytest.mark.slow) for name in SIMULATED if name != "released")]
)
def test_simulated_error_equals_the_planned_error(name):
    target, rng, repeats = SIMULATED[name], np.random.default_rng(7), 400
    named = QUICK if target is RELEASED else NAMES
    made = [one for one in plan(target, named, claims=False).plans if one.meets and one.release is None]
    made = [one for one in made if one.aggregation is None]
    assert len(made) > 12
    for one in made:
        excess = excess_kurtosis(one.mechanism, target)
        low, high = error_interval(one.std_error, cells=repeats, excess=excess, level=1 - 1e-6 / len(made))
        found = simulate(one.mechanism, target, repeats, rng)
        assert low <= found <= high, (one.name, found, low, high)
        shown = error_interval(one.std_error, cells=target.simulated, excess=excess)
        assert one.error_interval == pytest.approx(shown, rel=1e-12)


@pytest.mark.parametrize(
    "family",
    ["sampling_privacy_suppressed", "sample_then_suppress", "laplace_counts", "server_noise", "gaussian_counts"],
)
def test_simulated_release_error_equals_the_planned_error(family):
    target, rng, repeats = RELEASED, np.random.default_rng(3), 3000
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
    plans = plan(target, QUICK, progress=shares.append).plans
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
            assert bound_view(one.mechanism, view, devices=target.population).delta(0.8)[0] <= 1e-5


def test_single_plan_equals_the_plan_among_all():
    target = TARGETS["linked, δ"]
    alone = {family.name: _plan(family, target, claims=True) for family in FAMILIES[:3]}
    # As text, since a plan may hold NaN, which equals nothing.
    assert all(repr(alone[name]) == repr(planned("linked, δ")[name]) for name in alone)
