"""Family: mechanisms of one kind, from a dial and a shape to parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechanisms.planning.candidate import Candidate, Planned
from mechanisms.planning.search import Dial, Make, Shape, find_best, set_dial
from mechanisms.planning.target import Target


def _no_shape(target: Target) -> Sequence[Shape]:  # noqa: ARG001 - others look at it
    return ()


def _never(target: Target) -> str | None:  # noqa: ARG001 - others look at it
    return None


def _no_guess(target: Target) -> float | None:  # noqa: ARG001 - others look at it
    return None


def _not_pointless(target: Target, found: Candidate) -> str | None:  # noqa: ARG001 - others look at them
    return None


@dataclass(frozen=True)
class Family:
    """What a plan knows of a kind of mechanism.

    Parameters
    ----------
    name : str
        As a plan calls it.
    kind : str
        As a scenario file calls it.
    dial : Dial
    letter : str
        What the dial is, in words and its letter: "the sampling probability π_s".
    makes : sequence of callable
        Makes a candidate from a target, a shape and the dial; of several the best is taken.
    starts : callable
        Shapes a search starts from, given the target; none where there is nothing to choose, one where it is chosen.
    refusal : callable
        Why the family is not for a target at all, a sentence; None where it is.
    reason : callable, optional
        Why nothing meets a target, a sentence, given the target; None leaves it to what can be said of any.
    finish : callable, optional
        Makes the mechanism from a target and parameters, where a search looks at a sketch of it.
    guess : callable
        Where the dial stands best if the target is met there, as another family has shown; None if none has.
    pointless : callable
        Why what was found is no better than a simpler mechanism, a sentence; None where it is.
    """

    name: str
    kind: str
    dial: Dial
    letter: str
    makes: Sequence[Make]
    starts: Callable[[Target], Sequence[Shape]] = _no_shape
    refusal: Callable[[Target], str | None] = _never
    reason: Callable[[Target], str | None] = _never
    finish: Callable[[Target, Mapping[str, Any]], Planned] | None = None
    guess: Callable[[Target], float | None] = _no_guess
    pointless: Callable[[Target, Candidate], str | None] = _not_pointless

    def best(self, target: Target) -> Candidate | None:
        """Return the best candidate that meets the target; None where none does."""
        guess = self.guess(target)
        if guess is not None:
            guessed = self.makes[0](target, (), guess)
            if guessed.excess <= 0.0:
                return replace(guessed, dial=guess)
        found: list[Candidate] = []
        for make in self.makes:
            starts = tuple(self.starts(target))
            candidate = (
                set_dial(make, self.dial, target, starts[0], fine=True)
                if len(starts) == 1
                else find_best(make, self.dial, target, starts)
            )
            if candidate is not None:
                found.append(candidate)
        return min(found, key=lambda candidate: candidate.score, default=None)

    def least_telling(self, target: Target) -> Candidate | None:
        """Return the candidate with its dial at its low end: what remains, where nothing meets a target."""
        return self._at(target, self.dial.low)

    def most_telling(self, target: Target) -> Candidate | None:
        """Return the candidate with its dial at its high end."""
        return self._at(target, self.dial.high)

    def _at(self, target: Target, value: float) -> Candidate | None:
        starts = self.starts(target)
        return self.makes[0](target, starts[0] if starts else (), value)
