"""Planner: searches every family of mechanisms for one target; a plan has parameters, or the reason for none."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar

import tomli_w

from mechanisms.declared import Declared
from mechanisms.local.yes_no_rounds import AnonymizedDeniable
from mechanisms.parameter import ParameterWarning
from mechanisms.planning.candidate import Candidate, bound_view
from mechanisms.planning.error_distribution import error_interval, excess_kurtosis
from mechanisms.planning.families import TITLES, families_named
from mechanisms.planning.search import NEAR, Family
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, View


@dataclass(frozen=True)
class PlanRecord:
    """A dataclass with a JSON form: its fields in order, null for a number that is infinite or not known."""

    left_out: ClassVar[frozenset[str]] = frozenset()
    """Fields that the form does not have."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _jsonable(value) for name, value in named.items() if name not in self.left_out}


def _jsonable(value: Any) -> Any:
    """Return a value without numbers that JSON cannot represent."""
    if isinstance(value, PlanRecord):
        return value.to_dict()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _jsonable(each) for key, each in value.items()}
    return [_jsonable(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Plan(PlanRecord):
    """Parameters of one mechanism that meet a target, or the reason that none do.

    Parameters
    ----------
    name : str
        Name of the mechanism's family: its kind, and which form of it.
    kind : str
        Its kind in a scenario file.
    parameters : mapping
        As in a scenario file; empty if none meet the target.
    release : mapping, optional
        What is done before publishing, as in a scenario file's ``[release]``; None for nothing.
    aggregation : mapping, optional
        The servers that it relies on, as in a scenario file's ``[aggregation]``; None if any will do.
    budget : mapping, optional
        The budget of the campaign over several queries, as in a scenario file's ``[[campaigns]]``; None if each query
        has its own.
    meets : bool
        Whether these parameters meet the target.
    reason : str, optional
        Why no parameters meet the target; or, if some do, a remark on them.
    std_error : float
        Root mean square error of a cell of the target's occupancy, in vehicles; NaN if no parameters meet the target.
    better_than_zero : bool, optional
        Whether that error is less than the error of an estimate of 0 everywhere, the occupancy (or 1 for an empty
        cell); None if no parameters meet the target.
    error_interval : (lower, upper) of float
        The interval that holds the error of a simulation of `target.simulated` cells with probability 95 %.
    excess_kurtosis : float
        Excess kurtosis of that error, which widens the interval if the tails are heavier than normal.
    epsilon : float
        The least ε known for the target's view, at the target's δ; infinite if none is, NaN without claims.
    crowd : int, optional
        Devices in the cell that the claim about the target's view relies on; None if it holds for any truths of the
        others.
    covers : sequence of str
        Names of the views for which the target is met, each by itself.
    full_error : float
        Root mean square error of a cell that holds all devices, with nobody outside it.
    errors : sequence of float
        Root mean square errors of cells of the counts asked about.
    unlike_name : str, optional
        How far the parameters are from what the name suggests, in words.
    claims : sequence of Claim
        About every view, with δ listed at the target's ε.
    cut_short : str, optional
        If the search for these parameters was cut short: after how many candidates, and how much the last ones
        improved the result.
    mechanism : object
        The mechanism itself; None if no parameters meet the target, or if the plan was kept or sent.
    """

    left_out = frozenset({"name", "mechanism", "excess_kurtosis", "errors"})

    name: str
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    release: Mapping[str, Any] | None = None
    aggregation: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] | None = None
    meets: bool = False
    reason: str | None = None
    std_error: float = math.nan
    better_than_zero: bool | None = None
    error_interval: tuple[float, float] = (math.nan, math.nan)
    excess_kurtosis: float = math.nan
    epsilon: float = math.nan
    crowd: int | None = None
    covers: Sequence[str] = ()
    full_error: float = math.nan
    errors: Sequence[float] = ()
    unlike_name: str | None = None
    claims: Sequence[Claim] = ()
    cut_short: str | None = None
    mechanism: Any = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the mechanism, since not every mechanism can be kept or sent."""
        return {**self.__dict__, "mechanism": None}

    @property
    def sections(self) -> dict[str, Any]:
        """Sections of a scenario: the mechanism, and the release, servers and budget of a campaign that it needs."""
        release = None if self.release is None else {**self.release, "mechanisms": [self.name]}
        budget = None if self.budget is None else {"budget": dict(self.budget)}
        needed = {"release": release, "aggregation": self.aggregation, "campaigns": budget}
        mechanism = {"name": self.name, "kind": self.kind, **self.parameters}
        return {"mechanisms": [mechanism]} | {name: dict(each) for name, each in needed.items() if each is not None}

    @property
    def scenario(self) -> str | None:
        """Text for a scenario file: the mechanism, and the release, servers and budget it needs; None if not met."""
        if not self.meets:
            return None
        # Written table by table: one call would put arrays of small tables on one line.
        sections = self.sections
        written = ["[[mechanisms]]\n" + tomli_w.dumps(sections.pop("mechanisms")[0])]
        for name, section in sections.items():
            begin = f"[[campaigns]]\nqueries = {section['budget']['window']}\n\n" if name == "campaigns" else ""
            written.append(begin + tomli_w.dumps({name: section}))
        return "\n".join(written)

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the mechanism and of its release, servers' noise or budget, if there are any."""
        given = self.release or self.budget or {}
        if self.aggregation is not None:
            noise = dict(self.aggregation["noise"])
            servers = {"servers": self.aggregation["servers"]} if "servers" in self.aggregation else {}
            given = {**servers, "noise": noise.pop("kind"), **noise}
        return {**self.parameters, **{key: value for key, value in given.items() if key != "kind"}}

    @property
    def title(self) -> str:
        """The mechanism's name in plain words; of a user's own, what it declares."""
        own: Declared = getattr(self.mechanism, "declared", Declared())
        return TITLES.get(self.name, own.title)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the text for a scenario file."""
        form = {"mechanism": self.name, "title": self.title, **super().to_dict(), "scenario": self.scenario}
        form["claims"] = [row for claim in self.claims for row in _rows(claim)]
        return form if self.meets else {**form, "error_interval": None}


@dataclass(frozen=True)
class Planning:
    """Every mechanism's plan for one target.

    Parameters
    ----------
    target : Target
    plans : sequence of Plan
        In the order of the families.
    """

    target: Target
    plans: Sequence[Plan]

    @property
    def best(self) -> Plan | None:
        """The plan of least error, or of least ε for an error target; None if it errs no less than an estimate of 0."""
        return _of_use(self.least)

    @property
    def best_without_crowd(self) -> Plan | None:
        """The best plan among those whose claim relies on no crowd that the target does not guarantee."""
        return _of_use(self.least_without_crowd)

    @property
    def least(self) -> Plan | None:
        """The plan of least error, or of least ε for an error target, of use or not; None if none meets the target."""
        return self._least([plan for plan in self.plans if plan.meets])

    @property
    def least_without_crowd(self) -> Plan | None:
        """The same among those whose claim relies on no crowd that the target does not guarantee."""
        return self._least([plan for plan in self.plans if plan.meets and plan.crowd in {None, self.target.crowd}])

    def _least(self, meeting: Sequence[Plan]) -> Plan | None:
        if self.target.error is None:
            return min(meeting, key=lambda plan: plan.std_error, default=None)
        return min(meeting, key=lambda plan: (plan.epsilon, plan.std_error), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `better_than_zero` is null if no mechanism meets the target."""
        best, alone, least = self.best, self.best_without_crowd, self.least
        return {
            "target": asdict(self.target),
            "plans": [plan.to_dict() for plan in self.plans],
            "best": None if best is None else best.name,
            "best_without_crowd": None if alone is None else alone.name,
            "better_than_zero": None if least is None else least.better_than_zero,
        }


def _of_use(made: Plan | None) -> Plan | None:
    """Return a plan that errs less than an estimate of 0 everywhere; else None."""
    return made if made is not None and made.better_than_zero else None


# A report's ε that is this many times the target's is far from it.
FAR = 2.0
# Most devices counted, and most certain to be in the cell, in claims about views that are not the target's.
MOST_CLAIMED, MOST_CERTAIN = 10**7, 10**5
# A plan for an error target without a finite ε states δ at this ε.
SHOWN_EPSILON = 1.0


def plan(
    target: Target,
    mechanisms: Sequence[str] = (),
    *,
    own: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    claims: bool = True,
    best_only: bool = False,
    limit: float = math.inf,
    occupancies: Sequence[int] = (),
    progress: Callable[[float], object] = lambda _: None,
) -> Planning:
    """Return, for every mechanism, the parameters that meet a target with the least error, or why none do.

    For an error target, return the parameters of least ε at the target's δ.

    Parameters
    ----------
    target : Target
    mechanisms : sequence of str
        Names of families, or kinds of mechanisms; all by default.
    own : mapping of str to class, optional
        A user's own mechanisms by their kind, ``package.module:Class``; each declares a parameter with a dial
        (`mechanisms.declared`).
    claims : bool
        Whether to compute the claims about all views too, and the least ε of the target's view.
    best_only : bool
        Whether a mechanism may be left out if its error is above the error of the best that relies on no crowd.
    limit : float
        An error above which a mechanism may be left out.
    occupancies : sequence of int
        Counts of cells for which each plan states its error too.
    progress : callable
        Is called after each mechanism with its share of the work; the shares add up to 1.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind, or a class of the user's declares nothing to be set.
    """
    families = families_named(tuple(mechanisms), own)
    plans: list[Plan] = []
    with warnings.catch_warnings():
        # A search tries parameters that the papers advise against.
        warnings.simplefilter("ignore", ParameterWarning)
        # Those without a search come first, so that their error limits the searches.
        for family in sorted(families, key=lambda family: best_only and family.is_searched):
            alone = Planning(target, plans).least_without_crowd if best_only and target.error is None else None
            within = limit if alone is None else min(limit, NEAR * alone.std_error)
            plans.append(_plan(family, target, occupancies, claims=claims, limit=within))
            progress(1 / len(families))
    places = {family.name: place for place, family in enumerate(families)}
    return Planning(target, tuple(sorted(plans, key=lambda plan: places[plan.name])))


def _plan(family: Family, target: Target, occupancies: Sequence[int], *, claims: bool, limit: float) -> Plan:
    """Return one family's plan, which need not be found if its error is above a limit."""
    reason = family.refusal(target)
    best = family.best(target, limit) if reason is None else None
    if best is None and limit < math.inf:
        reason = reason or "Its error is above that of another mechanism."
    if best is None:
        reason = reason or family.reason(target) or _why_none(family, target)
    elif math.isinf(best.std_error):
        reason = f"Met only with {family.letter} = {best.dial:.4g}, where the answers do not depend on the truth."
    else:
        reason = family.pointless(target, best)
    if best is None or reason is not None:
        return Plan(family.name, family.kind, reason=reason)
    shown = best.target
    kurtosis = excess_kurtosis(best.mechanism, shown) if best.excess_kurtosis is None else best.excess_kurtosis()
    return Plan(
        family.name,
        family.kind,
        meets=True,
        reason=_remark(family, best),
        parameters=dict(best.parameters),
        release=best.release,
        aggregation=best.aggregation,
        budget=best.budget,
        std_error=best.std_error,
        better_than_zero=best.std_error < max(target.expected, 1),
        error_interval=error_interval(best.std_error, cells=shown.simulated, excess=kurtosis),
        excess_kurtosis=kurtosis,
        epsilon=best.epsilon if claims or target.error is not None else math.nan,
        crowd=max((crowd for view in best.views if (crowd := getattr(view, "crowd", None))), default=None),
        covers=tuple(view.name for view in best.views),
        full_error=best.error_at(target.population, target.population),
        errors=tuple(best.error_at(count, target.population) for count in occupancies),
        unlike_name=_unlike_name(best),
        claims=_claims(best) if claims else (),
        cut_short=best.cut_short,
        mechanism=best.mechanism,
    )


def _why_none(family: Family, target: Target) -> str:
    """Return why no value of the dial meets the target, with the error or δ at the end of its range."""
    if target.error is not None:
        least = family.at(target, family.dial.high).std_error
        return f"Even with {family.letter} = {family.dial.high:g} its error is {least:.4g} vehicles."
    candidate = family.at(target, family.dial.low)
    for view, bound in zip(candidate.views, candidate.bounds, strict=True):
        own = candidate.mechanism.claim(view)
        if bound.kind == "infinite" and target.delta == 0.0:
            return f"No finite ε holds for {view.name}, so δ = 0 is impossible: {own.basis}"
        if bound.kind == "unknown":
            return f"What {view.name} reveals is not known: {own.basis}"
    reached = candidate.delta(target.epsilon or 0.0)
    return (
        f"Even with {family.letter} = {family.dial.low:g}, where its error is {candidate.std_error:.4g} vehicles, "
        f"{target.view} has δ = {rounded_up(reached)} at ε = {target.epsilon:g}."
    )


def _remark(family: Family, best: Candidate) -> str | None:
    """Return a remark on a plan that meets its privacy target, if its error is at least the occupancy; else None."""
    target = best.target
    if target.error is not None or best.std_error < max(target.expected, 1):
        return None
    grows = ""
    if best.error is None:
        growth = best.error_at(target.expected, 100 * target.population) / best.std_error
        grows = (
            ", and it grows as √N" if growth > 9.0 else ", for any number of queried devices" if growth < 1.01 else ""
        )
    return (
        f"Met only with {family.letter} = {best.dial:.4g}, where the error is {best.std_error:,.4g} vehicles in a "
        f"cell of {target.expected:,}{grows}: an estimate of 0 everywhere has less error."
    )


def _unlike_name(best: Candidate) -> str | None:
    """Return how far the parameters are from what the mechanism's name suggests; None if they are not."""
    mechanism, target = best.mechanism, best.target
    if (
        isinstance(mechanism, AnonymizedDeniable)
        and min(mechanism.shift, mechanism.onward, mechanism.onward_yes) > 0.99
    ):
        return "nearly randomized_response: nearly all devices move, and on to ⊥2"
    budget = best.parameters.get("epsilon", best.parameters.get("epsilon_first"))
    epsilon = best.epsilon if target.epsilon is None else target.epsilon
    if budget is None or not budget > FAR * epsilon:
        return None
    where = f"δ = {target.delta:g}" if target.view.startswith(("linked", "report")) else "the reports of others"
    return f"far from its name: its reports have ε = {rounded_up(budget)}; the target is met only with {where}"


def _claims(best: Candidate) -> tuple[Claim, ...]:
    """Return the claim about every view, with δ listed at the target's ε."""
    # Claims about many devices take minutes; those about fewer hold for them too.
    target = replace(best.target, batch=min(best.target.counted, MOST_CLAIMED))
    of_target = {view.name: view for view in best.views}
    epsilon = target.epsilon
    if epsilon is None:
        epsilon = best.epsilon if math.isfinite(best.epsilon) else SHOWN_EPSILON
    claims: list[Claim] = []
    for possible in _views(replace(best, target=target)):
        view = of_target.get(possible.name) or _with_few(possible)
        devices = best.target.counted if possible.name in of_target else target.counted
        claims.append(bound_view(best.mechanism, view, devices=devices).listed(epsilon))
    return tuple(claims)


def _with_few(view: View) -> View:
    """Return the view for fewer devices certain to be in the cell, if there are many: its claim holds for more."""
    if not isinstance(view, ReleasedCounts | ReleasedDifferences) or (view.crowd or 1) <= MOST_CERTAIN:
        return view
    if isinstance(view, ReleasedDifferences) and view.other_crowd is not None:
        return replace(view, crowd=MOST_CERTAIN, other_crowd=MOST_CERTAIN)
    return replace(view, crowd=MOST_CERTAIN)


def _views(best: Candidate) -> list[View]:
    """Return every view of the mechanism, each once."""
    target, rounds = best.target, best.mechanism.rounds
    numbers = range(1, rounds + 1)
    views: list[View] = [target.round_view(number, shuffled=False) for number in numbers]
    views.append(target.linked_view)
    if best.differences:
        views.append(target.differences_view)
    views.append(target.counts_view(differences=best.differences))
    return [*views, *(target.round_view(number, shuffled=True) for number in numbers)]


def _rows(claim: Claim) -> Iterator[dict[str, Any]]:
    """Yield the JSON form of a claim: ε at δ = 0, unknown where no finite ε is known, then δ at the target's ε."""
    shuffled = claim.family == "shuffled"
    about: dict[str, Any] = {"view": claim.view, "adjacency": claim.adjacency, "queries": claim.queries}
    about |= {"crowd": None if shuffled else claim.crowd, "k": claim.k, "devices": claim.crowd if shuffled else None}
    always = "unknown" if claim.kind == "bound" and math.isinf(claim.epsilon) else claim.kind
    rows = [(claim.epsilon, 0.0, always), *((*point, claim.delta_kind) for point in claim.points)]
    for epsilon, delta, kind in rows:
        known = math.nan if kind == "unknown" else delta
        yield {**about, **_jsonable({"epsilon": epsilon, "delta": known}), "kind": kind, "basis": claim.basis}
