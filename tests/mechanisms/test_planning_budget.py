"""Plans that divide the devices among several queries."""

import numpy as np
import pytest

from mechanisms.planning import Target, plan
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, Shuffled

SEED = 3305


def planned(**target):
    return plan(Target(**target), ("population_uniform",)).plans[0]


def test_each_device_gives_the_whole_budget_to_one_answer():
    made = planned(cells=20, population=200_000, queries=96, epsilon=1.0, delta=1e-6)
    assert made.parameters == {"epsilon": 1.0}
    assert made.budget == {"kind": "population_uniform", "window": 96}
    assert made.mechanism.claim(LinkedReports(96)).epsilon == pytest.approx(1.0, rel=1e-12)
    assert made.mechanism.claim(LinkedReports(97)).epsilon == pytest.approx(2.0, rel=1e-12)
    claims = {claim.view: claim.epsilon for claim in made.claims if claim.delta == 0.0}
    assert claims == pytest.approx(dict.fromkeys(claims, 1.0), rel=1e-12)


def test_it_errs_less_than_an_answer_of_every_device_to_every_query():
    target = Target(cells=20, population=200_000, queries=96, epsilon=1.0, delta=1e-6)
    plans = {each.name: each.std_error for each in plan(target, ("population_uniform", "subset_selection")).plans}
    # Without δ: √(T²/T) times; composition with δ = 10⁻⁶ regains part of it.
    assert 2.0 * np.sqrt(2) < plans["subset_selection"] / plans["population_uniform"] < np.sqrt(96)


def test_it_uses_all_devices_once_and_errs_1_186_where_half_of_them_would_err_1_678():
    target = {"cells": 45, "population": 100_000, "occupancy": 2000, "epsilon": 1.0, "queries": 4}
    made = plan(Target(**target), ("population_uniform", "subset_selection", "oue", "k_randomized_response"))
    assert made.best.name == "population_uniform"
    assert made.best.std_error == pytest.approx(1186, abs=0.5)
    half = planned(**{**target, "population": 50_000, "occupancy": 1000})
    assert 2 * half.std_error == pytest.approx(1678, abs=1)


def test_absorption_has_no_plan_since_its_error_depends_on_what_a_target_does_not_state():
    (made,) = plan(Target(cells=20, population=200_000, queries=4, epsilon=1.0), ("population_absorption",)).plans
    assert not made.meets
    assert "depends on how much the counts change" in made.reason


@pytest.mark.parametrize("view", ["released_counts", "shuffled"])
def test_what_is_published_is_that_of_the_devices_that_answer(view):
    """The claim is the mechanism's own for N/w devices and one query, none of them certain to be in the cell."""
    made = planned(cells=3, population=90_001, occupancy=30_000, queries=3, epsilon=0.1, delta=1e-6, view=view)
    own, claim = made.mechanism.budget.mechanism, made.mechanism.claim
    for whole, part in (
        (ReleasedCounts(5_000, 3, 90_001), ReleasedCounts(None, 1, 30_000)),
        (Shuffled(1, 90_001, 3), Shuffled(1, 30_000, 1)),
    ):
        for epsilon in (0.05, 0.1, 1.0):
            assert claim(whole).delta(epsilon) == own.claim(part).delta(epsilon)
    assert own.epsilon > 1.0  # shuffling 30,000 reports hides more than each of them alone
    assert claim(ReleasedCounts(None, 3, 90_001)).delta(0.1) <= 1e-6
    assert claim(ReleasedCounts(None, 4, 90_001)).delta(0.1) > claim(ReleasedCounts(None, 3, 90_001)).delta(0.1)


@pytest.mark.parametrize(("cells", "occupancy"), [(1, 4_000), (40, 300)])
def test_its_error_is_that_of_estimates_from_a_random_part_of_the_devices(cells, occupancy):
    devices, queries, repetitions = 12_000, 4, 600
    made = planned(cells=cells, population=devices, queries=queries, epsilon=1.5, occupancy=occupancy)
    truth = np.full(cells + 1, 0)
    truth[1] = occupancy
    truth[0] = devices - occupancy
    mechanism = made.mechanism.budget.mechanism
    rng = np.random.default_rng(SEED)
    part = devices // queries
    errors = np.empty(repetitions)
    for repetition in range(repetitions):
        answering = rng.multivariate_hypergeometric(truth, part)
        estimate = mechanism.estimate(mechanism.sample_counts(answering, rng=rng), counted=[part], asked=[devices])
        errors[repetition] = estimate.count[0] - occupancy
    # A mean square of n errors varies by √((2 + excess kurtosis)/n) of itself; two cases at five standard deviations.
    spread = np.sqrt((2.0 + made.excess_kurtosis) / repetitions)
    assert np.mean(errors**2) / made.std_error**2 == pytest.approx(1.0, abs=5 * spread)


@pytest.mark.parametrize(
    ("population", "queries", "reason"),
    [
        (1000, 1, "The target is about one query: there are none to divide the devices among."),
        (20, 96, "Of 20 devices, divided over 96 queries, less than one answers each."),
    ],
)
def test_a_target_without_queries_or_devices_to_divide_has_no_plan(population, queries, reason):
    assert planned(cells=2, population=population, queries=queries, epsilon=1.0).reason == reason


def test_the_text_for_a_scenario_has_the_budget_of_the_campaign():
    text = planned(cells=6, population=12_000, queries=4, epsilon=1.5).scenario
    assert '[[campaigns]]\nqueries = 4\n\n[campaigns.budget]\nkind = "population_uniform"\nwindow = 4\n' in text
