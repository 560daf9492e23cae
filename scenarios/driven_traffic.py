"""``[traffic]`` of engines ``fleet`` and ``agents``: how many vehicles there are and where they go."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.references import FileReference
from scenarios.section import Known, NotNegative, Positive, PositiveProbability, Probability, Section

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


class DrivenTraffic(Section):
    """Vehicles that this simulator drives itself, trip by trip over the roads."""

    engine: Literal["fleet", "agents"] = "fleet"
    """``fleet`` moves all vehicles in arrays; ``agents`` is one process a vehicle, the slow reference."""
    vehicles: Annotated[int, Field(ge=1, le=MOST_VEHICLES)] | None = None
    """Trips over the whole run, one a vehicle; with ``demand = "trips"``, those of the file where left out."""
    demand: Literal["uniform", "gravity", "trips"] = "uniform"
    """Destinations: all alike, fewer the longer the way, or those of a file of trips."""
    gravity_scale_s: Positive = 600.0
    """Travel time over which ``gravity`` demand falls by a factor e, seconds."""
    trips: FileReference | None = None
    """Trips between nodes or zones, or vehicles with their routes: TNTP, GMNS, CSV, Parquet, SUMO routes."""
    share: Positive = 1.0
    """Share of the file's trips that is driven."""
    departures: Departures = "uniform"
    """When trips start: evenly over the run, around a peak, or by shares in stretches of time."""
    routing: Literal["free_flow", "reactive"] = "free_flow"
    """Every trip takes the way that is shortest in time: on empty roads, or as they are at that time."""
    reroute_every_s: Positive | None = None
    """Of ``reactive`` routing: how often travel times are looked at, seconds."""
    reroute_share: PositiveProbability | None = None
    """Of ``reactive`` routing: share of the vehicles on their way that take a new one each time."""
    step_s: Positive = 1.0
    """Tick of the engine, seconds."""
    stuck_s: NotNegative = 30.0
    """A vehicle blocked for so long goes through beyond storage, and is counted, seconds."""
    parked: Literal["silent", "answer"] = "silent"
    """Whether a vehicle that has arrived still answers queries."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield what is wrong between demand, vehicles and departures."""
        departures = known.get("departures")
        if isinstance(departures, tuple):
            total = math.fsum(window.share for window in departures)
            if abs(total - 1) > 1e-9:
                yield Breach(("departures",), "shares must sum to 1", total)
        if not (known.has("demand") and "vehicles" in known and "trips" in known):
            return
        if known["demand"] == "trips":
            if known["trips"] is None:
                yield Breach(("trips",), 'is required with demand = "trips": the file of trips')
            return
        if known["vehicles"] is None:
            yield Breach(("vehicles",), "is required: trips over the whole run, one a vehicle")
        if known["trips"] is not None:
            yield Breach(("trips",), 'goes with demand = "trips"', known["trips"])
