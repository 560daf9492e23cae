"""Refined estimates: their rows in the results, and their record in `run.json`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.local import Estimate
from mechanisms.refinement import Properties, RefinedEstimate, clip, inverse_probability, norm_mul, norm_sub, simplex
from scenarios import Scenario
from scenarios.kinds import is_capable
from simulator.arrays import FloatArray, Mask
from simulator.experiment.assembly.own_kinds import same_keys
from simulator.experiment.tables import HOT_SHARE
from simulator.files.messages import Note, warning
from simulator.results.record import MeasuredRefinement, RefinementProperties, RefinementRecord
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, QueryAnswer

Weigh = Callable[[Campaign, Query, QueryAnswer], Mapping[str, FloatArray]]
"""Returns the parameters of `inverse_probability` for an answer."""


@dataclass(frozen=True)
class Refining:
    """One refinement of one mechanism.

    Attributes
    ----------
    mechanism, refinement
        Their names in the scenario.
    kind
        Kind of the refinement.
    parameters
        Parameters of the refinement.
    """

    mechanism: str
    refinement: str
    kind: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the refined mechanism in the tables; no name in a scenario contains a plus sign."""
        return f"{self.mechanism}+{self.refinement}"


def plan_refinements(scenario: Scenario) -> tuple[Refining, ...]:
    """Return the refinements to make: of the mechanisms that a section names, or of all that are private."""
    private = [section.name for section in scenario.mechanisms if not is_capable("mechanism", section.kind, "exact")]
    return tuple(
        Refining(name, section.name, section.kind, section.model_dump(exclude={"name", "kind", "mechanisms"}))
        for section in scenario.refinements
        for name in section.mechanisms or private
    )


def refine_queries(
    refinings: Sequence[Refining], campaigns: Sequence[Campaign], queries: Sequence[Query], *, weigh: Weigh
) -> tuple[list[Query], list[RefinementRecord]]:
    """Return the queries with the refined answers added after their own, and the record of each refinement.

    A refined answer has no rounds, since no device was asked for it, and its standard error is unknown (NaN). `weigh`
    returns the parameters of `inverse_probability` for an answer.
    """
    added: dict[int, list[QueryAnswer]] = {id(query): [] for query in queries}
    records = []
    for refining in refinings:
        refined = refined_answers(refining, {campaign.name: campaign for campaign in campaigns}, queries, weigh)
        for answer in refined:
            std_error = np.full(len(answer.unrefined), np.nan)
            added[id(answer.query)].append(QueryAnswer(refining.name, answer.estimate, std_error, []))
        records.append(_describe(refining, refined))
    return [replace(query, answers=[*query.answers, *added[id(query)]]) for query in queries], records


@dataclass(frozen=True, eq=False)
class Refined:
    """The mechanism's own estimate of a query, and the refined one."""

    query: Query
    unrefined: Estimate
    estimate: RefinedEstimate


def refined_answers(
    refining: Refining, campaigns: Mapping[str, Campaign], queries: Sequence[Query], weigh: Weigh
) -> list[Refined]:
    """Return the refined answers to the queries of counts, in their order; speeds are not refined.

    `campaigns` are by name; `weigh` as of `refine_queries`.
    """
    refine, made = PROJECTIONS[refining.kind], []
    for query in queries:
        for answer in query.answers if query.statistic == "count" else ():
            if answer.mechanism == refining.mechanism and isinstance(answer.estimate, Estimate):
                campaign = campaigns[query.campaign]
                asked = answer.asked[campaign.mechanisms[refining.mechanism].truth_round - 1]
                weights = weigh(campaign, query, answer) if refine is inverse_probability else {}
                estimate = refine(answer.estimate, asked=asked, **refining.parameters, **weights)
                made.append(Refined(query, answer.estimate, estimate))
    return made


def properties_of(refining: Refining) -> Properties:
    """Return the properties that a refinement guarantees, independent of any estimate."""
    nothing = Estimate(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), "exact")
    return PROJECTIONS[refining.kind](nothing, asked=0, **refining.parameters).properties


PROJECTIONS: Mapping[str, Callable[..., RefinedEstimate]] = {
    "clip": clip,
    "norm_sub": norm_sub,
    "norm_mul": norm_mul,
    "simplex": simplex,
    "inverse_probability": inverse_probability,
}
"""The function of each kind of refinement, whose parameters are the keys of the section."""
MADE = {
    "clip": "counts below 0 set to 0, counts above the number of devices asked set to that number",
    "norm_sub": "counts below 0 set to 0, then one amount subtracted from all others (or added) until the sum is {sum}",
    "norm_mul": "counts below 0 set to 0, then all others multiplied by one factor so that the sum is {sum}",
    "simplex": "the nearest counts that are not below 0 and whose sum is {sum}",
    "inverse_probability": "counts divided by the probability that a vehicle of the cell takes part and is counted",
}
SUMS = {
    "estimated": "the sum of the unrefined estimates, limited to the possible range",
    "asked": "the number of devices asked",
}
BIAS = {
    "clip": "too high on average where estimates fall below 0",
    "norm_sub": "too low on average in busy cells, too high in empty ones",
    "norm_mul": "too low on average in busy cells, by a share of them, too high in empty ones",
    "simplex": "too low on average in busy cells, too high in empty ones",
    "inverse_probability": "none on average, but from vehicles that move or report another cell",
}


def _describe(refining: Refining, refined: Sequence[Refined]) -> RefinementRecord:
    """Return the record in `run.json` of a refinement of one mechanism."""
    properties, parameters = properties_of(refining), refining.parameters
    method = MADE[refining.kind].format(sum=SUMS.get(parameters.get("total", "")))
    return RefinementRecord(
        **same_keys(refining, "name", "mechanism", "refinement", "kind"),
        parameters=dict(parameters),
        biased=properties.biased,
        bias=BIAS[refining.kind],
        made_of=f"{refining.mechanism}: {method}",
        keeps=RefinementProperties(
            order=properties.ordered, **same_keys(properties, "non_negative", "total", "never_worse")
        ),
        interval="the interval of the unrefined estimate",
        claims=f"It is computed from published values only: every claim for {refining.mechanism} holds for it too.",
        measured=list(_measured(refined)),
    )


def _measured(refined: Sequence[Refined]) -> Iterator[MeasuredRefinement]:
    """Yield the mean errors in busy cells and in others by campaign."""
    by_campaign: dict[str, list[Refined]] = {}
    for answer in refined:
        by_campaign.setdefault(answer.query.campaign, []).append(answer)
    for campaign, made in by_campaign.items():
        truth = np.stack([answer.query.truth[1:] for answer in made]).astype(np.float64)
        error = np.stack([answer.estimate.count for answer in made]) - truth
        unrefined_error = np.stack([answer.unrefined.count for answer in made]) - truth
        cells = truth.shape[1]
        hot = max(1, round(HOT_SHARE * cells))
        threshold = np.partition(truth, cells - hot, axis=1)[:, cells - hot, np.newaxis]
        busy = (truth >= threshold) & (truth > 0)
        yield MeasuredRefinement(
            campaign=campaign,
            bias_busy=_mean(error, busy),
            bias_other=_mean(error, ~busy),
            unrefined_bias_busy=_mean(unrefined_error, busy),
            unrefined_bias_other=_mean(unrefined_error, ~busy),
        )


def _mean(error: FloatArray, where: Mask) -> float | None:
    return float(error[where].mean()) if where.any() else None


def refinement_warnings(refinings: Sequence[Refining], queries: Sequence[Query]) -> list[Note]:
    """Return warnings of campaigns that are left out, and of totals that include devices in no cell."""
    speeds = dict.fromkeys(query.campaign for query in queries if query.statistic != "count")
    left_out = (f"refinements: leave out campaign {name}, which asks for speeds" for name in speeds if refinings)
    warnings = [warning("speeds_not_refined", text, "refinements") for text in left_out]
    outside = max((int(query.truth[0]) for query in queries if query.statistic == "count"), default=0)
    asked = dict.fromkeys(one.refinement for one in refinings if one.parameters.get("total") == "asked")
    assumption = (
        f'total = "asked" assumes that every device asked is in some cell, but in a query {outside:,} were in '
        "none: they are added to the cells"
    )
    placed = (f"refinements.{name}" for name in asked if outside)
    return [*warnings, *(warning("in_no_cell", f"{place}: {assumption}", place) for place in placed)]
