"""Survey: one mechanism's part in one query, from coins to estimate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.account import RoundAccount, report_nbytes
from simulator.aggregation.trusted import TrustedAggregator
from simulator.sensing.channel import Channel, Fate

Answers = Literal["auto", "reports", "counts"]
Cells = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """The devices of one query, fixed at round one's moment.

    Attributes
    ----------
    vehicles
        How many vehicles are asked.
    outside
        How many devices besides are asked that are in no cell (the papers' No population).
    """

    vehicles: int
    outside: int

    @property
    def devices(self) -> int:
        """All devices asked."""
        return self.vehicles + self.outside


@dataclass(frozen=True, eq=False)
class Present:
    """Who is still there to answer at a moment.

    Attributes
    ----------
    vehicles
        (vehicles,) bool.
    outside
        How many of the outside devices, always the first ones.
    """

    vehicles: Mask
    outside: int

    @property
    def devices(self) -> int:
        """All devices that answer."""
        return int(np.count_nonzero(self.vehicles)) + self.outside


class Survey:
    """Asks one mechanism's rounds of one query and closes with an estimate.

    Devices that answer one by one toss their coins when the survey begins, before any truth exists; the rest
    answer by counts drawn from the mechanism's own law when it closes. Both meet in the server's sums.

    Parameters
    ----------
    mechanism
        What the devices run.
    asked
        Who is asked.
    answers
        "reports": every device one by one; "counts": all through `sample_counts`; "auto": vehicles one by one,
        devices outside through counts, since a trusted server keeps no transcripts.
    channel, deadline_s
        What becomes of the reports, and how long a round is open.
    coins, noise
        The survey's own generators, for the devices' coins and for the channel.
    remember
        What the devices of a slice keep from earlier queries: vehicles first, then those outside.
    """

    def __init__(
        self,
        mechanism: LocalMechanism,
        *,
        asked: Asked,
        answers: Answers,
        channel: Channel,
        deadline_s: float,
        coins: np.random.Generator,
        noise: np.random.Generator,
        remember: Callable[[slice], Any],
    ) -> None:
        self.mechanism = mechanism
        self._remember = remember
        self._asked = asked
        self._channel, self._deadline_s = channel, deadline_s
        self._coins, self._noise = coins, noise
        self._server = TrustedAggregator(mechanism)
        self._present: list[Present] = []
        self._moments: list[int] = []
        self._answers = answers
        self._reporting_vehicles = 0 if answers == "counts" else asked.vehicles
        self._reporting_outside = asked.outside if answers == "reports" else 0
        self._reporting = self._reporting_vehicles + self._reporting_outside
        self._batches = [
            slice(start, min(start + mechanism.batch, self._reporting))
            for start in range(0, self._reporting, mechanism.batch)
        ]
        self._tossed: list[Any] = []
        # A mechanism of one round tosses batch by batch as it answers, which bounds its memory; one of more
        # rounds must remember its coins from the first to the last.
        if mechanism.rounds > 1:
            self._tossed = [self._toss(batch) for batch in self._batches]
        self._truth = np.zeros(asked.vehicles, dtype=np.int32)
        self._counted = np.zeros(mechanism.rounds, dtype=np.int64)
        self._late = np.zeros(mechanism.rounds, dtype=np.int64)
        self._lost = np.zeros(mechanism.rounds, dtype=np.int64)

    def _toss(self, batch: slice) -> Any:  # a mechanism's coins are its own
        return self.mechanism.toss(self._remember(batch), rng=self._coins)

    def ask(self, round_: int, *, moment: int, truth: Cells, present: Present) -> None:
        """Ask a round.

        Parameters
        ----------
        round_
            The mechanism's own round, from 1.
        moment
            Which of the query's moments it is: 1, 2 (the moment of truth) or later.
        truth
            (vehicles,) int32 cells at this moment. Devices see it from the mechanism's `truth_round` on, and
            answer about the cell they had then; before it they are shown 0.
        present
            Who answers.
        """
        if round_ == self.mechanism.truth_round:
            self._truth = truth
        known = self._truth if round_ >= self.mechanism.truth_round else np.zeros_like(truth)
        self._moments.append(moment)
        self._present.append(present)
        if not self._reporting:
            return
        cells = np.concatenate([known[: self._reporting_vehicles], np.zeros(self._reporting_outside, dtype=np.int32)])
        answering = np.concatenate(
            [
                present.vehicles[: self._reporting_vehicles],
                np.arange(self._reporting_outside) < present.outside,
            ]
        )
        fate = self._channel.fates(self._reporting, moment=moment, deadline_s=self._deadline_s, rng=self._noise)
        heard = answering & (fate == Fate.COUNTED)
        everyone = bool(heard.all())
        for number, batch in enumerate(self._batches):
            coins = self._tossed[number] if self._tossed else self._toss(batch)
            reports = self.mechanism.answer(round_, cells[batch], coins)
            counts = self.mechanism.tally(reports, where=None if everyone else heard[batch])
            self._server.receive(round_, counts)
        self._counted[round_ - 1] += np.count_nonzero(heard)
        self._late[round_ - 1] += np.count_nonzero(answering & (fate == Fate.LATE))
        self._lost[round_ - 1] += np.count_nonzero(answering & (fate == Fate.LOST))

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Count those who answer by counts, and estimate.

        Returns
        -------
        tuple
            The estimate, and what became of every round's reports.
        """
        self._tossed = []
        self._answer_by_counts()
        nbytes = report_nbytes(self.mechanism)
        for round_, present in enumerate(self._present, start=1):
            answered = present.devices
            self._server.close_round(
                round_,
                RoundAccount(
                    asked=self._asked.devices,
                    answered=answered,
                    counted=int(self._counted[round_ - 1]),
                    late=int(self._late[round_ - 1]),
                    lost=int(self._lost[round_ - 1]),
                    bytes_up=answered * nbytes,
                ),
            )
        return self._server.estimate(), self._server.accounts

    def std_error(self, true_counts: IntArray) -> npt.NDArray[np.float64]:
        """Return theory's standard error from the truth, for what the channel did; after `close`."""
        return self.mechanism.std_error(true_counts, asked=self._server.asked, counted=self._server.counted)

    def _answer_by_counts(self) -> None:
        """Draw the sums of devices that are not simulated one by one.

        Devices with the same history (which rounds they were there for, which of their reports arrived) are one
        group; coins do not know of the channel, so each group's sums are a draw of the mechanism's law over its
        truth, of which the server hears the rounds that arrived. Exact where `sample_counts` is.
        """
        for cells, rounds_there in self._groups():
            heard = [(cells, np.zeros(self.mechanism.rounds, dtype=bool))]
            for round_, there in enumerate(rounds_there, start=1):
                if there:
                    heard = [part for group in heard for part in self._thin(*group, round_)]
            for counts, mask in heard:
                if not mask.any() or not counts.any():
                    continue
                sums = self.mechanism.sample_counts(counts, rng=self._coins)
                for row in np.flatnonzero(mask).tolist():
                    self._server.receive(row + 1, sums[row])

    def _groups(self) -> list[tuple[IntArray, list[bool]]]:
        """Return true counts (cells + 1,) of the devices counted, by the rounds they were there for."""
        rounds = self.mechanism.rounds
        # Who leaves does not come back, so a device's history is the number of rounds it was there for.
        outside = [0 if self._answers == "reports" else present.outside for present in self._present] + [0]
        there_for = np.sum([present.vehicles for present in self._present], axis=0, dtype=np.int64)
        groups = []
        for last in range(1, rounds + 1):
            counts = np.zeros(self.mechanism.cells + 1, dtype=np.int64)
            if self._answers == "counts":
                counts += np.bincount(self._truth[there_for == last], minlength=len(counts))
            counts[0] += outside[last - 1] - outside[last]
            groups.append((counts, [round_ <= last for round_ in range(1, rounds + 1)]))
        return groups

    def _thin(self, counts: IntArray, mask: Mask, round_: int) -> list[tuple[IntArray, Mask]]:
        """Split a group by whether its report of `round_` is counted, and account for those that are not."""
        moment = self._moments[round_ - 1]
        arrival = self._channel.arrival(moment=moment, deadline_s=self._deadline_s)
        heard = self._noise.binomial(counts, arrival) if arrival < 1.0 else counts
        missing = counts - heard
        late, lost = self._channel.split_missing(
            int(missing.sum()), moment=moment, deadline_s=self._deadline_s, rng=self._noise
        )
        self._counted[round_ - 1] += heard.sum()
        self._late[round_ - 1] += late
        self._lost[round_ - 1] += lost
        with_it = mask.copy()
        with_it[round_ - 1] = True
        return [(heard, with_it), (missing, mask)] if missing.any() else [(heard, with_it)]
