"""The proof that no linear unbiased estimator exists: two worlds that expect the same tallies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechanisms.algebra.protocol import Answers
from mechanisms.algebra.tallies import Tallies
from mechanisms.parameter import ParameterError

# Devices of a kind that toss their coins (no answers), or that all answer alike.
Group: TypeAlias = tuple[str, Answers | None]


@dataclass(frozen=True, eq=False)
class NotEstimable:
    """A direction in which the populations change, and the target with them, but no expected tally does.

    Without demands on the error the direction d is one of populations: M·d = 0 and t·d ≠ 0. An estimator is
    unbiased only if aᵀM = tᵀ, whence t·d = aᵀM·d = 0: there is none. Where the error was not to grow with some
    kind, each of its devices would have to contribute exactly t_k whatever it answers, so devices of it that
    all answer alike may stand in the direction too.

    Checked when made: the certificate proves itself.

    Parameters
    ----------
    tallies : Tallies
    target : mapping of kind to Fraction
        t_k.
    direction : mapping of (kind, answers or None) to Fraction
        How many more devices of the kind, tossing their coins, or all answering so.
    steady : tuple of str
        Kinds with which the error was not to grow.
    """

    tallies: Tallies
    target: Mapping[str, Fraction]
    direction: Mapping[Group, Fraction]
    steady: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the proof."""
        for kind, answers in self.direction:
            if answers is not None and (kind not in self.steady or answers not in self.tallies.protocol.law(kind)):
                raise ParameterError("direction", "must fix answers only a device of a steady kind gives", answers)
        for label, change in self.tally_change().items():
            if change:
                raise ParameterError("direction", f"must leave the expected {label} as it is", str(change))
        if not self.target_change:
            raise ParameterError("direction", "must change the target", "0")

    def __bool__(self) -> bool:
        """There is no estimator."""
        return False

    def __str__(self) -> str:
        """Name the two worlds."""
        one, other = (" + ".join(f"{n} {_name(group)}" for group, n in w.items()) or "nobody" for w in self.worlds())
        return f"not estimable: {one} and {other} expect the same tallies"

    @property
    def target_change(self) -> Fraction:
        """What the direction adds to the target, t·d ≠ 0."""
        return sum((self.target[kind] * n for (kind, _), n in self.direction.items()), Fraction(0))

    def tally_change(self) -> dict[str, Fraction]:
        """Return what the direction adds to each expected tally, by label: 0, all of them."""
        return {
            count.label: sum(
                (
                    n
                    * (
                        self.tallies.protocol.probability(kind, count.answers)
                        if answers is None
                        else Fraction(answers in count.answers)
                    )
                    for (kind, answers), n in self.direction.items()
                ),
                Fraction(0),
            )
            for count in self.tallies.counts
        }

    def worlds(self) -> tuple[dict[Group, int], dict[Group, int]]:
        """Return two whole populations that expect the same tallies, and differ in the target."""
        scale = math.lcm(*(n.denominator for n in self.direction.values()))
        whole = {group: int(n * scale) for group, n in self.direction.items()}
        common = math.gcd(*whole.values())
        return (
            {group: n // common for group, n in whole.items() if n > 0},
            {group: -n // common for group, n in whole.items() if n < 0},
        )


def _name(group: Group) -> str:
    """Return a group in words."""
    kind, answers = group
    return kind if answers is None else f"{kind} answering {','.join(answers)}"
