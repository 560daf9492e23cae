"""Targets: the devices whose reports are kept, so that what the parties stored of them can be told afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.aggregation.deployment import Recorded

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Targets:
    """Whose reports of a query are kept.

    Attributes
    ----------
    query
        From 1.
    vehicles
        (vehicles,) int64: the numbers of those asked, in the order in which they are asked.
    priority
        (vehicles,) float64, a vehicle's own in every query: the lowest come first, so that as far as the same
        vehicles are asked the same are targets, whatever else is asked, and each is as likely as another.
    most
        At most so many are kept.
    """

    query: int
    vehicles: IntArray
    priority: npt.NDArray[np.float64]
    most: int


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of one query of one mechanism.

    Attributes
    ----------
    recorded
        What the targets sent, and what arrived of it.
    truth
        (n,) int32: the cells they were in when they were to tell.
    counts
        (rounds, *tally_shape) int64: what the servers counted, of all devices.
    """

    recorded: Recorded
    truth: npt.NDArray[np.int32]
    counts: IntArray


class Keeper:
    """Keeps the targets' reports of one mechanism, round by round.

    Reports of two batches cannot be put together, so all targets are of one: that of the first of them.

    Parameters
    ----------
    targets
        Who they are.
    batches
        The slices of the devices that answer together, vehicles first.
    """

    def __init__(self, targets: Targets, batches: Sequence[slice]) -> None:
        self._targets = targets
        self._batch, self._places = -1, np.zeros(0, dtype=np.int64)
        self._reports: list[Any] = []
        self._heard: list[npt.NDArray[np.bool_]] = []
        if len(targets.vehicles) == 0 or not batches or targets.most == 0:
            return
        first = int(np.argmin(targets.priority))
        self._batch = next(number for number, batch in enumerate(batches) if batch.start <= first < batch.stop)
        start = batches[self._batch].start
        there = targets.priority[batches[self._batch]]
        most = min(targets.most, len(there))
        self._places = np.sort(np.argpartition(there, most - 1)[:most])
        self._start = start

    def keep(self, batch: int, reports: Any, heard: npt.NDArray[np.bool_]) -> None:
        """Take the targets' reports of the next round out of a batch's."""
        if batch == self._batch:
            self._reports.append(reports[self._places])
            self._heard.append(heard[self._places])

    @property
    def places(self) -> IntArray:
        """(n,) int64: which of the vehicles asked are targets, ascending."""
        return self._start + self._places if len(self._places) else self._places

    def recorded(self) -> Recorded | None:
        """Return what they sent and what arrived of it, once every round was asked; None where nobody is a target."""
        if not self._reports:
            return None
        devices = self._targets.vehicles[self.places]
        return Recorded(self._targets.query, devices, self._reports, np.stack(self._heard))
