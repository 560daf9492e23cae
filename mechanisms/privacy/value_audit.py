"""Audit of a randomiser of values: an ε from below, and the bias of an estimate, from its reports alone."""

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from mechanisms.parameter import ParameterError
from mechanisms.privacy.audit import PairAudit

# Bins of real numbers, and most different numbers that are outcomes of their own.
BINS = 64
# Groups of devices whose estimates are compared with the truth.
GROUPS = 50
# The category of every report that is not a number: NaNs are equal to no other, not even to themselves.
NOT_A_NUMBER = object()


@dataclass(frozen=True, slots=True)
class PairBound:
    """The pair of values with the greatest ε from below.

    Parameters
    ----------
    epsilon : float
        Lower bound of ε over all pairs together.
    value, other : int
        The pair: the event is more likely for `value`.
    outcomes : int
        Different outcomes among all reports.
    """

    epsilon: float
    value: int
    other: int
    outcomes: int


@dataclass(frozen=True, eq=False)
class Bias:
    """Mean error of an estimate and its interval, for each value.

    Parameters
    ----------
    mean, lower, upper : (values,) float64
        The intervals hold together with the audit's confidence, as far as a mean of many errors is normal.
    unit : str
        What the numbers count.
    """

    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    unit: str

    @property
    def found(self) -> bool:
        """Whether some interval excludes 0, or a mean is not a finite number."""
        return not bool(((self.lower <= 0.0) & (self.upper >= 0.0)).all())


def epsilon_from_below(reports: Sequence[Sequence[Any]], *, delta: float = 0.0, alpha: float) -> PairBound:
    """Return a lower bound of the ε of a randomiser at this δ, wrong with probability at most alpha.

    For each ordered pair of values an event is chosen on the first half of the reports and tested on the second half
    (`PairAudit`), with alpha divided by the number of pairs. The bound proves no privacy: events that were not chosen,
    or are too rare for these trials, may distinguish more.

    Parameters
    ----------
    reports : sequence over values of sequences
        Independent reports of each value; as many of each. Integers, strings, bytes, tuples and arrays are categories.
        Finite real numbers, if many differ, are sorted into bins with equal shares of the first halves. NaN, ∞ and −∞
        are one category each.
    delta : float
        δ that the randomiser is allowed.
    alpha : float
        Greatest probability that the bound is too high.

    Raises
    ------
    ParameterError
        If there are fewer than two values, or a report is of a type that has no categories.
    """
    if len(reports) < 2:
        raise ParameterError("reports", "must be of at least two values", len(reports))
    first, second = _counts(reports)
    pairs = list(permutations(range(len(reports)), 2))
    best = PairBound(0.0, 0, 1, first.shape[1])
    for value, other in pairs:
        audit = PairAudit(first[value], first[other], second[value], second[other])
        epsilon = audit.epsilon_at_least(alpha=alpha / len(pairs), delta=delta)
        if epsilon > best.epsilon:
            best = PairBound(epsilon, value, other, first.shape[1])
    return best


def _counts(reports: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how often each outcome was reported of each value, (values, outcomes), in each half."""
    keys: list[list[Hashable]] = [[_key(report) for report in row] for row in reports]
    if len({key for row in keys for key in row if _is_real(key)}) > BINS:
        start = [key for row in keys for key in row[: len(row) // 2] if _is_real(key)]
        # Edges are observed numbers: interpolated ones may overflow.
        edges = np.unique(np.quantile(np.array(start), np.arange(1, BINS) / BINS, method="inverted_cdf")).tolist()
        keys = [[(True, bisect_left(edges, key)) if _is_real(key) else (False, key) for key in row] for row in keys]
    place = {key: i for i, key in enumerate(dict.fromkeys(key for row in keys for key in row))}
    codes, outcomes = [np.array([place[key] for key in row]) for row in keys], len(place)
    halves = [(row[: len(row) // 2], row[len(row) // 2 :]) for row in codes]
    first, second = (np.array([np.bincount(pair[i], minlength=outcomes) for pair in halves]) for i in (0, 1))
    return first, second


def _key(report: Any) -> Hashable:
    """Return the category of a report; a real number stays a number."""
    if isinstance(report, np.ndarray) and report.ndim:
        whole = report.dtype.kind in "biu"
        return report.shape, report.tobytes() if whole else tuple(_key(part) for part in report.ravel().tolist())
    if isinstance(report, np.generic | np.ndarray):
        report = report.item()
    if isinstance(report, list | tuple):
        return tuple(_key(part) for part in report)
    if isinstance(report, set | frozenset):
        return frozenset(_key(part) for part in report)
    if isinstance(report, Number) and report != report:  # noqa: PLR0124 - true of NaN alone
        return NOT_A_NUMBER
    if not isinstance(report, Hashable):
        raise ParameterError("report", "must be a number, a string, bytes, a tuple or an array", type(report).__name__)
    return report


def _is_real(key: Hashable) -> bool:
    """Return whether a category is a finite real number, which bins may hold."""
    return isinstance(key, float) and math.isfinite(key)


def estimate_bias(reports: Sequence[Sequence[Any]], estimate: Callable[[list[Any]], Any], *, alpha: float) -> Bias:
    """Return the bias of an estimate of how many devices have each value, as a share of all devices.

    The reports are divided into groups in which value v has a share proportional to v; value 0 has none, because
    estimates that are kept non-negative are biased most there. The interval is Student's over the groups.

    Parameters
    ----------
    reports : sequence over values of sequences
        Independent reports of each value; as many of each, at least `GROUPS` times the number of values.
    estimate : callable
        Estimated number of devices of each value, (values,), from a list of reports.
    alpha : float
        Greatest probability that some interval does not hold the bias.

    Raises
    ------
    ParameterError
        If there are too few reports, or the estimate is of another shape or not finite.
    """
    values = len(reports)
    each = [len(reports[0]) // GROUPS * v // (values - 1) for v in range(values)]
    if not all(each[1:]):
        raise ParameterError("trials", f"must be at least {GROUPS * (values - 1)} for a bias", len(reports[0]))
    errors = np.empty((GROUPS, values))
    for group in range(GROUPS):
        mixed = [report for row, n in zip(reports, each, strict=True) for report in row[group * n : (group + 1) * n]]
        estimated = np.asarray(estimate(mixed), dtype=np.float64)
        if estimated.shape != (values,) or not np.isfinite(estimated).all():
            raise ParameterError("estimator", f"must return {values} finite numbers", estimated)
        errors[group] = (estimated - each) / sum(each)
    return _bias(errors, alpha=alpha / values, unit="share of the devices")


def report_bias(reports: Sequence[Sequence[float]], *, alpha: float) -> Bias:
    """Return the bias of reports that are numbers, each an estimate of its value; NaN where one is not finite."""
    errors = np.array(reports, dtype=np.float64).T - np.arange(len(reports))
    return _bias(errors, alpha=alpha / len(reports), unit="value")


def _bias(errors: NDArray[np.float64], *, alpha: float, unit: str) -> Bias:
    """Return the mean of (draws, values) errors with Student's interval."""
    draws = len(errors)
    errors = np.where(np.isfinite(errors).all(axis=0), errors, np.nan)
    mean = errors.mean(axis=0)
    reach = -stdtrit(draws - 1, alpha / 2.0) * errors.std(axis=0, ddof=1) / math.sqrt(draws)
    return Bias(mean, mean - reach, mean + reach, unit)
