"""``[[campaigns]]``, ``[population]`` and ``[claims]``: what is asked, who takes part, which ε are reported."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from scenarios.channel import Aggregation
from scenarios.errors import RuleViolation
from scenarios.release import Release
from scenarios.section import (
    Count,
    Name,
    NotNegative,
    Positive,
    PositiveProbability,
    Section,
    ValidFields,
    WholeNumber,
    exceeds,
    known_of,
    number,
    without_default,
)

ROUND_GAP_S = 30.0
MIN_VEHICLES = 2
SPEEDS = ("mean_speed", "median_speed")


class Campaign(Section):
    """A series of queries, each of two rounds. Rounds of one campaign do not overlap; touching is fine."""

    name: Name = "campaign"
    """Its name in key paths and results; no two alike."""
    start_s: NotNegative
    """When the first query asks its first round, seconds; warm-up is without queries."""
    queries: Count = 1
    """How many queries."""
    every_s: Positive | None = None
    """From one query to the next, seconds; needed where there are several."""
    round_gap_s: Positive = ROUND_GAP_S
    """From the first round of a query to its second, seconds."""
    deadline_s: Positive = Field(default=ROUND_GAP_S, json_schema_extra=without_default)
    """How long a round stays open after it is asked, seconds; left out, `round_gap_s`."""
    statistic: Literal["count", "mean_speed", "median_speed"] = "count"
    """What is estimated in each cell: how many vehicles there are, or how fast they go.

    Speeds are told to a trusted server, so they take a mechanism of kind no_privacy."""
    lower_mps: NotNegative | None = Field(default=None, json_schema_extra=without_default)
    """Of speeds: the least a vehicle is taken to go, metres per second; left out, 0."""
    upper_mps: Positive | None = None
    """Of speeds: the most a vehicle is taken to go, metres per second; left out, the fastest link, rounded up."""
    min_vehicles: Count | None = Field(default=None, json_schema_extra=without_default)
    """Of speeds: cells in which fewer vehicles tell theirs have no row; left out, 2."""
    release: Release | None = None
    """What is done before publishing, in place of the scenario's release."""
    aggregation: Aggregation | None = None
    """Who adds up its reports, in place of the scenario's aggregation."""

    @property
    def last_round_s(self) -> float:
        """When the last round is asked, seconds from the start of the run."""
        return last_round_s(known_of(self))

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Let a round stay open until the next where no deadline is given, and fill in what speeds need."""
        speeds = {"lower_mps": 0.0, "min_vehicles": MIN_VEHICLES} if given.get("statistic") in SPEEDS else {}
        return {"deadline_s": given.get("round_gap_s", ROUND_GAP_S), **speeds, **given}

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for rounds that overlap, for several queries without an interval, and for wrong bounds."""
        yield from _speeds(known)
        several = known.has("queries") and known["queries"] > 1
        if several and "every_s" in known and known["every_s"] is None:
            yield RuleViolation(("every_s",), f"is required where queries = {known['queries']} is above 1")
        if not known.has("round_gap_s", "deadline_s"):
            return
        gap, deadline = known["round_gap_s"], known["deadline_s"]
        if exceeds(deadline, gap):
            words = (
                f"rounds of one campaign must not overlap: round one is open for {number(deadline)} s, "
                f"longer than round_gap_s = {number(gap)} s"
            )
            yield RuleViolation(("deadline_s",), words, deadline)
        if several and known.has("every_s") and exceeds(gap + deadline, known["every_s"]):
            words = (
                f"rounds of one campaign must not overlap: a query takes round_gap_s + deadline_s = "
                f"{number(gap + deadline)} s, longer than every_s = {number(known['every_s'])} s"
            )
            yield RuleViolation(("every_s",), words, known["every_s"])


def last_round_s(times: ValidFields) -> float:
    """Return when the last round is asked, seconds from the start of the run."""
    waits = (times["queries"] - 1) * (times.get("every_s") or 0.0)
    return float(times["start_s"] + waits + times["round_gap_s"])


def _speeds(known: ValidFields) -> Iterator[RuleViolation]:
    if known.get("statistic") == "count":
        for key in ("lower_mps", "upper_mps", "min_vehicles"):
            if known.has(key):
                yield RuleViolation((key,), 'goes with statistic = "mean_speed" or "median_speed"', known[key])
    elif known.has("lower_mps", "upper_mps") and known["upper_mps"] <= known["lower_mps"]:
        yield RuleViolation(
            ("upper_mps",), f"must be above lower_mps = {number(known['lower_mps'])}", known["upper_mps"]
        )


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


class Claims(Section):
    """The parameters of the claims table."""

    epsilons: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (0.5, 1.0, 2.0, 4.0)
    """Each ε at which δ is reported."""
    queries: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1,)
    """Numbers of queries a device answers."""
    crowds: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 10, 100, 1000)
    """Numbers of devices counted in a cell, for views whose privacy grows with the crowd."""
