"""Claims of mechanisms with memoised randomness, against the exact joint distribution of all devices' reports."""

import itertools
import math

import numpy as np
import pytest

from mechanisms.local import LongitudinalUnary
from mechanisms.planning import Target, plan
from mechanisms.planning.candidate import bound_view
from mechanisms.privacy import LinkedReports, ReleasedCounts, Shuffled, pair_delta, pair_epsilon

EPSILONS = (0.0, 0.2, 0.7, 1.0, 2.0, 4.0, 6.0)
BUDGETS = [
    # ε∞, ε₁: the second step adds almost no noise, half of it, almost all of it
    (2.0, 1.99, "optimised"),
    (2.0, 1.0, "optimised"),
    (1.0, 0.1, "symmetric"),
    (3.0, 2.9, "symmetric"),
]


def trajectory_distribution(mechanism, trajectory):
    """Return P[reports] of one device, over all (2^V)^T sequences of V bits: memoised bits, then each query's flips."""
    cells, f, q = mechanism.cells, mechanism.flip, mechanism.false_kept
    hit = (mechanism.true_kept - q) / (1.0 - q)
    reports = list(itertools.product((0, 1), repeat=cells * len(trajectory)))
    distribution = np.zeros(len(reports))
    for noise, hits in itertools.product(itertools.product((0, 1), repeat=cells), repeat=2):
        weight = math.prod((q if z else 1 - q) * (hit if h else 1 - hit) for z, h in zip(noise, hits, strict=True))
        kept = [max(noise[v], hits[v] if cell == v + 1 else 0) for cell in trajectory for v in range(cells)]
        distribution += weight * np.array(
            [math.prod(f if a != b else 1 - f for a, b in zip(r, kept, strict=True)) for r in reports]
        )
    return distribution


def joint_distribution(distributions, cells, queries, seen):
    """Return the distribution of `seen` applied to the joint reports of devices, {value: probability}."""
    reports = list(itertools.product(itertools.product((0, 1), repeat=cells), repeat=queries))
    mixed = {}
    for who in itertools.product(range(len(reports)), repeat=len(distributions)):
        p = math.prod(distribution[i] for distribution, i in zip(distributions, who, strict=True))
        what = seen([reports[i] for i in who])
        mixed[what] = mixed.get(what, 0.0) + p
    return mixed


def shuffled(reports):
    """Return each query's reports in sorted order."""
    return tuple(tuple(sorted(query)) for query in zip(*reports, strict=True))


def counted(reports):
    """Return each query's number of 1s in every cell."""
    return tuple(tuple(map(sum, zip(*query, strict=True))) for query in zip(*reports, strict=True))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    ("cells", "devices", "queries"),
    [
        (1, 1, 2),
        (1, 1, 3),
        (1, 2, 2),
        (1, 3, 2),
        (2, 1, 2),
        pytest.param(1, 2, 3, marks=pytest.mark.slow),
        pytest.param(1, 3, 3, marks=pytest.mark.slow),
        pytest.param(2, 1, 3, marks=pytest.mark.slow),
        pytest.param(2, 2, 2, marks=pytest.mark.slow),
    ],
)
def test_no_claim_is_below_the_joint_distribution(cells, devices, queries, budget):
    """Any two trajectories of one device, any truths of the others: shuffled, published, linked, planned."""
    permanent, first, step = budget
    mechanism = LongitudinalUnary(cells=cells, epsilon_permanent=permanent, epsilon_first=first, permanent=step)
    trajectories = list(itertools.product(range(cells + 1), repeat=queries))
    distributions = [trajectory_distribution(mechanism, trajectory) for trajectory in trajectories]
    crowd = ReleasedCounts(devices, queries, adjacency="move")  # any two trajectories
    bounds = {
        shuffled: [mechanism.claim(Shuffled(1, devices, queries))],
        counted: [mechanism.claim(crowd), bound_view(mechanism, crowd, devices=devices)],
    }
    if devices == 1:
        bounds[shuffled].append(mechanism.claim(LinkedReports(queries)))
    rng = np.random.default_rng(11)
    for seen, claims in bounds.items():
        worst, most = dict.fromkeys(EPSILONS, 0.0), 0.0
        for others in itertools.combinations_with_replacement(range(len(trajectories)), devices - 1):
            if devices > 2 and rng.random() > 0.3:
                continue  # a third of the others' possible positions, drawn with a fixed seed
            worlds = [
                joint_distribution([distribution, *(distributions[i] for i in others)], cells, queries, seen)
                for distribution in distributions
            ]
            outcomes = sorted(worlds[0])
            rows = np.array([[world[o] for o in outcomes] for world in worlds])
            for one, other in itertools.combinations(rows, 2):
                most = max(most, pair_epsilon(one, other))
                for epsilon in EPSILONS:
                    worst[epsilon] = max(worst[epsilon], pair_delta(one, other, epsilon=epsilon))
        for claim in claims:
            assert claim.epsilon >= most * (1 - 1e-12)
            for epsilon, exact in worst.items():
                delta = claim.delta(epsilon)
                assert (delta[0] if isinstance(delta, tuple) else delta) >= exact * (1 - 1e-12)


def test_memoised_bits_over_two_queries_are_not_two_crowds():
    """Exactly .334 and .208: with new coins in every query the clones bound would allow 0 and .0063."""
    mechanism = LongitudinalUnary(cells=1, epsilon_permanent=2.0, epsilon_first=1.99)
    assert mechanism.claim(Shuffled(1, 1, 2)).delta(4.0) >= 0.334
    assert mechanism.claim(Shuffled(1, 100, 2)).delta(1.0) >= 0.208


def test_many_devices_hide_memoised_bits():
    """The joint reports of two queries are one report, which a crowd hides as it does any randomizer's."""
    mechanism = LongitudinalUnary(cells=5, epsilon_permanent=1.0, epsilon_first=0.5)
    alone, among = (mechanism.claim(Shuffled(1, n, 2)).delta(0.3) for n in (1, 10**6))
    assert among < 1e-6
    assert alone > 0.1


def published_delta(mechanism, devices, epsilon, *, size):
    """δ of two queries' counts of one cell where all others are outside, for the worst trajectories of the device.

    The counts' joint distribution is that of a sum of independent pairs of bits, by the discrete Fourier transform on a
    torus of side `size`, outside of which the counts have probability below 1e-15.
    """
    distributions = {
        j: trajectory_distribution(mechanism, j).reshape(2, 2) for j in itertools.product((0, 1), repeat=2)
    }
    others = np.fft.fft2(distributions[0, 0], (size, size)) ** (devices - 1)
    worlds = {
        j: np.fft.ifft2(others * np.fft.fft2(distribution, (size, size))).real
        for j, distribution in distributions.items()
    }
    factor = math.exp(epsilon)
    return max(np.maximum(p - factor * q, 0.0).sum() for p, q in itertools.permutations(worlds.values(), 2))


def test_a_plan_over_two_queries_meets_its_target():
    """The recommended memoised bits, among 10,000 devices: δ(1) of what is published, computed, is at most 1e-6."""
    target = Target(cells=1, population=10_000, occupancy=100, view="released", epsilon=1.0, delta=1e-6, queries=2)
    for proposal in [plan(target, ("longitudinal_unary",)).best]:
        mechanism = LongitudinalUnary(cells=1, **proposal.parameters)
        assert published_delta(mechanism, 10_000, 1.0, size=2_048) <= 1e-6 + 1e-12
