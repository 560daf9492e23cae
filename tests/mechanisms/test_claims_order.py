"""No δ-curve rises, and no claim exceeds that of a view that reveals more, of fewer devices or of more queries."""

import itertools
import math

import pytest
from mechanism_cases import ALL

from mechanisms.local import SamplingPrivacy
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shuffled

EPSILONS = (0.0, 0.05, 0.3, 0.7, 1.0, 1.7, 2.5, 4.0, 6.0, 8.0, 12.0, math.inf)
MANY = {
    **{name: mechanism for name, mechanism in ALL.items() if mechanism.cells in (2, 3) and "many buckets" not in name},
    "sampling, 64 cells": SamplingPrivacy(cells=64, sampling=0.45),
    "sampling, one cell": SamplingPrivacy(cells=1, sampling=0.4),
}
# Rounding of two computations of the same δ, and the share by which a certified search may exceed the maximum.
ROUNDING, GAP = 1e-12, 1.1e-3


def released(queries, adjacency, *, crowds, thresholds):
    for crowd in crowds:
        yield ReleasedCounts(crowd, queries, counted=100, adjacency=adjacency)
        yield ReleasedDifferences(crowd, None, queries, adjacency=adjacency)
        for k in thresholds:
            yield ReleasedDifferences(crowd, k, queries, adjacency=adjacency)


def views(queries, *, crowds=(1, 10), thresholds=(12,)):
    for adjacency in ("enter_leave", "move"):
        yield LinkedReports(queries, adjacency=adjacency)
        for turn in (1, 2):
            yield Report(turn, queries, adjacency=adjacency)
            yield Shuffled(turn, 50, queries, adjacency=adjacency)
        yield from released(queries, adjacency, crowds=crowds, thresholds=thresholds)


def wider(view):
    """The views that reveal at least as much as a view, or the same to a device with fewer others."""
    queries, adjacency = view.queries, view.adjacency
    if adjacency == "enter_leave":
        if isinstance(view, ReleasedCounts):
            yield ReleasedCounts(view.crowd, queries, counted=100, adjacency="move")
        elif isinstance(view, ReleasedDifferences):
            yield ReleasedDifferences(view.crowd, view.k, queries, adjacency="move")
        else:
            yield type(view)(**{name: getattr(view, name) for name in view.__slots__ if name != "adjacency"})
    if not isinstance(view, LinkedReports):
        yield LinkedReports(queries, adjacency=adjacency)
    if isinstance(view, Shuffled):
        yield Report(view.round, queries, adjacency=adjacency)
    if isinstance(view, ReleasedDifferences) and view.k is not None:
        yield ReleasedDifferences(view.crowd, None, queries, adjacency=adjacency)
    if isinstance(view, ReleasedDifferences) and view.crowd > 1:
        yield ReleasedDifferences(1, view.k, queries, adjacency=adjacency)
    if isinstance(view, ReleasedCounts) and view.crowd > 1:
        yield ReleasedCounts(1, queries, counted=100, adjacency=adjacency)


def curve(mechanism, view):
    return [mechanism.claim(view).delta(epsilon) for epsilon in EPSILONS]


def check_order(mechanism, queries=1, **numbers):
    for view in views(queries, **numbers):
        if mechanism.claim(view).kind == "unknown":
            continue
        found = curve(mechanism, view)
        for before, after in itertools.pairwise(found):
            assert after <= before * (1 + GAP) + ROUNDING, (view, found)
        for other in wider(view):
            of_other = curve(mechanism, other)
            for epsilon, mine, more in zip(EPSILONS, found, of_other, strict=True):
                assert mine <= more * (1 + GAP) + ROUNDING, (view, other, epsilon, mine, more)


FAST = (
    "sampling",
    "binary sampling",
    "cancelling",
    "L-SUE",
    "OLH, 3 cells",
    "sampling, 64 cells",
    "randomized response",
)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in MANY]
)
def test_curves_fall_and_wider_views_dominate(name):
    check_order(MANY[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAST, "k-ary, 3 cells", "subset, 3 cells", "refresh", "deniable", "Laplace shares"])
def test_more_queries_never_cost_less(name):
    mechanism = MANY[name]
    for one, two in zip(views(1), views(2), strict=True):
        for once, twice in zip(curve(mechanism, one), curve(mechanism, two), strict=True):
            assert math.isnan(twice) or once <= twice * (1 + GAP) + ROUNDING, (one, once, twice)


def test_a_move_of_published_counts_is_no_worse_than_linked_reports():
    claim = SamplingPrivacy(cells=64, sampling=0.45).claim(ReleasedCounts(10, adjacency="move"))
    assert claim.delta(2.0) < 0.3
    assert claim.epsilon_at(0.02) < 2.5
