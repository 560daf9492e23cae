"""Survey: one mechanism's part in one query, from coins to estimate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.account import RoundAccount, ServerAccounts
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.published import Publication
from simulator.sensing.asked import Answers, Asked, Present
from simulator.sensing.channel import Channel, Fate, Sending
from simulator.sensing.histories import Histories, there_for
from simulator.sensing.report_recorder import RecordedReports, Recorder, Targets

Cells = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


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
        asked: Asked,
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
        self._presents: list[Present] = []
        self._sendings: list[Sending] = []
        self._servers: list[ServerAccounts] = []
        self._late, self._lost = np.zeros((2, mechanism.rounds), dtype=np.int64)

    def _toss(self, batch: slice) -> Any:  # a mechanism's coins are its own
        return self.mechanism.toss(self._remember(batch), rng=self._draws.coins)

    def ask(self, round_: int, *, moment: int, at_s: float, truth: Cells, present: Present) -> None:
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
        sending = Sending(moment, at_s, self._deadline_s, self._deployment.route(round_, self.mechanism), since_s)
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
        heard = answering & (deliveries.fate == Fate.COUNTED)
        for number, batch in enumerate(self._batches):
            coins = self._tossed[number] if self._tossed else self._toss(batch)
            reports = self.mechanism.answer(round_, cells[batch], coins)
            self._server.receive(round_, reports, heard[batch], batch=number)
            if self._recorder is not None:
                self._recorder.keep(number, reports, heard[batch], deliveries, batch, sent_s=at_s)
        self._servers[-1].add_reports(int(np.count_nonzero(answering)), deliveries.arrived_s, deliveries.in_time)
        self._late[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == Fate.LATE))
        self._lost[round_ - 1] += np.count_nonzero(answering & (deliveries.fate == Fate.LOST))

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
