"""Success of the best guess: formulas against enumeration, and against simulated devices."""

import itertools
import math
import warnings

import numpy as np
import pytest
from claim_laws import MAKERS, deniable, hashing, longitudinal
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import DENIABLE, SMALL, brute_force, uneven_prior, views_of
from reference_divergences import linked_guess_success

from mechanisms import local
from mechanisms.inference.laws import CellLaw
from mechanisms.inference.likelihood import guess_success
from mechanisms.parameter import ParameterError

few = settings(max_examples=25)


def truths(weights):
    total = sum(weights)
    return np.array([w / total for w in weights])


def priors(size):
    """Priors with ties, zeros and any order."""
    return st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any).map(truths)


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
@few
@given(seed=st.integers(0, 2**32), cells=st.integers(1, 3), queries=st.integers(1, 3), data=st.data())
def test_success_equals_enumeration(maker, seed, cells, queries, data):
    """Of some rounds' reports, or of all, with random parameters; each query's coins are new."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters outside the papers' ranges
        mechanism, law = maker(np.random.default_rng(seed), cells if maker not in (deniable, hashing) else 1)
    rounds, prior = data.draw(st.sampled_from(views_of(mechanism))), data.draw(priors(mechanism.cells + 1))
    rows = list(law.rows(mechanism.cells))
    masses = {}
    for truth, row in enumerate(rows):
        for whole, mass in row.items():
            seen = masses.setdefault(tuple(whole[r - 1] for r in rounds), np.zeros(len(rows)))
            seen[truth] += mass
    queries = 1 if maker is longitudinal else min(queries, 1 + int(len(masses) < 40) + int(len(masses) < 12))
    found = guess_success(mechanism, rounds, prior, queries)
    if found is None:
        assert isinstance(mechanism, local.LocalHashing | local.SubsetSelection | local.HadamardResponse)
        return
    assert found == pytest.approx(brute_force(np.array(list(masses.values())).T, prior, queries), rel=1e-8)


@few
@given(prior=priors(5))
def test_linked_success_equals_the_published_formula(prior):
    mechanism = local.SamplingPrivacy(cells=4, sampling=0.45, blank_zero=0.07)
    found = guess_success(mechanism, (1, 2), prior)
    assert found == pytest.approx(linked_guess_success(sampling=0.45, blank_zero=0.07, prior=prior), rel=1e-12)
    # T queries: sampled at least once in a real cell, or the zeros.
    times, rest = 6, 1.0 - 0.45 - 0.07
    zeros = sum(
        math.comb(times, z) * rest ** (times - z) * max(prior[0] * (0.07 + 0.45) ** z, prior[1:].max() * 0.07**z)
        for z in range(times + 1)
    )
    expected = (1 - prior[0]) * (1 - 0.55**times) + zeros
    assert guess_success(mechanism, (1, 2), prior, times) == pytest.approx(expected, rel=1e-11)


@few
@given(prior=priors(3), queries=st.integers(1, 4), kind=st.sampled_from(["optimised", "symmetric"]))
def test_memoised_success_equals_enumeration_of_histories(prior, queries, kind):
    """Permanent bits enumerated, and for each every history of flips."""
    mechanism = local.LongitudinalUnary(cells=2, epsilon_permanent=2.0, epsilon_first=1.0, permanent=kind)
    flip = mechanism.flip
    histories = list(itertools.product((0, 1), repeat=queries))

    def chance(history, kept):
        given_one = math.prod(1 - flip if bit else flip for bit in history)
        given_zero = math.prod(flip if bit else 1 - flip for bit in history)
        return kept * given_one + (1 - kept) * given_zero

    yes, no = ([chance(h, kept) for h in histories] for kept in (mechanism.true_kept, mechanism.false_kept))
    matrix = np.array([np.outer(no, no).ravel(), np.outer(yes, no).ravel(), np.outer(no, yes).ravel()])
    found = guess_success(mechanism, None, prior, queries)
    assert found == pytest.approx(brute_force(matrix, prior), rel=1e-11)


@few
@given(prior=priors(3), epsilon=st.floats(0.5, 4))
def test_laplace_success_equals_its_distribution(prior, epsilon):
    """The distribution of a share from its two negative binomials."""
    from scipy.stats import nbinom  # noqa: PLC0415 - half a second, for this test only

    mechanism = local.DistributedLaplace(cells=2, epsilon=epsilon, devices=7)
    reach = math.ceil(45 * 2 / epsilon)
    one_sided = nbinom.pmf(np.arange(4 * reach), 1 / 7, -math.expm1(-epsilon / 2))
    distribution = {k: float(one_sided[: -abs(k) or None] @ one_sided[abs(k) :]) for k in range(-reach - 1, reach + 2)}
    f = np.array([distribution[x] for x in range(-reach, reach + 1)])
    shifted = np.array([distribution[x - 1] for x in range(-reach, reach + 1)])
    matrix = np.array([np.outer(f, f).ravel(), np.outer(shifted, f).ravel(), np.outer(f, shifted).ravel()])
    assert guess_success(mechanism, None, prior) == pytest.approx(brute_force(matrix, prior), rel=1e-10)


def test_memoisation_bounds_the_success_of_repeated_queries():
    mechanism = local.LongitudinalUnary(cells=20, epsilon_permanent=2.0, epsilon_first=1.0)
    prior = np.full(21, 1 / 21)
    kept = [guess_success(mechanism, None, prior, t) for t in (1, 10, 200)]
    fresh = [CellLaw.of_bits(20, mechanism.bit).guess_success(prior, t) for t in (1, 10, 200)]
    known = guess_success(local.OptimisedUnary(cells=20, epsilon=2.0), None, prior)
    assert kept[0] == fresh[0]
    assert fresh[1] > kept[1]
    assert fresh[2] > 0.99
    # Any number of queries reveals less than the permanent bits, and many queries nearly as much.
    assert kept[1] < kept[2] < known + 1e-12 < kept[2] + 1e-6


def test_success_with_many_cells_and_queries():
    """V of thousands: closed forms apply; T = 100 linked queries locate nearly every device."""
    prior = uneven_prior(2_001)
    found = guess_success(local.SamplingPrivacy(cells=2_000, sampling=0.45), None, prior)
    expected = linked_guess_success(sampling=0.45, blank_zero=0.55 / 2_001, prior=prior)
    assert found == pytest.approx(expected, rel=1e-12)
    prior = uneven_prior(10_001)
    for other in (local.OptimisedUnary, local.SubsetSelection, local.HadamardResponse, local.KRandomizedResponse):
        assert prior.max() < guess_success(other(cells=10_000, epsilon=4.0), None, prior) < 0.5
    assert guess_success(local.SamplingPrivacy(cells=10_000, sampling=0.45), (2,), prior, 1_000) is None, (
        "too long, and says so"
    )
    small = local.SamplingPrivacy(cells=10, sampling=0.45)
    assert guess_success(small, None, np.full(11, 1 / 11), 100) > 1.0 - 1e-9


def test_success_of_certain_and_uninformative_reports():
    prior = uneven_prior(4)
    assert guess_success(local.NoPrivacy(cells=3), None, prior) == pytest.approx(1.0)
    assert guess_success(local.SamplingPrivacy(cells=3, sampling=1.0), (2,), prior) == pytest.approx(1.0)
    assert guess_success(local.SamplingPrivacy(cells=3, sampling=1e-9), None, prior) == pytest.approx(prior.max())
    known = np.array([0.0, 1.0, 0.0, 0.0])
    for mechanism in SMALL.values():
        if mechanism.cells == 3 and guess_success(mechanism, None, known) is not None:
            assert guess_success(mechanism, None, known) == pytest.approx(1.0, abs=1e-12)


def test_unsupported_success_queries_are_refused():
    prior = uneven_prior(4)
    with pytest.raises(ParameterError, match="queries"):
        guess_success(local.NoPrivacy(cells=3), None, prior, 0)
    for wrong in (prior[:3], prior * 2, np.array([0.5, 0.5, 0.5, -0.5]), np.full(4, np.nan)):
        with pytest.raises(ParameterError, match="prior"):
            guess_success(local.NoPrivacy(cells=3), None, wrong)
    with pytest.raises(ParameterError, match="rounds"):
        guess_success(local.AnonymizedDeniable(cells=3, **DENIABLE), (4,), prior)
