"""The mechanism contract, applied to the baselines."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldp_baseline_cases import BASELINES
from mechanism_cases import run_query

from mechanisms.local import LocalMechanism, ParameterError

every = pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES.keys())


def toss(baseline, n, rng):
    return baseline.toss(baseline.enrol(n, rng=rng), rng=rng)


@every
def test_is_a_local_mechanism(baseline):
    assert isinstance(baseline, LocalMechanism)
    assert baseline.rounds == baseline.truth_round == 1
    assert baseline.sample_law in {"exact joint", "exact per-cell marginals"}
    assert 1 <= baseline.batch <= 2**20
    assert baseline.warnings() == []
    assert pickle.loads(pickle.dumps(baseline)) == baseline  # noqa: S301 - our own bytes
    assert f"cells={baseline.cells}" in repr(baseline)


@every
def test_the_tally_is_the_sum_of_encodings(baseline):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, baseline.cells + 1, 700).astype(np.int32)
    reports = baseline.answer(1, truth, toss(baseline, 700, rng))
    mask = rng.random(700) < 0.4
    assert len(reports) == 700
    assert reports.nbytes > 0
    vectors = baseline.encode(reports)
    assert vectors.shape == (700, *baseline.tally_shape)
    assert vectors.dtype == baseline.tally(reports).dtype == np.int64
    for where, some in ((None, vectors), (mask, vectors[mask]), (np.zeros(700, dtype=bool), vectors[:0])):
        np.testing.assert_array_equal(baseline.tally(reports, where), some.sum(axis=0))
    for index in (mask, slice(5, 90), np.array([3, 1, 600])):
        np.testing.assert_array_equal(baseline.encode(reports[index]), vectors[index])
        np.testing.assert_array_equal(baseline.tally(reports[index]), vectors[index].sum(axis=0))


@every
def test_coins_do_not_depend_on_truth(baseline):
    """Changing one device's truth changes no other's report, and answering draws nothing."""
    rng = np.random.default_rng(2)
    truth = np.zeros(40, dtype=np.int32)
    coins = toss(baseline, 40, rng)
    state = copy.deepcopy(rng.bit_generator.state)
    before = baseline.encode(baseline.answer(1, truth, coins))
    for cell in range(1, baseline.cells + 1):
        moved = truth.copy()
        moved[17] = cell
        after = baseline.encode(baseline.answer(1, moved, coins))
        np.testing.assert_array_equal(np.delete(after, 17, axis=0), np.delete(before, 17, axis=0))
    np.testing.assert_array_equal(baseline.encode(baseline.answer(1, truth, coins)), before)
    assert rng.bit_generator.state == state


@every
def test_equal_seeds_give_equal_reports(baseline):
    truth = np.full(300, 1, dtype=np.int32)
    counts = [run_query(baseline, truth, rng=np.random.default_rng(seed)) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(counts[0], counts[1])
    assert not np.array_equal(counts[0], counts[2])


@every
def test_single_device_is_a_batch_of_one(baseline):
    """The same coins, one device at a time, give the rows of the whole batch; and one device can toss alone."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, baseline.cells + 1, 12).astype(np.int32)
    coins = toss(baseline, 12, rng)
    assert len(coins) == 12
    whole = baseline.encode(baseline.answer(1, truth, coins))
    for i in range(12):
        if hasattr(coins, "__getitem__"):
            row = coins[np.arange(i, i + 1)]
        else:
            values = {field.name: getattr(coins, field.name) for field in dataclasses.fields(coins)}
            row = type(coins)(**{name: value[i : i + 1] for name, value in values.items() if value is not None})
        alone = baseline.answer(1, truth[i : i + 1], row)
        np.testing.assert_array_equal(baseline.encode(alone)[0], whole[i])
    assert len(baseline.answer(1, truth[:1], toss(baseline, 1, rng))) == 1


@every
def test_empty_batch_has_zero_tally_and_zero_estimate(baseline):
    rng = np.random.default_rng(6)
    counts = run_query(baseline, np.empty(0, dtype=np.int32), rng=rng)
    assert counts.shape == (1, *baseline.tally_shape)
    assert not counts.any()
    estimate = baseline.estimate(counts, counted=(0,), asked=(0,))
    for values in (estimate.count, estimate.std_error, estimate.lower, estimate.upper):
        np.testing.assert_array_equal(values, np.zeros(baseline.cells))
    no_devices = np.zeros(baseline.cells + 1, dtype=int)
    assert not baseline.sample_counts(no_devices, rng=rng).any()
    assert not baseline.std_error(no_devices).any()


@every
def test_round_without_received_reports_is_uninformative(baseline):
    counts = np.zeros((1, *baseline.tally_shape), dtype=np.int64)
    estimate = baseline.estimate(counts, counted=[0], asked=[100])
    assert np.isinf(estimate.std_error).all()
    assert (estimate.lower == 0).all()
    assert (estimate.upper == 100).all()
    truth = np.zeros(baseline.cells + 1, dtype=int)
    truth[0] = 100
    assert np.isinf(baseline.std_error(truth, asked=[100], counted=[0])).all()


@every
def test_invalid_arguments_are_refused(baseline):
    rng = np.random.default_rng(8)
    truth = np.zeros(9, dtype=np.int32)
    coins = toss(baseline, 9, rng)
    for bad in (truth.astype(np.int64), truth[:-1], truth - 1, truth + np.int32(1000), truth.tolist()):
        with pytest.raises(ParameterError, match=r"^truth must"):
            baseline.answer(1, bad, coins)
    for number in (0, 2, -1):
        with pytest.raises(ParameterError, match=r"^round must be in 1\.\."):
            baseline.answer(number, truth, coins)
    reports = baseline.answer(1, truth, coins)
    for mask in (np.ones(8, dtype=bool), np.ones(9, dtype=int)):
        with pytest.raises(ParameterError, match=r"^where must"):
            baseline.tally(reports, mask)
    for foreign in (np.full(9, 10**6, dtype=np.int32), np.zeros((9, 2))):
        with pytest.raises(ParameterError, match=r"^reports must"):
            baseline.tally(foreign)
        with pytest.raises(ParameterError, match=r"^reports must"):
            baseline.encode(foreign)
    with pytest.raises(ParameterError, match=r"^n must"):
        baseline.enrol(-1, rng=rng)
    counts = np.zeros((1, *baseline.tally_shape), dtype=np.int64)
    for wrong, counted, asked, field in (
        (counts[0], [9], [9], "counts"),
        (counts.astype(float), [9], [9], "counts"),
        (counts, [10], [9], "counted"),
        (counts, [9], [9] * 5, "asked"),
    ):
        with pytest.raises(ParameterError, match=rf"^{field} must"):
            baseline.estimate(wrong, counted=counted, asked=asked)
    good = np.full(baseline.cells + 1, 2)
    for bad in (good[:-1], -good, good.astype(float)):
        with pytest.raises(ParameterError, match=r"^true_counts must"):
            baseline.std_error(bad)
        with pytest.raises(ParameterError, match=r"^true_counts must"):
            baseline.sample_counts(bad, rng=rng)


@pytest.mark.fast_cases(4)
@every
@given(data=st.data())
def test_estimates_have_no_nan_and_intervals_stay_in_range(baseline, data):
    """Any counts, honest or forged, of any number of received reports."""
    asked = data.draw(st.integers(0, 10**6))
    counted = data.draw(st.one_of(st.just(asked), st.integers(0, asked)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = rng.integers(-3, counted + 4, (1, *baseline.tally_shape))
    estimate = baseline.estimate(counts, counted=[counted], asked=[asked])
    assert (estimate.upper <= asked).all()
    clipped = np.clip(estimate.count, 0, asked)
    assert (estimate.lower <= clipped + 1e-6 * (1 + asked)).all()
    assert (estimate.upper >= clipped - 1e-6 * (1 + asked)).all()


@pytest.mark.parametrize("budget", [0.01, 0.5, math.log(3), 4.0, 25.0, 50.0])
@pytest.mark.parametrize("name", ["k-ary", "SUE", "OUE", "THE", "OLH", "subset", "Hadamard"])
def test_any_epsilon_gives_probabilities_and_runs(name, budget):
    from ldp_baseline_cases import BY_EPSILON  # noqa: PLC0415 - beside its use

    rng = np.random.default_rng(9)
    for cells in (1, 2, 63, 64):
        baseline = BY_EPSILON[name](cells=cells, epsilon=budget)
        assert 0 < baseline.false_yes < baseline.true_yes <= 1
        truth = rng.integers(0, cells + 1, 50).astype(np.int32)
        counts = run_query(baseline, truth, rng=rng)
        assert np.isfinite(baseline.estimate(counts, counted=[50], asked=[50]).count).all()
