"""Divided survey: one mechanism in one query whose devices report to several servers, which are combined at the end."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.combining import Combining, ServerTally, joined_reports
from simulator.aggregation.rounds import RoundAccount
from simulator.aggregation.transcript import RecordedMessages
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.sensing.query import QueriedDevices, Respondents
from simulator.sensing.report_recorder import RecordedReports, Targets
from simulator.sensing.survey import Survey

CHUNK = 1 << 20
"""Devices outside every cell that are assigned at once."""


class DividedSurvey:
    """Asks the rounds of one mechanism in one query; it has the methods of `Survey`.

    Each server has a `Survey` of its own, with the devices assigned to it, and generators of its own. Devices are
    assigned when the survey begins; or, where the aggregator assigns them by their cells, at the first question, before
    their coins are tossed. The coins of devices are independent in either case.

    Parameters
    ----------
    mechanism
        The mechanism that the devices run.
    asked
        The devices asked.
    deployment
        The deployment that divides them.
    make
        Makes the survey of one server from its number, its devices, its part of the memory and its targets.
    rng
        Generator of the assignment.
    targets
        The vehicles whose reports are recorded.
    """

    paired = False

    def __init__(
        self,
        mechanism: LocalMechanism,
        *,
        asked: QueriedDevices,
        deployment: Combining,
        make: Callable[..., Survey],
        rng: np.random.Generator,
        targets: Targets | None,
    ) -> None:
        self.mechanism, self.asked, self.deployment = mechanism, asked, deployment
        self.paired = deployment.paired
        self._make, self._rng, self._targets = make, rng, targets
        self._surveys: list[Survey] = []
        self._vehicles: list[IntArray] = []
        self._outside = np.zeros(0, dtype=np.int64)
        self._present_outside = asked.outside
        self._truth = np.zeros(asked.vehicles, dtype=np.int32)
        if not deployment.locates:
            self._divide(self._truth)

    def _divide(self, cells: Cells) -> None:
        assign = partial(self.deployment.assign, mechanism=self.mechanism, rng=self._rng)
        servers, of = self.deployment.own.servers, assign(cells)
        self._outside = np.zeros(servers, dtype=np.int64)
        for start in range(0, self.asked.outside, CHUNK):
            none = np.zeros(min(CHUNK, self.asked.outside - start), dtype=np.int32)
            self._outside += np.bincount(assign(none) - 1, minlength=servers)
        self._present_outside = self.asked.outside
        first = np.cumsum(self._outside) - self._outside
        for number in range(1, servers + 1):
            vehicles, outside = np.flatnonzero(of == number), int(self._outside[number - 1])
            self._vehicles.append(vehicles)
            devices = np.concatenate([vehicles, self.asked.vehicles + first[number - 1] + np.arange(outside)])
            survey = self._make(
                number,
                asked=QueriedDevices(len(vehicles), outside),
                deployment=self.deployment.server(number, self.mechanism),
                devices=devices,
                targets=self._targets_among(vehicles),
            )
            self._surveys.append(survey)

    def _targets_among(self, vehicles: IntArray) -> Targets | None:
        """Return the targets of the query that are among some of its vehicles, None if there are none."""
        whole = self._targets
        if whole is None or not len(vehicles):
            return None
        rank = whole.rank[vehicles]
        limit = np.partition(whole.rank, whole.most - 1)[whole.most - 1] if whole.most < len(whole.rank) else np.inf
        most = int(np.count_nonzero(rank <= limit))
        if not most and not (rank >= whole.corrupted_from).any():
            return None
        return Targets(whole.query, whole.vehicles[vehicles], rank, most, whole.corrupted_from)

    def ask(self, round_: int, *, moment: int, at_s: float, truth: Cells, present: Respondents) -> None:
        """Ask a round; parameters as of `Survey.ask`."""
        if not self._surveys:
            self._divide(truth)
        if round_ == self.mechanism.truth_round:
            self._truth = truth
        outside = self._remaining(present.outside)
        for survey, vehicles, crowd in zip(self._surveys, self._vehicles, outside.tolist(), strict=True):
            here = Respondents(present.vehicles[vehicles], crowd)
            survey.ask(round_, moment=moment, at_s=at_s, truth=truth[vehicles], present=here)

    def _remaining(self, outside: int) -> IntArray:
        """Return how many of the devices outside every cell are still present, by server."""
        if outside < self._present_outside:
            self._outside = self._rng.multivariate_hypergeometric(self._outside, outside, method="marginals")
            self._present_outside = outside
        return self._outside

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Close every server's rounds and combine their sums; returns as `Survey.close`."""
        closed = [survey.close() for survey in self._surveys]
        tallies = [
            ServerTally(
                number,
                self.mechanism,
                survey.counts,
                tuple(account.counted for account in accounts),
                tuple(account.asked for account in accounts),
                self.asked.devices,
                survey.arrivals_s,
            )
            for number, (survey, (_, accounts)) in enumerate(zip(self._surveys, closed, strict=True), start=1)
        ]
        rounds = zip(*(accounts for _, accounts in closed), strict=True)
        return self.deployment.combine(tallies, self.mechanism), [RoundAccount.added(parts) for parts in rounds]

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical standard error that the aggregator states, (cells,); NaN if it states none."""
        errors = []
        for vehicles, survey in zip(self._vehicles, self._surveys, strict=True):
            truth = np.bincount(self._truth[vehicles], minlength=len(true_counts))
            truth[0] += survey.asked.outside
            errors.append(survey.std_error(truth))
        return self.deployment.stated_error(np.stack(errors), self.mechanism)

    def recorded(self) -> RecordedReports | None:
        """Return the recorded devices' messages, their cells and the sum of the servers' counts; None without any."""
        parts = [part for survey in self._surveys if (part := survey.recorded()) is not None]
        if not parts:
            return None
        messages = [part.recorded for part in parts]
        parties = self.deployment.parties(self.mechanism)
        joined = RecordedMessages(
            messages[0].query,
            np.concatenate([sent.devices for sent in messages]),
            [joined_reports(reports) for reports in zip(*(sent.reports for sent in messages), strict=True)],
            np.concatenate([sent.in_time for sent in messages], axis=1),
            {party: np.concatenate([_arrivals(sent, party) for sent in messages], axis=1) for party in parties},
            np.concatenate([sent.pseudonyms for sent in messages]),
            np.concatenate([sent.connections for sent in messages], axis=1),
        )
        order = np.argsort(joined.devices)
        counts = np.sum([survey.counts for survey in self._surveys], axis=0)
        return RecordedReports(joined.among(order), np.concatenate([part.truth for part in parts])[order], counts)


def _arrivals(messages: RecordedMessages, party: str) -> Any:
    """Return when messages arrived at a party, infinite if they were not sent to it."""
    return messages.arrived_s.get(party, np.full(messages.in_time.shape, np.inf))
