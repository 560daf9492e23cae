"""Rules between sections, applied to the fields that are valid."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scenarios.attacks import broken_attack
from scenarios.campaigns import last_round_s
from scenarios.error_messages import suggestion
from scenarios.errors import RuleViolation
from scenarios.fcd import broken_fcd
from scenarios.release import broken_release, released_by
from scenarios.section import ValidFields, exceeds, known_of, number

MOST_TICKS = 2**31 - 1
"""Maximum number of steps of a run: steps are numbered in 32 bits."""


@dataclass(frozen=True)
class Outline:
    """The valid fields of all sections to which rules between sections apply."""

    heading: ValidFields
    traffic: ValidFields
    campaigns: Sequence[ValidFields]
    mechanisms: Sequence[ValidFields]
    population: ValidFields = field(default_factory=ValidFields)
    channel: ValidFields = field(default_factory=ValidFields)
    release: ValidFields = field(default_factory=ValidFields)
    aggregation: ValidFields = field(default_factory=ValidFields)
    refinements: Sequence[ValidFields] = ()
    attacks: Sequence[ValidFields] = ()
    fcd: ValidFields = field(default_factory=ValidFields)


def broken_between_sections(outline: Outline) -> Iterator[RuleViolation]:
    """Yield each broken rule between sections; paths start at the root."""
    yield from _traffic(outline.heading, outline.traffic)
    for index, campaign in enumerate(outline.campaigns):
        for breach in _campaign(outline.heading, campaign):
            yield breach._replace(at=("campaigns", index, *breach.at))
    yield from _unique("campaigns", outline.campaigns)
    yield from _unique("mechanisms", outline.mechanisms)
    yield from _releases(outline)
    for index, refinement in enumerate(outline.refinements):
        for breach in _refinement(outline, refinement):
            yield breach._replace(at=("refinements", index, *breach.at))
    yield from _unique("refinements", outline.refinements)
    for index, attack in enumerate(outline.attacks):
        for breach in broken_attack(
            attack,
            campaigns=outline.campaigns,
            mechanisms=outline.mechanisms,
            aggregation=outline.aggregation,
            traffic=outline.traffic,
        ):
            yield breach._replace(at=("attacks", index, *breach.at))
    yield from _unique("attacks", outline.attacks)
    yield from broken_fcd(outline.fcd, outline.heading)


def _traffic(heading: ValidFields, traffic: ValidFields) -> Iterator[RuleViolation]:
    if not heading.has("duration_s"):
        return
    duration = heading["duration_s"]
    if traffic.has("step_s") and duration / traffic["step_s"] > MOST_TICKS:
        words = (
            f"the run must take at most {MOST_TICKS:,} steps, and duration_s / step_s is "
            f"{duration / traffic['step_s']:,.0f}"
        )
        yield RuleViolation(("traffic", "step_s"), words, traffic["step_s"])
    windows = traffic.get("departures")
    for index, window in enumerate(windows if isinstance(windows, tuple) else ()):
        if window.to_s > duration:
            words = f"must be at most scenario.duration_s = {number(duration)}"
            yield RuleViolation(("traffic", "departures", index, "to_s"), words, window.to_s)


def _campaign(heading: ValidFields, campaign: ValidFields) -> Iterator[RuleViolation]:
    if heading.has("warmup_s") and campaign.has("start_s") and campaign["start_s"] < heading["warmup_s"]:
        words = f"must be at least scenario.warmup_s = {number(heading['warmup_s'])}: warm-up is without queries"
        yield RuleViolation(("start_s",), words, campaign["start_s"])
    if not (heading.has("duration_s") and campaign.has("start_s", "queries", "round_gap_s")):
        return
    if campaign["queries"] > 1 and not campaign.has("every_s"):
        return
    last = last_round_s(campaign)
    if exceeds(last, heading["duration_s"]):
        words = (
            f"the last round must be asked within the run: it would be at {number(last)} s, "
            f"after scenario.duration_s = {number(heading['duration_s'])} s"
        )
        key = "queries" if campaign["queries"] > 1 else "start_s"
        yield RuleViolation((key,), words, campaign[key])


def _refinement(outline: Outline, refinement: ValidFields) -> Iterator[RuleViolation]:
    if all(mechanism.has("name") for mechanism in outline.mechanisms):
        names = [mechanism["name"] for mechanism in outline.mechanisms]
        for place, wanted in enumerate(refinement.get("mechanisms") or ()):
            if wanted not in names:
                hint = suggestion(wanted, names) or f"; there are {', '.join(names)}"
                yield RuleViolation(("mechanisms", place), f"there is no such mechanism{hint}", wanted)
    outside = outline.population.get("outside") or 0
    if refinement.get("total") == "asked" and outside:
        words = f"takes every device asked to be in some cell, and population.outside = {outside} are in none"
        yield RuleViolation(("total",), words, "asked")
    counted = [campaign for campaign in outline.campaigns if campaign.get("statistic", "count") == "count"]
    if refinement.has("window") and all(campaign.get("queries") == 1 for campaign in counted):
        yield RuleViolation(
            ("window",), "there must be a campaign of counts with several queries", refinement["window"]
        )


def _unique(section: str, items: Sequence[ValidFields]) -> Iterator[RuleViolation]:
    for (earlier, first), (later, second) in itertools.combinations(enumerate(items), 2):
        if first.has("name") and first["name"] == second.get("name"):
            words = f"names must differ, and {section}[{earlier}] has this one too"
            yield RuleViolation((section, later, "name"), words, second["name"])


def _releases(outline: Outline) -> Iterator[RuleViolation]:
    told = set()
    for index, campaign in enumerate(outline.campaigns):
        mechanisms = outline.mechanisms
        speeds = campaign.get("statistic", "count") != "count"
        if speeds and mechanisms and not any(mechanism.get("kind") == "no_privacy" for mechanism in mechanisms):
            words = "needs a mechanism of kind no_privacy: devices tell their speed to a trusted server"
            yield RuleViolation(("campaigns", index, "statistic"), words, campaign["statistic"])
        released = released_by(
            campaign,
            index=index,
            default=outline.release,
            mechanisms=mechanisms,
            channel=outline.channel,
            aggregation=outline.aggregation,
        )
        servers = known_of(campaign["aggregation"]) if campaign.has("aggregation") else ValidFields()
        if speeds and servers.get("kind", "trusted") != "trusted":
            words = "must be trusted where speeds are asked for: devices tell theirs to one trusted server"
            yield RuleViolation(("campaigns", index, "aggregation", "kind"), words, servers["kind"])
        for breach in () if released is None else broken_release(released):
            if (breach.at, breach.rule) not in told:  # the default release of several campaigns
                told.add((breach.at, breach.rule))
                yield breach
