"""Suppression, generalisation and local recoding: published tables, errors, and refused arguments."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_statistics import z_bound

from mechanisms.central import (
    CountRelease,
    Generalised,
    LocalRecoding,
    SampleThenSuppress,
    apply,
    cut_clusters,
    exponential_probabilities,
    suppress,
)
from mechanisms.central.suppression import kept_errors, largest_step
from mechanisms.parameter import ParameterError
from mechanisms.privacy.binomial import mass_at

GRID = 4
PLACES = np.array([(row, column) for row in range(GRID) for column in range(GRID)], dtype=float)
LEVELS = (
    np.arange(GRID * GRID),
    (PLACES[:, 0] // 2 * 2 + PLACES[:, 1] // 2).astype(np.int64),
    np.zeros(GRID * GRID, dtype=np.int64),
)


def test_apply_counts_values_seen_at_least_k_times():
    assert apply(lambda word: word[0], ["ant", "bee", "asp", "boa", "ape", "cod"], 2) == {"a": 3, "b": 2}
    assert apply(lambda one: one, [], 1) == {}
    assert apply(lambda one: one % 3, range(10), 4) == {0: 4}
    with pytest.raises(ParameterError, match="k must be at least 1"):
        apply(lambda one: one, [1], 0)


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 8))
def test_suppression_equals_apply_on_the_table(cells, k):
    table = suppress(np.bincount(cells, minlength=7) if cells else np.zeros(7, dtype=np.int64), k)
    assert {cell: count for cell, count in enumerate(table) if count} == dict(sorted(apply(int, cells, k).items()))


@pytest.mark.parametrize(
    "release",
    [
        SampleThenSuppress(k=5, sampling=0.3),
        Generalised(levels=LEVELS, k=5, sampling=0.3, epsilon=1.0),
        LocalRecoding(k=5, places=PLACES),
    ],
    ids=["suppress", "generalised", "recoding"],
)
def test_every_release_implements_the_protocol(release):
    assert isinstance(release, CountRelease)
    counts = np.random.default_rng(1).poisson(3.0, GRID * GRID)
    published = release.publish(counts, rng=np.random.default_rng(2))
    again = release.publish(counts, rng=np.random.default_rng(2))
    assert len(published) == len(counts) == len(release.std_error(counts))
    np.testing.assert_array_equal(published.count, again.count)
    none = release.publish(np.zeros_like(counts), rng=np.random.default_rng(3))
    assert none.count.max() == 0
    assert (none.lower == 0).all()
    assert (none.upper >= release.k - 1).all()
    assert release.claim(crowd=3, queries=2).delta(1.0) <= 1.0
    with pytest.raises(ParameterError, match="negative"):
        release.publish(np.append(counts[:-1], -1), rng=np.random.default_rng(4))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(("k", "sampling"), [(1, 0.4), (5, 0.3), (20, 0.2)], ids=str)
def test_error_equals_enumeration_and_simulation(k, sampling):
    release = SampleThenSuppress(k=k, sampling=sampling)
    counts = np.array([0, 1, k, 2 * k + 3, round(k / sampling), 300])
    j = np.arange(301)
    for n, error in zip(counts, release.std_error(counts), strict=True):
        published = np.where(j >= k, j / sampling, 0.0)
        assert error == pytest.approx(math.sqrt(math.fsum(mass_at(j, n, sampling) * (published - n) ** 2)), abs=1e-6)
    repeats = 1_000
    rng = np.random.default_rng(5)
    squares = np.array([(release.publish(counts, rng=rng).count - counts) ** 2 for _ in range(repeats)])
    spread = squares.std(axis=0) / math.sqrt(repeats)
    scores = (squares.mean(axis=0) - release.std_error(counts) ** 2) / np.where(spread > 0, spread, 1.0)
    assert np.abs(scores).max() < z_bound(len(counts))


@pytest.mark.parametrize(
    ("held", "sampling"), [(10**9, 1.0 - 1e-7), (10**12, 1.0 - 1e-6), (10**12, 0.5), (10**15, 1.0)]
)
def test_error_of_a_large_count_is_accurate(held, sampling):
    # Counts this large are never suppressed: only the sampling error √(Y(1 − β)/β) remains.
    counts = np.array([held, 0])
    alone = math.sqrt(held * (1.0 - sampling) / sampling)
    expected = pytest.approx([alone, 0.0], rel=1e-12)
    assert SampleThenSuppress(k=5, sampling=sampling).std_error(counts).tolist() == expected
    finest = Generalised(levels=[np.arange(2)], k=5, sampling=sampling, epsilon=0.0)
    assert finest.std_error(counts).tolist() == expected


def test_suppressed_cell_states_the_maximum_error_of_its_interval():
    release = SampleThenSuppress(k=40, sampling=0.1)
    suppressed = release.publish_sampled(np.array([0]))
    assert suppressed.std_error[0] == pytest.approx(release.std_error(np.arange(int(suppressed.upper[0]) + 1)).max())
    rare = SampleThenSuppress(k=10, sampling=1e-9).publish_sampled(np.array([3]))
    assert rare.upper[0] > 1e10
    assert 0.1 * rare.upper[0] < rare.std_error[0] < rare.upper[0]


def test_intervals_cover_suppressed_counts_too():
    release = SampleThenSuppress(k=8, sampling=0.3)
    j = np.arange(400)
    for n in (0, 3, 8, 15, 26, 40, 90):
        ends = release.publish_sampled(j[: n + 1])
        covered = (ends.lower <= n) & (n <= ends.upper)
        assert math.fsum(mass_at(j[: n + 1], n, 0.3)[covered]) >= 0.95 - 1e-12
    hidden = release.publish_sampled(np.array([0, 7, -3]))
    assert (hidden.count == 0).all()
    assert len(set(hidden.upper)) == 1
    assert (hidden.std_error >= hidden.upper / 4).all()


@pytest.mark.parametrize(("k", "sampling"), [(1, 0.3), (2, 0.5), (5, 0.3), (20, 0.2), (7, 1.0)], ids=str)
def test_the_largest_step_is_the_largest_of_all(k, sampling):
    bias, _ = kept_errors(np.arange(400), k, sampling)
    steps = np.diff(np.arange(400) + bias)
    assert steps.min() >= -1e-9
    assert steps.max() == pytest.approx(largest_step(k, sampling), abs=1e-9)


def test_the_level_is_drawn_with_differential_privacy():
    levels = (np.arange(4), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
    release = Generalised(levels=levels, k=2, sampling=0.5, epsilon=0.8)
    worst_quality = worst_ratio = 0.0
    for counts in itertools.product(range(4), repeat=4):
        table = np.array(counts)
        for cell in range(4):
            more = table.copy()
            more[cell] += 1
            worst_quality = max(worst_quality, np.abs(release.qualities(more) - release.qualities(table)).max())
            ratio = np.log(release.level_probabilities(more) / release.level_probabilities(table))
            worst_ratio = max(worst_ratio, np.abs(ratio).max())
    assert worst_quality <= release.sensitivity + 1e-12
    assert worst_quality > 0.9 * release.sensitivity
    assert worst_ratio <= release.epsilon + 1e-12


def test_exponential_probabilities():
    shares = exponential_probabilities([0.0, 2.0, 1000.0], sensitivity=2.0, epsilon=2.0)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1] / shares[0] == pytest.approx(math.exp(1.0))
    assert exponential_probabilities([3.0, 1.0], sensitivity=1.0, epsilon=0.0).tolist() == [0.5, 0.5]
    for bad in ({"sensitivity": 0.0}, {"epsilon": math.inf}, {"epsilon": -1.0}, {"qualities": [math.nan]}):
        with pytest.raises(ParameterError):
            exponential_probabilities(**({"qualities": [0.0], "sensitivity": 1.0, "epsilon": 1.0} | bad))


def test_generalised_error_equals_simulation():
    counts = np.random.default_rng(6).poisson(4.0, GRID * GRID)
    # An ε at which several levels are likely.
    release = Generalised(levels=LEVELS, k=4, sampling=0.4, epsilon=0.2)
    assert release.level_probabilities(counts).min() > 0.05
    repeats = 1_000
    rng = np.random.default_rng(7)
    squares = np.array([(release.publish(counts, rng=rng).count - counts) ** 2 for _ in range(repeats)])
    spread = squares.std(axis=0) / math.sqrt(repeats)
    scores = (squares.mean(axis=0) - release.std_error(counts) ** 2) / spread
    assert np.abs(scores).max() < z_bound(len(counts))


def test_one_level_is_suppression_without_privacy_cost():
    one = Generalised(levels=LEVELS[:1], k=5, sampling=0.3, epsilon=1.0)
    plain = SampleThenSuppress(k=5, sampling=0.3)
    counts = np.arange(GRID * GRID) * 3
    np.testing.assert_allclose(one.std_error(counts), plain.std_error(counts))
    assert one.claim(crowd=None).delta(0.7) == plain.claim(crowd=None).delta(0.7)
    assert plain.theorem_5().delta(0.7) == one.claim_sampled().delta(0.7)


@pytest.mark.parametrize(
    "levels",
    [(), (np.array([0, 2]),), (np.array([0, 0]), np.array([0, 1])), (np.array([0.0, 1.0]),), (np.zeros(0, np.int64),)],
    ids=["none", "gap", "coarser first", "floats", "no cells"],
)
def test_invalid_levels_are_refused(levels):
    with pytest.raises(ParameterError, match="levels"):
        Generalised(levels=levels, k=2, sampling=0.5, epsilon=1.0)


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 6)), max_size=40),
)
@settings(deadline=None)
def test_clusters_hold_at_least_k_devices_and_all_devices(k, rows):
    points = np.array([row[:2] for row in rows], dtype=float).reshape(-1, 2)
    devices = np.array([row[2] for row in rows], dtype=np.int64)
    clusters = cut_clusters(points, devices, k)
    if devices.sum() < k:
        assert clusters == ()
        return
    assert sum(cluster.devices for cluster in clusters) == devices.sum()
    assert all(cluster.devices >= k for cluster in clusters)
    there = points[devices > 0]
    # k-anonymity holds, and every edge is some device's own value: this is the leak.
    for cluster in clusters:
        for axis in (0, 1):
            assert cluster.low[axis] in there[:, axis]
            assert cluster.high[axis] in there[:, axis]


def test_mondrian_cuts_the_widest_dimension_at_its_median():
    clusters = cut_clusters([[0.0], [1.0], [2.0], [35.0]], [2, 1, 1, 1], 2)
    assert sorted((c.devices, c.low[0], c.high[0]) for c in clusters) == [(2, 2.0, 35.0), (3, 0.0, 1.0)]


def test_recoding_publishes_a_single_device_and_claims_nothing():
    release = LocalRecoding(k=4, places=PLACES)
    counts = np.zeros(GRID * GRID, dtype=np.int64)
    counts[0] = 4
    home = release.publish(counts, rng=np.random.default_rng(0))
    assert home.count[0] == home.lower[0] == home.upper[0] == 4
    counts[-1] = 1
    (box,) = release.clusters(counts)
    assert box.high.tolist() == PLACES[-1].tolist()
    np.testing.assert_allclose(release.std_error(counts)[[0, -1]], [4 - 5 / 16, 1 - 5 / 16])
    claim = release.claim(crowd=None)
    assert claim.kind == "infinite"
    assert claim.delta(5.0) == 1.0


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: SampleThenSuppress(k=0, sampling=0.5), "k"),
        (lambda: SampleThenSuppress(k=True, sampling=0.5), "k"),
        (lambda: SampleThenSuppress(k=2, sampling=0.0), "sampling"),
        (lambda: SampleThenSuppress(k=2, sampling=math.nan), "sampling"),
        (lambda: Generalised(levels=LEVELS, k=2, sampling=0.5, epsilon=math.inf), "epsilon"),
        (lambda: LocalRecoding(k=2, places=np.zeros((3, 3))), "places"),
        (lambda: LocalRecoding(k=2, places=np.full((3, 2), np.nan)), "places"),
        (lambda: SampleThenSuppress(k=2, sampling=0.5).publish_sampled(np.array([1.5])), "sampled"),
        (lambda: cut_clusters([[0.0]], [-1], 1), "devices"),
    ],
    ids=["k", "bool", "no sampling", "nan", "infinite", "shape", "place", "floats", "negative"],
)
def test_faults_name_their_field(make, field):
    with pytest.raises(ParameterError, match=field):
        make()
