"""Claims about suppressed counts against brute force: every subset of devices, every table, every digit of the tail."""

import itertools
import math
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.central import Generalised, SampleThenSuppress, apply
from mechanisms.privacy import (
    pair_delta,
    released_differences_delta,
    strongly_safe_delta,
    worst_crowd_delta,
)
from mechanisms.privacy.subsampling import SafeDelta

EPSILONS = (0.0, 0.05, 0.3, 0.7, 1.0, 2.0)


def table_distribution(cells, sampling, k):
    """The distribution of Apply on a sample, by enumerating every subset of the devices."""
    distribution = defaultdict(float)
    for chosen in itertools.product((False, True), repeat=len(cells)):
        sample = [cell for cell, taken in zip(cells, chosen, strict=True) if taken]
        distribution[frozenset(apply(lambda cell: cell, sample, k).items())] += sampling ** len(sample) * (
            1 - sampling
        ) ** (len(cells) - len(sample))
    return distribution


def release_delta(one, other, epsilon):
    outputs = sorted(set(one) | set(other), key=repr)
    p, q = (np.array([distribution.get(output, 0.0) for output in outputs]) for distribution in (one, other))
    return pair_delta(p, q, epsilon=epsilon)


@pytest.mark.parametrize(("crowd", "k", "sampling"), [(1, 1, 0.4), (5, 2, 0.3), (7, 3, 0.5), (3, 4, 0.6)], ids=str)
def test_one_release_claim_equals_enumeration_of_subsets(crowd, k, sampling):
    """The worst of all numbers of devices from the crowd on: for these no more than 10."""
    tables = [table_distribution(["here"] * n + ["there"], sampling, k) for n in range(crowd - 1, 11)]
    claim = SampleThenSuppress(k=k, sampling=sampling).claim(crowd=crowd)
    assert claim.delta_kind == "exact"
    for epsilon in EPSILONS:
        worst = max(release_delta(present, absent, epsilon) for absent, present in itertools.pairwise(tables))
        assert claim.delta(epsilon) == pytest.approx(worst, abs=1e-14)


@pytest.mark.parametrize(("crowd", "k", "sampling"), [(3, 2, 0.3), (5, 2, 0.4), (6, 3, 0.5)], ids=str)
def test_two_samples_are_bounded_and_a_repeated_sample_counts_once(crowd, k, sampling):
    distributions = [table_distribution(["here"] * n, sampling, k) for n in (crowd, crowd - 1)]
    twice = [
        {(a, b): distribution[a] * distribution[b] for a, b in itertools.product(distribution, repeat=2)}
        for distribution in distributions
    ]
    same = [{(a, a): mass for a, mass in distribution.items()} for distribution in distributions]
    release = SampleThenSuppress(k=k, sampling=sampling)
    two = release.claim(crowd=crowd, queries=2)
    assert two.delta_kind == "bound"
    for epsilon in EPSILONS:
        exact = release_delta(*twice, epsilon)
        assert two.delta(epsilon) >= exact - 1e-12
        assert exact >= release_delta(*same, epsilon) - 1e-12
        one = released_differences_delta(crowd=crowd, k=k, sampling=sampling, epsilon=epsilon)
        assert release_delta(*same, epsilon) == pytest.approx(one, abs=1e-14)
    # The bound is tight: close to the exact δ of the two queries.
    assert two.delta(1.0) <= 2.5 * release_delta(*twice, 1.0) + 1e-9


@pytest.mark.parametrize(("k", "sampling"), [(1, 0.3), (3, 0.2), (8, 0.4)], ids=str)
def test_worst_crowd_bounds_all_crowds_and_theorem_5_bounds_it(k, sampling):
    release = SampleThenSuppress(k=k, sampling=sampling)
    whatever, theorem = release.claim(crowd=None), release.theorem_5()
    for epsilon in (0.05, 0.3, 0.6, 1.0, 2.0):
        deltas = [released_differences_delta(crowd=n, k=k, sampling=sampling, epsilon=epsilon) for n in range(1, 150)]
        assert whatever.delta(epsilon) == pytest.approx(max(deltas), rel=1e-9)
        assert whatever.delta(epsilon) <= theorem.delta(epsilon) * (1 + 1e-9)
        for known in (5, 30, 90):
            worst = worst_crowd_delta(k=k, sampling=sampling, epsilon=epsilon, at_least=known)
            assert worst == pytest.approx(max(deltas[known - 1 :]), rel=1e-9)
            assert release.claim(crowd=known).delta(epsilon) == worst


LEVELS = (np.arange(3), np.array([0, 0, 1]), np.zeros(3, dtype=np.int64))


def generalised_distribution(release, cells, *, from_sample):
    """The distribution of (level, table), by every subset of the devices and every level."""
    distribution = defaultdict(float)
    held = np.bincount(cells, minlength=3)
    for chosen in itertools.product((False, True), repeat=len(cells)):
        sample = [cell for cell, taken in zip(cells, chosen, strict=True) if taken]
        mass = release.sampling ** len(sample) * (1 - release.sampling) ** (len(cells) - len(sample))
        shares = release.level_probabilities(held)
        if from_sample:
            kept = []
            for i, level in enumerate(release.levels):
                table = apply(lambda cell, level=level: int(level[cell]), sample, release.k)
                kept.append(sum(release._detail(i)[group] * count for group, count in table.items()))
            weights = np.exp(release.epsilon * np.array(kept) / (2 * release.k))
            shares = weights / weights.sum()
        for i, level in enumerate(release.levels):
            table = apply(lambda cell, level=level: int(level[cell]), sample, release.k)
            distribution[i, frozenset(table.items())] += mass * shares[i]
    return distribution


@pytest.mark.parametrize("cells", [[0] * 4 + [1] * 2, [0, 1, 1, 1, 2, 2], [2, 0, 0, 0, 1, 1]], ids=str)
@pytest.mark.parametrize("spent", [0.5, 3.0], ids=str)
def test_generalised_claims_hold(cells, spent):
    release = Generalised(levels=LEVELS, k=3, sampling=0.3, epsilon=spent)
    first = cells.count(cells[0])
    for from_sample in (False, True):
        distributions = [
            generalised_distribution(release, kept, from_sample=from_sample) for kept in (cells, cells[1:])
        ]
        claims = [release.claim_sampled()]
        if not from_sample:
            claims = [release.claim(crowd=None), release.claim(crowd=first)]
        for epsilon in (0.3, 0.6, 1.0, 2.0, 4.0, 7.0):
            exact = release_delta(*distributions, epsilon)
            for claim in claims:
                assert claim.delta(epsilon) >= exact - 1e-12, (from_sample, epsilon, claim.basis)


def test_publish_draws_level_and_table_of_the_distribution():
    release = Generalised(levels=LEVELS, k=3, sampling=0.5, epsilon=2.0)
    cells = [0, 0, 0, 1, 1, 2]
    held = np.bincount(cells, minlength=3)
    rng = np.random.default_rng(8)
    repeats = 1_000
    drawn = np.bincount([release.draw_level(held, rng=rng) for _ in range(repeats)], minlength=3)
    shares = release.level_probabilities(held)
    assert np.abs(drawn / repeats - shares).max() < 5.5 * math.sqrt(0.25 / repeats)
    whole = release.publish_level(np.array([3, 1, 1]), 1)
    assert whole.count.tolist() == [4.0, 4.0, 0.0]  # four of one half, spread over two cells; one below k
    assert release.publish_sampled(np.array([9, 0, 0]), rng=rng).count.sum() == pytest.approx(18.0)


def test_theorem_6_fails_where_the_map_is_chosen_on_the_sample():
    """The only device in one of two cells, merged or not by a threshold on sampled counts: δ is 10¹⁰ times larger."""
    from simulator.reproduction.safe_sampling.generalization import BETA, REST, Choice, K  # noqa: PLC0415 - only here

    for spent in (1.0, 3.0):
        epsilon = spent + REST - math.log1p(-BETA)
        seen = Choice(spent, from_sample=True).delta(epsilon)
        blind = Choice(spent, from_sample=False).delta(epsilon)
        bound = SafeDelta(K, BETA, spent, "paper")(epsilon)
        assert blind <= bound
        mended = SafeDelta(K, BETA, spent, "chosen on the sample")(epsilon + spent)
        assert Choice(spent, from_sample=True).delta(epsilon + spent) <= mended
        if spent == 3.0:
            assert seen > 1e9 * bound


def test_choice_of_the_counterexample_is_private():
    from simulator.reproduction.safe_sampling.generalization import Choice  # noqa: PLC0415 - only here

    for flag in (True, False):
        choice = Choice(3.0, from_sample=flag)
        others = np.arange(121.0)
        for own in (0.0, 1.0):
            here = choice.merged(own, others)
            for there in (
                choice.merged(1 - own, others),
                choice.merged(own, others + 1),
                choice.merged(own, others - 1),
            ):
                assert np.abs(np.log(here) - np.log(there)).max() <= 3.0 + 1e-9
                known = (here < 1) & (there < 1)  # beyond, 1 − p is below rounding
                ratio = np.log1p(-here[known]) - np.log1p(-there[known])
                assert np.abs(ratio[np.abs(1 - here[known]) > 1e-6]).max() <= 3.0 + 1e-6


def exact_tail(least, n, p):
    """P[Bin(n, p) ≥ least] for exactly this double p, in integer arithmetic."""
    p = Fraction(p)
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(least, n + 1))


def exact_theorem_5(k, sampling, epsilon, looked=4):
    with localcontext() as context:
        context.prec = 60
        gamma = 1 - (1 - Decimal(sampling)) * (-Decimal(epsilon)).exp()
        places = [
            (j, int((Decimal(j) / gamma).to_integral_value(rounding="ROUND_CEILING")) - 1) for j in range(k, k + looked)
        ]
    return max(exact_tail(j, max(n, j), sampling) for j, n in places)


@pytest.mark.parametrize(
    ("k", "sampling", "epsilon"),
    [(20, 0.05, 2.0), (50, 0.2, 0.5), (200, 0.05, 2.0), (200, 0.05, 1.0), (250, 0.05, 2.0), (150, 0.01, 1.5)],
    ids=str,
)
def test_theorem_5_is_accurate_down_to_1e_300(k, sampling, epsilon):
    exact = exact_theorem_5(k, sampling, epsilon)
    assert exact > Fraction(1, 10**300)
    computed = strongly_safe_delta(k=k, sampling=sampling, epsilon=epsilon)
    assert abs(Fraction(computed) / exact - 1) < Fraction(1, 10**9)
    worst = worst_crowd_delta(k=k, sampling=sampling, epsilon=epsilon)
    assert 0.0 < worst <= computed


@given(st.integers(1, 60), st.floats(0.01, 0.6), st.floats(0.0, 3.0), st.floats(0.0, 2.0))
@settings(deadline=None, max_examples=60)
def test_theorem_6_is_theorem_5_with_the_remaining_epsilon(k, sampling, more, spent):
    rest = -math.log1p(-sampling) + more + 1e-9
    theorem_5 = strongly_safe_delta(k=k, sampling=sampling, epsilon=rest)
    assert SafeDelta(k, sampling, spent, "paper")(rest + spent) == pytest.approx(theorem_5, rel=0.5)
    assert SafeDelta(k, sampling, spent, "chosen on the sample", options=1)(rest) == theorem_5


def test_theorem_6_claims_nothing_below_its_least_epsilon():
    assert SafeDelta(5, 0.2, 0.9, "paper")(1.0) == 1.0
    assert SafeDelta(5, 0.2, 0.5, "chosen on the sample", options=3)(1.0) == 1.0
    claim = Generalised(levels=LEVELS, k=5, sampling=1.0, epsilon=1.0).claim(crowd=None)
    assert claim.delta(3.0) == 1.0


@pytest.mark.parametrize("options", [1, 2, 5])
def test_choice_on_the_sample_spends_twice_its_epsilon(options):
    """Unless there is one option only, and nothing is chosen."""
    curve = SafeDelta(10, 0.3, 0.2, "chosen on the sample", options)
    least = curve.spent - math.log1p(-0.3)
    assert curve(least - 1e-6) == 1.0
    for epsilon in (least + 1e-6, 1.0, 2.0):
        rest = epsilon - (0.4 if options > 1 else 0.0)
        assert curve(epsilon) == options * strongly_safe_delta(k=10, sampling=0.3, epsilon=rest) < 1.0
