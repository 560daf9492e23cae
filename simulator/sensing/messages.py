"""Message-level engine: devices and servers as SimPy processes, and each message as an event.

It is the readable reference of `Survey`, which passes whole batches of reports to the servers at once. Coins, latencies
and losses are drawn by the same calls for all devices and given to the processes by index, so the two differ in
who schedules the reports, and never in what is drawn: reports, arrivals and estimates are equal. A user's own devices
and parties may behave otherwise: send again, wait, drop or delay messages.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import simpy

from mechanisms.local import Estimate
from simulator.aggregation.rounds import RoundAccount
from simulator.arrays import Cells, IntArray, Mask
from simulator.sensing.channel import Deliveries, Flight, Transmission, status_of
from simulator.sensing.survey import Survey
from simulator.traffic.clock import Clock

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, eq=False, slots=True)
class Message:
    """One message of a device's report of a round.

    Attributes
    ----------
    round
        From 1.
    device
        Index of the device among those that answer one by one.
    number
        Which of the messages of the report's route it is, from 0.
    arrives_s
        The time at which it arrives unless it is lost, seconds.
    in_time
        Whether that is within the deadline.
    """

    round: int
    device: int
    number: int
    arrives_s: float
    in_time: bool


@dataclass(frozen=True, eq=False)
class Question:
    """What devices are asked in a round, and what was drawn about their answers.

    Attributes
    ----------
    round
        From 1.
    answering
        (devices,) bool: which devices are present to answer.
    sending
        The time, the deadline and the route of the reports.
    flights
        By message of the route, the latency and the loss of that message of each device.
    """

    round: int
    answering: Mask
    sending: Transmission
    flights: Sequence[Flight]

    def message(self, device: int, number: int, *, wait_s: float = 0.0) -> Message:
        """Return message `number` of a device's report, sent `wait_s` seconds after the question."""
        took_s = float(self.flights[number].took_s[device]) + wait_s
        return Message(self.round, device, number, self.sending.sent_s + took_s, took_s <= self.sending.deadline_s)


class Device:
    """A device as a process: it waits for the question of each round and answers, until it leaves.

    Parameters
    ----------
    number
        Its index among the devices that answer one by one.
    survey
        The survey that asks it.
    """

    def __init__(self, number: int, survey: "MessageSurvey") -> None:
        self.number, self.survey = number, survey

    def run(self) -> Process:
        """Answer every round."""
        for asked in self.survey.questions:
            question: Question = yield asked
            if not question.answering[self.number]:
                continue  # it left, or did not hear the question
            yield from self.answer(question)

    def answer(self, question: Question) -> Process:
        """Send the messages of one report; here all at once."""
        for number, flight in enumerate(question.flights):
            if not flight.link_down[self.number]:
                self.survey.send(question.message(self.number, number))
        yield from ()


class Party:
    """A server or a mixer as a process: it takes messages from its mailbox, keeps them, and forwards those in time.

    Parameters
    ----------
    name
        "server:1", …, or "mixer".
    survey
        The survey that it is a party of.

    Attributes
    ----------
    kept
        The messages received, in the order of their arrival.
    """

    def __init__(self, name: str, survey: "MessageSurvey") -> None:
        self.name, self.survey = name, survey
        self.mailbox = simpy.Store(survey.env)
        self.kept: list[Message] = []

    def run(self) -> Process:
        """Receive messages for ever."""
        while True:
            self.receive((yield self.mailbox.get()))

    def tally(self, round_: int, sums: IntArray) -> IntArray:  # noqa: ARG002 - for parties that alter what they state
        """Return the sums of a round that the server states as the sums of its reports, or shares; here they are.

        Parameters
        ----------
        round_
            From 1.
        sums
            (*tally_shape) int64, or uint64 if the server holds shares.
        """
        return sums

    def receive(self, message: Message) -> None:
        """Receive a message, unless the party is down."""
        channel = self.survey.channel
        if channel.outages and channel.is_down(self.name, np.array([message.arrives_s]))[0]:
            return
        self.kept.append(message)
        path = self.survey.route(message.round)[message.number]
        onward = path[path.index(self.name) + 1 :]
        if onward and message.in_time:
            self.survey.parties[onward[0]].receive(message)


@dataclass(frozen=True)
class Behaviour:
    """How devices and parties behave; by default, they follow the protocol.

    Attributes
    ----------
    device
        The class of all devices.
    parties
        By name, "server:1", …, or "mixer": the class of a party; of all others, `Party`.
    """

    device: type[Device] = Device
    parties: Mapping[str, type[Party]] = field(default_factory=dict)


@dataclass(eq=False)
class MessageSurvey(Survey):
    """A survey whose devices, messages and servers are processes and events; to about 10⁵ devices.

    The query is closed at its last deadline. Messages that are still on their way are then recorded with the time at
    which they will arrive; none of them is in time.

    Parameters
    ----------
    env, clock
        The environment of the run, and the clock that converts seconds to its ticks.
    behaviour
        The classes of devices and parties.

    Attributes
    ----------
    questions
        An event for each round, whose value is its `Question`.
    parties
        The servers and the mixer, by name.
    """

    env: simpy.Environment = field(kw_only=True)
    clock: Clock = field(kw_only=True)
    behaviour: Behaviour = field(default=Behaviour(), kw_only=True)

    def __post_init__(self) -> None:
        """Start the processes of all parties and devices."""
        super().__post_init__()
        rounds = range(1, self.mechanism.rounds + 1)
        self.questions = [self.env.event() for _ in rounds]
        names = dict.fromkeys(name for round_ in rounds for path in self.route(round_) for name in path)
        self.parties = {name: self.behaviour.parties.get(name, Party)(name, self) for name in names}
        for party in self.parties.values():
            self.env.process(party.run())
        for number in range(self._reporting):
            self.env.process(self.behaviour.device(number, self).run())
        self._answered: list[list[Any]] = []
        self._sent: dict[Message, bool] = {}  # whether each message has arrived

    def route(self, round_: int) -> tuple[tuple[str, ...], ...]:
        """Return the messages of a report of a round, each as the parties that it passes, in order."""
        return self.deployment.route(round_)

    def _send(self, round_: int, cells: Cells, answering: Mask, flights: Sequence[Flight]) -> None:
        """Let each device compute its answer and ask it to send."""
        self._answered.append(list(self._answers(round_, cells)))
        self.questions[round_ - 1].succeed(Question(round_, answering, self._rounds[round_ - 1].transmission, flights))

    def send(self, message: Message) -> None:
        """Send a message: it is in the mailbox of the first party of its path when its latency has passed."""
        self._sent[message] = False
        delay = max(0.0, self.clock.ticks(message.arrives_s) - self.env.now)
        self.env.timeout(delay, message).callbacks.append(self._arrive)

    def _arrive(self, event: simpy.Event) -> None:
        message = cast("Message", event.value)
        if not self._sent[message]:  # else it was recorded when the query was closed
            self._sent[message] = True
            self.parties[self.route(message.round)[message.number][0]].mailbox.put(message)

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Record the messages that are still on their way, and let the aggregator count what the servers received."""
        for message, arrived in self._sent.items():
            if not arrived:
                self._sent[message] = True
                self.parties[self.route(message.round)[message.number][0]].receive(message)
        for row, answers in enumerate(self._answered):
            question = cast("Question", self.questions[row].value)
            self._receive(row + 1, answers, question.answering, self._deliveries(question))
        self._answered = []
        return super().close()

    def _publish(self) -> Estimate:
        for round_ in range(1, self.mechanism.rounds + 1):
            for number, path in enumerate(self.route(round_)):
                party = self.parties[path[-1]]
                self._server.sums.state(round_, number, partial(party.tally, round_))
        return super()._publish()

    def _deliveries(self, question: Question) -> Deliveries:
        """Return the outcomes of a round's reports, from what the parties kept."""
        route = question.sending.route
        arrived_s = {party: np.full(self._reporting, math.inf) for path in route for party in path}
        in_time = np.zeros((len(route), self._reporting), dtype=np.bool_)
        left = np.zeros(self._reporting, dtype=np.bool_)
        for message in self._sent:
            if message.round == question.round:
                left[message.device] = True
                in_time[message.number, message.device] = message.in_time
        for name, times in arrived_s.items():
            for message in self.parties[name].kept:
                if message.round == question.round:
                    times[message.device] = message.arrives_s
        status = status_of(zip(route, in_time, strict=True), arrived_s)
        return Deliveries(status, arrived_s, tuple(in_time), left, question.flights[-1].link_down)
