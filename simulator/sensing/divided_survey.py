"""Divided surveys: one mechanism in one query, with a survey for each server, among which devices are divided."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mechanisms.local import Estimate, LocalMechanism
from simulator.aggregation.combining import Combining, ServerTally, joined_reports
from simulator.aggregation.rounds import RoundAccount
from simulator.aggregation.transcript import RecordedMessages
from simulator.arrays import Cells, FloatArray, IntArray
from simulator.sensing.query import QueryRecord, Respondents, Targets
from simulator.sensing.survey import CHUNK, Survey


@dataclass(eq=False)
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

    mechanism: LocalMechanism
    asked: Respondents
    deployment: Combining
    make: Callable[..., Survey]
    rng: np.random.Generator
    targets: Targets | None

    def __post_init__(self) -> None:
        """Assign the devices, unless that needs their cells."""
        self._surveys: list[Survey] = []
        self._vehicles: list[IntArray] = []
        self._present_outside = self.asked.outside
        self._measured = np.zeros(len(self.asked.vehicles), dtype=np.int32)
        if not self.deployment.locates:
            self._divide(self._measured)

    @property
    def paired(self) -> bool:
        """Whether only devices whose reports were received in every round are counted."""
        return self.deployment.paired

    def _divide(self, cells: Cells) -> None:
        assign = partial(self.deployment.assign, mechanism=self.mechanism, rng=self.rng)
        servers, of = self.deployment.own.servers, assign(cells)
        self._outside = np.zeros(servers, dtype=np.int64)
        for start in range(0, self.asked.outside, CHUNK):
            none = np.zeros(min(CHUNK, self.asked.outside - start), dtype=np.int32)
            self._outside += np.bincount(assign(none) - 1, minlength=servers)
        before = len(self.asked.vehicles)
        for number, outside in enumerate(self._outside.tolist(), start=1):
            vehicles = np.flatnonzero(of == number)
            survey = self.make(
                number,
                asked=Respondents.everyone(len(vehicles), outside),
                deployment=self.deployment.server(number, self.mechanism),
                devices=np.concatenate([vehicles, np.arange(before, before + outside)]),
                targets=self._targets_among(vehicles),
            )
            self._vehicles.append(vehicles)
            self._surveys.append(survey)
            before += outside

    def _targets_among(self, vehicles: IntArray) -> Targets | None:
        """Return the targets of the query that are among some of its vehicles, None if there are none."""
        whole = self.targets
        if whole is None or not len(vehicles):
            return None
        rank = whole.rank[vehicles]
        limit = np.partition(whole.rank, whole.most - 1)[whole.most - 1] if whole.most < len(whole.rank) else np.inf
        most = int(np.count_nonzero(rank <= limit))
        if not most and not (rank >= whole.corrupted_from).any():
            return None
        return Targets(whole.query, whole.vehicles[vehicles], rank, most, whole.corrupted_from)

    def ask(self, round_: int, *, moment: int, at_s: float, present: Respondents, **seen: Any) -> None:
        """Ask a round; parameters as of `Survey.ask`, `seen` those with a value for each vehicle."""
        if not self._surveys:
            self._divide(seen["truth"])
        if round_ == self.mechanism.truth_round:
            self._measured = seen.get("measured", seen["truth"])
        if present.outside < self._present_outside:
            self._outside = self.rng.multivariate_hypergeometric(self._outside, present.outside, method="marginals")
            self._present_outside = present.outside
        for survey, vehicles, crowd in zip(self._surveys, self._vehicles, self._outside.tolist(), strict=True):
            here = Respondents(present.vehicles[vehicles], crowd)
            own: dict[str, Any] = {name: None if values is None else values[vehicles] for name, values in seen.items()}
            survey.ask(round_, moment=moment, at_s=at_s, present=here, **own)

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
        self._accounts = [RoundAccount.added(parts) for parts in rounds]
        self._estimate = self.deployment.combine(tallies, self.mechanism)
        return self._estimate, self._accounts

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical standard error that the aggregator states, (cells,); NaN if it states none."""
        errors = []
        for vehicles, survey in zip(self._vehicles, self._surveys, strict=True):
            truth = np.bincount(self._measured[vehicles], minlength=len(true_counts))
            truth[0] += survey.asked.outside
            errors.append(survey.std_error(truth))
        return self.deployment.stated_error(np.stack(errors), self.mechanism)

    def recorded(self, occupancy: IntArray, time_s: float) -> QueryRecord | None:
        """Return the record of all servers' recorded devices, with the sum of the servers' counts, as `Survey` does."""
        parts = [part for survey in self._surveys if (part := survey.recorded(occupancy, time_s)) is not None]
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
        truth = np.concatenate([part.truth for part in parts])[order]
        asked, counted = ([getattr(account, name) for account in self._accounts] for name in ("asked", "counted"))
        values = self._estimate.count
        return QueryRecord(joined.among(order), truth, occupancy, counts, asked, counted, values, time_s)


def _arrivals(messages: RecordedMessages, party: str) -> Any:
    """Return when messages arrived at a party, infinite if they were not sent to it."""
    return messages.arrived_s.get(party, np.full(messages.in_time.shape, np.inf))
