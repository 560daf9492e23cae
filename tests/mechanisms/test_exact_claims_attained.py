"""An exact claim is attained and a bound holds: every mechanism, with one cell and with two, by enumeration."""

import itertools
import math
import warnings

import numpy as np
import pytest
from published_laws import PublishedLaw, by_ratio, device_law, divergences, divergences_of_two
from scipy.stats import binom, nbinom

from mechanisms.local import (
    AnonymizedCancelling,
    AnonymizedDeniable,
    AnonymizedFirstAttempt,
    AnonymizedLocal,
    BinarySamplingPrivacy,
    DistributedLaplace,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    LongitudinalUnary,
    NoPrivacy,
    OptimisedUnary,
    RandomizedResponse,
    SampledResponse,
    SamplingAndNoise,
    SamplingPrivacy,
    SubsetSelection,
    SymmetricUnary,
    ThresholdHistogram,
    Warner,
)
from mechanisms.privacy import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled
from mechanisms.privacy.view import possible_adjacency

DENIABLE = {"shift": 0.4, "yes_second": 0.5, "yes_third": 0.3, "no_second": 0.3, "no_third": 0.4, "onward": 0.4}
KINDS = {
    "none": lambda cells: NoPrivacy(cells=cells),
    "rr": lambda cells: RandomizedResponse(cells=cells, first_coin=0.3, second_coin=0.4),
    "warner": lambda cells: Warner(cells=cells, truthful=0.8),
    "sampled": lambda cells: SampledResponse(cells=cells, sampling=0.6, first_coin=0.7, second_coin=0.4),
    "noise": lambda cells: SamplingAndNoise(cells=cells, sampling=0.5, sampling_no=0.2),
    "local": lambda cells: AnonymizedLocal(
        cells=cells,
        sampling_yes_one=0.4,
        sampling_yes_two=0.3,
        sampling_no=0.35,
        first_coin=0.8,
        second_coin=0.5,
        third_coin=0.2,
    ),
    "first": lambda cells: AnonymizedFirstAttempt(cells=cells, base=0.4, shift_yes=0.3, shift_no=0.1),
    "cancelling": lambda cells: AnonymizedCancelling(cells=cells, shift=0.3),
    "deniable": lambda cells: AnonymizedDeniable(cells=cells, **DENIABLE),
    "deniable 2": lambda cells: AnonymizedDeniable(cells=cells, **DENIABLE, onward_yes=0.3),
    "k-ary": lambda cells: KRandomizedResponse(cells=cells, epsilon=1.1),
    "subset": lambda cells: SubsetSelection(cells=cells, epsilon=0.8),
    "hadamard": lambda cells: HadamardResponse(cells=cells, epsilon=0.9),
    "hashing": lambda cells: LocalHashing(cells=cells, epsilon=0.9),
    "sue": lambda cells: SymmetricUnary(cells=cells, epsilon=1.3),
    "oue": lambda cells: OptimisedUnary(cells=cells, epsilon=1.2),
    "the": lambda cells: ThresholdHistogram(cells=cells, epsilon=1.0),
    "l-osue": lambda cells: LongitudinalUnary(cells=cells, epsilon_permanent=2.0, epsilon_first=1.0),
    "l-sue": lambda cells: LongitudinalUnary(
        cells=cells, epsilon_permanent=2.0, epsilon_first=1.2, permanent="symmetric"
    ),
    "sampling": lambda cells: SamplingPrivacy(cells=cells, sampling=0.3),
    "sampling, unequal": lambda cells: SamplingPrivacy(cells=cells, sampling=0.3, blank_zero=0.5),
    "sampling, no zero": lambda cells: SamplingPrivacy(cells=cells, sampling=0.3, blank_zero=0.0),
    "sampling, refresh": lambda cells: SamplingPrivacy(cells=cells, sampling=0.3, refresh=0.6),
    "sampling, redrawn": lambda cells: SamplingPrivacy(cells=cells, sampling=0.3, blank_zero=0.1, refresh=1.0),
    "binary": lambda cells: BinarySamplingPrivacy(cells=cells, sampling=0.3),
    "binary, no zero": lambda cells: BinarySamplingPrivacy(cells=cells, sampling=0.3, blank_zero=0.0),
    "laplace": lambda cells: DistributedLaplace(cells=cells, epsilon=3.0, devices=3),
}
GRID = (0.0, 0.05, 0.2, 0.4, 0.7, 1.0, 1.6, 2.5, 4.0)
PLACES = list(itertools.product((1, 2), ("move", "enter_leave"), (1, 2)))


def reports_of(mechanism, rounds):
    """(cells + 1, outputs) law of the answers of these rounds, from 0, of one query."""
    if isinstance(mechanism, LocalHashing):
        return hashed(mechanism)
    if isinstance(mechanism, DistributedLaplace):
        return noisy_vectors(mechanism, share=1.0 / mechanism.devices)
    masses, reports = device_law(mechanism)
    seen = [tuple(whole[r] for r in rounds) for whole in reports]
    index = {part: i for i, part in enumerate(dict.fromkeys(seen))}
    return np.array([np.bincount([index[part] for part in seen], row, len(index)) for row in masses])


def hashed(mechanism):
    """All functions from symbols to buckets, equally likely, each with every bucket that is reported."""
    g, symbols = mechanism.buckets, mechanism.cells + 1
    functions = list(itertools.product(range(g), repeat=symbols))
    weight = math.exp(mechanism.epsilon)
    law = [[weight if h[t] == y else 1.0 for h in functions for y in range(g)] for t in range(symbols)]
    return np.array(law) / (len(functions) * (weight + g - 1))


def noisy_vectors(mechanism, share):
    """A vector of the true cell plus differences of negative binomial variables, on −14…14."""
    one = nbinom.pmf(np.arange(40), share, 1.0 - mechanism.alpha)
    noise = np.convolve(one, one[::-1])[39 - 14 : 39 + 14 + 1]
    rows = []
    for truth in range(mechanism.cells + 1):
        row = np.ones(1)
        for cell in range(1, mechanism.cells + 1):
            row = np.multiply.outer(row, np.append(0.0, noise) if cell == truth else np.append(noise, 0.0)).ravel()
        rows.append(row)
    return np.array(rows)


def kept_journey(mechanism, journey):
    """Law of the bits at all queries of a device with memoised bits: a mixture over its kept bits."""
    cells, p, q = mechanism.cells, mechanism.true_kept, mechanism.false_kept
    hit = (p - q) / (1.0 - q)
    flips = np.array([[1.0 - mechanism.flip, mechanism.flip], [mechanism.flip, 1.0 - mechanism.flip]])
    total = 0.0
    for noise, hits in itertools.product(itertools.product((0, 1), repeat=cells), repeat=2):
        mass = math.prod(q if bit else 1.0 - q for bit in noise) * math.prod(hit if bit else 1.0 - hit for bit in hits)
        law = np.ones(1)
        for truth in journey:
            for cell in range(1, cells + 1):
                bit = noise[cell - 1] or (truth == cell and hits[cell - 1])
                law = np.multiply.outer(law, flips[int(bit)]).ravel()
        total = total + mass * law
    return total


def journeys(cells, adjacency, queries):
    """Pairs of journeys whose truths at each query are equal, or neighbours."""
    truths = range(cells + 1)
    each = [(u, v) for u in truths for v in truths if u == v or adjacency == "move" or 0 in (u, v)]
    return [tuple(zip(*steps, strict=True)) for steps in itertools.product(each, repeat=queries)]


def worst(pairs, cut=False):
    """The greatest δ at each ε of the grid, and the least ε at δ = 0, over pairs of laws, perhaps without tails."""
    deltas, epsilon = np.zeros(len(GRID)), 0.0
    for p, q in pairs:
        deltas = np.maximum(deltas, [np.maximum(p - math.exp(e) * q, 0.0).sum() for e in GRID])
        with np.errstate(divide="ignore"):
            likely = (p > 1e-15) & (q > 0.0) if cut else p > 1e-15
            epsilon = max(epsilon, float(np.log(p[likely] / q[likely]).max()))
    return deltas, epsilon


def of_queries(law, cells, adjacency, queries):
    """Pairs of products of single-query laws, outputs with equal ratios merged, each once."""
    single = {}
    for u, v in journeys(cells, adjacency, 1):
        pair = by_ratio(law[u[0]], law[v[0]])
        single[np.round(pair, 12).tobytes()] = pair
    for steps in itertools.combinations_with_replacement(single.values(), queries):
        p, q = np.ones(1), np.ones(1)
        for one, other in steps:
            p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
        yield p, q


def expect(claim, deltas, epsilon, within=1e-10):
    """Exact values are attained, and bounds hold."""
    if claim.kind == "unknown":
        return
    claimed = np.array([claim.delta(e) for e in GRID])
    assert (claimed >= deltas - within).all(), (claimed, deltas)
    if claim.delta_kind == "exact":
        assert np.allclose(claimed, deltas, rtol=1e-9, atol=within), (claimed, deltas)
    if claim.kind == "exact":
        assert claim.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert claim.epsilon >= epsilon * (1.0 - 1e-9)
    assert claim.kind != "infinite" or epsilon == math.inf


def made(name, cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[name](cells)


@pytest.mark.parametrize(("cells", "adjacency", "queries"), PLACES)
@pytest.mark.parametrize("name", KINDS)
def test_reports(name, cells, adjacency, queries):
    mechanism = made(name, cells)
    views = {Report(r + 1, queries, adjacency=adjacency): (r,) for r in range(mechanism.rounds)}
    everything = tuple(range(mechanism.rounds))
    views[LinkedReports(queries, adjacency=adjacency)] = everything
    views[Shares(2, 2, queries, adjacency=adjacency)] = everything
    for view, rounds in views.items():
        if isinstance(mechanism, LongitudinalUnary):
            pairs = [
                (kept_journey(mechanism, u), kept_journey(mechanism, v)) for u, v in journeys(cells, adjacency, queries)
            ]
        else:
            pairs = of_queries(reports_of(mechanism, rounds), cells, adjacency, queries)
        noisy = isinstance(mechanism, DistributedLaplace)
        expect(mechanism.claim(view), *worst(pairs, cut=noisy), within=1e-7 if noisy else 1e-10)


@pytest.mark.parametrize("name", ["l-osue", "l-sue"])
def test_kept_bits_of_a_device_that_enters_and_leaves(name):
    """With four cells no two journeys need share one, and an exact ε is that of a move at every query."""
    mechanism = made(name, 4)
    laws = {journey: kept_journey(mechanism, journey) for journey in itertools.product(range(5), repeat=2)}
    for adjacency in ("move", "enter_leave"):
        pairs = ((laws[u], laws[v]) for u, v in journeys(4, adjacency, 2))
        expect(mechanism.claim(LinkedReports(2, adjacency=adjacency)), *worst(pairs))


@pytest.mark.parametrize(("cells", "adjacency", "queries"), PLACES)
@pytest.mark.parametrize("name", [name for name in KINDS if name not in {"hashing", "laplace"}])
def test_published_counts_and_shuffled_reports(name, cells, adjacency, queries):
    mechanism = made(name, cells)
    if queries > 1 and (isinstance(mechanism, LongitudinalUnary) or mechanism.rounds > 2):
        pytest.skip("kept bits, or too many outcomes to enumerate")
    devices, of_queries = (3, divergences) if queries == 1 else (2, divergences_of_two)
    law = PublishedLaw(mechanism)
    for crowd, most in ((None, None), (2, None), (1, 1), (2, 2)):
        view = ReleasedCounts(crowd, queries, devices, most=most, adjacency=adjacency)
        change = possible_adjacency(adjacency, cells=cells)
        limits = {"least": (crowd or 1) - 1, "most": None if most is None else most - 1}
        deltas = of_queries(law, devices, change, GRID, **limits)
        if deltas is not None:
            expect_delta(mechanism.claim(view), deltas)
    for round_ in range(1, mechanism.rounds + 1):
        deltas = of_queries(PublishedLaw(mechanism, round_), devices, adjacency, GRID)
        expect_delta(mechanism.claim(Shuffled(round_, devices, queries, adjacency=adjacency)), deltas)


def expect_delta(claim, deltas):
    """An exact δ is attained, and a bound holds."""
    if claim.kind == "unknown":
        return
    claimed = np.array([claim.delta(e) for e in GRID])
    assert (claimed >= deltas - 1e-10).all(), (claim, claimed, deltas)
    if claim.delta_kind == "exact":
        assert np.allclose(claimed, deltas, rtol=1e-9, atol=1e-10), (claim, claimed, deltas)


@pytest.mark.parametrize(("cells", "adjacency", "queries"), PLACES)
def test_counts_with_the_whole_noise_of_all_devices(cells, adjacency, queries):
    mechanism = made("laplace", cells)
    pairs = of_queries(noisy_vectors(mechanism, share=1.0), cells, adjacency, queries)
    expect(mechanism.claim(ReleasedCounts(queries=queries, adjacency=adjacency)), *worst(pairs, cut=True), within=1e-7)


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("crowd", [1, 3, 10])
def test_differences_of_one_cell(crowd, queries):
    """A device that may be inside at one query and outside at the next: both directions, at both queries."""
    single = np.array([binom.pmf(np.arange(crowd + 1), n, 0.45) for n in (crowd - 1, crowd)])
    deltas, _ = worst(of_queries(single, 1, "enter_leave", queries))
    mechanisms = [
        SamplingPrivacy(cells=1, sampling=0.45),
        BinarySamplingPrivacy(cells=1, sampling=0.45),
        AnonymizedCancelling(cells=1, shift=0.45),
    ]
    for mechanism, adjacency in itertools.product(mechanisms, ("move", "enter_leave")):
        expect_delta(mechanism.claim(ReleasedDifferences(crowd, queries=queries, adjacency=adjacency)), deltas)


def test_differences_of_ten_devices_in_one_cell():
    claim = SamplingPrivacy(cells=1, sampling=0.45).claim(ReleasedDifferences(10, adjacency="move"))
    assert claim.delta(0.5) == pytest.approx(0.0199335, abs=1e-7)
