"""Randomized response per cell with two coins."""

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.declared import Declared, declaration
from mechanisms.local.unary_encoding import BitProbabilities, UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(UnaryEncoding):
    """Two coins per cell: answer truthfully if the first is heads, else as the second shows (SP sec 3.3, π_s = 1).

    p₁ = π_1 + (1 − π_1)π_2 is the probability of a Yes about the device's own cell, and p₀ = (1 − π_1)π_2 that of a Yes
    about any other cell. So it is a unary encoding with p = p₁ and q = p₀: the estimate is (C − p₀N)/(p₁ − p₀) for the
    Yes count C (SP eqs 2-5), with standard error √(Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/(p₁ − p₀).

    The claim about a report is exact: the hockey-stick divergence of the two answers that a move changes. At δ = 0 its
    ε is ln(p₁/p₀) + ln((1 − p₀)/(1 − p₁)), of which SP eq 30 states the first term only. Claims about other views
    follow from it, as for any mechanism of one round.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    first_coin : float
        π_1, probability of a truthful answer, in (0, 1].
    second_coin : float
        π_2, probability of a Yes otherwise, in [0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    first_coin: float
    second_coin: float
    declared: ClassVar[Declared] = declaration("randomized_response")
    source: ClassVar[str] = "SP sec 3.3 with π_s = 1; eq 30 leaves out the answer No and the second cell"

    @property
    def bit(self) -> BitProbabilities:
        """Return p₁ = π_1 + p₀, 1 − p₁ = (1 − π_1)(1 − π_2), p₀ = (1 − π_1)π_2 and p₁ − p₀ = π_1."""
        tails = 1.0 - self.first_coin
        false_yes = tails * self.second_coin
        return BitProbabilities(
            self.first_coin + false_yes, tails * (1.0 - self.second_coin), false_yes, self.first_coin
        )
