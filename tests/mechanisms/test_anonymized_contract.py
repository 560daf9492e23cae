"""The mechanism contract, applied to the binary query mechanisms."""

import dataclasses
import inspect

import numpy as np
import pytest
import test_mechanism_contract as contract
from binary_query_cases import QUESTIONS, step_of_query
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import run_query, truth_of
from mechanism_statistics import check_moments, check_same_distribution, estimate_counts, z_bound

from mechanisms.local import ParameterError

every = pytest.mark.parametrize("mechanism", QUESTIONS.values(), ids=QUESTIONS.keys())
PROMISES = [
    function
    for name, function in vars(contract).items()
    if name.startswith("test_") and list(inspect.signature(function).parameters) == ["mechanism"]
]


@every
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_contract(mechanism, promise):
    promise(mechanism)


def test_contract_has_at_least_eight_tests():
    assert len(PROMISES) >= 8


@pytest.mark.fast_cases(3)
@every
@settings(deadline=None)
@given(data=st.data())
def test_estimates_have_no_nan_and_intervals_stay_in_range(mechanism, data):
    """Any counts, honest or forged, of any number of received reports."""
    rounds = mechanism.rounds
    devices = data.draw(st.integers(0, 10**6))
    asked = [devices] + [data.draw(st.integers(0, devices)) for _ in range(rounds - 1)]
    counted = [data.draw(st.one_of(st.just(n), st.integers(0, n))) for n in asked]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = np.stack([rng.integers(-3, n + 4, mechanism.tally_shape) for n in counted])
    estimate = mechanism.estimate(counts, counted=counted, asked=asked)
    assert (estimate.upper <= devices).all()
    clipped = np.clip(estimate.count, 0, devices)
    assert (estimate.lower <= clipped + 1e-6 * (1 + devices)).all()
    assert (estimate.upper >= clipped - 1e-6 * (1 + devices)).all()


@every
def test_invalid_truths_are_refused(mechanism):
    rng = np.random.default_rng(31)
    coins = mechanism.toss(mechanism.enrol(4, rng=rng), rng=rng)
    for truth in (
        np.zeros(3, np.int32),
        np.zeros(4),
        np.full(4, -1, np.int32),
        np.full(4, mechanism.cells + 1, np.int32),
    ):
        with pytest.raises(ParameterError, match=r"^truth must"):
            mechanism.answer(1, truth, coins)


def true_counts_of(mechanism, scale=1):
    counts = np.zeros(mechanism.cells + 1, dtype=np.int64)
    counts[: min(4, len(counts))] = np.array([60, 5, 20, 15])[: min(4, len(counts))] * scale
    return counts


@pytest.mark.fast_cases(10)
@every
@pytest.mark.parametrize("source", ["reports", "counts"])
def test_estimates_are_unbiased_with_theoretical_variance(mechanism, source):
    rng = np.random.default_rng(32)
    true_counts = true_counts_of(mechanism)
    truth, asked = truth_of(true_counts), [int(true_counts.sum())] * mechanism.rounds
    draw = {
        "reports": lambda: run_query(mechanism, truth, rng=rng),
        "counts": lambda: mechanism.sample_counts(true_counts, rng=rng),
    }[source]
    seen = estimate_counts(mechanism, [draw() for _ in range(1500)], counted=asked, asked=asked)
    theory = mechanism.std_error(true_counts)
    certain = theory == 0.0
    np.testing.assert_array_equal(seen[:, certain], np.broadcast_to(true_counts[1:][certain], seen[:, certain].shape))
    check_moments(seen[:, ~certain], true_counts[1:][~certain], theory[~certain], step=step_of_query(mechanism) + 1.0)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("name", [name for name, mechanism in QUESTIONS.items() if mechanism.cells <= 3])
def test_reports_and_sample_counts_have_one_joint_distribution(name):
    """Whole outcomes, every round and output jointly, of two devices in cells and one outside."""
    mechanism, repeats = QUESTIONS[name], 20_000
    rng = np.random.default_rng(33)
    truth = np.array([0, 1, mechanism.cells], dtype=np.int32)
    devices = np.tile(truth, repeats)
    coins = mechanism.toss(mechanism.enrol(len(devices), rng=rng), rng=rng)
    by_report = np.stack(
        [mechanism.encode(mechanism.answer(r + 1, devices, coins)) for r in range(mechanism.rounds)], axis=1
    )
    by_report = by_report.reshape(repeats, 3, -1).sum(axis=1)
    counts = np.bincount(truth, minlength=mechanism.cells + 1)
    by_count = np.stack([mechanism.sample_counts(counts, rng=rng).ravel() for _ in range(repeats)])
    check_same_distribution(by_report, by_count)


LOSSY = {
    "warner": ([60], [100]),
    "anonymized, best": ([35], [100]),
    "first attempt": ([80, 60], [100, 70]),
    "cancelling": ([70, 90], [100, 100]),
    "cancelling, one cell": ([65, 50], [65, 50]),
    "deniable": ([90, 60, 50], [100, 80, 70]),
    "deniable, both ways": ([65, 40, 55], [65, 40, 60]),
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", LOSSY)
def test_estimates_under_loss_are_unbiased_with_exact_variance(name):
    """The reports that arrive are a simple random sample of each round; later rounds ask a subset of the devices."""
    mechanism, (counted, asked) = QUESTIONS[name], LOSSY[name]
    rng = np.random.default_rng(34)
    true_counts = true_counts_of(mechanism)
    if mechanism.cells == 2:
        true_counts[0] += 15
    truth, seen = truth_of(true_counts), []
    assert asked[0] == len(truth)
    for _ in range(3000):
        leaving, masks = rng.permutation(len(truth)), []
        for received, size in zip(counted, asked, strict=True):
            mask = np.zeros(len(truth), dtype=bool)
            mask[rng.permutation(leaving[:size])[:received]] = True
            masks.append(mask)
        counts = run_query(mechanism, truth, rng=rng, where=masks)
        seen.append(counts)
    theory = mechanism.std_error(true_counts, asked=asked, counted=counted)
    rate = max(asked[0] / n for n in counted)
    scores = rate * np.abs(mechanism.linear_estimator.weights).max(axis=1).sum()
    estimates = estimate_counts(mechanism, seen, counted=counted, asked=asked)
    check_moments(estimates, true_counts[1:], theory, step=scores + abs(mechanism.linear_estimator.offset))


@pytest.mark.parametrize("name", ["first attempt", "cancelling", "deniable"])
def test_later_rounds_must_not_ask_more_devices(name):
    mechanism = QUESTIONS[name]
    counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    asked = [10] + [11] * (mechanism.rounds - 1)
    with pytest.raises(ParameterError, match=r"^asked must not exceed the 10 of round 1"):
        mechanism.estimate(counts, counted=asked, asked=asked)


def test_a_billion_devices_are_sampled_by_counts():
    rng = np.random.default_rng(35)
    true_counts = np.full(10_001, 10**5)
    for name in ("warner", "anonymized, best", "cancelling", "deniable"):
        mechanism = dataclasses.replace(QUESTIONS[name], cells=10_000)
        counts = mechanism.sample_counts(true_counts, rng=rng)
        assert counts.shape == (mechanism.rounds, *mechanism.tally_shape)
        assert (counts.sum(axis=-1) == true_counts.sum()).all()


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("name", QUESTIONS)
def test_intervals_cover(name):
    """A score interval misses when Ŷ is beyond 1.96 σ: by Berry-Esseen that is within 2·.56·step/σ of 5 %."""
    mechanism, repeats = QUESTIONS[name], 600
    rng = np.random.default_rng(36)
    true_counts = true_counts_of(mechanism, scale=20)
    asked = [int(true_counts.sum())] * mechanism.rounds
    hits = []
    for _ in range(repeats):
        estimate = mechanism.estimate(mechanism.sample_counts(true_counts, rng=rng), counted=asked, asked=asked)
        hits.append((estimate.lower[0] <= true_counts[1]) & (true_counts[1] <= estimate.upper[0]))
    normal = 2 * 0.56 * step_of_query(mechanism) / mechanism.std_error(true_counts)[0]
    exact = estimate.interval == "binomial inversion"
    least = 0.95 - (0.0 if exact else normal)
    assert np.mean(hits) > least - z_bound(1) * np.sqrt(least * (1 - least) / repeats)
