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

from mechanisms.parameter import ParameterError, check_choice, check_integer, to_number

NoiseKind = Literal["discrete_gaussian", "discrete_laplace"]
# The least masses kept, as a share of the greatest: of one server, and of a sum by Fourier transforms, which loses
# the digits of smaller ones.
LEAST_SHARE, LEAST_SHARE_OF_SUM = 1e-40, 1e-17
# Products of two masses that are summed one by one, in a tenth of a second.
MOST_PRODUCTS = 10**8
LARGEST_SCALE = 1e6


@dataclass(frozen=True)
class IntegerNoise:
    """Noise of one server on one count: P(k) in proportion to e^(−k²/(2σ²)), or to e^(−|k|/b).

    Parameters
    ----------
    kind : {"discrete_gaussian", "discrete_laplace"}
    scale : float
        σ or b, in counts; above 0, at most 10⁶.

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

        Masses below 1e-40 of the greatest are left out, or, of wide sums, below 1e-17.

        Parameters
        ----------
        servers : int
            At least 1.
        """
        return _masses(self.kind, self.scale, check_integer("servers", servers, at_least=1))

    def draw(self, size: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the noise of one server on some counts, (size,) int64, by inversion of its distribution.

        The masses are in double precision, so probabilities differ from those stated by about 1e-16.
        """
        masses = np.array(self.masses(1))
        return np.searchsorted(np.cumsum(masses), rng.random(size), side="right").clip(max=len(masses) - 1) - (
            len(masses) // 2
        )


@lru_cache(maxsize=64)
def _masses(kind: NoiseKind, scale: float, servers: int) -> tuple[float, ...]:
    rarity = -math.log(LEAST_SHARE)
    reach = math.ceil(scale * (rarity if kind == "discrete_laplace" else math.sqrt(2.0 * rarity)))
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    one = np.exp(-np.abs(k) / scale) if kind == "discrete_laplace" else np.exp(-((k / scale) ** 2) / 2.0)
    one = one[one > LEAST_SHARE]
    one /= one.sum()
    total = one
    for _ in range(servers - 1):
        if len(total) * len(one) <= MOST_PRODUCTS:
            total = np.convolve(total, one)
            least = LEAST_SHARE
        else:
            from scipy.signal import fftconvolve  # noqa: PLC0415 - half a second, for wide noise only

            total = np.maximum(fftconvolve(total, one), 0.0)
            least = LEAST_SHARE_OF_SUM
        total = (total + total[::-1]) / 2.0
        middle = len(total) // 2
        reach = int(np.append(total[middle:] > least * total[middle], False).argmin())
        total = total[middle - reach + 1 : middle + reach]
        total /= total.sum()
    return tuple(total.tolist())
