"""Claims against brute force: every closed form against the whole matrix of reports."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import strategies as st
from reference_divergences import matrix_epsilon

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, ParameterError, RandomizedResponse, SamplingPrivacy
from mechanisms.privacy import (
    ConstantDelta,
    LinkedReports,
    PrivacyClaim,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)

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


def test_no_privacy_claims_delta_one():
    for view in (Report(1), LinkedReports(queries=3), ReleasedCounts(crowd=5), Shuffled(round=1, devices=10)):
        claim = NoPrivacy(cells=3).claim(view)
        assert claim.kind == "infinite"
        assert claim.delta(7.0) == 1.0


@pytest.mark.parametrize(
    "mechanism",
    [
        NoPrivacy(cells=3),
        RandomizedResponse(cells=3, first_coin=0.8, second_coin=0.2),
        SamplingPrivacy(cells=3, sampling=0.45),
        BinarySamplingPrivacy(cells=3, sampling=0.45),
    ],
)
def test_unknown_claims_are_distinct_from_infinite_ones(mechanism):
    unknown = [Report(mechanism.rounds + 1)]
    if mechanism.rounds == 1:
        unknown += [ReleasedDifferences(crowd=30), ReleasedDifferences(crowd=30, k=5)]
    elif mechanism.rounds == 2:
        unknown.append(Shuffled(round=3, devices=100))
    for view in unknown:
        claim = mechanism.claim(view)
        assert (claim.kind, claim.delta_kind) == ("unknown", "unknown")
        assert math.isnan(claim.epsilon)
        assert math.isnan(claim.delta(1.0))
        assert claim.basis
    for view in (Report(1), Report(2, queries=4), LinkedReports(), ReleasedDifferences(crowd=9, queries=3)):
        claim = mechanism.claim(view)
        again = pickle.loads(pickle.dumps(claim))  # noqa: S301 - our own bytes
        np.testing.assert_equal(again.delta(1.0), claim.delta(1.0))


def test_inconsistent_claims_are_refused():
    curve = ConstantDelta(0.1)

    with pytest.raises(ParameterError, match=r"^basis must state the reason"):
        PrivacyClaim.unknown("")
    with pytest.raises(ParameterError, match=r"^epsilon must be infinite only"):
        PrivacyClaim("exact", math.inf, "exact", "because", curve)
    with pytest.raises(ParameterError, match=r"^kind must be 'unknown' exactly"):
        PrivacyClaim("exact", 1.0, "exact", "because")
    with pytest.raises(ParameterError, match=r"^epsilon must be a number of at least 0"):
        PrivacyClaim.exact(-1.0, curve, "because")
    claim = PrivacyClaim.exact(1.0, curve, "because")
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
