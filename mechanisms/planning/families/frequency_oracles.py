"""Families with a budget ε: frequency oracles, memoised bits and distributed Laplace noise."""

import math
from typing import Any

from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import MOST_BUCKETS, LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary, PermanentStep
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, SymmetricUnary, ThresholdHistogram
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.search import Dial, Family, Make, Shape
from mechanisms.planning.target import Target

BUDGET = Dial(1e-6, 50.0)
EPSILON = "the budget ε"


def _by_epsilon(kind: Any) -> Make:
    def make(target: Target, _: Shape, epsilon: float) -> Candidate:
        return Candidate(kind(cells=target.cells, epsilon=epsilon), target, {"epsilon": epsilon})

    return make


def _between(least: int, most: int, share: float) -> int:
    """Return an integer between `least` and `most`, at a share of their distance on a logarithmic scale."""
    return min(most, max(least, round(float(least * (most / least) ** share))))


def _thresholded(target: Target, shape: Shape, epsilon: float) -> Candidate:
    parameters = {"epsilon": epsilon, "threshold": round(shape[0], 6)}
    return Candidate(ThresholdHistogram(cells=target.cells, **parameters), target, parameters)


def _hashing(target: Target, shape: Shape, epsilon: float) -> Candidate:
    buckets = _between(2, MOST_BUCKETS, shape[0])
    made = LocalHashing(cells=target.cells, epsilon=epsilon, buckets=buckets)
    return Candidate(made, target, {"epsilon": epsilon, "buckets": buckets})


def _subset(target: Target, shape: Shape, epsilon: float) -> Candidate:
    size = _between(1, target.cells, shape[0])
    made = SubsetSelection(cells=target.cells, epsilon=epsilon, size=size)
    return Candidate(made, target, {"epsilon": epsilon, "size": size})


def _ends(_: Target) -> list[Shape]:
    return [(0.0,), (1.0,)]


def _longitudinal(permanent: PermanentStep) -> Make:
    def make(target: Target, shape: Shape, epsilon: float) -> Candidate:
        kept = min(epsilon * (1.0 + 10.0 ** (3.0 * shape[0] - 2.0)), 50.0)
        parameters: dict[str, Any] = {"epsilon_permanent": kept, "epsilon_first": epsilon, "permanent": permanent}
        return Candidate(LongitudinalUnary(cells=target.cells, **parameters), target, parameters)

    return make


def _permanent_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from, which set how far ε∞ is above ε₁; for one query only ε₁ matters."""
    return [(2 / 3,)] if target.queries == 1 else [(0.0,), (1.0,)]


def _laplace(target: Target, _: Shape, epsilon: float) -> Candidate:
    parameters = {"epsilon": epsilon, "devices": target.population}
    made = DistributedLaplace(cells=target.cells, epsilon=epsilon, devices=target.population)
    return Candidate(made, target, parameters)


def _own_vector(target: Target) -> str | None:
    if target.epsilon is None or target.view.startswith("released"):
        return None
    return (
        f"A device's own vector is its cell but for 1/N of the noise: some entry tells with about ln N = "
        f"{math.log(target.population):.3g} a changed count, however much noise there is in all. Sound only where no "
        "server sees a vector: behind secret shares."
    )


FAMILIES = (
    Family("k_randomized_response", "k_randomized_response", BUDGET, EPSILON, (_by_epsilon(KRandomizedResponse),)),
    Family("sue", "sue", BUDGET, EPSILON, (_by_epsilon(SymmetricUnary),)),
    Family("oue", "oue", BUDGET, EPSILON, (_by_epsilon(OptimisedUnary),)),
    Family("the", "the", BUDGET, EPSILON, (_thresholded,), starts=_ends),
    Family("olh", "olh", BUDGET, EPSILON, (_hashing,), starts=_ends),
    Family("subset_selection", "subset_selection", BUDGET, EPSILON, (_subset,), starts=_ends),
    Family("hadamard_response", "hadamard_response", BUDGET, EPSILON, (_by_epsilon(HadamardResponse),)),
    Family(
        "longitudinal_unary",
        "longitudinal_unary",
        Dial(1e-6, 45.0),
        "the budget of one report ε₁",
        (_longitudinal("optimised"), _longitudinal("symmetric")),
        starts=_permanent_shapes,
    ),
    Family("distributed_laplace", "distributed_laplace", Dial(1e-5, 50.0), EPSILON, (_laplace,), reason=_own_vector),
)
