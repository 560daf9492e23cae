"""Thresholding with histogram encoding (THE): Laplace noise on every entry, and only whether it passes a threshold."""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.unary import UnaryEncoding
from mechanisms.parameter import ParameterError


@dataclass(frozen=True, kw_only=True)
class ThresholdHistogram(UnaryEncoding):
    """Each entry of the one-hot vector gets Laplace noise of scale 2/ε and reports whether it exceeds θ.

    Wang et al. 2017 sec 4.2. What is sent is bits, independent and equal in law to a unary encoding with
    p = 1 − e^(ε(θ − 1)/2)/2 and q = e^(−εθ/2)/2, and they are tossed as such. Being a part of what the noisy
    entries tell, they tell less than ε: a claim is of the bits.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of the noisy entries, for a move between cells; in 1e-6…50.
    threshold : float, optional
        θ, in 0…1; by default the one that makes the variance of a rare cell least.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Check the parameters and fill in the threshold."""
        super().__post_init__()
        epsilon = check_budget("epsilon", self.epsilon)
        threshold = best_threshold(epsilon) if self.threshold is None else self.threshold
        if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number):
            raise ParameterError("threshold", "must be a number", threshold)
        if not 0.0 <= threshold <= 1.0:
            raise ParameterError("threshold", "must be in 0..1", threshold)
        object.__setattr__(self, "threshold", float(threshold))

    @property
    def true_yes(self) -> float:
        """p, probability that 1 and its noise exceed θ."""
        return 1.0 - self.true_no

    @property
    def true_no(self) -> float:
        """1 − p = e^(ε(θ − 1)/2)/2."""
        return math.exp(self.epsilon * (self._threshold - 1.0) / 2) / 2

    @property
    def false_yes(self) -> float:
        """Return q = e^(−εθ/2)/2, probability that noise alone exceeds θ."""
        return math.exp(-self.epsilon * self._threshold / 2) / 2

    @property
    def apart(self) -> float:
        """Return p − q = 1 − e^(ε(θ − 1)/2)/2 − e^(−εθ/2)/2."""
        return (
            -(math.expm1(self.epsilon * (self._threshold - 1.0) / 2) + math.expm1(-self.epsilon * self._threshold / 2))
            / 2
        )

    @property
    def _threshold(self) -> float:
        """θ."""
        return 0.0 if self.threshold is None else self.threshold

    @property
    def _source(self) -> str:
        return f"Wang et al. 2017 sec 4.2, THE with θ = {self._threshold:.6g}"


def best_threshold(epsilon: float) -> float:
    """Return the θ that makes q(1 − q)/(p − q)² least, in closed form, where Wang et al. 2017 search.

    With z = e^(εθ/2) and c = e^(−ε/2) it is (2z − 1)/(2z − cz² − 1)²; its derivative vanishes where
    3cz² − 2(1 + c)z + 1 = 0, and the larger root is the minimum. It lies between ½ and 1.
    """
    c = math.exp(-epsilon / 2)
    z = ((1.0 + c) + math.sqrt(1.0 - c + c * c)) / (3.0 * c)
    return min(1.0, 2.0 * math.log(z) / epsilon)
