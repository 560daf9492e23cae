"""No claim is below the truth: all mechanisms with random parameters, laws written from their definitions, enumerated.

The laws of reports are this file's own, from the probabilities that papers and docstrings state, and none is taken from
the mechanisms. Everything is enumerated: all truths of the others, all neighbours, all outcomes, both directions; over
two queries all products of two such pairs (or, where these are too many, a random part of them).
"""

import itertools
import math
import warnings
from collections import defaultdict

import numpy as np
import pytest
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

GRID = (0.0, 0.03, 0.2, 0.6, 1.1, 2.0, 3.5, 6.0)
ROUNDING = 1e-10
MOST_PAIRS = 60
"""Products of two queries' pairs that are evaluated, at most."""


class Bits:
    """Independent answers about every cell: the laws {answers of all rounds: probability} inside and elsewhere."""

    def __init__(self, yes, no):
        self.yes, self.no = yes, no

    def rows(self, cells):
        """For each truth, {(report of each round): probability}; a report is a tuple of the answers about each cell."""
        for truth in range(cells + 1):
            row = defaultdict(float)
            laws = [self.yes if cell == truth else self.no for cell in range(1, cells + 1)]
            for chosen in itertools.product(*(law.items() for law in laws)):
                answers = tuple(answer for answer, _ in chosen)
                row[tuple(zip(*answers, strict=True))] += math.prod(mass for _, mass in chosen)
            yield row


class Symbols:
    """A report of another form: a function from the cells to the same laws."""

    def __init__(self, rows):
        self.rows = rows


def weighted(cells, outputs, likely, epsilon):
    """Outputs that are e^ε times as likely where `likely(truth, output)`."""
    for truth in range(cells + 1):
        weights = {output: math.exp(epsilon) if likely(truth, output) else 1.0 for output in outputs}
        total = math.fsum(weights.values())
        yield {(output,): weight / total for output, weight in weights.items()}


def unary(p, q):
    return Bits({(1,): p, (0,): 1.0 - p}, {(1,): q, (0,): 1.0 - q})


def budget(draw):
    return float(draw.choice([0.05, 0.4, 1.0, 2.0, 4.0]))


def chance(draw, most=1.0):
    return float(draw.choice([draw.random(), 0.01, 0.05, 0.5, 0.95, 0.99])) * most


def randomized_response(draw, cells):
    f, s = chance(draw), chance(draw)
    return RandomizedResponse(cells=cells, first_coin=f, second_coin=s), unary(f + (1 - f) * s, (1 - f) * s)


def warner(draw, cells):
    p = draw.choice([0.1, 0.3, 0.6, 0.8, 0.99])
    return Warner(cells=cells, truthful=float(p)), unary(p, 1 - p)


def sampled_response(draw, cells):
    a, b, f, s = (chance(draw) for _ in range(4))
    yes, no = f + (1 - f) * s, (1 - f) * s
    mechanism = SampledResponse(cells=cells, sampling=a, sampling_no=b, first_coin=f, second_coin=s)
    laws = [{("yes",): r * y, ("no",): r * (1 - y), ("silent",): 1 - r} for r, y in ((a, yes), (b, no))]
    return mechanism, Bits(*laws)


def sampling_and_noise(draw, cells):
    a, b = chance(draw), chance(draw)
    says = str(draw.choice(["noise", "value"]))
    no = "yes" if says == "noise" else "no"
    laws = {("yes",): a, ("silent",): 1 - a}, {(no,): b, ("silent",): 1 - b}
    return SamplingAndNoise(cells=cells, sampling=a, sampling_no=b, says=says), Bits(*laws)


def anonymized_local(draw, cells):
    one, two, *_ = draw.dirichlet([1, 1, 1])
    no, a, b, c = (chance(draw) for _ in range(4))
    mechanism = AnonymizedLocal(
        cells=cells,
        sampling_yes_one=one,
        sampling_yes_two=two,
        sampling_no=no,
        first_coin=a,
        second_coin=b,
        third_coin=c,
    )
    said = one * a + two * b
    yes = {("yes",): said, ("no",): one + two - said, ("silent",): 1 - one - two}
    return mechanism, Bits(yes, {("yes",): no * c, ("no",): no * (1 - c), ("silent",): 1 - no})


def first_attempt(draw, cells):
    base = draw.uniform(0.1, 0.6)
    y, n = (chance(draw, min(base, 1 - base)) for _ in range(2))
    laws = [{(1, 1): base - shift, (1, 2): 2 * shift, (2, 2): 1 - base - shift} for shift in (y, n)]
    return AnonymizedFirstAttempt(cells=cells, base=base, shift_yes=y, shift_no=n), Bits(*laws)


def cancelling(draw, cells):
    shift = chance(draw)
    stays = {(i, i): (1 - shift) / 3 for i in (1, 2, 3)}
    mechanism = AnonymizedCancelling(cells=cells, shift=shift)
    return mechanism, Bits({**stays, (1, 3): shift}, {**stays, (2, 3): shift})


def deniable(draw, cells):
    shift, onward = chance(draw), chance(draw)
    onward_yes = float(draw.choice([0.0, draw.random()]))
    (y2, y3, _), (n2, n3, _) = draw.dirichlet([1, 1, 1], size=2)
    mechanism = AnonymizedDeniable(
        cells=cells,
        shift=shift,
        yes_second=y2,
        yes_third=y3,
        no_second=n2,
        no_third=n3,
        onward=onward,
        onward_yes=onward_yes,
    )
    laws = []
    for second, third, on in ((y2, y3, onward_yes), (n2, n3, onward)):
        law = {(i, i, i): (1 - shift) / 3 for i in (1, 2, 3)}
        law[1, 1, 1] += shift * (1 - second - third)
        law |= {(1, 2, 2): shift * second, (1, 3, 3): shift * third * (1 - on), (1, 3, 2): shift * third * on}
        laws.append(law)
    return mechanism, Bits(*laws)


def symmetric(draw, cells):
    e = budget(draw)
    p = 1 / (1 + math.exp(-e / 2))
    return SymmetricUnary(cells=cells, epsilon=e), unary(p, 1 - p)


def optimised(draw, cells):
    e = budget(draw)
    return OptimisedUnary(cells=cells, epsilon=e), unary(0.5, 1 / (1 + math.exp(e)))


def thresholded(draw, cells):
    e, theta = budget(draw), float(draw.choice([0.5, 0.7, 1.0]))
    p, q = 1 - math.exp(e * (theta - 1) / 2) / 2, math.exp(-e * theta / 2) / 2
    return ThresholdHistogram(cells=cells, epsilon=e, threshold=theta), unary(p, q)


def binary_sampling(draw, cells):
    sampling = chance(draw)
    zero = chance(draw, 1 - sampling) if draw.random() < 0.5 else (1 - sampling) / 2
    blanks = {(0, 0): zero, (1, 1): 1 - sampling - zero}
    mechanism = BinarySamplingPrivacy(cells=cells, sampling=sampling, blank_zero=zero)
    return mechanism, Bits({**blanks, (0, 1): sampling}, {(0, 0): zero + sampling, (1, 1): blanks[1, 1]})


def sampling_privacy(draw, cells):
    sampling = chance(draw)
    refresh = float(draw.choice([0.0, 0.0, draw.random(), 1.0]))
    zero = chance(draw, 1 - sampling)
    blanks = [zero] + [(1 - sampling - zero) / cells] * cells

    def rows(_):
        for truth in range(cells + 1):
            row = defaultdict(float)
            row[0, truth] += sampling
            for first, mass in enumerate(blanks):
                row[first, first] += mass * (1 - refresh)
                for second, other in enumerate(blanks):
                    row[first, second] += mass * refresh * other / (1 - sampling)
            yield row

    return SamplingPrivacy(cells=cells, sampling=sampling, blank_zero=zero, refresh=refresh), Symbols(rows)


def no_privacy(_, cells):
    return NoPrivacy(cells=cells), Symbols(lambda n: ({(truth,): 1.0} for truth in range(n + 1)))


def k_ary(draw, cells):
    e = budget(draw)
    rows = Symbols(lambda n: weighted(n, range(n + 1), lambda t, y: t == y, e))
    return KRandomizedResponse(cells=cells, epsilon=e), rows


def subset(draw, cells):
    e, size = budget(draw), int(draw.integers(1, cells + 1))
    rows = Symbols(
        lambda n: weighted(
            n, [frozenset(s) for s in itertools.combinations(range(n + 1), size)], lambda t, y: t in y, e
        )
    )
    return SubsetSelection(cells=cells, epsilon=e, size=size), rows


def hadamard(draw, cells):
    e, order = budget(draw), 4 if cells < 3 else 8
    rows = Symbols(lambda n: weighted(n, range(order), lambda t, y: ((t + 1) & y).bit_count() % 2 == 0, e))
    return HadamardResponse(cells=cells, epsilon=e), rows


def hashing(draw, cells):
    e, g = budget(draw), int(draw.integers(2, 5))

    def rows(n):
        functions = list(itertools.product(range(g), repeat=n + 1))
        outputs = [(h, bucket) for h in functions for bucket in range(g)]
        return weighted(n, outputs, lambda t, y: y[0][t] == y[1], e)

    return LocalHashing(cells=cells, epsilon=e, buckets=g), Symbols(rows)


MAKERS = (
    randomized_response,
    warner,
    sampled_response,
    sampling_and_noise,
    anonymized_local,
    first_attempt,
    cancelling,
    deniable,
    symmetric,
    optimised,
    thresholded,
    binary_sampling,
    sampling_privacy,
    no_privacy,
    k_ary,
    subset,
    hadamard,
    hashing,
)


def parts(report):
    """What is counted of a report: each symbol of it, or each cell's answer."""
    if isinstance(report, frozenset):
        return sorted(report)
    return list(enumerate(report)) if isinstance(report, tuple) else [report]


def of_parts(whole):
    return [(turn, part) for turn, report in enumerate(whole) for part in parts(report)]


def hashed_support(whole):
    (function, bucket), *_ = whole
    return [symbol for symbol, value in enumerate(function) if value == bucket]


class SumLaw:
    """Laws of sums over devices of what each adds; a sum is named by that of random 64-bit numbers of its parts."""

    def __init__(self, rows, added):
        outputs = sorted({output for row in rows for output in row}, key=repr)
        draw, numbers = np.random.default_rng(11), {}
        names = []
        for output in outputs:
            name = 0
            for part in added(output):
                name += numbers.setdefault(part, int(draw.integers(2**63)))
            names.append(name % 2**63)
        masses = np.array([[row.get(output, 0.0) for output in outputs] for row in rows])
        self.names, index = np.unique(np.array(names, dtype=np.int64), return_inverse=True)
        self.rows = np.array([np.bincount(index.ravel(), row, len(self.names)) for row in masses])

    def pairs(self, devices, adjacency, crowd):
        """Pairs of laws of the sum for neighbouring truths of a device, for all truths of the others."""
        truths = range(len(self.rows))
        for others in itertools.combinations_with_replacement(truths, devices - 1):
            names, masses = np.zeros(1, dtype=np.int64), np.ones(1)
            for truth in others:
                sums = np.add.outer(names, self.names).ravel() & (2**63 - 1)
                names, index = np.unique(sums, return_inverse=True)
                masses = np.bincount(index.ravel(), np.multiply.outer(masses, self.rows[truth]).ravel())
            _, index = np.unique(np.add.outer(names, self.names).ravel() & (2**63 - 1), return_inverse=True)
            laws = [np.bincount(index.ravel(), np.multiply.outer(masses, row).ravel()) for row in self.rows]
            for u, v in itertools.combinations(truths, 2):
                crowded = all(cell == 0 or others.count(cell) >= crowd - 1 for cell in (u, v))
                if crowded and (adjacency == "move" or u == 0):
                    yield laws[u], laws[v]


def merged(p, q):
    """The pair with outputs of equal likelihood ratio taken together."""
    _, index = np.unique(np.round(np.arctan2(p, q), 11), return_inverse=True)
    return np.bincount(index.ravel(), p), np.bincount(index.ravel(), q)


def greatest(pairs, queries, draw):
    """The greatest δ over the pairs in both directions, for each ε of the grid; over two queries of products."""
    distinct = {}
    for p, q in pairs:
        for pair in (merged(p, q), merged(q, p)):
            distinct[np.round(pair, 12).tobytes()] = pair
    pairs = list(distinct.values())
    if queries == 2:
        products = list(itertools.combinations_with_replacement(pairs, 2))
        if len(products) > MOST_PAIRS:
            products = [products[i] for i in draw.choice(len(products), MOST_PAIRS, replace=False)]
        pairs = [[np.multiply.outer(a, b).ravel() for a, b in zip(*two, strict=True)] for two in products]
    return np.max([[np.maximum(p - math.exp(e) * q, 0.0).sum() for e in GRID] for p, q in pairs], axis=0)


def check(claim, truth, case, within=ROUNDING):
    if claim.kind == "unknown":
        return
    claimed = np.array([claim.delta(epsilon) for epsilon in GRID])
    assert (claimed >= truth - within).all(), (case, claim, claimed, truth)
    assert (np.diff(claimed) <= 1.1e-3 * claimed[:-1] + ROUNDING).all(), (case, claimed)


def views(mechanism, rows, queries, adjacency, devices):
    """Views, the law of what each shows, and the devices in it; with the crowd of published counts."""
    for turn in range(1, mechanism.rounds + 1):
        law = SumLaw(rows, lambda whole, turn=turn: [whole[turn - 1]])
        yield Report(turn, queries, adjacency=adjacency), law, 1, 1
        yield Shuffled(turn, devices, queries, adjacency=adjacency), law, devices, 1
    linked = SumLaw(rows, lambda whole: [whole])
    yield LinkedReports(queries, adjacency=adjacency), linked, 1, 1
    yield Shares(2, 2, queries, adjacency=adjacency), linked, 1, 1
    counts = SumLaw(rows, hashed_support if isinstance(mechanism, LocalHashing) else of_parts)
    for crowd in range(1, devices + 1):
        yield ReleasedCounts(crowd, queries, devices, adjacency=adjacency), counts, devices, crowd


def check_mechanism(maker, cells, queries, devices, seed):
    draw = np.random.default_rng([seed, cells, queries, devices, MAKERS.index(maker)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters outside the papers' ranges
        mechanism, law = maker(draw, cells)
    rows = list(law.rows(cells))
    for row in rows:
        assert math.fsum(row.values()) == pytest.approx(1.0, abs=1e-12)
    for adjacency in ("move", "enter_leave"):
        for view, shown, number, crowd in views(mechanism, rows, queries, adjacency, devices):
            pairs = list(shown.pairs(number, adjacency, crowd))
            if pairs:
                check(mechanism.claim(view), greatest(pairs, queries, draw), (mechanism, view))


HEAVY = {deniable: 1, hashing: 1, anonymized_local: 2, sampled_response: 2, first_attempt: 2}
"""Most cells with which crowds are enumerated in the fast tests and for two queries, 3 for other mechanisms."""
NAMES = {maker.__name__: maker for maker in MAKERS}


@pytest.mark.parametrize("name", NAMES)
def test_one_query(name):
    for cells, devices in ((1, 3), (2, 2)):
        check_mechanism(NAMES[name], cells, 1, devices, seed=1)


@pytest.mark.parametrize("name", NAMES)
def test_two_queries(name):
    check_mechanism(NAMES[name], 1, 2, 2, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_more_parameters_cells_and_devices(name):
    most = HEAVY.get(NAMES[name], 3)
    for seed in range(10, 14):
        for cells, devices in ((1, 2), (1, 4), (2, 3 if most > 1 else 2), (3, 1 if most < 3 else 2)):
            check_mechanism(NAMES[name], cells, 1, devices, seed)
        for cells, devices in ((1, 2), (min(most, 2), 2), (most, 1)):
            check_mechanism(NAMES[name], cells, 2, devices, seed)


def kept_journeys(p, q, flip, cells, times):
    """The law of all bits at all queries, by journey: bits kept for being in a cell and for being elsewhere."""
    flips = np.array([[1 - flip, flip], [flip, 1 - flip]])
    again = (p - q) / (1 - q)
    for journey in itertools.product(range(cells + 1), repeat=times):
        law = np.ones(1)
        for cell in range(1, cells + 1):
            of_cell = 0.0
            for noise, hit in itertools.product((0, 1), repeat=2):
                bits = np.ones(1)
                for place in journey:
                    bits = np.multiply.outer(bits, flips[int(noise or (hit and place == cell))]).ravel()
                of_cell = of_cell + (q if noise else 1 - q) * (again if hit else 1 - again) * bits
            law = np.multiply.outer(law, of_cell).ravel()
        yield journey, law


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 30))])
def test_kept_bits(seed):
    draw = np.random.default_rng(seed)
    kept, step = float(draw.uniform(0.5, 5.0)), str(draw.choice(["optimised", "symmetric"]))
    first = kept * float(draw.uniform(0.1, 0.9))
    half = math.exp(kept / 2)
    p, q = (0.5, 1 / (1 + math.exp(kept))) if step == "optimised" else (half / (1 + half), 1 / (1 + half))
    low, high = 0.0, 0.5  # the flip probability with which one report has ε₁

    def of_report(f):
        a, b = (r * (1 - f) + (1 - r) * f for r in (p, q))
        return math.log(a * (1 - b) / (b * (1 - a)))

    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if of_report(middle) > first else (low, middle)
    for cells, times in ((1, 1), (1, 2), (2, 2), (3, 1), (1, 3)):
        mechanism = LongitudinalUnary(cells=cells, epsilon_permanent=kept, epsilon_first=first, permanent=step)
        laws = dict(kept_journeys(p, q, low, cells, times))
        for adjacency in ("move", "enter_leave"):
            pairs = [
                (laws[one], laws[other])
                for one, other in itertools.combinations(laws, 2)
                if adjacency == "move" or all(u == v or 0 in (u, v) for u, v in zip(one, other, strict=True))
            ]
            truth = greatest(pairs, 1, draw)
            for view in (Report(1, times, adjacency=adjacency), LinkedReports(times, adjacency=adjacency)):
                check(mechanism.claim(view), truth, (mechanism, view))


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(30, 36))])
def test_shares_of_laplace_noise(seed):
    draw = np.random.default_rng(seed)
    epsilon, devices = float(draw.uniform(1.5, 4.0)), int(draw.integers(1, 4))
    for cells in (1, 2):
        mechanism = DistributedLaplace(cells=cells, epsilon=epsilon, devices=devices)
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


def differences(n, k, beta, largest):
    masses = binom.pmf(np.arange(largest + 1), n, beta)
    return masses if k is None else np.append(masses[:k].sum(), masses[k:])


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 48))])
def test_differences(seed):
    """Every number of devices in each cell from the crowd to 30; over two queries every two of them."""
    draw = np.random.default_rng(seed)
    crowd, k = int(draw.integers(1, 14)), int(draw.integers(1, 15)) if draw.random() < 0.8 else None
    sampling, largest = float(draw.uniform(0.05, 0.98)), 30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        makers = [
            lambda cells: SamplingPrivacy(cells=cells, sampling=sampling),
            lambda cells: BinarySamplingPrivacy(cells=cells, sampling=sampling),
            lambda cells: AnonymizedCancelling(cells=cells, shift=sampling),
        ]
        laws = [differences(n, k, sampling, largest) for n in range(largest + 1)]
        numbers = range(crowd, largest + 1)
        enter = [(laws[n], laws[n - 1]) for n in numbers]
        moved = [
            (np.multiply.outer(laws[n], laws[m - 1]).ravel(), np.multiply.outer(laws[n - 1], laws[m]).ravel())
            for n, m in itertools.product(numbers, repeat=2)
        ]
        for cells, adjacency, queries in itertools.product((1, 2, 3), ("enter_leave", "move"), (1, 2)):
            if queries == 2 and cells > 1 and adjacency == "move":
                continue  # too many outcomes
            truth = greatest(enter if adjacency == "enter_leave" or cells == 1 else enter + moved, queries, draw)
            for make in makers:
                mechanism = make(cells)
                view = ReleasedDifferences(crowd, k, queries, adjacency=adjacency)
                check(mechanism.claim(view), truth, (mechanism, view))
