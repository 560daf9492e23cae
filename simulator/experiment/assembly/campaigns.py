"""Builds campaigns, each one value with its servers and schedule, and what all share: channel and population."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from mechanisms.local import LocalMechanism, ParameterError
from mechanisms.privacy.integer_noise import IntegerNoise
from scenarios import Fault, Scenario, ScenarioError
from scenarios import channel as sections
from scenarios.attacks import TrainingPrior
from scenarios.campaigns import CampaignSection
from scenarios.field_types import exceeds, number
from scenarios.kinds import is_capable
from scenarios.release import ReleaseRules
from simulator.aggregation.combining import Combining, RoadsideUnits
from simulator.aggregation.deployment import HASH_NBYTES, Deployment
from simulator.aggregation.private_write import PrivateWrite, check_one_cell
from simulator.aggregation.secret_sharing import EncodingRule
from simulator.aggregation.server_noise import NOT_NOISY, weight_of
from simulator.aggregation.servers import OwnSharing, PerRound, SecretShared, ShuffledReports, ThresholdShared, Trusted
from simulator.aggregation.transcript import NETWORK
from simulator.cells import Partition
from simulator.experiment.assembly.engine import answering_states
from simulator.experiment.assembly.mechanisms import build_budget, drawn_as_counts
from simulator.experiment.assembly.own_kinds import accepted, build_own_kind, faults_of_files, same_keys
from simulator.experiment.assembly.releases import build_release, place_of
from simulator.experiment.assembly.selection import rates_of_classes
from simulator.experiment.study_area import City
from simulator.files.messages import Note
from simulator.sensing.campaign import Campaign, moments_of
from simulator.sensing.channel import (
    Channel,
    ConstantDelay,
    Downtime,
    ExponentialDelay,
    Latency,
    LognormalDelay,
    QuestionChannel,
)
from simulator.sensing.query import QueriedPopulation, Schedule
from simulator.sensing.selection import LocalShare
from simulator.streams import Streams
from simulator.traffic.engine import Engine


def build_campaigns(
    scenario: Scenario, mechanisms: Mapping[str, Mapping[str, LocalMechanism]], city: City
) -> list[Campaign]:
    """Build the campaigns of a scenario, in its order.

    Parameters
    ----------
    scenario
        The scenario.
    mechanisms
        By partition, then by name, with the scenario's parameters. Campaigns without a budget ask them; if answers are
        drawn as counts, without what devices keep from query to query.
    city
        The city whose cells they ask about.

    Raises
    ------
    ScenarioError
        If a campaign's budget, release or servers cannot be built, a query would not be closed before the next, or an
        outage is of a server that does not exist.
    """
    as_counts = scenario.population.answers == "counts"
    asked = {
        partition: {name: drawn_as_counts(mechanism) for name, mechanism in own.items()} if as_counts else own
        for partition, own in mechanisms.items()
    }
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
            faults += faults_of_servers(scenario, section, campaign.deployment, mechanisms[campaign.partition])
        outages = enumerate(scenario.channel.outages)
        faults += faults_of_parties({outage.server: f"channel.outages[{i}].server" for i, outage in outages}, campaigns)
    if faults:
        raise ScenarioError(scenario.name, faults)
    return campaigns


def _campaign(
    scenario: Scenario,
    section: CampaignSection,
    released: ReleaseRules,
    mechanisms_of: Mapping[str, Mapping[str, LocalMechanism]],
    whole: City,
) -> Campaign:
    """Build one campaign.

    Raises
    ------
    ParameterError
        If the parameters of its release are invalid.
    ScenarioError
        If its budget or its servers cannot be built.
    """
    city, budget, error_m = whole.divided(section.cells), None, scenario.population.position_error_m
    (partition,) = city.partitions
    mechanisms = mechanisms_of[partition]
    if section.budget is not None:
        mechanisms, budget = build_budget(scenario, section.name, section.budget, city.cells.count)
    attacks = (attack for attack in scenario.attacks if attack.campaigns is None or section.name in attack.campaigns)
    return Campaign(
        section.name,
        build_schedule(section),
        city.cells_of,
        mechanisms,
        build_deployment(scenario, section, city.cells),
        **build_release(released, section.release or scenario.release, mechanisms, city),
        budget=budget,
        partition=partition,
        # Of the vehicles recorded for a prior that is learned from them, half are never attacked.
        targets=max((one.targets * (1 + isinstance(one.prior, TrainingPrior)) for one in attacks), default=0),
        measured_cells=partial(city.measured_cells, error_m=error_m) if error_m else None,
        operator=section.operator,
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
            longest = [name for name, mechanism in campaign.asked.items() if len(moments_of([mechanism])) == gaps + 1]
            rule = (
                f"rounds of one campaign must not overlap: with mechanism {', '.join(longest)} a query takes "
                f"{gaps} times round_gap_s + deadline_s = {number(takes_s)} s, longer than every_s"
            )
            faults.append(Fault(f"campaigns.{campaign.name}.every_s", rule, section.every_s))
    return faults


FEW_PARTIES = 8


LATENCIES: Mapping[type[sections.LatencySection], Callable[..., Latency]] = {
    sections.ConstantLatency: ConstantDelay,
    sections.ExponentialLatency: ExponentialDelay,
    sections.LognormalLatency: LognormalDelay,
}
"""The distribution of each kind of latency, whose parameters are the keys of the section."""


def build_channel(scenario: Scenario, zones: tuple[LocalShare, ...]) -> Channel:
    """Build the channel between devices and servers, which loses more reports in zones."""
    section = scenario.channel
    loss_one, loss_two = section.losses
    question = QuestionChannel(_latency(section.question.latency_s), section.question.loss)
    outages = tuple(Downtime(outage.server, outage.from_s, outage.to_s) for outage in section.outages)
    keys = same_keys(section, "burst_s", "churn", "duplicates", "slot_s")
    latency = _latency(section.latency_s)
    keys |= {"outages": outages, "zones": zones, "question": question}
    return Channel(latency, loss_one=loss_one, loss_two=loss_two, **keys)


def _latency(section: sections.LatencySection) -> Latency:
    return LATENCIES[type(section)](**section.model_dump(exclude={"kind"}))


def build_deployment(scenario: Scenario, campaign: CampaignSection, cells: Partition) -> Deployment:
    """Build a campaign's deployment, its own or the scenario's.

    Raises
    ------
    ScenarioError
        If a user's own aggregator cannot be built.
    """
    section, at = _servers_of(scenario, campaign)
    with faults_of_files(scenario, at):
        return _deployment(section, cells, scenario.channel)


def faults_of_servers(
    scenario: Scenario, campaign: CampaignSection, deployment: Deployment, mechanisms: Mapping[str, LocalMechanism]
) -> Iterator[Fault]:
    """Yield a fault if the servers cannot check or share the reports of a mechanism, or cannot add their noise."""
    section, at = _servers_of(scenario, campaign)
    if deployment.noise is not None:
        for name, mechanism in mechanisms.items():
            if weight_of(mechanism) is None:
                yield Fault(f"{at}.noise", NOT_NOISY, name)
        release = campaign.release or scenario.release
        if release.kind != "none":
            rule = "cannot be combined with a release, which has noise or a sample of its own"
            yield Fault(f"{at}.noise", rule, release.kind)
    if getattr(section, "robust", False) and is_capable("deployment", section.kind, "shares"):
        yield from _unfit(f"{at}.robust", mechanisms, EncodingRule.of, value=True)
    if isinstance(deployment, PrivateWrite):
        yield from _unfit(f"{at}.kind", mechanisms, check_one_cell, value=deployment.kind)


def _servers_of(scenario: Scenario, campaign: CampaignSection) -> tuple[sections.AggregationSection, str]:
    """Return the section of a campaign's servers, and its key path."""
    if campaign.aggregation:
        return campaign.aggregation, f"campaigns.{campaign.name}.aggregation"
    # Speeds are always sent to a trusted server, whatever the deployment of campaigns that count.
    return scenario.aggregation if campaign.statistic == "count" else sections.Aggregation(), "aggregation"


def faults_of_parties(named: Mapping[str, str], campaigns: Iterable[Campaign]) -> list[Fault]:
    """Return a fault for each of the named servers and mixers that no campaign and mechanism has.

    Parameters
    ----------
    named
        Where each is named, by party.
    campaigns
        The campaigns of the run.
    """
    parties = {party for one in campaigns for name in one.mechanisms for party in one.parties(name)} - {NETWORK}
    rule = f"there is none; there are {listed(parties)}"
    return [Fault(where, rule, party) for party, where in named.items() if party not in parties]


def unchecked_counts(scenario: Scenario, campaigns: Iterable[Campaign]) -> Iterator[Note]:
    """Yield a note for each aggregator that accepts reports, if some devices have no reports but answer by counts."""
    devices = scenario.population.drawn_as_counts
    deployments = [campaign.deployment for campaign in campaigns]
    for kind in dict.fromkeys(each.kind for each in deployments if isinstance(each, Combining) and each.checks):
        text = (
            f"aggregation: {kind} does not check {devices}: their reports are drawn as counts; "
            'population.answers = "reports" simulates each report'
        )
        if devices:
            yield Note("counts_not_checked", text, where="aggregation")


def listed(parties: Iterable[str]) -> str:
    """List parties in the order of their numbers; if there are many, only the first two and the last."""
    named = sorted(parties, key=lambda party: (len(party), party))
    shown = named if len(named) <= FEW_PARTIES else [*named[:2], "…", named[-1]]
    return ", ".join(shown)


DEPLOYMENTS: Mapping[str, Callable[..., Deployment | RoadsideUnits]] = {
    "trusted": Trusted,
    "per_round": PerRound,
    "shuffled": ShuffledReports,
    "secret_shared": SecretShared,
    "private_write": PrivateWrite,
    "threshold_shared": ThresholdShared,
    "roadside_units": RoadsideUnits,
}
"""The servers of each kind, by name since several kinds have one section; parameters are its keys, and others."""


def _deployment(section: sections.AggregationSection, cells: Partition, channel: sections.ChannelSection) -> Deployment:
    """Build the deployment of a section, from the keys that the kind's constructor takes."""
    nbytes = channel.question.bytes + HASH_NBYTES * getattr(section, "committed", False)
    of_channel: dict[str, Any] = {"anonymous": channel.anonymous, "question_nbytes": nbytes}
    if isinstance(section, sections.OwnAggregation):
        built = build_own_kind("deployment", section.kind, section.model_extra or {}, cells=cells)
    else:
        build = DEPLOYMENTS[section.kind]
        given = getattr(section, "noise", None)
        noise = None if given is None else NOISES[type(given)](given)
        built = build(**accepted(build, {**section.model_dump(), "cells": cells, "noise": noise, **of_channel}))
    if isinstance(built, Deployment):
        return built
    if hasattr(built, "combine"):
        return Combining(own=built, name=section.kind, **of_channel)
    chosen = same_keys(built, *(name for name in ("handles", "paired") if hasattr(built, name)))
    return OwnSharing(own=built, name=section.kind, servers=built.servers, **of_channel, **chosen)


NOISES: Mapping[type[sections.NoiseSection], Callable[[Any], IntegerNoise]] = {
    sections.GaussianNoise: lambda section: IntegerNoise(section.kind, section.sigma),
    sections.LaplaceNoise: lambda section: IntegerNoise(section.kind, section.scale),
    sections.PolyaNoise: lambda section: IntegerNoise(section.kind, section.scale, section.honest),
}
"""What makes the noise that each server adds, by the class of its section."""


def _unfit(
    at: str, mechanisms: Mapping[str, LocalMechanism], check: Callable[[LocalMechanism], object], *, value: object
) -> Iterator[Fault]:
    """Yield a fault of the value of a key for every mechanism for which a check of its reports raises an error."""
    for name, mechanism in mechanisms.items():
        try:
            check(mechanism)
        except ParameterError as error:
            yield Fault(at, f"{error.rule}; mechanisms.{name} is one", value)


def build_population(
    scenario: Scenario, rates: tuple[LocalShare, ...], *, engine: Engine, streams: Streams
) -> QueriedPopulation:
    """Build the population; whether each vehicle takes part is drawn once. `rates` are by place and time."""
    section = scenario.population
    drawn, chance = streams.of("participation").random(engine.vehicles), rates_of_classes(scenario, engine)
    answering = answering_states(scenario.traffic)
    return QueriedPopulation(
        drawn < chance,
        answering=answering,
        participation=chance,
        willingness=drawn if section.rates else None,
        shares=rates,
        **same_keys(section, "outside", "answers"),
    )


def build_schedule(campaign: CampaignSection) -> Schedule:
    """Return the schedule of a campaign's queries."""
    keys = same_keys(campaign, "start_s", "queries", "round_gap_s", "deadline_s")
    return Schedule(every_s=campaign.every_s or 0.0, **keys)
