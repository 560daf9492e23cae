"""Refine: rows of their own for what is made of estimates afterwards."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.local import Counts, Estimate, LocalMechanism, NoMemory, ParameterError, QuadraticVariance
from mechanisms.refinement import (
    Combination,
    Properties,
    RefinedEstimate,
    clip,
    combine,
    norm_mul,
    norm_sub,
    simplex,
    spread,
    variance_law,
)
from scenarios import Fault, Scenario, ScenarioError
from simulator.aggregation.pairing import paired_std_error
from simulator.sensing.query import Answer, Query
from simulator.streams import Streams

PROJECTIONS: Mapping[str, Callable[..., RefinedEstimate]] = {
    "clip": clip,
    "norm_sub": norm_sub,
    "norm_mul": norm_mul,
    "simplex": simplex,
}

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Refining:
    """One refinement of one mechanism.

    Attributes
    ----------
    mechanism, refinement
        Their names in the scenario.
    kind
        The refinement's.
    parameters
        What it is made with.
    """

    mechanism: str
    refinement: str
    kind: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The mechanism's name in the tables; no name in a scenario holds a plus sign."""
        return f"{self.mechanism}+{self.refinement}"


@dataclass(frozen=True)
class Plan:
    """What is refined, and what was left out and why, in plain words."""

    refinings: tuple[Refining, ...] = ()
    notes: tuple[str, ...] = ()


def plan_refinements(scenario: Scenario, mechanisms: Mapping[str, LocalMechanism], *, streams: Streams) -> Plan:
    """Say which mechanisms each refinement is of, before anything is simulated.

    Raises
    ------
    ScenarioError
        If a mechanism is named whose queries cannot be combined.
    """
    refinings, notes, faults = [], [], []
    private = [section.name for section in scenario.mechanisms if section.kind != "no_privacy"]
    for section in scenario.refinements:
        parameters = section.model_dump(exclude={"name", "kind", "mechanisms"})
        for name in section.mechanisms or private:
            reason = _not_combinable(mechanisms[name], name, streams) if section.kind == "combine" else None
            if reason is None:
                refinings.append(Refining(name, section.name, section.kind, parameters))
            elif section.mechanisms:
                faults.append(Fault(f"refinements.{section.name}.mechanisms", reason, name))
            else:
                notes.append(f"refinements.{section.name}: leaves out {name}: {reason}")
    if faults:
        raise ScenarioError(scenario.name, faults)
    return Plan(tuple(refinings), tuple(notes))


def _not_combinable(mechanism: LocalMechanism, name: str, streams: Streams) -> str | None:
    """Return why a mechanism's queries may not be combined; None if they may."""
    if not isinstance(mechanism.enrol(1, rng=streams.of("refinement", name)), NoMemory):
        return "its devices keep what they drew from query to query, so its errors are alike and do not average out"
    try:
        # So many devices that every cell can be tried at once.
        variance_law(mechanism.std_error, cells=mechanism.cells, devices=4 * mechanism.cells)
    except ParameterError as error:
        return f"its queries cannot be weighed: its theory {error.rule}"
    return None


def refine_queries(plan: Plan, mechanisms: Mapping[str, LocalMechanism], queries: Sequence[Query]) -> list[Query]:
    """Return the queries with the refined answers after their own.

    A refined answer has no rounds, since nobody was asked for it. Its `std_error` is what theory knows of the root
    mean square error: for a combination √(drift² + spread²), both from the truth; for the others nothing, NaN.
    """
    refined: list[list[Answer]] = [[] for _ in queries]
    for refining in plan.refinings:
        mechanism = mechanisms[refining.mechanism]
        if refining.kind == "combine":
            for place, combined in combinations(refining, mechanism, queries).items():
                refined[place].append(Answer(refining.name, combined.combination.estimate, combined.rms_error, []))
            continue
        for place, answer, estimate in refinable(refining, queries):
            asked = answer.rounds[mechanism.truth_round - 1].asked
            made = PROJECTIONS[refining.kind](estimate, asked=asked, **refining.parameters)
            refined[place].append(Answer(refining.name, made, np.full(len(made), np.nan), []))
    return [
        replace(query, answers=[*query.answers, *more]) if more else query
        for query, more in zip(queries, refined, strict=True)
    ]


def refinable(refining: Refining, queries: Sequence[Query]) -> Iterator[tuple[int, Answer, Estimate]]:
    """Yield the place, the answer and the estimate of each query that a refinement is of.

    Speeds are not refined. What a release published is, but not combined: it may be biased, and has no variance that
    holds for every count.
    """
    for place, query in enumerate(queries):
        for answer in query.answers if query.statistic == "count" else ():
            left_out = answer.mechanism != refining.mechanism or (answer.published and refining.kind == "combine")
            estimate = answer.estimate
            if not left_out and isinstance(estimate, Estimate):
                yield place, answer, estimate


@dataclass(frozen=True, eq=False)
class Combined:
    """One query's combination with those before it, and its error in theory.

    Attributes
    ----------
    combination
        As the aggregator makes it.
    drift, spread
        (cells,) float64, from the truth: the bias, and the standard deviation around it.
    """

    combination: Combination
    drift: FloatArray
    spread: FloatArray

    @property
    def rms_error(self) -> FloatArray:
        """The root mean square error, (cells,), given the weights."""
        error: FloatArray = np.hypot(self.drift, self.spread)
        return error


def combinations(refining: Refining, mechanism: LocalMechanism, queries: Sequence[Query]) -> dict[int, Combined]:
    """Return the combination of each query with those before it in its campaign, by place in `queries`."""
    laws: dict[tuple[tuple[int, ...], tuple[int, ...], bool], QuadraticVariance] = {}

    def law_of(answer: Answer) -> QuadraticVariance:
        asked, counted = zip(*((account.asked, account.counted) for account in answer.rounds), strict=True)
        key = asked, counted, answer.paired
        if key not in laws:
            theory = partial(_std_error, mechanism, asked=asked, counted=counted, paired=answer.paired)
            laws[key] = variance_law(theory, cells=mechanism.cells, devices=asked[mechanism.truth_round - 1])
        return laws[key]

    made = {}
    seen: dict[str, list[tuple[FloatArray, Answer, Estimate]]] = {}
    for place, answer, estimate in refinable(refining, queries):
        before = seen.setdefault(queries[place].campaign, [])
        before.append((queries[place].truth[1:].astype(np.float64), answer, estimate))
        window = before[-refining.parameters["window"] :]
        combination = combine(
            np.stack([each.count for _, _, each in window]),
            [law_of(each) for _, each, _ in window],
            asked=answer.rounds[mechanism.truth_round - 1].asked,
        )
        drift = combination.drift(np.stack([truth for truth, _, _ in window]))
        made[place] = Combined(
            combination, drift, spread(combination.weights, np.stack([each.std_error for _, each, _ in window]))
        )
    return made


def _std_error(
    mechanism: LocalMechanism, truth: Counts, *, asked: Sequence[int], counted: Sequence[int], paired: bool
) -> FloatArray:
    """Return theory's standard error from the truth, as the aggregator has it."""
    if paired:
        return paired_std_error(mechanism, truth, paired=counted[0])
    return mechanism.std_error(truth, asked=asked, counted=counted)


def properties_of(refining: Refining) -> Properties:
    """Return what a refinement promises, without anything to refine."""
    nothing = Estimate(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1), "exact")
    if refining.kind == "combine":
        law = QuadraticVariance(0.0, 0.0, 0.0)
        return combine(nothing.count[np.newaxis], [law], asked=0).estimate.properties
    return PROJECTIONS[refining.kind](nothing, asked=0, **refining.parameters).properties
