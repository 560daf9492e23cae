"""Poisoned sums: what a cell's estimate would have been had some targets been corrupted."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mechanisms.parameter import ParameterError
from simulator.attacks.poisoning import Forgery, craft_reports, forge_reports
from simulator.experiment.games.campaign_record import CampaignRecord, IntArray, QueryRecord
from simulator.experiment.games.guess_games import Columns

INFLATION, CRAFTED = "inflation", "crafted_inflation"


class TooFewVehiclesError(Exception):
    """There are fewer vehicles than are to be corrupted.

    Parameters
    ----------
    query
        In which query.
    there
        How many targets it has.
    """

    def __init__(self, query: int, there: int) -> None:
        super().__init__(query, there)
        self.query, self.there = query, there


def play_poisoning(
    record: CampaignRecord, cell: int, corrupted: int, magnitude: int, *, rng: np.random.Generator
) -> Iterator[Columns]:
    """Play with corrupted targets that send what inflates a cell; yield the mean change of its estimate, in vehicles.

    One row for well-formed reports, metric "inflation"; one for vectors of any form, "crafted_inflation". Where servers
    read reports, or reject what is no valid encoding, crafted vectors are not counted, and whoever knows that sends
    well-formed reports: the second row is then the first.

    Raises
    ------
    NoLikelihoodError
        If nobody has said which of the mechanism's reports matter, or none is the greatest.
    ParameterError
        If there is no such cell.
    TooFewVehiclesError
        If a query has fewer targets than are to be corrupted.
    """
    mechanism = record.mechanism
    chosen = []
    for query in record.queries:
        if corrupted > len(query.truth):
            raise TooFewVehiclesError(query.number, len(query.truth))
        chosen.append(np.sort(rng.permutation(len(query.truth))[:corrupted]))
    if not chosen:
        return
    honest = forge_reports(mechanism, cell, corrupted)
    crafted = craft_reports(mechanism, cell, corrupted, magnitude=magnitude) if _counted(record) else honest
    for metric, forgery in ((INFLATION, honest), (CRAFTED, crafted)):
        shifts, expected = [], []
        for query, rows in zip(record.queries, chosen, strict=True):
            before = remake(record, query, rows, None, rng=rng)
            after = remake(record, query, rows, forgery, rng=rng)
            shifts.append(float(after[cell - 1] - before[cell - 1]))
            inside = int(np.count_nonzero(query.truth[rows] == cell))
            expected.append(corrupted * forgery.per_vehicle - inside if query.all_counted else None)
        known = [one for one in expected if one is not None]
        yield {
            "trials": len(shifts),
            "theory": float(np.mean(known)) if len(known) == len(expected) else None,
            "metric": metric,
            "value": float(np.mean(shifts)),
            "unit": "vehicles",
        }


def remake(
    record: CampaignRecord, query: QueryRecord, rows: IntArray, forgery: Forgery | None, *, rng: np.random.Generator
) -> Any:
    """Return the estimate, (cells,) float64, with some targets' reports taken out of the sums and others put in.

    Parameters
    ----------
    record, query
        The campaign, and which query of it.
    rows
        Places of the corrupted among the targets.
    forgery
        What they send, in the rounds in which they were heard; None: what they did send.
    rng
        The servers' own randomness, which no estimate hangs on.
    """
    mechanism, heard = record.mechanism, query.recorded.in_time[:, rows]
    aggregator = record.deployment.aggregator(mechanism, devices=len(rows), rng=rng)
    rounds = range(mechanism.rounds)
    own = [reports[rows] for reports in query.recorded.reports]
    counted = heard & heard.all(axis=0) if aggregator.paired else heard
    rest = query.counts - np.stack([mechanism.tally(own[r], where=counted[r]) for r in rounds])
    left = [query.counted[r] - int(counted[r].sum()) for r in rounds]
    if aggregator.paired:
        aggregator.receive_group(rest, np.ones(len(left), dtype=np.bool_), devices=left[0])
    else:
        for r in rounds:
            aggregator.receive_group(rest, np.arange(len(left)) == r, devices=left[r])
    if forgery is not None and forgery.vectors is not None:
        aggregator.receive_vectors(forgery.vectors, heard)
    else:
        sent = own if forgery is None or forgery.reports is None else forgery.reports
        for r in rounds:
            aggregator.receive(r + 1, sent[r], heard[r])
    for r in rounds:
        aggregator.close_round(r + 1, asked=query.asked[r], answered=left[r] + int(heard[r].sum()))
    return aggregator.estimate().count


def _counted(record: CampaignRecord) -> bool:
    """Return whether a vector that is no valid encoding would be counted; found by sending one."""
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
