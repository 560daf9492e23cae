"""Refinement facts: what `run.json` says of the rows that were made of other rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism
from mechanisms.refinement import RefinedEstimate
from simulator.experiment.refine import Combined, Plan, Refining, combinations, properties_of, refinable
from simulator.experiment.scores import HOT_SHARE
from simulator.sensing.query import Query

FloatArray = npt.NDArray[np.float64]

MADE = {
    "clip": "counts below 0 put at 0, counts above the devices asked at those",
    "norm_sub": "counts below 0 put at 0, then one amount taken off all others (or put on them) until the sum is {sum}",
    "norm_mul": "counts below 0 put at 0, then all others multiplied by one factor so that the sum is {sum}",
    "simplex": "the nearest counts that are not below 0 and whose sum is {sum}",
    "combine": "the estimates of the last {window} queries (fewer at first), each weighted by the inverse of its "
    "variance at their pooled count",
}
SUMS = {"estimated": "that of the unrefined estimates, within what is possible", "asked": "the devices asked"}
BIAS = {
    "clip": "too high on average where estimates fall below 0",
    "norm_sub": "too low on average in busy cells, too high in empty ones",
    "norm_mul": "too low on average in busy cells, by a share of them, too high in empty ones",
    "simplex": "too low on average in busy cells, too high in empty ones",
    "combine": "off by what the count was otherwise in the earlier queries",
}


def describe_refinements(
    plan: Plan, mechanisms: Mapping[str, LocalMechanism], queries: Sequence[Query]
) -> list[dict[str, Any]]:
    """Return what `run.json` says of each refinement of each mechanism.

    Parameters
    ----------
    plan
        What was refined.
    mechanisms
        By name.
    queries
        With the refined answers in them.

    Returns
    -------
    list of dict
        `name` in the tables, `mechanism`, `refinement`, `kind`, `parameters`; `biased`, with `bias` in words;
        `made_of`, `interval` and `claims` in words; `keeps`; and `measured`, a campaign each: the mean error in the
        busiest tenth of each query's cells that are not empty and in the others, beside the unrefined one's, and
        for a combination what of its RMSE is drift and what is spread.
    """
    return [_describe(refining, mechanisms[refining.mechanism], queries) for refining in plan.refinings]


def _describe(refining: Refining, mechanism: LocalMechanism, queries: Sequence[Query]) -> dict[str, Any]:
    properties, parameters = properties_of(refining), refining.parameters
    combined = refining.kind == "combine"
    measured = _measured(refining, queries)
    if combined:
        for campaign, parts in _parts(combinations(refining, mechanism, queries), queries).items():
            measured[campaign].update(parts)
    words = MADE[refining.kind].format(sum=SUMS.get(parameters.get("total", "")), window=parameters.get("window"))
    once = "It is computed from what was published already: all that is claimed of {} holds of it too{}."
    several = f", for the views of {parameters.get('window')} queries" if combined else ""
    return {
        "name": refining.name,
        "mechanism": refining.mechanism,
        "refinement": refining.refinement,
        "kind": refining.kind,
        "parameters": dict(parameters),
        "biased": properties.biased,
        "bias": BIAS[refining.kind],
        "made_of": f"{refining.mechanism}: {words}",
        "keeps": {
            "non_negative": properties.non_negative,
            "total": properties.total,
            "order": properties.ordered,
            "never_worse": properties.never_worse,
        },
        "interval": "for counts that stayed as they were" if combined else "that of the unrefined estimate",
        "claims": once.format(refining.mechanism, several),
        "measured": [{"campaign": campaign, **values} for campaign, values in measured.items()],
    }


def _measured(refining: Refining, queries: Sequence[Query]) -> dict[str, dict[str, float | None]]:
    """Return the mean errors in busy cells and in others, by campaign."""
    gathered: dict[str, list[tuple[FloatArray, FloatArray, FloatArray]]] = {}
    for place, _, unrefined in refinable(refining, queries):
        query = queries[place]
        (refined,) = (a.estimate for a in query.answers if a.mechanism == refining.name)
        if isinstance(refined, RefinedEstimate):
            each = query.truth[1:].astype(np.float64), refined.count, unrefined.count
            gathered.setdefault(query.campaign, []).append(each)
    return {campaign: _biases(rows) for campaign, rows in gathered.items()}


def _biases(rows: list[tuple[FloatArray, FloatArray, FloatArray]]) -> dict[str, float | None]:
    truth, refined, unrefined = (np.stack(column) for column in zip(*rows, strict=True))
    cells = truth.shape[1]
    hot = max(1, round(HOT_SHARE * cells))
    threshold = np.partition(truth, cells - hot, axis=1)[:, cells - hot, np.newaxis]
    busy = (truth >= threshold) & (truth > 0)

    def mean(error: FloatArray, where: npt.NDArray[np.bool_]) -> float | None:
        return float(error[where].mean()) if where.any() else None

    return {
        "bias_busy": mean(refined - truth, busy),
        "bias_other": mean(refined - truth, ~busy),
        "unrefined_bias_busy": mean(unrefined - truth, busy),
        "unrefined_bias_other": mean(unrefined - truth, ~busy),
    }


def _parts(made_by_place: Mapping[int, Combined], queries: Sequence[Query]) -> dict[str, dict[str, float]]:
    """Return what of a combination's RMSE is drift and what is spread, by campaign."""
    by_campaign: dict[str, list[tuple[FloatArray, FloatArray]]] = {}
    for place, made in made_by_place.items():
        by_campaign.setdefault(queries[place].campaign, []).append((made.drift, made.spread))
    return {
        campaign: {
            "drift_rmse": float(np.sqrt(np.square([drift for drift, _ in rows]).mean())),
            "spread_rmse": float(np.sqrt(np.square([spread for _, spread in rows]).mean())),
        }
        for campaign, rows in by_campaign.items()
    }


def refinement_warnings(plan: Plan, queries: Sequence[Query]) -> list[str]:
    """Return what was left out, and which totals count devices that were in no cell."""
    counts = [query for query in queries if query.statistic == "count"]
    speeds = dict.fromkeys(query.campaign for query in queries if query.statistic != "count")
    warnings = list(plan.notes)
    if plan.refinings:
        warnings += [f"refinements: leave out campaign {name}, which asks for speeds" for name in speeds]
    for refining in plan.refinings:
        released = {q.campaign for q in counts for a in q.answers if a.mechanism == refining.mechanism and a.published}
        if refining.kind == "combine":
            warnings += [
                f"refinements.{refining.refinement}: leaves out {refining.mechanism} in campaign {campaign}: what a "
                "release published may be biased, and is not weighed"
                for campaign in sorted(released)
            ]
    outside = max((int(query.truth[0]) for query in counts), default=0)
    asked = dict.fromkeys(r.refinement for r in plan.refinings if r.parameters.get("total") == "asked")
    words = (
        f'total = "asked" takes every device asked to be in some cell, and in a query {outside:,} were in none: they '
        "are put into the cells"
    )
    return [*warnings, *(f"refinements.{name}: {words}" for name in asked if outside)]
