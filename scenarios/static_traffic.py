"""``[traffic]`` of engine ``static``: data owners that are somewhere and do not move."""

from typing import Literal

from scenarios.references import FileReference
from scenarios.section import Positive, Section


class StaticTraffic(Section):
    """Data owners without movement: vehicles counted at a detector, people who checked in at a place."""

    engine: Literal["static"]
    owners: FileReference
    """Table of who is where: one row an owner, or one a place with how many."""
    step_s: Positive = 1.0
    """Tick of the run's clock, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether an owner whose time at its place is over still answers queries."""
