"""The contract of every mechanism: the deterministic checks of the conformance kit, and what they omit."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import ALL, run_query, truth_of

from mechanisms.local import DistributedLaplace, LocalMechanism, ParameterError
from simulator.kits.findings import run_check
from simulator.kits.mechanism import MechanismContract
from simulator.kits.mechanisms.harness import Harness

CHECKS = (
    *("reports", "estimates", "answer_draws_nothing", "others_stay", "early_rounds", "hidden_state"),
    *("nothing_written_on", "bad_inputs"),
)
every = pytest.mark.parametrize("mechanism", ALL.values(), ids=ALL.keys())


FEW_OF_MANY_CELLS = ("OUE, 130 cells", "k-ary, 130 cells", "anonymized, best, many cells")


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].cells <= 5 or name in FEW_OF_MANY_CELLS])
def test_deterministic_checks_of_the_kit_find_no_fault(name):
    mechanism = ALL[name]
    trial = Harness(mechanism, 0, 1e-6, 2_000, 1)
    for check in CHECKS:
        result = run_check(check, MechanismContract.checks()[check], trial)
        assert result.passed, f"{check}: {result.detail}"


@every
def test_is_a_local_mechanism(mechanism):
    assert isinstance(mechanism, LocalMechanism)
    assert mechanism.sample_law in {"exact joint", "exact per-cell marginals"}
    assert 1 <= mechanism.truth_round <= mechanism.rounds
    assert 1 <= mechanism.batch <= 2**20
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # noqa: S301 - our own bytes
    assert f"cells={mechanism.cells}" in repr(mechanism)


@every
def test_equal_seeds_give_equal_reports(mechanism):
    truth = np.full(300, 1, dtype=np.int32)
    counts = [run_query(mechanism, truth, rng=np.random.default_rng(seed)) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(counts[0], counts[1])
    certain = not mechanism.std_error(np.bincount(truth, minlength=mechanism.cells + 1)).any()
    assert certain or not np.array_equal(counts[0], counts[2])


@every
def test_no_devices_and_no_received_reports(mechanism):
    counts = run_query(mechanism, np.empty(0, dtype=np.int32), rng=np.random.default_rng(6))
    assert counts.shape == (mechanism.rounds, *mechanism.tally_shape)
    assert not counts.any()
    none = (0,) * mechanism.rounds
    estimate = mechanism.estimate(counts, counted=none, asked=none)
    for values in (estimate.count, estimate.std_error, estimate.lower, estimate.upper):
        np.testing.assert_array_equal(values, np.zeros(mechanism.cells))
    assert not mechanism.sample_counts(np.zeros(mechanism.cells + 1, dtype=int), rng=np.random.default_rng(0)).any()
    truth = np.zeros(mechanism.cells + 1, dtype=int)
    truth[0] = 100
    for silent in range(mechanism.rounds):
        counted, asked = [70] * mechanism.rounds, [100] * mechanism.rounds
        counted[silent] = 0
        estimate = mechanism.estimate(counts, counted=counted, asked=asked)
        assert np.isinf(estimate.std_error).all()
        assert (estimate.lower == 0).all()
        assert (estimate.upper == 100).all()
        assert (estimate.count == 0).all()
        assert np.isinf(mechanism.std_error(truth, asked=asked, counted=counted)).all()


@pytest.mark.parametrize("name", ["sampling", "k-ary, 3 cells", "OLH, 3 cells", "Laplace shares", "deniable"])
def test_refusals_name_the_argument(name):
    mechanism = ALL[name]
    rng = np.random.default_rng(8)
    truth = np.zeros(9, dtype=np.int32)
    coins = mechanism.toss(mechanism.enrol(9, rng=rng), rng=rng)
    reports = mechanism.answer(1, truth, coins)
    counts, nine = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64), [9] * mechanism.rounds
    good = np.full(mechanism.cells + 1, 2)
    refused = {
        "truth": [lambda: mechanism.answer(1, truth - 1, coins), lambda: mechanism.answer(1, truth.tolist(), coins)],
        "round": [lambda: mechanism.answer(mechanism.rounds + 1, truth, coins)],
        "where": [lambda: mechanism.tally(reports, np.ones(8, dtype=bool))],
        "n": [lambda: mechanism.enrol(-1, rng=rng)],
        "reports": [lambda: mechanism.tally(np.zeros((9, 2))), lambda: mechanism.encode(np.zeros((9, 2)))],
        "counts": [lambda: mechanism.estimate(counts.astype(float), counted=nine, asked=nine)],
        "counted": [lambda: mechanism.estimate(counts, counted=[10] * mechanism.rounds, asked=nine)],
        "asked": [
            lambda: mechanism.estimate(counts, counted=nine, asked=[9] * 5),
            lambda: mechanism.std_error(good, asked=[1] * mechanism.rounds),
        ],
        "true_counts": [lambda: mechanism.std_error(-good), lambda: mechanism.sample_counts(good[:-1], rng=rng)],
    }
    for field, calls in refused.items():
        for call in calls:
            with pytest.raises(ParameterError, match=rf"^{field} must"):
                call()


@every
def test_reports_share_no_memory_with_the_coins(mechanism):
    rng = np.random.default_rng(9)
    truth = truth_of([2, 3])
    coins = mechanism.toss(mechanism.enrol(5, rng=rng), rng=rng)
    first = mechanism.answer(1, truth, coins)
    before = mechanism.encode(mechanism.answer(1, truth, coins))
    rows = getattr(first, "bits", first)
    if isinstance(rows, np.ndarray) and rows.flags.writeable:
        rows[:] = 0
    np.testing.assert_array_equal(mechanism.encode(mechanism.answer(1, truth, coins)), before)
    assert truth.tolist() == [0, 0, 1, 1, 1]


@settings(max_examples=150)
@given(name=st.sampled_from(sorted(ALL)), data=st.data())
def test_estimates_have_no_nan_and_intervals_stay_in_range(name, data):
    """Any counts, honest or forged, of any number of received reports."""
    mechanism = ALL[name]
    asked = [data.draw(st.integers(0, 10**6))] * mechanism.rounds
    if mechanism.rounds == 2 and data.draw(st.booleans()):
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


@pytest.mark.parametrize("name", ["first attempt", "cancelling", "deniable"])
def test_later_rounds_must_not_ask_more_devices(name):
    mechanism = ALL[name]
    counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    asked = [10] + [11] * (mechanism.rounds - 1)
    with pytest.raises(ParameterError, match=r"^asked must not exceed the 10 of round 1"):
        mechanism.estimate(counts, counted=asked, asked=asked)


def test_batch_of_laplace_shares_grows_with_the_number_of_devices():
    batches = [DistributedLaplace(cells=1000, epsilon=0.5, devices=n).batch for n in (1, 100, 10**4, 10**7)]
    assert batches == sorted(batches)
    assert batches[0] < 2000
    assert batches[-1] > 10**6
