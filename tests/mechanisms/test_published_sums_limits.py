"""Published sums against brute force: random bits and limits, noise of devices, kept bits, and hashed reports."""

import itertools
import math

import numpy as np
import published_laws
import pytest
from published_laws import PublishedLaw, hockey_stick
from scipy.special import gammaln
from scipy.stats import binom
from test_published_sums import ADJACENCIES, EPSILONS, SHUFFLED, limits_of

from mechanisms.local import DistributedLaplace, LocalHashing, LongitudinalUnary
from mechanisms.privacy import ReleasedCounts, Shuffled
from mechanisms.privacy.published_sums import SumsDelta
from mechanisms.privacy.sum_laws import sum_of_bits


def assert_holds(claim, exact, *, tolerance=1e-9):
    """Assert that a claim is at least the exact δ at every ε, and equal to it where it says so."""
    found = np.array([claim.delta(epsilon) for epsilon in EPSILONS])
    assert claim.kind != "unknown"
    assert (found >= np.array(exact) - tolerance).all()
    if claim.delta_kind == "exact":
        assert found == pytest.approx(np.array(exact), abs=tolerance)


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


def test_sum_of_a_thousand_million_bits():
    for p, q, inside in ((0.8, 0.2, 5 * 10**8), (0.5, 0.01, 100), (0.9, 0.1, 10**8)):
        outside = 10**9 - 1 - inside
        first, masses = sum_of_bits(inside, outside, true_yes=p, false_yes=q)
        values = first + np.arange(len(masses))
        mean = inside * p + outside * q
        assert masses @ values == pytest.approx(mean, rel=1e-12)
        variance = inside * p * (1.0 - p) + outside * q * (1.0 - q)
        assert masses @ (values - mean) ** 2 == pytest.approx(variance, rel=1e-9)


def device_noise(share, alpha, reach):
    """The law of NB(r, 1 − α) − NB(r, 1 − α) at −reach…reach."""
    k = np.arange(4000)
    logs = gammaln(k + share) - gammaln(share) - gammaln(k + 1) + share * math.log1p(-alpha) + k * math.log(alpha)
    both = np.convolve(np.exp(logs), np.exp(logs)[::-1])
    return both[len(both) // 2 - reach : len(both) // 2 + reach + 1]


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize(("devices", "counted"), [(1, 1), (5, 5), (5, 3), (3, 5)])
def test_distributed_laplace(cells, devices, counted):
    mechanism = DistributedLaplace(cells=cells, epsilon=1.2, devices=devices)
    noise = device_noise(counted / devices, mechanism.alpha, 120)
    without, within = np.append(noise, 0.0), np.append(0.0, noise)
    for adjacency in ADJACENCIES:
        pair = (without, within)
        if cells > 1 and adjacency == "move":
            pair = np.outer(within, without).ravel(), np.outer(without, within).ravel()
        exact = [hockey_stick(*pair, epsilon) for epsilon in EPSILONS]
        assert_holds(mechanism.claim(ReleasedCounts(None, 1, counted, adjacency=adjacency)), exact, tolerance=1e-6)


@pytest.mark.parametrize("permanent", ["optimised", "symmetric"])
@pytest.mark.parametrize("devices", [1, 2])
def test_kept_bits_over_two_queries(permanent, devices):
    mechanism = LongitudinalUnary(cells=1, epsilon_permanent=2.0, epsilon_first=1.0, permanent=permanent)
    hit = (mechanism.true_kept - mechanism.false_kept) / (1.0 - mechanism.false_kept)
    journeys = list(itertools.product((0, 1), repeat=2))
    laws = {journey: np.zeros((2, 2)) for journey in journeys}
    for journey, noisy, hits, seen in itertools.product(journeys, (0, 1), (0, 1), journeys):
        kept = [noisy | (hits & place) for place in journey]
        flips = [
            mechanism.flip if bit != shown else 1.0 - mechanism.flip for bit, shown in zip(kept, seen, strict=True)
        ]
        weight = (mechanism.false_kept if noisy else 1.0 - mechanism.false_kept) * (hit if hits else 1.0 - hit)
        laws[journey][seen] += weight * math.prod(flips)
    exact = np.zeros(len(EPSILONS))
    for others in itertools.product(journeys, repeat=devices - 1):
        counts = []
        for journey in journeys:
            law = np.zeros((devices + 1, devices + 1))
            for seen in itertools.product(journeys, repeat=devices):
                place = tuple(sum(one[query] for one in seen) for query in (0, 1))
                law[place] += math.prod(laws[j][s] for j, s in zip((journey, *others), seen, strict=True))
            counts.append(law.ravel())
        for one, other in itertools.combinations(counts, 2):
            exact = np.maximum(exact, [hockey_stick(one, other, epsilon) for epsilon in EPSILONS])
    for adjacency in ADJACENCIES:
        assert_holds(mechanism.claim(ReleasedCounts(None, 2, devices, adjacency=adjacency)), exact)
        assert_holds(mechanism.claim(Shuffled(1, devices, 2, adjacency=adjacency)), exact)


class HashedLaw(PublishedLaw):
    """The law of published support counts of local hashing, with functions drawn uniformly from all functions."""

    def __init__(self, mechanism):
        buckets, self.truths = mechanism.buckets, range(mechanism.cells + 1)
        functions = list(itertools.product(range(buckets), repeat=len(self.truths)))
        true = math.exp(mechanism.epsilon) / (math.exp(mechanism.epsilon) + buckets - 1)
        outputs = {}
        for function, shown in itertools.product(functions, range(buckets)):
            key = tuple(int(bucket == shown) for bucket in function)
            row = np.array([true if bucket == shown else (1.0 - true) / (buckets - 1) for bucket in function])
            outputs[key] = outputs.get(key, 0.0) + row / len(functions)
        weights = np.random.default_rng(5).integers(2**40, size=len(self.truths))
        names = np.array([int(np.dot(weights, key)) for key in outputs], dtype=np.int64)
        self.names, self.masses = self._merged(names, np.array(list(outputs.values())).T)
        self.of_others, self.of_all = self._of_others, self._of_all
        self.divergence, self.products = self._divergence, self._products


@pytest.mark.parametrize(("buckets", "cells", "devices"), [(2, 1, 4), (2, 2, 3), (4, 1, 3), (3, 2, 2)])
def test_local_hashing(buckets, cells, devices):
    mechanism = LocalHashing(cells=cells, epsilon=1.2, buckets=buckets)
    law = HashedLaw(mechanism)
    for adjacency in ADJACENCIES:
        for crowd, most in limits_of(devices):
            exact = published_laws.divergences(
                law, devices, adjacency, EPSILONS, least=(crowd or 1) - 1, most=None if most is None else most - 1
            )
            if exact is not None:
                view = ReleasedCounts(crowd, 1, devices, most=most, adjacency=adjacency)
                assert_holds(mechanism.claim(view), exact)


def test_shuffled_k_ary_claim_is_tight():
    """The numbers of two symbols, with all others at a third, reveal nearly as much as is claimed."""
    mechanism, _ = SHUFFLED["k_randomized_response"]
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
