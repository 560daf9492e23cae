"""Campaign: what is asked, which devices are asked and when, as one value, and the SimPy process that asks it."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import simpy

from mechanisms.local import AdaptiveBudget, LocalMechanism, UniformPopulation
from simulator.aggregation.combining import Combining
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.publication import Publication
from simulator.aggregation.rounds import report_nbytes
from simulator.aggregation.transcript import Party, named_by
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.files.messages import Note, release_parameters
from simulator.files.resources import Stopwatch
from simulator.sensing.adaptive_survey import PUBLICATION, AdaptiveSurvey, BudgetHistory, BudgetSchedule
from simulator.sensing.channel import Channel, Transmission
from simulator.sensing.device import QuerySubject, World
from simulator.sensing.divided_survey import DividedSurvey
from simulator.sensing.query import (
    Memories,
    Occupancy,
    QueriedPopulation,
    Query,
    QueryAnswer,
    Respondents,
    Schedule,
    Targets,
)
from simulator.sensing.selection import QuerySelection
from simulator.sensing.speed_survey import SPEED_NBYTES, SpeedQuestion, survey_speeds
from simulator.sensing.survey import Draws, Survey
from simulator.streams import Streams
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine, VehicleStates

AnySurvey = Survey | DividedSurvey | AdaptiveSurvey
TRUTH_MOMENT = 2
"""The moment whose occupancy is estimated, the moment of truth: round two."""


def moments_of(mechanisms: Iterable[LocalMechanism | BudgetSchedule]) -> range:
    """Return the moments at which a query asks, one round gap apart: 1, 2, and any others that a mechanism needs."""
    asked = [1, TRUTH_MOMENT, *(TRUTH_MOMENT + round_ - m.truth_round for m in mechanisms for round_ in (1, m.rounds))]
    return range(min(asked), max(asked) + 1)


def _asked_at(moment: int, surveys: Mapping[str, AnySurvey]) -> Iterator[tuple[str, AnySurvey, int]]:
    """Yield the surveys that have a round at a moment, with the round."""
    for name, survey in surveys.items():
        round_ = moment - TRUTH_MOMENT + survey.mechanism.truth_round
        if 1 <= round_ <= survey.mechanism.rounds:
            yield name, survey, round_


def fleet_order(streams: Streams, vehicles: int) -> IntArray:
    """Return each vehicle's rank in a random order of the fleet, (vehicles,) int64: targets first, corrupted last."""
    return streams.of("targets").permutation(vehicles)


@dataclass(frozen=True, eq=False)
class SensingContext:
    """What all campaigns of a run share.

    Attributes
    ----------
    engine, clock
        The traffic engine that moves the vehicles, and the clock that converts seconds to its ticks.
    population
        The devices that can be asked.
    channel
        The channel between devices and servers.
    memories
        The state that devices keep between queries of all campaigns.
    streams
        The random generators of the run.
    stopwatch
        Counts seconds in the phases "sensing", "protocol" and "scoring".
    closed
        Called with every closed query.
    corrupted
        The number of vehicles of the fleet whose reports are kept in addition to the targets': those that coalitions
        corrupt.
    world
        What devices find that act for themselves; None if none does.
    workers
        Where batches of devices answer; None for this process.
    """

    engine: Engine
    clock: Clock
    population: QueriedPopulation
    channel: Channel
    memories: Memories
    streams: Streams
    stopwatch: Stopwatch
    closed: Callable[[Query], None]
    corrupted: int = 0
    world: World | None = None
    workers: Executor | None = None


@dataclass(frozen=True, eq=False)
class WindowBudget:
    """A budget ε that covers any `window` consecutive queries of a campaign.

    Attributes
    ----------
    kind
        ``uniform`` (LBU), ``population_uniform`` (LPU), ``absorption`` (LBA) or ``population_absorption`` (LPA).
    window
        Number of consecutive queries that the budget covers.
    epsilon
        ε of the window, by mechanism.
    schedules
        How each mechanism divides the budget among devices or queries; empty for the kind ``uniform``, whose mechanisms
        are asked as they are.
    """

    kind: str
    window: int
    epsilon: Mapping[str, float]
    schedules: Mapping[str, BudgetSchedule] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Campaign:
    """Everything about one campaign: when it asks, what about, through which servers, and what they publish.

    Attributes
    ----------
    name
        The name of the campaign.
    schedule
        When the campaign asks.
    cells_of
        Maps vehicle states to the cells that it asks about, (departed,) int32.
    measured_cells
        Maps vehicle states to the cells of fixes with errors, (departed,) int32; None if fixes have no errors.
    mechanisms
        By name, with the parameters with which they are asked; all answer the same queries about the same traffic, each
        with its own coins. Campaigns that ask the same mechanisms hold the same mapping.
    deployment
        The servers.
    release
        What the trusted servers apply before they publish: `kind` and its parameters; parameters of the question of
        speeds are among them.
    publications
        How the release is applied to counts, by mechanism; the other mechanisms publish their own estimates.
    speeds
        The question of a campaign that asks for speeds, which only the devices of its own mechanism answer. None for a
        campaign that asks for counts.
    budget
        The budget that covers several queries; None for a fresh ε at each query.
    partition
        The partition of the city whose cells it asks about.
    targets
        The number of vehicles per query whose reports are kept for transcripts.
    notes
        What is not under the release, and why.
    operator
        Who runs the servers; None if no operator is named. Campaigns of one operator share its parties.
    skipped
        The mechanisms, each with the number of a query, that are not asked because a ledger does not allow it.
    """

    name: str
    schedule: Schedule
    cells_of: Callable[[VehicleStates], Cells]
    mechanisms: Mapping[str, LocalMechanism]
    deployment: Deployment
    release: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    publications: Mapping[str, Publication] = field(default_factory=dict)
    speeds: SpeedQuestion | None = None
    budget: WindowBudget | None = None
    partition: str = "cells"
    targets: int = 0
    notes: tuple[Note, ...] = ()
    measured_cells: Callable[..., Cells] | None = None
    operator: str | None = None
    skipped: Collection[tuple[str, int]] = ()

    def parties(self, name: str) -> dict[Party, Party]:
        """Return the deployment's names of the parties that store something, by their names in the run."""
        return {named_by(self.operator, party): party for party in self.deployment.parties(self.mechanisms[name])}

    def asks(self, name: str, number: int) -> bool:
        """Return whether a query of this number asks a mechanism."""
        return (self.speeds is None or self.speeds.mechanism == name) and (name, number) not in self.skipped

    @property
    def statistic(self) -> str:
        """The statistic that it estimates in each cell."""
        return "count" if self.speeds is None else self.speeds.statistic

    @property
    def release_words(self) -> str:
        """The release in a few words: its kind and its parameters."""
        parameters = release_parameters(self.release)
        return f"{self.release['kind']} ({parameters})" if parameters else str(self.release["kind"])

    @property
    def schedules(self) -> Mapping[str, BudgetSchedule]:
        """By name, how a mechanism divides its budget, where it does not ask every device at every query."""
        return {} if self.budget is None else self.budget.schedules

    @property
    def asked(self) -> Mapping[str, LocalMechanism | BudgetSchedule]:
        """By name, what asks the rounds of a query and makes claims: each mechanism, or the division of its budget."""
        return {**self.mechanisms, **self.schedules}

    @property
    def moments(self) -> range:
        """The moments at which a query asks, as `moments_of` states."""
        return moments_of(self.asked.values() if self.speeds is None else ())


@dataclass(frozen=True, eq=False)
class CampaignProcess:
    """Asks the queries of a campaign one after another while vehicles keep driving.

    A query asks the same devices at two or more moments: at its start, at the moment of truth one round gap later, and
    at later moments if a mechanism has rounds after its truth round. The rounds of each mechanism are shifted so that
    its truth round falls on the moment of truth. A mechanism with one round is therefore asked at the moment of truth.

    Attributes
    ----------
    campaign
        The campaign.
    context
        What it shares with the other campaigns of the run.
    """

    campaign: Campaign
    context: SensingContext
    _histories: dict[str, BudgetHistory] = field(default_factory=dict, init=False)

    @cached_property
    def _answered_s(self) -> FloatArray:
        """(vehicles + 1,) float64: when each vehicle last answered a query, and the devices outside, which do alike."""
        return np.full(len(self.context.population.takes_part) + 1, -np.inf)

    def run(self, env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Ask every query of the schedule."""
        schedule = self.campaign.schedule
        for number in range(1, schedule.queries + 1):
            yield from self.ask(env, number, schedule.asked_s(number))

    def ask(self, env: simpy.Environment, number: int, start_s: float) -> Generator[simpy.Event, None, None]:
        """Ask query `number` at `start_s`, seconds, and close it; numbers of a campaign's queries must differ."""
        if not any(self.campaign.asks(name, number) for name in self.campaign.mechanisms):
            return
        if self.campaign.speeds is None:
            yield from self._query(env, number, start_s)
        else:
            yield from self._query_speeds(env, number, start_s, self.campaign.speeds)

    def _query(self, env: simpy.Environment, number: int, start_s: float) -> Generator[simpy.Event, None, None]:
        context, campaign, moments = self.context, self.campaign, self.campaign.moments
        yield after_traffic(env, context.clock.ticks(start_s))
        context.engine.advance()
        with context.stopwatch.phase("sensing"):
            totals, selection = context.engine.totals(), self._select(number, start_s)
            vehicles = selection.vehicles
            asked, present = self._respondents(vehicles, start_s)
        with context.stopwatch.phase("protocol"):
            targets, numbers = self._select_targets(vehicles, number), self._one_by_one(vehicles)
            surveys = {
                name: self._survey(name, numbers, asked, number, targets)
                for name in campaign.mechanisms
                if campaign.asks(name, number)
            }
        minlength = max(m.cells for m in campaign.mechanisms.values()) + 1
        truth, began_s = np.zeros(0, dtype=np.int32), dict[str, float]()
        rng = context.streams.of("churn", campaign.name, number)
        for moment in moments:
            if moment > moments.start:
                at_s = start_s + (moment - moments.start) * campaign.schedule.round_gap_s
                yield after_traffic(env, context.clock.ticks(at_s))
                present = self._apply_churn(present, rng=rng)
            context.engine.advance()
            with context.stopwatch.phase("sensing"):
                places = context.engine.places()
                of_all, at_s = campaign.cells_of(places), context.clock.seconds(env.now)
                fixed = selection.measured(places, of_all) if moment == TRUTH_MOMENT else of_all
                seen: dict[str, Any] = {"truth": of_all[vehicles], "blocked": selection.blocked(places, at_s)}
                if context.world is not None and moment <= TRUTH_MOMENT:
                    context.world.see(campaign.name, places, fixed)
                if moment == TRUTH_MOMENT:
                    truth, truth_s = of_all[vehicles], at_s
                    seen["measured"], now = fixed[vehicles], places.within(context.population.answering)
                    likely = selection.expected(places, of_all, fixed, at_s=at_s, minlength=minlength)
                    leaves = self._leaves(selection, places, of_all, at_s=at_s, minlength=minlength)
                    occupancy = Occupancy.of(
                        of_all, now=now, before=selection.eligible, minlength=minlength, expected=likely
                    )
            with context.stopwatch.phase("protocol"):
                for name, survey, round_ in _asked_at(moment, surveys):
                    there = self._answering(name, present, number, vehicles=vehicles, asked=asked)
                    survey.ask(round_, moment=moment, at_s=at_s, present=there, **seen)
                    began_s.setdefault(name, at_s)
        yield after_traffic(env, env.now + context.clock.ticks(campaign.schedule.deadline_s))
        with context.stopwatch.phase("protocol"):
            closed = [survey.close() for survey in surveys.values()]
        with context.stopwatch.phase("scoring"):
            of_vehicles = np.bincount(truth, minlength=minlength).astype(np.int64)
            counts = of_vehicles + asked.outside * (np.arange(minlength) == 0)
            records = ((name, survey.recorded(of_vehicles, truth_s)) for name, survey in surveys.items())
            kept = {name: replace(record, leaves=leaves) for name, record in records if record is not None}
            expected = counts if likely is None else likely.asked_counts
            answers = [
                QueryAnswer(
                    name,
                    estimate,
                    survey.std_error(expected),
                    rounds,
                    published=name in campaign.publications,
                    paired=survey.paired,
                    summed=campaign.deployment.sums_reports,
                    took_s=context.clock.seconds(env.now) - began_s[name] + campaign.deployment.delay_s,
                )
                for (name, survey), (estimate, rounds) in zip(surveys.items(), closed, strict=True)
            ]
            query = Query(campaign.name, number, start_s, truth_s, counts, occupancy, totals, answers, recorded=kept)
        if campaign.deployment.delay_s:
            env.process(self._publish_late(env, query))
        else:
            context.closed(query)

    def _publish_late(self, env: simpy.Environment, query: Query) -> Generator[simpy.Event, None, None]:
        yield after_traffic(env, env.now + self.context.clock.ticks(self.campaign.deployment.delay_s))
        self.context.closed(query)

    def _query_speeds(
        self, env: simpy.Environment, number: int, start_s: float, question: SpeedQuestion
    ) -> Generator[simpy.Event, None, None]:
        """Ask for cell and speed at one moment, the moment of truth: all devices asked are present, none has left."""
        context, campaign = self.context, self.campaign
        asked_s, deadline_s = start_s + campaign.schedule.round_gap_s, campaign.schedule.deadline_s
        yield after_traffic(env, context.clock.ticks(asked_s))
        context.engine.advance()
        with context.stopwatch.phase("sensing"):
            totals, places, outside = context.engine.totals(), context.engine.places(), context.population.outside
            eligible, of_all = places.within(context.population.answering), campaign.cells_of(places)
            vehicles = context.population.participants(eligible, context.population.chances(places, asked_s))
            cells, speeds = of_all[vehicles], context.engine.speeds()[vehicles]
        vocabulary, moment_s = campaign.mechanisms[question.mechanism], context.clock.seconds(env.now)
        with context.stopwatch.phase("protocol"):
            values, theory, account = survey_speeds(
                question,
                cells=cells,
                speeds=speeds,
                outside=outside,
                bytes_up=report_nbytes(vocabulary) + SPEED_NBYTES,
                bytes_down=campaign.deployment.question_nbytes,
                channel=self._channel,
                transmission=Transmission(TRUTH_MOMENT, moment_s, deadline_s, campaign.deployment.route(1)),
                noise=context.streams.of("channel", question.mechanism, campaign.name, number),
                draws=context.streams.of("release", question.mechanism, campaign.name, number),
            )
        yield after_traffic(env, env.now + context.clock.ticks(deadline_s))
        counts = np.bincount(cells, minlength=vocabulary.cells + 1).astype(np.int64)
        counts[0] += outside
        occupancy = Occupancy.of(of_all, now=eligible, before=eligible, minlength=len(counts))
        answers = [QueryAnswer(question.mechanism, values, theory, [account], published=True, took_s=deadline_s)]
        of_speeds = question.statistic
        context.closed(Query(campaign.name, number, moment_s, moment_s, counts, occupancy, totals, answers, of_speeds))

    @property
    def _channel(self) -> Channel:
        """The channel to the servers of the campaign: of their outages only, with the deployment's names of servers."""
        operator, channel = self.campaign.operator, self.context.channel
        named = [(outage, outage.server.rpartition("/")[2]) for outage in channel.outages]
        own = [replace(outage, server=name) for outage, name in named if outage.server == named_by(operator, name)]
        return replace(channel, outages=tuple(own))

    def _select(self, number: int, start_s: float) -> QuerySelection:
        context, campaign, places = self.context, self.campaign, self.context.engine.places()
        population, zones, fixes = context.population, context.channel.zones, campaign.measured_cells
        eligible, chances = places.within(population.answering), population.chances(places, start_s)
        asked, outside = population.participants(eligible, chances), population.outside
        selects = bool(zones) or fixes is not None or population.willingness is not None
        lost, position = (context.streams.of(name, campaign.name, number) for name in ("zones", "position"))
        return QuerySelection(eligible, chances, asked, outside, zones, fixes, selects, lost, position)

    def _survey(
        self, name: str, numbers: IntArray, asked: Respondents, number: int, targets: Targets | None
    ) -> AnySurvey:
        """Return the survey of a mechanism; `numbers` are of the devices that answer one by one, vehicles first."""
        campaign, streams = self.campaign, self.context.streams
        if not isinstance(campaign.asked[name], AdaptiveBudget):
            return self._ask_mechanism(campaign.mechanisms[name], name, numbers, asked, number, targets=targets)
        return AdaptiveSurvey(
            self._history(name),
            vehicles=numbers[: len(asked.vehicles)],
            asked=asked,
            make=lambda mechanism, question: self._ask_mechanism(mechanism, name, numbers, asked, number, question),
            rng=streams.of("budget", name, campaign.name, number),
        )

    def _history(self, name: str) -> BudgetHistory:
        """Return what a mechanism with a budget keeps from query to query; it begins with the first query."""
        campaign, population = self.campaign, self.context.population
        if name not in self._histories:
            rng, fleet = self.context.streams.of("budget groups", name, campaign.name), len(population.takes_part)
            self._histories[name] = BudgetHistory.begin(
                campaign.schedules[name], fleet=fleet, outside=population.outside, rng=rng
            )
        return self._histories[name]

    def _answering(
        self, name: str, present: Respondents, number: int, *, vehicles: IntArray, asked: Respondents
    ) -> Respondents:
        """Return the devices present that answer a query of a mechanism: all, or one group of a uniform population."""
        schedule = self.campaign.asked[name]
        if not isinstance(schedule, UniformPopulation):
            return present
        rng = self.context.streams.of("budget", name, self.campaign.name, number)
        return self._history(name).members(present, schedule.groups(number), vehicles=vehicles, asked=asked, rng=rng)

    def _ask_mechanism(
        self,
        mechanism: LocalMechanism,
        name: str,
        numbers: IntArray,
        asked: Respondents,
        number: int,
        *question: str,
        targets: Targets | None = None,
    ) -> Survey | DividedSurvey:
        """Return the survey of a mechanism; `question` names it where a query asks several questions."""
        context, campaign = self.context, self.campaign
        memory = partial(context.memories.of, name, mechanism, partition=campaign.partition)
        cells = mechanism.cells, campaign.cells_of, campaign.measured_cells
        subject = QuerySubject(campaign.name, number, name, *cells, PUBLICATION in question, campaign.operator)

        def make(*server: int, deployment: Deployment, devices: IntArray | None = None, **given: Any) -> Survey:
            own = numbers if devices is None else numbers[devices[devices < len(numbers)]]
            of_query: tuple[str | int, ...] = (name, campaign.name, number, *question, *server)
            return Survey(
                mechanism,
                answers=context.population.answers,
                channel=self._channel,
                deadline_s=campaign.schedule.deadline_s,
                deployment=deployment,
                draws=Draws(*(context.streams.of(part, *of_query) for part in Draws._fields)),
                remember=lambda batch: memory(own[batch]),
                world=context.world,
                subject=subject,
                numbers=own,
                workers=context.workers,
                **given,
            )

        if isinstance(campaign.deployment, Combining):
            rng = context.streams.of("servers", name, campaign.name, number, *question)
            return DividedSurvey(mechanism, asked, campaign.deployment, make, rng, targets)
        publication = campaign.publications.get(name)
        return make(asked=asked, deployment=campaign.deployment, publication=publication, targets=targets)

    def _one_by_one(self, vehicles: IntArray) -> IntArray:
        """Return the numbers of the devices that answer one by one: vehicles, then devices outside, if these do."""
        population = self.context.population
        fleet, outside = len(population.takes_part), population.outside if population.answers == "reports" else 0
        return np.concatenate([vehicles, np.arange(fleet, fleet + outside)])

    def _select_targets(self, vehicles: IntArray, number: int) -> Targets | None:
        """Return the query's targets: the same vehicles in every query and campaign, and for every mechanism."""
        if self.campaign.targets == 0:
            return None
        fleet = len(self.context.population.takes_part)
        rank = fleet_order(self.context.streams, fleet)[vehicles]
        return Targets(number, vehicles, rank, self.campaign.targets, fleet - self.context.corrupted)

    def _leaves(
        self, selection: QuerySelection, places: VehicleStates, cells: Cells, *, at_s: float, minlength: int
    ) -> FloatArray | None:
        """Return by cell the probability that what a device sends leaves it, for attacks; None without targets."""
        if not self.campaign.targets:
            return None
        channel, world = self.context.channel, self.context.world
        leaving = selection.leaving(places, cells, at_s=at_s, minlength=minlength)
        for cell, share in ({} if world is None else world.behaviour.refusing).items():
            leaving[cell] *= 1.0 - share
        return leaving * (1.0 - channel.loss(TRUTH_MOMENT)) * (1.0 - channel.question.loss)

    def _respondents(self, vehicles: IntArray, start_s: float) -> tuple[Respondents, Respondents]:
        """Return the devices asked, and those that answer: of their answers none is younger than `min_gap_s`."""
        gap_s, outside = self.campaign.deployment.min_gap_s, self.context.population.outside
        asked, devices = Respondents.everyone(len(vehicles), outside), np.append(vehicles, -1)
        if gap_s == 0.0:
            return asked, asked
        rested = start_s - self._answered_s[devices] >= gap_s
        self._answered_s[devices[rested]] = start_s
        return asked, Respondents(rested[:-1], outside * int(rested[-1]))

    def _apply_churn(self, present: Respondents, *, rng: np.random.Generator) -> Respondents:
        """Return the devices of `present` that remain after churn; a device that left does not return in this query."""
        churn = self.context.channel.churn
        if churn == 0.0:
            return present
        stays = rng.random(len(present.vehicles)) >= churn
        return Respondents(present.vehicles & stays, int(rng.binomial(present.outside, 1.0 - churn)))
