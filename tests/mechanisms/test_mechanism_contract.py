"""The contract that every mechanism satisfies."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import MECHANISMS, run_query, truth_of

from mechanisms.local import LocalMechanism, ParameterError

every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


@every
def test_is_a_local_mechanism(mechanism):
    assert isinstance(mechanism, LocalMechanism)
    assert mechanism.sample_law == "exact joint"
    assert 1 <= mechanism.truth_round <= mechanism.rounds
    assert mechanism.batch >= 1
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # noqa: S301 - our own bytes
    assert "cells=" in repr(mechanism)


@every
def test_report_shapes_dtypes_and_tally(mechanism):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, mechanism.cells + 1, 700).astype(np.int32)
    coins = mechanism.toss(mechanism.enrol(700, rng=rng), rng=rng)
    mask = rng.random(700) < 0.4
    for number in range(1, mechanism.rounds + 1):
        reports = mechanism.answer(number, truth, coins)
        assert len(reports) == 700
        vectors = mechanism.encode(reports)
        assert vectors.shape == (700, *mechanism.tally_shape)
        assert vectors.dtype == np.int64
        tally = mechanism.tally(reports)
        assert tally.dtype == np.int64
        np.testing.assert_array_equal(tally, vectors.sum(axis=0))
        np.testing.assert_array_equal(mechanism.tally(reports, mask), vectors[mask].sum(axis=0))
        np.testing.assert_array_equal(mechanism.tally(reports[mask]), vectors[mask].sum(axis=0))
        np.testing.assert_array_equal(mechanism.tally(reports, np.zeros(700, dtype=bool)), 0 * tally)


@every
def test_coins_do_not_depend_on_truth(mechanism):
    """Changing one device's truth changes no other's report, and answering draws nothing."""
    rng = np.random.default_rng(2)
    truth = np.zeros(40, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(40, rng=rng), rng=rng)
    state = copy.deepcopy(rng.bit_generator.state)
    for number in range(1, mechanism.rounds + 1):
        before = mechanism.encode(mechanism.answer(number, truth, coins))
        for cell in range(1, mechanism.cells + 1):
            moved = truth.copy()
            moved[17] = cell
            after = mechanism.encode(mechanism.answer(number, moved, coins))
            np.testing.assert_array_equal(np.delete(after, 17, axis=0), np.delete(before, 17, axis=0))
        np.testing.assert_array_equal(mechanism.encode(mechanism.answer(number, truth, coins)), before)
    assert rng.bit_generator.state == state


@every
def test_tossing_depends_only_on_the_generator(mechanism):
    counts = [
        run_query(mechanism, np.full(500, 1, dtype=np.int32), rng=np.random.default_rng(seed)) for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(counts[0], counts[1])
    assert mechanism.rounds == 1 or not np.array_equal(counts[0], counts[2])


@every
def test_single_device_is_a_batch_of_one(mechanism):
    """The same coins, held one device at a time, give the rows of the whole batch."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, mechanism.cells + 1, 12).astype(np.int32)
    coins = mechanism.toss(mechanism.enrol(12, rng=rng), rng=rng)
    fields = {name: getattr(coins, name) for name in coins.__slots__}
    for number in range(1, mechanism.rounds + 1):
        whole = mechanism.encode(mechanism.answer(number, truth, coins))
        for i in range(12):
            row = {k: v[i : i + 1] if isinstance(v, np.ndarray) else v and 1 for k, v in fields.items()}
            alone = mechanism.answer(number, truth[i : i + 1], type(coins)(**row))
            np.testing.assert_array_equal(mechanism.encode(alone)[0], whole[i])


@every
def test_empty_batch_has_zero_tally_and_zero_estimate(mechanism):
    counts = run_query(mechanism, np.empty(0, dtype=np.int32), rng=np.random.default_rng(6))
    assert counts.shape == (mechanism.rounds, *mechanism.tally_shape)
    assert not counts.any()
    none = (0,) * mechanism.rounds
    estimate = mechanism.estimate(counts, counted=none, asked=none)
    for values in (estimate.count, estimate.std_error, estimate.lower, estimate.upper):
        np.testing.assert_array_equal(values, np.zeros(mechanism.cells))
    assert not mechanism.sample_counts(np.zeros(mechanism.cells + 1, dtype=int), rng=np.random.default_rng(0)).any()


@every
def test_round_without_received_reports_is_uninformative(mechanism):
    counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    for silent in range(mechanism.rounds):
        counted = [70] * mechanism.rounds
        counted[silent] = 0
        asked = [100] * mechanism.rounds
        estimate = mechanism.estimate(counts, counted=counted, asked=asked)
        assert np.isinf(estimate.std_error).all()
        assert (estimate.lower == 0).all()
        assert (estimate.upper == 100).all()
        assert (estimate.count == 0).all()
        truth = np.zeros(mechanism.cells + 1, dtype=int)
        truth[0] = 100
        assert np.isinf(mechanism.std_error(truth, asked=asked, counted=counted)).all()


@every
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("truth", lambda truth: truth.astype(np.int64)),
        ("truth", lambda truth: truth[:-1]),
        ("truth", lambda truth: truth - 1),
        ("truth", lambda truth: truth + np.int32(1000)),
        ("truth", lambda truth: truth[:, np.newaxis]),
        ("truth", lambda truth: truth.tolist()),
    ],
)
def test_invalid_truths_are_refused(mechanism, field, change):
    rng = np.random.default_rng(7)
    coins = mechanism.toss(mechanism.enrol(9, rng=rng), rng=rng)
    for number in range(1, mechanism.rounds + 1):
        with pytest.raises(ParameterError, match=rf"^{field} must"):
            mechanism.answer(number, change(np.zeros(9, dtype=np.int32)), coins)


@every
def test_invalid_rounds_masks_counts_and_totals_are_refused(mechanism):
    rng = np.random.default_rng(8)
    truth = np.zeros(9, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(9, rng=rng), rng=rng)
    for number in (0, mechanism.rounds + 1, -1):
        with pytest.raises(ParameterError, match=r"^round must be in 1\.\."):
            mechanism.answer(number, truth, coins)
    reports = mechanism.answer(1, truth, coins)
    for mask in (np.ones(8, dtype=bool), np.ones(9, dtype=int)):
        with pytest.raises(ParameterError, match=r"^where must"):
            mechanism.tally(reports, mask)
    with pytest.raises(ParameterError, match=r"^n must"):
        mechanism.enrol(-1, rng=rng)
    counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    nine = [9] * mechanism.rounds
    for bad, counted, asked, field in (
        (counts[:, :-1], nine, nine, "counts"),
        (counts.astype(float), nine, nine, "counts"),
        (counts, [10] * mechanism.rounds, nine, "counted"),
        (counts, nine, [9] * 5, "asked"),
        (counts, [-1] * mechanism.rounds, nine, "counted"),
    ):
        with pytest.raises(ParameterError, match=rf"^{field} must"):
            mechanism.estimate(bad, counted=counted, asked=asked)
    good = np.full(mechanism.cells + 1, 2)
    for bad in (good[:-1], -good, good.astype(float)):
        with pytest.raises(ParameterError, match=r"^true_counts must"):
            mechanism.std_error(bad)
        with pytest.raises(ParameterError, match=r"^true_counts must"):
            mechanism.sample_counts(bad, rng=rng)
    with pytest.raises(ParameterError, match=r"^asked must be the sum of true_counts"):
        mechanism.std_error(good, asked=[1] * mechanism.rounds)


@every
def test_reports_share_no_memory_with_the_coins(mechanism):
    rng = np.random.default_rng(9)
    truth = truth_of([2, 3])
    coins = mechanism.toss(mechanism.enrol(5, rng=rng), rng=rng)
    first = mechanism.answer(1, truth, coins)
    before = mechanism.encode(mechanism.answer(1, truth, coins))
    rows = getattr(first, "bits", first)
    if rows.flags.writeable:
        rows[:] = 0
    np.testing.assert_array_equal(mechanism.encode(mechanism.answer(1, truth, coins)), before)
    assert truth.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.fast_cases(3)
@every
@given(data=st.data())
def test_estimates_have_no_nan_and_intervals_stay_in_range(mechanism, data):
    """Any counts, honest or forged, of any number of received reports."""
    rounds = mechanism.rounds
    asked = [data.draw(st.integers(0, 10**6))] * rounds
    if rounds > 1 and data.draw(st.booleans()):
        asked[1] = data.draw(st.integers(0, asked[0]))
    counted = [data.draw(st.one_of(st.just(n), st.integers(0, n))) for n in asked]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = np.stack([rng.integers(-3, n + 4, mechanism.tally_shape) for n in counted])
    estimate = mechanism.estimate(counts, counted=counted, asked=asked)
    limit = asked[mechanism.truth_round - 1]
    assert (estimate.upper <= limit).all()
    clipped = np.clip(estimate.count, 0, limit)
    assert (estimate.lower <= clipped + 1e-6 * (1 + limit)).all()
    assert (estimate.upper >= clipped - 1e-6 * (1 + limit)).all()
