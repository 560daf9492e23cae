"""A whole scenario: what one file says, checked."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scenarios.aggregation import Aggregation
from scenarios.attacks import Attack
from scenarios.campaigns import Campaign
from scenarios.cells import Cells
from scenarios.channel import Channel
from scenarios.claims import Claims
from scenarios.fcd import Fcd
from scenarios.heading import Heading
from scenarios.mechanisms import Mechanism
from scenarios.population import Population
from scenarios.refinements import Refinement
from scenarios.release import NoRelease, Release
from scenarios.release_rules import Released, released_by
from scenarios.roads import Roads
from scenarios.rules import Outline, broken_between_sections
from scenarios.sampling_privacy import SamplingPrivacy
from scenarios.section import Known, known_of, number, refuse
from scenarios.traffic import Traffic


class Scenario(BaseModel):
    """Everything one run is made of.

    Made by `scenarios.load`, which reports every fault of a file in plain words; frozen, and equal to another
    with the same values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    scenario: Heading
    """What it is called, and how long it runs."""
    roads: Roads
    """The road network."""
    cells: Cells
    """How the city is divided."""
    traffic: Traffic
    """The vehicles and what moves them."""
    population: Population = Population()
    """Who takes part."""
    campaigns: Annotated[tuple[Campaign, ...], Field(strict=False, min_length=1)]
    """When vehicles are asked."""
    mechanisms: Annotated[tuple[Mechanism, ...], Field(strict=False, min_length=1)]
    """What runs on the devices; all answer the same queries about the same traffic."""
    channel: Channel = Channel()
    """What happens to reports on their way."""
    aggregation: Aggregation = Aggregation()
    """Who adds up the reports."""
    release: Release = NoRelease()
    """What is done to the counts before they are published; a campaign may have a release of its own."""
    refinements: Annotated[tuple[Refinement, ...], Field(strict=False)] = ()
    """What is made of the estimates afterwards, in rows of their own."""
    claims: Claims = Claims()
    """For which parameters privacy is stated."""
    attacks: Annotated[tuple[Attack, ...], Field(strict=False)] = ()
    """What coalitions try; none changes an estimate."""
    fcd: Fcd | None = None
    """Where every vehicle is, written for other tools; left out, nothing is."""

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.scenario.name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.scenario.seed

    def released(self) -> list[Released]:
        """Return every campaign's release, its own or the default one, in the order of the campaigns."""
        mechanisms, channel = [known_of(mechanism) for mechanism in self.mechanisms], known_of(self.channel)
        default = known_of(self.release)
        each = [
            released_by(
                known_of(campaign),
                index=index,
                default=default,
                mechanisms=mechanisms,
                channel=channel,
                aggregation=known_of(self.aggregation),
            )
            for index, campaign in enumerate(self.campaigns)
        ]
        return [released for released in each if released is not None]

    def warnings(self) -> list[str]:
        """Return what is allowed but probably not meant, one sentence each."""
        doubts = [
            f"mechanisms.{mechanism.name}.{words}"
            for mechanism in self.mechanisms
            if isinstance(mechanism, SamplingPrivacy)
            for words in _doubts(mechanism)
        ]
        return [*doubts, *self.release_warnings()]

    def release_warnings(self) -> list[str]:
        """Return what is known to be wrong with a release that may be chosen all the same."""
        recoded = [released.campaign["name"] for released in self.released() if released.kind == "recode"]
        if not recoded:
            return []
        why = "its clusters follow the devices and show where the outermost are (LQS 3.1)"
        return [f"release: recode, in campaigns {', '.join(recoded)}, is documented as vulnerable: {why}"]

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        outline = Outline(
            heading=known_of(self.scenario),
            traffic=known_of(self.traffic),
            campaigns=[known_of(campaign) for campaign in self.campaigns],
            mechanisms=[known_of(mechanism) for mechanism in self.mechanisms],
            population=known_of(self.population),
            channel=known_of(self.channel),
            release=known_of(self.release),
            aggregation=known_of(self.aggregation),
            refinements=[known_of(refinement) for refinement in self.refinements],
            attacks=[known_of(attack) for attack in self.attacks],
            fcd=Known() if self.fcd is None else known_of(self.fcd),
        )
        refuse(list(broken_between_sections(outline)))
        return self


def _doubts(mechanism: SamplingPrivacy) -> list[str]:
    doubts = []
    if mechanism.sampling >= 0.5:
        doubts.append(f"sampling is {number(mechanism.sampling)}: the papers ask for less than one half (SP 3.1)")
    if mechanism.silent_blank:
        doubts.append('blank_zero is 0: an output of 0 in round one then shouts "sampled"')
    return doubts
