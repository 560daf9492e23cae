"""``[scenario]``, ``[population]``, ``[sensing]``, ``[claims]``, ``[fcd]``, ``[report]``: the run and what it keeps."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from scenarios.errors import RuleViolation
from scenarios.field_types import Count, Name, NotNegative, Positive, PositiveProbability, Whole, WholeNumber
from scenarios.local import ParticipationRate
from scenarios.rules import EachOnce, bounded
from scenarios.run_clock import Moment, RunClock, TimeZone, written
from scenarios.section import Section, ValidFields


def _start(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a start that is no time, or has no date to which a time zone could apply."""
    try:
        clock = RunClock.starting(valid.get("start"), valid.get("time_zone"))
        if clock.start and not clock.dated and valid.has("time_zone"):
            yield valid.violation("start", "must have a date for time_zone to apply")
    except ValueError as fault:
        yield valid.violation("start", str(fault))


class Heading(Section):
    """Name, seed and duration of a scenario. Times are seconds from the start of the run."""

    name: Name
    """Name of the scenario in listings and results."""
    description: str = ""
    """What the scenario shows, in a sentence or two. It is dropped if an override changes a value of the file."""
    seed: Whole = 1
    """Seed of every random choice: the same scenario and seed give the same numbers."""
    duration_s: Positive
    """Length of the run, warm-up included, seconds."""
    warmup_s: NotNegative = 0.0
    """First part of the run, in which vehicles drive and there are no queries, seconds."""
    start: Annotated[str, BeforeValidator(written)] | None = None
    """Time of second 0 of the run: a time of day, as ``"07:00"``, or a date and time, as ``"2026-03-29T07:00"`` or
    ``"2026-03-29T07:00+02:00"``. Pages, tables and messages then state times, and keys of moments may be written as
    such. A recording and a file of trips begin at it too, unless `[traffic]` states another time. Default: the start of
    recorded data whose times are dates; else times are seconds from the start of the run."""
    time_zone: TimeZone | None = None
    """Time zone of `start`, and in which times are stated, as ``"Europe/Berlin"``, with its summer time. Default: the
    offset in `start`; for recorded data `traffic.time_zone`, else UTC."""

    rules = (_start, bounded("warmup_s", "below", "duration_s"))


MOST_OUTSIDE = 10**12
"""Maximum number of devices outside every cell; for more, numbers of bytes would not fit into 64 bits."""


class Population(Section):
    """The devices that are asked."""

    participation: PositiveProbability = 1.0
    """Probability that a vehicle takes part, drawn once per vehicle."""
    assumed_participation: PositiveProbability | None = None
    """Participation by which estimates of counts are divided to estimate all vehicles, asked or not. Without it, the
    true one: an operator who does not know it makes an error that ``scaled_bias`` shows."""
    rates: Annotated[tuple[ParticipationRate, ...], Field(strict=False)] = ()
    """Vehicles, places and times that take part less often. A vehicle has one willingness, drawn once: it takes part
    where `participation` times all rates that apply is above it."""
    position_error_m: NotNegative = 0.0
    """Standard deviation of the error of a device's fix, east and north each, metres; the error is normal, and drawn
    anew for each device and query. Devices answer about the cell that their fix is in."""
    outside: Annotated[WholeNumber, Field(ge=0, le=MOST_OUTSIDE)] = 0
    """Number of devices that are asked too and are in no cell: the papers' No population."""
    answers: Literal["auto", "reports", "counts"] = "auto"
    """Whether answers are drawn device by device, as counts of all devices at once, or (``auto``) device by device for
    vehicles and as counts for devices outside every cell."""

    @property
    def drawn_as_counts(self) -> str:
        """The devices whose answers are drawn as counts, in words; empty if there are none."""
        if self.answers == "counts":
            return "devices"
        return "devices outside every cell" if self.outside and self.answers == "auto" else ""

    @property
    def assumed(self) -> float:
        """The participation by which estimates are divided."""
        return self.participation if self.assumed_participation is None else self.assumed_participation


class Sensing(Section):
    """How the answers to a query are simulated."""

    engine: Literal["batches", "messages"] = "batches"
    """Whether all reports of a round are delivered at once, or each device acts for itself and each message is an
    event. The results are equal; ``messages`` is slower, for up to about 100,000 devices. Devices with a behaviour of
    their own act for themselves in both cases. Campaigns of speeds are always simulated in batches."""


class Claims(Section):
    """The parameters of the claims table."""

    epsilons: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (0.5, 1.0, 2.0, 4.0)
    """Each ε at which δ is reported."""
    queries: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1,)
    """Numbers of queries a device answers. Those of each campaign, which a device that stays through it answers, are
    always stated too."""
    crowds: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 10, 100, 1000)
    """Numbers of devices counted in a cell, for views whose privacy grows with that number."""


_NEARLY_WHOLE = 1e-9


class Fcd(Section):
    """Positions of all vehicles at regular moments. They are the simulator's truth: no mechanism protects them."""

    every_s: Positive
    """Time between two moments, seconds."""
    formats: Annotated[tuple[Literal["sumo", "parquet"], ...], Field(strict=False, min_length=1)] = ("sumo",)
    """``sumo``: fcd.xml.gz as SUMO exports; ``parquet``: fcd.parquet."""
    from_s: Moment = 0.0
    """First moment."""
    to_s: Annotated[Moment, Field(gt=0)] | None = None
    """Latest moment. Default: the end of the run."""
    rules = (bounded("from_s", "at most", "to_s"), EachOnce(("formats",)))


class ReportSection(Section):
    """Links by interval and trips, and whether single vehicles of recorded traffic may be shown."""

    link_interval_s: Positive | None = None
    """For engines ``fleet``, ``agents``, ``sumo`` (on its own roads) and ``trace`` (with vehicles on links): the run
    directory has `links.parquet`, what happened on each link in each interval of so many seconds, and `trips.parquet`.
    Default: neither."""

    vehicles: bool = False
    """Whether the run directory and its report hold single vehicles if the traffic is recorded (engines ``trace`` and
    ``static``): they may be traces of real people. Simulated vehicles are always shown."""
