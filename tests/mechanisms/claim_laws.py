"""Laws of reports and published sums from the mechanisms' definitions, with random parameters, and their divergences.

None is taken from the mechanisms: the probabilities are those that papers and docstrings state.
"""

import itertools
import math
from collections import defaultdict

import mechanism_cases
import numpy as np

from mechanisms import local

GRID = (0.0, 0.03, 0.2, 0.6, 1.1, 2.0, 3.5, 6.0)
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
    return local.RandomizedResponse(cells=cells, first_coin=f, second_coin=s), unary(f + (1 - f) * s, (1 - f) * s)


def warner(draw, cells):
    p = draw.choice([0.1, 0.3, 0.6, 0.8, 0.99])
    return local.Warner(cells=cells, truthful=float(p)), unary(p, 1 - p)


def sampled_response(draw, cells):
    a, b, f, s = (chance(draw) for _ in range(4))
    yes, no = f + (1 - f) * s, (1 - f) * s
    mechanism = local.SampledResponse(cells=cells, sampling=a, sampling_no=b, first_coin=f, second_coin=s)
    laws = [{("yes",): r * y, ("no",): r * (1 - y), ("silent",): 1 - r} for r, y in ((a, yes), (b, no))]
    return mechanism, Bits(*laws)


def sampling_and_noise(draw, cells):
    a, b = chance(draw), chance(draw)
    says = str(draw.choice(["noise", "value"]))
    no = "yes" if says == "noise" else "no"
    laws = {("yes",): a, ("silent",): 1 - a}, {(no,): b, ("silent",): 1 - b}
    return local.SamplingAndNoise(cells=cells, sampling=a, sampling_no=b, says=says), Bits(*laws)


def anonymized_local(draw, cells):
    one, two, *_ = draw.dirichlet([1, 1, 1])
    no, a, b, c = (chance(draw) for _ in range(4))
    mechanism = mechanism_cases.anonymized_local(one, two, no, a, b, c, cells=cells)
    said = one * a + two * b
    yes = {("yes",): said, ("no",): one + two - said, ("silent",): 1 - one - two}
    return mechanism, Bits(yes, {("yes",): no * c, ("no",): no * (1 - c), ("silent",): 1 - no})


def first_attempt(draw, cells):
    base = draw.uniform(0.1, 0.6)
    y, n = (chance(draw, min(base, 1 - base)) for _ in range(2))
    laws = [{(1, 1): base - shift, (1, 2): 2 * shift, (2, 2): 1 - base - shift} for shift in (y, n)]
    return local.AnonymizedFirstAttempt(cells=cells, base=base, shift_yes=y, shift_no=n), Bits(*laws)


def cancelling(draw, cells):
    shift = chance(draw)
    stays = {(i, i): (1 - shift) / 3 for i in (1, 2, 3)}
    mechanism = local.AnonymizedCancelling(cells=cells, shift=shift)
    return mechanism, Bits({**stays, (1, 3): shift}, {**stays, (2, 3): shift})


def deniable(draw, cells):
    shift, onward = chance(draw), chance(draw)
    onward_yes = float(draw.choice([0.0, draw.random()]))
    (y2, y3, _), (n2, n3, _) = draw.dirichlet([1, 1, 1], size=2)
    given = dict(zip(mechanism_cases.DENIABLE, (shift, y2, y3, n2, n3, onward), strict=True))
    mechanism = local.AnonymizedDeniable(cells=cells, **given, onward_yes=onward_yes)
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
    return local.SymmetricUnary(cells=cells, epsilon=e), unary(p, 1 - p)


def optimised(draw, cells):
    e = budget(draw)
    return local.OptimisedUnary(cells=cells, epsilon=e), unary(0.5, 1 / (1 + math.exp(e)))


def thresholded(draw, cells):
    e, theta = budget(draw), float(draw.choice([0.5, 0.7, 1.0]))
    p, q = 1 - math.exp(e * (theta - 1) / 2) / 2, math.exp(-e * theta / 2) / 2
    return local.ThresholdHistogram(cells=cells, epsilon=e, threshold=theta), unary(p, q)


def memoised(draw):
    """ε∞, ε₁ and the first step of memoised bits; their probabilities p and q, and that of a flip."""
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
    return {"epsilon_permanent": kept, "epsilon_first": first, "permanent": step}, (p, q, low)


def longitudinal(draw, cells):
    given, (p, q, f) = memoised(draw)
    return local.LongitudinalUnary(cells=cells, **given), unary(*(r * (1 - f) + (1 - r) * f for r in (p, q)))


def binary_sampling(draw, cells):
    sampling = chance(draw)
    zero = chance(draw, 1 - sampling) if draw.random() < 0.5 else (1 - sampling) / 2
    blanks = {(0, 0): zero, (1, 1): 1 - sampling - zero}
    mechanism = local.BinarySamplingPrivacy(cells=cells, sampling=sampling, blank_zero=zero)
    return mechanism, Bits({**blanks, (0, 1): sampling}, {(0, 0): zero + sampling, (1, 1): blanks[1, 1]})


def sampling_privacy(draw, cells):
    sampling = chance(draw)
    refresh = float(draw.choice([0.0, 0.0, draw.random(), 1.0]))
    zero = chance(draw, 1 - sampling)
    shares = draw.dirichlet(np.ones(cells)) if draw.random() < 0.5 else np.full(cells, 1 / cells)
    blanks = [zero, *((1 - sampling - zero) * shares).tolist()]

    def rows(_):
        for truth in range(cells + 1):
            row = defaultdict(float)
            row[0, truth] += sampling
            for first, mass in enumerate(blanks):
                row[first, first] += mass * (1 - refresh)
                for second, other in enumerate(blanks):
                    row[first, second] += mass * refresh * other / (1 - sampling)
            yield row

    given = {"sampling": sampling, "blank_zero": zero, "blank": blanks[1:], "refresh": refresh}
    return local.SamplingPrivacy(cells=cells, **given), Symbols(rows)


def no_privacy(_, cells):
    return local.NoPrivacy(cells=cells), Symbols(lambda n: ({(truth,): 1.0} for truth in range(n + 1)))


def k_ary(draw, cells):
    e = budget(draw)
    rows = Symbols(lambda n: weighted(n, range(n + 1), lambda t, y: t == y, e))
    return local.KRandomizedResponse(cells=cells, epsilon=e), rows


def subset(draw, cells):
    e, size = budget(draw), int(draw.integers(1, cells + 1))
    rows = Symbols(
        lambda n: weighted(
            n, [frozenset(s) for s in itertools.combinations(range(n + 1), size)], lambda t, y: t in y, e
        )
    )
    return local.SubsetSelection(cells=cells, epsilon=e, size=size), rows


def hadamard(draw, cells):
    e, order = budget(draw), 4 if cells < 3 else 8
    rows = Symbols(lambda n: weighted(n, range(order), lambda t, y: ((t + 1) & y).bit_count() % 2 == 0, e))
    return local.HadamardResponse(cells=cells, epsilon=e), rows


def hashing(draw, cells):
    e, g = budget(draw), int(draw.integers(2, 5))

    def rows(n):
        functions = list(itertools.product(range(g), repeat=n + 1))
        outputs = [(h, bucket) for h in functions for bucket in range(g)]
        return weighted(n, outputs, lambda t, y: y[0][t] == y[1], e)

    return local.LocalHashing(cells=cells, epsilon=e, buckets=g), Symbols(rows)


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
    longitudinal,
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
    """Laws of sums over devices of what each adds, less what it takes, each a list of parts of its reports.

    A sum is named by that of random 64-bit numbers of its parts.
    """

    def __init__(self, rows, added, taken=lambda _: ()):
        outputs = sorted({output for row in rows for output in row}, key=repr)
        draw, numbers = np.random.default_rng(11), {}
        names = []
        for output in outputs:
            name = 0
            for sign, parts_of in ((1, added), (-1, taken)):
                for part in parts_of(output):
                    name += sign * numbers.setdefault(part, int(draw.integers(2**63)))
            names.append(name % 2**63)
        masses = np.array([[row.get(output, 0.0) for output in outputs] for row in rows])
        self.names, index = np.unique(np.array(names, dtype=np.int64), return_inverse=True)
        self.rows = np.array([np.bincount(index.ravel(), row, len(self.names)) for row in masses])

    def pairs(self, devices, adjacency, crowd=1, most=None):
        """Pairs of laws of the sum for neighbouring truths of a device, for all truths of the others.

        With the device, at least `crowd` and at most `most` devices are in each cell that it may be in.
        """
        truths = range(len(self.rows))
        most = devices if most is None else most
        for others in itertools.combinations_with_replacement(truths, devices - 1):
            names, masses = np.zeros(1, dtype=np.int64), np.ones(1)
            for truth in others:
                sums = np.add.outer(names, self.names).ravel() & (2**63 - 1)
                names, index = np.unique(sums, return_inverse=True)
                masses = np.bincount(index.ravel(), np.multiply.outer(masses, self.rows[truth]).ravel())
            _, index = np.unique(np.add.outer(names, self.names).ravel() & (2**63 - 1), return_inverse=True)
            laws = [np.bincount(index.ravel(), np.multiply.outer(masses, row).ravel()) for row in self.rows]
            for u, v in itertools.combinations(truths, 2):
                crowded = all(cell == 0 or crowd - 1 <= others.count(cell) < most for cell in (u, v))
                if crowded and (adjacency == "move" or u == 0):
                    yield laws[u], laws[v]


def merged(p, q):
    """The pair with outputs of equal likelihood ratio taken together."""
    _, index = np.unique(np.round(np.arctan2(p, q), 11), return_inverse=True)
    return np.bincount(index.ravel(), p), np.bincount(index.ravel(), q)


def greatest(pairs, queries, draw):
    """The greatest δ over the pairs in both directions for each ε of the grid, the least ε at δ = 0, and if all count.

    Over two queries these are products of two pairs, of which a random part is taken where they are many.
    """
    distinct = {}
    for p, q in pairs:
        for pair in (merged(p, q), merged(q, p)):
            distinct[np.round(pair, 12).tobytes()] = pair
    pairs, whole = list(distinct.values()), True
    if queries == 2:
        products = list(itertools.combinations_with_replacement(pairs, 2))
        if len(products) > MOST_PAIRS:
            products, whole = [products[i] for i in draw.choice(len(products), MOST_PAIRS, replace=False)], False
        pairs = [[np.multiply.outer(a, b).ravel() for a, b in zip(*two, strict=True)] for two in products]
    deltas = np.max([[np.maximum(p - math.exp(e) * q, 0.0).sum() for e in GRID] for p, q in pairs], axis=0)
    with np.errstate(divide="ignore"):
        epsilon = max(float(np.log(p[p > 1e-15] / q[p > 1e-15]).max()) for p, q in pairs)
    return deltas, epsilon, whole


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
