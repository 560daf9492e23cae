"""Round statistics: the number of reports counted, late, lost and rejected, and of messages to each server."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from mechanisms.local import LocalMechanism
from simulator.arrays import FloatArray, Mask


@dataclass(frozen=True)
class ServerAccount:
    """One row of `servers.parquet`: one server in one round; sent = arrived + late + lost, always.

    Attributes
    ----------
    server
        "server:1", …, or "mixer".
    sent
        Messages sent to it: one per report, and behind a mixer one for each report that the mixer forwarded.
    arrived, late, lost
        Messages that it received in time, received after the deadline, and never received.
    used
        Messages whose report was counted. A report is counted if every message it needs has arrived. 0 if the messages
        of other servers suffice.
    """

    server: str
    sent: int
    arrived: int
    late: int
    lost: int
    used: int


class ServerAccounts:
    """Counts of the messages that the servers of one round were sent and received.

    Parameters
    ----------
    route
        The messages of a report, each as the parties that it passes.
    """

    def __init__(self, route: Sequence[Sequence[str]]) -> None:
        self._route = route
        self._messages = {party: [0, 0, 0, 0] for path in route for party in path}
        self._used = set(self._messages)

    def use(self, paths: Sequence[Sequence[str]]) -> None:
        """Use only the messages with these paths; without a call, all are used."""
        self._used = {party for path in paths for party in path}

    def add_message(
        self,
        path: Sequence[str],
        *,
        in_time: int = 0,
        late: int = 0,
        link_down: int = 0,
        server_down: Sequence[int] = (),
    ) -> None:
        """Add the same message of many reports.

        Parameters
        ----------
        path
            The parties that the message passes, in order.
        in_time, late, link_down
            How many reached every party in time, reached the first one late, and were lost before the first one.
        server_down
            By party: how many were lost because it was down; by default none.
        """
        left = in_time + late + link_down + sum(int(lost) for lost in server_down)
        for position, party in enumerate(path):
            lost = (int(server_down[position]) if len(server_down) else 0) + (0 if position else link_down)
            delayed = 0 if position else late
            arrived = left - lost - delayed
            for column, messages in enumerate((left, arrived, delayed, lost)):
                self._messages[party][column] += messages
            left = arrived

    def add_reports(self, sent: int, arrived_s: Mapping[str, FloatArray], in_time: Sequence[Mask]) -> None:
        """Add the messages of reports that devices sent one by one.

        Parameters
        ----------
        sent
            Number of reports.
        arrived_s
            By party: (n,) float64, the time at which its message reached it; infinite if it never did.
        in_time
            By message of the route: (n,) bool, whether it arrived in time.
        """
        for path, within in zip(self._route, in_time, strict=True):
            received = [np.isfinite(arrived_s[party]) for party in path]
            late = int(np.count_nonzero(received[0] & ~within))
            # A party forwards the messages that it received in time to the next party of the path.
            onward = [sent, *(int(np.count_nonzero(one & within)) for one in received)]
            lost = [before - after for before, after in pairwise(onward)]
            lost[0] -= late
            self.add_message(path, in_time=onward[-1], late=late, server_down=lost)

    def arrived(self, party: str) -> int:
        """Return how many messages a party has received in time."""
        return self._messages[party][1]

    def close(self, used: int) -> tuple[ServerAccount, ...]:
        """Return the accounts of all parties, given the number of counted reports."""
        return tuple(
            ServerAccount(party, sent, arrived, late, lost, used if party in self._used else 0)
            for party, (sent, arrived, late, lost) in self._messages.items()
        )


@dataclass(frozen=True)
class RoundAccount:
    """One row of `rounds.parquet`: one round; answered = counted + late + lost + rejected + unpaired, always.

    Attributes
    ----------
    asked
        Devices asked.
    answered
        Reports sent; fewer than asked if devices have left.
    counted, late, lost, rejected, unpaired
        Numbers of answered reports by outcome.
    duplicates
        Additional copies of messages that arrived and were not counted.
    bytes_up
        Bytes sent by devices.
    servers
        Messages that each server received.
    """

    asked: int
    answered: int
    counted: int
    late: int = 0
    lost: int = 0
    rejected: int = 0
    unpaired: int = 0
    duplicates: int = 0
    bytes_up: int = 0
    servers: tuple[ServerAccount, ...] = ()

    @classmethod
    def added(cls, parts: Sequence["RoundAccount"]) -> "RoundAccount":
        """Return the account of a round whose devices reported to several servers."""
        numbers = [one.name for one in fields(cls) if one.name != "servers"]
        servers = tuple(server for part in parts for server in part.servers)
        return cls(**{name: sum(getattr(part, name) for part in parts) for name in numbers}, servers=servers)

    def __post_init__(self) -> None:
        accounted = self.counted + self.late + self.lost + self.rejected + self.unpaired
        if accounted != self.answered:
            raise ValueError(
                f"answered must equal counted + late + lost + rejected + unpaired, received {self.answered} "
                f"answered and {accounted} accounted for"
            )


def report_nbytes(mechanism: LocalMechanism) -> int:
    """Return the bytes of one plain report of a mechanism.

    They follow from the mechanism's `report_bits` if it has that attribute. Otherwise a report is the number of its
    outcome, or one such number for each question, in as many bits as its outputs need.
    """
    stated: int | None = getattr(mechanism, "report_bits", None)
    *questions, outputs = mechanism.tally_shape
    bits = max(1, (outputs - 1).bit_length()) * math.prod(questions) if stated is None else stated
    return -(-bits // 8)
