"""Claims are accurate to twelve digits of ε at δ = 0 and of δ, from ε = 1e-6 to 50, against 60-digit arithmetic."""

import itertools
from functools import partial

import pytest
from mpmath import binomial, exp, log, mp, mpf

from mechanisms.local import (
    BinarySamplingPrivacy,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    LongitudinalUnary,
    OptimisedUnary,
    RandomizedResponse,
    SamplingPrivacy,
    SubsetSelection,
    SymmetricUnary,
    ThresholdHistogram,
)
from mechanisms.privacy import Report, Shuffled
from mechanisms.privacy.shuffled import ClonesDelta

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
    return OptimisedUnary(cells=cells, epsilon=e), answers(mpf(1) / 2, 1 / (exp(mpf(e)) + 1), cells)


def sue(cells, e):
    p = 1 / (1 + exp(-mpf(e) / 2))
    return SymmetricUnary(cells=cells, epsilon=e), answers(p, 1 - p, cells)


def the(cells, e):
    made = ThresholdHistogram(cells=cells, epsilon=e)
    place = mpf(made.threshold)
    return made, answers(1 - exp(mpf(e) * (place - 1) / 2) / 2, exp(-mpf(e) * place / 2) / 2, cells)


def memoised(cells, e, permanent):
    e = min(e, 30.0)
    made = LongitudinalUnary(cells=cells, epsilon_first=e, epsilon_permanent=1.5 * e, permanent=permanent)
    return made, (oue if permanent == "optimised" else sue)(cells, e)[1]


def k_ary(cells, e):
    total = exp(mpf(e)) + cells
    distributions = [[(exp(mpf(e)) if i == j else 1) / total for j in range(cells + 1)] for i in range(cells + 1)]
    return KRandomizedResponse(cells=cells, epsilon=e), distributions


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
        claim, exact = mechanism.claim(Report(1)), worst_epsilon(distributions)
        assert close(claim.epsilon, exact)
        for share in SHARES:
            epsilon = float(share * exact)
            assert close(claim.delta(epsilon), worst_delta(distributions, mpf(epsilon)))


@pytest.mark.parametrize("kind", [LocalHashing, SubsetSelection, HadamardResponse])
def test_claims_of_one_report_with_a_stated_epsilon(kind):
    for e in EPSILONS:
        assert kind(cells=4, epsilon=e).claim(Report(1)).epsilon == e
        assert kind(cells=4, epsilon=e).claim(Shuffled(1, 5)).epsilon == e


@pytest.mark.parametrize("small", [1e-9, 0.01])
@pytest.mark.parametrize("cells", [1, 3])
def test_claims_with_small_truth_probabilities(cells, small):
    """Randomized response with rare truthful answers, and binary Sampling Privacy with rare sampling."""
    s = mpf(small)
    response = RandomizedResponse(cells=cells, first_coin=small, second_coin=0.3)
    binary = BinarySamplingPrivacy(cells=cells, sampling=small, blank_zero=0.25)
    one = 1 - s - mpf(0.25)
    for claim, distributions in (
        (response.claim(Report(1)), answers(s + (1 - s) * mpf(0.3), (1 - s) * mpf(0.3), cells)),
        (binary.claim(Report(2)), answers(one + s, one, cells)),
    ):
        assert close(claim.epsilon, worst_epsilon(distributions))
        for share in SHARES:
            epsilon = float(share * worst_epsilon(distributions))
            assert close(claim.delta(epsilon), worst_delta(distributions, mpf(epsilon)))


def clones_delta(devices, local, epsilon):
    """Feldman, McMillan and Talwar 2021, theorem 3.1, summed as published."""
    e0, factor, delta = mpf(local), exp(mpf(epsilon)), mpf(0)
    clone, x = exp(-e0), 1 / (1 + exp(-e0))
    for m in range(devices):
        heads = [mpf(0), *(binomial(m, a) / mpf(2) ** m for a in range(m + 1)), mpf(0)]
        pairs = itertools.pairwise(heads)
        there = sum(
            max((before * x + at * (1 - x)) - factor * (before * (1 - x) + at * x), mpf(0)) for before, at in pairs
        )
        delta += binomial(devices - 1, m) * clone**m * (1 - clone) ** (devices - 1 - m) * there
    return delta


def blanket_delta(devices, cells, local, epsilon):
    """The hockey stick of k-ary randomized response's histogram, with the truthful among the others known."""
    e0, factor, delta, k = mpf(local), exp(mpf(epsilon)), mpf(0), cells + 1
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
            claim = KRandomizedResponse(cells=cells, epsilon=e).claim(Shuffled(1, devices))
            assert close(claim.epsilon, mpf(e))
            assert close(claim.delta(share * e), blanket_delta(devices, cells, e, share * e))


@pytest.mark.parametrize("sampling", [1e-9, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("queries", [2, 40])
def test_composition_is_never_above_basic_composition(sampling, queries):
    """A grid of losses has an error of about T·1e-4, which exceeds tiny losses."""
    made = [
        SamplingPrivacy(cells=1, sampling=sampling),
        SamplingPrivacy(cells=4, sampling=sampling, refresh=0.5),
        BinarySamplingPrivacy(cells=1, sampling=sampling, blank_zero=0.25),
        RandomizedResponse(cells=1, first_coin=sampling, second_coin=0.3),
    ]
    for mechanism in made:
        single, composed = (mechanism.claim(Report(mechanism.rounds, t)) for t in (1, queries))
        for epsilon in (0.0, 0.1 * composed.epsilon, 0.6 * composed.epsilon):
            assert composed.delta(epsilon) <= queries * single.delta(epsilon / queries) * (1 + 1e-9)
            assert composed.delta(epsilon) >= single.delta(epsilon)
