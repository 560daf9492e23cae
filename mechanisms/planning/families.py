"""Families of mechanisms that can be planned, one row each: its name, dial, parameters, and when it does not apply."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from mechanisms.declared import MECHANISMS, REQUIRED, Declared
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt
from mechanisms.parameter import ParameterError
from mechanisms.planning import shapes
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.search import BUDGET, Dial, Family, find_best
from mechanisms.planning.shapes import PROBABILITY, MakeParameters, best_first_coin, made
from mechanisms.planning.target import RELEASED, Target
from mechanisms.privacy.integer_noise import LARGEST_SCALE

MOST_REFRESHED = 10_000
UNBOUNDED = "and the error would be unbounded."
NO_REFRESH = "No refresh makes it better than sampling_privacy, which has no more error at ρ = 0 and reveals no more."


# Why a family does not apply to a target, or why no parameters meet the target; None where it applies.


def _pure(target: Target) -> bool:
    """Return whether a finite ε is required at δ = 0."""
    return target.epsilon is not None and target.delta == 0.0


def _needs_delta(target: Target) -> str | None:
    if _pure(target) and target.view == "linked_reports":
        linked = "Linked reports reveal the cell with probability π_s at every ε (answers 0, then v)"
        return f"{linked}: δ = 0 would need π_s = 0, {UNBOUNDED}"
    if _pure(target) and target.covers_publication:
        differences = "Differences of a cell are Bin(n, π_s): if all n are sampled, the device was there, so δ ≥ π_s^n"
        return f"{differences} at every ε (n = {target.known_crowd}); δ = 0 would need π_s = 0, {UNBOUNDED}"
    return None


def _not_refreshed(target: Target) -> str | None:
    if target.view.startswith(("report", "shuffled")):
        same = "Refreshing does not change a single round's distribution"
        return f"{same}: for one round it equals sampling_privacy with more error."
    if target.cells > MOST_REFRESHED:
        return f"Its blanks are not searched for more than {MOST_REFRESHED:,} cells, which takes minutes."
    if target.k is not None:
        return "Its published estimate is not a whole number that could be compared with k; suppression is not planned."
    return None


def _best_without_refresh(target: Target) -> Candidate | None:
    return find_best(shapes.sampling, PROBABILITY, target, tuple(shapes.sampling_shapes(target)))


def _score_without_refresh(target: Target) -> float:
    """Return the score of the best sampling_privacy for a privacy target; infinite if there is none."""
    plain = _best_without_refresh(target) if target.error is None else None
    return math.inf if plain is None else plain.score


def _not_reached(target: Target) -> str | None:
    return NO_REFRESH if math.isfinite(_score_without_refresh(target)) else None


def _no_better(target: Target, candidate: Candidate) -> str | None:
    """Return why refresh is not useful if it does not reduce the error, or ε; None if it does."""
    plain = _best_without_refresh(target)
    return None if plain is None or not plain.score <= candidate.score * 1.001 else NO_REFRESH


def _not_suppressed(target: Target) -> str | None:
    if not target.covers_publication or target.view == "released_counts":
        return f"Suppressing what is published hides nothing from {target.view}: see sampling_privacy."
    if target.k is not None:
        return f"k = {target.k} is given: see sampling_privacy, whose differences it suppresses."
    return None


def _not_suppressed_binary(target: Target) -> str | None:
    if target.view in RELEASED:
        return "Its published differences have the distribution of sampling_privacy's: see sampling_privacy_suppressed."
    return _not_suppressed(target)


def _suppressed_elsewhere(target: Target) -> str | None:
    elsewhere = "Its published differences have the distribution of sampling_privacy's; suppression is planned there."
    return None if target.k is None else elsewhere


def _own_vector(target: Target) -> str | None:
    if target.epsilon is None or target.view.startswith("released"):
        return None
    return (
        f"A device's own vector is its cell plus 1/N of the noise: some entry reveals a changed count with about "
        f"ln N = {math.log(target.counted):.3g}, however much noise is added in total. It is private only where no "
        "server sees a vector: behind secret shares."
    )


def _nothing_to_divide(target: Target) -> str | None:
    if target.queries == 1:
        return "The target is about one query: there are none to divide the devices among."
    if target.population < target.queries:
        return f"Of {target.population} devices, divided over {target.queries} queries, less than one answers each."
    return None


def _depends_on_change(target: Target) -> str:
    return _nothing_to_divide(target) or (
        "Its error depends on how much the counts change from query to query, which a target does not state. Where "
        "every query publishes a new estimate, that is made from half of the devices that population_uniform asks."
    )


def _reveals_moves(target: Target) -> str | None:
    if not _pure(target) or target.view != "linked_reports":
        return None
    given = "Some pair of answers is given only by devices in the cell, with the probability of a move"
    return f"{given}: linked reports have no finite ε, and δ = 0 would need no device to move, {UNBOUNDED}"


def _of_servers(target: Target) -> str | None:
    if target.k is not None:
        return "Servers publish noisy counts of all cells; suppression is not planned for them."
    hidden = f"All servers together hold every device's cell: nothing is hidden from {target.view}"
    return None if target.view in {"released", "released_counts"} else f"{hidden}, only from fewer of them."


def _trusted(target: Target) -> str | None:
    hidden = f"A trusted server receives every device's cell: nothing is hidden from {target.view}, only from readers"
    return None if target.view in RELEASED else f"{hidden} of what it publishes."


def _not_gaussian(target: Target) -> str | None:
    no_delta = target.delta == 0.0 and target.view in RELEASED
    return "Gaussian noise has no finite ε: it needs δ > 0." if no_delta else _trusted(target)


def _not_suppressible(target: Target) -> str | None:
    counts = target.view == "released_counts"
    return "What it publishes is a sample's counts: plan for released." if counts else _trusted(target)


def _certain(target: Target) -> str | None:
    certain = "If all k of a crowd of k are sampled, the device was there, so δ ≥ β^k at every ε"
    return f"{certain}: δ = 0 would need no device sampled, {UNBOUNDED}" if _pure(target) else None


# The rows.

COIN, FIRST, EPSILON = PROBABILITY, "the first coin π_1", "the budget ε"
SHIFT = Dial(1e-9, 1.0 - 1e-9, "logit")
# The greatest 1/b has noise of another value than 0 with probability 1e-21.
SCALE = Dial(1.0 / LARGEST_SCALE, 50.0, near=0.3)

_sampling = partial(Family, dial=PROBABILITY, letter="the sampling probability π_s", kind="sampling_privacy")
_suppressing = partial(_sampling, starts=shapes.suppression_shapes, reason=_needs_delta)
_divided = partial(
    Family, dial=BUDGET, letter="the budget ε of all queries", makes=(shapes.divided,), kind="subset_selection"
)
_release = partial(Family, kind="no_privacy")
_laplace, _polya, _gaussian = (
    partial(shapes.noisy, kind=kind) for kind in ("discrete_laplace", "polya", "discrete_gaussian")
)


def _made(name: str, dial: Dial, letter: str, kind: type, parameters: MakeParameters, **rest: Any) -> Family:
    """Return the family of one class, whose parameters depend on the target, the shape and the dial."""
    return Family(name, dial, letter, (made(kind, parameters),), **rest)


_response = partial(_made, guess=best_first_coin)

FAMILIES: tuple[Family, ...] = (
    _sampling("sampling_privacy", makes=(shapes.sampling,), starts=shapes.sampling_shapes, reason=_needs_delta),
    _sampling(
        "sampling_privacy_refreshed",
        makes=(shapes.refreshed,),
        starts=lambda _: [(0.5, 0.5), (0.9, 0.9), (0.5, 0.05)],
        refusal=_not_refreshed,
        reason=_not_reached,
        bound=_score_without_refresh,
        pointless=_no_better,
    ),
    _suppressing("sampling_privacy_suppressed", makes=(shapes.sampling_suppressed,), refusal=_not_suppressed),
    _suppressing(
        "sampling_privacy_binary_suppressed", makes=(shapes.binary_suppressed,), refusal=_not_suppressed_binary
    ),
    _sampling("sampling_privacy_binary", makes=(shapes.binary,), starts=shapes.binary_shapes, reason=_needs_delta),
    Family("randomized_response", COIN, FIRST, (shapes.coins,), starts=shapes.coin_shapes, shared=True),
    _made("warner", Dial(1e-6, 40.0), "the log odds of the truth ln(p/(1 − p))", Warner, shapes.warner),
    _response("sampled_response", COIN, FIRST, SampledResponse, shapes.sampled_response),
    _response("sampling_and_noise", COIN, "π_sYes − π_sNo", SamplingAndNoise, shapes.noise),
    _response("anonymized_local", COIN, "the difference of the coins π_1 − π_3", AnonymizedLocal, shapes.anonymized),
    _made("k_randomized_response", BUDGET, EPSILON, KRandomizedResponse, shapes.budget),
    _made("sue", BUDGET, EPSILON, SymmetricUnary, shapes.budget),
    _made("oue", BUDGET, EPSILON, OptimisedUnary, shapes.budget),
    _made("the", BUDGET, EPSILON, ThresholdHistogram, shapes.threshold, starts=shapes.ends),
    _made("olh", BUDGET, EPSILON, LocalHashing, shapes.buckets, starts=shapes.ends),
    _made("subset_selection", BUDGET, EPSILON, SubsetSelection, shapes.subset_size, starts=shapes.ends),
    _made("hadamard_response", BUDGET, EPSILON, HadamardResponse, shapes.budget),
    Family(
        "longitudinal_unary",
        Dial(1e-6, 45.0),
        "the budget of one report ε₁",
        (made(LongitudinalUnary, shapes.optimised), made(LongitudinalUnary, shapes.symmetric)),
        starts=shapes.permanent_shapes,
    ),
    _made(
        "distributed_laplace", Dial(1e-5, 50.0), EPSILON, DistributedLaplace, shapes.laplace_shares, reason=_own_vector
    ),
    _divided("population_uniform", refusal=_nothing_to_divide),
    _divided("population_absorption", refusal=_depends_on_change),
    _made(
        "anonymized_first_attempt",
        SHIFT,
        "twice π_Y",
        AnonymizedFirstAttempt,
        shapes.first_attempt,
        starts=shapes.first_attempt_shapes,
    ),
    _made(
        "anonymized_cancelling",
        SHIFT,
        "the shift π_Y",
        AnonymizedCancelling,
        shapes.cancelling,
        # If rounds are observed separately, ⊥3 hides no device.
        starts=lambda target: [(0.0,)] if target.view.startswith(("report", "shuffled")) else [(1 / 3,)],
        refusal=_suppressed_elsewhere,
        reason=_reveals_moves,
    ),
    _response(
        "anonymized_deniable",
        SHIFT,
        "the asymmetry of the moves of Yes-holders",
        AnonymizedDeniable,
        shapes.deniable,
        starts=shapes.deniable_shapes,
    ),
    _release(
        "sample_then_suppress",
        COIN,
        "the sampling probability β",
        (shapes.suppressed,),
        starts=shapes.found_threshold,
        refusal=_not_suppressible,
        reason=_certain,
    ),
    _release("server_noise", SCALE, "1/σ or 1/b of the noise", (_laplace, _polya, _gaussian), refusal=_of_servers),
    _release("gaussian_counts", SCALE, "1/σ", (partial(_gaussian, trusted=True),), refusal=_not_gaussian),
    _release("laplace_counts", Dial(1e-6, 50.0), EPSILON, (shapes.laplace,), refusal=_trusted),
)
"""All families, in the order of a plan."""

SLOW = frozenset({"anonymized_deniable", "sampling_privacy_refreshed"})
"""Families whose search takes seconds and which are never better than a simpler family of the same views."""

TITLES: Mapping[str, str] = {each.kind: each.title for each in MECHANISMS} | {
    "sampling_privacy_refreshed": "Sampling Privacy, some blanks drawn anew",
    "sampling_privacy_suppressed": "Sampling Privacy, small differences suppressed",
    "sampling_privacy_binary_suppressed": "Sampling Privacy by yes/no, small differences suppressed",
    "sampling_privacy_binary": "Sampling Privacy, yes/no for each cell",
    "population_uniform": "Subset selection, each device answers one of the queries",
    "population_absorption": "Subset selection, each device answers at most one of the queries",
    "sample_then_suppress": "Counts of a sample, small ones suppressed",
    "server_noise": "Noise that each server adds",
    "gaussian_counts": "Gaussian noise on the counts",
    "laplace_counts": "Laplace noise on the counts",
}
"""The name of each family in plain words."""


def own_family(kind: str, make: Callable[..., Any]) -> Family:
    """Return the family of a user's own mechanism, which its class declares (`mechanisms.declared`).

    Parameters
    ----------
    kind : str
        Its kind in a scenario file, ``package.module:Class``.
    make : callable
        The class; its parameters other than the dial have their defaults.

    Raises
    ------
    ParameterError
        If the class declares no parameter that a planner sets, or another one has no default.
    """
    own: Declared = getattr(make, "declared", Declared())
    dial = own.dial
    if dial is None or dial.dial is None:
        raise ParameterError("mechanism", "must declare a parameter with a dial to be planned", kind)
    others = [parameter.name for parameter in own.parameters if parameter.default is REQUIRED and parameter != dial]
    if others:
        raise ParameterError("mechanism", f"must have a default for {', '.join(others)} to be planned", kind)
    low, high = (COIN.low, COIN.high) if dial.least is None or dial.most is None else (dial.least, dial.most)

    searched, makes = Dial(low, high, dial.dial), (made(make, lambda _, __, value: {dial.name: value}),)
    return Family(kind.rpartition(":")[2], searched, f"the parameter {dial.name}", makes, kind=kind)


def family_names() -> tuple[str, ...]:
    """Return the names of all families, in order."""
    return tuple(family.name for family in FAMILIES)


def families_named(
    names: tuple[str, ...] = (), own: Mapping[str, Callable[..., Any]] = MappingProxyType({})
) -> tuple[Family, ...]:
    """Return the families of these names, and then of a user's own classes; all built-in ones if none is given.

    A name that is no family's selects all families of that kind.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind.
    """
    added = tuple(own_family(kind, make) for kind, make in own.items())
    if not names:
        return added or FAMILIES
    chosen: set[str] = set()
    for name in names:
        of_kind = {family.name for family in FAMILIES if family.kind == name}
        if name not in family_names() and not of_kind:
            raise ParameterError("mechanism", f"must be one of {', '.join(family_names())}", name, family_names())
        chosen |= {name} if name in family_names() else of_kind
    return (*(family for family in FAMILIES if family.name in chosen), *added)
