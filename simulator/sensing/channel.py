"""Channel: what becomes of a report between a device and its servers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Mask = npt.NDArray[np.bool_]


class Fate(IntEnum):
    """What became of a report; every report that was sent has exactly one."""

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
class Sending:
    """One round's reports as they leave the devices.

    Attributes
    ----------
    moment
        Which of the query's moments: 1 (round one), 2 (round two) or later.
    sent_s
        When they leave, seconds.
    deadline_s
        Seconds they may take.
    servers
        All those a report must reach to be of use.
    since_s
        Seconds since the query's moment before; 0 for its first.
    """

    moment: int
    sent_s: float
    deadline_s: float
    servers: tuple[str, ...] = ()
    since_s: float = 0.0


@dataclass(frozen=True)
class FateLaw:
    """Probabilities of what becomes of a report; they sum to 1.

    Attributes
    ----------
    counted, late
        Heard in time, or after the deadline.
    down
        Lost because the device's link was down.
    unheard
        Lost because a server was down when it arrived.
    """

    counted: float
    late: float
    down: float
    unheard: float

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(4,) float64 that sum to 1 exactly enough to draw from: counted, late, down, unheard."""
        shares = np.array([self.counted, self.late, self.down, self.unheard])
        scaled: npt.NDArray[np.float64] = shares / shares.sum()
        return scaled


@dataclass(frozen=True)
class Channel:
    """A lossy, slow network between devices and servers; ideal by default.

    A report is lost where its device's link is down when it leaves. Links are down independently of each other
    and of where the devices are. With `burst_s` a link is a two-state Markov process that is down a share `loss`
    of the time, for `burst_s` on average, as in Gilbert's model: a device in a tunnel misses both rounds. Without,
    every report is lost independently.

    Attributes
    ----------
    latency
        Of each report, independently.
    loss_one, loss_two
        Probability that a report sent at round one's, or at round two's or a later moment, is lost; alike where
        there are bursts.
    burst_s
        Seconds that a link is down, on average; 0 where losses are independent.
    churn
        Probability that a device leaves after round one's moment, and answers no more in this query.
    duplicates
        Probability that a report which is heard in time arrives a second time.
    outages
        Servers that are down for a while.
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

    def law(self, sending: Sending, *, was_down: bool | None = None) -> FateLaw:
        """Return what becomes of a report.

        Parameters
        ----------
        sending
            When, to whom, and how long it may take.
        was_down
            Whether the device's link was down at the moment before, if there was one.
        """
        down = self._down(sending, was_down=was_down)
        late = self.latency.exceeds(sending.deadline_s)
        unheard = sum(
            self._arrives_between(from_s - sending.sent_s, to_s - sending.sent_s, sending.deadline_s)
            for from_s, to_s in self._dark(sending.servers)
        )
        heard = max(0.0, 1.0 - late - unheard)
        return FateLaw((1.0 - down) * heard, (1.0 - down) * late, down, (1.0 - down) * unheard)

    def fates(
        self, reports: int, sending: Sending, *, was_down: Mask | None = None, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.uint8], Mask]:
        """Draw what becomes of every report.

        Parameters
        ----------
        reports
            How many, n.
        sending
            When, to whom, and how long they may take.
        was_down
            (n,) bool, the second of what was returned at the moment before; None at the first.

        Returns
        -------
        tuple
            The `Fate` of each, (n,) uint8, and whose link is down, (n,) bool. Nothing is drawn where all is
            certain.
        """
        law = self.law(sending)
        if law.counted == 1.0 and not self.burst_s:
            return np.zeros(reports, dtype=np.uint8), np.zeros(reports, dtype=bool)
        took_s = self.latency.draw(reports, rng=rng)
        fate = np.where(took_s > sending.deadline_s, np.uint8(Fate.LATE), np.uint8(Fate.COUNTED))
        arrived_s = sending.sent_s + took_s
        for from_s, to_s in self._dark(sending.servers):
            fate[(fate == Fate.COUNTED) & (from_s <= arrived_s) & (arrived_s < to_s)] = Fate.LOST
        if was_down is None:
            chance: float | npt.NDArray[np.float64] = self._down(sending, was_down=None)
        else:
            chance = np.where(was_down, self._down(sending, was_down=True), self._down(sending, was_down=False))
        down = rng.random(reports) < chance
        fate[down] = Fate.LOST
        return fate, down

    def copies(self, heard: int, *, rng: np.random.Generator) -> int:
        """Draw how many of the reports heard in time, counted or not, arrive a second time."""
        return int(rng.binomial(heard, self.duplicates)) if self.duplicates else 0

    def _down(self, sending: Sending, *, was_down: bool | None) -> float:
        """Return the probability that a link is down, of all or of those that were down, or up, the moment before."""
        loss = self.loss(sending.moment)
        if was_down is None or not self.burst_s or loss in {0.0, 1.0}:
            return loss
        # Down spells of mean b and up spells of mean b(1 − p)/p: the state is forgotten at rate 1/(b(1 − p)).
        kept = math.exp(-sending.since_s / (self.burst_s * (1.0 - loss)))
        return loss + (1.0 - loss) * kept if was_down else loss * (1.0 - kept)

    def _dark(self, servers: Sequence[str]) -> list[tuple[float, float]]:
        """Return when some of the servers are down, as intervals that do not overlap."""
        merged: list[tuple[float, float]] = []
        for from_s, to_s in sorted((o.from_s, o.to_s) for o in self.outages if o.server in servers):
            if merged and from_s <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], to_s))
            else:
                merged.append((from_s, to_s))
        return merged

    def _arrives_between(self, from_s: float, to_s: float, deadline_s: float) -> float:
        """Return the probability of arriving in [from_s, to_s) after leaving, and in time."""
        if isinstance(self.latency, ConstantLatency):  # an atom: which end belongs matters
            took_s = self.latency.value_s
            return float(from_s <= took_s < to_s and took_s <= deadline_s)
        if to_s <= 0.0 or from_s >= deadline_s:
            return 0.0
        return self.latency.exceeds(max(from_s, 0.0)) - self.latency.exceeds(min(to_s, deadline_s))
