"""Components of a run, built and checked before the simulation starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism, NotEstimableError
from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import sections_of
from scenarios.run_clock import RunClock, find_zone
from simulator.attacks.games import Attack
from simulator.experiment.assembly.attacks import build_attacks, check_attacks
from simulator.experiment.assembly.behaviours import behaviour_warnings
from simulator.experiment.assembly.campaigns import build_campaigns, build_channel, unchecked_counts
from simulator.experiment.assembly.city import build_city, build_counts, build_detectors
from simulator.experiment.assembly.demand import clock_of_trips
from simulator.experiment.assembly.mechanisms import build_mechanisms
from simulator.experiment.assembly.own_kinds import check_own_kinds
from simulator.experiment.assembly.selection import build_shares
from simulator.experiment.build_cache import cached_city
from simulator.experiment.ledger import ledger_entries, ledger_notes, skipped_of
from simulator.experiment.memory_estimate import check_memory
from simulator.experiment.refine import Refining, plan_refinements
from simulator.experiment.selection_bias import check_known
from simulator.experiment.study_area import City, cells_of_traffic
from simulator.experiment.tables import Participation
from simulator.files.messages import Note, warning, warnings_among
from simulator.sensing.campaign import Campaign
from simulator.sensing.channel import Channel
from simulator.sensing.query import keeps_randomness
from simulator.sensing.selection import LocalShare
from simulator.streams import Streams

_MANY_STEPS = 2_000_000


def check_extras(scenario: Scenario) -> None:
    """Check that the optional packages which a scenario's kinds need are installed, before anything is computed.

    Raises
    ------
    ScenarioError
        If not, for each key; the message names the extra that installs the package.
    """
    named = [(at, name, sections_of(role).get(name)) for at, role, name in scenario.kinds()]
    needed = [(at, name, *section.needs) for at, name, section in named if section is not None and section.needs]
    trips = getattr(scenario.traffic, "trips", None)
    if str(trips).lower().endswith(".omx"):
        needed.append(("traffic.trips", str(trips), "h5py", "omx"))
    rule = "needs {}: pip install 'crowdveil[{}]'"
    faults = [Fault(at, rule.format(*needs), name) for at, name, *needs in needed if find_spec(needs[0]) is None]
    if faults:
        raise ScenarioError(scenario.name, faults)


@dataclass(frozen=True, eq=False)
class RunComponents:
    """The components of a run, except its traffic.

    Attributes
    ----------
    scenario
        The scenario, as read.
    city
        Roads and cells.
    mechanisms
        By name, for the first partition.
    campaigns
        The campaigns, in the order of the scenario.
    refinements
        Refinements of the estimates after the run.
    notes
        Parts of the scenario that are not used.
    attacks
        The attacks.
    clock
        The clock of the run.
    detectors, measured
        Places at which passing vehicles are counted, and measured counts (`assembly.city`); None for none.
    channel
        The channel between devices and servers.
    rates
        The rates of participation by place and time.
    ledger
        The entries of the ledgers, of each query that they limit.
    """

    scenario: Scenario
    city: City
    mechanisms: dict[str, LocalMechanism]
    campaigns: Sequence[Campaign]
    refinements: tuple[Refining, ...]
    notes: tuple[Note, ...] = ()
    attacks: tuple[Attack, ...] = ()
    clock: RunClock = field(default_factory=RunClock)
    detectors: pd.DataFrame | None = None
    measured: pd.DataFrame | None = None
    channel: Channel = field(default_factory=Channel)
    rates: tuple[LocalShare, ...] = ()
    ledger: Sequence[dict[str, Any]] = ()

    @classmethod
    def build(cls, scenario: Scenario) -> Self:
        """Build the components of a scenario.

        Raises
        ------
        ScenarioError
            For faults that the schema cannot detect: in data, numbers of cells, plug-ins, parties that do not exist.
        """
        check_own_kinds(scenario)  # refuses before any file is read
        check_extras(scenario)
        city = cached_city(scenario, lambda: build_city(scenario))
        clock = _clock(scenario, city)
        every = {name: build_mechanisms(scenario, cells.count) for name, cells in city.partitions.items()}
        mechanisms = next(iter(every.values()))
        check_memory(scenario, city, mechanisms)
        rates, zones = build_shares(scenario, city)
        channel = build_channel(scenario, zones)
        campaigns = build_campaigns(scenario, every, city)
        refinements = plan_refinements(scenario)
        check_known(scenario, campaigns, zones, rates)
        ledger = [*ledger_entries(scenario, campaigns, clock)]
        campaigns = [replace(one, skipped=skipped_of(one.name, ledger)) for one in campaigns]
        attacks = build_attacks(scenario, city, campaigns)
        check_attacks(scenario, attacks, campaigns)
        detectors, left_out = build_detectors(scenario, city.ground.roads)
        measured, not_used = build_counts(scenario, city.ground.roads, clock, detectors)
        notes = [*unchecked_counts(scenario, campaigns), *left_out, *not_used]
        steps = scenario.scenario.duration_s / scenario.traffic.step_s
        if steps > _MANY_STEPS:
            long = f"traffic.step_s: the run takes {steps:,.0f} steps: expect it to take long"
            notes = [*notes, Note("many_steps", long, where="traffic.step_s")]
        parts = (scenario, city, mechanisms, campaigns, refinements, tuple(notes), attacks, clock)
        return cls(*parts, detectors, measured, channel, rates, ledger)

    @cached_property
    def streams(self) -> Streams:
        """The random generators of the run."""
        return Streams(self.scenario.seed)

    @property
    def cells_before(self) -> dict[str, int]:
        """By campaign, the number of cells of the partitions before its own: tables number all cells together."""
        before = self.city.cells_before
        return {campaign.name: before[campaign.partition] for campaign in self.campaigns}

    @property
    def end_s(self) -> float:
        """The end of the run, or of the publication of the last query if that is later, seconds."""
        delay_s = max(campaign.deployment.delay_s for campaign in self.campaigns)
        ends = [campaign.schedule.end_s(len(campaign.moments)) + delay_s for campaign in self.campaigns]
        return max(self.scenario.scenario.duration_s, *ends)

    @property
    def participation(self) -> Participation:
        """The share of the vehicles that take part, and that which the operator assumes."""
        section = self.scenario.population
        return Participation(section.participation, section.assumed)

    def warnings(self) -> list[Note]:
        """Return warnings of what may mislead a reader of the result, if known before the run."""
        covers = "cells: one cell covers the whole city, so every vehicle is in it and there is nothing to estimate"
        one_cell = warning("one_cell", covers, "cells")
        return [
            *warnings_among(self.city.notes),
            *warnings_among(note for campaign in self.campaigns for note in campaign.notes),
            *([one_cell] if self.city.cells.count == 1 and cells_of_traffic(self.city).all() else []),
            *behaviour_warnings(self.scenario),
            *(warning("weak_release", text, "release") for text in self.scenario.release_warnings()),
            *(
                warning("mechanism", f"mechanisms.{name}: {text}", f"mechanisms.{name}")
                for name, mechanism in self.mechanisms.items()
                for text in mechanism.warnings()
            ),
            *self._randomness_not_kept(),
            *ledger_notes(self.ledger),
        ]

    def _randomness_not_kept(self) -> Iterator[Note]:
        """Yield a warning for each mechanism with kept randomness if answers are drawn as counts, without it."""
        population = self.scenario.population
        how = (
            'keep randomness between queries, but population.answers = "counts" draws new coins in every query: claims '
            "are for new coins"
            if population.answers == "counts"
            else "are drawn as counts, with new coins in every query: claims are for vehicles, which keep theirs"
        )
        for name, mechanism in self.mechanisms.items():
            if population.drawn_as_counts and keeps_randomness(mechanism):
                text = (
                    f'mechanisms.{name}: {population.drawn_as_counts} {how}; population.answers = "reports" keeps all'
                )
                yield warning("new_coins", text, f"mechanisms.{name}")

    def warm_up(self) -> None:
        """Let one device answer, so that code compiled on first use is compiled before time is measured.

        Raises
        ------
        ScenarioError
            If no estimate can be computed from a mechanism's answers; the message states the mechanism's reason.
        """
        truth = np.zeros(1, dtype=np.int32)
        for name, mechanism in self.mechanisms.items():
            rng = self.streams.of("warm-up", name)
            coins = mechanism.toss(mechanism.enrol(1, rng=rng), rng=rng)
            rounds = range(1, mechanism.rounds + 1)
            counts = np.stack([mechanism.tally(mechanism.answer(round_, truth, coins)) for round_ in rounds])
            try:
                mechanism.estimate(counts, counted=[1] * mechanism.rounds, asked=[1] * mechanism.rounds)
            except NotEstimableError as error:
                raise ScenarioError(self.scenario.name, [Fault(f"mechanisms.{name}", str(error))]) from error


def _clock(scenario: Scenario, city: City) -> RunClock:
    """Return the clock of a run: the clock of recorded data or trips whose times are dates, else the scenario's.

    Raises
    ------
    ScenarioError
        If both state a start, and not the same, or neither does and there is a time zone.
    """
    stated, epoch_s = scenario.clock, getattr(city.ground.recorded, "epoch_s", None)
    zone = stated.zone or find_zone(getattr(scenario.traffic, "time_zone", None))
    clock = stated if epoch_s is None else replace(stated, zone=zone).recorded(epoch_s)
    if stated.start and (stated.dated, stated.epoch_s) != (clock.dated, clock.epoch_s):
        rule = f"must be left out, or be second 0 of the recorded data, which is {clock.text(0.0)}"
        raise ScenarioError(scenario.name, [Fault("scenario.start", rule, scenario.scenario.start)])
    if not clock.dated and (dated := clock_of_trips(scenario, zone)):
        clock = dated if stated.start is None or stated.text(0.0) == f"{dated.start:%H:%M:%S}" else stated
    if stated.zone and not clock.start:
        rule = "needs scenario.start, or recorded times or departures that are dates"
        raise ScenarioError(scenario.name, [Fault("scenario.time_zone", rule, stated.zone_name)])
    return clock
