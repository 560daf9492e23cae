"""Report recorder: records the reports of some devices, so that their transcripts can be reconstructed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.aggregation.transcript import NETWORK, RecordedMessages
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.sensing.channel import Deliveries


@dataclass(frozen=True, eq=False)
class Targets:
    """The vehicles whose reports of a query are recorded: the targets of attacks, and corrupted vehicles.

    Vehicles have a random order, the same in every query and for every mechanism. Targets are the first in this order
    among the vehicles asked; corrupted vehicles are the last of the whole fleet. All vehicles are equally likely to be
    a target, and equally likely to be corrupted.

    Attributes
    ----------
    query
        The number of the query, from 1.
    vehicles
        (vehicles,) int64: the numbers of the vehicles asked, in the order in which they are asked.
    rank
        (vehicles,) int64: their ranks in the random order of the fleet, from 0.
    most
        The largest number of targets that are recorded.
    corrupted_from
        Vehicles of this rank and above are corrupted and are recorded too.
    """

    query: int
    vehicles: IntArray
    rank: IntArray
    most: int
    corrupted_from: int


@dataclass(frozen=True, eq=False)
class RecordedReports:
    """The record of one query of one mechanism.

    Attributes
    ----------
    recorded
        The messages that the recorded devices sent, and which of them arrived.
    truth
        (n,) int32: the cells of these devices at the moment of truth.
    counts
        (rounds, *tally_shape) int64: the tallies of the servers, over all devices.
    noise
        (servers, cells) int64: what each server added to the counts that it published; None if none did.
    """

    recorded: RecordedMessages
    truth: Cells
    counts: IntArray
    noise: IntArray | None = None


class Recorder:
    """Records reports of one mechanism, round by round.

    Reports of different batches cannot be concatenated, so only reports of one batch are recorded: that of the first
    target.

    Parameters
    ----------
    targets
        The vehicles whose reports are recorded, at least one.
    batches
        The slices of the devices that answer together, vehicles first.
    rng
        Draws pseudonyms and connections.
    """

    def __init__(self, targets: Targets, batches: Sequence[slice], *, rng: np.random.Generator) -> None:
        self._targets, self._rng = targets, rng
        self._reports: list[Any] = []
        self._in_time: list[Mask] = []
        self._arrived_s: list[dict[str, FloatArray]] = []
        first = int(np.argmin(targets.rank))
        self._batch = next(number for number, batch in enumerate(batches) if batch.start <= first < batch.stop)
        self._start: int = batches[self._batch].start
        rank = targets.rank[batches[self._batch]]
        kept = rank >= targets.corrupted_from
        kept[np.argsort(rank)[: targets.most]] = True
        self._places = np.flatnonzero(kept)

    def keep(
        self, batch: int, reports: Any, in_time: Mask, deliveries: Deliveries, devices: slice, *, sent_s: float
    ) -> None:
        """Record the target reports of the next round from the reports of a batch.

        Parameters
        ----------
        batch
            The number of the batch.
        reports
            (batch,) reports.
        in_time
            (batch,) bool: answered, and received in time by every server that must receive it.
        deliveries, devices
            The delivery outcomes of the reports of all devices that answered, and the slice of devices in this batch.
        sent_s
            The time at which the reports were sent, seconds.
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
        """(n,) int64: indices of the recorded vehicles among those asked, ascending."""
        return self._start + self._places

    def recorded(self) -> RecordedMessages:
        """Return the messages sent and which arrived, after every round was asked."""
        never = np.full(len(self._places), np.inf)
        parties = dict.fromkeys(party for arrived_s in self._arrived_s for party in arrived_s)
        return RecordedMessages.draw(
            self._targets.query,
            self._targets.vehicles[self.places],
            self._reports,
            np.stack(self._in_time),
            {party: np.stack([arrived_s.get(party, never) for arrived_s in self._arrived_s]) for party in parties},
            rng=self._rng,
        )
