"""Laws of published counts and shuffled reports of a few devices, by enumeration from the mechanisms' definitions."""

import math
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from answer_distributions import linked_distribution

from mechanisms.local import BinarySamplingPrivacy, NoPrivacy, SamplingPrivacy, SubsetSelection
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse


def device_law(mechanism):
    """The law of one device's answers of all rounds: (cells + 1, outputs) masses, and each output's report by round.

    A report is a symbol, a set of symbols, or a tuple of the answers about each cell.
    """
    cells = mechanism.cells
    if isinstance(mechanism, NoPrivacy):
        return np.eye(cells + 1), [(symbol,) for symbol in range(cells + 1)]
    masses = linked_distribution(mechanism)
    if isinstance(mechanism, SamplingPrivacy):
        reports = list(product(range(cells + 1), repeat=2))
    elif isinstance(mechanism, BinarySamplingPrivacy | ProtocolMechanism):
        binary = isinstance(mechanism, BinarySamplingPrivacy)
        answers = [(0, 0), (0, 1), (1, 1)] if binary else mechanism.binary_query.answers
        reports = [tuple(zip(*whole, strict=True)) for whole in product(answers, repeat=cells)]
    elif isinstance(mechanism, SubsetSelection):
        reports = [(frozenset(subset),) for subset in combinations(range(cells + 1), mechanism.size)]
    elif isinstance(mechanism, KRandomizedResponse | HadamardResponse):
        reports = [(symbol,) for symbol in range(masses.shape[1])]
    else:
        reports = [(tuple(output >> cell & 1 for cell in range(cells)),) for output in range(2**cells)]
    assert len(reports) == masses.shape[1]
    assert np.allclose(masses.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
    return masses, reports


def tallied(report):
    """What the servers of a round count about one report: its symbols, or the answer about each cell."""
    if isinstance(report, tuple):
        return tuple(enumerate(report))
    return tuple(report) if isinstance(report, frozenset) else (report,)


class PublishedLaw:
    """Law of the sums over all devices of the vectors that their answers add to what is published.

    Parameters
    ----------
    mechanism : LocalMechanism
    shuffled : int, optional
        The round whose whole reports are shuffled: each adds one to the number of reports equal to it. By default the
        tallies of all rounds are published.
    """

    def __init__(self, mechanism, shuffled=None):
        self.truths = range(mechanism.cells + 1)
        masses, reports = device_law(mechanism)
        self.outputs = list(zip(masses.T, reports, strict=True))
        seen = [
            [(r, part) for r, report in enumerate(whole) for part in tallied(report)]
            if shuffled is None
            else [whole[shuffled - 1]]
            for whole in reports
        ]
        parts = {part: i for i, part in enumerate(dict.fromkeys(part for one in seen for part in one))}
        # A vector of counts is named by its product with random 64-bit numbers, which is linear: names of sums are sums
        # of names (modulo 2^64). Two vectors of at most a million share a name with probability below 1e-7.
        weights = np.random.default_rng(5).integers(2**63, size=len(parts), dtype=np.int64)
        names = np.array([sum(int(weights[parts[part]]) for part in one) % 2**63 for one in seen], dtype=np.int64)
        self.names, self.masses = self._merged(names, masses)
        # Each is computed once for all the limits of a view.
        self.of_others, self.of_all = cache(self._of_others), cache(self._of_all)
        self.divergence, self.products = cache(self._divergence), cache(self._products)

    @staticmethod
    def _merged(names, masses):
        """Distinct names, and the masses of each."""
        distinct, index = np.unique(names, return_inverse=True)
        return distinct, np.array([np.bincount(index.ravel(), row, len(distinct)) for row in masses])

    def _of_others(self, truths):
        """Names and (1, sums) masses of the sums of devices with these truths."""
        if not truths:
            return np.zeros(1, dtype=np.int64), np.ones((1, 1))
        names, masses = self.of_others(truths[:-1])
        return self._added(names, masses, self.masses[truths[-1]][np.newaxis])

    def _added(self, names, masses, rows):
        """Law of a sum and one more device, with each of the rows as its law."""
        sums = np.add.outer(names, self.names) & (2**63 - 1)
        products = np.array([np.multiply.outer(masses[0], row).ravel() for row in rows])
        return self._merged(sums.ravel(), products)

    def means(self, truth, round_, shape):
        """(*tally_shape,) mean of what a device adds to one round's tally."""
        means = np.zeros(shape)
        for masses, whole in self.outputs:
            for part in tallied(whole[round_ - 1]):
                means[part] += masses[truth]
        return means

    def _of_all(self, others):
        """(cells + 1, sums) masses, for each truth of the device in question, given the truths of the others."""
        names, masses = self.of_others(others)
        return self._added(names, masses, self.masses)[1]

    def _divergence(self, others, u, v, epsilons):
        """δ for each ε between two truths of the device, given the truths of the others."""
        rows = self.of_all(others)
        return np.array([hockey_stick(rows[u], rows[v], epsilon) for epsilon in epsilons])

    def _products(self, given, epsilons):
        """The greatest δ for each ε, over products of two of the given (others, u, v), each in either direction."""
        pairs = {}
        for others, u, v in given:
            rows = self.of_all(others)
            for pair in (by_ratio(rows[u], rows[v]), by_ratio(rows[v], rows[u])):
                pairs[np.round(pair, 9).tobytes()] = pair
        distinct, found = list(pairs.values()), np.zeros(len(epsilons))
        for i, one in enumerate(distinct):
            for other in distinct[i:]:
                p, q = (np.multiply.outer(a, b).ravel() for a, b in zip(one, other, strict=True))
                found = np.maximum(found, [np.maximum(p - math.exp(e) * q, 0.0).sum() for e in epsilons])
        return found


def neighbours(cells, devices, adjacency, least=0, most=None):
    """All truths of the other devices, and the pairs of truths of the device that are neighbours given these.

    At least `least` and at most `most` of the others are in each cell that the device may be in.
    """
    for others in combinations_with_replacement(range(cells + 1), devices - 1):
        allowed = [v == 0 or least <= others.count(v) <= (devices if most is None else most) for v in range(cells + 1)]
        pairs = combinations(range(cells + 1), 2) if adjacency == "move" else ((0, v) for v in range(1, cells + 1))
        pairs = [(u, v) for u, v in pairs if allowed[u] and allowed[v]]
        if pairs:
            yield others, pairs


def divergences(law, devices, adjacency, epsilons, **limits):
    """The greatest δ over all neighbours, for each ε; None if there are none."""
    found = [
        law.divergence(others, u, v, epsilons)
        for others, pairs in neighbours(len(law.truths) - 1, devices, adjacency, **limits)
        for u, v in pairs
    ]
    return np.max(found, axis=0) if found else None


def hockey_stick(p, q, epsilon):
    """δ(ε) in both directions."""
    factor = math.exp(epsilon)
    return max(np.maximum(p - factor * q, 0.0).sum(), np.maximum(q - factor * p, 0.0).sum())


def divergences_of_two(law, devices, adjacency, epsilons, **limits):
    """The same for two queries with fresh randomness: products of any two pairs of single-query laws.

    The device's journeys differ at one query or at both, in any directions; the others' truths are arbitrary at each.
    """
    given = tuple(
        (others, *pair)
        for others, pairs in neighbours(len(law.truths) - 1, devices, adjacency, **limits)
        for pair in pairs
    )
    return law.products(given, epsilons) if given else None


def by_ratio(p, q):
    """The pair with outputs of equal likelihood ratios merged, which changes no divergence."""
    ratios = np.round(np.arctan2(p, q), 11)
    _, index = np.unique(ratios, return_inverse=True)
    return np.array([np.bincount(index, p), np.bincount(index, q)])
