"""Likelihood of reports that support a set of symbols, the true one e^ε times as likely as any other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.report_law import INVALID, Logs, ReportLaw, ReportOutcomes, check_vectors, read_values
from mechanisms.local.common.intervals import log_choose
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.local_hashing import LocalHashing, same_bucket
from mechanisms.local.subset_selection import SubsetSelection


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
    every : callable, optional
        Returns the supports of all reports, (outcomes, V + 1) of 0 and 1, and their encodings.
    """

    epsilon: float
    read: Callable[[Any], NDArray[Any]]
    success: Callable[[NDArray[np.float64]], float | None]
    every: Callable[[], tuple[NDArray[Any], NDArray[np.int64]]] | None = None

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ε for every symbol a report supports and 0 for the others, (n, V + 1)."""
        support = self.read(reports[0])
        logs: Logs = np.where(support == 1, float(self.epsilon), 0.0)
        logs[((support != 0) & (support != 1)).any(axis=1)] = -np.inf
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the exact success from one report; None for several, whose joint supports have no short form."""
        return self.success(prior) if queries == 1 else None

    def outcomes(self) -> ReportOutcomes | None:
        """Return every report; None for hashing, whose reports are too many."""
        if self.every is None:
            return None
        support, encodings = self.every()
        weights = np.where(support.T == 1, np.exp(self.epsilon), 1.0)
        return ReportOutcomes(weights / weights.sum(axis=1, keepdims=True), (encodings,))


def subset_law(mechanism: SubsetSelection) -> SupportLaw:
    """Return the law of subset selection: a subset supports its members."""

    def success(prior: NDArray[np.float64]) -> float:
        # P(S | t) is p/C(k−1, d−1) if t is in S, (1 − p)/C(k−1, d) if not. With symbols in descending order of the
        # prior, the best guess depends on S only by its first member j; C(k−j, d−1) subsets have this first member.
        k, d = mechanism.symbols, int(mechanism.size or 1)
        return _subset_success(np.sort(prior)[::-1], k, d, mechanism.true_yes, mechanism.epsilon)

    def every() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        members = np.array(list(combinations(range(mechanism.symbols), int(mechanism.size or 1))))
        support = np.eye(mechanism.symbols, dtype=np.int64)[members].sum(axis=1)
        return support, support

    return SupportLaw(mechanism.epsilon, lambda reports: _support(mechanism, reports), success, every)


def _subset_success(prior: NDArray[np.float64], k: int, d: int, holds: float, epsilon: float) -> float:
    """Return Σ over subsets of the larger joint mass: that of the first member or of the most probable symbol."""
    first = np.arange(1, k - d + 2)
    log_subsets = log_choose(k - first, d - 1) - log_choose(np.array(k - 1), d - 1)
    best = np.maximum(prior[: k - d + 1], math.exp(-epsilon) * prior[0])
    return min(math.fsum(holds * np.exp(log_subsets) * best), 1.0)


def hashing_law(mechanism: LocalHashing) -> SupportLaw:
    """Return the law of local hashing: a hash function and a bucket support the symbols hashed into the bucket."""

    def success(prior: NDArray[np.float64]) -> float | None:
        # The buckets of two symbols are independent, those of three are not: exact only for one cell and outside.
        if mechanism.cells > 1:
            return None
        p, most = mechanism.true_yes, float(prior.max())
        other = p * math.exp(-mechanism.epsilon)
        same = same_bucket(int(mechanism.buckets or 2))
        apart = math.fsum(max(p * q, other * (1.0 - q)) for q in prior.tolist()) + (1.0 - p - other) * most
        return same * most + (1.0 - same) * apart

    return SupportLaw(mechanism.epsilon, lambda reports: _support(mechanism, reports), success)


def _support(mechanism: SubsetSelection | LocalHashing, reports: Any) -> NDArray[Any]:
    """Return the support (n, V + 1) of reports or of their encodings."""
    if isinstance(reports, np.ndarray):
        return check_vectors(reports, mechanism.tally_shape)
    return mechanism.encode(reports)


def hadamard_law(mechanism: HadamardResponse) -> SupportLaw:
    """Return the law of Hadamard response: an output supports the symbols whose set contains it."""

    def read(reports: Any) -> NDArray[Any]:
        values = read_values(reports, outputs=mechanism.outputs)
        support = in_set(np.maximum(values, 0)[:, np.newaxis], np.arange(mechanism.cells + 1)).astype(np.int64)
        support[values == INVALID] = INVALID
        return support

    def success(prior: NDArray[np.float64]) -> float:
        return _hadamard_success(prior, mechanism.outputs, mechanism.true_yes)

    def every() -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        outputs = np.arange(mechanism.outputs)
        support = in_set(outputs[:, np.newaxis], np.arange(mechanism.cells + 1))
        return support, np.eye(mechanism.outputs, dtype=np.int64)

    return SupportLaw(mechanism.epsilon, read, success, every)


def _hadamard_success(prior: NDArray[np.float64], outputs: int, right: float) -> float:
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


def in_set(outputs: Any, symbols: Any) -> NDArray[np.bool_]:
    """Return whether outputs are in the sets of symbols: an even number of bits in common with row symbol + 1."""
    common = np.asarray(outputs) & (np.asarray(symbols) + 1)
    for shift in (16, 8, 4, 2, 1):
        common = common ^ (common >> shift)
    return np.asarray((common & 1) == 0)
