"""Published sums and shuffled reports: their parts against brute force, published numbers, and plans of a city."""

import itertools
import math

import numpy as np
import pytest
from claim_laws import SumLaw, k_ary, of_parts, optimised, sampling_privacy
from scipy.special import gammaln
from scipy.stats import binom

from mechanisms.local import KRandomizedResponse, SymmetricUnary
from mechanisms.planning import Target, plan
from mechanisms.privacy import Claim, ReleasedCounts, Shuffled
from mechanisms.privacy.blanket import split_pair
from mechanisms.privacy.hockey_stick import pair_curve
from mechanisms.privacy.published_sums import SumsDelta
from mechanisms.privacy.sum_laws import bits_law, sum_of_bits


def hockey_stick(p, q, epsilon):
    """δ(ε) in both directions."""
    factor = math.exp(epsilon)
    return max(np.maximum(p - factor * q, 0.0).sum(), np.maximum(q - factor * p, 0.0).sum())


def worst(law, devices, adjacency, epsilon):
    return max(hockey_stick(p, q, epsilon) for p, q in law.pairs(devices, adjacency))


@pytest.mark.parametrize("noise", [None, (0.25, 0.5, 0.25), (0.5, 0.0, 0.5)])
def test_curve_of_a_pair_does_not_depend_on_the_order_of_outputs(noise):
    law, x = bits_law(40, 160, 0.8, 0.1, noise), np.exp(np.linspace(0.0, 4.0, 60))
    mixed = np.random.default_rng(1).permutation(len(law.present))
    for p, q in ((law.present, law.absent), (law.absent, law.present)):
        curve = pair_curve(p, q, x)
        assert (curve == pair_curve(p[mixed], q[mixed], x)).all()
        np.testing.assert_allclose(curve, [np.maximum(p - at * q, 0.0).sum() for at in x], rtol=1e-9, atol=1e-15)


PROBABILITIES = [(0.8, 0.2), (0.5, 0.01), (1.0, 0.3), (0.6, 0.0), (1.0, 0.0), (0.999, 0.001), (0.31, 0.3), (1e-3, 1e-6)]


@pytest.mark.parametrize("sizes", [(0, 0), (0, 7), (7, 0), (1, 1), (3, 40), (60, 2), (150, 900), (1200, 800)])
def test_sum_of_bits_equals_a_convolution_in_the_tails_too(sizes):
    for p, q in PROBABILITIES:
        first, masses = sum_of_bits(*sizes, true_yes=p, false_yes=q)
        inside, outside = (binom.pmf(np.arange(n + 1), n, share) for n, share in zip(sizes, (p, q), strict=True))
        whole = np.convolve(inside, outside)
        expected = whole[first : first + len(masses)]
        assert masses == pytest.approx(expected, rel=1e-10, abs=0.0)
        assert whole.sum() - expected.sum() == pytest.approx(0.0, abs=1e-14)
        assert whole[:first].sum() + whole[first + len(masses) :].sum() <= 1e-30


def test_sum_of_a_thousand_million_bits():
    for p, q, inside in ((0.8, 0.2, 5 * 10**8), (0.5, 0.01, 100), (0.9, 0.1, 10**8)):
        outside = 10**9 - 1 - inside
        first, masses = sum_of_bits(inside, outside, true_yes=p, false_yes=q)
        values = first + np.arange(len(masses))
        mean = inside * p + outside * q
        assert masses @ values == pytest.approx(mean, rel=1e-12)
        variance = inside * p * (1.0 - p) + outside * q * (1.0 - q)
        assert masses @ (values - mean) ** 2 == pytest.approx(variance, rel=1e-9)


def test_certified_maximum_against_brute_force():
    """400 random p, q, N up to 13, limits and ε: never below the greatest δ, at most .1 % above."""
    rng, tried = np.random.default_rng(1), 0
    for _ in range(400):
        q, p = (
            np.sort(rng.random(2)) if rng.random() < 0.7 else np.sort(rng.choice([0, 1e-6, 0.5, 1], 2, replace=False))
        )
        devices, moves, epsilon = int(rng.integers(1, 14)), bool(rng.random() < 0.6), float(rng.choice([0, 0.1, 1, 4]))
        least = int(rng.integers(0, devices))
        numbers = range(least, int(rng.integers(least, devices)) + 1)

        def law(inside, yes, p=p, q=q, devices=devices):
            outside = devices - 1 - inside
            others = np.convolve(
                binom.pmf(np.arange(inside + 1), inside, p), binom.pmf(np.arange(outside + 1), outside, q)
            )
            return np.append(others, 0.0) * (1.0 - yes) + np.append(0.0, others) * yes

        if moves:
            exact = [
                hockey_stick(
                    np.multiply.outer(law(i, p), law(j, q)).ravel(),
                    np.multiply.outer(law(i, q), law(j, p)).ravel(),
                    epsilon,
                )
                for i, j in itertools.product(numbers, repeat=2)
                if i + j < devices
            ]
        else:
            exact = [hockey_stick(law(i, p), law(i, q), epsilon) for i in numbers]
        if not exact:
            continue
        tried += 1
        found = SumsDelta(float(p), float(q), devices, least, numbers[-1], moves).maximum(epsilon)
        assert max(exact) - 1e-12 <= found <= max(exact) * 1.001 + 1e-12
    assert tried > 200


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


def test_shuffled_k_ary_claim_is_tight():
    """The numbers of two symbols, with all others at a third, reveal nearly as much as is claimed."""
    mechanism = KRandomizedResponse(cells=100, epsilon=4.0)
    devices, ratio = 10**5, math.exp(4.0)
    true, false = ratio / (ratio + 100.0), 1.0 / (ratio + 100.0)
    mean = devices * false
    seen = np.arange(int(mean - 9 * math.sqrt(mean)), int(mean + 9 * math.sqrt(mean)))
    one, other = np.meshgrid(seen, seen, indexing="ij")
    rest = devices - 1 - one - other
    logs = gammaln(devices) - gammaln(one + 1) - gammaln(other + 1) - gammaln(rest + 1)
    law = np.exp(logs + (one + other) * math.log(false) + rest * math.log1p(-2.0 * false))
    up, aside = np.zeros_like(law), np.zeros_like(law)
    up[1:], aside[:, 1:] = law[:-1], law[:, :-1]
    p, q = (a * up + b * aside + (1.0 - true - false) * law for a, b in ((true, false), (false, true)))
    claim = mechanism.claim(Shuffled(1, devices))
    for epsilon in (0.05, 0.068):
        least = np.maximum(p - math.exp(epsilon) * q, 0.0).sum()
        assert least <= claim.delta(epsilon) <= 1.01 * least + 1e-9


def test_shuffled_reports_of_three_devices_reveal_more_than_the_published_reduction_allows():
    """The reduction has 0.067578 (Wang et al. 2024). The sorted reports are enumerated, the others outside and in 2."""
    mechanism, epsilon, devices = KRandomizedResponse(cells=2, epsilon=1.0), 0.6, 3
    rows = (1.0 + (math.e - 1.0) * np.eye(3)) / (math.e + 2.0)
    laws = np.zeros((3, 27))
    for own, one, other in itertools.product(range(3), repeat=3):
        name = sum(3**place * report for place, report in enumerate(sorted((own, one, other))))
        laws[:, name] += rows[:, own] * rows[0, one] * rows[2, other]
    exact = max(hockey_stick(laws[u], laws[v], epsilon) for u, v in itertools.combinations(range(3), 2))
    assert exact == pytest.approx(0.073489, abs=5e-7)
    for u, v in itertools.combinations(range(3), 2):
        assert split_pair(rows[u], rows[v], rows, devices)(epsilon) >= exact
    assert mechanism.claim(Shuffled(1, devices)).delta(epsilon) >= exact


def test_claim_of_a_move_from_two_steps():
    step = Claim.exact(1.0, lambda epsilon: 0.2 * math.exp(-epsilon), "A test.")
    moved = step.of_move()
    assert (moved.kind, moved.delta_kind, moved.epsilon) == ("bound", "bound", 2.0)
    # With ε₁ for the first step δ is .2(e^−ε₁ + e^(2ε₁ − .6)); the grid of ε₁ costs less than a percent.
    least = min(0.2 * (math.exp(-first) + math.exp(2.0 * first - 0.6)) for first in np.linspace(0.0, 0.6, 6_001))
    assert least <= moved.delta(0.6) <= 1.01 * least
    assert moved.delta(2.0) == 0.0
    unknown = Claim.unknown("A test.")
    assert unknown.of_move() is unknown


@pytest.mark.parametrize("maker", [k_ary, optimised, sampling_privacy])
def test_two_steps_bound_every_move(maker):
    _, law = maker(np.random.default_rng(3), 2)
    sums = SumLaw(list(law.rows(2)), of_parts)
    entering = [worst(sums, 3, "enter_leave", epsilon) for epsilon in (0.4, 0.8)]
    step = Claim.bound(math.inf, lambda epsilon: float(np.interp(epsilon, [0.4, 0.8], entering)), "Enumerated.")
    assert step.of_move().delta(0.8) >= min(1.0, worst(sums, 3, "move", 0.8)) - 1e-12


def test_epsilon_at_a_delta_is_the_least_one_proved():
    claim = Claim.exact(3.0, lambda epsilon: max(0.0, 0.3 - 0.1 * epsilon), "A test.")
    for delta, epsilon in ((0.3, 0.0), (0.5, 0.0), (0.1, 2.0), (0.05, 2.5), (0.0, 3.0)):
        found = claim.epsilon_at(delta)
        assert epsilon - 1e-12 <= found <= epsilon + 1e-4
        assert claim.delta(found) <= delta
    assert claim.epsilon_at(0.1, precision=1e-9) == pytest.approx(2.0, abs=2e-9)
    certain = Claim.exact(math.inf, lambda epsilon: 0.2, "A test.")  # noqa: ARG005
    assert certain.epsilon_at(0.1) == math.inf
    assert certain.epsilon_at(0.2) == 0.0
    assert Claim.unknown("A test.").epsilon_at(0.5) == math.inf


@pytest.mark.parametrize(("counted", "kind"), [(2, "bound"), (3, "exact")])
def test_epsilon_of_a_move_is_exact_only_if_there_are_devices_for_both_cells(counted, kind):
    """With one other device in each of two cells there are three; of two, the device can only leave its cell."""
    mechanism = SymmetricUnary(cells=2, epsilon=1.0)
    claim = mechanism.claim(ReleasedCounts(crowd=2, counted=counted, adjacency="move"))
    leaving = mechanism.claim(ReleasedCounts(crowd=2, counted=counted, adjacency="enter_leave"))
    assert (claim.kind, claim.epsilon, leaving.epsilon) == (kind, 1.0, 0.5)
    assert (
        claim.delta(0.2) == pytest.approx(leaving.delta(0.2)) if counted == 2 else claim.delta(0.2) > leaving.delta(0.2)
    )
