"""The baselines' claims: what they state, and shares of Laplace noise against their distribution."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ldp_baseline_cases import BASELINES, unary_matrix
from reference_divergences import composed_delta, matrix_epsilon

from mechanisms.local import ParameterError
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled
from mechanisms.privacy.report_claims import EXACT_QUERIES, MirrorDelta, mirror_claim
from mechanisms.privacy.rounding import rounded_up


@pytest.mark.parametrize("kind", [SymmetricUnary, OptimisedUnary, ThresholdHistogram])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_unary_claim_states_both_moves(kind, epsilon):
    """Between cells two bits change, to outside one; the claim is the worse of the two and states both."""
    baseline = kind(cells=3, epsilon=epsilon)
    matrix = unary_matrix(baseline.true_yes, baseline.false_yes, 3)
    bit = baseline.bit
    between = math.log1p(bit.apart / bit.false_yes) + math.log1p(bit.apart / bit.true_no)
    to_outside = math.log1p(bit.apart / min(bit.false_yes, bit.true_no))
    assert between == pytest.approx(matrix_epsilon(matrix[1:]), rel=1e-9)
    assert to_outside == pytest.approx(matrix_epsilon(matrix[:2]), rel=1e-9)
    assert to_outside < between
    claim = baseline.claim(Report(1))
    assert claim.epsilon == between
    assert rounded_up(to_outside, 6) in claim.basis
    if kind is ThresholdHistogram:
        assert claim.epsilon < epsilon
    else:
        outside = {SymmetricUnary: epsilon / 2, OptimisedUnary: math.log((math.exp(epsilon) + 1) / 2)}[kind]
        assert to_outside == pytest.approx(outside, rel=1e-9)
        assert claim.epsilon == pytest.approx(epsilon, rel=1e-12)


@given(share=st.floats(0.01, 1.0), epsilon=st.floats(0.1, 3.0), queries=st.integers(2, 30))
@settings(max_examples=15, deadline=None)
def test_mirror_delta_agrees_with_the_accountant(share, epsilon, queries):
    telling = share / (1 + math.exp(-epsilon))
    exact, pair = MirrorDelta(telling, epsilon, queries)(1.0), MirrorDelta(telling, epsilon).pair
    assert exact <= composed_delta(*pair, queries=queries, epsilon=1.0) + 1e-12
    # The bound adds that of the transforms' rounding errors: 32·2⁻⁵³·(log₂ N + 5)·(T + 1)·N for N ≤ 2¹⁴ and T ≤ 30.
    assert exact >= composed_delta(*pair, queries=queries, epsilon=1.0 + 2e-4 * queries) - 4e-8


def test_delta_over_many_queries_is_a_bound():
    claim = mirror_claim(distinguishing=0.02, epsilon=0.1, queries=EXACT_QUERIES + 1, source="x")
    exact = MirrorDelta(0.02, 0.1, EXACT_QUERIES + 1)
    assert (claim.kind, claim.delta_kind) == ("exact", "bound")
    assert exact(2.0) <= claim.delta(2.0) <= exact(1.5)
    assert exact(math.inf) == 0.0


def noise_distribution(alpha, share, reach):
    """The distribution of NB(r) − NB(r) on −reach…reach, by summing products."""
    terms = np.empty(40 * reach)
    terms[0] = (1 - alpha) ** share
    for j in range(len(terms) - 1):
        terms[j + 1] = terms[j] * alpha * (share + j) / (j + 1)
    half = [math.fsum(terms[: len(terms) - k] * terms[k:]) for k in range(reach + 1)]
    return np.array(half[:0:-1] + half)


@pytest.mark.parametrize("devices", [1, 50, 10**5])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_laplace_share_report_claim_equals_its_distribution(devices, epsilon):
    baseline = DistributedLaplace(cells=2, epsilon=epsilon, devices=devices)
    claim = baseline.claim(Report(1))
    distribution = noise_distribution(baseline.alpha, 1 / devices, 150)
    p, q = np.append(0.0, distribution), np.append(distribution, 0.0)
    ratios = np.log(p[1:-1]) - np.log(q[1:-1])
    assert claim.kind == "exact"
    assert claim.epsilon == pytest.approx(2 * ratios.max(), rel=1e-9)
    assert claim.epsilon >= epsilon * (1 - 1e-12)
    two_p, two_q = np.multiply.outer(p, q).ravel(), np.multiply.outer(q, p).ravel()
    for e in (0.0, 0.5, 2.0):
        exact = math.fsum(np.maximum(two_p - math.exp(e) * two_q, 0.0))
        assert claim.delta(e) >= exact - 1e-9
        assert claim.delta(e) <= exact + 1e-6 + 0.01 * exact
    assert baseline.claim(Shares(colluding=3, servers=3)).epsilon == claim.epsilon


@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_released_counts_of_laplace_shares_are_exact(cells, epsilon):
    """Δ = 2 for a move between cells: ε at δ = 0, and the product of two shifted distributions for every other ε."""
    baseline = DistributedLaplace(cells=cells, epsilon=epsilon, devices=1000)
    claim = baseline.claim(ReleasedCounts(crowd=7, adjacency="move"))
    assert (claim.kind, claim.delta_kind) == ("exact", "exact")
    assert claim.epsilon == pytest.approx(epsilon, rel=1e-12)
    alpha, reach = baseline.alpha, 300
    distribution = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-reach, reach + 1))
    p, q = np.append(0.0, distribution), np.append(distribution, 0.0)
    if cells > 1:
        p, q = np.multiply.outer(p, q).ravel(), np.multiply.outer(q, p).ravel()
    for e in (0.0, 0.1, 0.5, 2.0):
        exact = math.fsum(np.maximum(p - math.exp(e) * q, 0.0))
        # The distribution is cut at 300: this much may be missing.
        assert claim.delta(e) == pytest.approx(exact, abs=1e-12 + 4 * alpha**reach)
    assert baseline.claim(Shares(colluding=2, servers=3)).epsilon == 0.0
    assert baseline.claim(Shares(colluding=3, servers=3)).epsilon > epsilon + 4


def test_missing_noise_weakens_the_claim_and_is_stated():
    baseline = DistributedLaplace(cells=4, epsilon=1.0, devices=1000)
    claims = {n: baseline.released_claim(counted=n) for n in (1, 500, 990, 1000, 1100)}
    epsilons = [claims[n].epsilon for n in claims]
    assert epsilons == sorted(epsilons, reverse=True)
    assert claims[990].epsilon == pytest.approx(1.0, abs=0.05)
    assert claims[990].epsilon > claims[1000].epsilon == pytest.approx(1.0) == claims[1100].epsilon
    assert [claims[n].kind for n in claims] == ["exact"] * 4 + ["bound"]
    assert [claims[n].delta_kind for n in claims] == ["bound"] * 3 + ["exact", "bound"]
    assert claims[990].delta(0.5) == pytest.approx(claims[1000].delta(0.5), abs=0.01)
    assert claims[990].delta(0.5) >= claims[1000].delta(0.5)
    several = baseline.released_claim(counted=990, queries=3)
    assert several.epsilon == pytest.approx(3 * claims[990].epsilon)
    whole = baseline.released_claim(counted=1000, queries=3)
    assert whole.delta(1.0) - 1e-9 <= several.delta(1.0) <= whole.delta(1.0) + 0.05


@pytest.mark.parametrize("name", BASELINES)
def test_every_view_is_answered(name):
    baseline = BASELINES[name]
    views = [
        Report(1),
        Report(2),
        LinkedReports(queries=2),
        ReleasedDifferences(crowd=4),
        ReleasedCounts(crowd=4),
        Shuffled(round=1, devices=50),
        Shares(colluding=1, servers=3),
        Shares(colluding=3, servers=3),
    ]
    for view in views:
        claim = baseline.claim(view)
        again = pickle.loads(pickle.dumps(claim))  # noqa: S301 - our own bytes
        np.testing.assert_equal(again.delta(0.5), claim.delta(0.5))
        assert claim.basis.endswith(".")
        if view == Report(2) or isinstance(view, ReleasedDifferences):
            assert claim.kind == "unknown"
    report, counts = baseline.claim(Report(1)), baseline.claim(ReleasedCounts(crowd=4))
    assert counts.epsilon <= report.epsilon * (1 + 1e-12)
    for e in (0.0, 1.0, 3.0):
        assert counts.delta(e) <= report.delta(e) + 1e-12


def test_delta_is_zero_exactly_from_epsilon_on():
    """δ at ε is 0, just below it is not."""
    for baseline in BASELINES.values():
        claim = baseline.claim(Report(1))
        assert claim.delta(claim.epsilon) == 0.0
        assert claim.delta(claim.epsilon * 0.99) > 0.0


def test_counted_and_queries_are_validated():
    baseline = DistributedLaplace(cells=2, epsilon=1.0, devices=10)
    with pytest.raises(ParameterError, match=r"^counted must be at least 1, got 0"):
        baseline.released_claim(counted=0)
    with pytest.raises(ParameterError, match=r"^queries must be at least 1, got 0"):
        baseline.released_claim(counted=1, queries=0)
