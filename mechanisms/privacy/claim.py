"""Privacy claims: what is proved about a view, as an exact value, a bound, infinite or unknown."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from mechanisms.parameter import ParameterError, check_epsilon

# e^ε overflows a double a little above this; there δ comes only from outputs that reveal the truth with certainty.
LARGEST_EPSILON = 700.0
# The same for n·e^ε with a crowd of n devices.
LARGEST_CROWD_EPSILON = 600.0

ClaimKind = Literal["exact", "bound", "infinite", "unknown"]


@dataclass(frozen=True, slots=True)
class ConstantDelta:
    """A δ that is the same for every ε: the probability that the view reveals the truth with certainty."""

    value: float

    def __call__(self, epsilon: float) -> float:  # noqa: ARG002 - a curve takes an ε, even a flat one
        """Return the constant."""
        return self.value


# Values of ε of the first of two steps; they do not depend on the ε of both, so the bound falls with ε.
FIRST_STEPS = (0.0, *(10.0 ** (exponent / 12.0) for exponent in range(-36, 25)))


@dataclass(frozen=True, slots=True)
class TwoStepDelta:
    """A bound of δ(ε) of a move, from the curve of leaving or entering a cell.

    A move is leaving one cell for outside, then entering the other. If the first step is bounded by (ε₁, δ₁) and the
    second by (ε₂, δ₂), the move is bounded by (ε₁ + ε₂, δ₁ + e^ε₁·δ₂) (group privacy). The least over several ε₁ is
    taken, with the rest of ε for the second step.
    """

    step: Callable[[float], float]

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        firsts = [first for first in FIRST_STEPS if first <= epsilon]

        @cache
        def leave(first: int) -> float:
            return self.step(firsts[first])

        @cache
        def enter(first: int) -> float:
            return math.exp(firsts[first]) * self.step(epsilon - firsts[first])

        least, ranges = 1.0, [(0, len(firsts) - 1)]
        while ranges:
            low, high = ranges.pop()
            middle = (low + high) // 2
            least = min(least, leave(middle) + enter(middle))
            # A greater first step never has a greater δ, nor a smaller one, left for the second step.
            parts = [part for part in ((low, middle - 1), (middle + 1, high)) if part[0] <= part[1]]
            ranges += [part for part in parts if leave(part[1]) + enter(part[0]) < least]
        return least


@dataclass(frozen=True, slots=True)
class PrivacyClaim:
    """What is proved about a view: the least ε at δ = 0, and the least δ at any other ε.

    A claim is made by `exact`, `infinite`, `bound` or `unknown`. "infinite" (it is proved that no finite ε holds),
    "bound" with an infinite ε (no finite ε is known) and "unknown" (nothing is proved) are different values. No value
    is ever guessed.

    Parameters
    ----------
    kind : {"exact", "bound", "infinite", "unknown"}
        Meaning of `epsilon`: the least ε at δ = 0, an upper bound of it, proved not to be finite, or not known.
    epsilon : float
        ε at δ = 0; infinite where `kind` is "infinite", and where it is "bound" and no finite ε is known; NaN where it
        is "unknown".
    delta_kind : {"exact", "bound", "unknown"}
        Meaning of the value of `delta`: the least δ, an upper bound of it, or NaN. A view without a finite ε still
        has a δ.
    basis : str
        A sentence that gives the reason for the claim and its source.
    curve : callable, optional
        δ as a function of ε ≥ 0; None where unknown.
    """

    kind: ClaimKind
    epsilon: float
    delta_kind: Literal["exact", "bound", "unknown"]
    basis: str
    curve: Callable[[float], float] | None = None

    def __post_init__(self) -> None:
        """Check that the kind, ε and the curve are consistent."""
        if not self.basis:
            raise ParameterError("basis", "must state the reason", self.basis)
        if self.kind == ("exact" if math.isinf(self.epsilon) else "infinite"):
            rule = (
                f"must be infinite only in a claim of kind 'infinite', or 'bound' if none is known, not {self.kind!r}"
            )
            raise ParameterError("epsilon", rule, self.epsilon)
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
        """Claim an upper bound of δ and of ε at δ = 0; with an infinite ε, that no finite ε is known."""
        return cls("bound", epsilon, "bound", basis, curve)

    @classmethod
    def infinite(cls, curve: Callable[[float], float], basis: str) -> "PrivacyClaim":
        """Claim that no finite ε holds at δ = 0, which is proved, and an upper bound of δ."""
        return cls("infinite", math.inf, "bound", basis, curve)

    @classmethod
    def unknown(cls, basis: str) -> "PrivacyClaim":
        """Claim nothing and state the reason."""
        return cls("unknown", math.nan, "unknown", basis)

    def of_move(self) -> "PrivacyClaim":
        """Return the bound for a device that moves between two cells, from a claim for entering or leaving any one."""
        if self.curve is None:
            return self
        basis = f"A move is leaving one cell and entering another: at most (2ε, δ(1 + e^ε)). {self.basis}"
        # A move may also be to outside, so that it has no finite ε where one step has none.
        kind: ClaimKind = "infinite" if self.kind == "infinite" else "bound"
        return PrivacyClaim(kind, 2.0 * self.epsilon, "bound", basis, TwoStepDelta(self.delta))

    def epsilon_at(self, delta: float, *, precision: float = 1e-4) -> float:
        """Return an ε that is proved at this δ, at most `precision` above the least one that is; infinite if none is.

        Parameters
        ----------
        delta : float
            At least 0.
        precision : float
            Width of the last interval of the bisection, of which the upper end is returned.
        """
        if self.curve is None:
            return math.inf
        if delta <= 0.0:
            return self.epsilon
        low, high = 0.0, min(self.epsilon, LARGEST_EPSILON)
        if self.delta(low) <= delta:
            return low
        if self.delta(high) > delta:
            return math.inf
        while high - low > precision:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def delta(self, epsilon: float) -> float:
        """Return δ at this ε: the least δ or a bound of it, as `delta_kind` states; NaN where unknown.

        Parameters
        ----------
        epsilon : float
            At least 0; at infinity, δ is the probability that the view reveals the truth with certainty.

        Raises
        ------
        ParameterError
            If ε is negative or NaN.
        """
        epsilon = check_epsilon(epsilon)
        if self.curve is None:
            return math.nan
        if epsilon >= self.epsilon and not math.isinf(self.epsilon):
            return 0.0  # pure differential privacy; the curve may differ from 0 by rounding near its end
        delta = self.curve(epsilon)
        if math.isnan(delta):  # min and max would turn NaN into 0, the strongest claim possible
            raise ArithmeticError(f"the curve of this claim is not a number at ε = {epsilon!r}: {self.basis}")
        return min(1.0, max(0.0, delta))


@dataclass(frozen=True, slots=True)
class LeastDelta:
    """The least δ of several claims about the same view, at each ε.

    Parameters
    ----------
    claims : tuple of PrivacyClaim
        At least one of them is not unknown.
    """

    claims: tuple[PrivacyClaim, ...]

    def __call__(self, epsilon: float) -> float:
        """Return the least bound of δ that is known."""
        return min(delta for claim in self.claims if not math.isnan(delta := claim.delta(epsilon)))
