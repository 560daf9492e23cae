"""Binomial probabilities with accurate tails, and windows that hold all but 1e-30 of the mass."""

import math
from typing import TypeAlias

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask, betainc, betaincc, compiled, gammaln, xlog1py

# Outcomes and numbers of trials, as integers or as doubles with integer values.
Whole: TypeAlias = int | Integers | Floats
# Greatest mass that a window leaves out, so that a δ of 1e-18 keeps twelve digits.
LEFT_OUT = 1e-30
# Tails below this are computed by `_with_deep`: the library's incomplete beta function loses its digits from about
# 1e-275 on. For 250 successes of 286 at p = .05 it gives 6e-297 instead of 6.4e-281.
DEEP = 1e-200


def mass_at(k: Whole, n: Whole, p: float) -> Floats:
    """Return P[Bin(n, p) = k], float64 of the common shape of k and n.

    The relative error is about 1e-12 even for millions of trials: factorials are replaced by the error of Stirling's
    formula, and powers by deviances (Loader, Fast and accurate computation of binomial probabilities, 2000).
    """
    successes, trials = _same_shape(k, n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        errors = _stirling_error(trials) - _stirling_error(successes) - _stirling_error(trials - successes)
        inside = errors - _deviance(successes, trials * p) - _deviance(trials - successes, trials * (1.0 - p))
        masses = np.exp(inside) * np.sqrt(trials / (2.0 * np.pi * successes * (trials - successes)))
        masses = np.where(
            successes == 0.0, np.exp(xlog1py(trials, -p)), np.where(successes == trials, np.power(p, trials), masses)
        )
        masses = np.where((successes < 0.0) | (successes > trials), 0.0, masses)
    if p in {0.0, 1.0}:
        return np.asarray(successes == trials * p, dtype=np.float64)
    return np.asarray(masses, dtype=np.float64)


def _same_shape(k: Whole, n: Whole) -> tuple[Floats, Floats]:
    successes, trials = np.broadcast_arrays(np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64))
    return successes, trials


def _stirling_error(n: Floats) -> Floats:
    """Return ln n! − ln(√(2πn)·(n/e)^n): by gammaln for small n, above by the first terms of its series."""
    square, few = n * n, n < 16.0
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / n
    errors = np.array(series)
    n = n[few]
    errors[few] = gammaln(n + 1.0) - (n + 0.5) * np.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    return errors


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x·ln(x/mean) + mean − x, by ln(1 + (mean − x)/x) where the logarithm would lose its digits."""
    relative = (mean - x) / x
    near = np.abs(relative) < 0.5
    return np.where(near, x * (relative - np.log1p(np.where(near, relative, 0.0))), x * np.log(x / mean) + mean - x)


def mass_above(k: Whole, n: Whole, p: float) -> Floats:
    """Return P[Bin(n, p) > k]."""
    tail: Floats = _tail(k, n, p, betainc, at_end=0.0)
    deep = (tail < DEEP) & (np.asarray(k) < n) & (np.asarray(k) + 1.0 > np.asarray(n) * p) & (0.0 < p < 1.0)
    if not deep.any():
        return tail
    return _with_deep(tail, deep, least=np.asarray(k) + 1.0, n=n, p=p, masses=mass_at(np.asarray(k) + 1.0, n, p))


def mass_up_to(k: Whole, n: Whole, p: float) -> Floats:
    """Return P[Bin(n, p) ≤ k]."""
    tail: Floats = _tail(k, n, p, betaincc, at_end=1.0)
    deep = (tail < DEEP) & (np.asarray(k) >= 0) & (np.asarray(k) < np.asarray(n) * p) & (0.0 < p < 1.0)
    if not deep.any():
        return tail
    # At most k successes are at least n − k failures.
    return _with_deep(tail, deep, least=np.asarray(n) - np.asarray(k, float), n=n, p=1.0 - p, masses=mass_at(k, n, p))


def _tail(k: Whole, n: Whole, p: float, beta: np.ufunc, *, at_end: float) -> Floats:
    """Return an incomplete beta function of (k + 1, n − k) at p; for k ≥ n `at_end`, and for k < 0 its complement."""
    successes, trials = _same_shape(k, n)
    inside = (successes >= 0.0) & (successes < trials)
    values = beta(np.where(inside, successes, 0.0) + 1.0, np.where(inside, trials - successes, 1.0), p)
    return np.asarray(np.where(inside, values, np.where(successes < 0.0, 1.0 - at_end, at_end)), dtype=np.float64)


def _with_deep(tail: Floats, deep: Mask, *, least: Whole, n: Whole, p: float, masses: Floats) -> Floats:
    """Return the tails, with those marked in `deep` computed as P[Bin(n, p) ≥ least] from the `masses` at `least`.

    With a = least and b = n − a + 1 the tail is mass · (1 − p) / (1 + d₁/(1 + d₂/(1 + …))), the continued fraction of
    the incomplete beta function (Abramowitz and Stegun 26.5.8), evaluated by Lentz's method. Beyond the mean every
    term of the fraction is of moderate size; the tail is small because the mass is small.
    """
    start = np.broadcast_to(np.asarray(least, dtype=np.float64), tail.shape)[deep]
    rest = np.broadcast_to(np.asarray(n, dtype=np.float64), tail.shape)[deep] - start + 1.0
    tiny = 1e-290
    fraction, c, d = np.ones_like(start), np.ones_like(start), np.zeros_like(start)
    term = 1
    while True:
        m = term // 2
        if term % 2:
            step = -(start + m) * (start + rest + m) * p / ((start + 2 * m) * (start + 2 * m + 1.0))
        else:
            step = m * (rest - m) * p / ((start + 2 * m - 1.0) * (start + 2 * m))
        d = 1.0 + step * d
        d = 1.0 / np.where(np.abs(d) < tiny, tiny, d)
        c = 1.0 + step / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        fraction = fraction * c * d
        if (np.abs(c * d - 1.0) < 1e-15).all():
            break
        term += 1
    result = np.array(tail)
    result[deep] = np.broadcast_to(masses, tail.shape)[deep] * (1.0 - p) / fraction
    return result


def run_starts(masses: Floats, runs: int) -> Integers:
    """Return the first index of each of at most so many runs of neighbouring values.

    Half of them begin at equal distances, for where only the tails matter, and half where the sum of the masses' roots
    has grown by equal shares, for where most of the mass does.
    """
    if len(masses) <= runs:
        return np.arange(len(masses))
    half, shares = max(runs // 2, 1), np.cumsum(np.sqrt(masses))
    by_mass = np.searchsorted(shares, shares[-1] / half * np.arange(half))
    return np.unique(np.append(np.arange(0, len(masses), -(-len(masses) // half)), by_mass))


def window(n: int, p: float) -> tuple[int, Floats]:
    """Return the first value of a window and P[Bin(n, p) = k] for each k in it; the masses sum to 1.

    Bernstein's inequality, P[|X − np| ≥ t] ≤ 2·exp(−t²/(2(np(1−p) + t/3))), gives the width that leaves out at most
    1e-30: about 12 standard deviations on either side. Each mass is computed from its neighbour by their ratio, from
    the most likely value outwards, so no number as large as n! occurs.

    Parameters
    ----------
    n : int
        At least 0.
    p : float
        In [0, 1].

    Returns
    -------
    first : int
    masses : (width,) float64
    """
    if n == 0 or p in {0.0, 1.0}:
        return round(n * p), np.ones(1)
    rarity = math.log(2.0 / LEFT_OUT)
    reach = rarity / 3.0 + math.sqrt(rarity * rarity / 9.0 + 2.0 * n * p * (1.0 - p) * rarity)
    first, last = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    mode = min(max(math.floor((n + 1) * p), first), last)
    masses = _relative(float(n), p / (1.0 - p), first, mode, last)
    masses /= masses.sum()
    return first, masses


@compiled
def _relative(n: float, odds: float, first: int, mode: int, last: int) -> Floats:
    """Return the masses at first…last, relative to that at the mode."""
    masses = np.ones(last - first + 1)
    for k in range(mode, last):
        masses[k + 1 - first] = masses[k - first] * ((n - k) / (k + 1.0) * odds)
    for k in range(mode, first, -1):
        masses[k - 1 - first] = masses[k - first] * (k / (n - k + 1.0) / odds)
    return masses
