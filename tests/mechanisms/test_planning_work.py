"""The work of a search and of a claim, counted: steps, masses and searches, not seconds."""

import math

import numpy as np
import pytest

from mechanisms.planning import Target, plan
from mechanisms.privacy import released, sum_laws
from mechanisms.privacy.claim import FIRST_STEPS, TwoStepDelta
from mechanisms.privacy.released import worst_move_delta
from mechanisms.privacy.shuffled import CrowdRatioDelta


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 10.0])
def test_two_steps_divide_epsilon_with_few_evaluations(epsilon):
    curve = CrowdRatioDelta(crowd=10_000, up=0.1, still=0.5, up_ratio=0.5, still_ratio=1.1)
    evaluated = []

    def step(value):
        evaluated.append(value)
        return curve(value)

    firsts = [first for first in FIRST_STEPS if first <= epsilon]
    least = min(1.0, *(curve(first) + math.exp(first) * curve(epsilon - first) for first in firsts))
    assert TwoStepDelta(step)(epsilon) == least
    assert len(evaluated) <= max(2, len(firsts))  # without division, two for each


def test_a_curve_of_many_epsilons_computes_each_mass_once(monkeypatch):
    computed = []
    original = released.mass_at

    def mass_at(k, n, p):
        computed.append(np.size(k))
        return original(k, n, p)

    monkeypatch.setattr(released, "mass_at", mass_at)
    released._worst_pair.cache_clear()
    k = 9_840_930_407
    released._worst_pair(k, (k, k + 100), 1.0 - 4.34e-9, 1.0, 1_500)
    assert sum(computed) < 2_000  # of 9,600: three crowds at each of 200 and twice 1,500 ε


def test_the_recurrence_of_a_sum_begins_near_its_window():
    n, p, q = 10**7, 0.6, 0.1
    half = (n * (p * (1 - q) + q * (1 - p)) - (p * (1 - q) + q * (1 - p)) * n * 0.3) / 2.0
    product = (1 - p) * (1 - q) * p * q * (0.3 * n) * (1.7 * n)
    assert sum_laws._lead(half, product) < 100  # instead of 16,384
    assert sum_laws._lead(-1.0, product) == sum_laws.LEAD


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
