"""The exact δ(ε) of the worst of several pairs of distributions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.privacy.hockey_stick import pair_delta, pair_epsilon

Masses: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class WorstPairDelta:
    """δ(ε) of several pairs of worlds, the greatest over pairs and both directions, as a function of ε.

    Parameters
    ----------
    pairs : tuple of (P, Q)
        Two distributions over the same outcomes each.
    """

    pairs: tuple[tuple[Masses, Masses], ...]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Sequence[Fraction], Sequence[Fraction]]]) -> "WorstPairDelta":
        """Round exact masses to floats, equal ones alike."""
        return cls(tuple((tuple(map(float, p)), tuple(map(float, q))) for p, q in pairs))

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        return max((pair_delta(p, q, epsilon=epsilon) for p, q in self.pairs), default=0.0)

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0, infinite where some world shows what another cannot."""
        return max((pair_epsilon(p, q) for p, q in self.pairs), default=0.0)
