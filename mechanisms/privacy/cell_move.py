"""Claims about a device that may be in either of two cells, from published differences."""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import window

# n·e^ε overflows a double for ε above this; there δ comes only from outputs that reveal the truth with certainty.
LARGEST_EPSILON = 600.0


def moved_differences_delta(
    *, crowd: int, other_crowd: int, sampling: float, epsilon: float, k: int | None = None
) -> float:
    """Return δ(ε) of the published differences for a device in one of two cells, the larger of both directions.

    With the device in the first cell the differences are (D, D') = (Bin(n, β), Bin(m − 1, β)); with the device in the
    second cell they are (Bin(n − 1, β), Bin(m, β)). n and m are the two crowds with the device included (derived from
    SP eqs 12-16; the paper states no δ). The likelihood ratio of (a, b) is

    n/((n − a)/(1 − β)) · (m − b)/(m(1 − β)) = n(m − b)/(m(n − a)),

    for every β. It rises with a and falls with b. So for each a the ratio exceeds e^ε for all b up to a bound, and δ is
    one sum over a of a mass times a distribution function, under both hypotheses. Each cell's distribution is cut to a
    window that leaves out at most 1e-17.

    Parameters
    ----------
    crowd, other_crowd : int
        n and m, devices in each cell, the device in question included; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    k : int, optional
        Differences below `k` are suppressed. By default no difference is suppressed.

    Returns
    -------
    float
        Accurate to 1e-15, and at least β to the power of the smaller crowd, if that is at least k.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    m = check_integer("other_crowd", other_crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    factor = math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON))
    least = 0 if k is None else check_integer("k", k, at_least=1)
    if max(n, m) < least:
        return 0.0  # nothing is ever published
    if beta == 1.0:
        return 1.0  # the differences are the counts themselves
    one, other = _Cell(n, beta, least), _Cell(m, beta, least)
    certain = max((beta**crowd for crowd in (n, m) if crowd >= least), default=0.0)
    return min(1.0, max(_direction(one, other, factor), _direction(other, one, factor), certain))


def _direction(entered: "_Cell", left: "_Cell", factor: float) -> float:
    """Return the hockey-stick divergence of the device in the first cell against the device in the second."""
    # Outputs of the second cell in ascending order: the lowest are the strongest evidence that the device is not there.
    told = np.concatenate([[0.0], np.cumsum(left.absent)])
    against = np.concatenate([[0.0], np.cumsum(left.present)])
    # present/absent of the first times absent/present of the second exceeds e^ε.
    bound = factor * entered.ratio
    up_to = np.searchsorted(-left.ratio, -bound, side="left")
    gain = entered.present * told[up_to] - factor * entered.absent * against[up_to]
    return float(np.maximum(gain, 0.0).sum())


class _Cell:
    """Masses of a cell's published difference with and without the device, and their falling ratio absent/present."""

    def __init__(self, n: int, beta: float, least: int) -> None:
        first, self.present = window(n, beta)
        a = np.arange(first, first + len(self.present), dtype=np.float64)
        # Bin(n − 1, β) at a is Bin(n, β) at a, times (n − a)/(n(1 − β)).
        self.ratio: NDArray[np.float64] = (n - a) / (n * (1.0 - beta))
        self.absent: NDArray[np.float64] = self.present * self.ratio
        below = max(min(least - first, len(a)), 0)
        if below > 0:
            self.present = np.append(self.present[:below].sum(), self.present[below:])
            self.absent = np.append(self.absent[:below].sum(), self.absent[below:])
            self.ratio = np.append(self.absent[0] / self.present[0], self.ratio[below:])
