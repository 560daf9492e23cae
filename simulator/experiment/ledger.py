"""Ledgers: what queries reveal of a person in each period, and which are not asked because a budget is exceeded."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from mechanisms.privacy.rounding import rounded_up
from scenarios import Fault, Scenario, ScenarioError
from scenarios.campaigns import PERIODS, LedgerSection
from scenarios.field_types import exceeds, number
from scenarios.run_clock import RunClock
from simulator.experiment.deployment_record import NOTHING
from simulator.experiment.whole_run_claims import WholeRun
from simulator.files.messages import Note, warning
from simulator.sensing.campaign import Campaign

PRECISION = 1e-9
"""Largest amount by which the ε of composed queries is too large, where it is found by bisection."""


def ledger_entries(scenario: Scenario, campaigns: Sequence[Campaign], clock: RunClock) -> Iterator[dict[str, Any]]:
    """Yield the rows of `ledger.parquet`: each query of each mechanism, in each ledger that limits it.

    Each mechanism has an account of its own: mechanisms are alternatives, of which a device has one. Queries are
    entered in the order in which they start; those that start together, in the order of the campaigns. A query that one
    ledger skips is entered in no other. No claim depends on traffic.

    Raises
    ------
    ScenarioError
        If a query exceeds the budget of a ledger that refuses the run, or no query is left to ask.
    """

    @cache
    def reached(section: LedgerSection, mechanism: str, numbers: frozenset[tuple[str, int]]) -> float:
        """Return the ε of numbers of queries by campaign, at the ledger's δ."""
        asking = [campaign for campaign in campaigns if campaign.name in dict(numbers)]
        moments = [(campaign, 0.0) for campaign, times in numbers for _ in range(times)]
        claim = WholeRun(mechanism, asking, moments).claim(section.view) if asking else NOTHING
        return claim.epsilon_at(section.delta, precision=PRECISION)

    start = clock.at(0.0)
    begins_s = 3600.0 * start.hour + 60.0 * start.minute + start.second
    asked: defaultdict[tuple[str, str, int], Counter[str]] = defaultdict(Counter)  # by ledger, mechanism and period
    order = [
        (campaign.schedule.asked_s(query), query, campaign, name)
        for campaign in campaigns
        for query in range(1, campaign.schedule.queries + 1)
        for name in campaign.mechanisms
        if campaign.asks(name, query)
    ]
    left = len(order)
    for time_s, query, campaign, mechanism in sorted(order, key=lambda entry: entry[0]):
        entries = []
        for section in (one for one in scenario.ledger if one.covers(campaign.name, mechanism)):
            period = int((begins_s + time_s) // PERIODS[section.period]) + 1
            numbers = asked[section.name, mechanism, period]
            after = reached(section, mechanism, frozenset((numbers + Counter([campaign.name])).items()))
            entries.append((section, period, numbers, after))
        over = [section for section, *_, after in entries if exceeds(after, section.epsilon)]
        skips = any(section.exceeded == "skip" for section in over)
        left -= skips
        for section, period, numbers, after in entries:
            if section in over and not skips:
                rule = (
                    f"is exceeded: query {query} of campaign {campaign.name}{clock.aside(time_s)} brings mechanisms."
                    f"{mechanism} to ε = {rounded_up(after)} at δ = {number(section.delta)} in period {period}; "
                    'exceeded = "skip" leaves such queries out'
                )
                raise ScenarioError(scenario.name, [Fault(f"ledger.{section.name}.epsilon", rule, section.epsilon)])
            before = reached(section, mechanism, frozenset(numbers.items()))
            numbers.update([] if skips else [campaign.name])
            subject = {"ledger": section.name, "campaign": campaign.name, "operator": campaign.operator}
            asked_at = {"mechanism": mechanism, "query": query, "time_s": time_s, "period": period}
            spent = {"spent_by_query": 0.0 if skips else after - before, "spent": before if skips else after}
            limits = {"budget": section.epsilon, "delta": section.delta, "outcome": "skipped" if skips else "asked"}
            yield {**subject, **asked_at, "reached": after, **spent, **limits}
    if order and not left:
        raise ScenarioError(scenario.name, [Fault("ledger", "must allow some query: each exceeds a budget")])


def skipped_of(campaign: str, entries: Sequence[dict[str, Any]]) -> set[tuple[str, int]]:
    """Return the mechanisms of a campaign, each with the number of a query that is not asked of it."""
    own = (row for row in entries if row["campaign"] == campaign and row["outcome"] == "skipped")
    return {(row["mechanism"], row["query"]) for row in own}


def ledger_notes(entries: Sequence[dict[str, Any]]) -> Iterator[Note]:
    """Yield a warning for each ledger, mechanism and campaign with queries that are not asked."""
    keys = ("ledger", "mechanism", "campaign", "budget", "delta")
    over = [row for row in entries if row["outcome"] == "skipped" and exceeds(row["reached"], row["budget"])]
    skipped = Counter(tuple(row[key] for key in keys) for row in over)
    for (name, mechanism, campaign, budget, delta), times in skipped.items():
        limit = f"ε = {number(budget)} at δ = {number(delta)}"
        text = f"ledger.{name}: {mechanism} is not asked at {times:,} queries of {campaign}, to stay within {limit}"
        yield warning("ledger", text, f"ledger.{name}")
