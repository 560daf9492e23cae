"""What all campaigns reveal together, compared with enumeration: two campaigns, two partitions, V ≤ 3, T ≤ 2.

The laws are of `claim_laws`, made from the mechanisms' definitions. A device is anywhere, or outside, at each moment.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from claim_laws import (
    GRID,
    SumLaw,
    anonymized_local,
    greatest,
    k_ary,
    kept_journeys,
    memoised,
    of_parts,
    optimised,
    sampling_privacy,
    subset,
)

from mechanisms.central import LaplaceCounts
from mechanisms.local import KRandomizedResponse, LongitudinalUnary, NoPrivacy, OptimisedUnary
from mechanisms.privacy import Claim
from mechanisms.privacy.composition import together
from mechanisms.privacy.report_claims import mirror_claim
from simulator.aggregation.publication import Publication
from simulator.aggregation.rounds import RoundAccount
from simulator.aggregation.servers import PerRound, SecretShared, Trusted
from simulator.experiment.whole_run_claims import whole_run_claims
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, QueryAnswer, Schedule

ROUNDING = 1e-9
TRUSTED = Trusted()


def campaign(name, mechanism, partition, deployment=TRUSTED, **keys):
    return Campaign(
        name, Schedule(0.0, 1.0, 1, 1.0, 1.0), None, {"m": mechanism}, deployment, partition=partition, **keys
    )


def asked(campaigns, moments, devices=1):
    """A query of each campaign at each of its moments, in which all devices are counted."""
    return [
        Query(
            one.name,
            number,
            time_s,
            time_s,
            None,
            None,
            None,
            [QueryAnswer("m", None, None, [RoundAccount(devices, devices, devices)] * one.mechanisms["m"].rounds)],
        )
        for one, times in zip(campaigns, moments, strict=True)
        for number, time_s in enumerate(times, start=1)
    ]


def claimed(campaigns, moments, devices=1):
    found = {claim.view: claim for claim in whole_run_claims(campaigns, asked(campaigns, moments, devices))}
    sent, published = found["linked_reports"], found["published"]
    assert (sent.campaigns, sent.adjacency) == (", ".join(one.name for one in campaigns), "move")
    assert sent.queries == sum(map(len, moments))
    return sent, published


def received(campaigns, moments, *coalition):
    made = whole_run_claims(campaigns, asked(campaigns, moments), [coalition])
    return next(claim for claim in made if claim.coalition == ", ".join(coalition))


def expect_bound(claim, pairs, *, exact=None):
    """The claim is nowhere below the truth of all pairs; of kind exact, it is attained."""
    deltas, epsilon, _ = greatest(pairs, 1, None)
    assert (np.array([claim.delta(e) for e in GRID]) >= deltas - ROUNDING).all(), (claim, deltas)
    assert claim.epsilon >= epsilon * (1 - ROUNDING) - ROUNDING, (claim, epsilon)
    if claim.kind == "exact":
        assert claim.epsilon == pytest.approx(epsilon, rel=1e-9)
    if claim.delta_kind == "exact":
        assert [claim.delta(e) for e in GRID] == pytest.approx(deltas, rel=1e-7, abs=1e-9)
    if claim.kind == "infinite":
        assert epsilon == math.inf
    if exact is not None:
        assert (claim.kind == "exact") == exact


def product(*laws):
    whole = np.ones(1)
    for law in laws:
        whole = np.multiply.outer(whole, law).ravel()
    return whole


def arrays(rows):
    """Laws {report: probability} as arrays over the same reports."""
    reports = sorted({report for row in rows for report in row}, key=repr)
    return [np.array([row.get(report, 0.0) for report in reports]) for row in rows]


def pairs_of(laws):
    return itertools.combinations(laws, 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("cells", [(2, 2), (1, 2)])
def test_kept_bits_of_two_campaigns_of_one_partition_are_one_view(seed, cells):
    given, (p, q, flip) = memoised(np.random.default_rng(seed))
    mechanism = LongitudinalUnary(cells=cells[1], **given)
    campaigns = [campaign("one", mechanism, "a"), campaign("two", mechanism, "a")]
    sent, published = claimed(campaigns, [[10.0], [20.0]])
    laws = dict(kept_journeys(p, q, flip, cells[1], 2))
    expect_bound(sent, pairs_of(laws.values()))
    # At one moment the device has one place.
    together_now, _ = claimed(campaigns, [[10.0], [10.0]])
    expect_bound(together_now, pairs_of([laws[place, place] for place in range(cells[1] + 1)]), exact=False)
    assert published.epsilon <= sent.epsilon


def test_two_campaigns_reveal_more_of_kept_bits_than_two_queries_with_new_coins():
    mechanism = LongitudinalUnary(cells=2, epsilon_permanent=2.0, epsilon_first=1.999)
    sent, _ = claimed([campaign("one", mechanism, "a"), campaign("two", mechanism, "a")], [[1.0], [2.0]])
    laws = dict(kept_journeys(0.5, 1 / (1 + math.exp(2)), mechanism.flip, 2, 2))
    p, q = laws[1, 2], laws[2, 1]
    assert math.log((p / q).max()) == pytest.approx(16.80, abs=0.01)
    assert np.maximum(p - math.exp(3.998) * q, 0).sum() == pytest.approx(0.610, abs=0.001)
    assert sent.epsilon >= math.log((p / q).max())
    assert sent.delta(3.998) >= 0.610


@pytest.mark.parametrize("seed", [4, 5])
def test_kept_bits_of_two_partitions_and_two_campaigns_each(seed):
    given, (p, q, flip) = memoised(np.random.default_rng(seed))
    cells = {"a": 1, "b": 2}
    kept = {name: LongitudinalUnary(cells=v, **given) for name, v in cells.items()}
    campaigns = [campaign(f"{name}{turn}", kept[name], name) for turn in (1, 2) for name in cells]
    moments = [[1.0], [2.0], [3.0], [4.0]]
    laws = {name: dict(kept_journeys(p, q, flip, v, 2)) for name, v in cells.items()}
    every = [product(one, other) for one in laws["a"].values() for other in laws["b"].values()]
    sent, _ = claimed(campaigns, moments)
    expect_bound(sent, pairs_of(every))


@pytest.mark.parametrize("seed", [6, 7])
@pytest.mark.parametrize("maker", [k_ary, optimised, subset, sampling_privacy, anonymized_local])
def test_reports_about_two_partitions(maker, seed):
    draw = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (first, law_a), (second, law_b) = maker(draw, 2), maker(draw, 2 if maker is anonymized_local else 3)
    a, b = arrays(list(law_a.rows(first.cells))), arrays(list(law_b.rows(second.cells)))
    campaigns = [campaign("one", first, "a"), campaign("two", second, "b")]
    apart, _ = claimed(campaigns, [[1.0], [2.0]])
    expect_bound(apart, pairs_of([product(u, v) for u in a for v in b]))
    # Partition b divides cell 1 of a: a device that enters b's cells moves in a, or stays.
    nested = [product(a[0], b[0]), product(a[2], b[0]), *(product(a[1], v) for v in b[1:])]
    once, _ = claimed(campaigns, [[1.0], [1.0]])
    expect_bound(once, pairs_of(nested))
    assert once.kind != "exact"


@pytest.mark.parametrize("seed", [8, 9])
def test_budgets_of_different_size_compose_and_the_sum_is_attained(seed):
    epsilon = float(np.random.default_rng(seed).uniform(0.2, 3.0))
    whole, part = (KRandomizedResponse(cells=2, epsilon=e) for e in (epsilon, epsilon / 3))

    def rows(e):
        ratio = math.exp(e)
        return [np.array([ratio if t == y else 1.0 for y in range(3)]) / (ratio + 2) for t in range(3)]

    campaigns = [campaign("fresh", whole, "a"), campaign("divided", part, "a")]
    sent, _ = claimed(campaigns, [[1.0, 3.0], [2.0, 4.0]])
    laws = [
        product(rows(epsilon)[t], rows(epsilon)[u], rows(epsilon / 3)[v], rows(epsilon / 3)[w])
        for t, u, v, w in itertools.product(range(3), repeat=4)
    ]
    expect_bound(sent, pairs_of(laws), exact=True)
    assert sent.epsilon == pytest.approx(2 * epsilon + 2 * epsilon / 3)
    deltas, _, _ = greatest(pairs_of(laws), 1, None)
    assert [sent.delta(e) for e in GRID] == pytest.approx(deltas, rel=0.02, abs=1e-6)


@pytest.mark.parametrize("seed", [12, 13])
def test_coalitions_across_operators_learn_what_their_views_tell_together(seed):
    """Two operators with a server for each round: which rounds a coalition sees of each decides what it learns."""
    draw, every = np.random.default_rng(seed), {"*": None, "server:1": 0, "server:2": 1}
    (first, law_a), (second, law_b) = sampling_privacy(draw, 1), sampling_privacy(draw, 2)
    campaigns = [
        campaign("one", first, "a", PerRound(), operator="A"),
        campaign("two", second, "b", PerRound(), operator="B"),
    ]

    def seen(rows, round_):
        laws = [dict.fromkeys((key if round_ is None else key[round_] for key in row), 0.0) for row in rows]
        for law, row in zip(laws, rows, strict=True):
            for key, mass in row.items():
                law[key if round_ is None else key[round_]] += mass
        return arrays(laws)

    claims = {}
    for (own, of_a), (other, of_b) in itertools.product(every.items(), repeat=2):
        a, b = seen(list(law_a.rows(1)), of_a), seen(list(law_b.rows(2)), of_b)
        claim = received(campaigns, [[1.0, 3.0], [2.0]], f"operator:A/{own}", f"operator:B/{other}")
        expect_bound(claim, pairs_of([product(s, t, u) for s, t, u in itertools.product(a, a, b)]))
        claims[own, other] = np.array([claim.delta(epsilon) for epsilon in GRID])
    for (own, other), deltas in claims.items():
        assert (deltas <= np.minimum(claims["*", other], claims[own, "*"]) + ROUNDING).all()


@pytest.mark.parametrize("maker", [k_ary, optimised])
def test_a_share_of_another_operator_adds_nothing_and_all_shares_add_all(maker):
    draw, exact = np.random.default_rng(14), True if maker is k_ary else None
    (first, law_a), (second, law_b) = maker(draw, 1), maker(draw, 2)
    a, b = arrays(list(law_a.rows(1))), arrays(list(law_b.rows(2)))
    shared = campaign("two", second, "b", SecretShared(servers=2), operator="B")
    campaigns, moments = [campaign("one", first, "a", operator="A"), shared], [[1.0, 3.0], [2.0, 4.0]]
    own = [product(s, t) for s, t in itertools.product(a, repeat=2)]
    for one in (("operator:A/*",), ("operator:A/server:1", "operator:B/server:2")):
        expect_bound(received(campaigns, moments, *one), pairs_of(own), exact=exact)
    every = [product(law, u, v) for law, u, v in itertools.product(own, b, b)]
    expect_bound(received(campaigns, moments, "operator:*/*"), pairs_of(every), exact=exact)
    nothing = received(campaigns, moments, "operator:B/server:1")
    assert (nothing.epsilon, nothing.campaigns, nothing.queries) == (0.0, "two", 2)
    # Pseudonyms hide which reports are of one device: the claim of linked reports is a bound.
    hidden = campaign("one", first, "a", Trusted(handles="query"), operator="A")
    expect_bound(received([hidden, shared], moments, "operator:A/*"), pairs_of(own), exact=False)


def test_bits_kept_for_two_operators_are_one_view():
    given, (p, q, flip) = memoised(np.random.default_rng(15))
    mechanism = LongitudinalUnary(cells=2, **given)
    campaigns = [campaign(name, mechanism, "a", operator=name.upper()) for name in ("a", "b")]
    laws = dict(kept_journeys(p, q, flip, 2, 2)).values()
    claim = received(campaigns, [[1.0], [2.0]], "operator:*/*")
    expect_bound(claim, pairs_of(laws))
    assert received(campaigns, [[1.0], [2.0]], "operator:B/*").epsilon < claim.epsilon


def noise(epsilon, reach):
    law = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
    return law / law.sum()


def test_laplace_releases_of_a_city_and_of_its_west_half_at_one_moment_add_up_to_three():
    release = LaplaceCounts(epsilon=1.0)
    city, west = NoPrivacy(cells=2), NoPrivacy(cells=1)
    published = {"m": Publication(release, NoPrivacy(cells=1))}
    campaigns = [
        campaign("city", city, "a", release={"kind": "laplace"}, publications=published),
        campaign("west", west, "b", release={"kind": "laplace"}, publications=published),
    ]
    sent, shown = claimed(campaigns, [[5.0], [5.0]])
    assert (sent.kind, sent.epsilon, sent.delta(50.0)) == ("infinite", math.inf, 1.0)
    assert (shown.kind, shown.epsilon) == ("bound", 3.0)
    # West to east: the count of a's west cell and of b fall by one, of a's east cell rises by one.
    law = noise(1.0, 12)
    with_, without = np.append(0.0, law), np.append(law, 0.0)
    p, q = product(with_, with_, without), product(without, without, with_)
    both = (p > 0) & (q > 0)
    assert np.log(p[both] / q[both]).max() == pytest.approx(3.0)
    cut = 4 * float(law[0])
    for epsilon in GRID:
        delta = np.maximum(p - math.exp(epsilon) * q, 0)[both].sum()
        assert delta - cut <= shown.delta(epsilon) <= delta + cut + 1e-4, epsilon
    # At two moments each release is of another place, so that the sum is attained.
    _, apart = claimed(campaigns, [[5.0], [6.0]])
    assert (apart.kind, apart.epsilon) == ("exact", 3.0)


@pytest.mark.parametrize("devices", [2, 3])
def test_published_counts_of_two_campaigns_with_new_coins(devices):
    epsilon = 1.2
    one, two = OptimisedUnary(cells=1, epsilon=epsilon), OptimisedUnary(cells=2, epsilon=epsilon)
    q = 1 / (1 + math.exp(epsilon))

    def rows(cells):
        for truth in range(cells + 1):
            laws = [
                {(c, bit): abs(1 - bit - (0.5 if c == truth else q)) for bit in (0, 1)} for c in range(1, cells + 1)
            ]
            yield {
                (tuple(part for part, _ in chosen),): math.prod(mass for _, mass in chosen)
                for chosen in itertools.product(*(law.items() for law in laws))
            }

    _, published = claimed([campaign("one", one, "a"), campaign("two", two, "b")], [[1.0], [2.0]], devices)
    a, b = (list(SumLaw(list(rows(cells)), of_parts).pairs(devices, "move")) for cells in (1, 2))
    # The device may stay in one of the two queries; the others are anywhere.
    pairs = [
        (product(p, u), product(r, v))
        for (p, r), (u, v) in itertools.product([*a, *((p, p) for p, _ in a)], [*b, *((v, u) for u, v in b)])
    ]
    expect_bound(published, pairs)


def test_published_sums_of_kept_bits_of_two_campaigns():
    given, (p, q, flip) = memoised(np.random.default_rng(11))
    mechanism = LongitudinalUnary(cells=1, **given)
    _, published = claimed([campaign("one", mechanism, "a"), campaign("two", mechanism, "a")], [[1.0], [2.0]], 2)
    laws = [law.reshape(2, 2) for _, law in kept_journeys(p, q, flip, 1, 2)]

    def summed(one, other):
        whole = np.zeros((3, 3))
        for (i, j), (k, m) in itertools.product(np.ndindex(2, 2), repeat=2):
            whole[i + k, j + m] += one[i, j] * other[k, m]
        return whole.ravel()

    for other in laws:
        expect_bound(published, pairs_of([summed(law, other) for law in laws]))


def test_what_is_unknown_stays_unknown():
    class Own:
        cells, rounds = 2, 1

        def enrol(self, n, **_):
            return np.arange(n)

        def claim(self, _):
            return Claim.unknown("Nothing is proved.")

    sent, published = claimed([campaign("one", Own(), "a"), campaign("two", Own(), "a")], [[1.0], [2.0]])
    assert (sent.kind, published.kind) == ("unknown", "unknown")


def test_a_single_campaign_has_no_claims_of_its_own_as_a_whole_run():
    one = campaign("one", KRandomizedResponse(cells=2, epsilon=1.0), "a")
    assert not [*whole_run_claims([one], asked([one], [[1.0, 2.0]]))]


@pytest.mark.parametrize("epsilons", [(1.0, 2.0), (0.1, 3.0), (1e-4, 1.0), (12.0, 0.01), (1.0, 2.0, 0.5, 0.7)])
def test_views_with_different_curves_compose_to_within_a_part_in_a_thousand(epsilons):
    claims = [mirror_claim(distinguishing=1 / (1 + math.exp(-e)), epsilon=e, queries=1, source="a") for e in epsilons]
    yes, no = np.ones(1), np.ones(1)
    for e in epsilons:
        odd = 1 / (1 + math.exp(-e))
        yes, no = product(yes, [odd, 1 - odd]), product(no, [1 - odd, odd])
    made = together(claims, attained=True)
    assert (made.kind, made.delta_kind, made.epsilon) == ("exact", "bound", pytest.approx(sum(epsilons)))
    for epsilon in np.linspace(0.0, 0.99, 7) * sum(epsilons):
        truth = np.maximum(yes - math.exp(epsilon) * no, 0).sum()
        assert truth * (1 - 1e-9) <= made.delta(epsilon) <= truth * 1.001 + 1e-9
