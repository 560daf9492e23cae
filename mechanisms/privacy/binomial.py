"""Binomial probabilities as claims need them: tails not as one minus something, and windows that hold all but 1e-17."""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# Outcomes and numbers of trials, as integers or as doubles that are integers.
Whole: TypeAlias = int | NDArray[np.int64] | NDArray[np.float64]
# Mass that a window leaves out, at most.
LEFT_OUT = 1e-17


def mass_at(k: Whole, n: Whole, p: float) -> NDArray[np.float64]:
    """Return P[Bin(n, p) = k], float64 of the common shape of k and n."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for a few views only

    masses: NDArray[np.float64] = np.asarray(binom.pmf(k, n, p), dtype=np.float64)
    return masses


def mass_above(k: Whole, n: Whole, p: float) -> NDArray[np.float64]:
    """Return P[Bin(n, p) > k]."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for a few views only

    masses: NDArray[np.float64] = np.asarray(binom.sf(k, n, p), dtype=np.float64)
    return masses


def mass_up_to(k: Whole, n: Whole, p: float) -> NDArray[np.float64]:
    """Return P[Bin(n, p) ≤ k]."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for a few views only

    masses: NDArray[np.float64] = np.asarray(binom.cdf(k, n, p), dtype=np.float64)
    return masses


def window(n: int, p: float) -> tuple[int, NDArray[np.float64]]:
    """Return the first value of a window and P[Bin(n, p) = k] of each k in it, which sum to 1.

    Bernstein's inequality, P[|X − np| ≥ t] ≤ 2·exp(−t²/(2(np(1−p) + t/3))), says how wide it must be to leave
    out no more than 1e-17: about 9 standard deviations either way. Each mass is the one beside it times their
    ratio, from the likeliest value outwards, so nothing as large as n! is ever formed.

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
    up = np.arange(mode, last, dtype=np.float64)
    down = np.arange(mode, first, -1, dtype=np.float64)
    odds = p / (1.0 - p)
    above = np.cumprod((n - up) / (up + 1.0) * odds)
    below = np.cumprod(down / (n - down + 1.0) / odds)
    masses = np.concatenate([below[::-1], [1.0], above])
    return first, masses / masses.sum()
