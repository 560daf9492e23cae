"""Channel: latency, loss, duplication and outages between a device and its servers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Mask = npt.NDArray[np.bool_]


Route: TypeAlias = tuple[tuple[str, ...], ...]
"""The messages of one report: for each, the parties that it passes, in order. A report that is cut into shares is
several messages, each with its own latency and its own risk of loss."""


class DeliveryStatus(IntEnum):
    """What became of a report; every report that was sent has exactly one.

    It is counted if all of its messages arrived in time, lost if one of them was lost, and otherwise late.
    """

    COUNTED = 0
    LATE = 1
    LOST = 2


class Latency(Protocol):
    """How long a report is under way."""

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""


@dataclass(frozen=True)
class ConstantLatency:
    """Every report takes `value_s`."""

    value_s: float = 0.0

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:  # noqa: ARG002  # nothing to draw
        """Draw (reports,) seconds."""
        return np.full(reports, self.value_s)

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(self.value_s > seconds)


@dataclass(frozen=True)
class ExponentialLatency:
    """Memoryless, `mean_s` on average."""

    mean_s: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""
        return rng.exponential(self.mean_s, reports)

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(np.exp(-max(seconds, 0.0) / self.mean_s))


@dataclass(frozen=True)
class LognormalLatency:
    """Half of the reports take less than `median_s`; `sigma` is the standard deviation of the logarithm."""

    median_s: float
    sigma: float

    def draw(self, reports: int, *, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draw (reports,) seconds."""
        return self.median_s * np.exp(self.sigma * rng.standard_normal(reports))

    def exceeds(self, seconds: float) -> float:
        """Return the probability of taking longer than `seconds`."""
        return float(ndtr(-np.log(seconds / self.median_s) / self.sigma)) if seconds > 0.0 else 1.0


@dataclass(frozen=True)
class Outage:
    """A server that hears nothing for a while.

    Attributes
    ----------
    server
        "server:1", "mixer" and so on, as the deployment calls it.
    from_s, to_s
        It is down from `from_s` until `to_s`, the latter excluded.
    """

    server: str
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Transmission:
    """One round's reports as they leave the devices.

    Attributes
    ----------
    moment
        Which of the query's moments: 1 (round one), 2 (round two) or later.
    sent_s
        When they leave, seconds.
    deadline_s
        Seconds they may take.
    route
        The messages of a report and the parties that each must reach.
    since_s
        Seconds since the query's moment before; 0 for its first.
    """

    moment: int
    sent_s: float
    deadline_s: float
    route: Route = (("server:1",),)
    since_s: float = 0.0


@dataclass(frozen=True)
class MessageLaw:
    """Probabilities of what becomes of one message; they sum to 1.

    Attributes
    ----------
    in_time
        It reached every party of its path in time.
    late
        It reached the first party of its path after the deadline; that party keeps it and does not forward it.
    link_down
        It was lost before it reached a party, because the device's link was down.
    server_down
        By party of the path: it was lost because this party was down when it arrived.
    """

    in_time: float
    late: float
    link_down: float
    server_down: tuple[float, ...]

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(3 + parties,) float64, exact enough to draw from: in time, late, link down, then each party down."""
        shares = np.array([self.in_time, self.late, self.link_down, *self.server_down])
        scaled: npt.NDArray[np.float64] = shares / shares.sum()
        return scaled


@dataclass(frozen=True, eq=False)
class Deliveries:
    """What became of n reports of one round.

    Attributes
    ----------
    fate
        (n,) uint8, the `DeliveryStatus` of each report.
    arrived_s
        By party: (n,) float64, when its message reached the party, late or not; infinite where it never did.
    in_time
        By message of the route: (n,) bool, whether its latency was within the deadline.
    left
        (n,) bool: whether at least one message of the report left the device, which the network observes.
    link_down
        (n,) bool: whether the device's link was down.
    """

    fate: npt.NDArray[np.uint8]
    arrived_s: Mapping[str, npt.NDArray[np.float64]]
    in_time: tuple[Mask, ...]
    left: Mask
    link_down: Mask

    def of(self, answering: Mask) -> "Deliveries":
        """Return what became of the reports of the devices that answered, (n,) bool; the others sent nothing."""
        if answering.all():
            return self
        arrived_s = {party: np.where(answering, times, math.inf) for party, times in self.arrived_s.items()}
        return replace(self, arrived_s=arrived_s, left=self.left & answering)


@dataclass(frozen=True)
class Channel:
    """A lossy, slow network between devices and servers; ideal by default.

    A message is lost where its device's link is down when it leaves. Links are down independently of each other
    and of where the devices are. With `burst_s` a link is a two-state Markov process that is down a share `loss`
    of the time, for `burst_s` on average, as in Gilbert's model: a device in a tunnel loses all messages of both
    rounds. Without, every message is lost independently; of a report of m shares all arrive with (1 − loss)^m.

    Attributes
    ----------
    latency
        Of each message, independently.
    loss_one, loss_two
        Probability that a message sent at round one's, or at round two's or a later moment, is lost; alike where
        there are bursts.
    burst_s
        Seconds that a link is down, on average; 0 where losses are independent.
    churn
        Probability that a device leaves after round one's moment, and answers no more in this query.
    duplicates
        Probability that a message which arrives in time arrives a second time.
    outages
        Servers that are down for a while. They receive nothing meanwhile.
    """

    latency: Latency = field(default_factory=ConstantLatency)
    loss_one: float = 0.0
    loss_two: float = 0.0
    burst_s: float = 0.0
    churn: float = 0.0
    duplicates: float = 0.0
    outages: tuple[Outage, ...] = ()

    def loss(self, moment: int) -> float:
        """Return the loss probability at `moment` 1 (round one), 2 (round two) or later."""
        return self.loss_one if moment <= 1 else self.loss_two

    def law(self, sending: Transmission, message: int = 0, *, was_down: bool | None = None) -> MessageLaw:
        """Return what becomes of one message of a report.

        Parameters
        ----------
        sending
            When, to whom, and how long it may take.
        message
            Which message of the route, from 0. Where links stay down (`burst_s`), the law of a message after the first
            holds for devices whose link is up.
        was_down
            Whether the device's link was down at the moment before, if there was one.
        """
        down = 0.0 if message and self.burst_s else self._down(sending, was_down=was_down)
        path, deadline_s = sending.route[message], sending.deadline_s
        reached_nobody = [self._arrive_between(path[: number + 1], sending, deadline_s) for number in range(len(path))]
        server_down = np.diff(reached_nobody, prepend=0.0)
        late = self.latency.exceeds(deadline_s)
        if path:
            # A late message is lost, too, where the first party of its path is down when it arrives.
            lost_late = self._arrive_between(path[:1], sending, math.inf) - server_down[0]
            server_down[0] += lost_late
            late = max(0.0, late - lost_late)
        in_time = max(0.0, 1.0 - late - float(server_down.sum()))
        up = 1.0 - down
        return MessageLaw(up * in_time, up * late, down, tuple((up * server_down).tolist()))

    def deliver(
        self, reports: int, sending: Transmission, *, was_down: Mask | None = None, rng: np.random.Generator
    ) -> Deliveries:
        """Draw what becomes of every message of every report.

        Parameters
        ----------
        reports
            How many, n.
        sending
            When, to whom, and how long they may take.
        was_down
            (n,) bool, `link_down` as returned at the moment before; None at the first.

        Returns
        -------
        Deliveries
            No loss is drawn where none can occur.
        """
        if self._is_certain(sending):
            return self._deliver_all(reports, sending)
        fate = np.full(reports, DeliveryStatus.COUNTED, dtype=np.uint8)
        arrived_s: dict[str, npt.NDArray[np.float64]] = {}
        within: list[Mask] = []
        left, link_down = np.zeros((2, reports), dtype=np.bool_)
        for number, path in enumerate(sending.route):
            took_s = self.latency.draw(reports, rng=rng)
            if (number == 0 or not self.burst_s) and self.loss(sending.moment):
                link_down = self._draw_down(reports, sending, was_down, rng=rng)
            left |= ~link_down
            at_s, in_time = sending.sent_s + took_s, took_s <= sending.deadline_s
            within.append(in_time)
            lost, onward = link_down, ~link_down
            for party in path:
                received = onward & ~self._is_down(party, at_s)
                lost = lost | (onward & ~received)
                arrived_s[party] = np.where(received, at_s, math.inf)
                onward = received & in_time
            fate[~lost & ~in_time & (fate == DeliveryStatus.COUNTED)] = DeliveryStatus.LATE
            fate[lost] = DeliveryStatus.LOST
        return Deliveries(fate, arrived_s, tuple(within), left, link_down)

    def _is_certain(self, sending: Transmission) -> bool:
        """Return whether all messages arrive in time, and all at once."""
        certain = all(self.law(sending, message).in_time == 1.0 for message in range(len(sending.route)))
        return certain and not self.burst_s and isinstance(self.latency, ConstantLatency)

    def _deliver_all(self, reports: int, sending: Transmission) -> Deliveries:
        """Return that all messages arrived, in arrays of one element: fleets are large, and most channels ideal."""
        yes, no = (np.broadcast_to(np.bool_(value), reports) for value in (True, False))
        at_s = np.broadcast_to(sending.sent_s + self.latency.draw(1, rng=np.random.default_rng(0)), reports)
        arrived_s = {party: at_s for path in sending.route for party in path}
        return Deliveries(np.zeros(reports, dtype=np.uint8), arrived_s, (yes,) * len(sending.route), yes, no)

    def copies(self, in_time: int, *, rng: np.random.Generator) -> int:
        """Draw how many of the messages that arrived in time, counted or not, arrive a second time."""
        return int(rng.binomial(in_time, self.duplicates)) if self.duplicates else 0

    def _draw_down(
        self, reports: int, sending: Transmission, was_down: Mask | None, *, rng: np.random.Generator
    ) -> npt.NDArray[np.bool_]:
        """Draw whose link is down, (n,) bool."""
        if was_down is None or not self.burst_s:
            chance: float | npt.NDArray[np.float64] = self._down(sending, was_down=None)
        else:
            chance = np.where(was_down, self._down(sending, was_down=True), self._down(sending, was_down=False))
        return rng.random(reports) < chance

    def _down(self, sending: Transmission, *, was_down: bool | None) -> float:
        """Return the probability that a link is down, of all or of those that were down, or up, the moment before."""
        loss = self.loss(sending.moment)
        if was_down is None or not self.burst_s or loss in {0.0, 1.0}:
            return loss
        # Down spells of mean b and up spells of mean b(1 − p)/p: the state is forgotten at rate 1/(b(1 − p)).
        kept = math.exp(-sending.since_s / (self.burst_s * (1.0 - loss)))
        return loss + (1.0 - loss) * kept if was_down else loss * (1.0 - kept)

    def _is_down(self, party: str, at_s: npt.NDArray[np.float64]) -> Mask:
        """Return whether a party is down at these times, (n,) bool."""
        down = np.zeros(len(at_s), dtype=np.bool_)
        for from_s, to_s in self._outage_intervals((party,)):
            down |= (from_s <= at_s) & (at_s < to_s)
        return down

    def _outage_intervals(self, parties: Sequence[str]) -> list[tuple[float, float]]:
        """Return when some of the parties are down, as intervals that do not overlap."""
        merged: list[tuple[float, float]] = []
        for from_s, to_s in sorted((o.from_s, o.to_s) for o in self.outages if o.server in parties):
            if merged and from_s <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], to_s))
            else:
                merged.append((from_s, to_s))
        return merged

    def _arrive_between(self, parties: Sequence[str], sending: Transmission, most_s: float) -> float:
        """Return the probability of arriving while one of the parties is down, at most `most_s` after leaving."""
        found = 0.0
        for from_s, to_s in self._outage_intervals(parties):
            start_s, end_s = max(from_s - sending.sent_s, 0.0), to_s - sending.sent_s
            if isinstance(self.latency, ConstantLatency):  # an atom: which end belongs matters
                took_s = self.latency.value_s
                found += float(start_s <= took_s < end_s and took_s <= most_s)
            elif min(end_s, most_s) > start_s:
                found += self.latency.exceeds(start_s) - self.latency.exceeds(min(end_s, most_s))
        return found
