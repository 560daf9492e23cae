"""Planned families of one-round mechanisms and of *Anonymized Local Privacy*, and the table of all families."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from scipy.special import expit

from mechanisms.declared import MECHANISMS, MOST_BUCKETS, REQUIRED, Declared
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary, PermanentStep
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, RandomizedResponse, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt
from mechanisms.parameter import ParameterError
from mechanisms.planning.budget_families import DIVIDED
from mechanisms.planning.candidate import Candidate, PlannableMechanism
from mechanisms.planning.sampling_families import RELEASES, SAMPLING, suppressed_elsewhere
from mechanisms.planning.search import BUDGET, Dial, Family, Make, Shape, find_best
from mechanisms.planning.target import Target

COIN = Dial(1e-12, 1.0, "logit")
FIRST = "the first coin π_1"
# The second coin's probability is searched between odds of e^−30 and e^30.
LEAST_LOG_ODDS, GREATEST_LOG_ODDS = -30.0, 30.0


def _candidate(kind: Callable[..., PlannableMechanism], target: Target, **parameters: Any) -> Candidate:
    """Return the candidate of a kind of mechanism with these parameters."""
    return Candidate(kind(cells=target.cells, **parameters), target, parameters)


def _maker(kind: Callable[..., PlannableMechanism], dial: str, **others: Callable[[Target, Shape], Any]) -> Make:
    """Return a maker of a kind of mechanism whose dial is a parameter; the others depend on target and shape."""

    def make(target: Target, shape: Shape, value: float) -> Candidate:
        return _candidate(kind, target, **{dial: value}, **{name: of(target, shape) for name, of in others.items()})

    return make


def _second(_: Target, shape: Shape) -> float:
    return float(expit(LEAST_LOG_ODDS + shape[0] * (GREATEST_LOG_ODDS - LEAST_LOG_ODDS)))


_coins = _maker(RandomizedResponse, "first_coin", second_coin=_second)


def _coin_shapes(_: Target) -> tuple[Shape, ...]:
    return ((0.45,), (0.5,), (0.55,))


def _warner(target: Target, _: Shape, log_odds: float) -> Candidate:
    return _candidate(Warner, target, truthful=float(expit(log_odds)))


def best_coins(target: Target) -> tuple[float | None, float]:
    """Return π_1 and π_2 of the best randomized response; None and ½ if there is none.

    Its probabilities of Yes are the best for any randomizer of two answers.
    """
    best = find_best(_coins, COIN, target, _coin_shapes(target))
    return (None, 0.5) if best is None else (best.dial, float(best.parameters["second_coin"]))


def best_first_coin(target: Target) -> float | None:
    """Return π_1 of the best randomized response, or None if there is none."""
    return best_coins(target)[0]


def _sampled(target: Target, _: Shape, first: float) -> Candidate:
    return _candidate(SampledResponse, target, sampling=1.0, first_coin=first, second_coin=best_coins(target)[1])


def _yes_laws(target: Target, first: float) -> tuple[float, float]:
    """Return P(Yes) of a device in the cell and of one elsewhere, for this first coin and the best second coin."""
    false_yes = (1.0 - first) * best_coins(target)[1]
    return min(first + false_yes, 1.0), false_yes


def _noise(target: Target, _: Shape, first: float) -> Candidate:
    yes, no = _yes_laws(target, first)
    return _candidate(SamplingAndNoise, target, sampling=yes, sampling_no=no)


def _anonymized(target: Target, _: Shape, first: float) -> Candidate:
    yes, no = _yes_laws(target, first)
    return _candidate(
        AnonymizedLocal,
        target,
        sampling_yes_one=1.0,
        sampling_yes_two=0.0,
        sampling_no=1.0,
        first_coin=yes,
        second_coin=0.0,
        third_coin=no,
        estimator="yes",
    )


BINARY_RANDOMIZERS = (
    Family("randomized_response", COIN, FIRST, (_coins,), starts=_coin_shapes, shared=True),
    Family("warner", Dial(1e-6, 40.0), "the log odds of the truth ln(p/(1 − p))", (_warner,)),
    Family("sampled_response", COIN, FIRST, (_sampled,), guess=best_first_coin),
    Family("sampling_and_noise", COIN, "π_sYes − π_sNo", (_noise,), guess=best_first_coin),
    Family("anonymized_local", COIN, "the difference of the coins π_1 − π_3", (_anonymized,), guess=best_first_coin),
)

EPSILON = "the budget ε"


def _between(least: int, most: int, share: float) -> int:
    """Return an integer between `least` and `most`, at a share of their distance on a logarithmic scale."""
    return min(most, max(least, round(float(least * (most / least) ** share))))


_by_epsilon = partial(_maker, dial="epsilon")
_thresholded = _by_epsilon(ThresholdHistogram, threshold=lambda _, shape: round(shape[0], 6))
_hashing = _by_epsilon(LocalHashing, buckets=lambda _, shape: _between(2, MOST_BUCKETS, shape[0]))
_subset = _by_epsilon(SubsetSelection, size=lambda target, shape: _between(1, target.cells, shape[0]))
_laplace = _by_epsilon(DistributedLaplace, devices=lambda target, _: target.counted)


def _ends(_: Target) -> list[Shape]:
    return [(0.0,), (1.0,)]


def _longitudinal(permanent: PermanentStep) -> Make:
    def make(target: Target, shape: Shape, epsilon: float) -> Candidate:
        kept = min(epsilon * (1.0 + 10.0 ** (3.0 * shape[0] - 2.0)), 50.0)
        return _candidate(LongitudinalUnary, target, epsilon_permanent=kept, epsilon_first=epsilon, permanent=permanent)

    return make


def _permanent_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from, which set how far ε∞ is above ε₁; for one query only ε₁ matters."""
    return [(2 / 3,)] if target.queries == 1 else [(0.0,), (1.0,)]


def _own_vector(target: Target) -> str | None:
    if target.epsilon is None or target.view.startswith("released"):
        return None
    return (
        f"A device's own vector is its cell plus 1/N of the noise: some entry reveals a changed count with about "
        f"ln N = {math.log(target.counted):.3g}, however much noise is added in total. It is private only where no "
        "server sees a vector: behind secret shares."
    )


FREQUENCY_ORACLES = (
    Family("k_randomized_response", BUDGET, EPSILON, (_by_epsilon(KRandomizedResponse),)),
    Family("sue", BUDGET, EPSILON, (_by_epsilon(SymmetricUnary),)),
    Family("oue", BUDGET, EPSILON, (_by_epsilon(OptimisedUnary),)),
    Family("the", BUDGET, EPSILON, (_thresholded,), starts=_ends),
    Family("olh", BUDGET, EPSILON, (_hashing,), starts=_ends),
    Family("subset_selection", BUDGET, EPSILON, (_subset,), starts=_ends),
    Family("hadamard_response", BUDGET, EPSILON, (_by_epsilon(HadamardResponse),)),
    Family(
        "longitudinal_unary",
        Dial(1e-6, 45.0),
        "the budget of one report ε₁",
        (_longitudinal("optimised"), _longitudinal("symmetric")),
        starts=_permanent_shapes,
    ),
    Family("distributed_laplace", Dial(1e-5, 50.0), EPSILON, (_laplace,), reason=_own_vector),
)

SHIFT = Dial(1e-9, 1.0 - 1e-9, "logit")


def _first_attempt(target: Target, shape: Shape, twice: float) -> Candidate:
    """Return a candidate whose dial is 2π_Y.

    The first number of the shape sets how many powers of ten π_N is below π_Y; at 0, π_N is 0. The second sets π_⊥1
    between its least and its greatest value.
    """
    shift = twice / 2.0
    elsewhere = shift * 10.0 ** (-12.0 * (1.0 - shape[0])) if shape[0] > 0.0 else 0.0
    base = min(max(shift + shape[1] * (1.0 - twice), shift), 1.0 - shift)
    return _candidate(AnonymizedFirstAttempt, target, base=base, shift_yes=shift, shift_no=elsewhere)


def _cancelling(target: Target, shape: Shape, shift: float) -> Candidate:
    third = shape[0] * (1.0 - shift)
    rest = (1.0 - shift - third) / 2.0
    stay = (rest, rest, third)
    made = AnonymizedCancelling(cells=target.cells, shift=shift, stay=stay)
    return Candidate(made, target, {"shift": shift, "stay": list(stay)})


def _deniable(target: Target, shape: Shape, tilt: float) -> Candidate:
    """Return a candidate whose dial mixes the moves of Yes-holders from No-holders' moves and another distribution.

    At dial 0 Yes-holders and No-holders have the same distribution, so the answers reveal nothing. The shape is s; then
    n₁, n₂ and c of No-holders; then y₁, y₂ and c_Y of Yes-holders at dial 1. Without a shape the dial is π_1 of a
    randomized response: all devices move, those who answer Yes in B and the others in C.
    """
    if not shape:
        yes, no = _yes_laws(target, tilt)
        moves = {"yes_second": yes, "yes_third": 1.0 - yes, "no_second": no, "no_third": 1.0 - no}
        return _candidate(AnonymizedDeniable, target, shift=1.0, **moves, onward=1.0, onward_yes=1.0)
    shift, no_second, no_rest, onward, second, rest, onward_yes = shape
    no_third, third = (1.0 - no_second) * no_rest, (1.0 - second) * rest
    yes_third = (1.0 - tilt) * no_third + tilt * third
    moved_on = (1.0 - tilt) * no_third * onward + tilt * third * onward_yes
    return _candidate(
        AnonymizedDeniable,
        target,
        shift=shift,
        yes_second=(1.0 - tilt) * no_second + tilt * second,
        yes_third=yes_third,
        no_second=no_second,
        no_third=no_third,
        onward=onward,
        onward_yes=min(1.0, moved_on / yes_third) if yes_third > 0.0 else 0.0,
    )


def _first_attempt_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: No-holders that never move, and the best randomized response's probabilities."""
    yes, no = _yes_laws(target, best_first_coin(target) or 0.5)
    return [(0.0, 0.5), (max(0.0, 1.0 + math.log10(no / yes) / 12.0), 0.5)]


def _deniable_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: one equal to the best randomized response, and two in which all answers occur.

    In the first, all devices move to ⊥2, some in B and the others in C.
    """
    _, no = _yes_laws(target, best_first_coin(target) or 0.5)
    response = (1.0, no, 1.0, 1.0, 1.0, 1.0, 1.0)
    return [response, (0.7, 0.0, 0.5, 0.5, 0.9, 0.5, 0.0), (0.95, 0.3, 0.8, 0.5, 0.9, 0.5, 0.5)]


def _reveals_moves(target: Target) -> str | None:
    if target.epsilon is None or target.delta > 0.0 or target.view != "linked_reports":
        return None
    return (
        "Some pair of answers is given only by devices in the cell, with the probability of a move: linked reports "
        "have no finite ε, and δ = 0 would need no device to move, and the error would be unbounded."
    )


MULTI_ROUND_ALP = (
    Family("anonymized_first_attempt", SHIFT, "twice π_Y", (_first_attempt,), starts=_first_attempt_shapes),
    Family(
        "anonymized_cancelling",
        SHIFT,
        "the shift π_Y",
        (_cancelling,),
        # If rounds are observed separately, ⊥3 hides no device.
        starts=lambda target: [(0.0,)] if target.view.startswith(("report", "shuffled")) else [(1 / 3,)],
        refusal=suppressed_elsewhere,
        reason=_reveals_moves,
    ),
    Family(
        "anonymized_deniable",
        SHIFT,
        "the asymmetry of the moves of Yes-holders",
        (_deniable,),
        starts=_deniable_shapes,
        guess=best_first_coin,
    ),
)

FAMILIES: tuple[Family, ...] = (
    *SAMPLING,
    *BINARY_RANDOMIZERS,
    *FREQUENCY_ORACLES,
    *DIVIDED,
    *MULTI_ROUND_ALP,
    *RELEASES,
)
"""All families, in the order of a plan."""


TITLES: Mapping[str, str] = {
    **{each.kind: each.title for each in MECHANISMS},
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

    searched, makes = Dial(low, high, dial.dial), (_maker(make, dial.name),)
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
