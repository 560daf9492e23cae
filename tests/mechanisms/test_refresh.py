"""Refresh: the coins, the estimator with its exact variance, and its claims against brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import run_query, truth_of
from mechanism_statistics import check_moments, check_same_distribution, estimate_counts
from numpy.random import default_rng
from reference_divergences import matrix_delta, matrix_epsilon

from mechanisms.local import ParameterError, SamplingPrivacy
from mechanisms.local.common.estimators import TwoRounds
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, pair_delta

MECHANISMS = {
    "equal blanks": SamplingPrivacy(cells=3, sampling=0.45, refresh=0.3),
    "unequal blanks": SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05], refresh=0.5),
    "all redrawn": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.05, refresh=1.0),
    "no blank zero": SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0, refresh=0.2),
    "one cell": SamplingPrivacy(cells=1, sampling=0.4, blank=0.1, refresh=0.7),
}
every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
TRUE_COUNTS = np.array([60, 5, 20, 15])


def step_of(mechanism):
    """The largest effect of one device's answers on an estimate: one adds to round two, one subtracts from one."""
    return 2.0 / mechanism.sampling


def pair_distributions(mechanism):
    """P[first, second | truth] by every first draw, redraw and second draw: (truths, outputs, outputs)."""
    outputs = mechanism.cells + 1
    blanks = mechanism.blanks
    again = blanks / blanks.sum()
    distributions = np.zeros((outputs, outputs, outputs))
    for truth in range(outputs):
        distributions[truth, 0, truth] += mechanism.sampling
        for first, second in itertools.product(range(outputs), repeat=2):
            distributions[truth, first, second] += blanks[first] * mechanism.refresh * again[second]
            if first == second:
                distributions[truth, first, second] += blanks[first] * (1 - mechanism.refresh)
    return distributions


def test_refresh_zero_changes_nothing():
    """The same object in every respect, the same stream, and an equal final state of the generator."""
    plain, named = SamplingPrivacy(cells=5, sampling=0.45), SamplingPrivacy(cells=5, sampling=0.45, refresh=0.0)
    assert plain == named
    assert hash(plain) == hash(named)
    assert repr(plain) == repr(named)
    assert plain != SamplingPrivacy(cells=5, sampling=0.45, refresh=0.1)
    truth, generators = truth_of([5, 4, 3, 2, 1, 0]), (default_rng(1), default_rng(1))
    np.testing.assert_array_equal(
        *(run_query(m, truth, rng=r) for m, r in zip((plain, named), generators, strict=True))
    )
    counts = np.array([5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(
        *(m.sample_counts(counts, rng=r) for m, r in zip((plain, named), generators, strict=True))
    )
    assert generators[0].bit_generator.state == generators[1].bit_generator.state


@every
def test_distribution_of_a_pair_of_reports(mechanism):
    """Every pair of reports of every truth, by chi-square against the enumerated distribution."""
    distributions, repeats = pair_distributions(mechanism), 40_000
    np.testing.assert_allclose(distributions.sum(axis=(1, 2)), 1.0, rtol=1e-12)
    rng = default_rng(2)
    for truth, distribution in enumerate(distributions):
        truths = np.full(repeats, truth, dtype=np.int32)
        coins = mechanism.toss(mechanism.enrol(repeats, rng=rng), rng=rng)
        first, second = (mechanism.answer(r, truths, coins) for r in (1, 2))
        seen = np.zeros(distribution.shape)
        np.add.at(seen, (first, second), 1)
        assert not seen[distribution == 0.0].any()
        scores = (seen - repeats * distribution)[distribution > 0] / np.sqrt(
            repeats * distribution * (1 - distribution)
        )[distribution > 0]
        assert np.abs(scores).max() < 6.5


@every
def test_coins_do_not_depend_on_truth(mechanism):
    rng = default_rng(3)
    truth = np.zeros(40, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(40, rng=rng), rng=rng)
    state = rng.bit_generator.state
    before = mechanism.answer(2, truth, coins)
    truth[17] = 1
    after = mechanism.answer(2, truth, coins)
    assert set(np.flatnonzero(before != after)) <= {17}
    assert rng.bit_generator.state == state
    whole = mechanism.answer(2, truth, coins)
    for i in range(40):
        alone = type(coins)(coins.drawn[i : i + 1], coins.again[i : i + 1])
        assert mechanism.answer(2, truth[i : i + 1], alone)[0] == whole[i]


@every
@pytest.mark.parametrize("source", ["reports", "counts"])
def test_refreshed_estimates_are_unbiased_with_theoretical_variance(mechanism, source):
    rng = default_rng(4)
    true_counts = TRUE_COUNTS[: mechanism.cells + 1]
    truth, asked = truth_of(true_counts), [int(true_counts.sum())] * 2
    seen = []
    for _ in range(1500):
        drawn = (
            run_query(mechanism, truth, rng=rng)
            if source == "reports"
            else mechanism.sample_counts(true_counts, rng=rng)
        )
        seen.append(drawn)
    assert mechanism.estimate(seen[0], counted=asked, asked=asked).interval == "score"
    estimates = estimate_counts(mechanism, seen, counted=asked, asked=asked)
    check_moments(estimates, true_counts[1:], mechanism.std_error(true_counts), step=step_of(mechanism))


@pytest.mark.fast_cases(1)
@every
def test_refreshed_reports_and_counts_have_one_joint_distribution(mechanism):
    rng, repeats = default_rng(5), 20_000
    truth = np.array([0, 1, mechanism.cells], dtype=np.int32)
    devices = np.tile(truth, repeats)
    coins = mechanism.toss(mechanism.enrol(len(devices), rng=rng), rng=rng)
    one = np.stack([mechanism.encode(mechanism.answer(r, devices, coins)) for r in (1, 2)], axis=1)
    counts = np.bincount(truth, minlength=mechanism.cells + 1)
    other = np.stack([mechanism.sample_counts(counts, rng=rng).ravel() for _ in range(repeats)])
    check_same_distribution(one.reshape(repeats, 3, -1).sum(axis=1), other)


@pytest.mark.parametrize(
    ("counted", "asked"), [([80, 60], [100, 100]), ([110, 70], [140, 100]), ([100, 90], [100, 100])]
)
def test_refreshed_estimates_under_loss_have_the_exact_variance(counted, asked):
    mechanism, rng = MECHANISMS["unequal blanks"], default_rng(6)
    truth = np.concatenate([truth_of(TRUE_COUNTS), np.zeros(max(asked) - 100, dtype=np.int32)])
    seen = []
    for _ in range(3000):
        masks = []
        for responses, size in zip(counted, asked, strict=True):
            mask = np.zeros(len(truth), dtype=bool)
            mask[rng.permutation(size)[:responses]] = True
            masks.append(mask)
        counts = run_query(mechanism, truth, rng=rng, where=masks)
        seen.append(counts)
    theory = mechanism.std_error(TRUE_COUNTS, asked=asked, counted=counted)
    rate = max(asked[-1] / n for n in counted)
    estimates = estimate_counts(mechanism, seen, counted=counted, asked=asked)
    check_moments(estimates, TRUE_COUNTS[1:], theory, step=rate * step_of(mechanism))


def test_weight_of_round_one_is_optimal():
    """In an empty cell no other weight has less variance, with and without loss."""
    estimator = TwoRounds(0.45, np.array([0.1, 0.02]), 0.3)
    for counted, asked in (((500, 500), (500, 500)), ((300, 450), (500, 500)), ((400, 450), (600, 500))):
        responses = ResponseCounts(asked, counted, 2)
        best = estimator.weight(responses)
        weights = [best + shift for shift in (-0.05, 0.0, 0.05)]
        errors = [estimator.variance(responses, weight).std_error(np.zeros(2)) for weight in weights]
        assert (errors[1] < errors[0]).all()
        assert (errors[1] < errors[2]).all()


blank_lists = st.lists(st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0, 3.0]), min_size=2, max_size=5).filter(
    lambda b: sum(b) > 0
)


@given(weights=blank_lists, sampling=st.floats(0.05, 0.95), refresh=st.sampled_from([0.01, 0.3, 0.9, 1.0]))
def test_linked_reports_with_refresh_equal_brute_force(weights, sampling, refresh):
    """ε and δ(ε) of the whole matrix of pairs; the minimum includes the outside device."""
    blanks = np.array(weights) / sum(weights) * (1 - sampling)
    mechanism = SamplingPrivacy(
        cells=len(blanks) - 1, sampling=sampling, blank_zero=blanks[0], blank=blanks[1:], refresh=refresh
    )
    matrix = pair_distributions(mechanism).reshape(len(blanks), -1)
    claim = mechanism.claim(LinkedReports())
    epsilon = matrix_epsilon(matrix)
    assert claim.kind == ("infinite" if math.isinf(epsilon) else "exact")
    assert claim.epsilon == pytest.approx(epsilon, abs=1e-9)
    for e in (0.0, 0.3, 1.0, 3.0, 8.0, math.inf):
        assert claim.delta(e) == pytest.approx(matrix_delta(matrix, epsilon=e), abs=1e-12)
    both = mechanism.claim(Shares(colluding=3, servers=3))
    assert (both.kind, both.epsilon, both.delta(1.0)) == (claim.kind, claim.epsilon, claim.delta(1.0))
    for number in (1, 2):
        single = pair_distributions(mechanism).sum(axis=3 - number)
        assert mechanism.claim(Report(number)).delta(0.5) == pytest.approx(matrix_delta(single, epsilon=0.5), abs=1e-12)


def test_refreshed_linked_reports_bound_every_trajectory():
    mechanism = SamplingPrivacy(cells=2, sampling=0.45, refresh=0.8)
    single = pair_distributions(mechanism).reshape(3, -1)
    trajectories = [np.outer(single[a], single[b]).ravel() for a, b in itertools.product(range(3), repeat=2)]
    claim = mechanism.claim(LinkedReports(queries=2))
    assert claim.epsilon == pytest.approx(matrix_epsilon(trajectories))
    for e in (0.0, 0.5, 2.0, 4.0):
        exact = matrix_delta(trajectories, epsilon=e)
        assert exact - 1e-9 <= claim.delta(e) <= 1.05 * exact + 0.01


def released_distribution(mechanism, truths, view):
    """Both rounds' whole vectors, or the differences over the cells, of a few devices: {outcome: probability}."""
    unit = np.eye(mechanism.cells + 1, dtype=int)
    distribution = {None: 1.0}
    for truth in truths:
        summed = {}
        for first, second in itertools.product(range(mechanism.cells + 1), repeat=2):
            p = pair_distributions(mechanism)[truth, first, second]
            step = (
                np.concatenate([unit[first], unit[second]])
                if view is ReleasedCounts
                else (unit[second] - unit[first])[1:]
            )
            for outcome, q in distribution.items():
                key = tuple((step if outcome is None else step + np.array(outcome)).tolist())
                summed[key] = summed.get(key, 0.0) + p * q
        distribution = summed
    return distribution


@pytest.mark.parametrize("view", [ReleasedCounts, ReleasedDifferences])
@pytest.mark.parametrize("crowd", [1, 2, 3])
def test_refreshed_releases_reveal_no_more_than_claimed(view, crowd):
    for mechanism in (
        SamplingPrivacy(cells=1, sampling=0.45, blank_zero=0.1, refresh=0.3),
        SamplingPrivacy(cells=2, sampling=0.3, blank=[0.1, 0.3], refresh=1.0),
        SamplingPrivacy(cells=2, sampling=0.3, blank_zero=0.0, refresh=0.5),
    ):
        claim = mechanism.claim(view(crowd))
        assert claim.delta_kind == "bound"
        for cell, others in itertools.product(range(1, mechanism.cells + 1), ([], [0], [mechanism.cells])):
            rest = [cell] * (crowd - 1) + others
            present, absent = (released_distribution(mechanism, [truth, *rest], view) for truth in (cell, 0))
            outcomes = sorted(present.keys() | absent.keys())
            p, q = ([distribution.get(outcome, 0.0) for outcome in outcomes] for distribution in (present, absent))
            for e in (0.0, 0.3, 1.0, 3.0, 6.0):
                exact = pair_delta(p, q, epsilon=e)
                assert exact <= claim.delta(e) + 1e-12
                if crowd == 1 and cell == int(mechanism.blanks[1:].argmin()) + 1 and not others:
                    assert claim.delta(e) == pytest.approx(exact, abs=1e-12)
        assert claim.delta(0.5) <= mechanism.claim(LinkedReports()).delta(0.5) + 1e-12


@pytest.mark.parametrize("crowds", [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("refresh", [0.05, 0.6, 1.0])
@pytest.mark.parametrize("blank_zero", [0.0, 0.02, 0.3])
def test_refreshed_differences_bound_a_move(crowds, refresh, blank_zero):
    mechanism = SamplingPrivacy(cells=2, sampling=0.5, blank_zero=blank_zero, refresh=refresh)
    view = ReleasedDifferences(crowd=crowds[0], other_crowd=crowds[1])
    claim = mechanism.claim(view)
    rest = [1] * (crowds[0] - 1) + [2] * (crowds[1] - 1)
    for others in ([], [0]):
        laws = [released_distribution(mechanism, [truth, *rest, *others], ReleasedDifferences) for truth in (1, 2)]
        outcomes = sorted(laws[0].keys() | laws[1].keys())
        p, q = ([law.get(outcome, 0.0) for outcome in outcomes] for law in laws)
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            assert pair_delta(p, q, epsilon=epsilon) <= claim.delta(epsilon) + 1e-12


def test_refreshed_releases_state_what_is_proved():
    mechanism = SamplingPrivacy(cells=4, sampling=0.45, refresh=0.3)
    linked = mechanism.claim(LinkedReports())
    finite = mechanism.claim(ReleasedDifferences(crowd=20))
    assert finite.kind == "bound"
    assert finite.epsilon <= linked.epsilon
    assert finite.delta(finite.epsilon) == 0.0
    assert finite.delta(0.5) < mechanism.claim(ReleasedCounts(crowd=20)).delta(0.5) < linked.delta(0.5)
    moved = mechanism.claim(ReleasedDifferences(crowd=20, other_crowd=5))
    assert (moved.kind, moved.epsilon) == ("bound", linked.epsilon)
    # A move is two steps, of which the smaller crowd hides less.
    step = mechanism.claim(ReleasedDifferences(crowd=5))
    least = min(step.delta(first) + math.exp(first) * step.delta(0.6 - first) for first in np.linspace(0.0, 0.6, 601))
    assert least * (1 - 1e-3) <= moved.delta(0.6) <= 1.02 * least
    assert mechanism.claim(ReleasedDifferences(crowd=1, other_crowd=9)).delta(0.6) == linked.delta(0.6)
    two = mechanism.claim(ReleasedDifferences(crowd=20, queries=2))
    assert finite.delta(1.0) < two.delta(1.0) < 2 * finite.delta(0.5)
    shown = SamplingPrivacy(cells=4, sampling=0.45, blank_zero=0.0, refresh=0.3)
    assert shown.claim(ReleasedDifferences(crowd=20)).kind == "infinite"
    assert shown.claim(ReleasedDifferences(crowd=20, k=5)).kind == "unknown"
    assert shown.claim(ReleasedDifferences(crowd=20, other_crowd=20)).epsilon == math.inf
    assert shown.claim(ReleasedDifferences(crowd=20, other_crowd=20, k=5)).kind == "unknown"
    assert "no blank is 0" in shown.warnings()[-1]
    assert mechanism.warnings() == []
    # With π_s = 1 there is nothing to refresh.
    certain = SamplingPrivacy(cells=2, sampling=1.0, refresh=0.5)
    assert certain.claim(ReleasedDifferences(crowd=3)).delta(4.0) == 1.0
    assert certain.claim(LinkedReports()).kind == "infinite"
    np.testing.assert_array_equal(certain.std_error(np.array([5, 2, 1])), 0.0)


@pytest.mark.parametrize("refresh", [-0.1, 1.1, math.nan, "x", True])
def test_invalid_refresh_is_refused(refresh):
    with pytest.raises(ParameterError, match=r"^refresh must be a"):
        SamplingPrivacy(cells=3, sampling=0.4, refresh=refresh)


@every
def test_no_device_asked_and_no_report_received(mechanism):
    unasked = mechanism.estimate(np.zeros((2, mechanism.cells + 1), dtype=int), counted=[0, 0], asked=[0, 0])
    assert not unasked.count.any()
    assert not unasked.std_error.any()
    unheard = mechanism.estimate(np.zeros((2, mechanism.cells + 1), dtype=int), counted=[0, 9], asked=[9, 9])
    assert np.isinf(unheard.std_error).all()
    assert not mechanism.sample_counts(np.zeros(mechanism.cells + 1, dtype=int), rng=default_rng(7)).any()
