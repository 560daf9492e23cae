"""Optimised unary encoding (OUE): the unary encoding of least variance for rare cells."""

import math
from dataclasses import dataclass

from scipy.special import expit

from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.unary import UnaryEncoding


@dataclass(frozen=True, kw_only=True)
class OptimisedUnary(UnaryEncoding):
    """A 1 is told with p = 1/2, a 0 is flipped with q = 1/(e^ε + 1) (Wang et al. 2017 sec 4.3, OUE).

    The variance of a rare cell is 4e^ε/(e^ε − 1)² a device (their eq 12). A move between cells has ε exactly,
    one to outside ln((e^ε + 1)/2).

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
        """Return p = 1/2."""
        return 0.5

    @property
    def false_yes(self) -> float:
        """Return q = 1/(e^ε + 1)."""
        return float(expit(-self.epsilon))

    @property
    def apart(self) -> float:
        """Return p − q = tanh(ε/2)/2."""
        return math.tanh(self.epsilon / 2) / 2

    @property
    def _source(self) -> str:
        return "Wang et al. 2017 sec 4.3, OUE"
