"""Claims about published sums and shuffled reports: by enumeration of all neighbours and all others' truths."""

import math
from functools import cache, partial

import numpy as np
import pytest
from binary_query_cases import DENIABLE, LOCAL
from published_laws import PublishedLaw, device_law, divergences, divergences_of_two, hockey_stick, neighbours
from scipy.stats import binom

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, RandomizedResponse, SamplingPrivacy
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt
from mechanisms.planning import Target, plan
from mechanisms.privacy import PrivacyClaim, ReleasedCounts, Shuffled
from mechanisms.privacy.blanket import split_pair
from mechanisms.privacy.published_sums import SumsDelta
from mechanisms.privacy.sum_laws import sum_of_bits

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)
MECHANISMS = {
    "no privacy": partial(NoPrivacy),
    "randomized response": partial(RandomizedResponse, first_coin=0.8, second_coin=0.2),
    "randomized response, weak": partial(RandomizedResponse, first_coin=0.85, second_coin=0.4),
    "randomized response, rarely no": partial(RandomizedResponse, first_coin=0.5, second_coin=0.98),
    "Warner": partial(Warner, truthful=0.7),
    "Warner, liars": partial(Warner, truthful=0.2),
    "sampled response": partial(SampledResponse, sampling=0.6, first_coin=0.7, second_coin=0.4),
    "sampling and noise": partial(SamplingAndNoise, sampling=0.5, sampling_no=0.1),
    "sampling and noise, value": partial(SamplingAndNoise, sampling=0.5, sampling_no=0.3, says="value"),
    "anonymized local": partial(AnonymizedLocal, **LOCAL),
    "anonymized first attempt": partial(AnonymizedFirstAttempt, base=0.4, shift_yes=0.3, shift_no=0.1),
    "anonymized cancelling": partial(AnonymizedCancelling, shift=0.3),
    "anonymized deniable": partial(AnonymizedDeniable, **DENIABLE),
    "anonymized deniable, both ways": partial(AnonymizedDeniable, **{**DENIABLE, "shift": 0.7}, onward_yes=0.1),
    "SUE": partial(SymmetricUnary, epsilon=1.2),
    "SUE, weak": partial(SymmetricUnary, epsilon=5.0),
    "OUE": partial(OptimisedUnary, epsilon=1.2),
    "OUE, weak": partial(OptimisedUnary, epsilon=6.0),
    "THE": partial(ThresholdHistogram, epsilon=1.2),
    "subset selection": partial(SubsetSelection, epsilon=1.2),
    "Hadamard response": partial(HadamardResponse, epsilon=1.2),
    "k-ary": partial(KRandomizedResponse, epsilon=1.2),
    "longitudinal": partial(LongitudinalUnary, epsilon_permanent=3.0, epsilon_first=1.5),
    "sampling": partial(SamplingPrivacy, sampling=0.45),
    "sampling, unequal blanks": partial(SamplingPrivacy, sampling=0.3, blank_zero=0.5),
    "sampling, no blank zero": partial(SamplingPrivacy, sampling=0.45, blank_zero=0.0),
    "sampling, hardly any blank": partial(SamplingPrivacy, sampling=0.95, blank_zero=0.05),
    "sampling, refreshed": partial(SamplingPrivacy, sampling=0.45, refresh=0.6),
    "binary sampling": partial(BinarySamplingPrivacy, sampling=0.45),
    "binary sampling, unequal": partial(BinarySamplingPrivacy, sampling=0.3, blank_zero=0.6),
}
MEMORY = {"longitudinal"}  # bits that are kept between queries: of these only one query is enumerated
ADJACENCIES = ("enter_leave", "move")


@cache
def law_of(name, cells, shuffled=None):
    return PublishedLaw(with_cells(name, cells), shuffled)


def with_cells(name, cells):
    return MECHANISMS[name](cells=cells)


def limits_of(devices):
    """Crowds and greatest numbers in the cell, as the view counts them: with the device."""
    crowds = (None, *range(1, devices + 1))
    return [(crowd, None) for crowd in crowds] + [
        (crowd, most) for crowd in crowds for most in range(crowd or 1, devices)
    ]


def check(claim, exact, where, epsilons=EPSILONS):
    """A claim equals what is enumerated if it says so, and is never below it."""
    if exact is None or claim.kind == "unknown":
        return
    claimed = np.array([claim.delta(epsilon) for epsilon in epsilons])
    assert (claimed >= exact - 1e-9).all(), (where, claimed, exact)
    if claim.delta_kind == "exact":
        assert claimed == pytest.approx(exact, abs=1e-9), (where, claimed, exact)


def check_released(name, cells, devices, queries):
    law, mechanism = law_of(name, cells), with_cells(name, cells)
    enumerate_ = divergences if queries == 1 else divergences_of_two
    for adjacency in ADJACENCIES:
        for crowd, most in limits_of(devices):
            view = ReleasedCounts(crowd, queries, devices, most=most, adjacency=adjacency)
            limits = {"least": (crowd or 1) - 1, "most": None if most is None else most - 1}
            exact = enumerate_(law, devices, adjacency, EPSILONS, **limits)
            check(mechanism.claim(view), exact, view)


def check_shuffled(name, cells, devices, queries):
    mechanism = with_cells(name, cells)
    enumerate_ = divergences if queries == 1 else divergences_of_two
    for round_ in range(1, mechanism.rounds + 1):
        for adjacency in ADJACENCIES:
            view = Shuffled(round_, devices, queries, adjacency=adjacency)
            exact = enumerate_(law_of(name, cells, round_), devices, adjacency, EPSILONS)
            check(mechanism.claim(view), exact, view)


FAST = [(1, 1), (1, 3), (2, 2), (2, 3)]
SLOW = [(cells, devices) for cells in (1, 2, 3) for devices in range(1, 6) if (cells, devices) not in FAST]
SIZES = [*FAST, *(pytest.param(*size, marks=pytest.mark.slow) for size in SLOW)]


# The counts of several rounds about three cells have too many values for more than three devices. The answers about a
# third cell are independent of the others', so two cells show the same.
LARGE = {"anonymized first attempt", "anonymized cancelling", "anonymized deniable", "anonymized deniable, both ways"}


COUNTED = [
    pytest.param(name, cells, devices, marks=[] if (cells, devices) in FAST else pytest.mark.slow)
    for cells, devices in (*FAST, *SLOW)
    for name in MECHANISMS
    if name not in LARGE or cells < 3 or devices <= 3
]


@pytest.mark.parametrize(("name", "cells", "devices"), COUNTED)
def test_claims_of_published_counts_hold_for_all_truths(name, cells, devices):
    check_released(name, cells, devices, 1)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(("cells", "devices"), SIZES)
def test_claims_of_shuffled_reports_hold_for_all_truths(name, cells, devices):
    check_shuffled(name, cells, devices, 1)


TWO_QUERIES = [(1, 2), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((1, 1), (1, 3), (2, 2), (2, 3)))]


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in MEMORY])
@pytest.mark.parametrize(("cells", "devices"), TWO_QUERIES)
def test_claims_over_two_queries_hold_for_all_journeys(name, cells, devices):
    check_released(name, cells, devices, 2)
    check_shuffled(name, cells, devices, 2)


@pytest.mark.parametrize("name", MECHANISMS)
def test_enumerated_law_is_that_of_the_tallies(name):
    """The mean of each published count, from many devices of each truth."""
    mechanism, devices, rng = MECHANISMS[name](cells=2), 40_000, np.random.default_rng(11)
    law = PublishedLaw(mechanism)
    for truth in range(3):
        truths = np.full(devices, truth, dtype=np.int32)
        coins = mechanism.toss(mechanism.enrol(devices, rng=rng), rng=rng)
        for round_ in range(1, mechanism.rounds + 1):
            tally = mechanism.tally(mechanism.answer(round_, truths, coins))
            expected = law.means(truth, round_, tally.shape)
            spread = np.sqrt(expected * (1.0 - expected) / devices)
            assert (np.abs(tally / devices - expected) <= 5.0 * spread + 1e-12).all()


QUARTER = SymmetricUnary(cells=2, epsilon=2.0 * math.log(4.0))  # p = .8, q = .2


def test_claim_of_a_move_covers_the_worst_truths_of_the_others():
    claim = QUARTER.claim(ReleasedCounts(counted=12, adjacency="move"))
    curve = SumsDelta(0.8, 0.2, 12, 0, 11, True)
    law = PublishedLaw(QUARTER)
    exact = divergences(law, 12, "move", EPSILONS)
    assert curve.at((0, 0), 1.0) == pytest.approx(0.0316, abs=5e-5)
    assert exact[EPSILONS.index(1.0)] >= 0.0494
    for epsilon, delta in zip(EPSILONS, exact, strict=True):
        assert delta - 1e-12 <= claim.delta(epsilon) <= delta * 1.001 + 1e-12
    worst = max(neighbours(2, 12, "move"), key=lambda given: divergence_of(law, *given, 2.0))
    assert max(worst[0].count(1), worst[0].count(2)) == 10


def divergence_of(law, others, pairs, epsilon):
    rows = law.of_all(others)
    return max(hockey_stick(rows[u], rows[v], epsilon) for u, v in pairs)


PROBABILITIES = [(0.8, 0.2), (0.5, 0.01), (1.0, 0.3), (0.6, 0.0), (1.0, 0.0), (0.999, 0.001), (0.31, 0.3), (1e-3, 1e-6)]


@pytest.mark.parametrize(("p", "q"), PROBABILITIES)
@pytest.mark.parametrize("sizes", [(0, 0), (0, 7), (7, 0), (1, 1), (3, 40), (60, 2), (150, 900), (1200, 800)])
def test_sum_of_bits_equals_a_convolution_in_the_tails_too(p, q, sizes):
    first, masses = sum_of_bits(*sizes, true_yes=p, false_yes=q)
    inside, outside = (binom.pmf(np.arange(n + 1), n, share) for n, share in zip(sizes, (p, q), strict=True))
    whole = np.convolve(inside, outside)
    expected = whole[first : first + len(masses)]
    assert masses == pytest.approx(expected, rel=1e-10, abs=0.0)
    assert whole.sum() - expected.sum() == pytest.approx(0.0, abs=1e-14)
    assert whole[:first].sum() + whole[first + len(masses) :].sum() <= 1e-30


# Error at 100 devices in a cell, in vehicles, and its tolerance.
ERRORS = {
    ("sue", "move"): (7.07, 0.005),
    ("sue", "enter_leave"): (5.84, 0.005),
    ("oue", "move"): (11.6, 0.01),
    ("oue", "enter_leave"): (10.6, 0.01),
}


@pytest.mark.parametrize(("family", "adjacency"), ERRORS)
@pytest.mark.parametrize("population", [10**4, 10**6])
def test_error_of_planned_sums(family, adjacency, population):
    target = Target(
        cells=266,
        population=population,
        occupancy=100,
        view="released_counts",
        epsilon=1.0,
        delta=1e-6,
        adjacency=adjacency,
    )
    [made] = plan(target, [family]).plans
    error, tolerance = ERRORS[family, adjacency]
    assert made.std_error == pytest.approx(error, rel=tolerance)
    view = ReleasedCounts(counted=population, adjacency=adjacency)
    assert 0.99e-6 <= made.mechanism.claim(view).delta(1.0) <= 1e-6


SHUFFLED = {
    "olh": (LocalHashing(cells=100, epsilon=4.0, buckets=56), 0.0816),
    "subset_selection": (SubsetSelection(cells=100, epsilon=4.0, size=2), 0.0842),
    "sue": (SymmetricUnary(cells=100, epsilon=4.0), 0.1043),
    "k_randomized_response": (KRandomizedResponse(cells=100, epsilon=4.0), 0.0683),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_shuffled_reports_of_a_city_are_amplified(name):
    mechanism, epsilon = SHUFFLED[name]
    assert mechanism.claim(Shuffled(1, 10**5)).epsilon_at(1e-6) <= epsilon


def published_reduction(ratio, distance, cover, devices, epsilon):
    """δ of the pair (A + Δ1, C − A + Δ2) of the variation-ratio reduction as published (Wang et al. 2024)."""
    alpha = distance / (ratio - 1.0)
    draws = 2.0 * alpha * ratio / cover
    p, q = np.zeros((2, devices + 1, devices + 1))
    for c in range(devices):
        for a in range(c + 1):
            mass = binom.pmf(c, devices - 1, draws) * binom.pmf(a, c, 0.5)
            for law, up, down in ((p, ratio * alpha, alpha), (q, alpha, ratio * alpha)):
                law[a + 1, c - a] += mass * up
                law[a, c - a + 1] += mass * down
                law[a, c - a] += mass * (1.0 - up - down)
    return hockey_stick(p, q, epsilon)


def test_published_variation_ratio_reduction_is_no_bound_and_ours_is():
    mechanism, epsilon, devices = KRandomizedResponse(cells=2, epsilon=1.0), 0.6, 3
    law = PublishedLaw(mechanism, shuffled=1)
    exact = divergence_of(law, (0, 2), [(0, 1), (0, 2), (1, 2)], epsilon)
    assert exact == pytest.approx(0.073489, abs=5e-7)
    distance = (math.e - 1.0) / (math.e + 2.0)
    assert published_reduction(math.e, distance, math.e, devices, epsilon) == pytest.approx(0.067578, abs=5e-7)
    rows, _ = device_law(mechanism)
    for u, v in ((0, 1), (0, 2), (1, 2)):
        assert split_pair(rows[u], rows[v], rows, devices)(epsilon) >= exact
    assert mechanism.claim(Shuffled(1, devices)).delta(epsilon) >= exact


def test_claim_of_a_move_from_two_steps():
    step = PrivacyClaim.exact(1.0, lambda epsilon: 0.2 * math.exp(-epsilon), "A test.")
    moved = step.of_move()
    assert (moved.kind, moved.delta_kind, moved.epsilon) == ("bound", "bound", 2.0)
    # With ε₁ for the first step δ is .2(e^−ε₁ + e^(2ε₁ − .6)); the grid of ε₁ costs less than a percent.
    least = min(0.2 * (math.exp(-first) + math.exp(2.0 * first - 0.6)) for first in np.linspace(0.0, 0.6, 6_001))
    assert least <= moved.delta(0.6) <= 1.01 * least
    assert moved.delta(2.0) == 0.0
    unknown = PrivacyClaim.unknown("A test.")
    assert unknown.of_move() is unknown


@pytest.mark.parametrize("name", MECHANISMS)
def test_two_steps_bound_every_move(name):
    entering, moving = (
        divergences(law_of(name, 2), 3, adjacency, (epsilon, 2.0 * epsilon))
        for epsilon in (0.4,)
        for adjacency in ADJACENCIES
    )
    step = PrivacyClaim.bound(math.inf, lambda epsilon: float(np.interp(epsilon, [0.4, 0.8], entering)), "Enumerated.")
    assert step.of_move().delta(0.8) >= min(1.0, moving[1]) - 1e-12


def test_epsilon_at_a_delta_is_the_least_one_proved():
    claim = PrivacyClaim.exact(3.0, lambda epsilon: max(0.0, 0.3 - 0.1 * epsilon), "A test.")
    for delta, epsilon in ((0.3, 0.0), (0.5, 0.0), (0.1, 2.0), (0.05, 2.5), (0.0, 3.0)):
        found = claim.epsilon_at(delta)
        assert epsilon - 1e-12 <= found <= epsilon + 1e-4
        assert claim.delta(found) <= delta
    assert claim.epsilon_at(0.1, precision=1e-9) == pytest.approx(2.0, abs=2e-9)
    certain = PrivacyClaim.exact(math.inf, lambda epsilon: 0.2, "A test.")  # noqa: ARG005
    assert certain.epsilon_at(0.1) == math.inf
    assert certain.epsilon_at(0.2) == 0.0
    assert PrivacyClaim.unknown("A test.").epsilon_at(0.5) == math.inf
