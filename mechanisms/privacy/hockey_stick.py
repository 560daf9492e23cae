"""δ(ε) of finite report distributions: the hockey-stick divergence, dominating pairs, composition and Bayes success."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, alone, compiled
from mechanisms.parameter import ParameterError, check_epsilon

Distribution: TypeAlias = Floats
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
    for i, later in enumerate(curves):
        for earlier in curves[:i]:
            gap = later.at(x) - earlier.at(x)
            gap[np.abs(gap) <= LEVEL * (later.terms_at(x) + earlier.terms_at(x))] = 0.0
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


def pair_of_curve(up: Floats, delta: Floats, down: Floats, reverse: Floats) -> Pair:
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


def pair_curve(p: Distribution, q: Distribution, x: Floats) -> Floats:
    """Return H_x(P‖Q) = Σ max(p − xq, 0) at each x ≥ 0, ascending; the tails of P and Q keep their digits."""
    heights = np.empty(len(x))
    return heights if _in_one_pass(p, q, x, heights) else _Curve(p, q).at(x)


@compiled
def _in_one_pass(p: Distribution, q: Distribution, x: Floats, heights: Floats) -> bool:
    """Write what `_Curve` gives, to the last bit, a fifth of its time; False where outputs are not in order of p/q."""
    first, last, step = 0, len(q), 1
    if p[0] * q[-1] < p[-1] * q[0]:
        first, last, step = last - 1, -1, -1
    for k in range(first, last, step):
        if q[k] <= 0.0 or (k != first and p[k] / q[k] >= p[k - step] / q[k - step]):
            return False
    # From the greatest ratio on, so that the sums over small tails are exact.
    p_above = q_above = 0.0
    for i in range(len(x) - 1, -1, -1):
        while first != last and p[first] / q[first] > x[i]:
            p_above += p[first]
            q_above += q[first]
            first += step
        heights[i] = max(p_above - x[i] * q_above, 0.0)
    return True


class _Curve:
    """The function h(x) = Σ max(p − xq, 0) of one pair."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        shared = q > 0
        ratios = p[shared] / q[shared]
        order = np.argsort(ratios)
        self.ratios: Floats = ratios[order]
        # Sums over the outputs whose ratio is above x, added from the largest ratio so that small tails stay exact.
        self._p_above = np.append(np.cumsum(p[shared][order][::-1])[::-1], 0.0)
        self._q_above = np.append(np.cumsum(q[shared][order][::-1])[::-1], 0.0)
        self.certain = float(p[~shared].sum())

    def at(self, x: Floats) -> Floats:
        """Return h at each x ≥ 0."""
        above = np.searchsorted(self.ratios, x, side="right")
        return np.asarray(self.certain + np.maximum(self._p_above[above] - x * self._q_above[above], 0.0))

    def terms_at(self, x: Floats) -> Floats:
        """Return the sum of the terms whose difference is h; the rounding error of h is proportional to this sum."""
        above = np.searchsorted(self.ratios, x, side="right")
        return np.asarray(self.certain + self._p_above[above] + x * self._q_above[above])

    def slope_at(self, x: Floats) -> Floats:
        """Return the slope of h at each x between its kinks."""
        return -self._q_above[np.searchsorted(self.ratios, x, side="right")]


def _rising(slope: Floats, length: Floats) -> Floats:
    """Return the slopes, made non-decreasing as the slopes of a convex function are.

    Where two curves have equal height up to rounding, the slope of the wrong curve may have been taken over a very
    short interval. The slopes around it correct it.
    """
    if (np.diff(slope) >= 0.0).all():
        return slope
    try:
        pool = alone("scipy.optimize", "_pava_pybind").pava
    except ImportError:  # another version of scipy may have it elsewhere
        return np.asarray(scipy.optimize.isotonic_regression(slope, weights=length).x)
    return np.asarray(pool(slope.copy(), length.copy(), np.full(len(slope) + 1, -1))[0])


def _distinct(x: Floats) -> Floats:
    """Return the points in ascending order, without those that differ from the previous one only by rounding."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-1.0) > SAME * x]


def _crossings(x: Floats, gap: Floats) -> Floats:
    """Return the points at which a function that is linear between the points x changes sign."""
    before, after = gap[:-1], gap[1:]
    cross = before * after < 0
    share = before[cross] / (before[cross] - after[cross])
    return x[:-1][cross] + share * np.diff(x)[cross]
