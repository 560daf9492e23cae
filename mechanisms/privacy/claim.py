"""Privacy claims: what is proved about a view, as an exact value, a bound, infinite or unknown."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from mechanisms.parameter import ParameterError, check_epsilon

ClaimKind = Literal["exact", "bound", "infinite", "unknown"]


@dataclass(frozen=True, slots=True)
class ConstantDelta:
    """A δ that is the same for every ε: the probability that the view tells with certainty."""

    value: float

    def __call__(self, epsilon: float) -> float:  # noqa: ARG002 - a curve takes an ε, even a flat one
        """Return the constant."""
        return self.value


@dataclass(frozen=True, slots=True)
class PrivacyClaim:
    """What is proved about a view: the least ε at δ = 0, and the least δ at any other ε.

    Made by `exact`, `bound`, `unbounded` and `unknown`; "infinite" (proved that no finite ε holds) and
    "unknown" (nothing proved) are different values, and nothing is ever guessed.

    Parameters
    ----------
    kind : {"exact", "bound", "infinite", "unknown"}
        What `epsilon` is: the least ε at δ = 0, an upper bound of it, proved not to be finite, or not known.
    epsilon : float
        At δ = 0; infinite where kind is "infinite", NaN where it is "unknown".
    delta_kind : {"exact", "bound", "unknown"}
        What `delta` returns: the least δ, an upper bound of it, or NaN. A view without a finite ε still has a
        δ.
    basis : str
        A sentence: why, and from where.
    curve : callable, optional
        δ as a function of ε ≥ 0; none where unknown.
    """

    kind: ClaimKind
    epsilon: float
    delta_kind: Literal["exact", "bound", "unknown"]
    basis: str
    curve: Callable[[float], float] | None = None

    def __post_init__(self) -> None:
        """Check that kind, ε and the curve tell one story."""
        if not self.basis:
            raise ParameterError("basis", "must say why", self.basis)
        if (self.kind == "infinite") != math.isinf(self.epsilon):
            raise ParameterError(
                "epsilon",
                f"must be infinite only in a claim of kind 'infinite', not {self.kind!r}",
                self.epsilon,
            )
        unknown = self.kind == "unknown"
        if (
            unknown != math.isnan(self.epsilon)
            or unknown != (self.curve is None)
            or unknown != (self.delta_kind == "unknown")
        ):
            raise ParameterError("kind", "must be 'unknown' exactly where neither ε nor δ is known", self.kind)
        if not unknown:
            check_epsilon(self.epsilon)

    @classmethod
    def exact(cls, epsilon: float, curve: Callable[[float], float], basis: str) -> "PrivacyClaim":
        """Claim the least ε at δ = 0, finite or infinite, and the least δ for every ε."""
        return cls("infinite" if math.isinf(epsilon) else "exact", epsilon, "exact", basis, curve)

    @classmethod
    def bound(cls, epsilon: float, curve: Callable[[float], float], basis: str) -> "PrivacyClaim":
        """Claim an upper bound of δ; of ε at δ = 0 too, or, if infinite, that no finite one is possible."""
        return cls("infinite" if math.isinf(epsilon) else "bound", epsilon, "bound", basis, curve)

    @classmethod
    def unknown(cls, basis: str) -> "PrivacyClaim":
        """Claim nothing, and say why."""
        return cls("unknown", math.nan, "unknown", basis)

    def delta(self, epsilon: float) -> float:
        """Return δ at this ε: the least or a bound of it, as `delta_kind` says; NaN where unknown.

        Parameters
        ----------
        epsilon : float
            At least 0; infinity asks for the probability that the view tells with certainty.

        Raises
        ------
        ParameterError
            If ε is negative or NaN.
        """
        epsilon = check_epsilon(epsilon)
        if self.curve is None:
            return math.nan
        if epsilon >= self.epsilon and not math.isinf(self.epsilon):
            return 0.0  # pure differential privacy, without the rounding of a curve near its end
        delta = self.curve(epsilon)
        if math.isnan(delta):  # as a δ of 0 it would claim the most there is
            raise ArithmeticError(f"the curve of this claim is not a number at ε = {epsilon!r}: {self.basis}")
        return min(1.0, max(0.0, delta))
