"""Audit: lower bounds of ε and δ that samples prove with stated confidence, also of randomisers of values."""

import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Integers, Mask, betainccinv, betaincinv, stdtrit
from mechanisms.parameter import ParameterError, check_counts, check_epsilon
from mechanisms.privacy.claim import LARGEST_EPSILON


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> tuple[Floats, Floats]:
    """Return exact bounds of a probability from the successes of independent trials (Clopper and Pearson 1934).

    Parameters
    ----------
    successes, trials : (…) int
        0 ≤ successes ≤ trials; with 0 trials the bounds are 0 and 1.
    alpha : float
        Greatest probability that each end, taken alone, lies on the wrong side. Together the ends form an interval
        of confidence 1 − 2·alpha.

    Returns
    -------
    lower, upper : (…) float64

    Raises
    ------
    ParameterError
        If a count is not an integer or out of range, or alpha is not in (0, ½].
    """
    if not 0.0 < alpha <= 0.5:
        raise ParameterError("alpha", "must be above 0 and at most 1/2", alpha)
    hits, of = np.broadcast_arrays(
        check_counts("successes", successes, signed=False), check_counts("trials", trials, signed=False)
    )
    if (hits > of).any():
        raise ParameterError("successes", "must not exceed trials", int(hits[hits > of].flat[0]))
    lower = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), of - hits + 1, alpha))
    upper = np.where(hits == of, 1.0, betainccinv(hits + 1, np.maximum(of - hits, 1), alpha))
    return lower, upper


def epsilon_lower_bound(
    *, hits_p: int, trials_p: int, hits_q: int, trials_q: int, alpha: float, delta: float = 0.0
) -> float:
    """Return a lower bound of ε from the frequency of one event, wrong with probability at most alpha.

    Any (ε', δ)-private mechanism with ε' below the returned ε gives such frequencies with probability at most alpha.
    The event must be chosen before these trials. By definition P[E] ≤ e^ε·Q[E] + δ; P[E] is bounded from below and
    Q[E] from above, each with error probability alpha/2.

    Parameters
    ----------
    hits_p, trials_p, hits_q, trials_q : int
        How often the event was seen, and in how many independent trials, under P and under Q.
    alpha : float
        Greatest probability that the bound is too high.
    delta : float
        δ that the mechanism is allowed.

    Returns
    -------
    float
        At least 0.
    """
    low, high = _bounds(hits_p, trials_p, hits_q, trials_q, alpha)
    return max(math.log((low - delta) / high), 0.0) if low > delta else 0.0


def delta_lower_bound(*, hits_p: int, trials_p: int, hits_q: int, trials_q: int, epsilon: float, alpha: float) -> float:
    """Return a lower bound of δ at this ε from the frequency of one event, wrong with probability at most alpha.

    Any (ε, δ')-private mechanism with δ' below the returned δ gives such frequencies with probability at most alpha.

    Parameters
    ----------
    hits_p, trials_p, hits_q, trials_q : int
        How often an event, chosen before these trials, was seen, and in how many independent trials, under P and
        under Q.
    epsilon : float
        At least 0, finite.
    alpha : float
        Greatest probability that the bound is too high.

    Returns
    -------
    float
        At least 0.
    """
    low, high = _bounds(hits_p, trials_p, hits_q, trials_q, alpha)
    return max(low - math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON)) * high, 0.0)


def _bounds(hits_p: int, trials_p: int, hits_q: int, trials_q: int, alpha: float) -> tuple[float, float]:
    """Return a lower bound of P[E] and an upper bound of Q[E] that both hold with probability 1 − alpha."""
    low, _ = clopper_pearson(hits_p, trials_p, alpha=alpha / 2)
    _, high = clopper_pearson(hits_q, trials_q, alpha=alpha / 2)
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Witness:
    """An event that occurred under one truth and in no trial under another.

    Parameters
    ----------
    hits : int
        How often the event occurred under the first truth.
    trials : int
        Number of trials under the first truth.
    epsilon : float
        Lower bound of ε that these numbers prove.
    """

    hits: int
    trials: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class PairAudit:
    """Counts of outcomes under two truths, in two halves: the first half selects an event, the second tests it.

    Selecting and testing on the same outcomes would find an event in any noise. The bounds are for one direction: how
    much more often the event occurs under P than under Q.

    Parameters
    ----------
    choosing_p, choosing_q, testing_p, testing_q : (outcomes,) int64
        How often each outcome was seen under P and under Q, in the first and in the second half.
    """

    choosing_p: Integers
    choosing_q: Integers
    testing_p: Integers
    testing_q: Integers

    def delta_at_least(self, epsilon: float, *, alpha: float) -> float:
        """Return a lower bound of δ(ε), wrong with probability at most alpha."""
        share_p = self.choosing_p / max(int(self.choosing_p.sum()), 1)
        share_q = self.choosing_q / max(int(self.choosing_q.sum()), 1)
        event = share_p > math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON)) * share_q
        return delta_lower_bound(**self._hits(event), epsilon=epsilon, alpha=alpha)

    def epsilon_at_least(self, *, alpha: float, delta: float = 0.0) -> float:
        """Return a lower bound of ε at this δ, wrong with probability at most alpha.

        The event consists of the outcomes with the greatest ratios of P to Q, as many as give the greatest bound in the
        first half.
        """
        order = np.argsort(-(self.choosing_p + 0.5) / (self.choosing_q + 0.5), kind="stable")
        p, q = np.cumsum(self.choosing_p[order]), np.cumsum(self.choosing_q[order])
        low, _ = clopper_pearson(p, p[-1], alpha=alpha / 2)
        _, high = clopper_pearson(q, q[-1], alpha=alpha / 2)
        event = np.zeros(len(order), dtype=np.bool_)
        event[order[: int(np.argmax((low - delta) / high)) + 1]] = True
        return epsilon_lower_bound(**self._hits(event), alpha=alpha, delta=delta)

    def find_witness(self, *, least_hits: int, alpha: float) -> Witness | None:
        """Return an event seen at least `least_hits` times under P and never under Q, or None if no event is found.

        Candidates are the most frequent outcomes that occurred only under P in the first half: all of them, the most
        frequent half, the most frequent quarter and so on. `least_hits` applies to the second half; Q must give none of
        the outcomes in either half. Of several such events the one with the most hits is returned.
        """
        only = np.flatnonzero((self.choosing_q == 0) & (self.choosing_p > 0))
        only = only[np.argsort(-self.choosing_p[only], kind="stable")]
        best, size = None, len(only)
        while size:
            chosen = only[:size]
            hits = int(self.testing_p[chosen].sum())
            if hits >= least_hits and not self.testing_q[chosen].any() and (best is None or hits > best.hits):
                trials, others = int(self.testing_p.sum()), int(self.testing_q.sum())
                epsilon = epsilon_lower_bound(hits_p=hits, trials_p=trials, hits_q=0, trials_q=others, alpha=alpha)
                best = Witness(hits, trials, epsilon)
            size //= 2
        return best

    def _hits(self, event: Mask) -> dict[str, int]:
        """Return the hits and trials of an event in the second half, under P and under Q."""
        return {
            "hits_p": int(self.testing_p[event].sum()),
            "trials_p": int(self.testing_p.sum()),
            "hits_q": int(self.testing_q[event].sum()),
            "trials_q": int(self.testing_q.sum()),
        }


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

    mean: Floats
    lower: Floats
    upper: Floats
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


def _counts(reports: Sequence[Sequence[Any]]) -> tuple[Integers, Integers]:
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


def _bias(errors: Floats, *, alpha: float, unit: str) -> Bias:
    """Return the mean of (draws, values) errors with Student's interval."""
    draws = len(errors)
    errors = np.where(np.isfinite(errors).all(axis=0), errors, np.nan)
    mean = errors.mean(axis=0)
    reach = -stdtrit(draws - 1, alpha / 2.0) * errors.std(axis=0, ddof=1) / math.sqrt(draws)
    return Bias(mean, mean - reach, mean + reach, unit)
