"""Systems in use: published figures beside exact ones, against sums computed by plain convolution."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from simulator.papers.deployed import reduction_delta, sample_and_threshold_formula
from simulator.papers.published_results import ENTRIES, find_entries


@pytest.fixture(scope="module")
def rows():
    return {row.key: row for entry in find_entries("deployed") for row in entry.reproduce(seed=1).rows}


def test_entries_are_found_by_the_name_of_their_group():
    names = [entry.name for entry in find_entries("deployed")]
    assert names == ["deployed-nebula", "deployed-prio", "deployed-shuffle"]
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
