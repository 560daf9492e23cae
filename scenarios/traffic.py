"""``[traffic]``: how many vehicles there are, where they go and what moves them."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.section import Known, NotNegative, Positive, Probability, Section

MOST_VEHICLES = 100_000_000


class Window(Section):
    """A stretch of time in which a share of the vehicles departs, evenly."""

    from_s: NotNegative
    """Start, seconds."""
    to_s: Positive
    """End, seconds."""
    share: Probability
    """Share of all vehicles."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a stretch that ends before it starts."""
        if known.has("from_s", "to_s") and known["from_s"] >= known["to_s"]:
            yield Breach(("from_s",), f"must be before to_s = {known['to_s']:g}", known["from_s"])


def _departures_tag(value: Any) -> str | None:
    if isinstance(value, str):
        return "<name>"
    return "<table>" if isinstance(value, list | tuple) else None


Departures = Annotated[
    Annotated[Literal["uniform", "peak"], Tag("<name>")]
    | Annotated[tuple[Window, ...], Field(strict=False), Tag("<table>")],
    Discriminator(
        _departures_tag,
        custom_error_type="rule",
        custom_error_message='must be "uniform", "peak" or a list of {from_s, to_s, share}',
        custom_error_context={"rule": 'must be "uniform", "peak" or a list of {from_s, to_s, share}'},
    ),
]


class Traffic(Section):
    """The vehicles, their trips and the engine that moves them."""

    engine: Literal["fleet", "agents"] = "fleet"
    """``fleet`` moves all vehicles in arrays; ``agents`` is one process a vehicle, the slow reference."""
    vehicles: Annotated[int, Field(ge=1, le=MOST_VEHICLES)]
    """Trips over the whole run, one a vehicle."""
    demand: Literal["uniform", "gravity"] = "uniform"
    """Destinations: all alike, or fewer the longer the way."""
    gravity_scale_s: Positive = 600.0
    """Travel time over which ``gravity`` demand falls by a factor e, seconds."""
    departures: Departures = "uniform"
    """When trips start: evenly over the run, around a peak, or by shares in stretches of time."""
    routing: Literal["free_flow"] = "free_flow"
    """Every trip takes the way that is shortest in time on empty roads."""
    step_s: Positive = 1.0
    """Tick of the engine, seconds."""
    stuck_s: NotNegative = 30.0
    """A vehicle blocked for so long goes through beyond storage, and is counted, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault unless the shares of the departures sum to one."""
        departures = known.get("departures")
        if isinstance(departures, tuple):
            total = math.fsum(window.share for window in departures)
            if abs(total - 1) > 1e-9:
                yield Breach(("departures",), "shares must sum to 1", total)
