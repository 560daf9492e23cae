"""``[[campaigns]]``: series of queries, what they estimate, and the times of their rounds."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from scenarios.channel import Servers
from scenarios.errors import RuleViolation
from scenarios.field_types import Count, Name, NotNegative, Positive, exceeds, number, without_default
from scenarios.release import Release
from scenarios.rules import GIVEN, among, bounded, must, needs, unlike
from scenarios.run_clock import Moment
from scenarios.section import Section, ValidFields, known_of

ROUND_GAP_S = 30.0
MIN_VEHICLES = 2
SPEEDS = ("mean_speed", "median_speed")
_ONE_SERVER = "must be trusted for campaigns of speeds: devices report them to one trusted server"


class Budget(Section):
    """A budget ε that covers any `window` consecutive queries, in place of a fresh ε at each query.

    The budget is the `epsilon` of each mechanism. The kinds come from LDP-IDS (Ren et al., SIGMOD 2022).
    """

    kind: Literal["uniform", "population_uniform", "absorption", "population_absorption"]
    """``uniform`` (LBU): each query uses ε/`window`. ``population_uniform`` (LPU): each query asks one of `window`
    groups of devices, in turn, so each device answers once in any `window` consecutive queries, with the whole ε.
    ``absorption`` (LBA): at each query, half of its share is used to estimate how much the counts have changed; the
    other half is saved until a new estimate is worth it, and the last estimate is published again until then.
    ``population_absorption`` (LPA): like ``absorption``, but the devices are divided instead of ε: each device answers
    at most once in any `window` consecutive queries, with the whole ε."""
    window: Count
    """Number of consecutive queries that the budget covers."""


def _overlaps(valid: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for rounds that overlap."""
    if not valid.has("round_gap_s", "deadline_s"):
        return
    gap, deadline, overlap = valid["round_gap_s"], valid["deadline_s"], "rounds of one campaign must not overlap"
    if exceeds(deadline, gap):
        open_for = f"round one is open for {number(deadline)} s, longer than round_gap_s = {number(gap)} s"
        yield valid.violation("deadline_s", f"{overlap}: {open_for}")
    if valid.get("queries", 1) > 1 and valid.has("every_s") and exceeds(gap + deadline, valid["every_s"]):
        takes = f"a query takes round_gap_s + deadline_s = {number(gap + deadline)} s"
        yield valid.violation("every_s", f"{overlap}: {takes}, longer than every_s = {number(valid['every_s'])} s")


class CampaignSection(Section):
    """A series of queries, each of two rounds. Rounds of one campaign must not overlap, but may touch."""

    name: Name = "campaign"
    """Unique name in key paths and results."""
    operator: Name | None = None
    """Who runs its servers, which are then named ``"operator:A/server:1"``, … Campaigns of one operator have the same
    parties, campaigns of different operators different ones. Default: no operator is named."""
    start_s: Moment
    """Start of the first round of the first query. There are no queries during warm-up."""
    queries: Count = 1
    """Number of queries."""
    every_s: Positive | None = None
    """Time from one query to the next, seconds; required if there are several queries."""
    round_gap_s: Positive = ROUND_GAP_S
    """Time from the first round of a query to its second, seconds."""
    deadline_s: Positive = Field(default=ROUND_GAP_S, json_schema_extra=without_default)
    """How long a round stays open after it is asked, seconds. Default: `round_gap_s`."""
    statistic: Literal["count", "mean_speed", "median_speed"] = "count"
    """Statistic estimated in each cell: the number of vehicles, or their mean or median speed.

    Devices report speeds to a trusted server, so speeds require a mechanism of kind no_privacy."""
    lower_mps: NotNegative | None = Field(default=None, json_schema_extra=without_default)
    """For speeds: lower bound of a vehicle's speed, metres per second. Default: 0."""
    upper_mps: Positive | None = None
    """For speeds: upper bound of a vehicle's speed, metres per second. Default: the speed of the fastest link, rounded
    up."""
    min_vehicles: Count | None = Field(default=None, json_schema_extra=without_default)
    """For speeds: cells in which fewer vehicles report a speed have no row. Default: 2."""
    cells: Name | None = None
    """Partition whose cells it asks about, by its name. Default: the first of `[[cells]]`."""
    release: Release | None = None
    """Release of this campaign, in place of the scenario's release."""
    budget: Budget | None = None
    """Division of each mechanism's `epsilon` over a window of queries. Default: a fresh `epsilon` at each query."""
    aggregation: Servers | None = None
    """Aggregation of this campaign's reports, in place of the scenario's aggregation."""

    @property
    def last_round_s(self) -> float:
        """Start of the last round, seconds from the start of the run."""
        return last_round_s(known_of(self))

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Set the deadline to the next round if none is given, and fill in the defaults of campaigns of speeds."""
        speeds = {"lower_mps": 0.0, "min_vehicles": MIN_VEHICLES} if given.get("statistic") in SPEEDS else {}
        return {"deadline_s": given.get("round_gap_s", ROUND_GAP_S), **speeds, **given}

    rules = (
        needs(("lower_mps", "upper_mps", "min_vehicles"), statistic=SPEEDS),
        bounded("upper_mps", "above", "lower_mps"),
        must("every_s", GIVEN, "is required where {queries} is above 1", queries=unlike(1)),
        _overlaps,
        needs("budget.kind", words='needs statistic = "count": reports of speeds have no budget', statistic="count"),
        must("aggregation.kind", among(None, "trusted"), _ONE_SERVER, statistic=unlike("count")),
    )


PERIODS = {"hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "run": math.inf}
"""Seconds of each period."""
_Names = Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]


class LedgerSection(Section):
    """A budget of each person for each period, over all queries that several campaigns and operators ask.

    The claim of all queries of a period is composed as the claims of a run are, for a device that answers every query.
    Periods follow one another without a gap; the first begins at the midnight before the run, or with the run if its
    time of day is not known. A query belongs to the period in which it starts.
    """

    name: Name = "ledger"
    """Unique name in key paths and results."""
    epsilon: Positive
    """ε of a person in a period."""
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """δ at which ε is stated."""
    period: Literal["hour", "day", "week", "run"] = "day"
    """Length of a period."""
    view: Literal["linked_reports", "published"] = "linked_reports"
    """What is limited: all that a device sends, or all that is published. Before the run, what is published is known to
    reveal at most what the release states, and without a release at most what is sent."""
    exceeded: Literal["refuse", "skip"] = "refuse"
    """What happens to a query that would exceed the budget: the run is refused, or the query is not asked."""
    campaigns: _Names | None = None
    """Campaigns that are limited, as those of one operator. Default: all."""
    mechanisms: _Names | None = None
    """Mechanisms that are limited, each for itself: they are alternatives, of which a device has one. Default: all."""

    def covers(self, campaign: str, mechanism: str) -> bool:
        """Return whether it limits a mechanism in a campaign."""
        return campaign in (self.campaigns or (campaign,)) and mechanism in (self.mechanisms or (mechanism,))


def last_round_s(times: ValidFields) -> float:
    """Return the start of the last round, seconds from the start of the run."""
    intervals = min(times["queries"] - 1, 2**53)  # a greater number may be no float, and is too late by far
    waits = intervals * (times.get("every_s") or 0.0)
    return float(times["start_s"] + waits + times["round_gap_s"])
