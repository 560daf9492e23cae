"""Game in which corrupted vehicles send false reports to inflate the estimate of a cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.parameter import ParameterError
from simulator.arrays import IntArray
from simulator.attacks.counterfactual import Forgery
from simulator.files.errors import InputError
from simulator.games.records import CampaignRecord, NotPlayableError, QueryRecord
from simulator.games.scores import Score
from simulator.games.world import Game, Observer, Truth

INFLATION, CRAFTED = "inflation", "crafted_inflation"


@dataclass(frozen=True)
class Poisoning(Game):
    """Corrupted vehicles inflate a cell: the mean change of its estimate is measured, in vehicles.

    The corrupted vehicles are drawn from the targets. There are two scores: for well-formed reports, metric
    "inflation", and for vectors of any form, "crafted_inflation". If servers read plain reports, or reject invalid
    encodings, crafted vectors are not counted; an adversary that knows this sends well-formed reports, so the second
    score then has the value of the first.

    Parameters
    ----------
    cell
        Number of the inflated cell, from 1.
    magnitude
        Greatest number that a vehicle puts into a vector.
    """

    cell: int
    magnitude: int
    forges = True

    def play(self, observer: Observer, truth: Truth, *, rng: np.random.Generator) -> Iterator[Score]:
        """Yield the two scores, over all queries."""
        record, cell, corrupted = truth.record, self.cell, sum(member.vehicles for member in observer.coalition)
        mechanism, deployment = record.mechanism, record.deployment
        if not deployment.sums_reports:
            raise NotPlayableError(f"what false reports change depends on how {deployment.kind} combines sums")
        for query in record.queries:
            if corrupted > len(query.truth):
                rule = f"there are only {len(query.truth)} targets in query {query.number} of {query.campaign}"
                raise InputError([f"{rule}; got {corrupted} corrupted vehicles"], "coalition")
        chosen = [np.sort(rng.permutation(len(query.truth))[:corrupted]) for query in record.queries]
        honest = crafted = Forgery.of_reports(mechanism, cell, corrupted)
        if _counted(record):
            crafted = Forgery.of_vectors(mechanism, cell, corrupted, magnitude=self.magnitude)
        for metric, forgery in ((INFLATION, honest), (CRAFTED, crafted)):
            shifts, expected = [], []
            for query, rows in zip(record.queries, chosen, strict=True):
                before = remake(record, query, rows, None, rng=rng)
                after = remake(record, query, rows, forgery, rng=rng)
                shifts.append(float(after[cell - 1] - before[cell - 1]))
                inside = int(np.count_nonzero(query.truth[rows] == cell))
                expected.append(corrupted * forgery.per_vehicle - inside if query.all_counted else np.nan)
            yield Score(
                metric=metric,
                value=float(np.mean(shifts)),
                unit="vehicles",
                theory=float(np.mean(expected)),
                queries=len(shifts),
            )


def remake(
    record: CampaignRecord, query: QueryRecord, rows: IntArray, forgery: Forgery | None, *, rng: np.random.Generator
) -> Any:
    """Return the estimate, (cells,) float64, with some targets' reports in the sums replaced by others.

    Parameters
    ----------
    record, query
        The campaign, and one of its queries.
    rows
        Positions of the corrupted vehicles among the targets.
    forgery
        Messages that they send, in the rounds in which their reports were received; None: their own reports.
    rng
        The servers' own randomness, on which no estimate depends.
    """
    mechanism, received = record.mechanism, query.recorded.in_time[:, rows]
    aggregator = record.deployment.aggregator(mechanism, devices=len(rows), rng=rng)
    rounds = range(mechanism.rounds)
    true_reports = [reports[rows] for reports in query.recorded.reports]
    counted = received & received.all(axis=0) if aggregator.paired else received
    rest = query.counts - np.stack([mechanism.tally(true_reports[r], where=counted[r]) for r in rounds])
    left = [query.counted[r] - int(counted[r].sum()) for r in rounds]
    if aggregator.paired:
        aggregator.receive_group(rest, np.ones(len(left), dtype=np.bool_), devices=left[0])
    else:
        for r in rounds:
            aggregator.receive_group(rest, np.arange(len(left)) == r, devices=left[r])
    if forgery is not None and forgery.vectors is not None:
        aggregator.receive_vectors(forgery.vectors, received)
    else:
        sent = true_reports if forgery is None or forgery.reports is None else forgery.reports
        for r in rounds:
            aggregator.receive(r + 1, sent[r], received[r])
    for r in rounds:
        aggregator.close_round(r + 1, asked=query.asked[r], answered=left[r] + int(received[r].sum()))
    return aggregator.estimate().count


def _counted(record: CampaignRecord) -> bool:
    """Return whether a vector that is not a valid encoding would be counted; determined by sending one."""
    mechanism = record.mechanism
    rng = np.random.default_rng(0)
    aggregator = record.deployment.aggregator(mechanism, devices=1, rng=rng)
    if aggregator.rule is not None:
        return False
    vectors = np.full((mechanism.rounds, 1, *mechanism.tally_shape), 2, dtype=np.int64)
    try:
        aggregator.receive_vectors(vectors, np.ones((mechanism.rounds, 1), dtype=np.bool_))
    except ParameterError:
        return False
    return True
