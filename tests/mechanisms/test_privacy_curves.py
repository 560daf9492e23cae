"""δ(ε): the hockey stick, published differences, dominating pairs, binomials and digits, against brute force."""

import itertools
import math
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import binomial, exp, log, mp, mpf
from reference_divergences import composed_delta
from scipy.stats import binom

from mechanisms import local, privacy
from mechanisms.privacy.binomial import mass_above, mass_at, mass_up_to
from mechanisms.privacy.composition import at_least_once
from mechanisms.privacy.shuffled import ClonesDelta


def binomials(crowd, sampling):
    """Bin(n, β) and Bin(n − 1, β) by enumerating the sampled devices, 0…n."""
    rows = []
    for n in (crowd, crowd - 1):
        row = np.zeros(crowd + 1)
        for outcome in itertools.product((0, 1), repeat=n):
            k = sum(outcome)
            row[k] += sampling**k * (1 - sampling) ** (n - k)
        rows.append(row)
    return rows


@pytest.mark.parametrize("crowd", [200, 5_000])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.8])
def test_small_released_differences_are_accurate(crowd, epsilon):
    """Against the direct sum over outputs in extended logarithms."""
    sampling = 0.3
    k = np.arange(crowd + 1)
    one, other = binom.logpmf(k, crowd, sampling), binom.logpmf(k, crowd - 1, sampling)
    best = 0.0
    for p, q in ((one, other), (other, one)):
        gain = p - q - epsilon
        telling = gain > 0
        best = max(best, math.fsum(np.exp(p[telling]) * -np.expm1(-gain[telling])))
    assert privacy.released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon) == pytest.approx(
        best, rel=1e-6
    )


@pytest.mark.parametrize(
    ("crowd", "sampling", "epsilon", "field"),
    [
        (0, 0.4, 1, "crowd"),
        (2.5, 0.4, 1, "crowd"),
        (2, 0, 1, "sampling"),
        (2, 0.4, -1, "epsilon"),
        (2, 0.4, math.nan, "epsilon"),
    ],
)
def test_invalid_released_differences_are_refused(crowd, sampling, epsilon, field):
    with pytest.raises(local.ParameterError, match=rf"^{field} must"):
        privacy.released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon)


distributions = st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.3, 1.0]), min_size=4, max_size=4).filter(
    lambda w: sum(w) > 0
)


def normal(weights):
    return np.array(weights) / sum(weights)


@given(weights=st.lists(distributions, min_size=4, max_size=4), x=st.floats(0, 6))
@example(weights=[[0, 0.1, 0.1, 0.1], [0, 0, 0.01, 0.3], [0, 0.01, 0, 0.3], [0, 0, 0.1, 0.3]], x=1.0)  # as high near 0
def test_dominating_pairs_equal_the_maximum_of_their_pairs(weights, x):
    """At every likelihood ratio, including those below 1."""
    a, b, c, d = map(normal, weights)
    pairs = [(a, b), (b, a), (c, d)]
    p, q = privacy.dominating_pair(pairs)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    most = max(np.maximum(one - x * other, 0).sum() for one, other in pairs)
    assert np.maximum(p - x * q, 0).sum() == pytest.approx(most, abs=1e-9)


def test_dominating_pair_of_binomials():
    present, absent = binomials(8, 0.45)
    p, q = privacy.dominating_pair([(present, absent), (absent, present)])
    for epsilon in (0.0, 0.1, 0.4, 1.0, 3.0):
        larger = privacy.released_differences_delta(crowd=8, sampling=0.45, epsilon=epsilon)
        assert privacy.hockey_stick(p, q, epsilon=epsilon) == pytest.approx(larger, abs=1e-12)


@given(weights=distributions, other=distributions, epsilon=st.floats(0, 3))
def test_hockey_stick_equals_the_best_test(weights, other, epsilon):
    """Over every set of outputs, P[S] − e^ε Q[S] is at most δ, and attains it."""
    p, q = normal(weights), normal(other)
    sets = [np.array(s, dtype=bool) for s in itertools.product((0, 1), repeat=4)]
    best = max(p[s].sum() - math.exp(epsilon) * q[s].sum() for s in sets)
    assert privacy.hockey_stick(p, q, epsilon=epsilon) == pytest.approx(best, abs=1e-12)


def test_hockey_stick_refuses_invalid_distributions():
    for bad in ([0.5, 0.4], [1.2, -0.2], [math.nan, 1.0], []):
        with pytest.raises(local.ParameterError, match=r"^p must"):
            privacy.hockey_stick(bad, [0.5, 0.5], epsilon=1)
    with pytest.raises(local.ParameterError, match=r"^q must have the outputs of p"):
        privacy.hockey_stick([0.5, 0.5], [1.0], epsilon=1)
    assert privacy.hockey_stick([0.5, 0.5], [1.0, 0.0], epsilon=math.inf) == 0.5
    assert privacy.pair_epsilon([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_composition_is_a_tight_bound_of_the_product(queries):
    """Both directions: the pair is asymmetric, and the accountant's default would take the smaller one."""
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.2, 0.3, 0.4, 0.1])
    one, other = p, q
    for _ in range(queries - 1):
        one, other = np.outer(one, p).ravel(), np.outer(other, q).ravel()
    for epsilon in (0.0, 0.2, 0.9, 2.0, math.inf):
        exact = privacy.pair_delta(one, other, epsilon=epsilon)
        for a, b in ((p, q), (q, p)):
            bound = composed_delta(a, b, queries=queries, epsilon=epsilon)
            assert exact - 1e-9 <= bound <= exact + queries * 1e-4 + 1e-9


def test_an_event_happens_at_least_once_in_some_query():
    """A certain one in the first already, a rare one with the digits of its probability."""
    assert at_least_once(0.3, 1) == 0.3
    assert at_least_once(0.5, 3) == pytest.approx(0.875, rel=1e-15)
    assert at_least_once(1e-20, 10**6) == pytest.approx(1e-14, rel=1e-12)
    assert [at_least_once(1.0, queries) for queries in (1, 5)] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("p", "q", "queries"),
    [([0, 1], [1, 0], 1), ([0, 1], [1, 0], 3), ([1e-200, 1], [1, 0], 2), ([0.9, 0.1], [0.0, 1.0], 40)],
)
def test_composition_of_fully_distinguishable_pairs(p, q, queries):
    """The accountant raises on a pair whose losses are all infinite, or almost surely one of them."""
    for epsilon in (0.0, 1.0, 50.0, math.inf):
        assert composed_delta(p, q, queries=queries, epsilon=epsilon) == pytest.approx(1.0, abs=1e-12)
        assert composed_delta(p, p, queries=queries, epsilon=epsilon) == pytest.approx(0.0, abs=1e-12)


DIGITS = 1e-12
EPSILONS = (1e-6, 0.01, 1.0, 10.0, 40.0, 50.0)
SHARES = (0.0, 0.1, 0.5, 0.9)


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mp.workdps(60):
        yield


def close(value, exact):
    """Whether a double agrees with an exact number to twelve digits."""
    return abs(mpf(value) - exact) <= DIGITS * abs(exact)


def answers(p, q, cells):
    """The distributions of the bits that a move changes: one cell's bit, or two cells' bits for every truth."""
    yes, no = (1 - p, p), (1 - q, q)
    if cells == 1:
        return [no, yes]
    return [[a * b for a in one for b in two] for one, two in ((yes, no), (no, yes), (no, no))]


def worst_delta(distributions, epsilon):
    """The maximum hockey-stick divergence of any two truths."""
    pairs = itertools.permutations(distributions, 2)
    return max(sum(max(a - exp(epsilon) * b, mpf(0)) for a, b in zip(p, q, strict=True)) for p, q in pairs)


def worst_epsilon(distributions):
    """The maximum log ratio of any two truths."""
    pairs = itertools.permutations(distributions, 2)
    return max(abs(log(a / b)) for p, q in pairs for a, b in zip(p, q, strict=True))


def oue(cells, e):
    return local.OptimisedUnary(cells=cells, epsilon=e), answers(mpf(1) / 2, 1 / (exp(mpf(e)) + 1), cells)


def sue(cells, e):
    p = 1 / (1 + exp(-mpf(e) / 2))
    return local.SymmetricUnary(cells=cells, epsilon=e), answers(p, 1 - p, cells)


def the(cells, e):
    made = local.ThresholdHistogram(cells=cells, epsilon=e)
    place = mpf(made.threshold)
    return made, answers(1 - exp(mpf(e) * (place - 1) / 2) / 2, exp(-mpf(e) * place / 2) / 2, cells)


def memoised(cells, e, permanent):
    e = min(e, 30.0)
    made = local.LongitudinalUnary(cells=cells, epsilon_first=e, epsilon_permanent=1.5 * e, permanent=permanent)
    return made, (oue if permanent == "optimised" else sue)(cells, e)[1]


def k_ary(cells, e):
    total = exp(mpf(e)) + cells
    distributions = [[(exp(mpf(e)) if i == j else 1) / total for j in range(cells + 1)] for i in range(cells + 1)]
    return local.KRandomizedResponse(cells=cells, epsilon=e), distributions


ENCODINGS = {
    "OUE": oue,
    "SUE": sue,
    "THE": the,
    "L-OSUE": partial(memoised, permanent="optimised"),
    "L-SUE": partial(memoised, permanent="symmetric"),
    "k-ary": k_ary,
}


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_claims_of_one_report(encoding, cells):
    for e in EPSILONS:
        mechanism, distributions = encoding(cells, e)
        claim, exact = mechanism.claim(privacy.Report(1)), worst_epsilon(distributions)
        assert close(claim.epsilon, exact)
        for share in SHARES:
            epsilon = float(share * exact)
            assert close(claim.delta(epsilon), worst_delta(distributions, mpf(epsilon)))


@pytest.mark.parametrize("kind", [local.LocalHashing, local.SubsetSelection, local.HadamardResponse])
def test_claims_of_one_report_with_a_stated_epsilon(kind):
    for e in EPSILONS:
        assert kind(cells=4, epsilon=e).claim(privacy.Report(1)).epsilon == e
        assert kind(cells=4, epsilon=e).claim(privacy.Shuffled(1, 5)).epsilon == e


@pytest.mark.parametrize("small", [1e-9, 0.01])
@pytest.mark.parametrize("cells", [1, 3])
def test_claims_with_small_truth_probabilities(cells, small):
    """Randomized response with rare truthful answers, and binary Sampling Privacy with rare sampling."""
    s = mpf(small)
    response = local.RandomizedResponse(cells=cells, first_coin=small, second_coin=0.3)
    binary = local.BinarySamplingPrivacy(cells=cells, sampling=small, blank_zero=0.25)
    one = 1 - s - mpf(0.25)
    for claim, distributions in (
        (response.claim(privacy.Report(1)), answers(s + (1 - s) * mpf(0.3), (1 - s) * mpf(0.3), cells)),
        (binary.claim(privacy.Report(2)), answers(one + s, one, cells)),
    ):
        assert close(claim.epsilon, worst_epsilon(distributions))
        for share in SHARES:
            epsilon = float(share * worst_epsilon(distributions))
            assert close(claim.delta(epsilon), worst_delta(distributions, mpf(epsilon)))


def clones_delta(devices, e, epsilon):
    """Feldman, McMillan and Talwar 2021, theorem 3.1, summed as published."""
    e0, factor, delta = mpf(e), exp(mpf(epsilon)), mpf(0)
    clone, x = exp(-e0), 1 / (1 + exp(-e0))
    for m in range(devices):
        heads = [mpf(0), *(binomial(m, a) / mpf(2) ** m for a in range(m + 1)), mpf(0)]
        pairs = itertools.pairwise(heads)
        there = sum(
            max((before * x + at * (1 - x)) - factor * (before * (1 - x) + at * x), mpf(0)) for before, at in pairs
        )
        delta += binomial(devices - 1, m) * clone**m * (1 - clone) ** (devices - 1 - m) * there
    return delta


def blanket_delta(devices, cells, e, epsilon):
    """The hockey stick of k-ary randomized response's histogram, with the truthful among the others known."""
    e0, factor, delta, k = mpf(e), exp(mpf(epsilon)), mpf(0), cells + 1
    truthful = (exp(e0) - 1) / (exp(e0) + cells)
    blank = 1 - truthful
    for others in range(devices):
        draws = others + 1
        weight = binomial(devices - 1, others) * blank**others * truthful ** (devices - 1 - others)
        for a, b in itertools.product(range(draws + 1), repeat=2):
            rest = draws - a - b
            if rest < 0 or (k == 2 and rest > 0):
                continue
            mass = binomial(draws, a) * binomial(draws - a, b) * mpf(k - 2) ** rest / mpf(k) ** draws
            gap = blank + truthful * a * k / draws - factor * (blank + truthful * b * k / draws)
            delta += weight * mass * max(gap, mpf(0))
    return delta


@pytest.mark.parametrize("devices", [1, 2, 5])
def test_claims_of_shuffled_reports(devices):
    for e, share in itertools.product(EPSILONS, SHARES):
        assert close(ClonesDelta(devices, e)(share * e), clones_delta(devices, e, share * e))
        for cells in (1, 3):
            claim = local.KRandomizedResponse(cells=cells, epsilon=e).claim(privacy.Shuffled(1, devices))
            assert close(claim.epsilon, mpf(e))
            assert close(claim.delta(share * e), blanket_delta(devices, cells, e, share * e))


@pytest.mark.parametrize("sampling", [1e-9, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("queries", [2, 40])
def test_composition_is_never_above_basic_composition(sampling, queries):
    """A grid of losses has an error of about T·1e-4, which exceeds tiny losses."""
    made = [
        local.SamplingPrivacy(cells=1, sampling=sampling),
        local.SamplingPrivacy(cells=4, sampling=sampling, refresh=0.5),
        local.BinarySamplingPrivacy(cells=1, sampling=sampling, blank_zero=0.25),
        local.RandomizedResponse(cells=1, first_coin=sampling, second_coin=0.3),
    ]
    for mechanism in made:
        single, composed = (mechanism.claim(privacy.Report(mechanism.rounds, t)) for t in (1, queries))
        for epsilon in (0.0, 0.1 * composed.epsilon, 0.6 * composed.epsilon):
            assert composed.delta(epsilon) <= queries * single.delta(epsilon / queries) * (1 + 1e-9)
            assert composed.delta(epsilon) >= single.delta(epsilon)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 100])
@pytest.mark.parametrize("p", [0.0, 1e-6, 0.45, 1.0])
def test_masses_and_tails_are_exact(n, p):
    share = Fraction(p)
    masses = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    for k in range(-1, n + 2, max(1, n // 20)):
        inside = masses[k] if 0 <= k <= n else 0
        # Below the smallest normal double no value has twelve digits.
        assert float(mass_at(k, n, p)) == pytest.approx(float(inside), rel=1e-11, abs=1e-300)
        assert float(mass_above(k, n, p)) == pytest.approx(float(sum(masses[max(k + 1, 0) :])), rel=1e-11, abs=1e-300)
        assert float(mass_up_to(k, n, p)) == pytest.approx(float(sum(masses[: max(k + 1, 0)])), rel=1e-11, abs=1e-300)


def test_deep_tails_of_large_crowds_are_exact():
    """Thirty standard deviations from the mean, where many terms of the continued fraction count."""
    n, k = 4000, 2960
    exact = float(Fraction(sum(comb(n, i) for i in range(k + 1, n + 1)), 2**n))
    assert float(mass_above(k, n, 0.5)) == pytest.approx(exact, rel=1e-11, abs=0.0)
    assert float(mass_up_to(n - k - 1, n, 0.5)) == pytest.approx(exact, rel=1e-11, abs=0.0)
