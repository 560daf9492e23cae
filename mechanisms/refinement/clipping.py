"""Clip: counts outside what is possible are put at its end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from mechanisms.local.estimate import Estimate
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.refinement.refined_estimate import Properties, RefinedEstimate, unrefined_interval

CLIP = Properties(
    refinement="clip", biased=True, non_negative=True, total=None, ordered=True, never_worse="in each cell"
)


def clip(estimate: Estimate, *, asked: int) -> RefinedEstimate:
    """Put counts below 0 at 0 and counts above the devices asked at those.

    **Never worse.** The truth Y is in [0, N]. A count x in it stays. One below 0 goes to 0, and 0 − Y is nearer to
    0 than x − Y, since x < 0 ≤ Y; above N likewise. So |clip(x) − Y| ≤ |x − Y| in every cell, whatever the coins
    were, and every error measure that grows with |error| (RMSE, mean absolute error, the largest error) is at most
    what it was. The bias is paid for by that: an estimate that was right on average is now too high on average
    where it could fall below 0 (`clipped_normal`, `clipped_law`).

    **Interval.** The unrefined interval, which lies within [0, N] already: it holds the truth as often as before.

    Parameters
    ----------
    estimate : Estimate
        Unbiased.
    asked : int
        Devices asked, N.

    Returns
    -------
    RefinedEstimate
        Of unknown standard error (at most the unrefined one, as clipping brings no two values further apart).
    """
    asked = check_integer("asked", asked, at_least=0)
    return RefinedEstimate(
        np.clip(estimate.count, 0.0, float(asked)),
        np.full(len(estimate), np.nan),
        estimate.lower,
        estimate.upper,
        unrefined_interval(estimate.interval),
        CLIP,
    )


@dataclass(frozen=True, eq=False)
class ClippedMoments:
    """The bias and the root mean square error of clipped estimates, each of one shape."""

    bias: NDArray[np.float64]
    rmse: NDArray[np.float64]


def clipped_normal(truth: ArrayLike, std_error: ArrayLike, *, asked: float) -> ClippedMoments:
    """Return the moments of an estimate of normal law after `clip`, exactly.

    With X ~ N(Y, s²), a = −Y/s, b = (N − Y)/s, φ and Φ the standard normal density and distribution, the error
    of the clipped estimate is s·Z for Z in (a, b), −Y below and N − Y above, so

    bias = s(φ(a) − φ(b)) − Y·Φ(a) + (N − Y)·Φ(−b),
    mean square = s²(Φ(b) − Φ(a) + aφ(a) − bφ(b)) + Y²·Φ(a) + (N − Y)²·Φ(−b).

    An estimate from counts is not normal: near an occupancy of 0 this is an approximation, and for Sampling Privacy
    on an ideal channel, which never estimates below 0, it is a wrong one. `clipped_law` is exact for every law.

    Parameters
    ----------
    truth, std_error : (…) float
        Y in [0, N] and s ≥ 0.
    asked : float
        N.

    Raises
    ------
    ParameterError
        If a truth is impossible or a standard error negative or not finite.
    """
    y, s = np.broadcast_arrays(np.asarray(truth, dtype=np.float64), np.asarray(std_error, dtype=np.float64))
    if not ((y >= 0) & (y <= asked)).all():
        raise ParameterError("truth", f"must be in 0..{asked:g}", y.tolist())
    if not ((s >= 0) & np.isfinite(s)).all():
        raise ParameterError("std_error", "must be finite and not negative", s.tolist())
    scale = np.where(s > 0, s, 1.0)
    a, b = -y / scale, (asked - y) / scale
    density_a, density_b = _density(a), _density(b)
    below, above = ndtr(a), ndtr(-b)
    bias = s * (density_a - density_b) - y * below + (asked - y) * above
    square = s * s * (1.0 - above - below + a * density_a - b * density_b) + y * y * below + (asked - y) ** 2 * above
    known = s == 0
    return ClippedMoments(np.where(known, 0.0, bias), np.sqrt(np.where(known, 0.0, np.maximum(square, 0.0))))


def clipped_law(values: ArrayLike, masses: ArrayLike, *, truth: float, asked: float) -> ClippedMoments:
    """Return the moments of an estimate of any discrete law after `clip`, exactly.

    Parameters
    ----------
    values, masses : (outcomes,) float
        What may be estimated, and with what probability.
    truth, asked : float
        Y and N.

    Raises
    ------
    ParameterError
        If the masses do not sum to 1.
    """
    x, p = np.asarray(values, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    if not abs(float(p.sum()) - 1.0) <= 1e-9:
        raise ParameterError("masses", "must sum to 1", float(p.sum()))
    error = np.clip(x, 0.0, asked) - truth
    return ClippedMoments(np.asarray(p @ error), np.sqrt(np.asarray(p @ np.square(error))))


def _density(z: NDArray[np.float64]) -> NDArray[np.float64]:
    density: NDArray[np.float64] = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return density
