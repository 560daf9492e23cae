"""Likelihoods against simulated devices: the posterior of a report is calibrated."""

import itertools
import math

import numpy as np
import pytest
from mechanism_cases import ALL, SMALL, answers_of, protocol_matrix, unary_matrix, uneven_prior, views_of
from mechanism_statistics import FAMILY
from scipy.stats import chi2

from mechanisms import local
from mechanisms.inference.likelihood import (
    best_guess,
    guess_cells,
    log_likelihood,
    posterior,
    repeated_log_likelihood,
    report_law,
    sampled_posterior,
)
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.protocols import ParameterError, sampling_privacy

DEVICES = 20_000
PARTS = {"sampling": (2,), "refresh": (2,), "binary sampling": (2,), "deniable": (1, 3), "cancelling": (1,)}
VIEWS = [(name, views_of(SMALL[name])[-1]) for name in sorted(SMALL)] + [*PARTS.items()]


def check_calibrated(keys, truth, after):
    """Among devices with one and the same report, truths have the frequencies of their posterior: chi-square."""
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    assert not (after[np.arange(len(truth)), truth] == 0.0).any(), "a truth called impossible happened"
    observed = np.zeros((group.max() + 1, after.shape[1]))
    np.add.at(observed, (group, truth), 1.0)
    expected = np.zeros_like(observed)
    np.add.at(expected, group, after)
    statistic, freedom = 0.0, 0
    for seen, wanted in zip(observed, expected, strict=True):
        large = wanted >= 5.0
        seen_, wanted_ = np.append(seen[large], seen[~large].sum()), np.append(wanted[large], wanted[~large].sum())
        if wanted_[-1] < 5.0:
            seen_, wanted_ = seen_[:-1], wanted_[:-1]
        if len(wanted_) > 1:
            statistic += float(((seen_ - wanted_) ** 2 / wanted_).sum())
            freedom += len(wanted_) - 1
    assert chi2.sf(statistic, max(freedom, 1)) > FAMILY / len(VIEWS), (statistic, freedom)
    return freedom


def even_enough(mechanism):
    """All prior probabilities differ, and none is too small for the test."""
    truths = mechanism.cells + 1
    return (uneven_prior(truths) + 1.0 / truths) / 2


@pytest.mark.parametrize(("name", "rounds"), VIEWS)
def test_posterior_is_calibrated(name, rounds):
    mechanism, rng = SMALL[name], np.random.default_rng(7)
    prior = even_enough(mechanism)
    truth = rng.choice(len(prior), size=DEVICES, p=prior).astype(np.int32)
    (reports,) = answers_of(mechanism, truth, rounds, rng=rng)
    logs = log_likelihood(mechanism, reports, rounds)
    assert logs.shape == (DEVICES, mechanism.cells + 1)
    after = posterior(logs, prior)
    if isinstance(mechanism, local.DistributedLaplace):
        keys = np.clip(mechanism.encode(reports[0]), -2, 3)  # larger cases have few devices
        keys = np.hstack([keys, np.round(after, 9)])
    else:
        keys = np.hstack([mechanism.encode(report).reshape(DEVICES, -1) for report in reports])
    check_calibrated(keys, truth, after)


@pytest.mark.parametrize("name", ["OUE, 3 cells", "L-OSUE", "L-SUE", "k-ary, 3 cells", "sampling", "Laplace shares"])
def test_repeated_posterior_is_calibrated(name):
    mechanism, rng = SMALL[name], np.random.default_rng(8)
    prior = even_enough(mechanism)
    truth = rng.choice(len(prior), size=DEVICES, p=prior).astype(np.int32)
    rounds = tuple(range(1, mechanism.rounds + 1))
    asked = answers_of(mechanism, truth, rounds, rng=rng, queries=3)
    after = posterior(repeated_log_likelihood(mechanism, asked), prior)
    check_calibrated(np.round(after, 9), truth, after)


@pytest.mark.parametrize("refresh", ["0", "3/10", "1"])
@pytest.mark.parametrize("rounds", [(1,), (2,), (1, 2)])
def test_sampling_privacy_likelihood_equals_its_table(refresh, rounds):
    blank = ["1/10", "1/5", "1/20"]
    protocol = sampling_privacy(cells=3, sampling="2/5", blank=blank, refresh=refresh)
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.4, blank=[0.1, 0.2, 0.05], refresh=eval_fraction(refresh))
    matrix = protocol_matrix(protocol, rounds)
    distributions = [protocol.law(kind) for kind in protocol.kinds]
    seen = list(dict.fromkeys(tuple(a[r - 1] for r in rounds) for distribution in distributions for a in distribution))
    reports = [np.array([int(answers[i]) for answers in seen], dtype=np.int32) for i in range(len(rounds))]
    found = np.exp(log_likelihood(mechanism, reports, rounds))
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), (matrix / matrix.sum(axis=0)).T, atol=1e-12)


def check_likelihood(mechanism, reports, matrix, rounds=None):
    """Up to a constant a row, the logarithms of a (truths, outputs) matrix."""
    with np.errstate(divide="ignore"):
        found, wanted = log_likelihood(mechanism, reports, rounds), np.log(matrix.T)
    possible = wanted.max(axis=1) > -np.inf
    assert np.isneginf(found[~possible]).all()
    found, wanted = found[possible], wanted[possible]
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(wanted))
    np.testing.assert_allclose(
        np.exp(found - found.max(axis=1, keepdims=True)), np.exp(wanted - wanted.max(axis=1, keepdims=True)), rtol=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.2, 6.0])
def test_likelihoods_of_values_and_sets(epsilon):
    """The distribution of each mechanism as in its paper, for every output."""
    weight = np.exp(epsilon)
    symbols = np.arange(5)
    k_ary = local.KRandomizedResponse(cells=4, epsilon=epsilon)
    check_likelihood(k_ary, [symbols.astype(np.int32)], (1 + (weight - 1) * np.eye(5)) / (weight + 4))
    hadamard = local.HadamardResponse(cells=4, epsilon=epsilon)
    outputs = np.arange(hadamard.outputs)
    signs = np.array([[(-1) ** ((t + 1) & int(y)).bit_count() for y in outputs] for t in symbols])
    check_likelihood(hadamard, [outputs.astype(np.int32)], np.where(signs > 0, weight, 1.0))
    for size in range(1, 5):
        subsets = np.array([s for s in itertools.product((0, 1), repeat=5) if sum(s) == size])
        subset = local.SubsetSelection(cells=4, epsilon=epsilon, size=size)
        check_likelihood(subset, [local.BitReports.from_dense(subsets)], np.where(subsets.T == 1, weight, 1.0))
    hashing = local.LocalHashing(cells=4, epsilon=epsilon, buckets=3)
    seeds = np.repeat(np.random.default_rng(1).integers(2**63, size=(20, 2), dtype=np.uint64), 3, axis=0)
    reports = local.HashedReports(seeds, np.tile(np.arange(3, dtype=np.int32), 20))
    # (ax + b mod 2⁶⁴)/2³², then ·3/2³²: the bucket, in Python's integers.
    buckets = np.array([[((int(a) * x + int(b)) % 2**64 >> 32) * 3 >> 32 for a, b in seeds] for x in range(5)])
    check_likelihood(hashing, [reports], np.where(buckets == reports.values, weight, 1.0))


@pytest.mark.parametrize(
    "name", ["SUE, 3 cells", "OUE, 3 cells", "THE, 3 cells", "L-OSUE", "L-SUE", "randomized response"]
)
def test_likelihoods_of_bits(name):
    mechanism = SMALL[name]
    rows = np.arange(8)[:, np.newaxis] >> np.arange(3) & 1
    check_likelihood(
        mechanism, [local.BitReports.from_dense(rows)], unary_matrix(mechanism.true_yes, mechanism.false_yes, 3)
    )


@pytest.mark.parametrize("name", sorted(name for name, m in SMALL.items() if hasattr(m, "binary_query")))
def test_likelihoods_of_binary_queries(name):
    """Every answer about every cell in every round; its probability is a product over cells."""
    mechanism = SMALL[name]
    binary_query, cells = mechanism.binary_query, mechanism.cells
    every = list(itertools.product(range(len(binary_query.answers)), repeat=cells))
    rows = np.array([[binary_query.answers[a] for a in choice] for choice in every])
    matrix = np.array(
        [
            [
                math.prod((binary_query.yes if v == t else binary_query.no)[a] for v, a in enumerate(c, start=1))
                for c in every
            ]
            for t in range(cells + 1)
        ]
    )
    for rounds in views_of(mechanism):
        seen = rows[:, :, [r - 1 for r in rounds]].reshape(len(rows), -1)
        unique, group = np.unique(seen, axis=0, return_inverse=True)
        merged = np.zeros((cells + 1, len(unique)))
        np.add.at(merged.T, group.reshape(-1), matrix.T)
        shaped = unique.reshape(len(unique), cells, len(rounds))
        reports = [
            local.AnswerReports.from_dense(shaped[:, :, i], len(binary_query.outputs)) for i in range(len(rounds))
        ]
        # Answers with probability below 10⁻¹⁵, possible only by rounding, are omitted.
        kept = merged.max(axis=0) > 1e-15
        check_likelihood(mechanism, [report[kept] for report in reports], merged[:, kept], rounds)


def eval_fraction(text):
    top, _, bottom = text.partition("/")
    return int(top) / int(bottom or 1)


@pytest.mark.parametrize("name", sorted(ALL))
def test_batches_encodings_and_partial_sums(name, monkeypatch):
    """The batch size changes nothing; a sum of the shares, in either word type, is equivalent to the reports."""
    mechanism, rng = ALL[name], np.random.default_rng(5)
    truth = rng.integers(mechanism.cells + 1, size=40, dtype=np.int32)
    rounds = range(1, mechanism.rounds + 1)
    (reports,) = answers_of(mechanism, truth, rounds, rng=rng)
    prior = uneven_prior(mechanism.cells + 1)
    whole = log_likelihood(mechanism, reports)
    after = posterior(whole, prior)
    vectors = [mechanism.encode(report) for report in reports]
    np.testing.assert_array_equal(log_likelihood(mechanism, vectors), whole)
    np.testing.assert_array_equal(log_likelihood(mechanism, [v.astype(np.uint64) for v in vectors]), whole)
    if not isinstance(mechanism, local.DistributedLaplace):
        part = [rng.integers(2**64 - 1, size=(5, *mechanism.tally_shape), dtype=np.uint64) for _ in rounds]
        np.testing.assert_allclose(posterior(log_likelihood(mechanism, part), prior), np.tile(prior, (5, 1)))
    (none,) = answers_of(mechanism, truth[:0], rounds, rng=rng)
    assert log_likelihood(mechanism, none).shape == (0, mechanism.cells + 1)
    monkeypatch.setattr("mechanisms.inference.likelihood.BATCH_FLOATS", 7 * (mechanism.cells + 1))
    np.testing.assert_array_equal(log_likelihood(mechanism, reports), whole)
    guesses, sure = guess_cells(mechanism, reports, prior)
    np.testing.assert_array_equal(guesses, best_guess(after))
    np.testing.assert_array_equal(sure, after.max(axis=1))


def test_impossible_reports_leave_the_prior():
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.4)
    forged = [np.array([2], dtype=np.int32), np.array([3], dtype=np.int32)]
    logs = log_likelihood(mechanism, forged)
    assert np.isneginf(logs).all()
    prior = uneven_prior(4)
    np.testing.assert_allclose(posterior(logs, prior)[0], prior)
    never = local.SamplingPrivacy(cells=3, sampling=0.4, blank=[0.0, 0.3, 0.3])
    assert sampled_posterior(never, np.array([0, 1, 2], dtype=np.int32)).tolist() == [1.0, 0.4, 0.0]


class Plain:
    """A mechanism without a known likelihood."""

    cells, rounds = 2, 1


class Own(local.OptimisedUnary):
    """A mechanism that overrides the likelihood of its base class."""

    def log_likelihood(self, reports, rounds):
        assert rounds == (1,)
        return np.tile([0.0, 1.0, 2.0], (len(reports[0]), 1))


def test_plug_in_likelihoods():
    with pytest.raises(NoLikelihoodError, match="Plain") as caught:
        log_likelihood(Plain(), [np.zeros(1, dtype=np.int32)])
    assert isinstance(caught.value, NotImplementedError)
    own = Own(cells=2, epsilon=1.0)
    (reports,) = answers_of(own, np.zeros(3, dtype=np.int32), (1,), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(log_likelihood(own, reports)[:, 2], 2.0)
    with pytest.raises(NoLikelihoodError, match="Plain"):
        report_law(Plain(), (1,))


def test_invalid_plug_in_likelihood_is_refused():
    class Wrong(Own):
        def log_likelihood(self, reports, rounds):  # noqa: ARG002 - the signature of a mechanism
            return np.full((len(reports[0]), 3), np.nan)

    wrong = Wrong(cells=2, epsilon=1.0)
    (reports,) = answers_of(wrong, np.zeros(3, dtype=np.int32), (1,), rng=np.random.default_rng(0))
    with pytest.raises(ParameterError, match="Wrong"):
        log_likelihood(wrong, reports)


@pytest.mark.parametrize(("rounds", "count"), [((), 0), ((1, 1), 2), ((3,), 1), ((0,), 1), ((1, 2), 1), ((1.5,), 1)])
def test_invalid_rounds_are_refused(rounds, count):
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.4)
    with pytest.raises(ParameterError):
        log_likelihood(mechanism, [np.zeros(2, dtype=np.int32)] * count, rounds)


def test_invalid_reports_are_refused():
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.4)
    zeros = np.zeros(2, dtype=np.int32)
    for reports in ([zeros, zeros[:1]], [zeros, zeros + 4], [zeros, np.zeros((2, 3), dtype=np.int64)], zeros):
        with pytest.raises(ParameterError):
            log_likelihood(mechanism, reports)
    with pytest.raises(ParameterError, match="prior"):
        guess_cells(mechanism, [zeros, zeros], np.full(3, 1 / 3))
    for logs in (np.full((1, 3), np.nan), np.full((1, 3), np.inf), np.zeros(3)):
        with pytest.raises(ParameterError, match="log_likelihood"):
            posterior(logs, np.full(3, 1 / 3))


def test_ties_are_broken_uniformly():
    rows = np.tile([0.25, 0.375, 0.0, 0.375], (4_000, 1))
    assert (best_guess(rows) == 1).all()
    guesses = best_guess(rows, rng=np.random.default_rng(4))
    assert set(np.unique(guesses)) == {1, 3}
    # 4,000 fair coins: six standard deviations.
    assert abs(np.count_nonzero(guesses == 1) - 2_000) < 6 * np.sqrt(1_000)
    assert best_guess(np.empty((0, 3)), rng=np.random.default_rng(4)).shape == (0,)


@pytest.mark.parametrize("name", ["sampling", "sampling, unequal blanks", "refresh"])
def test_sampled_posterior_is_calibrated(name):
    mechanism, rng = SMALL[name], np.random.default_rng(11)
    prior = uneven_prior(mechanism.cells + 1)
    truth = rng.choice(len(prior), size=DEVICES, p=prior).astype(np.int32)
    coins = mechanism.toss(mechanism.enrol(DEVICES, rng=rng), rng=rng)
    report = mechanism.answer(1, truth, coins)
    chance = sampled_posterior(mechanism, report)
    hidden = (coins.drawn < 0).astype(np.int64)
    keys = mechanism.encode(report).reshape(DEVICES, -1)
    check_calibrated(keys, hidden, np.stack([1 - chance, chance], axis=1))


def test_laplace_ratio_of_extreme_entries():
    """Entries beyond the table, as in forged reports, have a finite ratio that continues smoothly."""
    mechanism = local.DistributedLaplace(cells=1, epsilon=0.01, devices=50)
    entries = np.array([[4_090], [4_096], [4_097], [10_000], [10**12], [-(10**12)]])
    ratio = log_likelihood(mechanism, [entries])[:, 1]
    assert np.isfinite(ratio).all()
    assert (np.diff(ratio[:5]) < 0).all()
    np.testing.assert_allclose(ratio[1:3], ratio[0], rtol=1e-4)
    np.testing.assert_allclose(ratio[4], 0.01, rtol=1e-9)
    np.testing.assert_allclose(ratio[5], -0.01, rtol=1e-9)
