"""Systems in use: published figures beside exact ones, against sums computed by plain convolution."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from mechanisms.privacy.composition import ComposedDelta
from simulator.papers.deployed import reduction_delta, sample_and_threshold_formula
from simulator.papers.published_results import ENTRIES, find_entries


@pytest.fixture(scope="module")
def rows():
    return {row.key: row for entry in find_entries("deployed") for row in entry.reproduce(seed=1).rows}


def test_entries_are_found_by_the_name_of_their_group():
    names = [entry.name for entry in find_entries("deployed")]
    assert names == [f"deployed-{name}" for name in ("nebula", "prio", "shuffle", "google-od", "waltti")]
    assert len(find_entries("all")) == len(ENTRIES)


def suppressed_delta(n, p, k, epsilon):
    """δ(ε) of Bin(n, p) against Bin(n − 1, p), both directions, numbers below k being one output."""
    with_it, without = (binom.pmf(np.arange(n + 1), trials, p) for trials in (n, n - 1))
    laws = [np.append(law[:k].sum(), law[k:]) for law in (with_it, without)]
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in (laws, laws[::-1]))


def test_sample_and_threshold(rows):
    exact = max(suppressed_delta(n, 0.105, 20, 1.0) for n in range(20, 200))
    assert rows["δ at ε = 1, exactly"].computed == pytest.approx(exact, rel=1e-6)
    assert f"{exact:.1e}" == "6.5e-15"
    assert f"{sample_and_threshold_formula(sampling=0.105, threshold=20, epsilon=1.0):.1e}" == "7.2e-09"
    assert rows["largest p that the target of 10⁻⁸ allows at K = 20"].computed == 0.251
    assert rows["least K that the target of 10⁻⁸ allows at p = .105"].computed == 11


def moved_sums_delta(n, m, devices, flip, epsilon):
    """δ(ε) of the sums of two cells with n and m others in them, by convolution of binomials."""
    values = np.arange(devices + 1)

    def law(inside, yes):
        others = np.convolve(
            binom.pmf(values[: inside + 1], inside, 1.0 - flip),
            binom.pmf(values[: devices - inside], devices - 1 - inside, flip),
        )
        return np.convolve(others, [1.0 - yes, yes])

    one = np.multiply.outer(law(n, 1.0 - flip), law(m, flip))
    other = np.multiply.outer(law(n, flip), law(m, 1.0 - flip))
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((one, other), (other, one)))


def test_bits_of_prio(rows):
    for per_bit, any_others, nobody in ((5, 0.297, 0.285), (6.5, 0.700, 0.645), (7, 0.951, 0.864)):
        found = [row.computed for key, row in rows.items() if key.startswith(f"EPSILON_0 = {per_bit}:")]
        assert found == pytest.approx([any_others, nobody], abs=6e-4)
    from mechanisms.privacy.published_sums import SumsDelta  # noqa: PLC0415 - compared with the oracle only

    flip, devices = 1.0 / (math.exp(3.0) + 1.0), 60
    curve = SumsDelta(1.0 - flip, flip, devices, 0, devices - 1, moves=True)
    for inside in ((0, 0), (59, 0), (20, 30)):
        for epsilon in (0.2, 1.0):
            assert curve.at(inside, epsilon) == pytest.approx(
                moved_sums_delta(*inside, devices, flip, epsilon), rel=1e-9, abs=1e-14
            )


def test_shuffled_reports(rows):
    for name, most in (
        ("olh", 0.0822),
        ("subset_selection", 0.0842),
        ("sue", 0.1043),
        ("k_randomized_response", 0.0683),
    ):
        assert rows[name].agrees
        assert rows[name].computed <= most
    assert rows["any randomizer: clones"].computed == pytest.approx(0.170, abs=5e-4)


def test_published_reduction_is_no_bound(rows):
    row = rows["3-ary randomized response, ε₀ = 1, 3 devices: δ(.6)"]
    assert row.agrees is False
    assert (row.published, row.computed) == (pytest.approx(0.067578, abs=1e-6), pytest.approx(0.073489, abs=1e-6))
    assert rows["the same, by the bound that claims use"].computed >= row.computed
    # With both others elsewhere the histogram of three values is exactly the reduction's pair.
    ratio, distance = math.e, (math.e - 1.0) / (math.e + 2.0)
    assert reduction_delta(ratio, distance, 3, 0.1) == pytest.approx(0.217513, abs=1e-6)


def test_flows_between_places(rows):
    published = {1: 0.6405, 2: 0.6563, 5: 0.7535, 10: 0.8295, 16: 0.8855, 32: 0.9552, 39: 0.9695}
    found = {trips: rows[f"unique trips = {trips}: best observer right"].computed for trips in published}
    assert {trips: round(success, 4) for trips, success in found.items()} == published
    # The masses of Laplace noise in 1,000 intervals between the two means are a processed output: nothing is above.
    edges = np.linspace(0.0, 1.0, 1001)
    below = 1.0 - 0.5 * np.exp(-0.66 * edges), 0.5 * np.exp(0.66 * (edges - 1.0))
    laws = [np.diff(law, prepend=0.0, append=1.0) for law in below]
    for trips in published:
        least = (1.0 + ComposedDelta.from_pair(*laws, queries=trips)(0.0)) / 2.0
        assert least - 1e-5 <= found[trips] <= least + 1e-5


def test_sequence_of_stops(rows):
    counts = np.arange(11)
    laws = {share: binom.pmf(counts, 10, share) for share in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.7283, 0.2708)}
    for place, (one, other) in {"plan, stops = 10: 3 or 4": (1.0, 0.8), "plan, stops = 10: 5 or 6": (0.6, 0.4),
                                "profile in use, stops = 10: 4 or 5": (0.7283, 0.2708)}.items():  # fmt: skip
        success = np.maximum(laws[one], laws[other]).sum() / 2.0
        assert rows[f"{place} on board, best observer right"].computed == pytest.approx(success, abs=1e-4)
    named = np.max([laws[share] for share in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)], axis=0).sum() / 6.0
    assert rows["plan, stops = 10: the headcount named, of 3 to 8 alike"].computed == pytest.approx(named, rel=1e-12)
