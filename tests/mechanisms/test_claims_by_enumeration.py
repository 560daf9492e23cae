"""No claim is below the truth, and an exact one is attained: all mechanisms, laws from their definitions, enumerated.

Everything is enumerated: all truths of the others, all neighbours, all outcomes, both directions; over two queries all
products of two such pairs (or, where these are too many, a random part of them).
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from claim_laws import (
    GRID,
    MAKERS,
    SumLaw,
    anonymized_local,
    deniable,
    first_attempt,
    greatest,
    hashed_support,
    hashing,
    kept_journeys,
    memoised,
    of_parts,
    sampled_response,
)
from reference_divergences import difference_law
from scipy.stats import nbinom
from verification import compared

from mechanisms import local
from mechanisms.planning.candidate import made_from
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled

ROUNDING = 1e-10


def check(claim, found, case, within=ROUNDING):
    """A claim is never below what is enumerated, and equal to it where it says so; its curve does not rise."""
    if claim.kind == "unknown":
        return
    truth, epsilon, whole = found
    claimed = np.array([claim.delta(epsilon) for epsilon in GRID])
    assert (claimed >= truth - within).all(), (case, claim, claimed, truth)
    compared("claims", np.minimum(claimed, truth), truth, allowed=within)
    assert (np.diff(claimed) <= 1.1e-3 * claimed[:-1] + ROUNDING).all(), (case, claimed)
    if whole and claim.delta_kind == "exact":
        assert claimed == pytest.approx(truth, rel=1e-9, abs=max(within, 1e-9)), (case, claim, claimed, truth)
        compared("claims", claimed, truth, allowed=max(within, 1e-9))
    if within > ROUNDING:  # outcomes are cut off, and with them the greatest losses
        return
    assert claim.epsilon >= epsilon * (1.0 - 1e-9) - 1e-9, (case, claim, epsilon)
    _, view = case
    if not isinstance(view, Report | LinkedReports | Shares):  # of a crowd, an exact ε is that of the worst truths
        return
    if whole and claim.kind == "exact":
        assert claim.epsilon == pytest.approx(epsilon, rel=1e-9, abs=1e-9), (case, claim, epsilon)
        compared("claims", claim.epsilon, epsilon, allowed=max(1e-9 * epsilon, 1e-9))
    assert not whole or claim.kind != "infinite" or epsilon == math.inf, (case, claim, epsilon)


def views(mechanism, rows, queries, adjacency, devices):
    """Views, the law of what each shows, the devices in it, and the limits of published counts."""
    for turn in range(1, mechanism.rounds + 1):
        law = SumLaw(rows, lambda whole, turn=turn: [whole[turn - 1]])
        yield Report(turn, queries, adjacency=adjacency), law, 1, {}
        yield Shuffled(turn, devices, queries, adjacency=adjacency), law, devices, {}
    linked = SumLaw(rows, lambda whole: [whole])
    yield LinkedReports(queries, adjacency=adjacency), linked, 1, {}
    yield Shares(2, 2, queries, adjacency=adjacency), linked, 1, {}
    counts = SumLaw(rows, hashed_support if isinstance(mechanism, local.LocalHashing) else of_parts)
    for crowd, most in [*((crowd, None) for crowd in range(1, devices + 1)), (None, 1), (1, devices - 1)]:
        if most != 0:
            limits = {"crowd": crowd or 1, "most": most}
            yield ReleasedCounts(crowd, queries, devices, most=most, adjacency=adjacency), counts, devices, limits
    if isinstance(mechanism, local.SamplingPrivacy):  # of others in `test_differences`; these may be refreshed
        shown = SumLaw(rows, lambda whole: [whole[1]] if whole[1] else [], lambda whole: [whole[0]] if whole[0] else [])
        for crowd in range(1, devices + 1):
            if adjacency == "enter_leave" or 2 * crowd <= devices + 1:  # a move has a crowd in either cell
                view = ReleasedDifferences(crowd, queries=queries, adjacency=adjacency)
                yield view, shown, devices, {"crowd": crowd}


def check_mechanism(maker, cells, queries, devices, seed):
    draw = np.random.default_rng([seed, cells, queries, devices, MAKERS.index(maker)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters outside the papers' ranges
        mechanism, law = maker(draw, cells)
    rows = list(law.rows(cells))
    for row in rows:
        assert math.fsum(row.values()) == pytest.approx(1.0, abs=1e-12)
    for adjacency in ("move", "enter_leave"):
        for view, shown, number, limits in views(mechanism, rows, queries, adjacency, devices):
            pairs = list(shown.pairs(number, adjacency, **limits))
            if not pairs:
                continue
            found = greatest(pairs, queries, draw)
            check(mechanism.claim(view), found, (mechanism, view))
            if queries == 1 and isinstance(view, ReleasedCounts | Shuffled):  # the planner's bounds hold too
                for bound in made_from(mechanism, view, devices):
                    deltas = np.array([bound.delta(epsilon) for epsilon in GRID])
                    assert not (deltas < found[0] - 1e-9).any(), (mechanism, view, bound, deltas, found)


HEAVY = {deniable: 1, hashing: 1, anonymized_local: 2, sampled_response: 2, first_attempt: 2}
"""Most cells with which crowds are enumerated in the fast tests and for two queries, 3 for other mechanisms."""
NAMES = {maker.__name__: maker for maker in MAKERS}


@pytest.mark.parametrize("name", NAMES)
def test_one_query(name):
    for seed in (1, 6):
        for cells, devices in ((1, 3), (2, 2)):
            check_mechanism(NAMES[name], cells, 1, devices, seed)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "longitudinal"])  # its bits are kept
def test_two_queries(name):
    check_mechanism(NAMES[name], 1, 2, 2, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_more_parameters_cells_and_devices(name):
    most = HEAVY.get(NAMES[name], 3)
    for seed in (10, 11):
        for cells, devices in ((1, 2), (1, 4), (2, 3 if most > 1 else 2), (3, 1 if most < 3 else 2)):
            check_mechanism(NAMES[name], cells, 1, devices, seed)
        for cells, devices in ((1, 2), (min(most, 2), 2), (most, 1)):
            if name != "longitudinal":
                check_mechanism(NAMES[name], cells, 2, devices, seed)


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 23))])
def test_kept_bits(seed):
    draw = np.random.default_rng(seed)
    given, (p, q, flip) = memoised(draw)
    for cells, times in ((1, 1), (1, 2), (2, 2), (3, 1), (1, 3)):
        mechanism = local.LongitudinalUnary(cells=cells, **given)
        laws = dict(kept_journeys(p, q, flip, cells, times))
        for adjacency in ("move", "enter_leave"):
            pairs = [
                (laws[one], laws[other])
                for one, other in itertools.combinations(laws, 2)
                if adjacency == "move" or all(u == v or 0 in (u, v) for u, v in zip(one, other, strict=True))
            ]
            truth = greatest(pairs, 1, draw)
            for view in (Report(1, times, adjacency=adjacency), LinkedReports(times, adjacency=adjacency)):
                check(mechanism.claim(view), truth, (mechanism, view))


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 32))])
def test_shares_of_laplace_noise(seed):
    draw = np.random.default_rng(seed)
    epsilon, devices = float(draw.uniform(1.5, 4.0)), int(draw.integers(1, 4))
    for cells in (1, 2):
        mechanism = local.DistributedLaplace(cells=cells, epsilon=epsilon, devices=devices)
        alpha, reach = math.exp(-epsilon / min(cells, 2)), 30 if cells == 1 else 16
        for shares, view_of in ((1, LinkedReports), (devices, ReleasedCounts)):
            one = nbinom.pmf(np.arange(60), shares / devices, 1 - alpha)
            noise = np.convolve(one, one[::-1])[59 - reach : 59 + reach + 1]
            apart = np.append(noise, 0.0), np.append(0.0, noise)  # without and with the device in the cell
            rows = [apart[0], apart[1]]
            if cells == 2:
                rows = [np.multiply.outer(apart[a], apart[b]).ravel() for a, b in ((0, 0), (1, 0), (0, 1))]
            for adjacency in ("move", "enter_leave"):
                pairs = (
                    list(itertools.combinations(rows, 2)) if adjacency == "move" else [(rows[0], r) for r in rows[1:]]
                )
                truth = greatest(pairs, 1, draw)
                # The ends of the truncated noise belong to one of the two laws only; they are at most this likely.
                cut = 8.0 * float(noise[-1]) / (1 - alpha) * (reach if cells == 2 else 1)
                view = view_of(queries=1, adjacency=adjacency)
                check(mechanism.claim(view), truth, (mechanism, view), within=cut + 1e-7)


@pytest.mark.parametrize("seed", [5, 40, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (41, 51, 54))])
def test_differences(seed):
    """Every number of devices in each cell from the crowd to 30; over two queries every two of them."""
    draw = np.random.default_rng(seed)
    crowd, k = int(draw.integers(1, 14)), int(draw.integers(1, 15)) if draw.random() < 0.8 else None
    sampling, largest = float(draw.uniform(0.05, 0.98)), 30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        makers = [
            lambda cells: local.SamplingPrivacy(cells=cells, sampling=sampling),
            lambda cells: local.BinarySamplingPrivacy(cells=cells, sampling=sampling),
            lambda cells: local.AnonymizedCancelling(cells=cells, shift=sampling),
        ]
        laws = [difference_law(n, k, sampling, largest) for n in range(largest + 1)]
        numbers = range(crowd, largest + 1)
        enter = [(laws[n], laws[n - 1]) for n in numbers]
        moved = [
            (np.multiply.outer(laws[n], laws[m - 1]).ravel(), np.multiply.outer(laws[n - 1], laws[m]).ravel())
            for n, m in itertools.product(numbers, repeat=2)
        ]
        for cells, adjacency, queries in itertools.product((1, 2, 3), ("enter_leave", "move"), (1, 2)):
            if queries == 2 and cells > 1 and adjacency == "move":
                continue  # too many outcomes
            pairs = enter if adjacency == "enter_leave" or cells == 1 else enter + moved
            deltas, epsilon, whole = greatest(pairs, queries, draw)
            # The worst crowd is about k/β: where that is beyond the largest, what is enumerated is only a lower bound.
            whole = whole and (k is None or 1.3 * k < largest * sampling)
            for make in makers:
                mechanism = make(cells)
                view = ReleasedDifferences(crowd, k, queries, adjacency=adjacency)
                check(mechanism.claim(view), (deltas, epsilon, whole), (mechanism, view))
