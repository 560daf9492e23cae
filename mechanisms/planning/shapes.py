"""Candidates of the planner's families: from a target, a shape and a value of the dial to a mechanism's parameters.

A shape has numbers in [0, 1], which stand for the parameters other than the dial; its starts are where a search begins.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from mechanisms.central.laplace import LaplaceCounts
from mechanisms.central.release import CountRelease
from mechanisms.central.suppression import SampleThenSuppress
from mechanisms.declared import MOST_BUCKETS
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.budget_schedules import UniformPopulation
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import RandomizedResponse
from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import Candidate, PlannableMechanism
from mechanisms.planning.error_distribution import laplace_excess, suppressed_excess
from mechanisms.planning.planned_mechanisms import DividedDevices, NoisyServers, TrustedServer
from mechanisms.planning.search import Dial, Make, Shape, find_best
from mechanisms.planning.target import Target
from mechanisms.privacy.integer_noise import IntegerNoise, NoiseKind

PROBABILITY = Dial(1e-12, 1.0, "logit")
# The second coin's probability is searched between odds of e^−30 and e^30.
LEAST_LOG_ODDS, GREATEST_LOG_ODDS = -30.0, 30.0
# The least share of the blanks' probability that each blank keeps while their distribution is searched.
LEAST = 1e-6

Parameters = Mapping[str, Any]
MakeParameters = Callable[[Target, Shape, float], Parameters]
"""Returns a mechanism's parameters for a target, a shape and a value of the dial."""


def made(kind: Callable[..., PlannableMechanism], parameters: MakeParameters) -> Make:
    """Return what makes candidates of a kind of mechanism, given the parameters for each value of the dial."""

    def make(target: Target, shape: Shape, value: float) -> Candidate:
        named = parameters(target, shape, value)
        return Candidate(kind(cells=target.cells, **named), target, named)

    return make


# Sampling Privacy, with suppression of small differences if the target has a threshold k.


def suppression_threshold(target: Target, shape: Shape) -> int:
    """Return k of the target, or else of the shape, on a logarithmic scale from 1 to twice the occupancy."""
    if target.k is not None:
        return target.k
    most = max(2, 2 * target.expected)
    return min(most, max(1, round(math.exp(shape[0] * math.log(most)))))


def suppression_shapes(target: Target) -> list[Shape]:
    """Return shapes of thresholds to start from; empty if the target states k."""
    return [] if target.k is not None else [(x,) for x in np.linspace(0.0, 0.95, 14).tolist()]


def found_threshold(target: Target) -> list[Shape]:
    """Return the shape of the best threshold of sampling_privacy_suppressed, whose release is the same."""
    if target.k is not None:
        return []
    best = find_best(sampling_suppressed, PROBABILITY, target, tuple(suppression_shapes(target)))
    if best is None or best.release is None:
        return [(0.0,)]
    return [(math.log(best.release["k"]) / math.log(max(2, 2 * target.expected)),)]


def _sampled(mechanism: SamplingPrivacy | BinarySamplingPrivacy, target: Target, **parameters: object) -> Candidate:
    k = target.k
    if k is None or target.view == "released_counts":
        return Candidate(mechanism, target, parameters)
    release = SampleThenSuppress(k=k, sampling=mechanism.sampling)
    excess = partial(suppressed_excess, target.expected, sampling=mechanism.sampling, k=k)

    def error(count: int) -> float:
        return float(release.std_error(np.array([count]))[0])

    return Candidate(mechanism, target, parameters, error, {"kind": "suppress", "k": k}, excess)


def sampling(target: Target, shape: Shape, sampling: float) -> Candidate:
    """Return Sampling Privacy; a shape is the share of blank 0."""
    if not shape or sampling == 1.0:
        return _sampled(SamplingPrivacy(cells=target.cells, sampling=sampling), target, sampling=sampling)
    even = 1.0 / (target.cells + 1)
    zero = (even + shape[0] * (1.0 - LEAST - even)) * (1.0 - sampling)
    mechanism = SamplingPrivacy(cells=target.cells, sampling=sampling, blank_zero=zero)
    return _sampled(mechanism, target, sampling=sampling, blank_zero=zero)


def sampling_shapes(target: Target) -> list[Shape]:
    """Return shares of blank 0 to start from; it matters only for counts, which reveal how many blanks are not 0."""
    return [(0.0,), (0.5,), (0.9,), (1.0,)] if target.view == "released_counts" else []


def _zero(shape: Shape, sampling: float) -> float:
    """Return the probability of blank 0, whose share the shape begins with."""
    return (LEAST + shape[0] * (1.0 - 2.0 * LEAST)) * (1.0 - sampling)


def binary(target: Target, shape: Shape, sampling: float) -> Candidate:
    """Return Sampling Privacy by yes/no for each cell; the shape is the share of blank 0."""
    zero = _zero(shape, sampling)
    mechanism = BinarySamplingPrivacy(cells=target.cells, sampling=sampling, blank_zero=zero)
    return _sampled(mechanism, target, form="binary", sampling=sampling, blank_zero=zero)


def binary_shapes(target: Target) -> list[Shape]:
    """Return shares of blank 0 to start from; published differences do not depend on it, so one is enough there."""
    return [(0.5,)] if target.view in {"released", "released_differences"} else [(0.5,), (0.99,), (0.999,)]


def sampling_suppressed(target: Target, shape: Shape, value: float) -> Candidate:
    """Return Sampling Privacy with small differences suppressed; the shape is the threshold."""
    return sampling(replace(target, k=suppression_threshold(target, shape)), (), value)


def binary_suppressed(target: Target, shape: Shape, value: float) -> Candidate:
    """Return Sampling Privacy by yes/no with small differences suppressed; the shape is the threshold."""
    return binary(replace(target, k=suppression_threshold(target, shape)), (0.5,), value)


def refreshed(target: Target, shape: Shape, sampling: float) -> Candidate:
    """Return Sampling Privacy with some blanks drawn anew; the shape is the share of blank 0 and the refresh."""
    parameters = {"sampling": sampling, "blank_zero": _zero(shape, sampling), "refresh": shape[1]}
    return Candidate(SamplingPrivacy(cells=target.cells, **parameters), target, parameters)


# Randomizers of two answers, and of several rounds that equal them.


coins = made(
    RandomizedResponse,
    lambda _, shape, first: {
        "first_coin": first,
        "second_coin": float(expit(LEAST_LOG_ODDS + shape[0] * (GREATEST_LOG_ODDS - LEAST_LOG_ODDS))),
    },
)


def coin_shapes(_: Target) -> tuple[Shape, ...]:
    """Return shapes of the second coin to start from."""
    return ((0.45,), (0.5,), (0.55,))


def best_coins(target: Target) -> tuple[float | None, float]:
    """Return π_1 and π_2 of the best randomized response; None and ½ if there is none.

    Its probabilities of Yes are the best for any randomizer of two answers.
    """
    best = find_best(coins, PROBABILITY, target, coin_shapes(target))
    return (None, 0.5) if best is None else (best.dial, float(best.parameters["second_coin"]))


def best_first_coin(target: Target) -> float | None:
    """Return π_1 of the best randomized response, or None if there is none."""
    return best_coins(target)[0]


def _yes_laws(target: Target, first: float) -> tuple[float, float]:
    """Return P(Yes) of a device in the cell and of one elsewhere, for this first coin and the best second coin."""
    false_yes = (1.0 - first) * best_coins(target)[1]
    return min(first + false_yes, 1.0), false_yes


def warner(_: Target, __: Shape, log_odds: float) -> Parameters:
    """Return the probability of a true answer, for a dial of its log odds."""
    return {"truthful": float(expit(log_odds))}


def sampled_response(target: Target, _: Shape, first: float) -> Parameters:
    """Return the parameters of a response of every device."""
    return {"sampling": 1.0, "first_coin": first, "second_coin": best_coins(target)[1]}


def noise(target: Target, _: Shape, first: float) -> Parameters:
    """Return the parameters with the best response's probabilities of Yes."""
    return dict(zip(("sampling", "sampling_no"), _yes_laws(target, first), strict=True))


def anonymized(target: Target, _: Shape, first: float) -> Parameters:
    """Return the parameters with the best response's probabilities of Yes, where every device answers in one round."""
    yes, no = _yes_laws(target, first)
    asked = {"sampling_yes_one": 1.0, "sampling_yes_two": 0.0, "sampling_no": 1.0}
    return {**asked, "first_coin": yes, "second_coin": 0.0, "third_coin": no, "estimator": "yes"}


def first_attempt(_: Target, shape: Shape, twice: float) -> Parameters:
    """Return the parameters for a dial of 2π_Y.

    The first number of the shape sets how many powers of ten π_N is below π_Y; at 0, π_N is 0. The second sets π_⊥1
    between its least and its greatest value.
    """
    shift = twice / 2.0
    elsewhere = shift * 10.0 ** (-12.0 * (1.0 - shape[0])) if shape[0] > 0.0 else 0.0
    base = min(max(shift + shape[1] * (1.0 - twice), shift), 1.0 - shift)
    return {"base": base, "shift_yes": shift, "shift_no": elsewhere}


def first_attempt_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: No-holders that never move, and the best randomized response's probabilities."""
    yes, no = _yes_laws(target, best_first_coin(target) or 0.5)
    return [(0.0, 0.5), (max(0.0, 1.0 + math.log10(no / yes) / 12.0), 0.5)]


def cancelling(_: Target, shape: Shape, shift: float) -> Parameters:
    """Return the parameters; the shape is the share of ⊥3 among devices that stay."""
    third = shape[0] * (1.0 - shift)
    rest = (1.0 - shift - third) / 2.0
    return {"shift": shift, "stay": [rest, rest, third]}


def deniable(target: Target, shape: Shape, tilt: float) -> Parameters:
    """Return the parameters for a dial that mixes No-holders' moves and another distribution for Yes-holders.

    At dial 0 Yes-holders and No-holders have the same distribution, so the answers reveal nothing. The shape is s; then
    n₁, n₂ and c of No-holders; then y₁, y₂ and c_Y of Yes-holders at dial 1. Without a shape the dial is π_1 of a
    randomized response: all devices move, those who answer Yes in B and the others in C.
    """
    if not shape:
        yes, no = _yes_laws(target, tilt)
        moves = {"yes_second": yes, "yes_third": 1.0 - yes, "no_second": no, "no_third": 1.0 - no}
        return {"shift": 1.0, **moves, "onward": 1.0, "onward_yes": 1.0}
    shift, no_second, no_rest, onward, second, rest, onward_yes = shape
    no_third, third = (1.0 - no_second) * no_rest, (1.0 - second) * rest
    yes_third = (1.0 - tilt) * no_third + tilt * third
    moved_on = (1.0 - tilt) * no_third * onward + tilt * third * onward_yes
    moves = {"yes_second": (1.0 - tilt) * no_second + tilt * second, "yes_third": yes_third}
    moves |= {"no_second": no_second, "no_third": no_third, "onward": onward}
    return {"shift": shift, **moves, "onward_yes": min(1.0, moved_on / yes_third) if yes_third > 0.0 else 0.0}


def deniable_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from: one equal to the best randomized response, and two in which all answers occur.

    In the first, all devices move to ⊥2, some in B and the others in C.
    """
    _, no = _yes_laws(target, best_first_coin(target) or 0.5)
    response = (1.0, no, 1.0, 1.0, 1.0, 1.0, 1.0)
    return [response, (0.7, 0.0, 0.5, 0.5, 0.9, 0.5, 0.0), (0.95, 0.3, 0.8, 0.5, 0.9, 0.5, 0.5)]


# Frequency oracles of budget ε.


def budget(_: Target, __: Shape, epsilon: float) -> Parameters:
    """Return the budget alone."""
    return {"epsilon": epsilon}


def threshold(_: Target, shape: Shape, epsilon: float) -> Parameters:
    """Return the budget and the threshold, which is the shape."""
    return {"epsilon": epsilon, "threshold": round(shape[0], 6)}


def buckets(_: Target, shape: Shape, epsilon: float) -> Parameters:
    """Return the budget and the number of buckets, on a logarithmic scale."""
    return {"epsilon": epsilon, "buckets": _between(2, MOST_BUCKETS, shape[0])}


def subset_size(target: Target, shape: Shape, epsilon: float) -> Parameters:
    """Return the budget and the size of a subset, on a logarithmic scale."""
    return {"epsilon": epsilon, "size": _between(1, target.cells, shape[0])}


def laplace_shares(target: Target, _: Shape, epsilon: float) -> Parameters:
    """Return the budget and the number of devices that share the noise."""
    return {"epsilon": epsilon, "devices": target.counted}


def ends(_: Target) -> list[Shape]:
    """Return both ends of a shape of one number, to start from."""
    return [(0.0,), (1.0,)]


def _between(least: int, most: int, share: float) -> int:
    """Return an integer between `least` and `most`, at a share of their distance on a logarithmic scale."""
    return min(most, max(least, round(float(least * (most / least) ** share))))


def optimised(_: Target, shape: Shape, epsilon: float, permanent: str = "optimised") -> Parameters:
    """Return the parameters for a dial of ε₁ and optimised permanent bits; the shape sets how far ε∞ is above ε₁."""
    kept = min(epsilon * (1.0 + 10.0 ** (3.0 * shape[0] - 2.0)), 50.0)
    return {"epsilon_permanent": kept, "epsilon_first": epsilon, "permanent": permanent}


def symmetric(target: Target, shape: Shape, epsilon: float) -> Parameters:
    """Return the same for symmetric permanent bits."""
    return optimised(target, shape, epsilon, "symmetric")


def permanent_shapes(target: Target) -> list[Shape]:
    """Return shapes to start from; for one query only ε₁ matters."""
    return [(2 / 3,)] if target.queries == 1 else [(0.0,), (1.0,)]


# What servers do, and devices that are divided among the queries.


def divided(target: Target, _: Shape, epsilon: float) -> Candidate:
    """Return subset selection by devices that answer one query each."""
    budget = UniformPopulation(SubsetSelection(cells=target.cells, epsilon=epsilon), target.queries)
    section = {"kind": "population_uniform", "window": target.queries}
    return Candidate(DividedDevices(budget), target, {"epsilon": epsilon}, budget=section)


def _trusted(target: Target, release: CountRelease, section: Parameters, excess: Callable[[], float]) -> Candidate:
    server = TrustedServer(target.cells, release, target.crowd)
    return Candidate(server, target, {}, release=section, excess_kurtosis=excess)


def suppressed(target: Target, shape: Shape, sampling: float) -> Candidate:
    """Return counts of a sample, where a trusted server suppresses small counts; the shape is the threshold."""
    k = suppression_threshold(target, shape)
    excess = partial(suppressed_excess, target.expected, sampling=sampling, k=k)
    section = {"kind": "suppress", "k": k, "sampling": sampling}
    return _trusted(replace(target, k=k), SampleThenSuppress(k=k, sampling=sampling), section, excess)


def laplace(target: Target, _: Shape, epsilon: float) -> Candidate:
    """Return counts to which a trusted server adds Laplace noise."""
    excess = partial(laplace_excess, math.exp(-epsilon))
    return _trusted(target, LaplaceCounts(epsilon=epsilon), {"kind": "laplace", "epsilon": epsilon}, excess)


def noisy(target: Target, _: Shape, precision: float, *, kind: NoiseKind, trusted: bool = False) -> Candidate:
    """Return sums with one kind of noise, by a trusted server or by each server; the dial is 1/scale."""
    if kind == "discrete_gaussian" and target.delta == 0.0:
        raise ParameterError("delta", "must be above 0 for Gaussian noise", target.delta)
    servers, honest = (1, 1) if trusted else (target.servers, target.honest)
    shares = honest if kind == "polya" else 1
    noise = IntegerNoise(kind, 1.0 / precision, shares)
    section: dict[str, Any] = {"kind": kind, "sigma" if kind == "discrete_gaussian" else "scale": noise.scale}
    section |= {"honest": shares} if kind == "polya" else {}
    deployed: dict[str, Any] = {"kind": "trusted"} if trusted else {"kind": "secret_shared", "servers": servers}
    mechanism = NoisyServers(target.cells, noise, honest, servers)
    return Candidate(mechanism, target, {}, aggregation={**deployed, "noise": section})
