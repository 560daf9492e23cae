"""δ(ε): the hockey stick, published differences, dominating pairs and composition, against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference_divergences import composed_delta, matrix_delta
from scipy.stats import binom

from mechanisms.local import ParameterError, SamplingPrivacy
from mechanisms.privacy import (
    ReleasedDifferences,
    dominating_pair,
    hockey_stick,
    pair_delta,
    pair_epsilon,
    released_differences_delta,
    worst_crowd_delta,
)
from mechanisms.privacy.composition import at_least_once


def binomials(crowd, sampling):
    """Bin(n, β) and Bin(n − 1, β) by enumerating the sampled devices, 0…n."""
    rows = []
    for n in (crowd, crowd - 1):
        row = np.zeros(crowd + 1)
        for outcome in itertools.product((0, 1), repeat=n):
            k = sum(outcome)
            row[k] += sampling**k * (1 - sampling) ** (n - k)
        rows.append(row)
    return rows


@pytest.mark.parametrize("crowd", [1, 2, 5, 12])
def test_suppressed_differences_equal_enumeration(crowd):
    for sampling in (0.05, 0.2, 0.45, 0.9, 1.0):
        for k in (1, 2, 5, 12, 13):
            present, absent = (np.append(row[:k].sum(), row[k:]) for row in binomials(crowd, sampling))
            for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 5.0, math.inf):
                exact = released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon, k=k)
                assert exact == pytest.approx(pair_delta(present, absent, epsilon=epsilon), abs=1e-12)


@pytest.mark.parametrize("crowd", [200, 5_000])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.8])
def test_small_released_differences_are_accurate(crowd, epsilon):
    """Against the direct sum over outputs in extended logarithms."""
    sampling = 0.3
    k = np.arange(crowd + 1)
    one, other = binom.logpmf(k, crowd, sampling), binom.logpmf(k, crowd - 1, sampling)
    best = 0.0
    for p, q in ((one, other), (other, one)):
        gain = p - q - epsilon
        telling = gain > 0
        best = max(best, math.fsum(np.exp(p[telling]) * -np.expm1(-gain[telling])))
    assert released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("crowd", "sampling", "epsilon", "field"),
    [
        (0, 0.4, 1, "crowd"),
        (2.5, 0.4, 1, "crowd"),
        (2, 0, 1, "sampling"),
        (2, 0.4, -1, "epsilon"),
        (2, 0.4, math.nan, "epsilon"),
    ],
)
def test_invalid_released_differences_are_refused(crowd, sampling, epsilon, field):
    with pytest.raises(ParameterError, match=rf"^{field} must"):
        released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon)


def test_claim_of_released_differences():
    mechanism = SamplingPrivacy(cells=5, sampling=0.45)
    claim = mechanism.claim(ReleasedDifferences(crowd=2))
    assert (claim.kind, claim.delta_kind) == ("infinite", "exact")
    assert round(claim.delta(0.1), 4) == 0.2157
    present, absent = binomials(3, 0.45)
    for trajectories in ([(present, present), (absent, absent)], [(present, absent), (absent, present)]):
        rows = [np.outer(a, b).ravel() for a, b in trajectories]
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            for view in (ReleasedDifferences(crowd=3, queries=2),):
                over_two = mechanism.claim(view)
                assert over_two.delta_kind == "bound"
                assert over_two.delta(epsilon) >= matrix_delta(rows, epsilon=epsilon) - 1e-9
    # A crowd is at least so many: five devices or more may be published.
    assert mechanism.claim(ReleasedDifferences(crowd=4, k=5)).delta(1.0) == worst_crowd_delta(
        k=5, sampling=0.45, epsilon=1.0
    )
    suppressed = mechanism.claim(ReleasedDifferences(crowd=30, k=5))
    assert (suppressed.kind, suppressed.delta_kind) == ("infinite", "exact")
    assert suppressed.delta(1.0) <= mechanism.claim(ReleasedDifferences(crowd=30)).delta(1.0)
    for queries in (2, 5):
        view = ReleasedDifferences(crowd=30, k=5, queries=queries)
        assert suppressed.delta(0.5) <= mechanism.claim(view).delta(0.5) <= queries * suppressed.delta(0.5 / queries)
    large = mechanism.claim(ReleasedDifferences(crowd=10**6, queries=3))
    assert large.delta(0.03) == 3 * released_differences_delta(crowd=10**6, sampling=0.45, epsilon=0.01)
    assert SamplingPrivacy(cells=2, sampling=1.0).claim(ReleasedDifferences(crowd=2)).delta(5) == 1.0


distributions = st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.3, 1.0]), min_size=4, max_size=4).filter(
    lambda w: sum(w) > 0
)


def normal(weights):
    return np.array(weights) / sum(weights)


@given(weights=st.lists(distributions, min_size=4, max_size=4), x=st.floats(0, 6))
@example(weights=[[0, 0.1, 0.1, 0.1], [0, 0, 0.01, 0.3], [0, 0.01, 0, 0.3], [0, 0, 0.1, 0.3]], x=1.0)  # as high near 0
def test_dominating_pairs_equal_the_maximum_of_their_pairs(weights, x):
    """At every likelihood ratio, including those below 1."""
    a, b, c, d = map(normal, weights)
    pairs = [(a, b), (b, a), (c, d)]
    p, q = dominating_pair(pairs)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    most = max(np.maximum(one - x * other, 0).sum() for one, other in pairs)
    assert np.maximum(p - x * q, 0).sum() == pytest.approx(most, abs=1e-9)


def test_dominating_pair_of_binomials():
    present, absent = binomials(8, 0.45)
    p, q = dominating_pair([(present, absent), (absent, present)])
    for epsilon in (0.0, 0.1, 0.4, 1.0, 3.0):
        larger = released_differences_delta(crowd=8, sampling=0.45, epsilon=epsilon)
        assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(larger, abs=1e-12)


@given(weights=distributions, other=distributions, epsilon=st.floats(0, 3))
def test_hockey_stick_equals_the_best_test(weights, other, epsilon):
    """Over every set of outputs, P[S] − e^ε Q[S] is at most δ, and attains it."""
    p, q = normal(weights), normal(other)
    sets = [np.array(s, dtype=bool) for s in itertools.product((0, 1), repeat=4)]
    best = max(p[s].sum() - math.exp(epsilon) * q[s].sum() for s in sets)
    assert hockey_stick(p, q, epsilon=epsilon) == pytest.approx(best, abs=1e-12)


def test_hockey_stick_refuses_invalid_distributions():
    for bad in ([0.5, 0.4], [1.2, -0.2], [math.nan, 1.0], []):
        with pytest.raises(ParameterError, match=r"^p must"):
            hockey_stick(bad, [0.5, 0.5], epsilon=1)
    with pytest.raises(ParameterError, match=r"^q must have the outputs of p"):
        hockey_stick([0.5, 0.5], [1.0], epsilon=1)
    assert hockey_stick([0.5, 0.5], [1.0, 0.0], epsilon=math.inf) == 0.5
    assert pair_epsilon([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_composition_is_a_tight_bound_of_the_product(queries):
    """Both directions: the pair is asymmetric, and the accountant's default would take the smaller one."""
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.2, 0.3, 0.4, 0.1])
    one, other = p, q
    for _ in range(queries - 1):
        one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
    for epsilon in (0.0, 0.2, 0.9, 2.0, math.inf):
        exact = pair_delta(one, other, epsilon=epsilon)
        for a, b in ((p, q), (q, p)):
            bound = composed_delta(a, b, queries=queries, epsilon=epsilon)
            assert exact - 1e-9 <= bound <= exact + queries * 1e-4 + 1e-9


def test_an_event_happens_at_least_once_in_some_query():
    """A certain one in the first already, a rare one with the digits of its probability."""
    assert at_least_once(0.3, 1) == 0.3
    assert at_least_once(0.5, 3) == pytest.approx(0.875, rel=1e-15)
    assert at_least_once(1e-20, 10**6) == pytest.approx(1e-14, rel=1e-12)
    assert [at_least_once(1.0, queries) for queries in (1, 5)] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("p", "q", "queries"),
    [([0, 1], [1, 0], 1), ([0, 1], [1, 0], 3), ([1e-200, 1], [1, 0], 2), ([0.9, 0.1], [0.0, 1.0], 40)],
)
def test_composition_of_fully_distinguishable_pairs(p, q, queries):
    """The accountant raises on a pair whose losses are all infinite, or almost surely one of them."""
    for epsilon in (0.0, 1.0, 50.0, math.inf):
        assert composed_delta(p, q, queries=queries, epsilon=epsilon) == pytest.approx(1.0, abs=1e-12)
        assert composed_delta(p, p, queries=queries, epsilon=epsilon) == pytest.approx(0.0, abs=1e-12)
