"""Refined estimates: their rows in the results, and their record in `run.json`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from mechanisms.local import Estimate, LocalMechanism, ParameterError, QuadraticVariance
from mechanisms.refinement import Properties, RefinedEstimate, combine, spread, variance_law
from scenarios import Fault, Scenario, ScenarioError
from scenarios.kinds import is_capable
from simulator.aggregation.rounds import theoretical_std_error
from simulator.arrays import FloatArray, Mask
from simulator.experiment.assembly.constructors import constructor_of
from simulator.experiment.tables import HOT_SHARE
from simulator.files.messages import Note, warning
from simulator.results.record import MeasuredRefinement, RefinementProperties, RefinementRecord
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Answer, Query, keeps_randomness


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

    @property
    def combines(self) -> bool:
        """Whether it uses the estimates of several queries."""
        return is_capable("refinement", self.kind, "queries")


@dataclass(frozen=True)
class RefinementPlan:
    """The refinements to make, and warnings of those left out and why."""

    refinings: tuple[Refining, ...] = ()
    notes: tuple[Note, ...] = ()


def plan_refinements(scenario: Scenario, mechanisms: Mapping[str, LocalMechanism]) -> RefinementPlan:
    """Determine the mechanisms that each refinement applies to, before the simulation.

    Raises
    ------
    ScenarioError
        If a mechanism is named whose queries cannot be combined.
    """
    refinings, notes, faults = [], [], []
    private = [section.name for section in scenario.mechanisms if not is_capable("mechanism", section.kind, "exact")]
    for section in scenario.refinements:
        parameters = section.model_dump(exclude={"name", "kind", "mechanisms"})
        for name in section.mechanisms or private:
            combines = is_capable("refinement", section.kind, "queries")
            reason = _not_combinable(mechanisms[name]) if combines else None
            if reason is None:
                refinings.append(Refining(name, section.name, section.kind, parameters))
            elif section.mechanisms:
                faults.append(Fault(f"refinements.{section.name}.mechanisms", reason, name))
            else:
                place = f"refinements.{section.name}"
                notes.append(warning("not_combinable", f"{place}: leaves out {name}: {reason}", place))
    if faults:
        raise ScenarioError(scenario.name, faults)
    return RefinementPlan(tuple(refinings), tuple(notes))


def _not_combinable(mechanism: LocalMechanism) -> str | None:
    """Return why a mechanism's queries may not be combined; None if they may."""
    if keeps_randomness(mechanism):
        return (
            "its devices reuse their random draws in every query, so its errors are correlated and do not average out"
        )
    try:
        # With this number of devices every cell can be tested at once.
        variance_law(mechanism.std_error, cells=mechanism.cells, devices=4 * mechanism.cells)
    except ParameterError as error:
        return f"no weights can be computed for its queries: its theoretical error {error.rule}"
    return None


def refine_queries(
    plan: RefinementPlan, campaigns: Sequence[Campaign], queries: Sequence[Query]
) -> tuple[list[Query], list[RefinementRecord]]:
    """Return the queries with the refined answers added after their own, and the record of each refinement.

    A refined answer has no rounds, since no device was asked for it. Its `std_error` is the theoretical root mean
    square error: √(drift² + spread²) for a combination, both from the truth; unknown (NaN) for the other refinements.
    """
    added: dict[int, list[Answer]] = {id(query): [] for query in queries}
    records = []
    for refining in plan.refinings:
        mechanisms = {campaign.name: campaign.mechanisms[refining.mechanism] for campaign in campaigns}
        refined = refined_answers(refining, mechanisms, queries)
        for answer in refined:
            std_error = np.hypot(answer.drift, answer.spread)
            added[id(answer.query)].append(Answer(refining.name, answer.estimate, std_error, []))
        records.append(_describe(refining, refined))
    return [replace(query, answers=[*query.answers, *added[id(query)]]) for query in queries], records


@dataclass(frozen=True, eq=False)
class Refined:
    """One answer to a query after a refinement.

    Attributes
    ----------
    query
        The query.
    unrefined, estimate
        The mechanism's own estimate, and the refined one.
    drift, spread
        (cells,) float64: of a combination, in theory and from the truth, the bias and the standard deviation around it,
        given the weights; NaN for the other refinements.
    """

    query: Query
    unrefined: Estimate
    estimate: RefinedEstimate
    drift: FloatArray
    spread: FloatArray


def refined_answers(
    refining: Refining, mechanisms: Mapping[str, LocalMechanism], queries: Sequence[Query]
) -> list[Refined]:
    """Return the refined answers to the queries that a refinement applies to, in their order.

    `mechanisms` has the refined mechanism as each campaign asks it, by campaign.
    """
    if refining.combines:
        return _combined(refining, mechanisms, queries)
    refine, made = constructor_of("refinement", refining.kind), []
    for query, answer, unrefined in refinable(refining, queries):
        asked = answer.asked[mechanisms[query.campaign].truth_round - 1]
        estimate, unknown = refine(unrefined, asked=asked, **refining.parameters), np.full(len(unrefined), np.nan)
        made.append(Refined(query, unrefined, estimate, unknown, unknown))
    return made


def refinable(refining: Refining, queries: Sequence[Query]) -> Iterator[tuple[Query, Answer, Estimate]]:
    """Yield the query, the answer and the estimate of each query that a refinement applies to.

    Speeds are not refined. Values published through a release are refined but not combined: they may be biased, and
    have no variance that holds for every count.
    """
    for query in queries:
        for answer in query.answers if query.statistic == "count" else ():
            left_out = answer.mechanism != refining.mechanism or (answer.published and refining.combines)
            estimate = answer.estimate
            if not left_out and isinstance(estimate, Estimate):
                yield query, answer, estimate


def _combined(refining: Refining, mechanisms: Mapping[str, LocalMechanism], queries: Sequence[Query]) -> list[Refined]:
    """Return the combination of each query with those before it in its campaign."""

    @cache
    def law_of(campaign: str, asked: tuple[int, ...], counted: tuple[int, ...], paired: bool) -> QuadraticVariance:  # noqa: FBT001 - a key
        mechanism = mechanisms[campaign]
        theory = partial(theoretical_std_error, mechanism, asked=asked, counted=counted, paired=paired)
        return variance_law(theory, cells=mechanism.cells, devices=asked[mechanism.truth_round - 1])

    made = []
    seen: dict[str, list[tuple[FloatArray, Answer, Estimate]]] = {}
    for query, answer, estimate in refinable(refining, queries):
        before = seen.setdefault(query.campaign, [])
        before.append((query.truth[1:].astype(np.float64), answer, estimate))
        window = before[-refining.parameters["window"] :]
        combination = combine(
            np.stack([each.count for _, _, each in window]),
            [law_of(query.campaign, each.asked, each.counted, each.paired) for _, each, _ in window],
            asked=answer.asked[mechanisms[query.campaign].truth_round - 1],
        )
        drift = combination.drift(np.stack([truth for truth, _, _ in window]))
        around = spread(combination.weights, np.stack([each.std_error for _, each, _ in window]))
        made.append(Refined(query, estimate, combination.estimate, drift, around))
    return made


def properties_of(refining: Refining) -> Properties:
    """Return the properties that a refinement guarantees, independent of any estimate."""
    nothing = Estimate(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), "exact")
    if refining.combines:
        law = QuadraticVariance(0.0, 0.0, 0.0)
        return combine(nothing.count[np.newaxis], [law], asked=0).estimate.properties
    refined: RefinedEstimate = constructor_of("refinement", refining.kind)(nothing, asked=0, **refining.parameters)
    return refined.properties


MADE = {
    "clip": "counts below 0 set to 0, counts above the number of devices asked set to that number",
    "norm_sub": "counts below 0 set to 0, then one amount subtracted from all others (or added) until the sum is {sum}",
    "norm_mul": "counts below 0 set to 0, then all others multiplied by one factor so that the sum is {sum}",
    "simplex": "the nearest counts that are not below 0 and whose sum is {sum}",
    "combine": "the estimates of the last {window} queries (fewer at first), each weighted by the inverse of its "
    "variance at their pooled count",
}
SUMS = {
    "estimated": "that of the unrefined estimates, limited to the possible range",
    "asked": "the number of devices asked",
}
BIAS = {
    "clip": "too high on average where estimates fall below 0",
    "norm_sub": "too low on average in busy cells, too high in empty ones",
    "norm_mul": "too low on average in busy cells, by a share of them, too high in empty ones",
    "simplex": "too low on average in busy cells, too high in empty ones",
    "combine": "biased by the difference between the count of the last query and those of the earlier ones",
}


def _describe(refining: Refining, refined: Sequence[Refined]) -> RefinementRecord:
    """Return the record in `run.json` of a refinement of one mechanism."""
    properties, parameters = properties_of(refining), refining.parameters
    method = MADE[refining.kind].format(sum=SUMS.get(parameters.get("total", "")), window=parameters.get("window"))
    once = "It is computed from published values only: every claim for {} holds for it too{}."
    several = f", for the views of {parameters.get('window')} queries" if refining.combines else ""
    return RefinementRecord(
        name=refining.name,
        mechanism=refining.mechanism,
        refinement=refining.refinement,
        kind=refining.kind,
        parameters=dict(parameters),
        biased=properties.biased,
        bias=BIAS[refining.kind],
        made_of=f"{refining.mechanism}: {method}",
        keeps=RefinementProperties(
            non_negative=properties.non_negative,
            total=properties.total,
            order=properties.ordered,
            never_worse=properties.never_worse,
        ),
        interval="for counts that did not change" if refining.combines else "that of the unrefined estimate",
        claims=once.format(refining.mechanism, several),
        measured=list(_measured(refining, refined)),
    )


def _measured(refining: Refining, refined: Sequence[Refined]) -> Iterator[MeasuredRefinement]:
    """Yield the mean errors in busy cells and in others by campaign, and the parts of a combination's error."""
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
        parts = {}
        if refining.combines:
            parts["drift_rmse"] = _rms([answer.drift for answer in made])
            parts["spread_rmse"] = _rms([answer.spread for answer in made])
        yield MeasuredRefinement(
            campaign=campaign,
            bias_busy=_mean(error, busy),
            bias_other=_mean(error, ~busy),
            unrefined_bias_busy=_mean(unrefined_error, busy),
            unrefined_bias_other=_mean(unrefined_error, ~busy),
            **parts,
        )


def _mean(error: FloatArray, where: Mask) -> float | None:
    return float(error[where].mean()) if where.any() else None


def _rms(errors: Sequence[FloatArray]) -> float:
    return float(np.sqrt(np.square(errors).mean()))


def refinement_warnings(plan: RefinementPlan, queries: Sequence[Query]) -> list[Note]:
    """Return warnings of refinements left out, and of totals that include devices in no cell."""
    counts = [query for query in queries if query.statistic == "count"]
    speeds = dict.fromkeys(query.campaign for query in queries if query.statistic != "count")
    warnings = list(plan.notes)
    if plan.refinings:
        left_out = (f"refinements: leave out campaign {name}, which asks for speeds" for name in speeds)
        warnings += [warning("speeds_not_refined", text, "refinements") for text in left_out]
    for refining in plan.refinings:
        released = {q.campaign for q in counts for a in q.answers if a.mechanism == refining.mechanism and a.published}
        place = f"refinements.{refining.refinement}"
        why = "what a release published may be biased, and is not combined"
        warnings += [
            warning(
                "release_not_combined", f"{place}: leaves out {refining.mechanism} in campaign {campaign}: {why}", place
            )
            for campaign in sorted(released if refining.combines else ())
        ]
    outside = max((int(query.truth[0]) for query in counts), default=0)
    asked = dict.fromkeys(r.refinement for r in plan.refinings if r.parameters.get("total") == "asked")
    assumption = (
        f'total = "asked" assumes that every device asked is in some cell, but in a query {outside:,} were in '
        "none: they are added to the cells"
    )
    placed = (f"refinements.{name}" for name in asked if outside)
    return [*warnings, *(warning("in_no_cell", f"{place}: {assumption}", place) for place in placed)]
