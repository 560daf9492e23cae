"""The exact δ(ε) and composition of this package against dp-accounting's randomized response and accountant."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from reference_divergences import composed_delta, matrix_delta, matrix_epsilon

from mechanisms.local import BinarySamplingPrivacy, SamplingPrivacy
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.privacy import LinkedReports, Report, hockey_stick

INTERVAL = 1e-4
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def response(noise, buckets):
    """The matrix of dp-accounting's randomized response: with `noise` a uniform bucket, otherwise the truth."""
    return np.full((buckets, buckets), noise / buckets) + (1 - noise) * np.eye(buckets)


@pytest.mark.parametrize(("noise", "buckets"), [(0.5, 2), (0.2, 2), (0.7, 5), (0.05, 10)])
def test_randomized_response(noise, buckets):
    peer = pld.from_randomized_response(noise, buckets, value_discretization_interval=INTERVAL)
    matrix = response(noise, buckets)
    for epsilon in EPSILONS:
        exact = matrix_delta(matrix, epsilon=epsilon)
        assert exact - 1e-9 <= peer.get_delta_for_epsilon(epsilon) <= exact + 2 * INTERVAL
    assert peer.get_epsilon_for_delta(0.0) == pytest.approx(matrix_epsilon(matrix), abs=2 * INTERVAL)


@pytest.mark.parametrize("queries", [2, 5, 20])
@pytest.mark.parametrize(("noise", "buckets"), [(0.5, 2), (0.7, 5)])
def test_composed_randomized_response(noise, buckets, queries):
    peer = pld.from_randomized_response(noise, buckets, value_discretization_interval=INTERVAL).self_compose(queries)
    p, q = response(noise, buckets)[:2]
    for epsilon in EPSILONS:
        assert composed_delta(p, q, queries=queries, epsilon=epsilon) == pytest.approx(
            peer.get_delta_for_epsilon(epsilon), abs=queries * INTERVAL
        )


@pytest.mark.parametrize("queries", [1, 3])
def test_the_claim_of_k_ary_randomized_response(queries):
    mechanism = KRandomizedResponse(cells=4, epsilon=1.3)
    claim = mechanism.claim(LinkedReports(queries=queries))
    noise = 1 - (math.exp(1.3) - 1) / (math.exp(1.3) + 4)
    peer = pld.from_randomized_response(noise, 5, value_discretization_interval=INTERVAL).self_compose(queries)
    assert claim.epsilon == pytest.approx(queries * 1.3)
    for epsilon in EPSILONS:
        assert claim.delta(epsilon) == pytest.approx(peer.get_delta_for_epsilon(epsilon), abs=queries * 2 * INTERVAL)


def test_round_two_of_sampling_privacy_is_randomized_response():
    """Equal blanks, π_0 among them: with π_s the truth, otherwise one of V + 1 symbols uniformly."""
    claim = SamplingPrivacy(cells=4, sampling=0.45).claim(Report(2))
    peer = pld.from_randomized_response(0.55, 5, value_discretization_interval=INTERVAL)
    for epsilon in EPSILONS:
        assert claim.delta(epsilon) == pytest.approx(peer.get_delta_for_epsilon(epsilon), abs=2 * INTERVAL)


def test_accountant_default_uses_one_direction_for_both():
    """An asymmetric pair: `symmetric=True` takes the smaller of its directions, this package composes the larger."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.3, 0.6])
    p, q = (p, q) if hockey_stick(p, q, epsilon=1.2) < hockey_stick(q, p, epsilon=1.2) else (q, p)
    masses = [{i: math.log(m) for i, m in enumerate(distribution)} for distribution in (q, p)]
    trapped = pld.from_two_probability_mass_functions(*masses, value_discretization_interval=INTERVAL)
    right = pld.from_two_probability_mass_functions(*masses, value_discretization_interval=INTERVAL, symmetric=False)
    larger = max(hockey_stick(p, q, epsilon=1.2), hockey_stick(q, p, epsilon=1.2))
    assert trapped.get_delta_for_epsilon(1.2) < larger - 0.01
    assert right.get_delta_for_epsilon(1.2) == pytest.approx(larger, abs=2 * INTERVAL)
    assert composed_delta(p, q, queries=1, epsilon=1.2) == pytest.approx(larger, abs=2 * INTERVAL)
    assert composed_delta(q, p, queries=1, epsilon=1.2) == pytest.approx(larger, abs=2 * INTERVAL)


def test_binary_sampling_composition_equals_the_accountant():
    mechanism = BinarySamplingPrivacy(cells=1, sampling=0.4, blank_zero=0.2)
    zero, one, sampling = mechanism.faces
    yes, no = np.array([zero, one + sampling]), np.array([zero + sampling, one])
    for a, b in ((yes, no), (no, yes)):
        masses = [{i: math.log(m) for i, m in enumerate(distribution)} for distribution in (b, a)]
        peer = pld.from_two_probability_mass_functions(
            *masses, value_discretization_interval=INTERVAL, symmetric=False
        ).self_compose(3)
        claim = mechanism.claim(Report(2, queries=3))
        for epsilon in EPSILONS:
            assert claim.delta(epsilon) >= peer.get_delta_for_epsilon(epsilon) - 3 * INTERVAL
