"""Report recorder: keeps the reports of some devices, so that transcripts about them can be reconstructed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.aggregation.deployment import RecordedMessages
from simulator.aggregation.transcript import NETWORK
from simulator.sensing.channel import Deliveries

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Targets:
    """Whose reports of a query are kept: those of the vehicles that attacks are tried on, and of corrupted vehicles.

    Vehicles have a random order, the same in every query and for every mechanism. Targets are the first of those asked,
    corrupted vehicles are the last of the whole fleet; each vehicle is as likely as another to be either.

    Attributes
    ----------
    query
        From 1.
    vehicles
        (vehicles,) int64: the numbers of those asked, in the order in which they are asked.
    rank
        (vehicles,) int64: their places in the order of the fleet, from 0.
    most
        At most so many targets are kept.
    corrupted_from
        Vehicles of this rank and above are kept too.
    """

    query: int
    vehicles: IntArray
    rank: IntArray
    most: int
    corrupted_from: int


@dataclass(frozen=True, eq=False)
class RecordedReports:
    """What is kept of one query of one mechanism.

    Attributes
    ----------
    recorded
        What these devices sent, and what arrived of it.
    truth
        (n,) int32: the cells they were in at the moment of truth.
    counts
        (rounds, *tally_shape) int64: what the servers counted, of all devices.
    """

    recorded: RecordedMessages
    truth: npt.NDArray[np.int32]
    counts: IntArray


class Recorder:
    """Keeps reports of one mechanism, round by round.

    Reports of two batches cannot be put together, so all are of one: that of the first target.

    Parameters
    ----------
    targets
        Whose reports are kept.
    batches
        The slices of the devices that answer together, vehicles first.
    rng
        For pseudonyms and connections.
    """

    def __init__(self, targets: Targets, batches: Sequence[slice], *, rng: np.random.Generator) -> None:
        self._targets, self._rng = targets, rng
        self._batch, self._places = -1, np.zeros(0, dtype=np.int64)
        self._reports: list[Any] = []
        self._in_time: list[Mask] = []
        self._arrived_s: list[dict[str, FloatArray]] = []
        if len(targets.vehicles) == 0 or not batches or targets.most == 0:
            return
        first = int(np.argmin(targets.rank))
        self._batch = next(number for number, batch in enumerate(batches) if batch.start <= first < batch.stop)
        self._start = batches[self._batch].start
        rank = targets.rank[batches[self._batch]]
        kept = rank >= targets.corrupted_from
        kept[np.argsort(rank)[: targets.most]] = True
        self._places = np.flatnonzero(kept)

    def keep(
        self, batch: int, reports: Any, in_time: Mask, deliveries: Deliveries, devices: slice, *, sent_s: float
    ) -> None:
        """Take the reports of the next round out of a batch's.

        Parameters
        ----------
        batch
            Its number.
        reports
            (batch,) reports.
        in_time
            (batch,) bool: answered, and received in time by every server.
        deliveries, devices
            What became of all devices' reports, and which of them are the batch's; only of devices that answered.
        sent_s
            When reports left.
        """
        if batch != self._batch:
            return
        places = self._places + devices.start
        self._reports.append(reports[self._places])
        self._in_time.append(in_time[self._places])
        arrived_s = {party: times[places] for party, times in deliveries.arrived_s.items()}
        arrived_s[NETWORK] = np.where(deliveries.left[places], sent_s, np.inf)
        self._arrived_s.append(arrived_s)

    @property
    def places(self) -> IntArray:
        """(n,) int64: which of the vehicles asked are kept, ascending."""
        return self._start + self._places if len(self._places) else self._places

    def recorded(self) -> RecordedMessages | None:
        """Return what they sent and what arrived of it, once every round was asked; None if no vehicle is kept."""
        if not self._reports:
            return None
        never = np.full(len(self._places), np.inf)
        parties = dict.fromkeys(party for arrived_s in self._arrived_s for party in arrived_s)
        return RecordedMessages.draw(
            self._targets.query,
            self._targets.vehicles[self.places],
            self._reports,
            np.stack(self._in_time),
            {party: np.stack([one.get(party, never) for one in self._arrived_s]) for party in parties},
            rng=self._rng,
        )
