"""Families of *Anonymized Local Privacy* with two or three answers per query."""

import math
from typing import Any

from mechanisms.local.anonymized_deniable import AnonymizedDeniable
from mechanisms.local.anonymized_local import AnonymizedCancelling, AnonymizedFirstAttempt
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.families.binary_randomizers import best_yes_laws
from mechanisms.planning.families.sampling import suppressed_elsewhere
from mechanisms.planning.search import Dial, Family, Shape
from mechanisms.planning.target import Target

SHIFT = Dial(1e-9, 1.0 - 1e-9, "logit")


def _first_attempt(target: Target, shape: Shape, twice: float) -> Candidate:
    """Return a candidate whose dial is 2π_Y.

    The first number of the shape sets how many powers of ten π_N is below π_Y; at 0, π_N is 0. The second sets π_⊥1
    between its least and its greatest value.
    """
    shift = twice / 2.0
    elsewhere = shift * 10.0 ** (-12.0 * (1.0 - shape[0])) if shape[0] > 0.0 else 0.0
    base = min(max(shift + shape[1] * (1.0 - twice), shift), 1.0 - shift)
    parameters = {"base": base, "shift_yes": shift, "shift_no": elsewhere}
    return Candidate(AnonymizedFirstAttempt(cells=target.cells, **parameters), target, parameters)


def _cancelling(target: Target, shape: Shape, shift: float) -> Candidate:
    third = shape[0] * (1.0 - shift)
    rest = (1.0 - shift - third) / 2.0
    stay = (rest, rest, third)
    made = AnonymizedCancelling(cells=target.cells, shift=shift, stay=stay)
    return Candidate(made, target, {"shift": shift, "stay": list(stay)})


def _deniable(target: Target, shape: Shape, tilt: float) -> Candidate:
    """Return a candidate whose dial mixes the moves of Yes-holders from No-holders' moves and another distribution.

    At dial 0 Yes-holders and No-holders have the same distribution, so the answers reveal nothing. The shape is s; then
    n₁, n₂ and c of No-holders; then y₁, y₂ and c_Y of Yes-holders at dial 1.
    """
    shift, no_second, no_rest, onward, second, rest, onward_yes = shape
    no_third, third = (1.0 - no_second) * no_rest, (1.0 - second) * rest
    yes_third = (1.0 - tilt) * no_third + tilt * third
    moved_on = (1.0 - tilt) * no_third * onward + tilt * third * onward_yes
    parameters: dict[str, Any] = {
        "shift": shift,
        "yes_second": (1.0 - tilt) * no_second + tilt * second,
        "yes_third": yes_third,
        "no_second": no_second,
        "no_third": no_third,
        "onward": onward,
        "onward_yes": min(1.0, moved_on / yes_third) if yes_third > 0.0 else 0.0,
    }
    return Candidate(AnonymizedDeniable(cells=target.cells, **parameters), target, parameters)


def _first_attempt_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: No-holders that never move, and the best randomized response's probabilities."""
    yes, no = best_yes_laws(target)
    return [(0.0, 0.5), (max(0.0, 1.0 + math.log10(no / yes) / 12.0), 0.5)]


def _deniable_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: one equal to the best randomized response, and two in which all answers occur.

    In the first, all devices move to ⊥2, some in B and the others in C.
    """
    _, no = best_yes_laws(target)
    response = (1.0, no, 1.0, 1.0, 1.0, 1.0, 1.0)
    return [response, (0.7, 0.0, 0.5, 0.5, 0.9, 0.5, 0.0), (0.95, 0.3, 0.8, 0.5, 0.9, 0.5, 0.5)]


def _tells_by_moving(target: Target) -> str | None:
    if target.epsilon is None or target.delta > 0.0 or target.view != "linked_reports":
        return None
    return (
        "Some pair of answers is given only by devices in the cell, with the probability of a move: linked reports "
        "have no finite ε, and δ = 0 would need no device to move, and an error without end."
    )


FAMILIES = (
    Family(
        "anonymized_first_attempt",
        "anonymized_first_attempt",
        SHIFT,
        "twice π_Y",
        (_first_attempt,),
        starts=_first_attempt_shapes,
    ),
    Family(
        "anonymized_cancelling",
        "anonymized_cancelling",
        SHIFT,
        "the shift π_Y",
        (_cancelling,),
        # If rounds are observed separately, ⊥3 hides no device.
        starts=lambda target: [(0.0,)] if target.view.startswith(("report", "shuffled")) else [(1 / 3,)],
        refusal=suppressed_elsewhere,
        reason=_tells_by_moving,
    ),
    Family(
        "anonymized_deniable",
        "anonymized_deniable",
        SHIFT,
        "the tilt of Yes-holders' moves",
        (_deniable,),
        starts=_deniable_shapes,
    ),
)
