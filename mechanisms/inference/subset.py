"""Likelihood of reports that support a set of symbols, the true one e^ε times as likely as any other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mechanisms.inference.report_law import INVALID, Logs, check_vectors, read_values
from mechanisms.local.common.hash_family import same_bucket
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.subset_selection import SubsetSelection


@dataclass(frozen=True, eq=False)
class SupportLaw:
    """What is seen supports some of the symbols 0…V, and is e^ε times as likely from each of those as from any other.

    Parameters
    ----------
    epsilon : float
        ε.
    read : callable
        The support, (n, V + 1), of 0 and 1; a row with anything else is what no device sends.
    success : callable
        The success of the best guess from one report, given the prior; None where that is unknown.
    """

    epsilon: float
    read: Callable[[Any], NDArray[Any]]
    success: Callable[[NDArray[np.float64]], float | None]

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ε for every symbol a report supports and 0 for the others, (n, V + 1)."""
        support = self.read(reports[0])
        logs: Logs = np.where(support == 1, float(self.epsilon), 0.0)
        logs[((support != 0) & (support != 1)).any(axis=1)] = -np.inf
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the exact success from one report; None for several, whose supports have no common law."""
        return self.success(prior) if queries == 1 else None


def subset_law(mechanism: SubsetSelection) -> SupportLaw:
    """Return the law of subset selection: a subset supports what it holds."""

    def success(prior: NDArray[np.float64]) -> float:
        # P(S | t) is p/C(k−1, d−1) if S holds t, (1 − p)/C(k−1, d) if not. With symbols in descending prior, what
        # counts of S is its first member j: C(k−j, d−1) subsets have it.
        k, d = mechanism.symbols, int(mechanism.size or 1)
        return _subset_success(np.sort(prior)[::-1], k, d, mechanism.true_yes, mechanism.epsilon)

    return SupportLaw(mechanism.epsilon, lambda reports: _support(mechanism, reports), success)


def _subset_success(prior: NDArray[np.float64], k: int, d: int, holds: float, epsilon: float) -> float:
    """Return Σ over subsets of the best of its first member and of the likeliest symbol of all."""
    first = np.arange(1, k - d + 2)
    log_subsets = _log_choose(k - first, d - 1) - _log_choose(k - 1, d - 1)
    best = np.maximum(prior[: k - d + 1], math.exp(-epsilon) * prior[0])
    return min(math.fsum(holds * np.exp(log_subsets) * best), 1.0)


def _log_choose(n: Any, k: Any) -> Any:
    """Return ln C(n, k)."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def hashing_law(mechanism: LocalHashing) -> SupportLaw:
    """Return the law of local hashing: function and bucket support the symbols that fall into the bucket."""

    def success(prior: NDArray[np.float64]) -> float | None:
        # Buckets of two symbols are independent, those of three are not: only one cell and outside are exact.
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
    """Return the law of Hadamard response: an output supports the symbols whose set it is in."""

    def read(reports: Any) -> NDArray[Any]:
        values = read_values(reports, outputs=mechanism.outputs)
        support = in_set(np.maximum(values, 0)[:, np.newaxis], np.arange(mechanism.cells + 1)).astype(np.int64)
        support[values == INVALID] = INVALID
        return support

    def success(prior: NDArray[np.float64]) -> float:
        return _hadamard_success(prior, mechanism.outputs, mechanism.true_yes)

    return SupportLaw(mechanism.epsilon, read, success)


def _hadamard_success(prior: NDArray[np.float64], outputs: int, right: float) -> float:
    """Return Σ over outputs of the best of the likeliest symbol of its side and of the likeliest of all.

    Rows are visited in descending prior: each independent one halves the outputs still on no visited row's side, so
    few are left after log₂K of them.
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
    """Return whether outputs are in the sets of symbols: bits common with row symbol + 1 are even in number."""
    common = np.asarray(outputs) & (np.asarray(symbols) + 1)
    for shift in (16, 8, 4, 2, 1):
        common = common ^ (common >> shift)
    found: NDArray[np.bool_] = (common & 1) == 0
    return found
