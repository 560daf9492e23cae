"""Survey: one mechanism in one query, from coins to estimate, with devices simulated one by one or by counts.

Devices simulated by counts are grouped by the rounds in which they were present and by the reports that were delivered;
the sums of each group are drawn at once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.local import Counts, Estimate, LocalMechanism
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.publication import Publication
from simulator.aggregation.rounds import RoundAccount, ServerAccounts
from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.sensing.channel import Channel, Deliveries, DeliveryStatus, Flight, Transmission
from simulator.sensing.query import Answers, QueriedDevices, Respondents
from simulator.sensing.report_recorder import RecordedReports, Recorder, Targets


@dataclass(frozen=True, eq=False)
class History:
    """A group of devices whose reports were received in time, at every server that counts, in the same rounds.

    Attributes
    ----------
    counts
        (cells + 1,) int64: the number of devices, by true cell.
    received
        (rounds,) bool: whether their reports of each round were received in time.
    was_down
        Whether their links were down in the last round they sent; None before the first.
    """

    counts: IntArray
    received: Mask
    was_down: bool | None = None


@dataclass(eq=False)
class Histories:
    """Divides devices that are not simulated one by one into groups by the delivery of their reports.

    Coins are independent of the channel, so devices with the same history form one group, whose sums are one draw from
    the mechanism's distribution given the group's true counts. `late` and `lost` hold the number of reports that were
    late or lost, by round.

    Parameters
    ----------
    channel
        The channel that delivers messages.
    sendings
        The sending of reports, by round; its route begins with the messages that must arrive.
    servers
        Accounts that are updated with the messages each server received, by round.
    rng
        The channel's generator.
    """

    channel: Channel
    sendings: Sequence[Transmission]
    servers: Sequence[ServerAccounts]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Count no report yet."""
        self.late, self.lost = np.zeros((2, len(self.sendings)), dtype=np.int64)

    def divide(self, counts: IntArray, *, rounds_present: int) -> list[History]:
        """Return the groups of the devices that answered the first `rounds_present` rounds and then left.

        Parameters
        ----------
        counts
            (cells + 1,) int64, by true cell.
        rounds_present
            The number of rounds answered, from 1.
        """
        groups = [History(counts, np.zeros(len(self.sendings), dtype=bool))]
        for row in range(rounds_present):
            groups = [part for group in groups for part in self._split(group, row)]
        return groups

    def _split(self, group: History, row: int) -> Iterator[History]:
        """Yield the parts of a group by the delivery of their report of a round, and account for every message.

        Messages are drawn one after another; after each that must arrive, a report is in time, late or lost.
        """
        sending, servers = self.sendings[row], self.servers[row]
        with_it = group.received.copy()
        with_it[row] = True
        in_time, late, lost, down = group.counts, *np.zeros((3, len(group.counts)), dtype=np.int64)
        for message, path in enumerate(sending.route):
            law = self.channel.probabilities(sending, message, was_down=group.was_down)
            if law.in_time == 1.0:
                servers.add_message(path, in_time=int((in_time + late + lost).sum()))
                continue
            ends = [self.rng.multinomial(state, law.shares).T for state in (in_time, late, lost)]
            total = sum(end.sum(axis=1) for end in ends)
            if message == 0 and self.channel.burst_s:  # the link is down for all of the report's messages
                down = ends[0][2]
                ends[0] = np.where(np.arange(len(ends[0]))[:, np.newaxis] == 2, 0, ends[0])
            servers.add_message(
                path, in_time=int(total[0]), late=int(total[1]), link_down=int(total[2]), server_down=total[3:]
            )
            if path not in sending.counted:
                continue
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
        for counts, received, was_down in ((in_time, with_it, False), (late + lost, group.received, False)):
            if counts.any():
                yield History(counts, received, was_down)
        if down.any():
            yield History(down, group.received, was_down=True)


def count_by_rounds_present(
    truth: Cells | None, presents: Sequence[Respondents], *, outside: bool, cells: int
) -> Iterator[tuple[int, IntArray]]:
    """Yield, for each number of rounds from 1, that number and the devices of each cell present for as many rounds.

    A device that leaves does not return, so this one number describes in which rounds it was present. Numbers of rounds
    without devices are left out.

    Parameters
    ----------
    truth
        (vehicles,) int32 cells of the vehicles, if they answer by counts; else None.
    presents
        The devices present, by round.
    outside
        Whether the devices outside every cell answer by counts.
    cells
        The number of cells, V.
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


DRAWS = ("coins", "channel", "parties", "release", "handles")
"""Names of the random streams of a survey, in the order of `Draws`."""


@dataclass(frozen=True, eq=False)
class Draws:
    """The generators of a survey, one for each part, so that no part changes the random numbers of another.

    Attributes
    ----------
    coins
        Generator of the devices' coins.
    noise
        Generator of the channel.
    parties
        Generator of the servers' own draws.
    release
        Generator of the publication.
    handles
        Generator of pseudonyms and connections of recorded devices.
    """

    coins: np.random.Generator
    noise: np.random.Generator
    parties: np.random.Generator
    release: np.random.Generator
    handles: np.random.Generator


@dataclass(eq=False)
class Survey:
    """Asks the rounds of one mechanism in one query and closes with an estimate.

    Devices that answer one by one toss the coins of a mechanism of several rounds when the survey begins, before any
    truth exists; the counts of all other devices are drawn from the mechanism's own distribution when the survey
    closes. The servers add up both.

    Parameters
    ----------
    mechanism
        The mechanism that the devices run.
    asked
        The devices asked.
    answers
        Which devices answer one by one.
    channel, deadline_s
        The channel that delivers the reports, and the seconds for which a round is open.
    deployment
        The servers that receive and add up the reports.
    draws
        The generators of the survey.
    remember
        Returns what the devices of a slice keep from earlier queries: vehicles first, then devices outside.
    publication
        The step between the server's counts and publication; by default the mechanism's estimate is published.
    targets
        The vehicles whose reports are recorded for transcripts; by default none.
    """

    mechanism: LocalMechanism
    asked: QueriedDevices
    answers: Answers
    channel: Channel
    deadline_s: float
    deployment: Deployment
    draws: Draws
    remember: Callable[[slice], Any]
    publication: Publication | None = None
    targets: Targets | None = None

    def __post_init__(self) -> None:
        """Toss the coins of a mechanism of several rounds."""
        mechanism, asked, answers = self.mechanism, self.asked, self.answers
        self._reporting_vehicles = 0 if answers == "counts" else asked.vehicles
        self._reporting_outside = asked.outside if answers == "reports" else 0
        self._reporting = self._reporting_vehicles + self._reporting_outside
        self._batches = [
            slice(start, min(start + mechanism.batch, self._reporting))
            for start in range(0, self._reporting, mechanism.batch)
        ]
        self._server = self.deployment.aggregator(mechanism, devices=self._reporting, rng=self.draws.parties)
        self._recorder = None
        if self.targets is not None and self._reporting_vehicles:
            self._recorder = Recorder(self.targets, self._batches, rng=self.draws.handles)
        # With one round, the coins of each batch are tossed as it answers, which bounds the memory in use; with more
        # rounds, they must be kept from the first round to the last.
        self._tossed = [self._toss(batch) for batch in self._batches] if mechanism.rounds > 1 else []
        self._truth = np.zeros(asked.vehicles, dtype=np.int32)
        self._down: Mask | None = None
        self._presents: list[Respondents] = []
        self._arrivals_s: list[FloatArray] = []
        self._sendings: list[Transmission] = []
        self._agreed: list[Transmission | None] = []  # with the messages first that one-by-one devices' servers count
        self._servers: list[ServerAccounts] = []
        self._late, self._lost = np.zeros((2, mechanism.rounds), dtype=np.int64)

    def _toss(self, batch: slice) -> Any:  # a mechanism's coins are its own
        return self.mechanism.toss(self.remember(batch), rng=self.draws.coins)

    def ask(self, round_: int, *, moment: int, at_s: float, truth: Cells, present: Respondents) -> None:
        """Ask a round.

        Parameters
        ----------
        round_
            The mechanism's own round, from 1.
        moment
            Which of the query's moments it is: 1, 2 (the moment of truth) or later.
        at_s
            The time of that moment, seconds.
        truth
            (vehicles,) int32 cells at this moment. From the mechanism's `truth_round` on, devices answer about the
            cell they were in at that round; before it, they answer as if in cell 0.
        present
            The devices that answer.
        """
        if round_ == self.mechanism.truth_round:
            self._truth = truth
        known = self._truth if round_ >= self.mechanism.truth_round else np.zeros_like(truth)
        since_s = at_s - self._sendings[-1].sent_s if self._sendings else 0.0
        route, needed = self.deployment.route(round_), self.deployment.needed
        sending = Transmission(moment, at_s, self.deadline_s, route, since_s, needed)
        self._sendings.append(sending)
        self._agreed.append(None)
        self._servers.append(ServerAccounts(sending.route))
        self._presents.append(present)
        if not self._reporting:
            return
        outside = np.arange(self._reporting_outside) < present.outside
        cells = np.concatenate([known[: self._reporting_vehicles], np.zeros(self._reporting_outside, dtype=np.int32)])
        answering = np.concatenate([present.vehicles[: self._reporting_vehicles], outside])
        flights = self.channel.draw(self._reporting, sending, was_down=self._down, rng=self.draws.noise)
        self._down = flights[-1].link_down
        self._send(round_, cells, answering, flights)

    def _send(self, round_: int, cells: Cells, answering: Mask, flights: Sequence[Flight]) -> None:
        """Let the devices that answer send their reports; here the servers receive them at once.

        Parameters
        ----------
        round_
            From 1.
        cells
            (reporting,) int32, the cells that devices answer about.
        answering
            (reporting,) bool: the devices that answer.
        flights
            For each message of the route, what was drawn about that message of each device.
        """
        deliveries = self.channel.outcome(flights, self._sendings[round_ - 1])
        self._receive(round_, self._answers(round_, cells), answering, deliveries.of(answering))

    def _answers(self, round_: int, cells: Cells) -> Iterator[Any]:
        """Yield the reports of each batch of devices."""
        for number, batch in enumerate(self._batches):
            coins = self._tossed[number] if self._tossed else self._toss(batch)
            yield self.mechanism.answer(round_, cells[batch], coins)

    def _receive(self, round_: int, answers: Iterable[Any], answering: Mask, deliveries: Deliveries) -> None:
        """Pass the reports that were delivered to the aggregator, and account for all; parameters as of `_send`."""
        sending = self._sendings[round_ - 1]
        if sending.counted != sending.route:
            # A choice by the messages of some devices would count these more often than devices that answer by counts.
            every = np.count_nonzero(answering) == self._presents[round_ - 1].devices
            agreed = sending.agreed(deliveries.received(sending.route)) if every else self._likely(sending)
            self._agreed[round_ - 1] = agreed
            deliveries = deliveries.counted_by(sending.route, agreed.counted)
        received = answering & (deliveries.fate == DeliveryStatus.COUNTED)
        if self.deployment.keeps_arrivals:
            times = np.concatenate(list(deliveries.arrived_s.values()))
            self._arrivals_s.append(np.sort(times[np.isfinite(times)]))
        for number, (batch, reports) in enumerate(zip(self._batches, answers, strict=True)):
            self._server.receive(round_, reports, received[batch], batch=number)
            if self._recorder is not None:
                self._recorder.keep(number, reports, received[batch], deliveries, batch, sent_s=sending.sent_s)
        servers, sent = self._servers[round_ - 1], int(np.count_nonzero(answering))
        servers.add_reports(sent, deliveries.arrived_s, deliveries.in_time)
        self._late[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == DeliveryStatus.LATE))
        self._lost[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == DeliveryStatus.LOST))

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Add the devices that answer by counts, close every round, and estimate.

        Returns
        -------
        tuple
            The estimate, and the account of every round's reports.
        """
        self._tossed = []
        self._answer_by_counts()
        cost = self.deployment.cost(self.mechanism)
        for row, present in enumerate(self._presents):
            servers = self._servers[row]
            first = [path[0] for path in self._sendings[row].route]
            copies = {party: self.channel.copies(servers.arrived(party), rng=self.draws.noise) for party in first}
            self._server.close_round(
                row + 1,
                asked=self.asked.devices,
                answered=present.devices,
                late=int(self._late[row]),
                lost=int(self._lost[row]),
                duplicates=sum(copies.values()),
                duplicate_nbytes=sum(n * cost.bytes_to.get(party, cost.bytes_up) for party, n in copies.items()),
                servers=servers,
            )
        return self._publish(), self._server.accounts

    def _publish(self) -> Estimate:
        server = self._server
        if self.publication is None:
            return server.estimate()
        return self.publication.publish(
            server.counts, counted=server.counted, asked=server.asked, rng=self.draws.release
        )

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical standard error given the truth and the reports delivered; call it after `close`.

        Rounds are assumed to lose devices independently of each other. If losses come in bursts (`Channel.burst_s`), or
        if devices leave before two rounds (`Channel.churn`, with mechanisms that have rounds after the moment of
        truth), the same devices are missing in several rounds; the error of such mechanisms is then smaller than the
        value returned.
        """
        if self.publication is None:
            return self._server.std_error(true_counts)
        return self.publication.std_error(true_counts, asked=self._server.asked, counted=self._server.counted)

    @property
    def counts(self) -> Counts:
        """(rounds, *tally_shape) int64: the sums of the counted reports."""
        return self._server.counts

    @property
    def arrivals_s(self) -> tuple[FloatArray, ...]:
        """By round, when the reports of devices simulated one by one arrived, ascending, seconds; empty if not kept."""
        return tuple(self._arrivals_s)

    @property
    def paired(self) -> bool:
        """Whether only devices whose reports were received in every round are counted."""
        return self._server.paired

    def recorded(self) -> RecordedReports | None:
        """Return the recorded devices' messages, their cells and the servers' counts; None if none is recorded."""
        if self._recorder is None:
            return None
        truth = self._truth[self._recorder.places]
        return RecordedReports(self._recorder.recorded(), truth, self._server.counts, self._server.added)

    def _answer_by_counts(self) -> None:
        """Draw the sums of devices that are not simulated one by one; exact where `sample_counts` is."""
        sendings = [agreed or self._likely(sent) for sent, agreed in zip(self._sendings, self._agreed, strict=True)]
        for row, sending in enumerate(sendings):
            self._servers[row].use(sending.counted)
            self._server.sums.use(row + 1, [self._sendings[row].route.index(path) for path in sending.counted])
        histories = Histories(self.channel, sendings, servers=self._servers, rng=self.draws.noise)
        groups = count_by_rounds_present(
            self._truth if self.answers == "counts" else None,
            self._presents,
            outside=self.answers != "reports",
            cells=self.mechanism.cells,
        )
        for last, counts in groups:
            for group in histories.divide(counts, rounds_present=last):
                if group.received.any():
                    sums = self.mechanism.sample_counts(group.counts, rng=self.draws.coins)
                    self._server.receive_group(sums, group.received, devices=int(group.counts.sum()))
        self._late += histories.late
        self._lost += histories.lost

    def _likely(self, sending: Transmission) -> Transmission:
        """Return a transmission whose route begins with the messages that are most likely to arrive in time."""
        # Each as the only message of a report: where losses come in bursts, later ones assume that the link is up.
        alone = [replace(sending, route=(path,)) for path in sending.route]
        return sending.agreed([self.channel.probabilities(one).in_time for one in alone])
