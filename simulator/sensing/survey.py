"""Survey: one mechanism in one query, from coins to estimate, for devices one by one or sampled by counts.

Devices sampled by counts differ in the rounds they attended and in the reports delivered; their numbers are drawn
jointly.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.publication import Publication
from simulator.aggregation.round_statistics import RoundAccount, ServerAccounts
from simulator.sensing.channel import Channel, DeliveryStatus, Transmission
from simulator.sensing.participants import Answers, QueriedDevices, Respondents
from simulator.sensing.report_recorder import RecordedReports, Recorder, Targets

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
        sendings: Sequence[Transmission],
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
    truth: npt.NDArray[np.int32] | None, presents: Sequence[Respondents], *, outside: bool, cells: int
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


Cells = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Draws:
    """A survey's own generators, so that none of its parts moves another's numbers.

    Attributes
    ----------
    coins
        The devices'.
    noise
        The channel's.
    parties
        What the servers draw for themselves.
    release
        The publication's.
    handles
        For pseudonyms and connections of recorded devices.
    """

    coins: np.random.Generator
    noise: np.random.Generator
    parties: np.random.Generator
    release: np.random.Generator
    handles: np.random.Generator


class Survey:
    """Asks one mechanism's rounds of one query and closes with an estimate.

    Devices that answer one by one toss their coins when the survey begins, before any truth exists; the rest
    answer by counts drawn from the mechanism's own law when it closes. Both meet in the servers' sums.

    Parameters
    ----------
    mechanism
        What the devices run.
    asked
        Who is asked.
    answers
        Which devices answer one by one.
    channel, deadline_s
        What becomes of the reports, and how long a round is open.
    deployment
        Who hears and adds them up.
    draws
        The survey's own generators.
    remember
        What the devices of a slice keep from earlier queries: vehicles first, then those outside.
    publication
        What the server does before it publishes; by default it publishes its mechanism's estimate.
    targets
        Whose reports are kept for transcripts; by default nobody's.
    """

    def __init__(
        self,
        mechanism: LocalMechanism,
        *,
        asked: QueriedDevices,
        answers: Answers,
        channel: Channel,
        deadline_s: float,
        deployment: Deployment,
        draws: Draws,
        remember: Callable[[slice], Any],
        publication: Publication | None = None,
        targets: Targets | None = None,
    ) -> None:
        self.mechanism = mechanism
        self._asked, self._answers, self._remember = asked, answers, remember
        self._channel, self._deadline_s, self._deployment = channel, deadline_s, deployment
        self._draws, self._publication = draws, publication
        self._reporting_vehicles = 0 if answers == "counts" else asked.vehicles
        self._reporting_outside = asked.outside if answers == "reports" else 0
        self._reporting = self._reporting_vehicles + self._reporting_outside
        self._batches = [
            slice(start, min(start + mechanism.batch, self._reporting))
            for start in range(0, self._reporting, mechanism.batch)
        ]
        self._server = deployment.aggregator(mechanism, devices=self._reporting, rng=draws.parties)
        self._recorder = None
        if targets is not None and self._reporting_vehicles:
            self._recorder = Recorder(targets, self._batches, rng=draws.handles)
        # A mechanism of one round tosses batch by batch as it answers, which bounds its memory; one of more
        # rounds must remember its coins from the first to the last.
        self._tossed = [self._toss(batch) for batch in self._batches] if mechanism.rounds > 1 else []
        self._truth = np.zeros(asked.vehicles, dtype=np.int32)
        self._down: Mask | None = None
        self._presents: list[Respondents] = []
        self._sendings: list[Transmission] = []
        self._servers: list[ServerAccounts] = []
        self._late, self._lost = np.zeros((2, mechanism.rounds), dtype=np.int64)

    def _toss(self, batch: slice) -> Any:  # a mechanism's coins are its own
        return self.mechanism.toss(self._remember(batch), rng=self._draws.coins)

    def ask(self, round_: int, *, moment: int, at_s: float, truth: Cells, present: Respondents) -> None:
        """Ask a round.

        Parameters
        ----------
        round_
            The mechanism's own round, from 1.
        moment
            Which of the query's moments it is: 1, 2 (the moment of truth) or later.
        at_s
            When that is, seconds.
        truth
            (vehicles,) int32 cells at this moment. Devices see it from the mechanism's `truth_round` on, and
            answer about the cell they had then; before it they are shown 0.
        present
            Who answers.
        """
        if round_ == self.mechanism.truth_round:
            self._truth = truth
        known = self._truth if round_ >= self.mechanism.truth_round else np.zeros_like(truth)
        since_s = at_s - self._sendings[-1].sent_s if self._sendings else 0.0
        sending = Transmission(moment, at_s, self._deadline_s, self._deployment.route(round_, self.mechanism), since_s)
        self._sendings.append(sending)
        self._servers.append(ServerAccounts(sending.route))
        self._presents.append(present)
        if not self._reporting:
            return
        cells = np.concatenate([known[: self._reporting_vehicles], np.zeros(self._reporting_outside, dtype=np.int32)])
        answering = np.concatenate(
            [
                present.vehicles[: self._reporting_vehicles],
                np.arange(self._reporting_outside) < present.outside,
            ]
        )
        deliveries = self._channel.deliver(self._reporting, sending, was_down=self._down, rng=self._draws.noise)
        self._down = deliveries.link_down
        deliveries = deliveries.of(answering)
        heard = answering & (deliveries.fate == DeliveryStatus.COUNTED)
        for number, batch in enumerate(self._batches):
            coins = self._tossed[number] if self._tossed else self._toss(batch)
            reports = self.mechanism.answer(round_, cells[batch], coins)
            self._server.receive(round_, reports, heard[batch], batch=number)
            if self._recorder is not None:
                self._recorder.keep(number, reports, heard[batch], deliveries, batch, sent_s=at_s)
        self._servers[-1].add_reports(int(np.count_nonzero(answering)), deliveries.arrived_s, deliveries.in_time)
        self._late[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == DeliveryStatus.LATE))
        self._lost[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == DeliveryStatus.LOST))

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Count those who answer by counts, and estimate.

        Returns
        -------
        tuple
            The estimate, and what became of every round's reports.
        """
        self._tossed = []
        self._answer_by_counts()
        cost = self._deployment.cost(self.mechanism)
        for row, present in enumerate(self._presents):
            servers = self._servers[row]
            first = [path[0] for path in self._sendings[row].route]
            copies = {party: self._channel.copies(servers.arrived(party), rng=self._draws.noise) for party in first}
            self._server.close_round(
                row + 1,
                asked=self._asked.devices,
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
        if self._publication is None:
            return server.estimate()
        return self._publication.publish(
            server.counts, counted=server.counted, asked=server.asked, rng=self._draws.release
        )

    def std_error(self, true_counts: IntArray) -> npt.NDArray[np.float64]:
        """Return theory's standard error from the truth, for what the channel did; after `close`.

        Rounds are taken to lose devices independently. Where links stay down (`Channel.burst_s`), or devices leave
        before two rounds (`Channel.churn`, of mechanisms that are asked on after the moment of truth), the same devices
        are missed, which such mechanisms suffer less from than this says.
        """
        if self._publication is None:
            return self._server.std_error(true_counts)
        return self._publication.std_error(true_counts, asked=self._server.asked, counted=self._server.counted)

    @property
    def paired(self) -> bool:
        """Whether only devices heard in every round are counted."""
        return self._server.paired

    def recorded(self) -> RecordedReports | None:
        """Return what recorded devices sent, where they were and what servers counted; None if there are none."""
        recorded = None if self._recorder is None else self._recorder.recorded()
        if recorded is None or self._recorder is None:
            return None
        return RecordedReports(recorded, self._truth[self._recorder.places], self._server.counts)

    def _answer_by_counts(self) -> None:
        """Draw the sums of devices that are not simulated one by one; exact where `sample_counts` is."""
        histories = Histories(self._channel, self._sendings, servers=self._servers, rng=self._draws.noise)
        groups = there_for(
            self._truth if self._answers == "counts" else None,
            self._presents,
            outside=self._answers != "reports",
            cells=self.mechanism.cells,
        )
        for last, counts in groups:
            for group in histories.divide(counts, rounds_there=last):
                if group.heard.any():
                    sums = self.mechanism.sample_counts(group.counts, rng=self._draws.coins)
                    self._server.receive_group(sums, group.heard, devices=int(group.counts.sum()))
        self._late += histories.late
        self._lost += histories.lost
