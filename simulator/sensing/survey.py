"""Surveys: one mechanism in one query, from coins to estimate, with devices simulated one by one or by counts.

Devices simulated by counts are grouped by the rounds in which they were present and by the reports that were delivered;
the sums of each group are drawn at once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism
from mechanisms.local.mechanism import rows_of
from simulator.aggregation.aggregator import Aggregator, Sums
from simulator.aggregation.combining import joined_reports
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.publication import Publication
from simulator.aggregation.rounds import RoundAccount, ServerAccounts
from simulator.aggregation.transcript import NETWORK, RecordedMessages
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.sensing.channel import Channel, ConstantDelay, Deliveries, DeliveryStatus, Transmission
from simulator.sensing.device import QuerySubject, World
from simulator.sensing.exchange import Exchange, Received
from simulator.sensing.query import Answers, QueryRecord, Respondents, Targets


@dataclass(eq=False)
class AskedRound:
    """A round of one mechanism in one query that has been asked, and what became of its reports.

    Attributes
    ----------
    transmission
        The sending of the reports.
    present
        The devices that answer.
    servers
        The messages that each server received.
    agreed
        The transmission with those messages first that the servers count. Where that is not all of a report's messages,
        it is known when the reports of devices simulated one by one have been received; else None until the query is
        closed.
    arrivals_s
        When the reports of these devices arrived, ascending, seconds; empty if that is not kept.
    outcomes
        How many reports were "late" or "lost"; and how many devices present were "unheard", as the question did not
        reach them, or "silent" although it did.
    again
        The number of reports of devices that had sent another.
    copies
        By party: further copies of messages that devices sent again.
    """

    transmission: Transmission
    present: Respondents
    servers: ServerAccounts
    agreed: Transmission | None = None
    arrivals_s: FloatArray = field(default_factory=lambda: np.empty(0))
    outcomes: Counter[str] = field(default_factory=Counter)
    again: int = 0
    copies: Counter[str] = field(default_factory=Counter)

    def account(self, deliveries: Deliveries, sent: Mask) -> None:
        """Account for the messages of reports that devices sent one by one, (n,) bool, and for those not counted."""
        self.servers.add_reports(int(np.count_nonzero(sent)), deliveries.arrived_s, deliveries.in_time)
        for name, status in (("late", DeliveryStatus.LATE), ("lost", DeliveryStatus.LOST)):
            self.outcomes[name] += int(np.count_nonzero(sent & (deliveries.status == status)))


@dataclass(frozen=True, eq=False)
class DeliveryPattern:
    """A group of devices whose reports were received in time, at every server that counts, in the same rounds.

    Attributes
    ----------
    counts
        (cells + 1,) int64: the number of devices, by true cell.
    received
        (rounds,) bool: whether their reports of each round were received in time.
    was_down
        Whether their links were down in the last round they sent; None before the first.
    """

    counts: IntArray
    received: Mask
    was_down: bool | None = None


class Recorder:
    """Records reports of one mechanism, round by round.

    Reports of different batches cannot be concatenated, so only reports of one batch are recorded: the batch of the
    first target.

    Parameters
    ----------
    targets
        The vehicles whose reports are recorded, at least one.
    batches
        The slices of the devices that answer together, vehicles first.
    rng
        Draws pseudonyms and connections.

    Attributes
    ----------
    batch
        The slice of devices whose reports are recorded.
    places
        (n,) int64: indices of the recorded vehicles among those asked, ascending.
    reports
        By round, their reports as answered in the batch.
    """

    def __init__(self, targets: Targets, batches: Sequence[slice], *, rng: np.random.Generator) -> None:
        self._targets, self._rng = targets, rng
        self._own: list[tuple[list[Any], IntArray] | None] = []
        self.reports: list[Any] = []
        self._in_time: list[Mask] = []
        self._arrived_s: list[dict[str, FloatArray]] = []
        first = int(np.argmin(targets.rank))
        self.batch = next(batch for batch in batches if batch.start <= first < batch.stop)
        rank = targets.rank[self.batch]
        kept = rank >= targets.corrupted_from
        kept[np.argsort(rank)[: targets.most]] = True
        self.places: IntArray = self.batch.start + np.flatnonzero(kept)

    def keep(self, received: Mask, deliveries: Deliveries, exchanged: Received | None, *, sent_s: float) -> None:
        """Record what became of the target reports of the next round.

        Parameters
        ----------
        received
            (devices,) bool: answered, and received in time by every server that must receive it.
        deliveries
            The delivery outcomes of the reports of all devices that answered.
        exchanged
            The reports of devices that act for themselves, which are recorded as they sent them; None if none does.
        sent_s
            The time at which the reports were sent, seconds.
        """
        places, told = self.places, np.ones(len(self.places), dtype=np.bool_)
        self._own.append(None)
        if exchanged is not None:
            own = [row for row in places.tolist() if row in exchanged.told]
            replaced, order = np.isin(places, own), np.arange(len(places))
            order[replaced] = len(places) + np.arange(len(own))
            self._own[-1] = [exchanged.told[row] for row in own], order
            told = ~exchanged.acting[places] | replaced
        self._in_time.append(received[places] & told)
        arrived_s = {party: np.where(told, times[places], np.inf) for party, times in deliveries.arrived_s.items()}
        arrived_s[NETWORK] = np.where(deliveries.left[places] & told, sent_s, np.inf)
        self._arrived_s.append(arrived_s)

    def recorded(self) -> RecordedMessages:
        """Return the messages sent and which arrived, after every round was asked."""
        never = np.full(len(self.places), np.inf)
        parties = dict.fromkeys(party for arrived_s in self._arrived_s for party in arrived_s)
        reports = [
            answered if own is None else joined_reports([answered, *own[0]])[own[1]]
            for answered, own in zip(self.reports, self._own, strict=True)
        ]
        return RecordedMessages.draw(
            self._targets.query,
            self._targets.vehicles[self.places],
            reports,
            np.stack(self._in_time),
            {party: np.stack([arrived_s.get(party, never) for arrived_s in self._arrived_s]) for party in parties},
            rng=self._rng,
        )


@dataclass(frozen=True, eq=False)
class Block:
    """A batch of devices with all that decides the sums of its reports, so that any process can compute them.

    Attributes
    ----------
    mechanism
        The mechanism that the devices run.
    memory
        What they keep from earlier queries.
    rng
        Generator of their coins, and of no other batch's.
    rounds
        By round: its number, the cells that they answer about, (n,) int32, None if none is known yet, and whose reports
        were received, (n,) bool.
    recorded
        (k,) int64: the rows whose reports are recorded.
    coins
        Their coins, if they were tossed before, for devices that act for themselves.
    """

    mechanism: LocalMechanism
    memory: Any
    rng: np.random.Generator
    rounds: Sequence[tuple[int, Cells | None, Mask]]
    recorded: IntArray
    coins: Any = None

    def answer(self, servers: Aggregator, *, number: int = 0) -> "Answered":
        """Let an aggregator receive the reports of all rounds; return it, what is recorded, and the generator."""
        recorded, coins = [], self.coins
        if coins is None:
            coins = self.mechanism.toss(self.memory, rng=self.rng)
        for round_, cells, received in self.rounds:
            about = np.zeros(len(received), dtype=np.int32) if cells is None else cells
            reports = self.mechanism.answer(round_, about, coins)
            servers.receive(round_, reports, received, batch=number)
            recorded.append(reports[self.recorded] if len(self.recorded) else None)
        return servers, recorded, self.rng


Answered = tuple[Aggregator, list[Any], np.random.Generator]
"""An aggregator that received a block, the recorded reports by round, and the generator after the coins."""


class Draws(NamedTuple):
    """The generators of a survey, one for each part, so that no part changes the random numbers of another.

    Attributes
    ----------
    coins
        Generator of the devices' coins.
    channel
        Generator of the channel.
    parties
        Generator of the servers' own draws.
    release
        Generator of the publication.
    handles
        Generator of pseudonyms and connections of recorded devices.
    """

    coins: np.random.Generator
    channel: np.random.Generator
    parties: np.random.Generator
    release: np.random.Generator
    handles: np.random.Generator


@dataclass(eq=False)
class Survey:
    """Asks the rounds of one mechanism in one query and closes with an estimate.

    Devices that answer one by one do so in batches, when the last round is asked: their coins come from a generator of
    the batch, which knows no truth, so a batch can answer in any process, and in any order. The counts of all other
    devices are drawn from the mechanism's own distribution when the survey closes. The servers add up both.

    Parameters
    ----------
    mechanism
        The mechanism that the devices run.
    asked
        The devices asked.
    answers
        Which devices answer one by one.
    channel, deadline_s
        The channel that delivers the reports, and the seconds for which a round is open.
    deployment
        The servers that receive and add up the reports.
    draws
        The generators of the survey.
    remember
        Returns what the devices of a slice keep from earlier queries: vehicles first, then devices outside.
    publication
        The step between the server's counts and publication; by default the mechanism's estimate is published.
    targets
        The vehicles whose reports are recorded for transcripts; by default none.
    world
        What devices that act for themselves find around them; by default all answer in batches.
    subject
        What the survey asks about, as such devices know it.
    numbers
        (devices,) int64: the numbers of the devices that answer one by one; by default their rows.
    workers
        Where batches answer, unless servers must see each report; by default in this process.
    """

    mechanism: LocalMechanism
    asked: Respondents
    answers: Answers
    channel: Channel
    deadline_s: float
    deployment: Deployment
    draws: Draws
    remember: Callable[[slice], Any]
    publication: Publication | None = None
    targets: Targets | None = None
    world: World | None = None
    subject: QuerySubject = field(default_factory=QuerySubject)
    numbers: IntArray | None = None
    workers: Executor | None = None

    def __post_init__(self) -> None:
        """Divide the devices into batches, and toss their coins and make the exchange if some act for themselves."""
        mechanism, asked, answers = self.mechanism, self.asked, self.answers
        self._reporting_vehicles = 0 if answers == "counts" else len(asked.vehicles)
        self._reporting_outside = asked.outside if answers == "reports" else 0
        self._reporting = self._reporting_vehicles + self._reporting_outside
        self._batches = [
            slice(start, min(start + mechanism.batch, self._reporting))
            for start in range(0, self._reporting, mechanism.batch)
        ]
        self._server = self.deployment.aggregator(mechanism, devices=self._reporting, rng=self.draws.parties)
        self._recorder = None
        if self.targets is not None and self._reporting_vehicles:
            self._recorder = Recorder(self.targets, self._batches, rng=self.draws.handles)
        # Numbers drawn for a batch depend on its coins, so the generator of the next can only be a jump away from the
        # first; coins are tossed as a batch answers, which bounds the memory in use.
        first: Any = self.draws.coins.bit_generator
        jumps = range(1, len(self._batches))
        self._rngs = [self.draws.coins, *(np.random.Generator(first.jumped(number)) for number in jumps)]
        self._exchange = self._make_exchange()
        self._tossed = [] if self._exchange is None else [self._toss(number) for number in range(len(self._batches))]
        self._received: list[tuple[int, Cells | None, Mask]] = []
        self._answers: list[Answered | Future[Answered]] = []
        self._sent: list[tuple[int, Cells, Mask, Deliveries]] = []
        self._truth = self._measured = np.zeros(len(asked.vehicles), dtype=np.int32)
        self._down: Mask | None = None
        self._rounds: list[AskedRound] = []

    def _make_exchange(self) -> Exchange | None:
        """Return the exchange with the devices that act for themselves, None if none of those asked does."""
        if self.world is None or not self._reporting:
            return None
        numbers = np.arange(self._reporting) if self.numbers is None else self.numbers[: self._reporting]
        if not self.world.acting[numbers].any():
            return None
        return Exchange(
            self.world,
            self.subject,
            self.mechanism,
            self.channel,
            self.deployment,
            numbers,
            coins_of=self._coins_of,
            memory_of=lambda row: self.remember(slice(row, row + 1)),
            rng=self.draws.parties,
        )

    def _coins_of(self, row: int) -> Any:
        """Return the coins of one device, as a batch of one."""
        batch, place = divmod(row, self.mechanism.batch)
        return rows_of(self._tossed[batch], slice(place, place + 1))

    def _toss(self, number: int) -> Any:  # a mechanism's coins are its own
        return self.mechanism.toss(self.remember(self._batches[number]), rng=self._rngs[number])

    def ask(
        self,
        round_: int,
        *,
        moment: int,
        at_s: float,
        truth: Cells,
        present: Respondents,
        measured: Cells | None = None,
        blocked: Mask | None = None,
    ) -> None:
        """Ask a round.

        Parameters
        ----------
        round_
            The mechanism's own round, from 1.
        moment
            Which of the query's moments it is: 1, 2 (the moment of truth) or later.
        at_s
            The time of that moment, seconds.
        truth
            (vehicles,) int32 cells at this moment. From the mechanism's `truth_round` on, devices answer about the
            cell they were in at that round; before it, they answer as if in cell 0.
        present
            The devices that answer.
        measured
            (vehicles,) int32: the cells in which vehicles believe they are, which they answer about; by default
            `truth`.
        blocked
            (vehicles,) bool: the vehicles whose messages are lost where they are, in addition to other losses; by
            default none. It has no effect on devices that answer by counts.
        """
        if round_ == self.mechanism.truth_round:
            self._truth, self._measured = truth, truth if measured is None else measured
        about = self._measured if round_ >= self.mechanism.truth_round else np.zeros_like(truth)
        since_s = at_s - self._rounds[-1].transmission.sent_s if self._rounds else 0.0
        route, needed = self.deployment.route(round_), self.deployment.needed
        transmission = Transmission(moment, at_s, self.deadline_s, route, since_s, needed)
        self._rounds.append(AskedRound(transmission, present, ServerAccounts(route)))
        if not self._reporting:
            return
        outside = np.arange(self._reporting_outside) < present.outside
        cells = np.concatenate([about[: self._reporting_vehicles], np.zeros(self._reporting_outside, dtype=np.int32)])
        answering = np.concatenate([present.vehicles[: self._reporting_vehicles], outside])
        heard = self.channel.hears(self._reporting, rng=self.draws.channel)
        self._rounds[-1].outcomes["unheard"] = int(np.count_nonzero(answering & ~heard))
        flights = self.channel.draw(self._reporting, transmission, was_down=self._down, rng=self.draws.channel)
        self._down = flights[-1].link_down
        if blocked is not None:
            stopped = np.zeros(self._reporting, dtype=np.bool_)
            stopped[: self._reporting_vehicles] = blocked
            flights = [flight._replace(link_down=flight.link_down | stopped) for flight in flights]
        answering &= heard
        deliveries = self.channel.outcome(flights, transmission).of(answering)
        if self._exchange is None:
            self._receive(round_, cells, answering, deliveries)
            if round_ == self.mechanism.rounds:
                self._answer()
        else:  # the servers receive reports of any devices when the query is closed
            self._sent.append((round_, cells, answering, deliveries))
            self._exchange.ask(round_, transmission, cells, answering, flights)

    def _answer(self) -> None:
        """Let every batch answer all rounds that were asked, here or in workers."""
        sees_each = self._exchange is not None or self._server.sums.exact
        sees_each |= self._server.accepts is not None and self.deployment.sharing is None
        for number, batch in enumerate(self._batches):
            rounds = [(r, cells if cells is None else cells[batch], who[batch]) for r, cells, who in self._received]
            recorder = self._recorder_of(batch)
            recorded = np.empty(0, dtype=np.int64) if recorder is None else recorder.places - batch.start
            memory, coins = (None, self._tossed[number]) if self._tossed else (self.remember(batch), None)
            block = Block(self.mechanism, memory, self._rngs[number], rounds, recorded, coins)
            if self.workers is None or sees_each or batch.stop - batch.start < FEWEST_AWAY:
                self._answers.append(block.answer(self._server, number=number))
            else:
                apart = Aggregator(Sums(self.mechanism), paired=self.paired, bytes_up=0)
                self._answers.append(self.workers.submit(block.answer, apart))

    def _recorder_of(self, batch: slice) -> Recorder | None:
        return self._recorder if self._recorder is not None and self._recorder.batch == batch else None

    def _add_answers(self) -> None:
        """Add what workers have received, and record what the batch of the targets answered."""
        for batch, answered in zip(self._batches, self._answers, strict=True):
            servers, recorded, rng = answered if isinstance(answered, tuple) else answered.result()
            if servers is not self._server:
                self._server.add(servers)
            if (recorder := self._recorder_of(batch)) is not None:
                recorder.reports = recorded
            if batch.start == 0:  # the draws of devices that answer by counts follow
                self.draws = self.draws._replace(coins=rng)

    def _receive(self, round_: int, cells: Cells, answering: Mask, deliveries: Deliveries) -> None:
        """Account for the reports of a round, and note which of them the aggregator receives.

        Parameters
        ----------
        round_
            From 1.
        cells
            (reporting,) int32, the cells that devices answer about.
        answering
            (reporting,) bool: the devices that answer.
        deliveries
            What became of their reports if all of them follow the protocol.
        """
        asked, exchanged = self._rounds[round_ - 1], None
        sent, present = asked.transmission, int(np.count_nonzero(answering))
        if self._exchange is not None:
            exchanged = self._exchange.received(round_, deliveries, answering)
            deliveries, answering, asked.copies = exchanged.deliveries, exchanged.sent, exchanged.copies
            asked.outcomes["silent"] = present - int(np.count_nonzero(answering[: self._reporting]))
            asked.again = len(answering) - self._reporting
        if sent.counted != sent.route:
            # A choice by the messages of some devices would count these more often than devices that answer by counts.
            every = present + asked.outcomes["unheard"] == asked.present.devices
            asked.agreed = sent.agreed(deliveries.received(sent.route)) if every else self._likely(sent)
            deliveries = deliveries.counted_by(sent.route, asked.agreed.counted)
        received = answering & (deliveries.status == DeliveryStatus.COUNTED)
        if self.deployment.keeps_arrivals:
            times = np.concatenate(list(deliveries.arrived_s.values()))
            asked.arrivals_s = np.sort(times[np.isfinite(times)])
        in_batches = received if exchanged is None else received[: self._reporting] & ~exchanged.acting
        self._received.append((round_, None if round_ < self.mechanism.truth_round else cells, in_batches))
        if self._recorder is not None:
            self._recorder.keep(received, deliveries, exchanged, sent_s=sent.sent_s)
        if exchanged is not None:
            self._server.reject(round_, int(np.count_nonzero(received & exchanged.refused)))
            own = (received & ~exchanged.refused)[exchanged.own]
            self._server.receive(round_, exchanged.reports, own, batch=len(self._batches))
        asked.account(deliveries, answering)

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Add the devices that answer by counts, close every round, and estimate.

        Returns
        -------
        tuple
            The estimate, and the account of every round's reports.
        """
        if self._exchange is not None:  # the coins are kept: a device that still waits will ask for them
            self._exchange.close()
        for waiting in self._sent:
            self._receive(*waiting)
        self._sent = []
        if len(self._answers) < len(self._batches):
            self._answer()
        self._add_answers()
        self._answer_by_counts()
        self._server.refuse_below(self.deployment.min_batch)
        cost = self.deployment.cost(self.mechanism)
        for round_, asked in enumerate(self._rounds, start=1):
            servers, first = asked.servers, [path[0] for path in asked.transmission.route]
            answered = asked.present.devices - asked.outcomes["unheard"] - asked.outcomes["silent"] + asked.again
            copies = {
                party: self.channel.copies(servers.arrived(party), rng=self.draws.channel) + asked.copies[party]
                for party in first
            }
            self._server.close_round(
                round_,
                asked=self.asked.devices,
                answered=answered,
                **asked.outcomes,
                messages_up=answered * len(first),
                bytes_down=self.asked.devices * cost.bytes_down,
                duplicates=sum(copies.values()),
                duplicate_nbytes=sum(n * cost.bytes_to.get(party, cost.bytes_up) for party, n in copies.items()),
                servers=servers,
            )
        self._estimate = self._publish()
        return self._estimate, self._server.accounts

    def _publish(self) -> Estimate:
        server = self._server
        if self._exchange is not None:
            self._exchange.state_sums(server.sums)
        if self.publication is None:
            return server.estimate()
        return self.publication.publish(
            server.counts, counted=server.counted, asked=server.asked, rng=self.draws.release
        )

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical standard error given the truth and the reports delivered; call it after `close`.

        Rounds are assumed to lose devices independently of each other. If losses come in bursts (`Channel.burst_s`), or
        if devices leave before two rounds (`Channel.churn`, with mechanisms that have rounds after the moment of
        truth), the same devices are missing in several rounds; the error of such mechanisms is then smaller than the
        value returned.
        """
        if self.publication is None:
            return self._server.std_error(true_counts)
        return self.publication.std_error(true_counts, asked=self._server.asked, counted=self._server.counted)

    @property
    def counts(self) -> Counts:
        """(rounds, *tally_shape) int64: the sums of the counted reports."""
        return self._server.counts

    @property
    def arrivals_s(self) -> tuple[FloatArray, ...]:
        """By round, when the reports of devices simulated one by one arrived, ascending, seconds; empty if not kept."""
        return tuple(asked.arrivals_s for asked in self._rounds)

    @property
    def paired(self) -> bool:
        """Whether only devices whose reports were received in every round are counted."""
        return self._server.paired

    def recorded(self, occupancy: IntArray, time_s: float) -> QueryRecord | None:
        """Return the record of the recorded devices, None if none is; call it after `close`.

        Parameters
        ----------
        occupancy
            (cells + 1,) int64, number of all vehicles asked by cell at the moment of truth.
        time_s
            The moment of truth, seconds.
        """
        if self._recorder is None:
            return None
        server, truth = self._server, self._truth[self._recorder.places]
        counts, values, noise = server.counts, self._estimate.count, server.added
        sent = self._recorder.recorded()
        return QueryRecord(sent, truth, occupancy, counts, server.asked, server.counted, values, time_s, noise)

    def _answer_by_counts(self) -> None:
        """Draw the sums of devices that are not simulated one by one; exact where `sample_counts` is.

        Coins are independent of the channel, so devices whose reports had the same delivery form one group, whose sums
        are one draw from the mechanism's distribution given the group's true counts.
        """
        for round_, asked in enumerate(self._rounds, start=1):
            asked.agreed = asked.agreed or self._likely(asked.transmission)
            asked.servers.use(asked.agreed.counted)
            self._server.sums.use(round_, [asked.transmission.route.index(path) for path in asked.agreed.counted])
        groups = self._count_by_rounds_present()
        for last, counts in groups:
            patterns = [DeliveryPattern(counts, np.zeros(len(self._rounds), dtype=bool))]
            for row in range(last):
                parts = (part for pattern in patterns for part in self._hear(pattern, row))
                patterns = [part for part in parts if part.counts.any()]
            for group in patterns:
                if group.received.any():
                    sums = self.mechanism.sample_counts(group.counts, rng=self.draws.coins)
                    self._server.receive_group(sums, group.received, devices=int(group.counts.sum()))

    def _count_by_rounds_present(self) -> Iterator[tuple[int, IntArray]]:
        """Yield numbers of rounds, from 1, and by cell the devices that answer by counts and were present for as many.

        A device that leaves does not return, so this one number describes in which rounds it was present.
        """
        stayed: IntArray = np.sum([asked.present.vehicles for asked in self._rounds], axis=0, dtype=np.int64)
        outside = [0 if self.answers == "reports" else asked.present.outside for asked in self._rounds]
        for last, (crowd, remaining) in enumerate(pairwise([*outside, 0]), start=1):
            by_counts = stayed == last if self.answers == "counts" else np.zeros(len(stayed), dtype=np.bool_)
            counts = np.bincount(self._measured[by_counts], minlength=self.mechanism.cells + 1)
            counts[0] += crowd - remaining
            if counts.any():
                yield last, counts

    def _hear(self, group: DeliveryPattern, row: int) -> Iterator[DeliveryPattern]:
        """Yield the parts of a group by whether they hear the question of a round, and by their report's delivery."""
        asked, question, rng = self._rounds[row], self.channel.question, self.draws.channel
        unheard = rng.binomial(group.counts, question.loss) if question.loss else np.zeros_like(group.counts)
        if unheard.any():
            asked.outcomes["unheard"] += int(unheard.sum())
            # Links go down and up whether or not a device sends.
            chance = self.channel.probabilities(asked.transmission, was_down=group.was_down).link_down
            down = rng.binomial(unheard, chance) if self.channel.burst_s else np.zeros_like(unheard)
            yield DeliveryPattern(unheard - down, group.received, was_down=False)
            yield DeliveryPattern(down, group.received, was_down=True)
        split = self._split if isinstance(question.latency, ConstantDelay) else self._split_one_by_one
        yield from split(replace(group, counts=group.counts - unheard), row)

    def _split_one_by_one(self, group: DeliveryPattern, row: int) -> Iterator[DeliveryPattern]:
        """Yield the parts of a group as `_split` does, with the messages of each device drawn.

        The messages of a report share the latency of its question, so their outcomes are not independent.
        """
        asked, width = self._rounds[row], len(group.counts)
        transmission = asked.agreed or asked.transmission
        with_it = group.received.copy()
        with_it[row] = True
        parts = np.zeros((3, width), dtype=np.int64)
        ends = np.cumsum(group.counts)
        for start in range(0, int(ends[-1]), CHUNK):
            of = np.searchsorted(ends, np.arange(start, min(start + CHUNK, ends[-1])), side="right")
            was_down = None if group.was_down is None else np.full(len(of), group.was_down)
            sent = self.channel.deliver(len(of), transmission, was_down=was_down, rng=self.draws.channel)
            sent = sent.counted_by(transmission.route, transmission.counted)
            asked.account(sent, np.ones(len(of), dtype=np.bool_))
            part = np.where(sent.status == DeliveryStatus.COUNTED, 0, 1 + sent.link_down)
            parts += np.bincount(width * part + of, minlength=3 * width).reshape(3, width)
        yield DeliveryPattern(parts[0], with_it, was_down=False)
        yield DeliveryPattern(parts[1], group.received, was_down=False)
        yield DeliveryPattern(parts[2], group.received, was_down=True)

    def _split(self, group: DeliveryPattern, row: int) -> Iterator[DeliveryPattern]:
        """Yield the parts of a group by the delivery of their report of a round, and account for every message.

        Messages are drawn one after another; after each that must arrive, a report is in time, late or lost.
        """
        asked = self._rounds[row]
        transmission = asked.agreed or asked.transmission
        with_it = group.received.copy()
        with_it[row] = True
        in_time, late, lost, down = group.counts, *np.zeros((3, len(group.counts)), dtype=np.int64)
        for message, path in enumerate(transmission.route):
            law = self.channel.probabilities(transmission, message, was_down=group.was_down)
            if law.in_time == 1.0:
                asked.servers.add_message(path, in_time=int((in_time + late + lost).sum()))
                continue
            ends = [self.draws.channel.multinomial(state, law.shares).T for state in (in_time, late, lost)]
            total = sum(end.sum(axis=1) for end in ends)
            if message == 0 and self.channel.burst_s:  # the link is down for all of the report's messages
                down = ends[0][2]
                ends[0] = np.where(np.arange(len(ends[0]))[:, np.newaxis] == 2, 0, ends[0])
            asked.servers.add_message(
                path, in_time=int(total[0]), late=int(total[1]), link_down=int(total[2]), server_down=total[3:]
            )
            if path not in transmission.counted:
                continue
            in_time, late = ends[0][0], ends[0][1] + ends[1][:2].sum(axis=0)
            lost = ends[0][2:].sum(axis=0) + ends[1][2:].sum(axis=0) + lost
        if down.any():
            for path in transmission.route[1:]:
                asked.servers.add_message(path, link_down=int(down.sum()))
        asked.outcomes["late"] += int(late.sum())
        asked.outcomes["lost"] += int(lost.sum() + down.sum())
        yield DeliveryPattern(in_time, with_it, was_down=False)
        yield DeliveryPattern(late + lost, group.received, was_down=False)
        yield DeliveryPattern(down, group.received, was_down=True)

    def _likely(self, transmission: Transmission) -> Transmission:
        """Return a transmission whose route begins with the messages that are most likely to arrive in time."""
        # Each as the only message of a report: where losses come in bursts, later ones assume that the link is up.
        alone = (replace(transmission, route=(path,)) for path in transmission.route)
        return transmission.agreed([self.channel.probabilities(message).in_time for message in alone])


FEWEST_AWAY = 1 << 13
"""Devices of a batch that a worker answers for. Fewer answer in a millisecond or two, and sending them takes one."""
CHUNK = 1 << 20
"""Devices that answer by counts and are drawn, or assigned to servers, at once."""
