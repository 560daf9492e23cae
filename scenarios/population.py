"""``[population]``: who takes part, on the road and off it."""

from typing import Annotated, Literal

from pydantic import Field

from scenarios.section import PositiveProbability, Section, WholeNumber

MOST_OUTSIDE = 10**12
"""Beyond it bytes no longer fit into 64 bits."""


class Population(Section):
    """The devices that are asked."""

    participation: PositiveProbability = 1.0
    """Probability that a vehicle takes part, drawn once per vehicle."""
    outside: Annotated[WholeNumber, Field(ge=0, le=MOST_OUTSIDE)] = 0
    """Devices that are asked too and are in no cell: the papers' No population."""
    answers: Literal["auto", "reports", "counts"] = "auto"
    """Answers drawn device by device, as counts in one go, or whichever does for what is asked."""
