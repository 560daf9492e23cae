"""Integer noise that each server adds to its published sums: discrete Gaussian and discrete Laplace, and their sums.

Canonne, Kamath and Steinke 2020, *The Discrete Gaussian for Differential Privacy*. The noise of several servers adds
up; a coalition knows the noise of its members, and only that of the others protects against it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mechanisms.parameter import ParameterError, check_choice, check_integer, to_number

NoiseKind = Literal["discrete_gaussian", "discrete_laplace"]
# The least masses kept are e^−92, 1e-40, of the greatest.
RARITY = 92.0
LARGEST_SCALE = 1e3


@dataclass(frozen=True)
class IntegerNoise:
    """Noise of one server on one count: P(k) in proportion to e^(−k²/(2σ²)), or to e^(−|k|/b).

    Parameters
    ----------
    kind : {"discrete_gaussian", "discrete_laplace"}
    scale : float
        σ or b, in counts; above 0, at most 1,000.

    Raises
    ------
    ParameterError
        If the kind is unknown or the scale is out of range.
    """

    kind: NoiseKind
    scale: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_choice("kind", self.kind, get_args(NoiseKind))
        if not 0.0 < to_number(self.scale) <= LARGEST_SCALE:
            raise ParameterError("scale", f"must be above 0, at most {LARGEST_SCALE:g}", self.scale)

    @property
    def pure_epsilon(self) -> float:
        """ε at δ = 0 of one count that changes by 1: 1/b of Laplace noise, infinite of Gaussian noise."""
        return 1.0 / self.scale if self.kind == "discrete_laplace" else math.inf

    @property
    def variance(self) -> float:
        """Variance of the noise of one server."""
        masses = np.array(self.masses(1))
        values = np.arange(len(masses)) - len(masses) // 2
        return float(masses @ values**2)

    def masses(self, servers: int) -> tuple[float, ...]:
        """Return the masses of the sum of the noise of some servers, symmetric around 0.

        Masses below 1e-40 of the greatest are left out.

        Parameters
        ----------
        servers : int
            At least 1.
        """
        return _masses(self.kind, self.scale, check_integer("servers", servers, at_least=1))


@lru_cache(maxsize=64)
def _masses(kind: NoiseKind, scale: float, servers: int) -> tuple[float, ...]:
    if kind == "discrete_laplace":
        whole = _laplace_sum(scale, servers)
    elif servers > 1:
        # Direct convolution adds positive terms only, so the tails keep their digits.
        half = np.array(_masses(kind, scale, servers // 2))
        whole = np.convolve(half, half)
        if servers % 2:
            whole = np.convolve(whole, np.array(_masses(kind, scale, 1)))
    else:
        reach = math.ceil(scale * math.sqrt(2.0 * RARITY))
        k = np.arange(-reach, reach + 1, dtype=np.float64)
        whole = np.exp(-((k / scale) ** 2) / 2.0)
    middle = len(whole) // 2
    reach = int(np.append(whole[middle:] > math.exp(-RARITY) * whole[middle], False).argmin())
    whole = whole[middle - reach + 1 : middle + reach]
    return tuple((whole / whole.sum()).tolist())


def _laplace_sum(scale: float, servers: int) -> NDArray[np.float64]:
    """Return the masses of the sum of h discrete Laplace variables, a difference of two negative binomial ones.

    With a = e^(−1/b) and x = a², P(k) is in proportion to a^k·C(h − 1 + k, k)·₂F₁(h, h + k; k + 1; x) for k ≥ 0. By
    Pfaff's transformation the last factor is in proportion to a sum of h positive terms, which loses no digits.
    """
    h = servers
    reach = math.ceil(scale * (RARITY + 2.0 * h * math.log1p(RARITY / h) + h)) + 1
    k = np.arange(reach + 1, dtype=np.float64)
    odds = -math.log(math.expm1(2.0 / scale))  # ln(x/(1 − x))
    term, total = np.zeros_like(k), np.zeros_like(k)
    for i in range(h - 1):
        term = term + odds + math.log((h + i) * (h - 1 - i) / (i + 1)) - np.log(k + 1.0 + i)
        total = np.logaddexp(total, term)
    total += -k / scale + gammaln(h + k) - gammaln(k + 1.0)
    masses = np.exp(total - total.max())
    return np.concatenate([masses[:0:-1], masses])
