"""The search for minimal-variance parameters (ALP def 2, eq 5): degenerate as published, known answers otherwise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import anonymized_local

from mechanisms.local import NotEstimableError, ParameterError, minimal_variance_parameters
from mechanisms.privacy import LinkedReports, Report


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, math.inf])
def test_equation_5_as_published_is_degenerate(epsilon):
    """Its minimum is 0, where Yes never occurs: a perfect ε and no estimate."""
    found = minimal_variance_parameters(epsilon, objective="printed")
    assert found.variance == 0.0
    yes, no = found.mechanism.binary_query.in_round(1)
    assert yes[1] * (1 - yes[1]) == no[1] * (1 - no[1]) == 0.0
    if epsilon < math.inf:
        assert found.mechanism.claim(Report(1)).epsilon == 0.0
        with pytest.raises(NotEstimableError):
            found.mechanism.std_error(np.array([1, 1]))


def test_minimal_variance_without_target_is_degenerate():
    """All devices answer truthfully."""
    found = minimal_variance_parameters(math.inf)
    assert found.variance == 0.0
    assert found.mechanism.claim(Report(1)).kind == "infinite"


def test_epsilon_zero_allows_no_estimate():
    assert minimal_variance_parameters(0.0).variance == math.inf
    assert minimal_variance_parameters(0.0, cells=5).variance == math.inf


@settings(max_examples=15)
@given(epsilon=st.floats(0.05, 8.0), share=st.floats(0.01, 0.99), estimator=st.sampled_from(["yes", "best"]))
def test_one_cell_optimum_is_warners_randomized_response(epsilon, share, estimator):
    """For any share: p = e^ε/(e^ε + 1), and ⊥ is not used although it is available."""
    found = minimal_variance_parameters(epsilon, yes_share=share, estimator=estimator)
    truthful = math.exp(epsilon) / (1 + math.exp(epsilon))
    expected = truthful * (1 - truthful) / (2 * truthful - 1) ** 2
    assert found.variance == pytest.approx(expected, rel=1e-6)
    yes, no = found.mechanism.binary_query.in_round(1)
    np.testing.assert_allclose(yes, [1 - truthful, truthful, 0], atol=1e-7)
    np.testing.assert_allclose(no, [truthful, 1 - truthful, 0], atol=1e-7)
    assert found.mechanism.claim(Report(1)).epsilon == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_many_cell_optimum_is_optimised_unary_encoding(epsilon):
    """p = ½, q = 1/(e^ε + 1), variance 4e^ε/(e^ε − 1)² per device, as the share of each cell goes to 0."""
    found = minimal_variance_parameters(epsilon, cells=1000, yes_share=1e-9)
    assert found.variance == pytest.approx(4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2, rel=1e-6)
    yes, no = found.mechanism.binary_query.in_round(1)
    assert yes[1] == pytest.approx(0.5, abs=1e-3)
    assert no[1] == pytest.approx(1 / (math.exp(epsilon) + 1), abs=1e-3)
    assert found.mechanism.claim(LinkedReports()).epsilon == pytest.approx(epsilon, abs=1e-6)


@settings(max_examples=15)
@given(
    epsilon=st.floats(0.2, 4.0),
    share=st.floats(0.05, 0.95),
    most=st.floats(0.05, 1.0),
    cells=st.sampled_from([1, 4]),
    estimator=st.sampled_from(["yes", "no", "silent", "best"]),
    seed=st.integers(0, 2**32),
)
def test_no_mechanism_within_the_target_has_less_variance(epsilon, share, most, cells, estimator, seed):
    """Against random mechanisms scaled to meet ε and the sampling bound."""
    found = minimal_variance_parameters(epsilon, cells=cells, yes_share=share, most_sampled=most, estimator=estimator)
    assert found.mechanism.claim(Report(1)).epsilon <= epsilon + 1e-5
    rates = 1 - np.array(found.mechanism.binary_query.in_round(1))[:, 2]
    assert (rates <= most + 1e-8).all()
    devices = 10**6
    inside = round(share * devices)
    true_counts = np.array([devices - inside] + [inside] + [0] * (cells - 1))
    assert found.mechanism.std_error(true_counts)[0] == pytest.approx(found.std_error(devices), rel=1e-3)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        distributions = rng.dirichlet([1.0, 1.0, 1.0], size=2)
        blend = 1.0
        while blend > 1e-3:
            p, q = blend * distributions[0] + (1 - blend) * distributions[1], distributions[1]
            p, q = (np.append(most * x[:2], 1 - most * x[:2].sum()) for x in (p, q))
            up, down = np.log(p / q).max(), np.log(q / p).max()
            if (up + down if cells > 1 else max(up, down)) <= epsilon:
                break
            blend *= 0.8
        probabilities = p[:2].sum(), 0.0, q[:2].sum(), p[1] / p[:2].sum(), 0.0, q[1] / q[:2].sum()
        other = anonymized_local(*probabilities, cells=cells, estimator=estimator, yes_share=share)
        try:
            error = other.std_error(true_counts)[0]
        except NotEstimableError:
            continue
        assert found.std_error(devices) <= error * (1 + 1e-3)


def test_few_sampled_and_many_cells_give_sampling_and_noise():
    """With 5 % sampled, No-holders answer Yes or ⊥: ALP eq 2 as in its text, and never No."""
    found = minimal_variance_parameters(2.0, cells=1000, most_sampled=0.05)
    yes, no = found.mechanism.binary_query.in_round(1)
    np.testing.assert_allclose(yes, [0.0, 0.05, 0.95], atol=1e-9)
    assert no[0] == pytest.approx(0.0, abs=1e-9)
    assert 0 < no[1] < 0.05


@pytest.mark.parametrize(
    ("epsilon", "change", "message"),
    [
        (-1.0, {}, "epsilon must be a number of at least 0"),
        (float("nan"), {}, "epsilon must be a number of at least 0"),
        (1.0, {"cells": 0}, "cells must be at least 1"),
        (1.0, {"yes_share": 0.0}, "yes_share must be between 0 and 1"),
        (1.0, {"most_sampled": 0.0}, "most_sampled must be a probability above 0"),
        (1.0, {"estimator": "mean"}, "estimator must be one of"),
        (1.0, {"objective": "both"}, "objective must be one of estimate, printed"),
    ],
)
def test_invalid_targets_are_refused(epsilon, change, message):
    with pytest.raises(ParameterError, match=rf"^{message}"):
        minimal_variance_parameters(epsilon, **change)
