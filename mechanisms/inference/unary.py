"""Likelihood of reports with independent evidence about each cell: bits, binary queries and noisy one-hot vectors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mechanisms.inference.report_law import (
    INVALID,
    LARGEST_LEVELS,
    Logs,
    ReportLaw,
    ReportOutcomes,
    check_vectors,
    expected_best,
    read_answers,
)
from mechanisms.local.distributed_laplace import DistributedLaplace, SparseVectors
from mechanisms.local.unary_encoding import BitProbabilities
from mechanisms.privacy.composition import at_least_once
from mechanisms.privacy.integer_noise import PartialNoise
from mechanisms.privacy.memoised_bits import MemoisedBits
from mechanisms.protocols.protocol import BinaryQuery, Protocol

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
    """

    cells: int
    outputs: tuple[int, ...]
    yes: NDArray[np.float64]
    no: NDArray[np.float64]

    @classmethod
    def of_bits(cls, cells: int, bit: BitProbabilities, *more: Any) -> Self:
        """Return the law of one round of bits."""
        yes, no = np.array([bit.true_no, bit.true_yes]), np.array([1.0 - bit.false_yes, bit.false_yes])
        return cls(cells, (2,), yes, no, *more)

    @classmethod
    def of_protocol(cls, cells: int, protocol: Protocol, rounds: Sequence[int]) -> "CellLaw":
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
        return cls(cells, outputs, laws[0], np.where(alike, laws[0], laws[1]))

    @property
    def log_ratio(self) -> NDArray[np.float64]:
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

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
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


@dataclass(frozen=True, eq=False)
class MemoisedLaw(CellLaw):
    """The law of bits that are kept between queries and flipped anew in each.

    Given the kept bits, the reported ones are independent, so only the number of ones among the T bits about a cell
    matters.

    Parameters
    ----------
    bits : MemoisedBits
    """

    bits: MemoisedBits

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

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the exact success from T queries, whose kept bits are the same."""
        if queries == 1:
            return super().guess_success(prior, queries)
        yes, no = self.bits.laws(queries)
        possible = (no > 0.0) & (yes > 0.0)
        return expected_best(prior, np.log(yes[possible]) - np.log(no[possible]), np.log(no[possible]))


def compositions(total: int, parts: int) -> NDArray[np.int64]:
    """Return all compositions of `total` into this number of non-negative parts, in order, (ways, parts) int64."""
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, total + parts - 1)))
    return np.diff(edges, axis=1) - 1


def log_multinomial(counts: NDArray[np.int64]) -> NDArray[np.float64]:
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

    @classmethod
    def of_shares(cls, mechanism: DistributedLaplace) -> "NoiseLaw":
        """Return the law of one device's vector."""
        return cls(mechanism.cells, PartialNoise(mechanism.epsilon / mechanism.sensitivity, 1.0 / mechanism.devices))

    def log_ratio(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
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

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
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
