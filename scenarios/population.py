"""``[population]``: who takes part, on the road and off it."""

from typing import Literal

from scenarios.section import PositiveProbability, Section, Whole


class Population(Section):
    """The devices that are asked."""

    participation: PositiveProbability = 1.0
    """Probability that a vehicle takes part, drawn once per vehicle."""
    outside: Whole = 0
    """Devices that are asked too and are in no cell: the papers' No population."""
    answers: Literal["auto", "reports", "counts"] = "auto"
    """Answers drawn device by device, as counts in one go, or whichever does for what is asked."""
