"""Channel: latency, loss, duplication and outages between a device and its servers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.compiled import ndtr
from simulator.arrays import FloatArray, Mask
from simulator.sensing.selection import LocalShare

Route: TypeAlias = tuple[tuple[str, ...], ...]
"""The messages of one report: for each, the parties that it passes, in order. A report that is split into shares is
sent as several messages, each with its own latency and its own probability of loss."""


class DeliveryStatus(IntEnum):
    """Delivery status of a report; every report that was sent has exactly one.

    A report is counted if all of its messages that are needed arrived in time, lost if one of them was lost, and
    otherwise late.
    """

    COUNTED = 0
    LATE = 1
    LOST = 2


class Latency(Protocol):
    """Distribution of the time from sending to arrival."""

    def draw(self, reports: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw (reports,) seconds."""

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""


@dataclass(frozen=True)
class ConstantDelay:
    """Constant latency: every message takes `value_s` seconds."""

    value_s: float = 0.0

    def draw(self, reports: int, *, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - a constant latency draws nothing
        """Draw (reports,) seconds."""
        return np.full(reports, self.value_s)

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(self.value_s > seconds)


@dataclass(frozen=True)
class ExponentialDelay:
    """Exponentially distributed latency with mean `mean_s`."""

    mean_s: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw (reports,) seconds."""
        return rng.exponential(self.mean_s, reports)

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(np.exp(-max(seconds, 0.0) / self.mean_s))


@dataclass(frozen=True)
class LognormalDelay:
    """Lognormal latency: the median is `median_s`; `sigma` is the standard deviation of the logarithm."""

    median_s: float
    sigma: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> FloatArray:
        """Draw (reports,) seconds."""
        return self.median_s * np.exp(self.sigma * rng.standard_normal(reports))

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(ndtr(-np.log(seconds / self.median_s) / self.sigma)) if seconds > 0.0 else 1.0


@dataclass(frozen=True)
class QuestionChannel:
    """The way of a round's question to a device; ideal by default.

    The question names the moment that it asks about, so a device that hears it late answers about its cell at that
    moment. Its report is sent later, and has less time until the deadline.

    Attributes
    ----------
    latency
        The time from the question until a device hears it, independent of all else. The messages of a report share it.
    loss
        Probability that a device does not hear the question of a round, independent of all else. It then sends no
        message in this round, and may hear the question of another round.
    """

    latency: Latency = field(default_factory=ConstantDelay)
    loss: float = 0.0


@dataclass(frozen=True)
class Downtime:
    """A period in which a server receives no messages.

    Attributes
    ----------
    server
        "server:1", "mixer" and so on, as named by the deployment.
    from_s, to_s
        The server is down from `from_s` until just before `to_s`.
    """

    server: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Transmission:
    """The sending of the reports of one round: time, deadline and route.

    Attributes
    ----------
    moment
        Which of the query's moments: 1 (round one), 2 (round two) or later.
    sent_s
        The time of the question, seconds; a report is sent then if its device hears the question at once.
    deadline_s
        Seconds from then on in which a message must arrive.
    route
        The messages of a report and the parties that each must reach.
    since_s
        Seconds since the previous moment of the query; 0 for its first.
    needed
        How many of a report's messages must arrive in time for it to be counted; by default all.
    """

    moment: int
    sent_s: float
    deadline_s: float
    route: Route = (("server:1",),)
    since_s: float = 0.0
    needed: int | None = None

    def agreed(self, received: Sequence[float]) -> "Transmission":
        """Return the transmission whose route begins with the messages that the servers agree to count.

        These are the `needed` messages that were received most often; of equal ones, the first.

        Parameters
        ----------
        received
            By message of the route: how many of them were received in time, or their expected share.
        """
        first = sorted(range(len(self.route)), key=lambda message: -received[message])[: self.needed]
        order = sorted(range(len(self.route)), key=lambda message: (message not in first, message))
        return replace(self, route=tuple(self.route[message] for message in order))

    @property
    def counted(self) -> Route:
        """The first messages of the route, as many as are needed."""
        return self.route[: self.needed]


@dataclass(frozen=True)
class DeliveryProbabilities:
    """Probabilities of the outcomes of one message; they sum to 1.

    Attributes
    ----------
    in_time
        The message reached every party of its path in time.
    late
        The message reached the first party of its path after the deadline; that party keeps it and does not forward it.
    link_down
        The message was lost before it reached a party, because the device's link was down.
    server_down
        By party of the path: the message was lost because this party was down when it arrived.
    """

    in_time: float
    late: float
    link_down: float
    server_down: tuple[float, ...]

    @property
    def shares(self) -> FloatArray:
        """(3 + parties,) float64, normalized so as to draw from: in time, late, link down, then each party down."""
        shares = np.array([self.in_time, self.late, self.link_down, *self.server_down])
        scaled: FloatArray = shares / shares.sum()
        return scaled


class Flight(NamedTuple):
    """What is random about the same message of n reports.

    Attributes
    ----------
    took_s
        (n,) float64: the time from the question to arrival, seconds.
    link_down
        (n,) bool: whether the device's link was down when the message was sent, so that it was lost.
    """

    took_s: FloatArray
    link_down: Mask


@dataclass(frozen=True, eq=False)
class Deliveries:
    """Delivery outcomes of n reports of one round.

    Attributes
    ----------
    status
        (n,) uint8, the `DeliveryStatus` of each report.
    arrived_s
        By party: (n,) float64, time at which the report's message reached the party, late or not; infinite if it never
        did.
    in_time
        By message of the route: (n,) bool, whether its latency was within the deadline.
    left
        (n,) bool: whether at least one message of the report was sent by the device, which the network observes.
    link_down
        (n,) bool: whether the device's link was down when the last message of its report was sent.
    """

    status: npt.NDArray[np.uint8]
    arrived_s: Mapping[str, FloatArray]
    in_time: tuple[Mask, ...]
    left: Mask
    link_down: Mask

    def of(self, answering: Mask) -> "Deliveries":
        """Return the outcomes restricted to the devices that answered, (n,) bool; the others sent nothing."""
        if answering.all():
            return self
        arrived_s = {party: np.where(answering, times, math.inf) for party, times in self.arrived_s.items()}
        return replace(self, arrived_s=arrived_s, left=self.left & answering)

    def received(self, route: Route) -> list[int]:
        """Return how many messages reached all parties of their path in time, by message of the route."""
        return [
            int(np.count_nonzero(np.isfinite(self.arrived_s[path[-1]]) & within))
            for path, within in zip(route, self.in_time, strict=True)
        ]

    def counted_by(self, route: Route, counted: Route) -> "Deliveries":
        """Return the outcomes where only the messages of the route `counted` must arrive."""
        paths = [(path, within) for path, within in zip(route, self.in_time, strict=True) if path in counted]
        return replace(self, status=status_of(paths, self.arrived_s))


def status_of(
    paths: Iterable[tuple[Sequence[str], Mask]], arrived_s: Mapping[str, FloatArray]
) -> npt.NDArray[np.uint8]:
    """Return the `DeliveryStatus` of each report, (n,) uint8.

    Parameters
    ----------
    paths
        For each message that must arrive, the parties that it passes, and (n,) bool: whether its latency was within
        the deadline.
    arrived_s
        As in `Deliveries`.
    """
    status = np.full(len(next(iter(arrived_s.values()))), DeliveryStatus.COUNTED, dtype=np.uint8)
    for path, within in paths:
        reached = [np.isfinite(arrived_s[party]) for party in path]
        late = reached[0] & ~within
        status[late & (status == DeliveryStatus.COUNTED)] = DeliveryStatus.LATE
        status[~late & ~np.logical_and.reduce(reached)] = DeliveryStatus.LOST
    return status


@dataclass(frozen=True)
class Channel:
    """A network between devices and servers with latency and loss; ideal by default.

    A message is lost if its device's link is down when the message is sent. Links are down independently of each other
    and of the positions of the devices. With `burst_s` a link is a two-state Markov process that is down a share `loss`
    of the time, for `burst_s` on average, as in Gilbert's model: a device in a tunnel loses all messages of both
    rounds. Without `burst_s`, every message is lost independently; all m shares of a report arrive with probability
    (1 − loss)^m.

    Attributes
    ----------
    latency
        The latency of each message, independent of all others.
    loss_one, loss_two
        Probability that a message sent at the moment of round one, or of round two or a later round, is lost; the two
        are equal if losses come in bursts.
    burst_s
        Mean duration in seconds for which a link is down; 0 if losses are independent.
    churn
        Probability that a device leaves between two moments of a query; it sends no further answer in this query.
    duplicates
        Probability that a message which arrives in time arrives a second time.
    outages
        Periods in which a server is down and receives nothing.
    question
        How the question of a round reaches a device.
    zones
        The probability that all messages which a device sends at a moment leave, where it is then; other losses add.
    slot_s
        Devices send at the end of slots of this length, the first of which begins with the question; 0: at once.
    """

    latency: Latency = field(default_factory=ConstantDelay)
    loss_one: float = 0.0
    loss_two: float = 0.0
    burst_s: float = 0.0
    churn: float = 0.0
    duplicates: float = 0.0
    outages: tuple[Downtime, ...] = ()
    question: QuestionChannel = field(default_factory=QuestionChannel)
    zones: tuple[LocalShare, ...] = ()
    slot_s: float = 0.0

    def slotted(self, ready_s: Any) -> Any:
        """Return when devices send, from when they are ready: at the end of a slot; seconds after the question."""
        return np.maximum(np.ceil(ready_s / self.slot_s - 1e-9), 1.0) * self.slot_s if self.slot_s else ready_s

    def loss(self, moment: int) -> float:
        """Return the loss probability at `moment` 1 (round one), 2 (round two) or later."""
        return self.loss_one if moment <= 1 else self.loss_two

    def probabilities(
        self, transmission: Transmission, message: int = 0, *, was_down: bool | None = None
    ) -> DeliveryProbabilities:
        """Return the outcome probabilities of one message of a report.

        Parameters
        ----------
        transmission
            When the message is sent, its route, and how long it may take.
        message
            Index of the message in the route, from 0. With bursts (`burst_s`), the probabilities of a message after
            the first are conditional on the device's link being up.
        was_down
            Whether the device's link was down at the previous moment, if there was one.

        Notes
        -----
        The device has heard the question. The question's latency is included if it is constant. If it is random, the
        messages of a report are not independent, and it is left out.
        """
        if isinstance(self.question.latency, ConstantDelay):
            heard_s = self.slotted(self.question.latency.value_s)
            sent_s, deadline_s = transmission.sent_s + heard_s, transmission.deadline_s - heard_s
            transmission = replace(transmission, sent_s=sent_s, deadline_s=deadline_s)
        down = 0.0 if message and self.burst_s else self._down(transmission, was_down=was_down)
        path, deadline_s = transmission.route[message], transmission.deadline_s
        stopped_by = [self._arrive_between(path[: number + 1], transmission, deadline_s) for number in range(len(path))]
        server_down = np.diff(stopped_by, prepend=0.0)
        late = self.latency.exceeds(deadline_s)
        if path:
            # A late message is also lost if the first party of its path is down when it arrives.
            lost_late = self._arrive_between(path[:1], transmission, math.inf) - server_down[0]
            server_down[0] += lost_late
            late = max(0.0, late - lost_late)
        in_time = max(0.0, 1.0 - late - float(server_down.sum()))
        up = 1.0 - down
        return DeliveryProbabilities(up * in_time, up * late, down, tuple((up * server_down).tolist()))

    def deliver(
        self, reports: int, transmission: Transmission, *, was_down: Mask | None = None, rng: np.random.Generator
    ) -> Deliveries:
        """Draw the outcome of every message of every report; parameters as in `draw`."""
        return self.outcome(self.draw(reports, transmission, was_down=was_down, rng=rng), transmission)

    def hears(self, devices: int, *, rng: np.random.Generator) -> Mask:
        """Draw which devices hear the question of a round, (devices,) bool; nothing is drawn if all do."""
        loss = self.question.loss
        return rng.random(devices) >= loss if loss else np.broadcast_to(np.True_, devices)

    def draw(
        self, reports: int, transmission: Transmission, *, was_down: Mask | None = None, rng: np.random.Generator
    ) -> list[Flight]:
        """Draw what is random about every message of every report.

        Parameters
        ----------
        reports
            The number of reports, n.
        transmission
            When the reports are sent, their route, and how long they may take.
        was_down
            (n,) bool, `link_down` as returned at the previous moment; None at the first.

        Returns
        -------
        list of Flight
            One for each message of the route. No loss is drawn where none can occur.
        """
        if self._is_certain(transmission):
            # Broadcasts of one element: fleets are large, most channels ideal.
            took_s = np.broadcast_to(self.latency.draw(1, rng=np.random.default_rng(0)), reports)
            return [Flight(took_s, np.broadcast_to(np.False_, reports))] * len(transmission.route)
        flights: list[Flight] = []
        link_down = np.zeros(reports, dtype=np.bool_)
        heard_s = self.slotted(self.question.latency.draw(reports, rng=rng))
        for number in range(len(transmission.route)):
            took_s = heard_s + self.latency.draw(reports, rng=rng)
            if (number == 0 or not self.burst_s) and self.loss(transmission.moment):
                link_down = self._draw_down(reports, transmission, was_down, rng=rng)
            flights.append(Flight(took_s, link_down))
        return flights

    def outcome(self, flights: Sequence[Flight], transmission: Transmission) -> Deliveries:
        """Return the outcomes of reports, given what was drawn for each message of their route."""
        reports, link_down = len(flights[0].took_s), flights[-1].link_down
        if self._is_certain(transmission) and not link_down.any():
            yes = np.broadcast_to(np.True_, reports)
            at_s = np.broadcast_to(transmission.sent_s + flights[0].took_s[:1], reports)
            all_at_s = {party: at_s for path in transmission.route for party in path}
            return Deliveries(np.zeros(reports, dtype=np.uint8), all_at_s, (yes,) * len(flights), yes, link_down)
        arrived_s: dict[str, FloatArray] = {}
        within: list[Mask] = []
        left = np.zeros(reports, dtype=np.bool_)
        for flight, path in zip(flights, transmission.route, strict=True):
            left |= ~flight.link_down
            at_s, in_time = transmission.sent_s + flight.took_s, flight.took_s <= transmission.deadline_s
            within.append(in_time)
            onward = ~flight.link_down
            for party in path:
                received = onward & ~self.is_down(party, at_s)
                arrived_s[party] = np.where(received, at_s, math.inf)
                onward = received & in_time
        status = status_of(zip(transmission.route, within, strict=True), arrived_s)
        return Deliveries(status, arrived_s, tuple(within), left, link_down)

    def _is_certain(self, transmission: Transmission) -> bool:
        """Return whether all messages are certain to arrive in time, and at the same time."""
        messages = range(len(transmission.route))
        certain = all(self.probabilities(transmission, message).in_time == 1.0 for message in messages)
        at_once = self.question.latency == ConstantDelay() and not self.slot_s
        return certain and at_once and isinstance(self.latency, ConstantDelay)

    def copies(self, in_time: int, *, rng: np.random.Generator) -> int:
        """Draw how many of the messages that arrived in time, counted or not, arrive a second time."""
        return int(rng.binomial(in_time, self.duplicates)) if self.duplicates else 0

    def _draw_down(
        self, reports: int, transmission: Transmission, was_down: Mask | None, *, rng: np.random.Generator
    ) -> Mask:
        """Draw which devices' links are down, (n,) bool."""
        chance: float | FloatArray = self._down(transmission, was_down=None)
        if was_down is not None and self.burst_s:
            chance = np.where(was_down, *(self._down(transmission, was_down=down) for down in (True, False)))
        return rng.random(reports) < chance

    def _down(self, transmission: Transmission, *, was_down: bool | None) -> float:
        """Return the probability that a link is down, given whether it was down at the previous moment, if known."""
        loss = self.loss(transmission.moment)
        if was_down is None or not self.burst_s or loss in {0.0, 1.0}:
            return loss
        # Down periods have mean b and up periods mean b(1 − p)/p: the state decorrelates at rate 1/(b(1 − p)).
        kept = math.exp(-transmission.since_s / (self.burst_s * (1.0 - loss)))
        return loss + (1.0 - loss) * kept if was_down else loss * (1.0 - kept)

    def is_down(self, party: str, at_s: FloatArray) -> Mask:
        """Return whether a party is down at these times, (n,) bool."""
        down = np.zeros(len(at_s), dtype=np.bool_)
        for from_s, to_s in self._outage_intervals((party,)):
            down |= (from_s <= at_s) & (at_s < to_s)
        return down

    def _outage_intervals(self, parties: Sequence[str]) -> list[tuple[float, float]]:
        """Return the times at which at least one of the parties is down, as disjoint intervals."""
        merged: list[tuple[float, float]] = []
        for from_s, to_s in sorted((o.from_s, o.to_s) for o in self.outages if o.server in parties):
            if merged and from_s <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], to_s))
            else:
                merged.append((from_s, to_s))
        return merged

    def _arrive_between(self, parties: Sequence[str], transmission: Transmission, most_s: float) -> float:
        """Return the probability of arriving while one of the parties is down, at most `most_s` after transmission."""
        probability = 0.0
        for from_s, to_s in self._outage_intervals(parties):
            start_s, end_s = max(from_s - transmission.sent_s, 0.0), to_s - transmission.sent_s
            if isinstance(self.latency, ConstantDelay):  # an atom: it matters which end of the interval is excluded
                took_s = self.latency.value_s
                probability += float(start_s <= took_s < end_s and took_s <= most_s)
            elif min(end_s, most_s) > start_s:
                probability += self.latency.exceeds(start_s) - self.latency.exceeds(min(end_s, most_s))
        return probability
