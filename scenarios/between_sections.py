"""Rules between sections, applied to the fields that are valid."""

import itertools
import math
from collections.abc import Iterator

from scenarios.attacks import broken_attack
from scenarios.campaigns import last_round_s
from scenarios.errors import RuleViolation, suggestion
from scenarios.field_types import exceeds, number
from scenarios.kinds import is_capable, names_of
from scenarios.release import broken_release, released_by
from scenarios.rules import Each, bounded, must, unlike
from scenarios.run_clock import clock_of
from scenarios.section import BrokenRules, ValidFields, broken_names

MOST_TICKS = 2**31 - 1
"""Maximum number of steps of a run: steps are numbered in 32 bits."""
_NO_TIME_S = 1e-6


def _steps(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a run of too many steps."""
    heading, traffic = scenario.section("scenario"), scenario.section("traffic")
    steps = heading["duration_s"] / traffic["step_s"] if heading.has("duration_s") and traffic.has("step_s") else 0
    if steps > MOST_TICKS:
        rule = f"the run must take at most {MOST_TICKS:,} steps, and duration_s / step_s is {steps:,.0f}"
        yield RuleViolation(("traffic", "step_s"), rule, traffic["step_s"])


def _coordinates(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a network without coordinates, unless cells are its links and vehicles are simulated."""
    roads, traffic = scenario.section("roads"), scenario.section("traffic")
    links = all(cells.get("kind") == "roads" for cells in scenario.sections("cells"))
    key = {"tntp": "nodes", "gmns": "coordinates"}.get(str(roads.get("source")), "")
    if not key or key not in roads or roads[key] not in (None, "none"):
        return
    recorded = traffic.get("engine") in names_of("engine", "recorded")
    if not links or recorded:
        required = (
            "is required: the file of node coordinates, TNTP text (node x y) or GeoJSON points; without one, as many "
            "published networks come,"
        )
        rule = required if key == "nodes" else "must be places; without them"
        rule += ' set cells.kind = "roads", whose cells are links, and let vehicles drive'
        yield RuleViolation(("roads", key), rule)


def _link_intervals(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each thing that needs link entries, if the engine does not know its vehicles' link entries."""
    traffic, every_s = scenario.section("traffic"), scenario.section("report").get("link_interval_s")
    if (engine := traffic.get("engine")) is None:
        return
    known, routed = names_of("engine", "links"), names_of("engine", "routed")
    if engine not in routed:
        rule = f"needs traffic.engine {' or '.join(routed)}, which log the link entries of each vehicle"
        yield from (RuleViolation((key,), rule) for key in ("detectors", "counts") if scenario.sections(key))
    if every_s is None:
        return
    rule = ""
    if engine not in known:
        rule = f"needs traffic.engine {', '.join(known[:-1])} or {known[-1]}, whose link entries are known"
    elif engine == "sumo" and scenario.section("roads").get("source", "sumo") != "sumo":
        rule = 'needs roads.source = "sumo" with engine sumo: links of other roads are not SUMO\'s edges'
    elif engine == "sumo" and traffic.has("step_s") and abs(math.remainder(every_s, traffic["step_s"])) > _NO_TIME_S:
        rule = f"must be a whole number of steps of {number(traffic['step_s'])} s with engine sumo"
    if rule:
        yield RuleViolation(("report", "link_interval_s"), rule, every_s)


def _times(campaign: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for rounds during warm-up or after the run."""
    heading = campaign.outer.section("scenario")
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


def _budget(campaign: ValidFields) -> Iterator[RuleViolation]:
    """Yield each rule that a campaign with a budget breaks."""
    if campaign.get("budget") is None:
        return
    scenario, kind = campaign.outer, campaign.section("budget").get("kind")
    divisible = names_of("mechanism", "divisible")
    servers = campaign.section("aggregation") or scenario.section("aggregation")
    rules = []
    if kind != "uniform" and servers.get("noise") is not None:
        rules.append("does not support aggregation.noise; uniform does")
    divides = f"divides the parameter epsilon of mechanisms of one round ({', '.join(divisible)})"
    mechanisms = [mechanism for mechanism in scenario.sections("mechanisms") if mechanism.has("kind", "name")]
    others = [mechanism for mechanism in mechanisms if mechanism["kind"] not in divisible]
    rules += [f'{divides}, and mechanisms.{other["name"]} is of kind "{other["kind"]}"' for other in others]
    refinements = [refinement.get("name") for refinement in scenario.sections("refinements")]
    rules += [f"does not support refinements, and there is refinements.{name}" for name in refinements]
    for attack in scenario.sections("attacks"):
        if attack.get("campaigns") is None or campaign.get("name") in attack["campaigns"]:
            key = f"attacks.{attack.get('name')}.campaigns"
            rules.append(f"does not support attacks; name campaigns without a budget in {key}")
    for rule in rules:
        yield RuleViolation(("budget", "kind"), rule, kind)


def _ledger(ledger: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a ledger that may skip a query of a budget over consecutive queries."""
    campaigns = ledger.outer.sections("campaigns")
    budgets = {campaign.section("budget").get("kind") for campaign in campaigns} - {None, "uniform"}
    if ledger.get("exceeded") == "skip" and budgets:
        yield ledger.violation("exceeded", f'must be "refuse" beside a budget of kind {budgets.pop()}')


LISTS = ("campaigns", "ledger", "behaviours", "mechanisms", "refinements", "attacks", "detectors")
"""Lists of sections, written ``[[campaigns]]`` and so on."""
_NAMED = {"cells": "partition"} | dict.fromkeys(LISTS, "name")
"""The key of the name of an item, by list."""


def _names(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for each name that an earlier item of the same list has."""
    for section, key in _NAMED.items():
        items = enumerate(scenario.sections(section))
        for (earlier, first), (later, second) in itertools.combinations(items, 2):
            if first.has(key) and first[key] == second.get(key):
                rule = f"names must differ, and {section}[{earlier}] has this one too"
                yield RuleViolation((section, later, key), rule, second[key])


def _partition(campaign: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for a campaign about a partition that does not exist."""
    names = [cells["partition"] for cells in campaign.outer.sections("cells") if cells.has("partition")]
    wanted = campaign.get("cells")
    if wanted is not None and names and wanted not in names:
        hint = suggestion(wanted, names) or f"; there are {', '.join(names)}"
        yield campaign.violation("cells", f"there is no such partition{hint}")


def _releases(scenario: ValidFields) -> Iterator[RuleViolation]:
    reported = set()
    mechanisms = scenario.sections("mechanisms")
    exact = any(is_capable("mechanism", mechanism.get("kind"), "exact") for mechanism in mechanisms)
    for index, campaign in enumerate(scenario.sections("campaigns")):
        speeds = campaign.get("statistic", "count") != "count"
        if speeds and mechanisms and not exact:
            rule = "needs a mechanism of kind no_privacy: devices report their speed to a trusted server"
            yield RuleViolation(("campaigns", index, "statistic"), rule, campaign["statistic"])
        released = released_by(scenario, index)
        for breach in () if released is None else broken_release(released):
            if (breach.at, breach.rule) not in reported:  # the default release of several campaigns
                reported.add((breach.at, breach.rule))
                yield breach


def _shares(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for behaviours whose shares of the devices are more than all."""
    shares = [section.get("share") or 0.0 for section in scenario.sections("behaviours")]
    if exceeds(sum(shares), 1.0):
        yield RuleViolation(("behaviours",), "their shares must not exceed 1 together", sum(shares))


_TOTAL = must(
    "total",
    unlike("asked"),
    "assumes that every device asked is in some cell, but {population.outside} are in none",
    **{"population.outside": unlike(0)},
)


def _places(scenario: ValidFields) -> Iterator[RuleViolation]:
    """Yield a fault for errors of positions, and for zones of loss, where they cannot be simulated."""
    speeds = any(campaign.get("statistic", "count") != "count" for campaign in scenario.sections("campaigns"))
    population, zones = scenario.section("population"), scenario.section("channel").get("zones")
    if population.get("position_error_m") and (speeds or scenario.section("traffic").get("engine") == "static"):
        rule = 'needs campaigns of counts and vehicles with coordinates: must be 0 for speeds and engine = "static"'
        yield RuleViolation(("population", "position_error_m"), rule, population["position_error_m"])
    if zones and (speeds or population.get("answers") == "counts"):
        rule = 'needs campaigns of counts and devices that answer one by one: answers = "counts" has none'
        yield RuleViolation(("channel", "zones"), rule)


BETWEEN_SECTIONS: tuple[BrokenRules, ...] = (
    _steps,
    Each("traffic.departures", (bounded("to_s", "at most", "scenario.duration_s"),)),
    _coordinates,
    _link_intervals,
    Each("campaigns", (_times, _partition)),
    _places,
    _releases,
    Each("campaigns", (_budget,)),
    Each("ledger", (broken_names, _ledger)),
    Each("refinements", (_TOTAL, broken_names)),
    Each("attacks", (broken_attack,)),
    _shares,
    _names,
    bounded("fcd.from_s", "at most", "scenario.duration_s"),
    bounded("fcd.to_s", "at most", "scenario.duration_s"),
)
"""The rules between the sections of a scenario."""
