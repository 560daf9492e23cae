"""Histories: which rounds the devices that answer by counts were there for, and in which they were heard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simulator.sensing.asked import Present
from simulator.sensing.channel import Channel, Sending

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class History:
    """Devices of whom the same rounds arrived.

    Attributes
    ----------
    counts
        (cells + 1,) int64: how many, by true cell.
    heard
        (rounds,) bool.
    was_down
        Whether their links were down in the last round they sent; None before the first.
    """

    counts: IntArray
    heard: Mask
    was_down: bool | None = None


class Histories:
    """Divides devices that are not simulated one by one by what became of their reports.

    Coins do not know of the channel, so devices with the same history are one group, whose sums are one draw of the
    mechanism's law over its truth. `late` and `lost` hold what went astray, by round.

    Parameters
    ----------
    channel
        What becomes of reports.
    sendings
        By round.
    rng
        The channel's generator.
    """

    def __init__(self, channel: Channel, sendings: Sequence[Sending], *, rng: np.random.Generator) -> None:
        self._channel, self._sendings, self._rng = channel, sendings, rng
        self.late, self.lost = np.zeros((2, len(sendings)), dtype=np.int64)

    def divide(self, counts: IntArray, *, rounds_there: int) -> list[History]:
        """Return the groups of the devices that sent the first `rounds_there` rounds and then left.

        Parameters
        ----------
        counts
            (cells + 1,) int64, by true cell.
        rounds_there
            From 1.
        """
        groups = [History(counts, np.zeros(len(self._sendings), dtype=bool))]
        for row in range(rounds_there):
            groups = [part for group in groups for part in self._split(group, row)]
        return groups

    def _split(self, group: History, row: int) -> Iterator[History]:
        """Yield a group's parts by what becomes of their report of a round, and count what does not arrive."""
        sending = self._sendings[row]
        with_it = group.heard.copy()
        with_it[row] = True
        if self._channel.law(sending).counted == 1.0:
            yield replace(group, heard=with_it, was_down=False)
            return
        shares = self._channel.law(sending, was_down=group.was_down).shares
        counted, late, down, unheard = self._rng.multinomial(group.counts, shares).T
        self.late[row] += late.sum()
        self.lost[row] += down.sum() + unheard.sum()
        missing = late + unheard
        if not self._channel.burst_s:  # a link that is down now says nothing about the next round
            missing, down = missing + down, np.zeros_like(down)
        for counts, heard, was_down in (
            (counted, with_it, False),
            (missing, group.heard, False),
            (down, group.heard, True),
        ):
            if counts.any():
                yield History(counts, heard, was_down)


def there_for(
    truth: npt.NDArray[np.int32] | None, presents: Sequence[Present], *, outside: bool, cells: int
) -> Iterator[tuple[int, IntArray]]:
    """Yield how many rounds devices were there for, from 1, and how many such devices each cell has.

    Who leaves does not come back, so a device's history of being there is that one number.

    Parameters
    ----------
    truth
        (vehicles,) int32 cells of the vehicles, if they answer by counts.
    presents
        Who was there, by round.
    outside
        Whether the devices outside every cell answer by counts.
    cells
        V.
    """
    stayed = np.sum([present.vehicles for present in presents], axis=0, dtype=np.int64)
    crowd = [present.outside if outside else 0 for present in presents] + [0]
    for last in range(1, len(presents) + 1):
        counts = np.zeros(cells + 1, dtype=np.int64)
        if truth is not None:
            counts += np.bincount(truth[stayed == last], minlength=len(counts))
        counts[0] += crowd[last - 1] - crowd[last]
        if counts.any():
            yield last, counts
