"""Aggregator: compute the counts of one query from the reports that a deployment's servers received."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism, Vectors
from mechanisms.parameter import ParameterError
from simulator.aggregation.rounds import RoundAccount, ServerAccounts, estimate_paired, theoretical_std_error
from simulator.aggregation.server_noise import DrawnNoise
from simulator.arrays import FloatArray, IntArray, Mask


class Sums:
    """Sums of one query's rounds over plain reports, which a server can read.

    Parameters
    ----------
    mechanism
        The mechanism that made the reports.

    Attributes
    ----------
    exact
        Whether each report is divided as it is added, so that the sums of batches cannot be added instead.
    """

    exact = False

    def __init__(self, mechanism: LocalMechanism) -> None:
        self.mechanism = mechanism
        self._counts: Counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)

    @property
    def total(self) -> Counts:
        """(rounds, *tally_shape) int64: the sums over all servers."""
        return self._counts

    def use(self, round_: int, numbers: Sequence[int]) -> None:
        """Compute a round's total from the sums of the servers that receive these messages of a report, from 0."""

    def state(self, round_: int, number: int, stated: Callable[[Any], Any]) -> None:  # noqa: ARG002 - one server receives a plain report
        """Replace a server's sum of a round by what it states.

        Parameters
        ----------
        round_
            From 1.
        number
            Which message of a report the server receives, from 0.
        stated
            Function from the sum, (*tally_shape) int64, to what the server states.
        """
        self._counts[round_ - 1] = stated(self._counts[round_ - 1].copy())

    def valid(self, reports: Any, holds: Callable[[Vectors], Mask]) -> Mask:  # noqa: ARG002 - a plain report is valid by its type
        """Return which reports have an encoding of which a rule holds, (n,) bool; here all."""
        return np.ones(len(reports), dtype=np.bool_)

    def add_reports(self, round_: int, reports: Any, where: Mask | None) -> None:
        """Add the reports of the masked devices, or of all devices if there is no mask."""
        self.add_counts(round_, self.mechanism.tally(reports, where=where))

    def add_counts(self, round_: int, counts: Counts) -> None:
        """Add the sum of the reports of one or more devices, (*tally_shape) int64."""
        self._counts[round_ - 1] += counts

    def shares_of(self, vectors: Vectors) -> Any:
        """Return vectors that devices chose freely, (n, *tally_shape) int64, as they send them; here raise an error.

        Raises
        ------
        ParameterError
            If servers read plain reports: such a report is an outcome of the mechanism, never an arbitrary vector.
        """
        raise ParameterError("vectors", "cannot be written: servers read plain reports", len(vectors))


class Aggregator:
    """Aggregator of one query: it receives reports by round, counts them or records why not, and estimates occupancy.

    Reports are passed to it in one of two forms: as the reports of a batch of devices, or their shares (`receive`), or
    as the sum of the reports of devices received in the same rounds (`receive_group`). A report is received if it
    arrived at every server that must receive it; servers that hold shares agree on the set of devices.

    Parameters
    ----------
    sums
        Accumulator of the servers' sums of a mechanism's reports.
    paired
        Whether only devices received in every round are counted. A batch's reports are then kept until its last round.
    accepts
        Function from the reports, or shares, of a batch to which of them are counted, (n,) bool; the others are
        rejected. By default every report is counted.
    bytes_up
        Bytes that a device sends in a round.
    noise
        What the servers add to the sums that they publish; by default nothing.
    """

    def __init__(
        self,
        sums: Sums,
        *,
        paired: bool = False,
        accepts: Callable[[Any], Mask] | None = None,
        bytes_up: int,
        noise: DrawnNoise | None = None,
    ) -> None:
        mechanism = self.mechanism = sums.mechanism
        self.sums, self.paired, self.accepts = sums, paired, accepts
        self.noise = noise
        self._bytes_up = bytes_up
        self._kept: dict[int, list[tuple[Any, Mask]]] = {}
        self._counted, self._rejected, self._unpaired = np.zeros((3, mechanism.rounds), dtype=np.int64)
        self._accounts: dict[int, RoundAccount] = {}

    def receive(self, round_: int, reports: Any, received: Mask, *, batch: int = 0) -> None:
        """Receive one round's reports of a batch of devices.

        Parameters
        ----------
        round_
            From 1; a batch's rounds must be passed in order.
        reports
            Reports of the mechanism, or shares as devices sent them.
        received
            (n,) bool, which of them arrived.
        batch
            Number of the batch: the same for the same devices in every round.
        """
        if self.accepts is not None:
            accepted = received & self.accepts(reports)
            self.reject(round_, int(np.count_nonzero(received & ~accepted)))
            received = accepted
        if not self.paired:
            self._count(round_, reports, received)
            return
        kept = self._kept.setdefault(batch, [])
        kept.append((reports, received))
        if round_ < self.mechanism.rounds:
            return
        in_all = np.logical_and.reduce([arrived for _, arrived in kept])
        for earlier, (answers, arrived) in enumerate(kept, start=1):
            self._count(earlier, answers, in_all)
            self._unpaired[earlier - 1] += np.count_nonzero(arrived & ~in_all)
        del self._kept[batch]

    def reject(self, round_: int, reports: int) -> None:
        """Account for reports of a round that servers received and dropped, unread."""
        self._rejected[round_ - 1] += reports

    def add(self, other: "Aggregator") -> None:
        """Add what an aggregator of the same mechanism has received from other devices, of which it rejected none."""
        for row in np.flatnonzero(other._counted).tolist():  # noqa: SLF001 - of the same class
            self.sums.add_counts(row + 1, other.counts[row])
        self._counted += other._counted  # noqa: SLF001
        self._unpaired += other._unpaired  # noqa: SLF001

    def receive_group(self, sums: Counts, received: Mask, *, devices: int) -> None:
        """Receive all rounds of devices whose reports arrived in the same rounds.

        Parameters
        ----------
        sums
            (rounds, *tally_shape) int64, the sum of their reports.
        received
            (rounds,) bool: the rounds in which their reports arrived.
        devices
            Number of devices.
        """
        if devices == 0:
            return
        into = self._counted if received.all() or not self.paired else self._unpaired
        for row in np.flatnonzero(received).tolist():
            into[row] += devices
            if into is self._counted:
                self.sums.add_counts(row + 1, sums[row])

    def refuse_below(self, least: int) -> None:
        """Reject all reports, and publish nothing, if fewer than `least` of a round were counted."""
        if least > 1 and self._counted.min() < least:
            self._rejected += self._counted
            self._counted[:] = 0

    def close_round(
        self,
        round_: int,
        *,
        asked: int,
        answered: int,
        duplicate_nbytes: int = 0,
        servers: ServerAccounts | None = None,
        **others: int,
    ) -> None:
        """Close a round and record its account.

        Parameters
        ----------
        round_
            From 1.
        asked, answered
            Devices asked, and reports sent.
        duplicate_nbytes
            Size of the additional copies of messages that arrived.
        servers
            Messages that each server received.
        **others
            `late` and `lost`, reports that were not received in time at every server that must receive them, and
            `unheard`, `silent`, `duplicates`, `messages_up` and `bytes_down` as in `RoundAccount`; by default 0.

        Raises
        ------
        ValueError
            If answered is not the number of reports received, late and lost.
        """
        row, counted = round_ - 1, int(self._counted[round_ - 1])
        self._accounts[round_] = RoundAccount(
            asked,
            answered,
            counted,
            rejected=int(self._rejected[row]),
            unpaired=int(self._unpaired[row]),
            bytes_up=answered * self._bytes_up + duplicate_nbytes,
            servers=() if servers is None else servers.close(counted),
            **others,
        )

    @property
    def accounts(self) -> list[RoundAccount]:
        """The closed rounds' accounts, in order."""
        return [self._accounts[round_] for round_ in sorted(self._accounts)]

    @property
    def counted(self) -> list[int]:
        """Reports counted, by round."""
        return [account.counted for account in self.accounts]

    @property
    def asked(self) -> list[int]:
        """Devices asked, by round, as the servers know it: if more reports are counted, as many as these.

        A second answer without a handle looks like the answer of another device.
        """
        return [max(account.asked, account.counted) for account in self.accounts]

    @property
    def counts(self) -> Counts:
        """(rounds, *tally_shape) int64: the sums of the counted reports, without noise."""
        return self.sums.total * bool(self._counted.any())

    @property
    def added(self) -> IntArray | None:
        """(servers, cells) int64: the noise that each server adds; None if they add none."""
        return None if self.noise is None else self.noise.values

    def estimate(self) -> Estimate:
        """Estimate occupancy from the counted reports, once every round is closed."""
        if self.paired:
            asked = self.asked[self.mechanism.truth_round - 1]
            estimate = estimate_paired(self.mechanism, self.counts, paired=self.counted[0], asked=asked)
        else:
            estimate = self.mechanism.estimate(self.counts, counted=self.counted, asked=self.asked)
        if self.noise is None:
            return estimate
        return self.noise.added_to(estimate, self.mechanism, counted=self.counted, asked=self.asked)

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical standard error for the (cells + 1,) truth, given how many reports were counted.

        Where devices were counted twice, the variance grows with the number of their reports; the bias is not included.
        """
        most = int(true_counts.sum())
        received = {name: [min(each, most) for each in getattr(self, name)] for name in ("asked", "counted")}
        error = theoretical_std_error(self.mechanism, true_counts, **received, paired=self.paired)
        error = error * math.sqrt(max(1.0, self.asked[self.mechanism.truth_round - 1] / max(most, 1)))
        return error if self.noise is None else self.noise.std_error(error, self.mechanism, **received)

    def _count(self, round_: int, reports: Any, where: Mask) -> None:
        self.sums.add_reports(round_, reports, None if where.all() else where)
        self._counted[round_ - 1] += np.count_nonzero(where)
