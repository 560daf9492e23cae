"""Claims of mechanisms with memoised bits, against the exact joint distribution of all devices' reports."""

import itertools
import math

import numpy as np
import pytest
from claim_laws import kept_journeys
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.local import LongitudinalUnary, ParameterError
from mechanisms.planning.candidate import bound_view
from mechanisms.privacy import LinkedReports, ReleasedCounts, Report, Shuffled, pair_delta, pair_epsilon
from mechanisms.privacy.report_claims import EXACT_QUERIES
from mechanisms.privacy.rounding import rounded_up

EPSILONS = (0.0, 0.2, 0.7, 1.0, 2.0, 4.0, 6.0)
BUDGETS = [
    # ε∞, ε₁: the second step adds almost no noise, half of it, almost all of it
    (2.0, 1.99, "optimised"),
    (2.0, 1.0, "optimised"),
    (1.0, 0.1, "symmetric"),
    (3.0, 2.9, "symmetric"),
]


def of_budget(budget, cells):
    permanent, first, step = budget
    return LongitudinalUnary(cells=cells, epsilon_permanent=permanent, epsilon_first=first, permanent=step)


def journey_laws(mechanism, queries):
    """The law of all bits at all queries, by journey, (2 ** (cells · queries),)."""
    kept = mechanism.true_kept, mechanism.false_kept, mechanism.flip
    return dict(kept_journeys(*kept, mechanism.cells, queries))


@pytest.mark.parametrize("budget", BUDGETS[1:3], ids=str)
@pytest.mark.parametrize(("cells", "queries"), [(1, 3), (2, 2), (3, 1)])
def test_claim_of_a_device_that_stays_is_exact(budget, cells, queries):
    mechanism = of_budget(budget, cells)
    laws = journey_laws(mechanism, queries)
    staying = mechanism.staying_claim(queries=queries)
    assert (staying.kind, staying.delta_kind) == ("exact", "exact")
    pairs = list(itertools.combinations([laws[(place,) * queries] for place in range(cells + 1)], 2))
    assert staying.epsilon == pytest.approx(max(pair_epsilon(p, q) for p, q in pairs), rel=1e-9)
    for epsilon in EPSILONS:
        assert staying.delta(epsilon) == pytest.approx(
            max(pair_delta(p, q, epsilon=epsilon) for p, q in pairs), abs=1e-12
        )
    assert ("does not change" in staying.basis) == (queries > 1)
    claim = mechanism.claim(Report(1, queries=queries))
    if queries == 1:
        assert claim == staying
        return
    assert claim.kind == claim.delta_kind == "bound"  # too few cells to separate the worst trajectories
    assert staying.epsilon < claim.epsilon
    assert rounded_up(staying.epsilon, 6) in claim.basis


@pytest.mark.parametrize("permanent", ["optimised", "symmetric"])
def test_claim_of_a_moving_device_is_exact_with_enough_cells(permanent):
    """Two queries, four cells: the worst two trajectories visit two cells each."""
    mechanism = of_budget((3.0, 1.5, permanent), 4)
    claim, laws = mechanism.claim(Report(1, queries=2)), journey_laws(mechanism, 2)
    assert (claim.kind, claim.delta_kind) == ("exact", "bound")
    moving = [laws[journey] for journey in ((1, 2), (3, 4), (3, 3), (1, 1), (2, 1), (0, 4))]
    pairs = list(itertools.combinations(moving, 2))
    assert max(pair_epsilon(p, q) for p, q in pairs) == pytest.approx(claim.epsilon, rel=1e-9)
    for epsilon in (0.0, 0.5, 2.0):
        assert max(pair_delta(p, q, epsilon=epsilon) for p, q in pairs) <= claim.delta(epsilon)


@given(permanent=st.floats(0.2, 8.0), share=st.floats(0.05, 0.95), step=st.sampled_from(["optimised", "symmetric"]))
def test_chained_epsilon_is_exact_and_limited(permanent, share, step):
    baseline = LongitudinalUnary(cells=5, epsilon_permanent=permanent, epsilon_first=share * permanent, permanent=step)
    p, q, f = baseline.true_kept, baseline.false_kept, baseline.flip
    both = [x * (1 - f) + (1 - x) * f for x in (p, q)]
    chained = math.log(both[0] * (1 - both[1]) / (both[1] * (1 - both[0])))
    assert chained == pytest.approx(share * permanent, rel=1e-7)
    staying = [baseline.staying_claim(queries=t) for t in (1, 2, 10, 600)]
    assert staying[0].epsilon == pytest.approx(share * permanent, rel=1e-7)
    for less, more in itertools.pairwise(staying):
        assert less.epsilon <= more.epsilon * (1 + 1e-12)
        assert less.delta(0.1) <= more.delta(0.1) + 1e-12
    assert staying[-1].epsilon <= permanent * (1 + 1e-12)
    assert staying[-1].delta_kind == "bound"
    for claim, t in zip(staying[1:], (2, 10, 600), strict=True):
        moving = baseline.claim(Report(1, queries=t))
        assert claim.epsilon <= moving.epsilon
        assert claim.delta(0.1) <= moving.delta(0.1) + 1e-12


def test_moving_device_over_many_queries_has_a_weak_claim():
    baseline = LongitudinalUnary(cells=5, epsilon_permanent=2.0, epsilon_first=1.0)
    claim = baseline.claim(Report(1, queries=EXACT_QUERIES + 1))
    assert claim.epsilon == pytest.approx((EXACT_QUERIES + 1) * 2 * math.log((1 - baseline.flip) / baseline.flip))
    assert claim.delta(1.0) == 1.0


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
@pytest.mark.parametrize(("cells", "devices", "queries"), [(1, 1, 2), (1, 2, 2), (1, 3, 2), (2, 1, 2)])
def test_no_claim_is_below_the_joint_distribution(cells, devices, queries, budget):
    """Any two trajectories of one device, any truths of the others: shuffled, published, linked, planned."""
    mechanism = of_budget(budget, cells)
    distributions = list(journey_laws(mechanism, queries).values())
    crowd = ReleasedCounts(devices, queries, adjacency="move")  # any two trajectories
    bounds = {
        shuffled: [mechanism.claim(Shuffled(1, devices, queries))],
        counted: [mechanism.claim(crowd), bound_view(mechanism, crowd, devices=devices)],
    }
    if devices == 1:
        bounds[shuffled].append(mechanism.claim(LinkedReports(queries)))
    for seen, claims in bounds.items():
        worst, most = dict.fromkeys(EPSILONS, 0.0), 0.0
        for others in itertools.combinations_with_replacement(range(len(distributions)), devices - 1):
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
                assert claim.delta(epsilon) >= exact * (1 - 1e-12)


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


def test_queries_of_a_device_that_stays_are_checked():
    with pytest.raises(ParameterError, match=r"^queries must be at least 1, got 0"):
        of_budget(BUDGETS[1], 2).staying_claim(queries=0)
