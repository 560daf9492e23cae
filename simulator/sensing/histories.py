"""Histories: for devices that answer by counts, the rounds they were present in and the rounds that counted them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.aggregation.account import ServerAccounts
from simulator.sensing.asked import Present
from simulator.sensing.channel import Channel, Sending

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class History:
    """Devices of which the same rounds were received in time, at every server.

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

    Coins are independent of the channel, so devices with the same history are one group, whose sums are one draw of the
    mechanism's law over its truth. `late` and `lost` hold the reports that were not received in time, by round.

    Parameters
    ----------
    channel
        What becomes of messages.
    sendings
        By round.
    servers
        Takes what each server received, by round.
    rng
        The channel's generator.
    """

    def __init__(
        self,
        channel: Channel,
        sendings: Sequence[Sending],
        *,
        servers: Sequence[ServerAccounts],
        rng: np.random.Generator,
    ) -> None:
        self._channel, self._sendings, self._servers, self._rng = channel, sendings, servers, rng
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
        """Yield a group's parts by what becomes of their report of a round, and account for every message.

        Messages are drawn one after another; a report's state after each is in time, late or lost.
        """
        sending, servers = self._sendings[row], self._servers[row]
        with_it = group.heard.copy()
        with_it[row] = True
        in_time, late, lost, down = group.counts, *np.zeros((3, len(group.counts)), dtype=np.int64)
        for message, path in enumerate(sending.route):
            law = self._channel.law(sending, message, was_down=group.was_down)
            if law.in_time == 1.0:
                servers.add_message(path, in_time=int((in_time + late + lost).sum()))
                continue
            ends = [self._rng.multinomial(state, law.shares).T for state in (in_time, late, lost)]
            total = sum(end.sum(axis=1) for end in ends)
            if message == 0 and self._channel.burst_s:  # the link is down for all of the report's messages
                down = ends[0][2]
                ends[0] = np.where(np.arange(len(ends[0]))[:, np.newaxis] == 2, 0, ends[0])
            servers.add_message(
                path, in_time=int(total[0]), late=int(total[1]), link_down=int(total[2]), server_down=total[3:]
            )
            in_time, late, lost = (
                ends[0][0],
                ends[0][1] + ends[1][:2].sum(axis=0),
                ends[0][2:].sum(axis=0) + ends[1][2:].sum(axis=0) + lost,
            )
        if down.any():
            for path in sending.route[1:]:
                servers.add_message(path, link_down=int(down.sum()))
        self.late[row] += late.sum()
        self.lost[row] += lost.sum() + down.sum()
        for counts, heard, was_down in ((in_time, with_it, False), (late + lost, group.heard, False)):
            if counts.any():
                yield History(counts, heard, was_down)
        if down.any():
            yield History(down, group.heard, was_down=True)


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
