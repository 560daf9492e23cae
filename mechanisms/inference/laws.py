"""Laws of a device's reports given its cell: values, bits and other answers about each cell, supports, noisy vectors.

`LAWS` has the law of every mechanism's reports, by the class of the mechanism. A compiled kernel finds the Bayes
success from how often each value was reported.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import Floats, Integers, Mask, compiled, gammaln
from mechanisms.inference.report_law import (
    INVALID,
    LARGEST_LEVELS,
    Logs,
    ReportLaw,
    ReportOutcomes,
    check_vectors,
    expected_best,
    greatest_other,
    read_answers,
    read_values,
)
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.common.intervals import log_choose
from mechanisms.local.common.packed_bits import AnswerReports, BitReports
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.distributed_laplace import DistributedLaplace, SparseVectors
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import HashedReports, LocalHashing, same_bucket
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import BitProbabilities, UnaryEncoding
from mechanisms.privacy.composition import at_least_once
from mechanisms.privacy.integer_noise import PartialNoise
from mechanisms.privacy.memoised_bits import MemoisedBits
from mechanisms.privacy.sampling_privacy_claims import linked_blanks
from mechanisms.protocols.protocol import BinaryQuery, Protocol

# Multiplications beyond which the exact sum takes more than a few seconds.
MOST_WORK = 2e9


def best_of_counts(prior: Floats, masses: Floats, rest: float, sampling: float, queries: int) -> float | None:
    """Return Σ over T values of max_t q_t·Π m·(1 + π_s/m_t)^(times t was reported), without values of mass 0.

    The counts of the values are multinomial, which is the distribution of independent Poisson counts given their sum
    T. So the expected greatest q_t·r_t^n over all truths is computed as in `expected_best`, but each truth's
    distribution function is replaced by the generating polynomial of its count, up to z^T. A product tree over the
    truths holds the polynomials, and each (truth, count), in ascending order of its value, updates one path of the
    tree. All terms are positive, so no digits are lost by cancellation.

    Parameters
    ----------
    prior, masses : (truths,) float64
        q and m.
    rest : float
        Mass of reports that carry no evidence.
    sampling : float
        π_s.
    queries : int
        T.

    Returns
    -------
    float or None
        None if more than `MOST_WORK` multiplications would be needed.
    """
    total = float(masses.sum()) + rest
    if total <= 0.0:
        return 0.0
    size = 1 << (len(masses)).bit_length()
    work = len(masses) * queries * size.bit_length() * (queries + 1) ** 2 / 2
    if work > MOST_WORK:
        return None
    counts = np.arange(queries + 1)
    log_factorial = np.array([math.lgamma(n + 1) for n in counts])
    rates = np.append(masses, rest) * (queries / total)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_rates = np.log(rates)[:, np.newaxis]
        poisson = np.where(counts == 0, 0.0, counts * log_rates) - rates[:, np.newaxis] - log_factorial
        ratio = np.log1p(sampling / masses)[:, np.newaxis]
        value = np.log(prior)[:, np.newaxis] + np.where(counts == 0, 0.0, counts * ratio)
    # Mass 0: only devices with that truth report the value, and `guess_success` counts those outcomes.
    value[masses == 0.0, 1:] = -np.inf
    at_sum = queries * math.log(queries) - queries - log_factorial[queries]
    scale = queries * math.log(total) - at_sum
    floor = float(np.log(prior.max()))
    above = np.flatnonzero((value > floor).ravel())
    above = above[np.argsort(value.ravel()[above], kind="stable")]
    tree = np.zeros((2 * size, queries + 1))
    tree[size:, 0] = 1.0
    start = np.exp(poisson)
    start[:-1][value > floor] = 0.0
    tree[size : size + len(start)] = start
    flat = value.ravel()[above] + poisson[:-1].ravel()[above] + scale
    return float(_climb(tree, above // (queries + 1), above % (queries + 1), np.exp(poisson[:-1]), flat, floor + scale))


@compiled
def _climb(tree: Floats, truths: Integers, counts: Integers, poisson: Floats, values: Floats, floor: float) -> float:
    """Fill the tree, then sum over the levels: the value of each times P(no other truth's value exceeds it)."""
    size, top = tree.shape[0] // 2, tree.shape[1] - 1
    for node in range(size - 1, 0, -1):
        for i in range(top + 1):
            for j in range(top + 1 - i):
                tree[node, i + j] += tree[2 * node, i] * tree[2 * node + 1, j]
    success: float = math.exp(floor) * tree[1, top]
    path, longer = np.zeros(top + 1), np.zeros(top + 1)
    for event in range(truths.size):
        truth, count = truths[event], counts[event]
        mass = poisson[truth, count]
        path[:] = 0.0
        path[count] = 1.0
        node = truth + size
        tree[node, count] += mass
        while node > 1:
            longer[:] = 0.0
            for i in range(count, top + 1):
                if path[i] != 0.0:
                    for j in range(top + 1 - i):
                        longer[i + j] += path[i] * tree[node ^ 1, j]
            path[:] = longer
            node >>= 1
            for i in range(count, top + 1):
                tree[node, i] += mass * path[i]
        success += math.exp(values[event]) * path[top]
    return success


# A report that is equally likely for every truth.
NOTHING = -2


@dataclass(frozen=True, eq=False)
class OwnValueLaw(ReportLaw):
    """The law of a report that is a value with P(v | t) = m_v + π_s·[v = t], or that carries no evidence.

    Parameters
    ----------
    masses : (V + 1,) float64
        m_0…m_V.
    rest : float
        Probability of a report without evidence; Σm + rest + π_s = 1.
    sampling : float
        π_s.
    read : callable
        Maps the reports to one observation per device, (n,) int64: a value, NOTHING, or INVALID.
    pairs : (V + 1, V + 1) float64, optional
        Of linked rounds: the probabilities of the reports of a device that is not sampled.
    """

    masses: Floats
    rest: float
    sampling: float
    read: Callable[[Sequence[Any]], Integers]
    pairs: Floats | None = None

    @classmethod
    def of_values(cls, masses: Floats, sampling: float) -> "OwnValueLaw":
        """Return the law of one round of values."""
        return cls(masses, 0.0, sampling, lambda reports: read_values(reports[0], outputs=len(masses)))

    @classmethod
    def of_sampling(cls, mechanism: SamplingPrivacy, rounds: Sequence[int]) -> "OwnValueLaw":
        """Return the law of round one, of round two, or of both linked, in any order (SP eqs 12-16)."""
        blanks, sampling = mechanism.blanks, mechanism.sampling
        if tuple(rounds) == (1,):
            first = blanks.copy()
            first[0] += sampling
            return cls.of_values(first, 0.0)
        if tuple(rounds) == (2,):
            return cls.of_values(blanks, sampling)
        pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=mechanism.refresh)
        seen = tuple(rounds)

        def read(reports: Sequence[Any]) -> Integers:
            first, second = (read_values(reports[seen.index(r)], outputs=len(blanks)) for r in (1, 2))
            return _read_pairs(first, second, mechanism)

        joint = (1.0 - mechanism.refresh) * np.diag(blanks) + mechanism.refresh * np.outer(blanks, mechanism.redrawn)
        rest = float(blanks[1:].sum() + blanks[0] - pairs.sum())
        return cls(pairs, rest, sampling, read, joint if seen == (1, 2) else joint.T)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(observation | truth) up to a constant per row, (n, V + 1)."""
        seen = self.read(reports)
        logs = np.zeros((len(seen), len(self.masses)))
        values = np.flatnonzero(seen >= 0)
        reported = seen[values]
        common = self.masses[reported]
        logs[seen == INVALID] = -np.inf
        # Common mass 0: only devices with that truth report the value, or no device does.
        logs[values[common == 0.0]] = -np.inf
        with np.errstate(divide="ignore"):
            gain = np.log1p(self.sampling / np.where(common > 0.0, common, 1.0))
        if self.sampling == 0.0:
            return logs
        logs[values, reported] = np.where(common > 0.0, gain, 0.0)
        return logs

    def guess_success(self, prior: Floats, queries: int) -> float | None:
        """Return the exact success from T queries' reports with fresh coins.

        One query: rest·max q + Σ_v max(q_v(m_v + π_s), m_v·max_{u≠v} q_u). Several queries: a value of mass 0, which
        only devices with that truth report, is reported at least once with probability 1 − (1 − π_s)^T; the other
        values contribute through their counts (`best_of_counts`).
        """
        if self.sampling == 0.0:
            return float(prior.max())
        if queries == 1:
            with_truth = prior * (self.masses + self.sampling)
            best = np.maximum(with_truth, self.masses * greatest_other(prior))
            return min(self.rest * float(prior.max()) + math.fsum(best), 1.0)
        guessed = best_of_counts(prior, self.masses, self.rest, self.sampling, queries)
        revealed = at_least_once(self.sampling, queries) * math.fsum(prior[self.masses == 0.0])
        return None if guessed is None else min(guessed + revealed, 1.0)

    def outcomes(self) -> ReportOutcomes:
        """Return every value, or every possible pair of values (SP eqs 12-16)."""
        one_hot = np.eye(len(self.masses), dtype=np.int64)
        if self.pairs is None:
            return ReportOutcomes(self.masses + self.sampling * one_hot, (one_hot,))
        masses = np.repeat(self.pairs[np.newaxis], len(one_hot), axis=0)
        masses[:, 0] += self.sampling * one_hot
        first, second = np.nonzero(masses.any(axis=0))
        return ReportOutcomes(masses[:, first, second], (one_hot[first], one_hot[second]))

    def candidates(self, cell: int) -> Sequence[Any]:
        """Return the cell itself and one other value: no others matter."""
        return [np.array([value], dtype=np.int32) for value in (0, cell)]


def _read_pairs(first: Integers, second: Integers, mechanism: SamplingPrivacy) -> Integers:
    """Return the second value if the first is 0, NOTHING after a blank first, INVALID if no device sends the pair."""
    blanks, refresh = mechanism.blanks, mechanism.refresh
    same = (first == second) & (refresh < 1.0)
    again = (blanks[np.maximum(second, 0)] > 0.0) & (refresh > 0.0)
    blank = (blanks[np.maximum(first, 0)] > 0.0) & (same | again)
    seen = np.where(first == 0, second, np.where(blank, NOTHING, INVALID))
    return np.where((first == INVALID) | (second == INVALID), INVALID, seen)


# With more outcomes the reports of two devices have too many combinations (`crowd`).
MOST_OUTCOMES = 256
# The log_ratio of an answer that no device gives.
NEVER = np.nan
# Sums of the same probabilities differ by at most this, relatively, from rounding.
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class CellLaw(ReportLaw):
    """The joint law of the answers of some rounds about one cell, for a device in it and for a device elsewhere.

    Parameters
    ----------
    cells : int
        V.
    outputs : tuple of int
        Number of outputs of each observed round.
    yes, no : (codes,) float64
        Probability of each combination of answers, in the cell and elsewhere. A combination is coded as a number in a
        mixed radix, with the first round's answer as the leading digit.
    reports : type
        The class of the reports.
    """

    cells: int
    outputs: tuple[int, ...]
    yes: Floats
    no: Floats
    reports: type[BitReports | AnswerReports] = BitReports

    @classmethod
    def of_bits(cls, cells: int, bit: BitProbabilities, **more: Any) -> Self:
        """Return the law of one round of bits."""
        yes, no = np.array([bit.true_no, bit.true_yes]), np.array([1.0 - bit.false_yes, bit.false_yes])
        return cls(cells, (2,), yes, no, **more)

    @classmethod
    def of_protocol(
        cls,
        cells: int,
        protocol: Protocol,
        rounds: Sequence[int],
        reports: type[BitReports | AnswerReports] = AnswerReports,
    ) -> "CellLaw":
        """Return the law of the answers of a table of No- and Yes-holders in some of its rounds."""
        binary_query = BinaryQuery(protocol)
        seen = np.array(binary_query.answers)[:, [r - 1 for r in rounds]]
        outputs = (len(binary_query.outputs),) * len(rounds)
        codes = np.ravel_multi_index(tuple(seen.T), outputs)
        laws = np.zeros((2, math.prod(outputs)))
        for law, given in zip(laws, (binary_query.yes, binary_query.no), strict=True):
            np.add.at(law, codes, np.array(given))
        # Two sums of the same probabilities, in different orders, must have a ratio of exactly 1.
        alike = np.isclose(laws[0], laws[1], rtol=ROUNDING, atol=0.0)
        return cls(cells, outputs, laws[0], np.where(alike, laws[0], laws[1]), reports)

    @property
    def log_ratio(self) -> Floats:
        """ln(yes/no) of every answer: +∞ if only devices in the cell give it, NaN if no device does."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((self.yes == 0.0) & (self.no == 0.0), NEVER, np.log(self.yes) - np.log(self.no))

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(answers | truth) up to a constant per row, (n, V + 1): the log ratio of the true cell's answer.

        If an answer about a cell is given only by devices in it, no other truth is possible.
        """
        codes = np.zeros((len(reports[0]), self.cells), dtype=np.int64)
        broken = np.zeros(len(codes), dtype=np.bool_)
        for answers, outputs in zip(reports, self.outputs, strict=True):
            digits = read_answers(answers, cells=self.cells, outputs=outputs)
            broken |= (digits == INVALID).any(axis=1)
            codes = codes * outputs + np.maximum(digits, 0)
        logs = np.zeros((len(codes), self.cells + 1))
        logs[:, 1:] = self.log_ratio[codes]
        broken |= np.isnan(logs).any(axis=1)
        certain = np.isposinf(logs)
        for row in np.flatnonzero(certain.any(axis=1) & ~broken):
            cells = np.flatnonzero(certain[row])
            logs[row] = -np.inf
            if len(cells) == 1:
                logs[row, cells[0]] = 0.0
        logs[broken] = -np.inf
        return logs

    def guess_success(self, prior: Floats, queries: int) -> float | None:
        """Return the exact success from T queries with fresh coins: the expected maximum of independent evidence.

        Of T answers about a cell only the number of times that each was given matters. Answers of total probability P
        that only a device in the cell gives reveal it with certainty; at least one occurs with probability
        1 − (1 − P)^T.
        """
        if np.array_equal(self.yes, self.no):
            return float(prior.max())
        possible = self.no > 0.0
        if self.cells * math.comb(queries + int(possible.sum()) - 1, queries) > LARGEST_LEVELS:
            return None
        revealing = float(self.yes[~possible].sum())
        with np.errstate(divide="ignore"):
            ratio, mass = self.log_ratio[possible], np.log(self.no[possible])
        counts = compositions(queries, len(ratio))
        log_mass = log_multinomial(counts) + counts @ mass
        # 0·(−∞) is 0 here: an answer that was not given is no evidence.
        terms = np.where(counts == 0, 0.0, ratio)
        log_ratio = (counts * np.where(np.isneginf(terms), 0.0, terms)).sum(axis=1)
        log_ratio[np.isneginf(terms).any(axis=1)] = -np.inf
        success = expected_best(prior, log_ratio, log_mass)
        sure = at_least_once(revealing, queries)
        return None if success is None else min(success + sure * float(prior[1:].sum()), 1.0)

    def outcomes(self) -> ReportOutcomes | None:
        """Return every combination of answers about all cells that is possible, if there are at most 256."""
        if len(self.yes) ** self.cells > MOST_OUTCOMES:
            return None
        codes = np.array(list(product(range(len(self.yes)), repeat=self.cells)), dtype=np.int64)
        inside = np.eye(self.cells + 1, dtype=np.bool_)[:, np.newaxis, 1:]  # (V + 1, 1, V)
        masses = np.prod(np.where(inside, self.yes[codes], self.no[codes]), axis=2)
        codes, masses = codes[masses.any(axis=0)], masses[:, masses.any(axis=0)]
        digits = np.unravel_index(codes, self.outputs)
        encodings = [
            np.eye(outputs, dtype=np.int64)[digit] for digit, outputs in zip(digits, self.outputs, strict=True)
        ]
        return ReportOutcomes(masses, tuple(encodings))

    def candidates(self, cell: int) -> Sequence[Any]:
        """Return every answer about the cell, with the first answer about all others."""
        outputs = self.outputs[0]
        rows = np.zeros((outputs, self.cells), dtype=np.uint8)
        rows[:, cell - 1] = np.arange(outputs)
        made = AnswerReports.from_dense(rows, outputs) if self.reports is AnswerReports else BitReports.from_dense(rows)
        return [made[i : i + 1] for i in range(outputs)]


@dataclass(frozen=True, eq=False)
class MemoisedLaw(CellLaw):
    """The law of bits that are kept between queries and flipped anew in each.

    Given the kept bits, the reported ones are independent, so only the number of ones among the T bits about a cell
    matters.

    Parameters
    ----------
    bits : MemoisedBits
    """

    bits: MemoisedBits = field(kw_only=True)

    def repeated(self, queries: Sequence[Sequence[Any]]) -> Logs:
        """Return the log-likelihood from the number of ones among the T bits about each cell.

        With R = (1 − f)/f, c ones of T have probability p₁·f^T·R^c + (1 − p₁)·f^T·R^(T−c), up to the binomial
        coefficient.
        """
        if len(queries) == 1:
            return super().repeated(queries)
        reported = [read_answers(reports[0], cells=self.cells, outputs=2) for reports in queries]
        ones = np.sum([np.maximum(b, 0) for b in reported], axis=0)
        count, odds = np.arange(len(reported) + 1), np.log((1.0 - self.bits.flip) / self.bits.flip)
        kept_one, kept_zero = count * odds, (len(reported) - count) * odds
        laws = [
            np.logaddexp(np.log(kept) + kept_one, np.log1p(-kept) + kept_zero)
            for kept in (self.bits.true_kept, self.bits.false_kept)
        ]
        logs = np.zeros((len(ones), self.cells + 1))
        logs[:, 1:] = (laws[0] - laws[1])[ones]
        logs[np.any([(b == INVALID).any(axis=1) for b in reported], axis=0)] = -np.inf
        return logs

    def guess_success(self, prior: Floats, queries: int) -> float | None:
        """Return the exact success from T queries, whose kept bits are the same."""
        if queries == 1:
            return super().guess_success(prior, queries)
        yes, no = self.bits.laws(queries)
        possible = (no > 0.0) & (yes > 0.0)
        return expected_best(prior, np.log(yes[possible]) - np.log(no[possible]), np.log(no[possible]))


def compositions(total: int, parts: int) -> Integers:
    """Return all compositions of `total` into this number of non-negative parts, in order, (ways, parts) int64."""
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, total + parts - 1)))
    return np.diff(edges, axis=1) - 1


def log_multinomial(counts: Integers) -> Floats:
    """Return the logarithm of the multinomial coefficient of each row of counts, (ways,)."""
    return np.asarray(gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1))


# Beyond this entry the ratio of neighbouring masses is computed from its limit, α·(k/(k − 1))^(r − 1), exact to 1/k².
TABLED = 4_096
# Noise values with less mass than this are left out of the sum for the success.
LEFT_OUT = 1e-18


@dataclass(frozen=True, eq=False)
class NoiseLaw(ReportLaw):
    """The law of a vector whose entries are noise of distribution f, plus 1 in the entry of the true cell.

    Parameters
    ----------
    cells : int
        V.
    noise : PartialNoise
        f, the noise of one device: a share of the whole noise, at most 1.
    """

    cells: int
    noise: PartialNoise
    no_candidates = "its vectors hold any integer, so none is the greatest."

    @classmethod
    def of_shares(cls, mechanism: DistributedLaplace) -> "NoiseLaw":
        """Return the law of one device's vector."""
        return cls(mechanism.cells, PartialNoise(mechanism.epsilon / mechanism.sensitivity, 1.0 / mechanism.devices))

    def log_ratio(self, entries: Integers) -> Floats:
        """Return ln f(x − 1)/f(x) of entries x: positive for x ≥ 1, elsewhere the negative of its value at 1 − x."""
        away = np.where(entries >= 1, entries, 1 - entries)
        law = self.noise.masses(TABLED + 1)[0]
        usable = int(np.count_nonzero(law > 1e-290))
        table = np.log(law[: usable - 1]) - np.log(law[1:usable])
        near = table[np.minimum(away, len(table)) - 1]
        limit = self.noise.decay + (1.0 - self.noise.share) * -np.log1p(-1.0 / np.maximum(away, 2))
        return np.where(entries >= 1, 1.0, -1.0) * np.where(away <= len(table), near, limit)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ln f(x_t − 1)/f(x_t) for each truth t that is a cell, and 0 for outside, (n, V + 1)."""
        vectors = reports[0]
        if isinstance(vectors, SparseVectors):
            vectors = vectors.to_dense()
        entries = check_vectors(np.asarray(vectors), (self.cells,)).astype(np.int64)
        logs = np.zeros((len(entries), self.cells + 1))
        logs[:, 1:] = self.log_ratio(entries)
        return logs

    def guess_success(self, prior: Floats, queries: int) -> float | None:
        """Return the success from one vector, the expected maximum of independent evidence, or None.

        Noise values of mass below `LEFT_OUT`, 1e-18, are left out. None for several queries, or if the noise is so
        wide that too many values would remain.
        """
        law, _ = self.noise.masses(TABLED)
        reach = int(np.count_nonzero(law > LEFT_OUT))
        if queries > 1 or reach >= TABLED or self.cells * 2 * reach > LARGEST_LEVELS:
            return None
        entries = np.arange(1 - reach, reach)
        masses = law[np.abs(entries)]
        success = expected_best(prior, self.log_ratio(entries), np.log(masses / masses.sum()))
        return None if success is None else min(success, 1.0)


@dataclass(frozen=True, eq=False)
class SupportLaw(ReportLaw):
    """The law of a report that supports some of the symbols 0…V, each e^ε times as likely to cause it as any other.

    Parameters
    ----------
    epsilon : float
        ε.
    read : callable
        Maps reports to their support, (n, V + 1), of 0 and 1; a row with another number is a report that no device
        sends.
    success : callable
        Maps the prior to the success of the best guess from one report, or to None if it is unknown.
    forgeries : callable
        Maps a cell to reports of one device, as `candidates` returns them.
    every : callable, optional
        Returns the supports of all reports, (outcomes, V + 1) of 0 and 1, and their encodings.
    """

    epsilon: float
    read: Callable[[Any], NDArray[Any]]
    success: Callable[[Floats], float | None]
    forgeries: Callable[[int], Sequence[Any]]
    every: Callable[[], tuple[NDArray[Any], Integers]] | None = None

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ε for every symbol a report supports and 0 for the others, (n, V + 1)."""
        support = self.read(reports[0])
        logs: Logs = np.where(support == 1, float(self.epsilon), 0.0)
        logs[((support != 0) & (support != 1)).any(axis=1)] = -np.inf
        return logs

    def guess_success(self, prior: Floats, queries: int) -> float | None:
        """Return the exact success from one report; None for several, whose joint supports have no short form."""
        return self.success(prior) if queries == 1 else None

    def outcomes(self) -> ReportOutcomes | None:
        """Return every report; None for hashing, whose reports are too many."""
        if self.every is None:
            return None
        support, encodings = self.every()
        weights = np.where(support.T == 1, np.exp(self.epsilon), 1.0)
        return ReportOutcomes(weights / weights.sum(axis=1, keepdims=True), (encodings,))

    def candidates(self, cell: int) -> Sequence[Any]:
        """Return a report that supports the cell and one that does not."""
        return self.forgeries(cell)


def subset_law(mechanism: SubsetSelection) -> SupportLaw:
    """Return the law of subset selection: a subset supports its members."""

    def success(prior: Floats) -> float:
        # P(S | t) is p/C(k−1, d−1) if t is in S, (1 − p)/C(k−1, d) if not. With symbols in descending order of the
        # prior, the best guess depends on S only by its first member j; C(k−j, d−1) subsets have this first member.
        k, d = mechanism.symbols, int(mechanism.size or 1)
        return _subset_success(np.sort(prior)[::-1], k, d, mechanism.true_yes, mechanism.epsilon)

    def every() -> tuple[Integers, Integers]:
        members = np.array(list(combinations(range(mechanism.symbols), int(mechanism.size or 1))))
        support = np.eye(mechanism.symbols, dtype=np.int64)[members].sum(axis=1)
        return support, support

    def forgeries(cell: int) -> Sequence[Any]:
        size = int(mechanism.size or 1)
        rows = np.zeros((2, mechanism.symbols), dtype=np.uint8)
        others = np.delete(np.arange(mechanism.symbols), cell)
        rows[0, others[:size]] = 1
        rows[1, cell] = 1
        rows[1, others[: size - 1]] = 1
        return [BitReports.from_dense(rows[i : i + 1]) for i in range(2)]

    return SupportLaw(mechanism.epsilon, lambda reports: _support(mechanism, reports), success, forgeries, every)


def _subset_success(prior: Floats, k: int, d: int, holds: float, epsilon: float) -> float:
    """Return Σ over subsets of the larger joint mass: the first member's or the most probable symbol's."""
    first = np.arange(1, k - d + 2)
    log_subsets = log_choose(k - first, d - 1) - log_choose(np.array(k - 1), d - 1)
    best = np.maximum(prior[: k - d + 1], math.exp(-epsilon) * prior[0])
    return min(math.fsum(holds * np.exp(log_subsets) * best), 1.0)


def hashing_law(mechanism: LocalHashing) -> SupportLaw:
    """Return the law of local hashing: a hash function and a bucket support the symbols hashed into the bucket."""

    def success(prior: Floats) -> float | None:
        # The buckets of two symbols are independent, the buckets of three are not: exact only for one cell and outside.
        if mechanism.cells > 1:
            return None
        p, most = mechanism.true_yes, float(prior.max())
        other = p * math.exp(-mechanism.epsilon)
        same = same_bucket(int(mechanism.buckets or 2))
        apart = math.fsum(max(p * q, other * (1.0 - q)) for q in prior.tolist()) + (1.0 - p - other) * most
        return same * most + (1.0 - same) * apart

    def forgeries(_: int) -> Sequence[Any]:
        # A hash function with a = 2⁶³ puts even symbols into bucket 0 and odd ones half the range away. So a report
        # supports every second cell, and inflates each of these as much as a report for that cell alone.
        seeds = np.array([[1 << 63, 0]], dtype=np.uint64)
        odd = (int(mechanism.buckets or 2) * (1 << 31)) >> 32
        return [HashedReports(seeds, np.array([place], dtype=np.int32)) for place in (0, odd)]

    return SupportLaw(mechanism.epsilon, lambda reports: _support(mechanism, reports), success, forgeries)


def _support(mechanism: SubsetSelection | LocalHashing, reports: Any) -> NDArray[Any]:
    """Return the support (n, V + 1) of reports or of their encodings."""
    if isinstance(reports, np.ndarray):
        return check_vectors(reports, mechanism.tally_shape)
    return mechanism.encode(reports)


def hadamard_law(mechanism: HadamardResponse) -> SupportLaw:
    """Return the law of Hadamard response: an output supports the symbols whose set contains it."""

    def read(reports: Any) -> NDArray[Any]:
        values = read_values(reports, outputs=mechanism.outputs)
        support = in_set(values[:, np.newaxis], np.arange(mechanism.cells + 1)).astype(np.int64)
        support[values == INVALID] = INVALID
        return support

    def success(prior: Floats) -> float:
        return _hadamard_success(prior, mechanism.outputs, mechanism.true_yes)

    def every() -> tuple[Mask, Integers]:
        outputs = np.arange(mechanism.outputs)
        support = in_set(outputs[:, np.newaxis], np.arange(mechanism.cells + 1))
        return support, np.eye(mechanism.outputs, dtype=np.int64)

    def forgeries(cell: int) -> Sequence[Any]:
        # Output 0 is in every set; the row's own lowest bit is outside its set.
        row = cell + 1
        return [np.array([value], dtype=np.int32) for value in (0, row & -row)]

    return SupportLaw(mechanism.epsilon, read, success, forgeries, every)


def _hadamard_success(prior: Floats, outputs: int, right: float) -> float:
    """Return Σ over outputs of the larger joint mass: of the most probable supported symbol, or of the most probable.

    Symbols are visited in descending order of the prior. Each linearly independent row halves the set of outputs that
    are in no visited symbol's set, so few outputs are left after log₂K of them.
    """
    order = np.argsort(-prior, kind="stable")
    left = np.arange(outputs)
    floor = (1.0 - right) * float(prior[order[0]])
    total = 0.0
    for symbol in order:
        if not left.size or right * prior[symbol] <= floor:
            break
        on = in_set(left, symbol)
        total += float(np.count_nonzero(on)) * right * float(prior[symbol])
        left = left[~on]
    return min((total + left.size * floor) * 2.0 / outputs, 1.0)


def in_set(outputs: Any, symbols: Any) -> Mask:
    """Return whether outputs are in the sets of symbols: an even number of bits in common with row symbol + 1."""
    common = np.asarray(outputs) & (np.asarray(symbols) + 1)
    for shift in (16, 8, 4, 2, 1):
        common = common ^ (common >> shift)
    return np.asarray((common & 1) == 0)


LAWS: Mapping[type, Callable[[Any, Sequence[int]], ReportLaw]] = {
    SamplingPrivacy: OwnValueLaw.of_sampling,
    KRandomizedResponse: lambda own, _: OwnValueLaw.of_values(np.full(own.symbols, own.false_yes), own.truthful),
    NoPrivacy: lambda own, _: OwnValueLaw.of_values(np.zeros(own.cells + 1), 1.0),
    UnaryEncoding: lambda own, _: CellLaw.of_bits(own.cells, own.bit),
    LongitudinalUnary: lambda own, _: MemoisedLaw.of_bits(own.cells, own.bit, bits=own.memoised_bits),
    BinarySamplingPrivacy: lambda own, rounds: CellLaw.of_protocol(own.cells, own.protocol, rounds, BitReports),
    ProtocolMechanism: lambda own, rounds: CellLaw.of_protocol(own.cells, own.protocol, rounds),
    SubsetSelection: lambda own, _: subset_law(own),
    LocalHashing: lambda own, _: hashing_law(own),
    HadamardResponse: lambda own, _: hadamard_law(own),
    DistributedLaplace: lambda own, _: NoiseLaw.of_shares(own),
}
"""Law of the reports of some rounds, by the mechanism's class or a base of it."""
