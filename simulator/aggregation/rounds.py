"""Round statistics: the number of reports counted, late, lost and rejected, and of messages to each server."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism, QuadraticVariance
from mechanisms.local.common.intervals import CountLaw, invert_tails
from mechanisms.local.common.response_counts import ResponseCounts, estimate_between
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
            onward = [sent, *(int(np.count_nonzero(arrived & within)) for arrived in received)]
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
        Reports sent: fewer than asked if devices have left, did not hear the question or are silent, more if some sent
        a second answer.
    counted, late, lost, rejected, unpaired
        Numbers of answered reports by outcome.
    unheard, silent
        Devices that did not hear the question, and devices that heard it and chose to send nothing.
    duplicates
        Additional copies of messages that arrived and were not counted.
    messages_up
        Messages sent by devices: one for each report, or one for each share.
    bytes_up, bytes_down
        Bytes sent by devices, and bytes of the questions sent to all devices asked.
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
    unheard: int = 0
    silent: int = 0
    duplicates: int = 0
    messages_up: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    servers: tuple[ServerAccount, ...] = ()

    @classmethod
    def added(cls, parts: Sequence["RoundAccount"]) -> "RoundAccount":
        """Return the account of a round whose devices reported to several servers."""
        numbers = [column.name for column in fields(cls) if column.name != "servers"]
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


def estimate_paired(mechanism: LocalMechanism, counts: Counts, *, paired: int, asked: int) -> Estimate:
    """Estimate the occupancy of all devices asked from those received in every round.

    Reports of n of N devices were received in all rounds. The mechanism treats these n as a population of their own
    without missing reports, so Ŷ = (N/n)·Ŷ_n. As every device's coins are independent of the channel, the n are a
    simple random sample.

    Parameters
    ----------
    mechanism
        The mechanism whose reports were counted.
    counts
        (rounds, *tally_shape) int64, of the n devices alone.
    paired, asked
        n and N.

    Returns
    -------
    Estimate
        Unbiased. Its interval is the mechanism's own if all N were received, or if the mechanism has one round, where
        pairing changes nothing; otherwise it comes from the distribution of the count, thinning included.
    """
    rounds = mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.estimate(counts, counted=[paired] * rounds, asked=[asked] * rounds)
    within = mechanism.estimate(counts, counted=[paired] * rounds, asked=[paired] * rounds)
    count = within.count * (asked / paired)
    variance = paired_variance(mechanism, paired=paired, asked=asked)
    elsewhere, inside = _single_variances(mechanism)
    # A device in the cell that adds 1/π or 0 has a variance of 1/π − 1.
    received, step = ResponseCounts((asked,), (paired,), truth_round=1), 1.0 + inside
    if not elsewhere.any():
        none = np.zeros((3, len(step)))
        truth = np.zeros(len(step), dtype=np.int64)
        law = CountLaw(asked, paired, 1.0 / step, none[0], truth, none[0], asked, none)
        ends = law.invert(np.clip(np.rint(within.count / step), 0, paired).astype(np.int64))
    else:
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), step * (asked / paired), asked)
    return estimate_between(count, variance, ends, received)


def paired_std_error(mechanism: LocalMechanism, true_counts: Counts, *, paired: int) -> FloatArray:
    """Return the theoretical standard error of `estimate_paired` for a given truth, (cells,) float64.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    true_counts
        (cells + 1,) int64, of all devices asked.
    paired
        n, devices received in every round; with none, the standard error is infinite.
    """
    asked, rounds = int(true_counts.sum()), mechanism.rounds
    if paired == asked or rounds == 1 or paired == 0:
        return mechanism.std_error(true_counts, asked=[asked] * rounds, counted=[paired] * rounds)
    variance, truth = mechanism.std_error(true_counts) ** 2, true_counts[1:].astype(np.float64)
    # The variance of N/n times a hypergeometric count, (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).
    thinning = asked / paired * (asked - paired) / max(asked - 1, 1) * truth * (1.0 - truth / asked)
    return np.sqrt(variance * (asked / paired) + thinning)


def theoretical_std_error(
    mechanism: LocalMechanism, truth: Counts, *, asked: Sequence[int], counted: Sequence[int], paired: bool
) -> FloatArray:
    """Return the standard error for the (cells + 1,) truth, (cells,), as servers count reports: paired or not."""
    if paired:
        return paired_std_error(mechanism, truth, paired=counted[0])
    return mechanism.std_error(truth, asked=asked, counted=counted)


def paired_variance(mechanism: LocalMechanism, *, paired: int, asked: int) -> QuadraticVariance:
    """Return the variance of the paired estimate as a function of the truth Y of a cell.

    Devices answer independently, so on an ideal channel Var(Ŷ_n) is the sum of one term per device: v₁ in the cell, v₀
    elsewhere. On average over the sample it is n/N of the variance of all N, and Y_n is hypergeometric:

    Var(Ŷ) = (N/n)(Yv₁ + (N − Y)v₀) + (N/n)·Y(1 − Y/N)·(N − n)/(N − 1).

    v₀ and v₁ are computed by the mechanism, for one device outside and for one in each cell. Sampling Privacy has
    v₀ = 0, so no term of its variance grows with N; this is the purpose of pairing.

    Parameters
    ----------
    mechanism
        The mechanism whose reports are counted.
    paired, asked
        n ≥ 1 and N.
    """
    elsewhere, inside = _single_variances(mechanism)
    rate = asked / paired
    sample = rate * (asked - paired) / max(asked - 1, 1)
    return QuadraticVariance(
        constant=rate * asked * elsewhere, linear=rate * (inside - elsewhere) + sample, square=-sample / asked
    )


def _single_variances(mechanism: LocalMechanism) -> tuple[FloatArray, FloatArray]:
    """Return the variance that one device outside a cell, and one in it, adds to the estimate, (cells,) each."""
    alone, each = np.zeros((2, mechanism.cells + 1), dtype=np.int64)
    alone[0], each[1:] = 1, 1
    elsewhere = mechanism.std_error(alone) ** 2
    return elsewhere, mechanism.std_error(each) ** 2 - (mechanism.cells - 1) * elsewhere
