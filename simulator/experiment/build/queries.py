"""Whom campaigns ask, and when."""

from collections.abc import Mapping

from mechanisms.local import LocalMechanism
from scenarios import Fault, Scenario, ScenarioError
from scenarios.section import exceeds, number
from simulator.sensing.campaign import moments_of
from simulator.sensing.population import Population
from simulator.sensing.schedule import Schedule
from simulator.streams import Streams


def build_population(scenario: Scenario, *, vehicles: int, streams: Streams) -> Population:
    """Draw who takes part, once each of `vehicles`."""
    section = scenario.population
    takes_part = streams.of("participation").random(vehicles) < section.participation
    return Population(
        takes_part,
        outside=section.outside,
        parked_answer=scenario.traffic.parked == "answer",
        answers=section.answers,
    )


def build_schedules(scenario: Scenario) -> dict[str, Schedule]:
    """Return when each campaign asks, by name."""
    return {
        campaign.name: Schedule(
            start_s=campaign.start_s,
            every_s=campaign.every_s or 0.0,
            queries=campaign.queries,
            round_gap_s=campaign.round_gap_s,
            deadline_s=campaign.deadline_s,
        )
        for campaign in scenario.campaigns
    }


def check_schedules(scenario: Scenario, mechanisms: Mapping[str, LocalMechanism]) -> None:
    """Check that every query is closed before its campaign asks the next.

    The schema has done so for queries of two rounds; a mechanism may go on asking after the moment of truth.

    Raises
    ------
    ScenarioError
        Naming every campaign whose queries overlap.
    """
    moments = moments_of(mechanisms.values())
    faults = []
    for campaign in scenario.campaigns:
        takes_s = (len(moments) - 1) * campaign.round_gap_s + campaign.deadline_s
        if campaign.statistic == "count" and campaign.queries > 1 and exceeds(takes_s, campaign.every_s or 0.0):
            longest = [name for name, one in mechanisms.items() if len(moments_of([one])) == len(moments)]
            words = (
                f"rounds of one campaign must not overlap: with mechanism {', '.join(longest)} a query takes "
                f"{len(moments) - 1} times round_gap_s + deadline_s = {number(takes_s)} s, longer than every_s"
            )
            faults.append(Fault(f"campaigns.{campaign.name}.every_s", words, campaign.every_s))
    if faults:
        raise ScenarioError(scenario.name, faults)
