"""``[traffic]`` of engine ``sumo``: SUMO drives, and its vehicles are asked while it runs."""

from typing import Literal

from scenarios.references import FileReference
from scenarios.section import Positive, Section


class SumoTraffic(Section):
    """Vehicles that SUMO drives, in a process of its own."""

    engine: Literal["sumo"]
    config: FileReference | None = None
    """A ``.sumocfg``; or give ``routes``, with the network of ``[roads] source = "sumo"``."""
    step_s: Positive = 1.0
    """SUMO's step, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""
