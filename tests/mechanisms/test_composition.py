"""Claims over many queries against the exact composition, by code of the test's own: at most 2 % above, never below.

Where the losses of one query are multiples of one number, their sum is convolved exactly. Otherwise they are rounded
down to a fine grid, so that the composition is at most the exact one, by less than T steps of the grid.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.fft import next_fast_len
from scipy.signal import fftconvolve
from scipy.stats import binom

from mechanisms.local import KRandomizedResponse, RandomizedResponse, SamplingPrivacy, SymmetricUnary, Warner
from mechanisms.privacy import Claim, LinkedReports, ReleasedCounts, ReleasedDifferences
from mechanisms.privacy.composition import composed
from mechanisms.privacy.integer_noise import IntegerNoise
from mechanisms.privacy.published_sums import known_counts_claim
from mechanisms.privacy.released import ReleasedDelta

DELTA = 1e-6
WITHIN = 1.02


def powers(masses, times):
    """The T-fold convolution on 14 standard deviations and one input's width, by one transform; and its first index."""
    values = np.arange(len(masses))
    mean = masses @ values / masses.sum()
    reach = 14.0 * math.sqrt(times * (masses @ (values - mean) ** 2)) + len(masses)
    most = times * (len(masses) - 1) + 1
    first = max(0, math.floor(times * mean - reach))
    size = next_fast_len(min(most, math.ceil(2.0 * reach)))
    sums = np.fft.irfft(np.fft.rfft(np.bincount(values % size, masses, size), size) ** times, size)
    return np.roll(np.maximum(sums, 0.0), -(first % size)), first


def epsilon_of(losses, masses, delta):
    """The least ε whose δ = Σ P(ℓ)·[1 − e^(ε − ℓ)]₊ is at most that given, by bisection."""
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]

    def exceeds(epsilon):
        above = losses > epsilon
        return masses[above] @ -np.expm1(epsilon - losses[above]) > delta

    low, high = 0.0, float(losses[-1])
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def gaussian(sigma, times, delta=DELTA):
    """Σkᵢ of discrete Gaussians; a step of 1 has the loss (1 − 2k)/(2σ²)."""
    reach = math.ceil(13.0 * sigma) + 1
    k = np.arange(-reach, reach + 1)
    one = np.exp(-(k**2) / (2.0 * sigma**2))
    sums, first = powers(one / one.sum(), times)
    total = first + np.arange(len(sums)) - reach * times
    return epsilon_of((times - 2.0 * total) / (2.0 * sigma**2), sums, delta)


def two_valued(likely, ratio, times, delta=DELTA):
    """T outputs, each ±ln(ratio) of loss: that of randomized response and of discrete Laplace noise."""
    right = np.arange(times + 1)
    return epsilon_of((2.0 * right - times) * math.log(ratio), binom.pmf(right, times, likely), delta)


def on_grid(pairs, delta, width):
    """ε of the product of (P, Q, times), losses rounded down to multiples of `width`; what only P gives adds to δ."""
    sums, first, uncertain = np.ones(1), 0, 1.0
    for p, q, times in pairs:
        shared = (p > 0.0) & (q > 0.0)
        steps = np.floor(np.log(p[shared] / q[shared]) / width).astype(np.int64)
        one = np.bincount(steps - steps.min(), p[shared])
        several, lowest = powers(one, times)
        sums, first = fftconvolve(sums, several), first + times * int(steps.min()) + lowest
        uncertain *= (1.0 - p[p > 0.0][~shared[p > 0.0]].sum()) ** times
    return epsilon_of((first + np.arange(len(sums))) * width, np.maximum(sums, 0.0), delta - (1.0 - uncertain))


def check(claim, exact, *, delta=DELTA, within=WITHIN):
    claimed = claim.epsilon_at(delta)
    assert exact - 1e-5 <= claimed <= within * exact + 1e-4, (claimed, exact)


def noisy(kind, scale, queries, *, adjacency="enter_leave"):
    view = ReleasedCounts(queries=queries, colluding=0, servers=1, adjacency=adjacency)
    return known_counts_claim(view, IntegerNoise(kind, scale), two=adjacency == "move")


@pytest.mark.parametrize(
    ("sigma", "queries", "published"),
    [
        (18.9, 10, 0.6886),
        (59.75, 100, 0.6889),
        (5.0, 3, 1.5098),
        (3.0, 48, 13.10),
        (40.0, 1000, 3.747),
        (0.6, 2, 13.746),
    ],
)
def test_discrete_gaussian_noise(sigma, queries, published):
    exact = gaussian(sigma, queries)
    assert exact == pytest.approx(published, rel=5e-4)
    check(noisy("discrete_gaussian", sigma, queries), exact)
    # A move changes two counts, each with its own noise: twice as many.
    check(noisy("discrete_gaussian", sigma, queries, adjacency="move"), gaussian(sigma, 2 * queries))


@pytest.mark.parametrize(("scale", "queries"), [(2.0, 2), (12.0, 12), (70.0, 100), (150.0, 1000)])
def test_discrete_laplace_noise(scale, queries):
    likely = 1.0 / (1.0 + math.exp(-1.0 / scale))
    check(noisy("discrete_laplace", scale, queries), two_valued(likely, math.exp(1.0 / scale), queries))
    check(
        noisy("discrete_laplace", scale, queries, adjacency="move"),
        two_valued(likely, math.exp(1.0 / scale), 2 * queries),
    )


@pytest.mark.parametrize(
    ("epsilon", "queries"),
    [
        *[(0.02, 2), (0.02, 1000), (0.3, 30), (0.9, 2)],
        *(pytest.param(*given, marks=pytest.mark.slow) for given in ((0.3, 1000), (0.9, 1000))),
    ],
)
def test_reports_of_one_device(epsilon, queries):
    truthful = 1.0 / (1.0 + math.exp(-epsilon))
    first, second = 2.0 * truthful - 1.0, 0.5
    answers = RandomizedResponse(cells=1, first_coin=first, second_coin=second)
    check(answers.claim(LinkedReports(queries)), two_valued(truthful, math.exp(epsilon), queries))
    cells = 6
    total = math.exp(epsilon) + cells
    three, lowest = powers(np.array([1.0, cells - 1.0, math.exp(epsilon)]) / total, queries)
    exact = epsilon_of((lowest + np.arange(len(three)) - queries) * epsilon, three, DELTA)
    check(KRandomizedResponse(cells=cells, epsilon=epsilon).claim(LinkedReports(queries)), exact)


def windowed(n, m, p, q):
    """Laws of Bin(n, p) + Bin(m, q) and one more bit, of p and of q, on values within 12 standard deviations."""
    parts = []
    for count, rate in ((n, p), (m, q)):
        reach = 12.0 * math.sqrt(count * rate * (1.0 - rate)) + 40.0
        values = np.arange(max(0, int(count * rate - reach)), min(count, int(count * rate + reach)) + 1)
        parts.append(binom.pmf(values, count, rate))
    others = np.convolve(*parts)
    others = others[others > 1e-22]
    below, above = np.append(others, 0.0), np.append(0.0, others)
    return (1.0 - p) * below + p * above, (1.0 - q) * below + q * above


@pytest.mark.parametrize("crowd", [40, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("queries", [2, 12])
def test_published_differences(crowd, queries):
    """A device is inside at some queries and outside at the others, or reversed, or moves at all of them."""
    beta = 0.45
    values = np.arange(crowd + 1)
    inside, outside = (binom.pmf(values, n, beta) for n in (crowd, crowd - 1))
    claim = SamplingPrivacy(cells=3, sampling=beta).claim(ReleasedDifferences(crowd, queries=queries))
    ways = [
        on_grid([(inside, outside, j), (outside, inside, queries - j)], DELTA, 3e-4) for j in (0, queries // 2, queries)
    ]
    check(claim, max(ways))


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "published"), [(12, 0.135), (48, 0.283)])
def test_published_sums_of_many_devices(queries, published):
    p = math.exp(2.0) / (1.0 + math.exp(2.0))
    devices = 100_000
    mechanism = SymmetricUnary(cells=100, epsilon=4.0)
    for adjacency in ("move", "enter_leave"):
        exact = 0.0
        for n in (0, devices // 2, devices - 1):  # others in the cell, or in each of two independent ones
            there, elsewhere = windowed(n, devices - 1 - n, p, 1.0 - p)
            pairs = [(there, elsewhere, queries), (elsewhere, there, queries)]
            given = [pairs] if adjacency == "move" else [pairs[:1], pairs[1:]]
            exact = max([exact, *(on_grid(one, DELTA, 1e-5) for one in given)])
        if adjacency == "move":
            assert exact == pytest.approx(published, rel=5e-3)
        claim = mechanism.claim(ReleasedCounts(queries=queries, counted=devices, adjacency=adjacency))
        check(claim, exact)


def test_two_answers_about_two_cells_are_composed_exactly():
    claim = Warner(cells=2, truthful=0.6).claim(LinkedReports(30))
    assert claim.delta_kind == "exact"
    both, ratio = np.array([0.4 * 0.4, 2 * 0.6 * 0.4, 0.6 * 0.6]), 2.0 * math.log(1.5)
    losses, first = powers(both, 30)
    check(claim, epsilon_of((first + np.arange(len(losses)) - 30) * ratio, losses, DELTA), within=1.0 + 1e-3)


@pytest.mark.parametrize("adjacency", ["enter_leave", "move"])
def test_suppressed_differences_of_every_crowd(adjacency):
    """At least what each crowd reveals; and no more than by chords of the curve of the worst crowd at each ε."""
    beta, k, queries = 0.2, 15, 12
    worst = 0.0
    for n in (15, 30, 50, 70, 100, 150):
        laws = [binom.pmf(np.arange(n + 1), crowd, beta) for crowd in (n, n - 1)]
        inside, outside = (np.append(law[:k].sum(), law[k:]) for law in laws)
        given = [(inside, outside, queries), (outside, inside, queries)]
        ways = [given] if adjacency == "move" else [given[:1], given[1:]]
        worst = max([worst, *(on_grid(pairs, DELTA, 3e-4) for pairs in ways)])
    view = ReleasedDifferences(1, k, queries, adjacency=adjacency)
    curve = ReleasedDelta(replace(view, queries=1), beta, searched=False)
    chords = Claim.bound(math.inf, composed(curve.__call__, queries), "chords").epsilon_at(DELTA)
    assert chords < 1.4 * worst
    check(SamplingPrivacy(cells=3, sampling=beta).claim(view), worst, within=chords / worst)


@pytest.mark.parametrize("sampling", [1e-9, 1e-5])
def test_rare_losses_over_many_queries(sampling):
    """Two sampled devices of a crowd in one query are all that has a loss above 0.01: at most T times their chance."""
    view = ReleasedDifferences(206, queries=48, adjacency="enter_leave")
    delta = SamplingPrivacy(cells=3, sampling=sampling).claim(view).delta(3.0)
    assert 0.0 <= delta <= 48 * (206 * sampling) ** 2
    assert delta <= 1e-18
