"""δ(ε) of finite report distributions: the hockey-stick divergence, dominating pairs, composition and Bayes success."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_epsilon, check_integer

Distribution: TypeAlias = NDArray[np.float64]
TOLERANCE = 1e-9


def check_distribution(field: str, masses: ArrayLike) -> Distribution:
    """Return masses as float64 whose last axis is a distribution: not negative, summing to 1 within 1e-9."""
    array = np.asarray(masses, dtype=np.float64)
    if array.ndim < 1 or array.size == 0:
        raise ParameterError(field, "must hold at least one output", array.shape)
    if not np.isfinite(array).all() or array.min() < 0:
        raise ParameterError(field, "must hold probabilities, none negative or NaN", array.min())
    sums = array.sum(axis=-1)
    if np.abs(sums - 1.0).max() > TOLERANCE:
        raise ParameterError(field, "must sum to 1 within 1e-9", float(sums.flat[np.abs(sums - 1.0).argmax()]))
    return array


def hockey_stick(p: ArrayLike, q: ArrayLike, *, epsilon: float) -> float:
    """Return Σ max(p − e^ε q, 0) over outputs: the least δ at this ε for P against Q, in this direction only.

    Parameters
    ----------
    p, q : (outputs,) float64
        Two distributions over the same outputs.
    epsilon : float
        At least 0; infinity gives the mass of P on outputs that Q never gives.

    Returns
    -------
    float

    Raises
    ------
    ParameterError
        If either is not a distribution, or their lengths differ.
    """
    p, q = check_distribution("p", p), check_distribution("q", q)
    if p.shape != q.shape or p.ndim != 1:
        raise ParameterError("q", f"must have the outputs of p, shape {p.shape}", q.shape)
    factor = math.exp(min(check_epsilon(epsilon), 709.0))
    return (
        math.fsum(np.maximum(np.where(q > 0, p - factor * q, p), 0.0)) if epsilon < math.inf else math.fsum(p[q == 0])
    )


def pair_delta(p: ArrayLike, q: ArrayLike, *, epsilon: float) -> float:
    """Return the larger hockey-stick divergence of the two directions of a pair."""
    return max(hockey_stick(p, q, epsilon=epsilon), hockey_stick(q, p, epsilon=epsilon))


def pair_epsilon(p: ArrayLike, q: ArrayLike) -> float:
    """Return the least ε at δ = 0 for a pair: the greatest |ln(p/q)|, infinite if only one can give some output."""
    p, q = check_distribution("p", p), check_distribution("q", q)
    if ((p > 0) != (q > 0)).any():
        return math.inf
    both = p > 0
    return float(np.abs(np.log(p[both]) - np.log(q[both])).max())


def matrix_delta(matrix: ArrayLike, *, epsilon: float) -> float:
    """Return the greatest δ over all ordered pairs of truths.

    Parameters
    ----------
    matrix : (truths, outputs) float64
        Row t is the distribution of the report of a device whose truth is t.
    epsilon : float
        At least 0.
    """
    rows = _check_matrix(matrix)
    return max(
        (hockey_stick(p, q, epsilon=epsilon) for i, p in enumerate(rows) for j, q in enumerate(rows) if i != j),
        default=0.0,
    )


def matrix_epsilon(matrix: ArrayLike) -> float:
    """Return the least ε at δ = 0 over all pairs of truths of a (truths, outputs) matrix."""
    rows = _check_matrix(matrix)
    return max((pair_epsilon(p, q) for i, p in enumerate(rows) for q in rows[:i]), default=0.0)


def _check_matrix(matrix: ArrayLike) -> Distribution:
    """Return rows of distributions."""
    rows = check_distribution("matrix", matrix)
    if rows.ndim != 2:
        raise ParameterError("matrix", "must be (truths, outputs)", rows.shape)
    return rows


Pair: TypeAlias = tuple[Distribution, Distribution]
# Likelihood ratios whose relative difference is below this are treated as equal.
SAME = 1e-13
# Heights whose difference is below this share of the terms they are computed from are treated as equal.
LEVEL = 1e-14


def dominating_pair(pairs: Sequence[Pair]) -> Pair:
    """Return the least pair that dominates all pairs: its H_x(P‖Q) is their maximum at every x = e^ε, ε of any sign.

    The pair that distinguishes two truths of a device may differ from query to query. Composing the dominating pair
    bounds every sequence of pairs (Zhu, Dong and Wang, Optimal Accounting of Differential Privacy via Characteristic
    Function). For one pair h(x) = Σ max(p − xq, 0) is convex and piecewise linear, with h(0) = 1. So is the maximum of
    several such functions, and its kinks are the likelihood ratios of the dominating pair.

    Parameters
    ----------
    pairs : sequence of (P, Q)
        Each two distributions over the same outputs.

    Returns
    -------
    p, q : (kinks + 1,) float64
        The last output has probability 0 under Q.
    """
    curves = [_Curve(check_distribution("p", p), check_distribution("q", q)) for p, q in pairs]
    x = _distinct(np.concatenate([[0.0], *(curve.ratios for curve in curves)]))
    for i, one in enumerate(curves):
        for other in curves[:i]:
            gap = one.at(x) - other.at(x)
            gap[np.abs(gap) <= LEVEL * (one.terms_at(x) + other.terms_at(x))] = 0.0
            x = _distinct(np.concatenate([x, _crossings(x, gap)]))
    # Between two kinks one pair attains the maximum throughout. Its own slope there is exact; a difference of heights
    # over a short interval would not be. Beyond the last kink every curve is flat.
    middle = (x[:-1] + x[1:]) / 2
    highest = np.argmax([curve.at(middle) for curve in curves], axis=0)
    slope = np.choose(highest, [curve.slope_at(middle) for curve in curves])
    slope = np.append(_rising(slope, np.diff(x)), 0.0)
    q = np.maximum(np.diff(slope, prepend=-1.0), 0.0)
    q /= q.sum()
    p = np.append(q * x, max(curve.certain for curve in curves))
    return p / p.sum(), np.append(q, 0.0)


def pair_of_curve(
    up: NDArray[np.float64], delta: NDArray[np.float64], down: NDArray[np.float64], reverse: NDArray[np.float64]
) -> Pair:
    """Return a pair whose H_x(P‖Q) connects given values of a convex curve: it is nowhere below the curve.

    A value of the reverse direction belongs to x below 1: H_{1/y}(P‖Q) = 1 − 1/y + H_y(Q‖P)/y. The part beyond 1 − 1/y
    is used, in which nothing cancels, so small masses of both tails are accurate. After the last point the curve is
    taken as flat: its height there is the probability of an output that Q never gives.

    Parameters
    ----------
    up : (points,) float64
        x = e^ε from 1, ascending.
    delta : (points,) float64
        H_x(P‖Q) at these, or an upper bound that is convex too.
    down : (points,) float64
        y from 1, ascending.
    reverse : (points,) float64
        H_y(Q‖P) at these; the last is the probability of an output that P never gives. Both directions have the same
        value at 1.

    Returns
    -------
    p, q : (outputs,) float64
        In ascending order of p/q. Rounding of the slopes is always upwards, so both sum to 1 or a little more.
    """
    x = 1.0 / down[::-1]
    below = np.append(reverse[-1], np.diff(reverse[::-1] * x) / np.diff(x))  # slopes of h(x) − (1 − x),
    above = np.append(np.diff(delta) / np.diff(up), 0.0)
    steps = np.concatenate([below[:1], np.diff(below), [above[0] + 1.0 - below[-1]], np.diff(above)])
    q = np.maximum(steps, 0.0)
    ratio = np.concatenate([[0.0], x[:-1], up])
    p, q = np.append(q * ratio, delta[-1]), np.append(q, 0.0)
    kept = (p > 0.0) | (q > 0.0)
    return p[kept], q[kept]


def pair_curve(p: Distribution, q: Distribution, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return H_x(P‖Q) = Σ max(p − xq, 0) at each x ≥ 0; the tails of P and Q keep their digits."""
    return _Curve(p, q).at(x)


class _Curve:
    """The function h(x) = Σ max(p − xq, 0) of one pair."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        shared = q > 0
        ratios = p[shared] / q[shared]
        order = np.argsort(ratios)
        self.ratios: NDArray[np.float64] = ratios[order]
        # Sums over the outputs whose ratio is above x, added from the largest ratio so that small tails stay exact.
        self._p_above = np.append(np.cumsum(p[shared][order][::-1])[::-1], 0.0)
        self._q_above = np.append(np.cumsum(q[shared][order][::-1])[::-1], 0.0)
        self.certain = float(p[~shared].sum())

    def at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h at each x ≥ 0."""
        above = np.searchsorted(self.ratios, x, side="right")
        height: NDArray[np.float64] = self.certain + np.maximum(self._p_above[above] - x * self._q_above[above], 0.0)
        return height

    def terms_at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the terms whose difference is h; the rounding error of h is proportional to this sum."""
        above = np.searchsorted(self.ratios, x, side="right")
        terms: NDArray[np.float64] = self.certain + self._p_above[above] + x * self._q_above[above]
        return terms

    def slope_at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of h at each x between its kinks."""
        return -self._q_above[np.searchsorted(self.ratios, x, side="right")]


def _rising(slope: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slopes, made non-decreasing as the slopes of a convex function are.

    Where two curves have equal height up to rounding, the slope of the wrong curve may have been taken over a very
    short interval. The slopes around it correct it.
    """
    if (np.diff(slope) >= 0.0).all():
        return slope
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - half a second, and hardly ever needed

    return isotonic_regression(slope, weights=length).x


def _distinct(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points in ascending order, without those that differ from the previous one only by rounding."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-1.0) > SAME * x]


def _crossings(x: NDArray[np.float64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points at which a function that is linear between the points x changes sign."""
    before, after = gap[:-1], gap[1:]
    cross = before * after < 0
    share = before[cross] / (before[cross] - after[cross])
    return x[:-1][cross] + share * np.diff(x)[cross]


# Greatest width of the loss grid, absolute and as a share of the largest loss, so that rounding inflates no small loss.
INTERVAL = 1e-4
INTERVAL_SHARE = 1 / 250
# Outputs less likely than e^−230 are treated as revealing the truth with certainty: the accountant divides by masses
# that must not be subnormal.
LEAST_LOG_MASS = -230.0
# If the probability that no query reveals the truth with certainty is below this, δ is 1: the accountant cannot
# process such a pair.
LEAST_UNCERTAIN = 1e-14


def composed_delta(p: ArrayLike, q: ArrayLike, *, queries: int, epsilon: float, interval: float | None = None) -> float:
    """Return an upper bound of δ(ε) of the pair (P^T, Q^T), the larger of both directions.

    It is the lesser of two bounds. The first composes the privacy loss distribution with losses rounded up to multiples
    of `interval`; it is at most the exact δ at ε − T·interval. The second is basic composition, T·δ(ε/T), which is
    lower where δ is very small.

    Parameters
    ----------
    p, q : (outputs,) float64
        Distributions of the output of one query under the two hypotheses; queries are independent.
    queries : int
        T, at least 1.
    epsilon : float
        At least 0; infinity gives the probability that some query reveals the truth with certainty.
    interval : float, optional
        Width of the loss grid; by default 1e-4, or 1/250 of the largest finite loss where that is less.

    Returns
    -------
    float
    """
    return ComposedDelta.from_pair(p, q, queries=queries, interval=interval)(epsilon)


@dataclass(frozen=True)
class ComposedDelta:
    """The bound of `composed_delta` as a function of ε, composed once and evaluated often.

    Parameters
    ----------
    p, q : tuple of float
        Distributions of the output of one query under the two hypotheses.
    queries : int
        T.
    interval : float
        Width of the loss grid.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    queries: int
    interval: float

    @classmethod
    def from_pair(cls, p: ArrayLike, q: ArrayLike, *, queries: int, interval: float | None = None) -> "ComposedDelta":
        """Check a pair and scale its masses to sum to 1 in the last bit; the accountant does not check the sum."""
        p, q = check_distribution("p", p), check_distribution("q", q)
        check_integer("queries", queries, at_least=1)
        if interval is None:
            both = (p > 0) & (q > 0)
            largest = float(np.abs(np.log(p[both] / q[both])).max(initial=0.0))
            interval = min(INTERVAL, INTERVAL_SHARE * largest) or INTERVAL
        return cls(tuple((p / p.sum()).tolist()), tuple((q / q.sum()).tolist()), queries, interval)

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        certain = max(self._certain(self.p, self.q), self._certain(self.q, self.p))
        if math.isinf(check_epsilon(epsilon)):
            return certain
        if certain > 1.0 - LEAST_UNCERTAIN:
            return 1.0
        return min(self.basic(epsilon), float(_loss_distribution(self).get_delta_for_epsilon(epsilon)))

    def basic(self, epsilon: float) -> float:
        """Return T·δ(ε/T), basic composition, at most 1."""
        return min(1.0, self.queries * pair_delta(self.p, self.q, epsilon=epsilon / self.queries))

    def _certain(self, p: tuple[float, ...], q: tuple[float, ...]) -> float:
        """Return the probability that at least one query gives an output that only P can give."""
        mass = math.fsum(a for a, b in zip(p, q, strict=True) if b == 0.0)
        return 1.0 if mass >= 1.0 else -math.expm1(self.queries * math.log1p(-mass))


@lru_cache(maxsize=64)  # each may hold megabytes
def _loss_distribution(composed: ComposedDelta) -> Any:
    """Return the loss distribution of all queries together, both directions."""
    # Imported here because the import takes two seconds and most runs need claims about one query only.
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions  # noqa: PLC0415 - two seconds, for claims over several queries only

    upper, lower = (_log_masses(masses) for masses in (composed.p, composed.q))
    single = from_two_probability_mass_functions(
        lower,
        upper,
        pessimistic_estimate=True,
        value_discretization_interval=composed.interval,
        log_mass_truncation_bound=LEAST_LOG_MASS,
        symmetric=False,  # its default computes one direction and presents it as both
    )
    return single.self_compose(composed.queries)


def _log_masses(masses: tuple[float, ...]) -> dict[int, float]:
    """Return ln(mass) by output, for the outputs of positive probability."""
    return {i: float(np.log(mass)) for i, mass in enumerate(masses) if mass > 0.0}


def best_guess_success(matrix: ArrayLike, prior: ArrayLike) -> float:
    """Return the probability that the best guess of the truth (Bayes) is right.

    It is Σ over outputs of max over truths t of q_t·P_t(output).

    Parameters
    ----------
    matrix : (truths, outputs) float64
        Row t is the distribution of the output for a device whose truth is t.
    prior : (truths,) float64
        q_t, the prior probability of each truth.

    Returns
    -------
    float
    """
    rows, q = check_distribution("matrix", matrix), check_distribution("prior", prior)
    if rows.ndim != 2 or q.shape != rows.shape[:1]:
        raise ParameterError("prior", "must have one probability a row of the matrix", q.shape)
    return float((q[:, np.newaxis] * rows).max(axis=0).sum())


def linked_guess_success(*, sampling: float, blank_zero: float, prior: ArrayLike) -> float:
    """Return the probability that the best guess from both reports of a Sampling Privacy device is right.

    This is for mechanisms without refresh. A device in a cell is identified when it is sampled. Any pair of reports
    (w, w) with w ≠ 0 leaves the prior unchanged. The pair (0, 0) comes from a blank 0 or from a sampled device outside
    every cell. The probability is

    π_s(1 − q_0) + (1 − π_s − π_0)·max q + max(q_0(π_0 + π_s), π_0·max_{u≠0} q_u).

    Parameters
    ----------
    sampling, blank_zero : float
        π_s and π_0: the probabilities that a device is sampled, and that it is not sampled and its blank is 0.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V, the prior probabilities.
    """
    q = check_distribution("prior", prior)
    if q.ndim != 1 or len(q) < 2:
        raise ParameterError("prior", "must hold outside and at least one cell", q.shape)
    zero = max(float(q[0]) * (blank_zero + sampling), blank_zero * float(q[1:].max()))
    return sampling * (1.0 - float(q[0])) + (1.0 - sampling - blank_zero) * float(q.max()) + zero
