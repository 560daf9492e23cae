"""A crowd means at least: claims of suppressed differences against every crowd from it on, enumerated."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from mechanisms.central import SampleThenSuppress
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy import ReleasedDifferences

LARGEST = 60
"""Devices in a cell up to which every crowd is enumerated."""


def law(n, k, beta):
    masses = binom.pmf(np.arange(LARGEST + 1), n, beta)
    return masses if k is None else np.append(masses[:k].sum(), masses[k:])


def divergence(p, q, epsilon):
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).ravel())


def enumerated(*, crowd, k, beta, epsilon, moves, largest):
    """The greatest δ(ε) over every number of devices from the crowd on, up to the largest."""
    laws = [law(n, k, beta) for n in range(largest + 1)]
    crowds = range(crowd, largest + 1)
    if not moves:
        pairs = [(laws[n], laws[n - 1]) for n in crowds]
    else:
        pairs = [
            (np.multiply.outer(laws[n], laws[m - 1]), np.multiply.outer(laws[n - 1], laws[m]))
            for n, m in itertools.product(crowds, crowds)
        ]
    return max(max(divergence(p, q, epsilon), divergence(q, p, epsilon)) for p, q in pairs)


@pytest.mark.parametrize(
    ("crowd", "k", "beta", "epsilon", "published"), [(5, 10, 0.4, 0.5, 4.965e-3), (20, 20, 0.5, 1.0, 1.083e-4)]
)
def test_delta_is_that_of_the_worst_crowd(crowd, k, beta, epsilon, published):
    claim = SamplingPrivacy(cells=3, sampling=beta).claim(ReleasedDifferences(crowd, k))
    assert claim.delta_kind == "exact"
    assert claim.delta(epsilon) == pytest.approx(published, rel=1e-3)
    worst = enumerated(crowd=crowd, k=k, beta=beta, epsilon=epsilon, moves=False, largest=LARGEST)
    assert claim.delta(epsilon) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize(("moves", "published"), [(False, 9.082e-3), (True, 1.109e-2)])
def test_the_worst_crowds_of_a_move_differ(moves, published):
    adjacency = "move" if moves else "enter_leave"
    claim = SampleThenSuppress(k=10, sampling=0.45).claim(crowd=10, queries=1, adjacency=adjacency)
    assert claim.delta(0.5) == pytest.approx(published, rel=1.1e-3)
    worst = enumerated(crowd=10, k=10, beta=0.45, epsilon=0.5, moves=moves, largest=40)
    assert claim.delta(0.5) >= worst * (1 - 1e-9)


def test_two_queries_may_have_any_two_crowds():
    crowd, k, beta, epsilon = 2, 3, 0.4, 0.8
    claim = SamplingPrivacy(cells=3, sampling=beta).claim(ReleasedDifferences(crowd, k, queries=2))
    laws = [law(n, k, beta) for n in range(15)]
    sides = [(laws[n], laws[n - 1]) for n in range(crowd, 15)]
    sides += [(q, p) for p, q in sides]
    worst = max(
        divergence(np.multiply.outer(p, r), np.multiply.outer(q, s), epsilon)
        for (p, q), (r, s) in itertools.product(sides, sides)
    )
    assert worst <= claim.delta(epsilon) < 1.25 * worst


def test_exact_counts_are_not_hidden_by_a_threshold():
    with pytest.warns(UserWarning, match="sampling"):
        everything = SamplingPrivacy(cells=3, sampling=1.0)
    for crowd, adjacency in itertools.product((5, 60), ("move", "enter_leave")):
        assert everything.claim(ReleasedDifferences(crowd, 10, adjacency=adjacency)).delta(3.0) == 1.0
