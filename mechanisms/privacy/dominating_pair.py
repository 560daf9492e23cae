"""One pair of distributions at least as telling as each of several, for composing over queries."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.hockey_stick import Distribution, check_distribution

Pair: TypeAlias = tuple[Distribution, Distribution]
# Likelihood ratios closer than this, relatively, are one.
SAME = 1e-13
# Heights closer than this, relatively to what they are differences of, are one.
LEVEL = 1e-14


def dominating_pair(pairs: Sequence[Pair]) -> Pair:
    """Return the least pair that dominates all of these: H_x(P‖Q) is their maximum at every x = e^ε, ε of any sign.

    A device's truths may change which pair tells at each query; composing the dominating pair bounds them all
    (Zhu, Dong and Wang, Optimal Accounting of Differential Privacy via Characteristic Function). A pair's
    h(x) = Σ max(p − xq, 0) is convex and piecewise linear, from h(0) = 1; so is the maximum of several, and
    its kinks are the likelihood ratios of the pair it belongs to.

    Parameters
    ----------
    pairs : sequence of (P, Q)
        Each two distributions over the same outputs.

    Returns
    -------
    p, q : (kinks + 1,) float64
        The last output is one Q never makes.
    """
    curves = [_Curve(check_distribution("p", p), check_distribution("q", q)) for p, q in pairs]
    x = _distinct(np.concatenate([[0.0], *(curve.ratios for curve in curves)]))
    for i, one in enumerate(curves):
        for other in curves[:i]:
            gap = one.at(x) - other.at(x)
            gap[np.abs(gap) <= LEVEL * (one.terms_at(x) + other.terms_at(x))] = 0.0
            x = _distinct(np.concatenate([x, _crossings(x, gap)]))
    # Between two kinks one pair is the maximum throughout; its own slope there is exact, which differences of heights
    # over a short interval would not be. Beyond the last kink every curve is flat.
    middle = (x[:-1] + x[1:]) / 2
    highest = np.argmax([curve.at(middle) for curve in curves], axis=0)
    slope = np.choose(highest, [curve.slope_at(middle) for curve in curves])
    slope = np.append(_rising(slope, np.diff(x)), 0.0)
    q = np.maximum(np.diff(slope, prepend=-1.0), 0.0)
    q /= q.sum()
    p = np.append(q * x, max(curve.certain for curve in curves))
    return p / p.sum(), np.append(q, 0.0)


class _Curve:
    """h(x) = Σ max(p − xq, 0) of one pair."""

    def __init__(self, p: Distribution, q: Distribution) -> None:
        shared = q > 0
        ratios = p[shared] / q[shared]
        order = np.argsort(ratios)
        self.ratios: NDArray[np.float64] = ratios[order]
        # Sums over the outputs whose ratio is above x, from the far end so that small tails stay exact.
        self._p_above = np.append(np.cumsum(p[shared][order][::-1])[::-1], 0.0)
        self._q_above = np.append(np.cumsum(q[shared][order][::-1])[::-1], 0.0)
        self.certain = float(p[~shared].sum())

    def at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return h at each x ≥ 0."""
        above = np.searchsorted(self.ratios, x, side="right")
        height: NDArray[np.float64] = self.certain + np.maximum(self._p_above[above] - x * self._q_above[above], 0.0)
        return height

    def terms_at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the terms whose difference h is: rounding is in proportion to that."""
        above = np.searchsorted(self.ratios, x, side="right")
        terms: NDArray[np.float64] = self.certain + self._p_above[above] + x * self._q_above[above]
        return terms

    def slope_at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slope of h at each x between its kinks."""
        slope: NDArray[np.float64] = -self._q_above[np.searchsorted(self.ratios, x, side="right")]
        return slope


def _rising(slope: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slopes of a convex function, of which those over hardly any length may be another curve's.

    Where two curves are as high up to rounding, the wrong one may have been taken; the slopes around say so.
    """
    if (np.diff(slope) >= 0.0).all():
        return slope
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - half a second, and hardly ever needed

    rising: NDArray[np.float64] = isotonic_regression(slope, weights=length).x
    return rising


def _distinct(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points in order, without those that differ only by rounding from the one before."""
    x = np.unique(x)
    return x[np.diff(x, prepend=-1.0) > SAME * x]


def _crossings(x: NDArray[np.float64], gap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where a function, linear between the points x, changes sign between them."""
    before, after = gap[:-1], gap[1:]
    cross = before * after < 0
    share = before[cross] / (before[cross] - after[cross])
    crossings: NDArray[np.float64] = x[:-1][cross] + share * np.diff(x)[cross]
    return crossings
