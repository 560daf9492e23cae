"""Inference in a crowd: a few devices by enumeration, tilted sums, and the last device of a crowd."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanism_cases import uneven_prior
from reference_divergences import difference_law
from scipy.stats import binom, multinomial

from mechanisms import local
from mechanisms.inference.crowd import Crowd
from mechanisms.inference.dropout import dropped_others_success, released_twice_success
from mechanisms.inference.known_others import LastDevice, OwnPart, parts_of_reports
from mechanisms.inference.likelihood import guess_success, posterior, report_law
from mechanisms.inference.report_law import NoLikelihoodError
from mechanisms.inference.tilted import TiltedPairs, crowd_law
from mechanisms.privacy import released_differences_delta

PRIOR = np.array([0.2, 0.3, 0.5])
CROWDS = {
    "sampling": (local.SamplingPrivacy(cells=2, sampling=0.45), 6),
    "refreshed": (local.SamplingPrivacy(cells=2, sampling=0.4, refresh=0.5), 4),
    "binary": (local.BinarySamplingPrivacy(cells=2, sampling=0.3), 4),
    "unary": (local.SymmetricUnary(cells=2, epsilon=1.5), 6),
    "subset": (local.SubsetSelection(cells=2, epsilon=1.0), 6),
}


def test_two_devices_by_hand():
    """Reports 0, 1 of two devices that tell the truth with 3/4; their sum is seen, and one report or none."""
    masses = np.array([[0.75, 0.25], [0.25, 0.75]])
    crowd = Crowd(2, np.array([0.5, 0.5]), masses, np.array([[0], [1]]), np.array([-9]))
    every = np.ones(2, dtype=bool)
    assert crowd.posterior([every, every], np.array([2])) == pytest.approx(np.array([[0.25, 0.75]] * 2))
    assert crowd.posterior([every, np.array([False, True])], np.array([1])) == pytest.approx(
        np.array([[0.75, 0.25], [0.25, 0.75]])
    )
    assert crowd.posterior([every, every], np.array([5])) is None
    assert crowd.success([[], []], 0) == pytest.approx(0.25 * 0.75 + 0.5 * 0.5 + 0.25 * 0.75)
    assert crowd.success([[], [np.arange(2)]], 0) == pytest.approx(0.75)


def test_an_outcome_that_no_device_gives_is_left_out():
    """Two outcomes are possible as above; the third is only that of a truth with the prior 0."""
    masses = np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    crowd = Crowd(2, np.array([0.5, 0.5, 0.0]), masses, np.array([[0], [1], [2]]), np.array([-9]))
    every = np.ones(3, dtype=bool)
    assert crowd.posterior([every, every], np.array([2])) == pytest.approx(np.array([[0.25, 0.75, 0.0]] * 2))


@pytest.mark.parametrize("name", CROWDS)
def test_tilted_laws_are_nearly_exact_and_lose_hardly_any_success(name):
    mechanism, n = CROWDS[name]
    outcomes, rng = report_law(mechanism).outcomes(), np.random.default_rng(1)
    flat = [encoding.reshape(len(encoding), -1) for encoding in outcomes.encodings]
    added = np.concatenate(flat, axis=1)
    crowd = Crowd(n, PRIOR, outcomes.masses, added, np.full(added.shape[1], -9))
    rounds = [(), (1,), (2,)] if len(flat) == 2 else [()]
    differences, found, best = [], [], []
    for _ in range(40):
        truths = rng.choice(len(PRIOR), n, p=PRIOR)
        sent = np.array([rng.choice(outcomes.masses.shape[1], p=outcomes.masses[truth]) for truth in truths])
        law = crowd_law(mechanism, PRIOR, {r: one[sent].sum(axis=0) for r, one in enumerate(outcomes.encodings, 1)}, n)
        for linked in rounds:
            possible = [np.ones(len(added), dtype=bool) for _ in range(n)]
            for device in range(n):
                for r in linked:
                    possible[device] &= (flat[r - 1] == flat[r - 1][sent[device]]).all(axis=1)
            exact = crowd.posterior(possible, added[sent].sum(axis=0))[0]
            tilted = posterior(law.logs({r: outcomes.encodings[r - 1][sent[:1]] for r in linked}), PRIOR)[0]
            differences.append(np.abs(exact - tilted).max())
            found.append(exact[tilted.argmax()])
            best.append(exact.max())
    assert np.mean(differences) < 0.03
    assert np.mean(found) > 0.99 * np.mean(best)
    if name == "sampling":  # the sums determine the pairs of reports
        assert max(differences) < 0.005


def test_sums_of_support_and_differences_show_the_frequent_cell():
    rng, n = np.random.default_rng(3), 400
    truth = np.repeat([0, 1, 2, 3], [40, 60, 240, 60]).astype(np.int32)
    prior = np.full(4, 0.25)
    for mechanism in (local.SubsetSelection(cells=3, epsilon=2.0), local.LocalHashing(cells=3, epsilon=2.0)):
        reports = mechanism.answer(1, truth, mechanism.toss(mechanism.enrol(n, rng=rng), rng=rng))
        law = crowd_law(mechanism, prior, {1: mechanism.tally(reports)}, n)
        assert posterior(law.logs({}), prior)[0].argmax() == 2
    mechanism = local.SamplingPrivacy(cells=3, sampling=0.45)
    shares = np.array([27, 0, 108]) / n
    law = TiltedPairs.of_differences(mechanism, prior, shares, np.array([True, False, True]))
    after = posterior(law.logs({}), prior)[0]
    # All others are blanks, or sampled outside or in the cell that is not shown.
    others = (1.0 - shares.sum()) / (0.55 + 0.45 * 0.5)
    weights = np.array([0.25, 0.55 * 0.25, 0.25, 0.55 * 0.25]) * others + np.array([0.0, shares[0], 0.0, shares[2]])
    assert after == pytest.approx(weights, rel=1e-12)


def last_device(mechanism, cell, crowd, shown, *, k=None, rounds=(), read=()):
    """The last device of cells, of which a difference is published and some reports are read."""
    crowd = np.atleast_1d(crowd)
    place = np.full(len(crowd), cell)
    reports = [np.full(len(crowd), read[rounds.index(r)]) if r in rounds else None for r in (1, 2)]
    return LastDevice(
        None if shown is None else np.broadcast_to(shown, len(crowd)),
        crowd - 1,
        np.zeros_like(crowd),
        mechanism.sampling,
        0.0,
        OwnPart.of_reports(mechanism, place, *reports),
        list(parts_of_reports(mechanism, place, rounds)),
        None if k is None else np.broadcast_to(k, len(crowd)),
    )


def success_of(last):
    """Success of the likelier guess at even odds, of each cell."""
    return np.array([np.maximum(*last.pair(row)).sum() / 2 for row in range(len(last.inside))])


def guesses_of(last):
    """Whether each device is likelier in the cell; what differs by rounding only is equally likely."""
    return np.array([last.evidence(row) for row in range(len(last.inside))]) > 1e-9


def difference_guess_success(*, crowd, sampling, k=None):
    """Success of guessing whether a device is in a cell or outside, at even odds, from the published difference."""
    return success_of(last_device(local.SamplingPrivacy(cells=1, sampling=sampling), 1, crowd, 0, k=k))


def guess_in_cell(difference, *, crowd, sampling, k=None):
    """Whether the device is guessed to be in the cell, from the published differences."""
    return guesses_of(last_device(local.SamplingPrivacy(cells=1, sampling=sampling), 1, crowd, difference, k=k))


@given(n=st.integers(1, 25), beta=st.floats(0.01, 0.99), k=st.none() | st.integers(1, 28))
def test_guess_and_success_from_a_difference_equal_enumeration(n, beta, k):
    present, absent = (difference_law(devices, k, beta, n) for devices in (n, n - 1))
    seen = np.arange(n + 1) if k is None else np.append(0, np.arange(min(k, n + 1), n + 1))
    guessed = np.array([guess_in_cell(difference, crowd=n, sampling=beta, k=k)[0] for difference in seen])
    clear = np.abs(present - absent) > 1e-8 * absent
    assert (guessed == (present > absent))[clear].all()
    success = difference_guess_success(crowd=n, sampling=beta, k=k)
    assert success == pytest.approx(np.maximum(present, absent).sum() / 2, rel=1e-9)
    variation = released_differences_delta(crowd=n, sampling=beta, epsilon=0.0, k=k)
    assert success == pytest.approx((1 + variation) / 2, rel=1e-9)


def test_impossible_differences_are_uninformative():
    assert not guess_in_cell(np.array([-1, 9]), crowd=np.array([5, 5]), sampling=0.3).any()
    sure = guess_in_cell(np.array([3, 4, 5]), crowd=np.array([5, 5, 5]), sampling=1.0)
    assert sure.tolist() == [False, False, True]
    # Suppressed although 45,000 are expected: outside every cell, if either.
    assert not guess_in_cell(0, crowd=np.array([10**5]), sampling=0.45, k=20).any()


REFRESHED = {
    "paper": local.SamplingPrivacy(cells=3, sampling=0.45),
    "unequal": local.SamplingPrivacy(cells=3, sampling=0.3, blank=[0.1, 0.3, 0.05]),
    "no blank zero": local.SamplingPrivacy(cells=3, sampling=0.45, blank_zero=0.0),
    "refreshed": local.SamplingPrivacy(cells=3, sampling=0.4, blank=[0.1, 0.2, 0.05], refresh=0.5),
    "all refreshed": local.SamplingPrivacy(cells=3, sampling=0.3, refresh=1.0),
    "everyone sampled": local.SamplingPrivacy(cells=3, sampling=1.0),
}


def pairs_of(mechanism):
    """P(w, v | t) by the definition, (w, v, t)."""
    blanks, sampling, refresh = mechanism.blanks, mechanism.sampling, mechanism.refresh
    again = blanks / (1 - sampling) if sampling < 1 else 0 * blanks
    k = len(blanks)
    pairs = np.zeros((k, k, k))
    for w, v, t in itertools.product(range(k), repeat=3):
        pairs[w, v, t] = blanks[w] * ((1 - refresh) * (w == v) + refresh * again[v]) + sampling * (w == 0) * (v == t)
    return pairs


@pytest.mark.parametrize("name", sorted(REFRESHED))
@pytest.mark.parametrize("seed", [1])
def test_dropped_others_success_equals_enumeration(name, seed):
    mechanism, prior = REFRESHED[name], uneven_prior(4, seed)
    pairs = pairs_of(mechanism)
    np.testing.assert_allclose(pairs.sum(axis=(0, 1)), 1.0)
    assert dropped_others_success(mechanism, prior) == guess_success(mechanism, (1, 2), prior)
    # Own differences over the real cells.
    seen = {}
    for w, v in itertools.product(range(4), repeat=2):
        key = tuple((np.eye(4, dtype=int)[v] - np.eye(4, dtype=int)[w])[1:])
        seen[key] = seen.get(key, 0.0) + pairs[w, v] * prior
    own = sum(weights.max() for weights in seen.values())
    assert released_twice_success(mechanism, prior) == pytest.approx(own, rel=1e-11)
    # N devices in round one, every tally of the N − 1 others.
    first = mechanism.blanks.copy()
    first[0] += mechanism.sampling
    for devices in (2, 5):
        best = 0.0
        others = [c for c in itertools.product(range(devices), repeat=4) if sum(c) == devices - 1]
        chance = {c: multinomial.pmf(c, devices - 1, first / first.sum()) for c in others}
        tallies = {tuple(np.add(c, np.eye(4, dtype=int)[w]).tolist()) for c in others for w in range(4)}
        for tally in tallies:
            for v in range(4):
                weights = np.zeros(4)
                for w in range(4):
                    rest = tuple(np.subtract(tally, np.eye(4, dtype=int)[w]).tolist())
                    weights += prior * pairs[w, v] * chance.get(rest, 0.0)
                best += weights.max()
        found = dropped_others_success(mechanism, prior, first_round=devices)
        assert found == pytest.approx(best, rel=1e-10)


def test_invalid_drop_outs_are_refused():
    prior = uneven_prior(4)
    with pytest.raises(local.ParameterError, match="first_round"):
        dropped_others_success(REFRESHED["paper"], prior, first_round=0)
    for success in (released_twice_success, lambda mechanism, q: dropped_others_success(mechanism, q, first_round=2)):
        with pytest.raises(NoLikelihoodError, match="KRandomizedResponse"):
            success(local.KRandomizedResponse(cells=3, epsilon=1.0), prior)


@pytest.mark.parametrize("rounds", [(), (1,), (2,), (1, 2)])
@pytest.mark.parametrize(
    "mechanism",
    [local.SamplingPrivacy(cells=3, sampling=0.37, blank_zero=0.2), local.SamplingPrivacy(cells=2, sampling=0.6)],
)
@pytest.mark.parametrize("n", [1, 5])
def test_own_reports_with_difference_equal_enumeration(mechanism, rounds, n):
    """Whether the device is in cell 2 or outside, from some of its reports and a cell's difference, by enumeration."""
    beta, cell = mechanism.sampling, 2
    pairs = [((blank, blank), mass) for blank, mass in enumerate(mechanism.blanks.tolist())]
    for k in (None, 1, 6):
        distributions = []
        for truth in (cell, 0):
            distribution = {}
            for (first, second), mass in [((0, truth), beta), *pairs]:
                for others in range(n):
                    difference = others + (second == cell) - (first == cell)
                    shown = "suppressed" if k is not None and difference < k else difference
                    key = (tuple((first, second)[round_ - 1] for round_ in rounds), shown)
                    distribution[key] = distribution.get(key, 0.0) + mass * binom.pmf(others, n - 1, beta)
            distributions.append(distribution)
        inside, outside = distributions
        expected = sum(max(inside.get(key, 0.0), outside.get(key, 0.0)) for key in inside.keys() | outside.keys()) / 2
        found = success_of(last_device(mechanism, cell, n, 0, k=k, rounds=rounds, read=(0, 0)))
        assert found[0] == pytest.approx(expected, abs=1e-12)
        unpublished = success_of(last_device(mechanism, cell, n, None, rounds=rounds, read=(0, 0)))
        assert 0.5 <= unpublished[0] <= found[0] + 1e-12
        # The guess attains it.
        hits = 0.0
        for read, shown in inside.keys() | outside.keys():
            seen = -1 if shown == "suppressed" else shown
            guessed = guesses_of(last_device(mechanism, cell, n, seen, k=k, rounds=rounds, read=read))[0]
            hits += (inside if guessed else outside).get((read, shown), 0.0)
        assert hits / 2 == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("noise", [None, (0.2, 0.6, 0.2)])
@pytest.mark.parametrize(("inside", "outside"), [(0, 0), (2, 3)])
@pytest.mark.parametrize(("p", "q"), [(0.7, 0.2), (1.0, 0.0), (0.5, 0.1)])
def test_guess_and_success_from_a_sum_of_bits_equal_enumeration(p, q, inside, outside, noise):
    others = np.convolve(binom.pmf(np.arange(inside + 1), inside, p), binom.pmf(np.arange(outside + 1), outside, q))
    others = others if noise is None else np.convolve(others, noise)
    first = 0 if noise is None else -1
    laws = [(1 - yes) * np.append(others, 0.0) + yes * np.append(0.0, others) for yes in (p, q)]
    expected = np.maximum(*laws).sum() / 2

    def last(value, bit):
        own = OwnPart.of_bits(p, q, None if bit is None else np.array([bit]), 1)
        possible = [own] if bit is None else [OwnPart.of_bits(p, q, np.array([one]), 1) for one in (0, 1)]
        crowds = np.array([inside]), np.array([outside])
        return LastDevice(np.array([value]), *crowds, p, q, own, possible, noise=noise)

    values = range(first, first + len(laws[0]))
    hits = sum(laws[0 if guesses_of(last(value, None))[0] else 1][value - first] for value in values)
    assert hits / 2 == pytest.approx(expected, abs=1e-12)
    assert success_of(last(first, None))[0] == pytest.approx(expected, abs=1e-12)
    # Given the device's own bit the sum reveals no more.
    assert success_of(last(first, 1))[0] == pytest.approx((1 + p - q) / 2, abs=1e-12)
    likely = first + int(others.argmax())
    assert [bool(guesses_of(last(likely + bit, bit))[0]) for bit in (0, 1)] == [False, True]
