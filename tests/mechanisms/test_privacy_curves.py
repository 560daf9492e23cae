"""δ(ε): the hockey stick, published differences, dominating pairs and composition, against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference_divergences import composed_delta, matrix_delta
from scipy.stats import binom

from mechanisms.local import BinarySamplingPrivacy, ParameterError, SamplingPrivacy
from mechanisms.privacy import (
    ReleasedCounts,
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


@pytest.mark.parametrize("crowd", range(1, 13))
def test_released_differences_equal_enumeration(crowd):
    for sampling in (0.05, 0.2, 0.45, 0.5, 0.9, 1.0):
        present, absent = binomials(crowd, sampling)
        for epsilon in (0.0, 0.01, 0.1, 0.3, 0.5, -math.log1p(-0.45), 1.0, 2.0, 5.0, 20.0, math.inf):
            exact = released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon)
            assert exact == pytest.approx(pair_delta(present, absent, epsilon=epsilon), abs=1e-12)
            assert exact >= sampling**crowd * (1 - 1e-12)


def test_released_differences_of_two_devices():
    """n = 2, β = .45, ε = .1: .2025 in one direction and .2157 in the other, the larger being the claim."""
    present, absent = binomials(2, 0.45)
    assert round(hockey_stick(present, absent, epsilon=0.1), 4) == 0.2025
    assert round(hockey_stick(absent, present, epsilon=0.1), 4) == 0.2157
    assert round(released_differences_delta(crowd=2, sampling=0.45, epsilon=0.1), 4) == 0.2157
    assert released_differences_delta(crowd=1, sampling=0.45, epsilon=3.0) == 0.45
    assert round(released_differences_delta(crowd=5, sampling=0.45, epsilon=0.5), 3) == 0.064


@pytest.mark.parametrize("crowd", range(1, 13))
def test_suppressed_differences_equal_enumeration(crowd):
    for sampling in (0.05, 0.2, 0.45, 0.9, 1.0):
        for k in (1, 2, 5, 12, 13):
            present, absent = (np.append(row[:k].sum(), row[k:]) for row in binomials(crowd, sampling))
            for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 5.0, math.inf):
                exact = released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon, k=k)
                assert exact == pytest.approx(pair_delta(present, absent, epsilon=epsilon), abs=1e-12)


def test_the_worst_crowd_under_suppression():
    """Smaller than LQS theorem 5 (8.0e-6 and 6.5e-4), and the maximum over far more crowds than were searched."""
    assert f"{worst_crowd_delta(k=20, sampling=0.2, epsilon=0.5):.1e}" == "3.1e-07"
    assert f"{worst_crowd_delta(k=10, sampling=0.3, epsilon=1.0):.1e}" == "9.1e-05"
    crowds = (released_differences_delta(crowd=n, sampling=0.3, epsilon=0.7, k=4) for n in range(1, 300))
    assert worst_crowd_delta(k=4, sampling=0.3, epsilon=0.7) == max(crowds)


def test_larger_crowds_hide_more():
    deltas = [released_differences_delta(crowd=n, sampling=0.45, epsilon=0.2) for n in range(1, 200)]
    assert all(one >= other * (1 - 1e-12) for one, other in itertools.pairwise(deltas))


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


def test_released_differences_of_ten_million_devices():
    deltas = [released_differences_delta(crowd=10**7, sampling=0.45, epsilon=e) for e in (0.0, 1e-4, 1e-3, 1e-2, 1.0)]
    assert all(a > b for a, b in itertools.pairwise(deltas[:4]))
    assert deltas[-1] == 0.0
    # At ε = 0 it is the total variation distance, which is β times the mode of Bin(n − 1, β).
    assert deltas[0] == pytest.approx(0.45 / math.sqrt(2 * math.pi * 10**7 * 0.45 * 0.55), rel=1e-5)


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


def counts_distribution(mechanism, truth):
    """Both rounds' whole count vectors of a few devices, by enumerating all their draws: {outcome: probability}."""
    distribution = {(): 1.0}
    single = {}
    if isinstance(mechanism, SamplingPrivacy):
        faces = [("S", mechanism.sampling), *enumerate(mechanism.blanks)]
        throws = [((face,), p) for face, p in faces]
    else:
        zero, one, sampling = mechanism.faces
        faces = (("S", sampling), (0, zero), (1, one))
        throws = [
            (tuple(f for f, _ in combination), math.prod(p for _, p in combination))
            for combination in itertools.product(faces, repeat=mechanism.cells)
        ]
    for cell in set(truth):
        single[cell] = {}
        for draws, p in throws:
            if isinstance(mechanism, SamplingPrivacy):
                sent = [0 if draws[0] == "S" else draws[0], cell if draws[0] == "S" else draws[0]]
                vector = np.concatenate([np.eye(mechanism.cells + 1, dtype=int)[value] for value in sent])
            else:
                first = [int(face == 1) for face in draws]
                second = [int(face == 1 or (face == "S" and v == cell)) for v, face in enumerate(draws, start=1)]
                vector = np.array(first + second)
            key = tuple(vector.tolist())
            single[cell][key] = single[cell].get(key, 0.0) + p
    distribution = {(0,) * len(key): 1.0}
    for cell in truth:
        summed = {}
        for (a, p), (b, q) in itertools.product(distribution.items(), single[cell].items()):
            key = tuple(x + y for x, y in zip(a, b, strict=True))
            summed[key] = summed.get(key, 0.0) + p * q
        distribution = summed
    return distribution


@pytest.mark.parametrize(
    "mechanism",
    [
        SamplingPrivacy(cells=1, sampling=0.45, blank_zero=0.1),
        SamplingPrivacy(cells=1, sampling=0.45, blank_zero=0.0),
        SamplingPrivacy(cells=2, sampling=0.3),
        BinarySamplingPrivacy(cells=1, sampling=0.45),
        BinarySamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("others", [(), (0,), (1, 0)])
def test_released_counts_equal_enumeration(mechanism, others):
    """Exact if no other device was asked, in the cell or outside; a bound otherwise."""
    for crowd in (1, 2, 3):
        cell = mechanism.cells
        rest = [cell] * (crowd - 1) + [o for o in others if o != cell]
        present, absent = counts_distribution(mechanism, [cell, *rest]), counts_distribution(mechanism, [0, *rest])
        outcomes = sorted(present.keys() | absent.keys())
        p, q = (
            np.array([distribution.get(outcome, 0.0) for outcome in outcomes]) for distribution in (present, absent)
        )
        claim = mechanism.claim(ReleasedCounts(crowd=crowd))
        assert (claim.kind, claim.delta_kind) == ("infinite", "bound")
        for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0, math.inf):
            exact = pair_delta(p, q, epsilon=epsilon)
            assert claim.delta(epsilon) >= exact - 1e-12
            if len(rest) == crowd - 1:
                assert claim.delta(epsilon) == pytest.approx(exact, abs=1e-12)


def test_released_counts_reveal_more_than_differences():
    """One cell of n = 5, β = .45, ε = .5, none outside: .145 with π_0 = .1, .45 with π_0 = 0, .064 by differences."""
    for blank_zero, delta in ((0.1, 0.145), (0.0, 0.45)):
        mechanism = SamplingPrivacy(cells=1, sampling=0.45, blank_zero=blank_zero)
        assert round(mechanism.claim(ReleasedCounts(crowd=5)).delta(0.5), 3) == delta
        assert round(mechanism.claim(ReleasedDifferences(crowd=5)).delta(0.5), 3) == 0.064
    mechanism = SamplingPrivacy(cells=1, sampling=0.45)
    deltas = [mechanism.claim(ReleasedCounts(crowd=n)).delta(0.3) for n in (5, 50, 1000, 10**6)]
    assert deltas[0] > deltas[1] > deltas[2] > 1e-29 > deltas[3] > 0.0
    two = mechanism.claim(ReleasedCounts(crowd=50, queries=2))
    assert mechanism.claim(ReleasedCounts(crowd=50)).delta(0.6) < two.delta(0.6) < 2 * deltas[1]
    assert SamplingPrivacy(cells=1, sampling=1.0).claim(ReleasedCounts(crowd=3)).delta(2) == 1.0
