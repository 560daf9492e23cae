"""Integer noise that each server adds to its published sums: discrete Gaussian, discrete Laplace or Pólya, and sums.

Canonne, Kamath and Steinke 2020, *The Discrete Gaussian for Differential Privacy*. The noise of several servers adds
up; a coalition knows the noise of its members, and only the noise of the others protects against it. Pólya noise
divides one discrete Laplace variable into the shares of h servers (Goryczka and Xiong 2017, *A Comprehensive Comparison
of Multiparty Secure Additions with Differential Privacy*): a geometric variable is the sum of h negative binomial ones
of shape 1/h, also called Pólya variables.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from mechanisms.compiled import Floats, compiled
from mechanisms.parameter import ParameterError, check_choice, check_integer, to_number

NoiseKind = Literal["discrete_gaussian", "discrete_laplace", "polya"]
# The least masses kept are e^−92, 1e-40, of the greatest.
RARITY = 92.0
LARGEST_SCALE = 1e3
# A recurrence starts where only e^−40 of its starting error is left at the outputs that are used.
SETTLED = 40.0


@dataclass(frozen=True)
class IntegerNoise:
    """Noise of one server on one count.

    P(k) is in proportion to e^(−k²/(2σ²)) or to e^(−|k|/b), or the noise is a share of discrete Laplace noise.

    Parameters
    ----------
    kind : {"discrete_gaussian", "discrete_laplace", "polya"}
    scale : float
        σ or b, in counts; above 0, at most 1,000.
    honest : int
        h, for Pólya noise: the number of servers whose shares add up to discrete Laplace noise. A share is the
        difference of two negative binomial variables of shape 1/h. 1 for other kinds.

    Raises
    ------
    ParameterError
        If the kind is unknown, the scale is out of range, or another kind than Pólya noise has an h above 1.
    """

    kind: NoiseKind
    scale: float
    honest: int = 1

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(NoiseKind))
        if not 0.0 < to_number(self.scale) <= LARGEST_SCALE:
            raise ParameterError("scale", f"must be above 0, at most {LARGEST_SCALE:g}", self.scale)
        check_integer("honest", self.honest, at_least=1)
        if self.kind != "polya" and self.honest > 1:
            raise ParameterError("honest", f"applies only to Pólya noise, not to {self.kind}", self.honest)

    def pure_epsilon(self, servers: int) -> float:
        """Return ε at δ = 0 of one count that changes by 1, hidden by the noise of some servers; infinite if Gaussian.

        It is 1/b of discrete Laplace noise, and of the shares of h servers or more. Of fewer it is more, and attained
        at the centre (`PartialNoise`).

        Parameters
        ----------
        servers : int
            At least 1.
        """
        if self.kind == "discrete_gaussian":
            return math.inf
        return PartialNoise(1.0 / self.scale, servers / self.honest).epsilon

    @property
    def variance(self) -> float:
        """Variance of the noise of one server."""
        return self._moment(2)

    @property
    def excess_kurtosis(self) -> float:
        """Excess kurtosis of the noise of one server; 0 where it is 0 with probability 1."""
        return self._moment(4) / self.variance**2 - 3.0 if self.variance > 0.0 else 0.0

    def _moment(self, order: int) -> float:
        masses = np.array(self.masses(1))
        values = np.arange(len(masses), dtype=np.float64) - len(masses) // 2
        return float(masses @ values**order)

    def masses(self, servers: int) -> tuple[float, ...]:
        """Return the masses of the sum of the noise of some servers, symmetric around 0.

        Masses below 1e-40 of the greatest are left out.

        Parameters
        ----------
        servers : int
            At least 1.
        """
        return _masses(self, check_integer("servers", servers, at_least=1))


@lru_cache(maxsize=64)
def _masses(noise: IntegerNoise, servers: int) -> tuple[float, ...]:
    if noise.kind != "discrete_gaussian":
        # A sum of Laplace variables, or of shares of one, is a difference of two negative binomial variables.
        shape = servers / noise.honest
        wide = max(shape, 1.0)
        reach = math.ceil(noise.scale * (RARITY + 2.0 * wide * math.log1p(RARITY / wide) + wide)) + 1
        masses, _ = PartialNoise(1.0 / noise.scale, shape).masses(reach)
        whole = np.concatenate([masses[:0:-1], masses])
    elif servers > 1:
        # Direct convolution adds positive terms only, so the tails keep their digits.
        half = np.array(_masses(noise, servers // 2))
        whole = np.convolve(half, half)
        if servers % 2:
            whole = np.convolve(whole, np.array(_masses(noise, 1)))
    else:
        reach = math.ceil(noise.scale * math.sqrt(2.0 * RARITY))
        k = np.arange(-reach, reach + 1, dtype=np.float64)
        whole = np.exp(-((k / noise.scale) ** 2) / 2.0)
    middle = len(whole) // 2
    reach = int(np.append(whole[middle:] > math.exp(-RARITY) * whole[middle], False).argmin())
    whole = whole[middle - reach + 1 : middle + reach]
    return tuple((whole / whole.sum()).tolist())


@dataclass(frozen=True)
class PartialNoise:
    """The difference of two negative binomial variables NB(r, 1 − α): a whole discrete Laplace variable at r = 1.

    Its distribution f is symmetric. From its generating function [(1 − α)²/((1 − αz)(1 − α/z))]^r follows
    α(k + 1 − r)f(k + 1) = k(1 + α²)f(k) − α(k − 1 + r)f(k − 1).

    Parameters
    ----------
    decay : float
        −ln α, the ε of whole noise (r = 1) for a change of one count by 1.
    share : float
        r, the amount of noise as a multiple of whole noise.
    """

    decay: float
    share: float

    @property
    def epsilon(self) -> float:
        """ε for a change of one count by 1.

        For r < 1 a negative binomial is a mixture of geometric distributions, so f is log-convex on k ≥ 0 and
        f(k − 1)/f(k) is greatest at k = 1. For r ≥ 1 it is log-concave, and the ratio rises to 1/α.
        """
        return self.decay if self.share >= 1.0 else -math.log(mass_ratios(self, 1)[0][0])

    def masses(self, count: int) -> tuple[Floats, float]:
        """Return f(0)…f(count − 1), (count,) float64, and the mass of one tail beyond them, for r < 1."""
        ratios, first, last = mass_ratios(self, count)
        law = np.cumprod(np.append(1.0, ratios[: count - 1])) / (1.0 + 2.0 * first)
        return law, float(law[-1] * last)


@lru_cache(maxsize=256)
def mass_ratios(noise: PartialNoise, count: int) -> tuple[Floats, float, float]:
    """Return f(k + 1)/f(k) for k < count, Σ_{j > 0} f(j)/f(0) and Σ_{j ≥ count} f(j)/f(count − 1)."""
    ratios = np.empty(count)
    first, last = _run_back(noise.decay, noise.share, count + math.ceil(SETTLED / noise.decay), ratios)
    ratios.flags.writeable = False
    return ratios, first, last


@compiled
def _run_back(decay: float, share: float, start: int, ratios: Floats) -> tuple[float, float]:
    """Run the recurrence backwards from a point where f falls by the factor α a step.

    f is the decaying solution, so rounding errors would swamp it in a forward recurrence. Backwards, the error of the
    starting value shrinks by α² a step. The recurrence is for 1 − f(k + 1)/f(k), in which nothing cancels however near
    to 1 α is.
    """
    alpha, gap = math.exp(-decay), -math.expm1(-decay)
    fall, beyond = gap, alpha / gap
    last = beyond
    for k in range(start, 0, -1):
        # `fall` is 1 − f(k + 1)/f(k) and `beyond` is Σ_{j > k} f(j)/f(k); the step below takes both to k − 1.
        lost, kept = k * gap * gap + alpha * (k + 1 - share) * fall, alpha * (k - 1 + share)
        fall, ratio = lost / (lost + kept), kept / (lost + kept)
        beyond = ratio * (1.0 + beyond)
        if k <= ratios.size:
            ratios[k - 1] = ratio
        if k == ratios.size:
            last = beyond
    return beyond, last
