"""``[traffic]`` of engine ``trace``: recorded positions, replayed."""

from typing import Literal

from scenarios.references import FileReference
from scenarios.section import Positive, Section


class TraceTraffic(Section):
    """Vehicles whose positions were recorded."""

    engine: Literal["trace"]
    trace: FileReference
    """The recording."""
    step_s: Positive = 1.0
    """Tick of the run's clock, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that is not seen any more still answers queries, from where it was seen last."""
