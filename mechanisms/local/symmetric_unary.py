"""Symmetric unary encoding (SUE): the bits of basic RAPPOR."""

import math
from dataclasses import dataclass

from scipy.special import expit

from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.unary import UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class SymmetricUnary(UnaryEncoding):
    """Every bit is told truly with e^(ε/2)/(e^(ε/2) + 1) and flipped otherwise (Erlingsson et al. 2014; SUE).

    Wang et al. 2017 sec 4.3. p = 1 − q. A move between cells has ε exactly, one to outside ε/2.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report, for a move between cells; in 1e-6…50.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_budget("epsilon", self.epsilon)

    @property
    def true_yes(self) -> float:
        """Return p = e^(ε/2)/(e^(ε/2) + 1)."""
        return float(expit(self.epsilon / 2))

    @property
    def true_no(self) -> float:
        """1 − p = 1/(e^(ε/2) + 1)."""
        return float(expit(-self.epsilon / 2))

    @property
    def false_yes(self) -> float:
        """Return q = 1/(e^(ε/2) + 1)."""
        return float(expit(-self.epsilon / 2))

    @property
    def apart(self) -> float:
        """Return p − q = tanh(ε/4)."""
        return math.tanh(self.epsilon / 4)

    @property
    def _source(self) -> str:
        return "Wang et al. 2017 sec 4.3, SUE"
