"""Exchange of one survey: the messages of the devices that act for themselves, from sending to what servers received.

Coins, memory, latencies and losses are drawn for all devices at once and dealt by row, so a device that follows the
protocol sends what it would have sent in a batch, and its messages arrive when they would have arrived.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import simpy

from mechanisms.local import LocalMechanism
from simulator.aggregation.aggregator import Sums
from simulator.aggregation.combining import joined_reports
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.secret_sharing import SentShares
from simulator.aggregation.transcript import named_by
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.sensing.channel import Channel, Deliveries, DeliveryStatus, Flight, Transmission, status_of
from simulator.sensing.device import Answer, Device, Party, Process, QuerySubject, Question, World, WrittenVector


@dataclass(eq=False)
class _Sent:
    """A report that a device sent: its row, the payload of each message, and whether one of them left the device."""

    row: int
    report: Any
    payloads: Sequence[Any]
    left: bool = False


@dataclass(eq=False)
class _Round:
    """A round that was asked.

    `reports` are the reports sent, by slot: a device's first report has its row's slot, second answers follow the rows.
    `slots` has the slot of each by its row and the identity of its object; `again` is the number of second answers.
    """

    question: Question
    transmission: Transmission
    flights: list[tuple[list[float], list[bool]]]
    reports: dict[int, _Sent] = field(default_factory=dict)
    slots: dict[tuple[int, int], int] = field(default_factory=dict)
    again: int = 0


@dataclass(frozen=True, eq=False)
class Received:
    """What became of a round's reports of acting devices.

    Attributes
    ----------
    acting
        (rows,) bool: which rows act.
    deliveries
        The outcomes of the reports of all rows, followed by second answers; of rows that do not act, as given.
    sent
        (rows + second answers,) bool: which reports were sent; of rows that do not act, as given.
    own, reports
        (n,) int64: the acting rows, and second answers where there are no handles, by which servers know them; and
        their reports as servers hold them.
    refused
        (rows + second answers,) bool: second answers under a handle, and vectors that servers of plain reports cannot
        read, which they have to reject.
    told
        The report that each acting row sent, by row; a row that sent none, or a vector, is missing.
    copies
        By party: messages that arrived once more.
    """

    acting: Mask
    deliveries: Deliveries
    sent: Mask
    own: IntArray
    reports: Any
    refused: Mask
    told: dict[int, Any]
    copies: Counter[str]


@dataclass(eq=False)
class Exchange:
    """The messages between acting devices and the parties of one survey.

    Parameters
    ----------
    world, subject
        What devices find around them, and what the survey asks about.
    mechanism, channel, deployment
        As of the survey.
    numbers
        (rows,) int64: the numbers of the devices that answer one by one.
    coins_of, memory_of
        Functions from a row to the coins, and to the memory, that are dealt to it, as batches of one.
    rng
        Generator of shares.

    Attributes
    ----------
    acting
        (rows,) bool: which rows act.
    about
        The cells that devices answer about, by number.
    parties
        The servers and the mixer, by name.
    """

    world: World
    subject: QuerySubject
    mechanism: LocalMechanism
    channel: Channel
    deployment: Deployment
    numbers: IntArray
    coins_of: Callable[[int], Any]
    memory_of: Callable[[int], Any]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Make the parties."""
        self._numbers = self.numbers.tolist()
        self._row = {number: row for row, number in enumerate(self._numbers)}
        self.acting = self.world.acting[self.numbers]
        self.about: dict[int, int] = {}
        routes = (self.deployment.route(round_ + 1) for round_ in range(self.mechanism.rounds))
        names = dict.fromkeys(name for route in routes for path in route for name in path)
        own = self.world.behaviour.parties
        self.parties = {name: own.get(named_by(self.subject.operator, name), Party)(name, self) for name in names}
        self._rounds: dict[int, _Round] = {}
        self._under_way: dict[float, list[Answer]] = {}
        self._is_open = True

    @cached_property
    def _handles(self) -> list[Any]:
        """What servers know each row by: its device's number, a pseudonym of this query, or nothing."""
        if self.deployment.handles == "query":
            subject = self.subject
            rng = self.world.streams.of("pseudonyms", subject.campaign, subject.query, subject.mechanism)
            return list(rng.permutation(len(self._numbers)).tolist())
        return self._numbers if self.deployment.handles else [None] * len(self._numbers)

    def coins(self, number: int) -> Any:
        """Return the coins dealt to a device, as a batch of one."""
        return self.coins_of(self._row[number])

    def memory(self, number: int) -> Any:
        """Return what a device keeps from query to query, as a batch of one."""
        return self.memory_of(self._row[number])

    def ask(
        self, round_: int, transmission: Transmission, cells: Cells, answering: Mask, flights: Sequence[Flight]
    ) -> None:
        """Ask a round: let each acting device answer that is present; parameters as of `Survey._receive`."""
        if round_ == self.mechanism.truth_round:
            self.about = dict(zip(self._numbers, cells.tolist(), strict=True))
        sent_s, deadline_s, route = transmission.sent_s, transmission.deadline_s, transmission.route
        question = Question(self.subject, self.mechanism, round_, sent_s, deadline_s, route, self)
        drawn = [(flight.took_s.tolist(), flight.link_down.tolist()) for flight in flights]
        self._rounds[round_] = _Round(question, transmission, drawn)
        for row in np.flatnonzero(answering & self.acting).tolist():
            _start(self.world.env, self.world.device(self._numbers[row]).answer(question))

    def send(self, device: Device, question: Question, report: Any) -> bool:
        """Send a report, or a copy of one; parameters, returns and errors as of `Device.send`."""
        if not self._is_open:
            return False
        row, asked = self._row[device.number], self._rounds[question.round]
        # The first slot is part of what was drawn.
        waited_s = self.channel.slotted(self.world.time_s - question.asked_s) - self.channel.slotted(0.0)
        if row not in asked.reports:
            flights = [(took_s[row], down[row]) for took_s, down in asked.flights]
        else:
            now = replace(asked.transmission, sent_s=self.world.time_s)
            drawn = self.channel.draw(1, now, rng=device.rng)
            flights = [(float(flight.took_s[0]), bool(flight.link_down[0])) for flight in drawn]
        if (slot := asked.slots.get((row, id(report)))) is None:
            sent, slot = _Sent(row, report, self._payloads(report, question)), row
            if row in asked.reports:
                slot, asked.again = len(self._numbers) + asked.again, asked.again + 1
            asked.reports[slot], asked.slots[row, id(report)] = sent, slot
        mine = asked.reports[slot]
        for number, (took_s, down) in enumerate(flights):
            if not down:
                mine.left = True
                answer = Answer(
                    payload=mine.payloads[number],
                    handle=self._handles[row],
                    sent_s=question.asked_s + waited_s,
                    path=question.route[number],
                    round=question.round,
                    arrives_s=question.asked_s + (waited_s + took_s),
                    in_time=waited_s + took_s <= question.deadline_s,
                    number=number,
                    slot=slot,
                )
                self._dispatch(answer)
        return not any(down for _, down in flights)

    def _payloads(self, report: Any, question: Question) -> Sequence[Any]:
        """Return what each message of a report carries: the report, or one server's share of it."""
        if isinstance(report, WrittenVector):
            vectors = np.asarray(report.vector, dtype=np.int64).reshape(1, *self.mechanism.tally_shape)
        elif len(report) != 1:
            raise ValueError(f"a device sends one report, a batch of one; it sent {len(report)}")
        if self.deployment.sharing is None:
            return (report,) * len(question.route)
        if not isinstance(report, WrittenVector):
            vectors = self.mechanism.encode(report)
        return list(self.deployment.sharing.split(vectors, rng=self.rng)[:, 0])

    def _dispatch(self, answer: Answer) -> None:
        """Let a message arrive at its time; one event serves all messages that arrive together."""
        due = self._under_way.setdefault(answer.arrives_s, [])
        if not due:
            delay = max(0.0, self.world.clock.ticks(answer.arrives_s) - self.world.env.now)
            self.world.env.timeout(delay, answer.arrives_s).callbacks.append(self._arrive)
        due.append(answer)

    def _arrive(self, event: simpy.Event) -> None:
        for answer in self._under_way.pop(cast("float", event.value), ()):
            self.parties[answer.path[0]].take(answer)

    def is_down(self, party: str, answer: Answer) -> bool:
        """Return whether a party is down when a message arrives."""
        return bool(self.channel.outages) and bool(self.channel.is_down(party, np.array([answer.arrives_s]))[0])

    def close(self) -> None:
        """Record the messages that are still on their way, with the time at which they will arrive, and send no more.

        None of them is in time.
        """
        self._is_open = False
        for answers in self._under_way.values():
            for answer in answers:
                self.parties[answer.path[0]].receive(answer)
        self._under_way = {}

    def state_sums(self, sums: Sums) -> None:
        """Let each server with a behaviour of its own state the sums of its reports, or shares."""
        for round_, asked in self._rounds.items():
            for number, path in enumerate(asked.question.route):
                party = self.parties[path[-1]]
                if type(party).tally is not Party.tally:
                    sums.state(round_, number, partial(party.tally, round_))

    def received(self, round_: int, deliveries: Deliveries, answering: Mask) -> Received:
        """Return what became of a round's reports, after `close`.

        Parameters
        ----------
        round_
            From 1.
        deliveries, answering
            The outcomes of all rows, and which rows answer, (rows,) bool, if all devices follow the protocol.
        """
        asked, rows = self._rounds[round_], len(self._numbers)
        sharing, handles, more = self.deployment.sharing, self.deployment.handles, asked.again

        def column(values: Any, nothing: Any = np.False_) -> Any:
            """Return a column of all slots in which acting rows are still without an entry."""
            return np.append(np.where(self.acting, nothing, values), np.full(more, nothing))

        arrived_s = {party: column(times, math.inf) for party, times in deliveries.arrived_s.items()}
        in_time = tuple(column(within) for within in deliveries.in_time)
        left, sent, unreadable = column(deliveries.left), column(answering), np.zeros(rows + more, dtype=np.bool_)
        down = np.append(deliveries.link_down, np.zeros(more, dtype=np.bool_))
        payloads: dict[tuple[int, int], Any] = {}
        copies = Counter[str]()
        for name, party in self.parties.items():
            for answer in party.kept:
                if answer.round != round_:
                    continue
                slot, number = answer.slot, answer.number
                copies[name] += math.isfinite(arrived_s[name][slot])
                arrived_s[name][slot] = min(arrived_s[name][slot], answer.arrives_s)
                in_time[number][slot] |= answer.in_time
                if answer.path[-1] == name and not isinstance(answer.payload, WrittenVector):
                    payloads.setdefault((number, slot), answer.payload)
        for slot, one in asked.reports.items():
            sent[slot], left[slot] = True, one.left
            unreadable[slot] = sharing is None and isinstance(one.report, WrittenVector)
        status = status_of(zip(asked.question.route, in_time, strict=True), arrived_s)
        first_s = arrived_s[asked.question.route[0][0]]
        order = self._counted_first(asked, status == DeliveryStatus.COUNTED, first_s)
        arrived_s = {name: times[order] for name, times in arrived_s.items()}
        in_time = tuple(within[order] for within in in_time)
        first = {row: asked.reports.get(slot) for row, slot in enumerate(order[:rows].tolist())}
        own = np.append(np.flatnonzero(self.acting), np.arange(rows, rows if handles else rows + more))
        held = order[own].tolist()
        if sharing is None:
            nothing = self.mechanism.answer(round_, np.zeros(1, dtype=np.int32), self.coins_of(int(own[0])))
            reports = joined_reports([payloads.get((0, slot), nothing) for slot in held])
        else:
            empty, messages = np.zeros(self.mechanism.tally_shape, dtype=np.uint64), range(len(in_time))
            shares = [[payloads.get((number, slot), empty) for slot in held] for number in messages]
            reports = SentShares(np.array(shares))
        made = Deliveries(status[order], arrived_s, in_time, left[order], down[order])
        refused = unreadable[order] | ((np.arange(rows + more) >= rows) & (handles is not None))
        told = {row: one.report for row, one in first.items() if one and not isinstance(one.report, WrittenVector)}
        return Received(self.acting, made, sent[order], own, reports, refused, told, copies)

    def _counted_first(self, asked: _Round, counted: Mask, first_s: FloatArray) -> IntArray:
        """Return an order of the slots in which a device's row has the report under its handle that was counted.

        That is the first report, or else the second answer that was received first.
        """
        order = np.arange(len(counted))
        if self.deployment.handles is None:
            return order
        for slot in sorted(range(len(self._numbers), len(counted)), key=lambda slot: first_s[slot]):
            row = asked.reports[slot].row
            if counted[slot] and not counted[order[row]]:
                order[[row, slot]] = slot, order[row]
        return order


def _start(env: simpy.Environment, process: Process | None) -> None:
    """Run a device's answer to its first wait; only an answer that waits becomes a process with events."""
    event = None if process is None else next(process, None)
    if event is not None:
        env.process(_continue(process, event))


def _continue(process: Any, event: simpy.Event) -> Process:
    while True:
        value = yield event
        try:
            event = process.send(value)
        except StopIteration:
            return
