"""Builds the campaigns of a scenario: each one value, with everything that it asks, of whom, when and through whom."""

from collections.abc import Mapping

from mechanisms.local import LocalMechanism, ParameterError
from scenarios import Fault, Scenario, ScenarioError
from scenarios.campaigns import CampaignSection
from scenarios.field_types import exceeds, number
from scenarios.release import ReleaseRules
from simulator.experiment.build.mechanisms import build_budget, drawn_as_counts
from simulator.experiment.build.releases import build_release, place_of
from simulator.experiment.build.servers import (
    build_deployment,
    build_schedule,
    faults_of_parties,
    faults_of_servers,
)
from simulator.experiment.study_area import City
from simulator.sensing.campaign import Campaign, moments_of


def build_campaigns(scenario: Scenario, mechanisms: Mapping[str, LocalMechanism], city: City) -> list[Campaign]:
    """Build the campaigns of a scenario, in its order.

    Parameters
    ----------
    scenario
        The scenario.
    mechanisms
        By name, with the scenario's parameters. Campaigns without a budget ask them; if answers are drawn as counts,
        without what devices keep from query to query.
    city
        The city whose cells they ask about.

    Raises
    ------
    ScenarioError
        If a campaign's budget, release or servers cannot be built, a query would not be closed before the next, or an
        outage is of a server that does not exist.
    """
    as_counts = scenario.population.answers == "counts"
    asked = {name: drawn_as_counts(one) for name, one in mechanisms.items()} if as_counts else mechanisms
    campaigns: list[Campaign] = []
    faults: list[Fault] = []
    for section, released in zip(scenario.campaigns, scenario.released(), strict=True):
        try:
            campaigns.append(_campaign(scenario, section, released, asked, city))
        except ScenarioError as error:
            faults += error.faults
        except ParameterError as error:
            faults.append(Fault(place_of(released, error.field), error.rule, error.value))
    if not faults:
        faults += _overlapping(scenario, campaigns)
        for section, campaign in zip(scenario.campaigns, campaigns, strict=True):
            faults += faults_of_servers(scenario, section, campaign.deployment, mechanisms)
        outages = enumerate(scenario.channel.outages)
        faults += faults_of_parties({one.server: f"channel.outages[{i}].server" for i, one in outages}, campaigns)
    if faults:
        raise ScenarioError(scenario.name, faults)
    return campaigns


def _campaign(
    scenario: Scenario,
    section: CampaignSection,
    released: ReleaseRules,
    mechanisms: Mapping[str, LocalMechanism],
    city: City,
) -> Campaign:
    """Build one campaign.

    Raises
    ------
    ParameterError
        If the parameters of its release are invalid.
    ScenarioError
        If its budget or its servers cannot be built.
    """
    budget = None
    if section.budget is not None:
        mechanisms, budget = build_budget(scenario, section.name, section.budget, city.cells.count)
    attacks = (one for one in scenario.attacks if one.campaigns is None or section.name in one.campaigns)
    return Campaign(
        section.name,
        build_schedule(section),
        city.cells_of,
        mechanisms,
        build_deployment(scenario, section, city.cells),
        **build_release(released, mechanisms, city),
        budget=budget,
        targets=max((attack.targets for attack in attacks), default=0),
    )


def _overlapping(scenario: Scenario, campaigns: list[Campaign]) -> list[Fault]:
    """Return a fault for each campaign that asks its next query before one is closed.

    The schema has checked this for queries of two rounds; a mechanism may have further rounds after the moment of
    truth, as a budget that asks a second question has.
    """
    faults = []
    for campaign, section in zip(campaigns, scenario.campaigns, strict=True):
        schedule, gaps = campaign.schedule, len(campaign.moments) - 1
        takes_s = schedule.lasts_s(gaps + 1)
        if schedule.queries > 1 and exceeds(takes_s, schedule.every_s):
            longest = [name for name, one in campaign.asked.items() if len(moments_of([one])) == gaps + 1]
            words = (
                f"rounds of one campaign must not overlap: with mechanism {', '.join(longest)} a query takes "
                f"{gaps} times round_gap_s + deadline_s = {number(takes_s)} s, longer than every_s"
            )
            faults.append(Fault(f"campaigns.{campaign.name}.every_s", words, section.every_s))
    return faults
