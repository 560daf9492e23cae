"""Rules between sections, applied to the fields that are valid."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from scenarios.campaigns import last_round_s
from scenarios.errors import RuleViolation
from scenarios.field_types import exceeds, number
from scenarios.kinds import is_capable, names_of
from scenarios.release import broken_release, released_by
from scenarios.run_clock import clock_of
from scenarios.section import ValidFields, broken_names

MOST_TICKS = 2**31 - 1
"""Maximum number of steps of a run: steps are numbered in 32 bits."""


def broken_between_sections(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield each broken rule between the sections of a scenario, for the valid fields; paths start at the root."""
    heading, campaigns = scenario.section("scenario"), scenario.sections("campaigns")
    yield from _traffic(heading, scenario.section("traffic"))
    yield from _coordinates(scenario)
    for index, campaign in enumerate(campaigns):
        yield from _within("campaigns", index, _campaign(heading, campaign))
    yield from _releases(scenario)
    for index, campaign in enumerate(campaigns):
        if campaign.get("budget") is not None:
            yield from _within("campaigns", index, _budget(scenario, campaign))
    for index, refinement in enumerate(scenario.sections("refinements")):
        yield from _within("refinements", index, _refinement(scenario, refinement))
    attacks = scenario.sections("attacks")
    if attacks:
        from scenarios.attacks import broken_attack  # noqa: PLC0415  # most scenarios have no attack

        for index, attack in enumerate(attacks):
            yield from _within("attacks", index, broken_attack(attack, scenario))
    for section in ("campaigns", "mechanisms", "refinements", "attacks"):
        yield from _unique(section, scenario.sections(section))
    yield from _fcd(heading, scenario.section("fcd"))


def _within(section: str, index: int, broken: Iterable[RuleViolation]) -> Iterator[RuleViolation]:
    for breach in broken:
        yield breach._replace(at=(section, index, *breach.at))


def _traffic(heading: ValidFields, traffic: ValidFields) -> Iterator[RuleViolation]:
    if not heading.has("duration_s"):
        return
    duration = heading["duration_s"]
    if traffic.has("step_s") and duration / traffic["step_s"] > MOST_TICKS:
        rule = (
            f"the run must take at most {MOST_TICKS:,} steps, and duration_s / step_s is "
            f"{duration / traffic['step_s']:,.0f}"
        )
        yield RuleViolation(("traffic", "step_s"), rule, traffic["step_s"])
    windows = traffic.get("departures")
    for index, window in enumerate(windows if isinstance(windows, tuple) else ()):
        if window.to_s > duration:
            rule = f"must be at most scenario.duration_s = {number(duration)} s"
            yield RuleViolation(("traffic", "departures", index, "to_s"), rule, window.to_s)


def _coordinates(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a network without coordinates, unless cells are its links and vehicles are simulated."""
    roads, cells, traffic = (scenario.section(name) for name in ("roads", "cells", "traffic"))
    if roads.get("source") != "tntp" or "nodes" not in roads or roads["nodes"] is not None:
        return
    recorded = traffic.get("engine") in names_of("engine", "recorded")
    if cells.get("kind") != "roads" or recorded:
        rule = (
            "is required: the file of node coordinates, TNTP text (node x y) or GeoJSON points; without one, as many "
            'published networks come, set cells.kind = "roads", whose cells are links, and let vehicles drive'
        )
        yield RuleViolation(("roads", "nodes"), rule)


def _campaign(heading: ValidFields, campaign: ValidFields) -> Iterator[RuleViolation]:
    clock = clock_of({"scenario": heading})
    if heading.has("warmup_s") and campaign.has("start_s") and campaign["start_s"] < heading["warmup_s"]:
        warmup = heading["warmup_s"]
        shown = f"{number(warmup)} s{clock.aside(warmup)}"
        rule = f"must be at least scenario.warmup_s = {shown}: warm-up is without queries"
        yield campaign.violation("start_s", rule)
    if not (heading.has("duration_s") and campaign.has("start_s", "queries", "round_gap_s")):
        return
    if campaign["queries"] > 1 and not campaign.has("every_s"):
        return
    last = last_round_s(campaign)
    if exceeds(last, heading["duration_s"]):
        rule = (
            f"the last round must be asked within the run: it would be at {number(last)} s{clock.aside(last)}, after "
            f"scenario.duration_s = {number(heading['duration_s'])} s{clock.aside(heading['duration_s'])}"
        )
        key = "queries" if campaign["queries"] > 1 else "start_s"
        yield campaign.violation(key, rule)


def _budget(scenario: ValidFields, campaign: ValidFields) -> Iterator[RuleViolation]:
    """Yield each rule that a campaign with a budget breaks; paths are relative to the campaign."""
    kind = campaign.section("budget").get("kind")
    at, divisible = ("budget", "kind"), names_of("mechanism", "divisible")
    if campaign.get("statistic", "count") != "count":
        yield RuleViolation(at, 'needs statistic = "count": reports of speeds have no budget', kind)
    servers = campaign.section("aggregation") or scenario.section("aggregation")
    if kind != "uniform" and servers.get("noise") is not None:
        rule = "does not support aggregation.noise: the decision to publish does not know of it; uniform does"
        yield RuleViolation(at, rule, kind)
    for mechanism in scenario.sections("mechanisms"):
        if mechanism.has("kind", "name") and mechanism["kind"] not in divisible:
            rule = (
                f"divides the parameter epsilon of mechanisms of one round ({', '.join(divisible)}), and "
                f'mechanisms.{mechanism["name"]} is of kind "{mechanism["kind"]}"'
            )
            yield RuleViolation(at, rule, kind)
    for refinement in scenario.sections("refinements"):
        rule = f"does not support refinements, and there is refinements.{refinement.get('name')}"
        yield RuleViolation(at, rule, kind)
    for attack in scenario.sections("attacks"):
        named = attack.get("campaigns")
        if named is None or campaign.get("name") in named:
            rule = (
                f"does not support attacks; name campaigns without a budget in attacks.{attack.get('name')}.campaigns"
            )
            yield RuleViolation(at, rule, kind)


def _fcd(heading: ValidFields, fcd: ValidFields) -> Iterator[RuleViolation]:
    if not (heading.has("duration_s") and fcd.has("every_s", "from_s")):
        return
    duration = heading["duration_s"]
    for key in ("from_s", "to_s"):
        if fcd.has(key) and exceeds(fcd[key], duration):
            yield RuleViolation(("fcd", key), f"must be at most scenario.duration_s = {number(duration)} s", fcd[key])


def _refinement(scenario: ValidFields, refinement: ValidFields) -> Iterator[RuleViolation]:
    yield from broken_names(refinement, "mechanisms", "mechanism", scenario.sections("mechanisms"))
    outside = scenario.section("population").get("outside") or 0
    if refinement.get("total") == "asked" and outside:
        rule = f"assumes that every device asked is in some cell, but population.outside = {outside} are in none"
        yield RuleViolation(("total",), rule, "asked")
    counted = [campaign for campaign in scenario.sections("campaigns") if campaign.get("statistic", "count") == "count"]
    if refinement.has("window") and all(campaign.get("queries") == 1 for campaign in counted):
        yield refinement.violation("window", "there must be a campaign of counts with several queries")


def _unique(section: str, items: Sequence[ValidFields]) -> Iterator[RuleViolation]:
    for (earlier, first), (later, second) in itertools.combinations(enumerate(items), 2):
        if first.has("name") and first["name"] == second.get("name"):
            rule = f"names must differ, and {section}[{earlier}] has this one too"
            yield RuleViolation((section, later, "name"), rule, second["name"])


def _releases(scenario: ValidFields) -> Iterator[RuleViolation]:
    reported = set()
    mechanisms = scenario.sections("mechanisms")
    exact = any(is_capable("mechanism", mechanism.get("kind"), "exact") for mechanism in mechanisms)
    for index, campaign in enumerate(scenario.sections("campaigns")):
        speeds = campaign.get("statistic", "count") != "count"
        if speeds and mechanisms and not exact:
            rule = "needs a mechanism of kind no_privacy: devices report their speed to a trusted server"
            yield RuleViolation(("campaigns", index, "statistic"), rule, campaign["statistic"])
        servers = campaign.section("aggregation")
        if speeds and servers.get("kind", "trusted") != "trusted":
            rule = "must be trusted for campaigns of speeds: devices report them to one trusted server"
            yield RuleViolation(("campaigns", index, "aggregation", "kind"), rule, servers["kind"])
        released = released_by(scenario, index)
        for breach in () if released is None else broken_release(released):
            if (breach.at, breach.rule) not in reported:  # the default release of several campaigns
                reported.add((breach.at, breach.rule))
                yield breach
