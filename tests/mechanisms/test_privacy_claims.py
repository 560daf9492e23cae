"""Claims and views: published figures, what they state, crowds of any size, and views that are a closed set."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import strategies as st
from mechanism_cases import BASELINES, MECHANISMS, QUESTIONS
from reference_divergences import difference_law, matrix_epsilon
from scipy.stats import binom, multinomial

from mechanisms.local import (
    AdaptiveBudget,
    BinarySamplingPrivacy,
    KRandomizedResponse,
    ParameterError,
    RandomizedResponse,
    SamplingPrivacy,
    UniformPopulation,
)
from mechanisms.local.common.base import BaseMechanism
from mechanisms.privacy import (
    Claim,
    ConstantDelta,
    LinkedReports,
    LocatedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    moved_differences_delta,
    pair_delta,
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
    released_differences_delta,
    resampled_privacy,
    shuffled_claim,
    strongly_safe_claim,
    strongly_safe_delta,
    worst_crowd_delta,
)
from mechanisms.privacy.binomial import window
from mechanisms.privacy.released import counts_curve
from mechanisms.privacy.shuffled import LARGEST_SUM, ClonesDelta, CrowdRatioDelta
from mechanisms.privacy.view import BaseView, with_possible_change
from mechanisms.protocols import protocol_claim, warner

# Certain, or far enough from certain that products of four stay above the smallest double.
shares = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-6, 1 - 1e-6))
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, math.inf)


def value_matrix(sampling, blanks):
    """Round two of the multi-valued form: (truths, outputs)."""
    return np.tile(blanks, (len(blanks), 1)) + sampling * np.eye(len(blanks))


def test_randomized_response_epsilon_exceeds_the_published_one():
    """.8/.2: ln(p₁/p₀) = 3.04 as published, 4.84 exactly with one answer per cell; a large π_2 reverses the case."""
    mechanism = RandomizedResponse(cells=2, first_coin=0.8, second_coin=0.2)
    printed = printed_randomized_response_leakage(first_coin=0.8, second_coin=0.2)
    assert round(printed, 4) == 3.0445
    exact = math.log(0.84 / 0.04) + math.log(0.96 / 0.16)
    assert round(exact, 4) == 4.8363
    assert mechanism.claim(Report(1)).epsilon == pytest.approx(exact, abs=1e-12)
    one_cell = RandomizedResponse(cells=1, first_coin=0.8, second_coin=0.9)
    assert round(printed_randomized_response_leakage(first_coin=0.8, second_coin=0.9), 2) == 1.69
    assert round(one_cell.claim(Report(1)).epsilon, 2) == 3.71
    assert printed_randomized_response_leakage(first_coin=0.8, second_coin=0.0) == math.inf
    assert RandomizedResponse(cells=2, first_coin=0.8, second_coin=0.0).claim(Report(1)).kind == "infinite"


def test_round_two_without_blank_zero_is_infinite_for_outside():
    mechanism = SamplingPrivacy(cells=10, sampling=0.45, blank_zero=0.0)
    claim = mechanism.claim(Report(2))
    assert claim.kind == "infinite"
    assert claim.delta_kind == "exact"
    assert claim.epsilon == math.inf
    assert claim.delta(3.0) == claim.delta(math.inf) == 0.45
    # As published, and for devices that are all in some cell, it is k-ary randomized response.
    printed = printed_multi_value_leakage(sampling=0.45, blanks=mechanism.blanks[1:])
    assert printed == pytest.approx(math.log(0.505 / 0.055))
    assert printed == pytest.approx(matrix_epsilon(value_matrix(0.45, mechanism.blanks)[1:, 1:]))
    assert SamplingPrivacy(cells=10, sampling=0.45).claim(Report(2)).epsilon == pytest.approx(math.log(0.5 / 0.05))
    assert printed_multi_value_leakage(sampling=0.45, blanks=[0.0, 0.1]) == math.inf


def test_published_binary_epsilon_is_for_one_query():
    mechanism = BinarySamplingPrivacy(cells=1, sampling=0.4, blank_zero=0.1)
    printed = printed_binary_leakage(sampling=0.4, blank_zero=0.1)
    assert printed == pytest.approx(max(math.log(0.5 / 0.1), math.log(0.9 / 0.5)))
    assert mechanism.claim(Report(2)).epsilon == pytest.approx(printed)
    both = math.log(0.5 / 0.1) + math.log(0.9 / 0.5)
    assert BinarySamplingPrivacy(cells=2, sampling=0.4, blank_zero=0.1).claim(Report(2)).epsilon == pytest.approx(both)


@pytest.mark.parametrize("queries", [1, 2, 3, 10])
def test_linked_reports_over_queries_are_exact(queries):
    claim = SamplingPrivacy(cells=2, sampling=0.45, blank_zero=0.2).claim(LinkedReports(queries=queries))
    assert (claim.kind, claim.delta_kind) == ("infinite", "exact")
    for e in EPSILONS:
        assert claim.delta(e) == pytest.approx(1 - 0.55**queries, abs=1e-15)


def test_inconsistent_claims_are_refused():
    curve = ConstantDelta(0.1)

    with pytest.raises(ParameterError, match=r"^basis must state the reason"):
        Claim.unknown("")
    with pytest.raises(ParameterError, match=r"^epsilon must be infinite only"):
        Claim("exact", math.inf, "exact", "because", curve)
    with pytest.raises(ParameterError, match=r"^kind must be 'unknown' exactly"):
        Claim("exact", 1.0, "unknown", "because", curve)
    with pytest.raises(ParameterError, match=r"^epsilon must be infinite where it is not known"):
        Claim("unknown", 1.0, "unknown", "because", curve)
    with pytest.raises(ParameterError, match=r"^epsilon must be a number of at least 0"):
        Claim.exact(-1.0, curve, "because")
    claim = Claim.exact(1.0, curve, "because")
    assert claim.delta(0.5) == 0.1
    assert claim.delta(1.0) == 0.0
    for bad in (-0.1, math.nan, "1"):
        with pytest.raises(ParameterError, match=r"^epsilon must"):
            claim.delta(bad)


def test_view_names_are_those_of_the_claims_table():
    names = {
        Report(1): "report_round_1",
        Report(2, queries=9): "report_round_2",
        LinkedReports(): "linked_reports",
        ReleasedDifferences(crowd=3): "released_differences",
        ReleasedCounts(crowd=3): "released_counts",
        Shuffled(round=1, devices=5): "shuffled_round_1",
        Shares(colluding=1, servers=2): "shares",
    }
    for view, name in names.items():
        assert view.name == name
        assert view.queries >= 1
    for make, field in (
        (lambda: Report(0), "round"),
        (lambda: Report(1, queries=0), "queries"),
        (lambda: LinkedReports(queries=0), "queries"),
        (lambda: ReleasedDifferences(crowd=0), "crowd"),
        (lambda: ReleasedDifferences(crowd=2, k=0), "k"),
        (ReleasedDifferences, "crowd"),
        (lambda: ReleasedDifferences(k=5, other_crowd=2), "other_crowd"),
        (lambda: ReleasedDifferences(crowd=2, other_crowd=0), "other_crowd"),
        (lambda: ReleasedCounts(crowd=0), "crowd"),
        (lambda: Shuffled(round=1, devices=0), "devices"),
        (lambda: Shares(colluding=3, servers=2), "colluding"),
    ):
        with pytest.raises(ParameterError, match=rf"^{field} must"):
            make()


MANY_EPSILONS = (0.0, 0.1, 0.5, 1.0, 3.0, 20.0, math.inf)


@pytest.mark.parametrize("k", [None, 1, 3, 6])
def test_two_cells_equal_enumeration(k):
    for n, m, sampling in itertools.product((1, 2, 5), (1, 4), (0.05, 0.45, 0.9)):
        worlds = [
            np.outer(*(difference_law(devices, k, sampling, 7) for devices in both)).ravel()
            for both in ((n, m - 1), (n - 1, m))
        ]
        for epsilon in MANY_EPSILONS:
            claimed = moved_differences_delta(crowd=n, other_crowd=m, sampling=sampling, epsilon=epsilon, k=k)
            assert claimed == pytest.approx(pair_delta(*worlds, epsilon=epsilon), abs=1e-14)


@pytest.mark.parametrize(("n", "m"), [(400, 400), (3_000, 900), (20_000, 20_000)])
def test_two_cells_at_the_edge_of_their_windows(n, m):
    """The whole 2-D sum, without a window, along the threshold."""
    sampling = 0.2
    a, b = np.arange(n + 1), np.arange(m + 1)
    one = (binom.pmf(a, n, sampling), binom.pmf(a, n - 1, sampling))
    cumulative = np.append(0.0, np.cumsum(binom.pmf(b, m - 1, sampling)))
    against = np.append(0.0, np.cumsum(binom.pmf(b, m, sampling)))
    for epsilon in (0.0, 0.01, 0.1, 0.5):
        up_to = np.clip(np.ceil(m - math.exp(epsilon) * m * (n - a) / n), 0, m + 1).astype(int)
        whole = np.maximum(one[0] * cumulative[up_to] - math.exp(epsilon) * one[1] * against[up_to], 0.0).sum()
        claimed = moved_differences_delta(crowd=n, other_crowd=m, sampling=sampling, epsilon=epsilon)
        assert claimed >= whole - 1e-12
        if n == m:
            assert claimed == pytest.approx(whole, abs=1e-12)


LARGE = {
    "leaving": lambda n, e: released_differences_delta(crowd=n, sampling=0.45, epsilon=e),
    "leaving, suppressed": lambda n, e: released_differences_delta(crowd=n, sampling=0.45, epsilon=e, k=20),
    "moving": lambda n, e: moved_differences_delta(crowd=n, other_crowd=n, sampling=0.45, epsilon=e),
    "moving, suppressed": lambda n, e: moved_differences_delta(crowd=n, other_crowd=n, sampling=0.45, epsilon=e, k=20),
    "whole vectors": lambda n, e: counts_curve(crowd=n, sampling=0.45, seen=0.9)(e),
    "whole vectors, no blank zero": lambda n, e: counts_curve(crowd=n, sampling=0.45, seen=1.0)(e),
    "whole vectors, no other blank": lambda n, e: counts_curve(crowd=n, sampling=0.45, seen=0.0)(e),
    "shuffled": lambda n, e: SamplingPrivacy(cells=100, sampling=0.45).claim(Shuffled(2, n)).delta(e),
    "clones": lambda n, e: BinarySamplingPrivacy(cells=9, sampling=0.45).claim(Shuffled(2, n)).delta(e),
    "refreshed": lambda n, e: SamplingPrivacy(cells=9, sampling=0.45, refresh=0.2).claim(ReleasedCounts(n)).delta(e),
}


@pytest.mark.parametrize("view", LARGE.values(), ids=LARGE.keys())
def test_any_crowd_and_epsilon_give_a_decreasing_probability(view):
    """From no other device to ten million, from ε = 0 to infinity: no NaN, no overflow, and never an increase."""
    epsilons = (0.0, 1e-6, 1e-3, 0.1, 0.59, 0.61, 2.0, 30.0, 300.0, 709.0, 1e6, math.inf)
    crowds = (1, 2, 19, 20, 21, 1_000, 10**5, 10**7)
    deltas = np.array([[view(n, e) for e in epsilons] for n in crowds])
    assert np.isfinite(deltas).all()
    assert (deltas >= 0).all()
    assert (deltas <= 1).all()
    assert (np.diff(deltas, axis=1) <= 1e-14).all()
    published = deltas[deltas[:, 0] > 0]
    if len(published) == len(crowds):
        assert (np.diff(deltas, axis=0) <= 1e-14).all()
    assert deltas[-1, 2] < deltas[-1, 0] or deltas[-1, 0] == 0.45


@pytest.mark.parametrize("up_ratio", [0.0, 0.4, 0.8])
def test_ratio_of_a_crowds_answers_equals_enumeration(up_ratio):
    n, up, still = 9, 0.5, 0.3
    still_ratio = 1.0 + (1.0 - up_ratio) * up / still  # otherwise it answers as often
    a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    here = multinomial.pmf(np.stack([a, b, n - a - b], axis=-1), n, [up, still, 1.0 - up - still])
    elsewhere = here * (1.0 - ((1.0 - up_ratio) * a - (still_ratio - 1.0) * b) / n)
    curve = CrowdRatioDelta(crowd=n, up=up, still=still, up_ratio=up_ratio, still_ratio=still_ratio)
    for epsilon in (0.0, 0.1, 0.2, 0.4):
        both = [np.maximum(p - math.exp(epsilon) * q, 0.0).sum() for p, q in ((here, elsewhere), (elsewhere, here))]
        assert curve(epsilon) == pytest.approx(max(both), rel=1e-9)


def test_windows_hold_the_stated_mass():
    for n, p in itertools.product((0, 1, 30, 10**4, 10**7), (0.0, 1e-9, 1e-3, 0.45, 0.999, 1.0)):
        first, masses = window(n, p)
        last = first + len(masses) - 1
        assert 0 <= first <= last <= n
        assert binom.cdf(first - 1, n, p) + binom.sf(last, n, p) <= 1e-30
        exact = binom.pmf(np.arange(first, last + 1), n, p)
        np.testing.assert_allclose(masses, exact, rtol=1e-7, atol=1e-18)


def test_grouped_clones_are_nearly_tight():
    """For more numbers of clones than are summed individually, the first of a group bounds the group."""
    clones = ClonesDelta(devices=10**7 + 1, epsilon=1.2)
    first, masses = window(10**7, math.exp(-1.2))
    assert len(masses) > 2 * LARGEST_SUM
    each = masses @ clones.delta_among(first + np.arange(len(masses)), 0.001)
    assert each <= clones(0.001) <= each * (1 + 1e-5)


def test_shuffling_amplifies_unless_output_reveals_the_truth():
    mechanism = SamplingPrivacy(cells=5, sampling=0.45)
    local = mechanism.claim(Report(2))
    claim = mechanism.claim(Shuffled(round=2, devices=10_000))
    assert claim.epsilon == local.epsilon  # no amplification at δ = 0
    assert claim.delta(0.2) < 1e-9
    assert local.delta(0.2) > 0.4
    assert mechanism.claim(Shuffled(round=1, devices=9)).epsilon == 0.0
    assert BinarySamplingPrivacy(cells=3, sampling=0.3).claim(Shuffled(round=1, devices=9)).epsilon == 0.0
    binary = BinarySamplingPrivacy(cells=3, sampling=0.3)
    assert binary.claim(Shuffled(2, 10**6)).delta(0.1) < binary.claim(Report(2)).delta(0.1) / 100
    assert "clones" in binary.claim(Shuffled(2, 100)).basis
    two = mechanism.claim(Shuffled(round=2, devices=10_000, queries=2))
    assert two.epsilon == 2 * claim.epsilon
    assert claim.delta(0.2) < two.delta(0.2) < 2 * claim.delta(0.1)
    # A value that no blank has: shuffling does not hide that it was reported.
    shown = SamplingPrivacy(cells=5, sampling=0.45, blank_zero=0.0).claim(Shuffled(2, 10**6, queries=2))
    assert (shown.kind, shown.delta_kind) == ("infinite", "exact")
    assert shown.delta(9.0) == pytest.approx(1 - 0.55**2)
    infinite = BinarySamplingPrivacy(cells=3, sampling=0.3, blank_zero=0.0)
    assert infinite.claim(Report(2)).kind == "infinite"
    assert infinite.claim(Shuffled(2, 100)).kind == "unknown"
    assert shuffled_claim(Shuffled(1, 5), local=Claim.unknown("because")).kind == "unknown"


@pytest.mark.parametrize(
    "mechanism", [SamplingPrivacy(cells=3, sampling=0.45), BinarySamplingPrivacy(cells=3, sampling=0.3)]
)
def test_incomplete_shares_reveal_nothing(mechanism):
    for queries in (1, 3):
        some = mechanism.claim(Shares(colluding=2, servers=3, queries=queries))
        assert (some.kind, some.epsilon, some.delta(0.0)) == ("exact", 0.0, 0.0)
        assert "another view" in some.basis
        linked = mechanism.claim(LinkedReports(queries=queries))
        for servers in (1, 3):
            every = mechanism.claim(Shares(colluding=servers, servers=servers, queries=queries))
            assert (every.kind, every.delta(1.0)) == (linked.kind, linked.delta(1.0))
            assert linked.basis in every.basis


def test_theorem_5_bounds_the_worst_crowd_from_its_minimum_epsilon():
    for k, sampling, epsilon in itertools.product((1, 5, 20), (0.01, 0.2, 0.45), (0.6, 1.0, 3.0)):
        named = strongly_safe_delta(k=k, sampling=sampling, epsilon=epsilon)
        assert worst_crowd_delta(k=k, sampling=sampling, epsilon=epsilon) <= named * (1 + 1e-9)
        gamma = (math.exp(epsilon) - 1 + sampling) / math.exp(epsilon)
        n = np.arange(math.ceil(k / gamma - 1), 3_000)
        assert named == pytest.approx(binom.sf(np.floor(gamma * n), n, sampling).max(), rel=1e-9)
    claim = strongly_safe_claim(ReleasedDifferences(k=20, queries=2), 0.2)
    assert (claim.kind, claim.delta_kind) == ("infinite", "bound")
    one, half = (strongly_safe_delta(k=20, sampling=0.2, epsilon=epsilon) for epsilon in (1.0, 0.5))
    assert one < claim.delta(1.0) < 2 * half
    # The theorem states nothing below its least ε; the curve there is bounded by convexity, from δ(0) ≤ 1.
    assert worst_crowd_delta(k=20, sampling=0.2, epsilon=0.1) <= claim.delta(0.1) <= 1.0
    assert strongly_safe_claim(ReleasedDifferences(k=20), 1.0).delta(1.0) == 1.0
    assert strongly_safe_claim(ReleasedDifferences(crowd=20), 0.2).kind == "unknown"
    assert strongly_safe_claim(ReleasedDifferences(crowd=20, k=5, other_crowd=3), 0.2).kind == "unknown"
    assert strongly_safe_delta(k=3, sampling=0.2, epsilon=800.0) == 0.0
    with pytest.raises(ParameterError, match=r"^epsilon must be at least −ln\(1 − sampling\)"):
        strongly_safe_delta(k=20, sampling=0.2, epsilon=0.2)
    with pytest.raises(ParameterError, match=r"^sampling must be below 1"):
        strongly_safe_delta(k=20, sampling=1.0, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"^to must not exceed sampling"):
        resampled_privacy(epsilon=1.0, delta=0.0, sampling=0.1, to=0.2)
    assert resampled_privacy(epsilon=800.0, delta=0.0, sampling=1.0, to=0.1)[0] == pytest.approx(800 + math.log(0.1))


EVERY = {
    **MECHANISMS,
    **BASELINES,
    **QUESTIONS,
    "LBA": AdaptiveBudget(lambda epsilon: KRandomizedResponse(cells=3, epsilon=epsilon), 1.0, 4, "budget"),
    "LPA": AdaptiveBudget(lambda epsilon: KRandomizedResponse(cells=3, epsilon=epsilon), 1.0, 4, "population"),
    "LPU": UniformPopulation(KRandomizedResponse(cells=3, epsilon=1.0), 4),
}


@dataclass(frozen=True)
class WholeJourney(BaseView):
    """A user's own view."""

    queries: int = 1
    adjacency: str = "move"


@dataclass(frozen=True)
class LinkedWithPlace(LinkedReports):
    """A user's view derived from one of the set: it shows more."""


@dataclass(frozen=True)
class ReportWithPlace(Report):
    """As above."""


@pytest.mark.parametrize("name", EVERY)
def test_views_are_a_closed_set_whatever_the_mechanism(name):
    """A server chosen by place knows it; all shares are the linked reports; and a view of no kind has no claim."""
    mechanism = EVERY[name]
    for queries, adjacency in ((1, "move"), (3, "enter_leave")):
        claim = mechanism.claim(LocatedReports(queries, adjacency=adjacency))
        assert claim.epsilon == math.inf
        assert claim.delta(50.0) == 1.0
    linked, shares = (mechanism.claim(view) for view in (LinkedReports(2), Shares(2, 2, 2)))
    assert (shares.kind, shares.delta_kind, shares.delta(0.7)) == (linked.kind, linked.delta_kind, linked.delta(0.7))
    assert mechanism.claim(Shares(1, 2)).epsilon == 0.0
    for view in (WholeJourney(), LinkedWithPlace(), ReportWithPlace(1), object(), Report(4)):
        assert mechanism.claim(view).kind == "unknown"


def test_a_class_without_rules_knows_nothing():
    class Silent(BaseMechanism):
        cells, tally_shape = 2, (2,)
        estimate_from = variance = None

    for view in (Report(1), LinkedReports(), ReleasedCounts(), ReleasedDifferences(1), Shares(2, 2)):
        assert Silent().claim(view).kind == "unknown"


def test_protocol_of_a_table_knows_its_own_views_only():
    protocol = warner(truthful=0.7)
    for view in (LinkedWithPlace(), ReportWithPlace(1), LocatedReports(), object()):
        assert protocol_claim(protocol, view).kind == "unknown"


def test_with_one_cell_a_move_is_entering_or_leaving():
    differences = ReleasedDifferences(4, 2, other_crowd=3)
    assert with_possible_change(differences, cells=1) == ReleasedDifferences(4, 2)
    assert with_possible_change(differences, cells=2) == differences
    assert with_possible_change(Report(1), cells=1) == replace(Report(1), adjacency="enter_leave")
