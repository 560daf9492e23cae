"""Builds the channel, the servers and the schedule of each campaign."""

from collections.abc import Iterable, Iterator, Mapping
from inspect import signature

from mechanisms.local import LocalMechanism, ParameterError
from mechanisms.privacy.integer_noise import IntegerNoise
from scenarios import Fault, Scenario, ScenarioError
from scenarios.channel import Aggregation, AggregationSection, OwnAggregation
from scenarios.field_types import exceeds, number
from scenarios.kinds import find_kind, is_capable
from simulator.aggregation.combining import Combining
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.secret_sharing import EncodingRule
from simulator.aggregation.server_noise import NOT_NOISY, weight_of
from simulator.aggregation.sharing_servers import OwnSharing
from simulator.aggregation.transcript import NETWORK
from simulator.cells import Partition
from simulator.experiment.build.constructors import build_own_kind, constructor_of, faults_of_files, same_keys
from simulator.experiment.build.mechanisms import BudgetedCampaign
from simulator.sensing.campaign import AskedInRounds, moments_of
from simulator.sensing.channel import Channel, Downtime, Latency
from simulator.sensing.messages import Behaviour
from simulator.sensing.query import QueriedPopulation, Schedule
from simulator.streams import Streams

FEW_PARTIES = 8


def build_channel(scenario: Scenario) -> Channel:
    """Build the channel between devices and servers."""
    section = scenario.channel
    loss_one, loss_two = section.losses
    kind, given = section.latency_s.kind, section.latency_s.model_dump(exclude={"kind"})
    latency: Latency
    if find_kind("latency", kind) is None:
        with faults_of_files(scenario, "channel.latency_s"):
            latency = build_own_kind("latency", kind, given)
    else:
        latency = constructor_of("latency", kind)(**given)
    outages = tuple(Downtime(outage.server, outage.from_s, outage.to_s) for outage in section.outages)
    keys = same_keys(section, "burst_s", "churn", "duplicates")
    return Channel(latency, loss_one=loss_one, loss_two=loss_two, outages=outages, **keys)


def build_deployments(
    scenario: Scenario, mechanisms: Mapping[str, LocalMechanism], cells: Partition
) -> dict[str, Deployment]:
    """Build every campaign's deployment, its own or the scenario's, by the campaign's name.

    Raises
    ------
    ScenarioError
        If reports are to be checked for which no check is known, or an outage is of a server that does not exist.
    """
    faults: list[Fault] = []
    deployments = {}
    for campaign in scenario.campaigns:
        # Speeds are always sent to a trusted server, whatever the deployment of campaigns that count.
        default = scenario.aggregation if campaign.statistic == "count" else Aggregation()
        section = campaign.aggregation or default
        at = f"campaigns.{campaign.name}.aggregation" if campaign.aggregation else "aggregation"
        with faults_of_files(scenario, at):
            deployments[campaign.name] = _deployment(section, cells, anonymous=scenario.channel.anonymous)
        if deployments[campaign.name].noise is not None:
            faults.extend(_without_noise(f"{at}.noise", mechanisms))
            release = campaign.release or scenario.release
            if release.kind != "none":
                words = "cannot be combined with a release, which has noise or a sample of its own"
                faults.append(Fault(f"{at}.noise", words, release.kind))
        if getattr(section, "robust", False) and is_capable("deployment", section.kind, "shares"):
            faults.extend(_unchecked(f"{at}.robust", mechanisms))
    outages = {outage.server: f"channel.outages[{i}].server" for i, outage in enumerate(scenario.channel.outages)}
    faults += _no_parties(outages, deployments, mechanisms)
    if faults:
        raise ScenarioError(scenario.name, faults)
    return deployments


def check_behaviour(
    scenario: Scenario,
    behaviour: Behaviour,
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
) -> None:
    """Raise an error for parties with a behaviour of their own that no campaign and mechanism has.

    Raises
    ------
    ScenarioError
        If there are such parties; the message lists those that exist.
    """
    if faults := list(_no_parties(dict.fromkeys(behaviour.parties, "behaviour.parties"), deployments, mechanisms)):
        raise ScenarioError(scenario.name, faults)


def _no_parties(
    named: Mapping[str, str], deployments: Mapping[str, Deployment], mechanisms: Mapping[str, LocalMechanism]
) -> Iterator[Fault]:
    """Yield a fault for each of the named servers and mixers that does not exist; `named` is where each is named."""
    known = {party for one in deployments.values() for each in mechanisms.values() for party in one.parties(each)}
    known.discard(NETWORK)
    for party, where in named.items():
        if party not in known:
            yield Fault(where, f"there is none; there are {_listed(known)}", party)


def unchecked_counts(scenario: Scenario, deployments: Mapping[str, Deployment]) -> Iterator[str]:
    """Yield a note for each aggregator that accepts reports, if some devices have no reports but answer by counts."""
    population = scenario.population
    if population.answers == "reports" or not (population.answers == "counts" or population.outside):
        return
    for kind in dict.fromkeys(one.kind for one in deployments.values() if isinstance(one, Combining) and one.checks):
        which = "devices" if population.answers == "counts" else "devices outside every cell"
        yield (
            f"aggregation: {kind} does not check {which}: their reports are drawn as counts; "
            'population.answers = "reports" simulates each report'
        )


def _listed(parties: Iterable[str]) -> str:
    """List parties in the order of their numbers; if there are many, only the first two and the last."""
    named = sorted(parties, key=lambda party: (len(party), party))
    shown = named if len(named) <= FEW_PARTIES else [*named[:2], "…", named[-1]]
    return ", ".join(shown)


def _deployment(section: AggregationSection, cells: Partition, *, anonymous: bool) -> Deployment:
    """Build the deployment of a section, from those of its keys that the kind's constructor takes."""
    if isinstance(section, OwnAggregation):
        built = build_own_kind("deployment", section.kind, section.model_extra or {}, cells=cells)
    else:
        build = constructor_of("deployment", section.kind)
        available = {**section.model_dump(), "cells": cells, "anonymous": anonymous, "noise": _noise(section)}
        built = build(**{name: value for name, value in available.items() if name in signature(build).parameters})
    if isinstance(built, Deployment):
        return built
    if hasattr(built, "combine"):
        return Combining(own=built, name=section.kind, anonymous=anonymous)
    chosen = same_keys(built, *(name for name in ("handles", "paired") if hasattr(built, name)))
    return OwnSharing(own=built, name=section.kind, servers=built.servers, anonymous=anonymous, **chosen)


def _noise(section: AggregationSection) -> IntegerNoise | None:
    """Return the noise that each server adds; None if there is none."""
    noise = getattr(section, "noise", None)
    if noise is None:
        return None
    made: IntegerNoise = constructor_of("noise", noise.kind)(noise.kind, *noise.model_dump(exclude={"kind"}).values())
    return made


def _without_noise(at: str, mechanisms: Mapping[str, LocalMechanism]) -> list[Fault]:
    """Return a fault for every mechanism to whose sums servers cannot add noise."""
    return [Fault(at, NOT_NOISY, name) for name, mechanism in mechanisms.items() if weight_of(mechanism) is None]


def _unchecked(at: str, mechanisms: Mapping[str, LocalMechanism]) -> list[Fault]:
    """Return a fault for every mechanism for whose reports no range proof is known."""
    faults = []
    for name, mechanism in mechanisms.items():
        try:
            EncodingRule.of(mechanism)
        except ParameterError as error:
            faults.append(Fault(at, f"{error.rule}; mechanisms.{name} is one", value=True))
    return faults


def build_population(scenario: Scenario, *, vehicles: int, streams: Streams) -> QueriedPopulation:
    """Build the population; whether each of `vehicles` takes part is drawn once."""
    section = scenario.population
    takes_part = streams.of("participation").random(vehicles) < section.participation
    parked = scenario.traffic.parked == "answer"
    return QueriedPopulation(takes_part, parked_answer=parked, **same_keys(section, "outside", "answers"))


def build_schedules(scenario: Scenario) -> dict[str, Schedule]:
    """Return the schedule of each campaign's queries, by name."""
    return {
        campaign.name: Schedule(
            every_s=campaign.every_s or 0.0, **same_keys(campaign, "start_s", "queries", "round_gap_s", "deadline_s")
        )
        for campaign in scenario.campaigns
    }


def check_schedules(
    scenario: Scenario, mechanisms: Mapping[str, LocalMechanism], budgets: Mapping[str, BudgetedCampaign]
) -> None:
    """Check that every query is closed before its campaign asks the next.

    The schema has checked this for queries of two rounds; a mechanism may have further rounds after the moment of
    truth, as a budget that asks a second question has.

    Raises
    ------
    ScenarioError
        If queries overlap; the message names every campaign concerned.
    """
    faults = []
    for campaign in scenario.campaigns:
        adaptive = budgets[campaign.name].adaptive if campaign.name in budgets else {}
        asked: dict[str, AskedInRounds] = {**mechanisms, **adaptive}
        moments = moments_of(asked.values())
        takes_s = (len(moments) - 1) * campaign.round_gap_s + campaign.deadline_s
        if campaign.statistic == "count" and campaign.queries > 1 and exceeds(takes_s, campaign.every_s or 0.0):
            longest = [name for name, one in asked.items() if len(moments_of([one])) == len(moments)]
            words = (
                f"rounds of one campaign must not overlap: with mechanism {', '.join(longest)} a query takes "
                f"{len(moments) - 1} times round_gap_s + deadline_s = {number(takes_s)} s, longer than every_s"
            )
            faults.append(Fault(f"campaigns.{campaign.name}.every_s", words, campaign.every_s))
    if faults:
        raise ScenarioError(scenario.name, faults)
