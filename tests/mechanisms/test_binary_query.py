"""Packed answers of several kinds, answer distributions and linear estimators: edge cases and errors."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.local import ParameterError, SampledResponse, SamplingAndNoise
from mechanisms.local.common.estimators import estimate_proportion, proportion_variance
from mechanisms.local.common.packed_bits import AnswerReports
from mechanisms.local.common.protocol_mechanism import LinearEstimator
from mechanisms.local.common.response_counts import ResponseCounts, check_where
from mechanisms.local.mechanism import NotEstimableError
from mechanisms.protocols import Protocol, Tallies, combined_estimator
from mechanisms.protocols.protocol import BinaryQuery
from mechanisms.protocols.published import remainder


@settings(deadline=None)
@given(n=st.integers(0, 40), cells=st.integers(1, 200), outputs=st.integers(2, 5), seed=st.integers(0, 2**32))
def test_packing_and_unpacking_are_inverse(n, cells, outputs, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, outputs, (n, cells)).astype(np.uint8)
    reports = AnswerReports.from_dense(dense, outputs)
    np.testing.assert_array_equal(reports.to_dense(), dense)
    assert (len(reports), reports.outputs) == (n, outputs)
    assert reports.nbytes == n * (outputs - 1) * -(-cells // 64) * 8
    np.testing.assert_array_equal(reports[::-2].to_dense(), dense[::-2])
    mask = rng.random(n) < 0.5
    for where in (None, mask):
        rows = dense if where is None else dense[where]
        expected = (rows[:, :, np.newaxis] == np.arange(outputs)).sum(axis=0)
        np.testing.assert_array_equal(reports.count(check_where(where, devices=n)), expected)
    np.testing.assert_array_equal(reports.one_hot().sum(axis=2), np.ones((n, cells)))


def test_invalid_answer_reports_are_refused():
    two = np.zeros((2, 2, 1), dtype=np.uint64)
    for bits, cells in ((two.astype(float), 3), (two[0], 3), (two, 65), (two[:, :0], 3)):
        with pytest.raises(ParameterError, match=r"^bits must"):
            AnswerReports(bits, cells)
    with pytest.raises(ParameterError, match=r"^bits must not give two answers for a cell, at answer, got 2"):
        AnswerReports(np.ones((1, 2, 1), dtype=np.uint64), 3)
    third = np.zeros((1, 3, 1), dtype=np.uint64)
    third[0, [0, 2]] = 1
    with pytest.raises(ParameterError, match=r"^bits must not give two answers for a cell, at answer, got 3"):
        AnswerReports(third, 3)
    with pytest.raises(ParameterError, match=r"^cells must be at least 1"):
        AnswerReports(two, 0)
    with pytest.raises(ParameterError, match=r"^reports must be AnswerReports about 4 cells, 3 outputs"):
        SamplingAndNoise(cells=4, sampling=0.5, sampling_no=0.2).tally(AnswerReports(two, 3))
    with pytest.raises(ValueError, match="read-only"):
        AnswerReports(two, 3).bits[0] = 0


def test_remainder_is_never_a_rounding_error():
    assert remainder("second", 0.3, 0.7, 0.3) == 0.0
    assert remainder("second", "1/3", Fraction(1, 3), Fraction(1, 3)) == Fraction(1, 3)
    with pytest.raises(ParameterError, match=r"^second must be at most 0\.3, .* got 0\.4$"):
        remainder("second", 0.4, 0.7, 0.4)


def two_laws(yes, no):
    return Protocol.from_laws("two laws", {"no": no, "yes": yes}, outputs=[("a", "b")] * len(next(iter(yes))))


def test_query_names_its_distinguishing_answers():
    yes, no = {("a", "a"): 0.5, ("a", "b"): 0.5}, {("a", "a"): 0.9, ("b", "b"): 0.1}
    binary_query = BinaryQuery(two_laws(yes, no))
    assert binary_query.answers == ((0, 0), (0, 1), (1, 1))
    assert binary_query.only_from_yes == ((0, 1),)
    assert binary_query.only_from_no == ((1, 1),)
    assert binary_query.name((0, 1)) == "(a, b)"
    yes, no = binary_query.in_round(2)
    np.testing.assert_allclose(yes, [0.5, 0.5])
    np.testing.assert_allclose(no, [0.9, 0.1])


proper = st.floats(0.02, 0.98)


@settings(deadline=None)
@given(p=proper, q=proper, devices=st.integers(2, 10**7), data=st.data())
def test_a_single_count_is_the_proportion_estimator(p, q, devices, data):
    """The same estimate and variance, also under loss, as randomized response's."""
    if abs(p - q) < 1e-3:
        return
    protocol = two_laws({"a": 1 - Fraction(p), "b": Fraction(p)}, {"a": 1 - Fraction(q), "b": Fraction(q)})
    estimator = LinearEstimator.of(
        combined_estimator(Tallies.by_round(protocol, asked=True), "yes", {"C1[b]": 1}, {"N": 1})
    )
    responses = ResponseCounts((devices,), (data.draw(st.integers(1, devices)),), 1)
    yes_count = np.array([data.draw(st.integers(0, responses.counted[0]))])
    counts = np.stack([responses.counted[0] - yes_count, yes_count], axis=-1)[np.newaxis]
    expected = estimate_proportion(yes_count, true_yes=p, false_yes=q, received=responses).count
    np.testing.assert_allclose(
        estimator.count(counts, responses), expected, rtol=1e-9, atol=1e-9 * devices / abs(p - q)
    )
    inside = data.draw(st.integers(0, devices))
    other = proportion_variance(true_yes=p, false_yes=q, received=responses)
    np.testing.assert_allclose(estimator.variance(responses).std_error(inside), other.std_error(inside), rtol=1e-6)


def test_statistics_that_do_not_determine_the_target_have_no_combination():
    tallies = Tallies.by_round(two_laws({"a": "1/5", "b": "4/5"}, {"a": "1/5", "b": "4/5"}), asked=True)
    assert combined_estimator(tallies, "yes", {"C1[a]": 1}, {"N": 1}) is None
    alike = SampledResponse(cells=1, sampling=0.5, sampling_no=0.5 + 1e-14, first_coin=1e-14, second_coin=0.5)
    for estimator in ("yes", "no", "silent", "best"):
        with pytest.raises(NotEstimableError, match=r"^SampledResponse cannot be estimated: "):
            dataclasses.replace(alike, estimator=estimator).std_error(np.array([1, 1]))
