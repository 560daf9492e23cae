"""Planner: searches every family of mechanisms for one target."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import error_interval, excess_kurtosis
from mechanisms.planning.families import families_named
from mechanisms.planning.plan import Plan, PlannedClaim, Planning
from mechanisms.planning.search import Family
from mechanisms.planning.target import Target
from mechanisms.planning.view_bound import ViewBound, tell_once
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shuffled, View

# A plan for an error target without a finite ε states δ at this ε.
SHOWN_EPSILON = 1.0


def plan(target: Target, mechanisms: Sequence[str] = (), *, claims: bool = True) -> Planning:
    """Return, for every mechanism, the parameters that meet a target with the least error, or why none do.

    For an error target, return the parameters of least ε at the target's δ.

    Parameters
    ----------
    target : Target
    mechanisms : sequence of str
        Names of families, or kinds of mechanisms; all by default.
    claims : bool
        Whether to compute the claims about all views too, and the least ε of the target's view.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind.
    """
    families = families_named(tuple(mechanisms))
    return Planning(target, tuple(_plan(family, target, claims=claims) for family in families))


def _plan(family: Family, target: Target, *, claims: bool) -> Plan:
    """Return one family's plan."""
    refusal = family.refusal(target)
    if refusal is not None:
        return Plan(family.name, family.kind, meets=False, reason=refusal)
    found = family.best(target)
    found = None if found is None else _finished(family, found)
    if found is None:
        reason = family.reason(target) or _why_none(family, target)
        return Plan(family.name, family.kind, meets=False, reason=reason)
    if math.isinf(found.std_error):
        reason = f"Met only with {family.letter} = {found.dial:.4g}, where the answers say nothing to estimate from."
        return Plan(family.name, family.kind, meets=False, reason=reason)
    pointless = family.pointless(target, found)
    if pointless is not None:
        return Plan(family.name, family.kind, meets=False, reason=pointless)
    shown = found.target
    kurtosis = excess_kurtosis(found.mechanism, shown) if found.excess_kurtosis is None else found.excess_kurtosis
    return Plan(
        family.name,
        family.kind,
        meets=True,
        reason=_remark(family, found),
        parameters=dict(found.parameters),
        release=found.release,
        std_error=found.std_error,
        error_interval=error_interval(found.std_error, cells=shown.simulated, excess=kurtosis),
        excess_kurtosis=kurtosis,
        epsilon=found.epsilon if claims or target.error is not None else math.nan,
        claims=_claims(found) if claims else (),
        cut_short=found.cut_short,
        mechanism=found.mechanism,
    )


def _finished(family: Family, found: Candidate) -> Candidate | None:
    """Return the candidate with a mechanism in place of its sketch, or None if that does not meet the target."""
    if family.finish is None:
        return found
    finished = replace(found, mechanism=family.finish(found.target, found.parameters))
    return finished if finished.excess <= 1e-9 else None


def _why_none(family: Family, target: Target) -> str:
    """Return why no value of the dial meets the target, with the error or δ at the end of its range."""
    if target.error is not None:
        most = family.most_telling(target)
        least = math.inf if most is None else most.std_error
        return f"Even with {family.letter} = {family.dial.high:g} its error is {least:.4g} vehicles."
    candidate = family.least_telling(target)
    if candidate is None:
        return "No parameters in reach meet it."
    for told in candidate.told:
        if told.kind == "infinite" and target.delta == 0.0:
            return f"No finite ε holds for {told.view.name}, so δ = 0 is out of reach: {told.own.basis}"
        if math.isnan(told.delta(target.epsilon or 0.0)[0]):
            return f"What {told.view.name} tells is not known: {told.own.basis}"
    found = candidate.delta(target.epsilon or 0.0)
    return (
        f"Even with {family.letter} = {family.dial.low:g}, where its error is {candidate.std_error:.4g} vehicles, "
        f"{target.view} has δ = {found:.3g} at ε = {target.epsilon:g}."
    )


def _remark(family: Family, found: Candidate) -> str | None:
    """Return a remark on a plan that meets its privacy target, if its error is at least the occupancy; else None."""
    target = found.target
    if target.error is not None or found.std_error < max(target.expected, 1):
        return None
    grown = target.truth.copy()
    grown[0] += 99 * target.population
    grows = ""
    if found.error is None:
        growth = float(found.mechanism.std_error(grown)[0]) / found.std_error
        grows = ", and it grows as √N" if growth > 9.0 else ", however many are asked" if growth < 1.01 else ""
    return (
        f"Met only with {family.letter} = {found.dial:.4g}, where the error is {found.std_error:,.4g} vehicles in a "
        f"cell of {target.expected:,}{grows}: to answer 0 everywhere errs less."
    )


def _claims(found: Candidate) -> tuple[PlannedClaim, ...]:
    """Return two claims for every view: ε at δ = 0, and δ at the target's ε."""
    target = found.target
    epsilon = target.epsilon
    if epsilon is None:
        epsilon = found.epsilon if math.isfinite(found.epsilon) else SHOWN_EPSILON
    rows: list[PlannedClaim] = []
    for view in _views(found):
        told = tell_once(found.mechanism, view, devices=target.population)
        delta, delta_kind = told.delta(epsilon)
        rows += [_row(told, told.epsilon, _at_none(told), told.kind), _row(told, epsilon, delta, delta_kind)]
    return tuple(rows)


def _at_none(told: ViewBound) -> float:
    """Return 0, the δ of the first claim of a view, or NaN if nothing is known."""
    return math.nan if told.kind == "unknown" else 0.0


def _views(found: Candidate) -> list[View]:
    """Return every view of the mechanism, each once."""
    target, rounds = found.target, found.mechanism.rounds
    views: list[View] = [Report(round_, target.queries) for round_ in range(1, rounds + 1)]
    views.append(LinkedReports(target.queries))
    if found.differences:
        crowd = target.crowd if target.k is not None else target.known_crowd
        views.append(ReleasedDifferences(crowd, target.k, target.queries))
    views.append(ReleasedCounts(target.known_crowd, target.queries))
    views += [Shuffled(round_, target.population, target.queries) for round_ in range(1, rounds + 1)]
    return views


def _row(told: ViewBound, epsilon: float, delta: float, kind: str) -> PlannedClaim:
    view = told.view
    numbers = {field: getattr(view, field, None) for field in ("crowd", "k", "devices")}
    return PlannedClaim(
        view=view.name,
        queries=view.queries,
        **numbers,
        epsilon=epsilon if not np.isnan(epsilon) else math.nan,
        delta=delta,
        kind=kind,
        basis=told.basis,
    )
