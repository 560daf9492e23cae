"""Families of binary randomizers: randomized response for every cell, and its variants."""

from typing import Any

from scipy.special import expit

from mechanisms.local.anonymized_local import AnonymizedLocal
from mechanisms.local.randomized_response import RandomizedResponse, SampledResponse, SamplingAndNoise, Warner
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.search import Dial, Family, Shape, find_best
from mechanisms.planning.target import Target

COIN = Dial(1e-12, 1.0, "logit")
FIRST = "the first coin π_1"
# The second coin's probability is searched between odds of e^−30 and e^30.
LEAST_LOG_ODDS, GREATEST_LOG_ODDS = -30.0, 30.0


def _second(shape: Shape) -> float:
    return float(expit(LEAST_LOG_ODDS + shape[0] * (GREATEST_LOG_ODDS - LEAST_LOG_ODDS)))


def _coins(target: Target, shape: Shape, first: float) -> Candidate:
    second = _second(shape)
    made = RandomizedResponse(cells=target.cells, first_coin=first, second_coin=second)
    return Candidate(made, target, {"first_coin": first, "second_coin": second})


def _coin_shapes(_: Target) -> tuple[Shape, ...]:
    return ((0.45,), (0.5,), (0.55,))


def _warner(target: Target, _: Shape, log_odds: float) -> Candidate:
    truthful = float(expit(log_odds))
    return Candidate(Warner(cells=target.cells, truthful=truthful), target, {"truthful": truthful})


def best_coins(target: Target) -> Candidate | None:
    """Return the best randomized response; its probabilities of Yes are the best for any randomizer of two answers."""
    return find_best(_coins, COIN, target, _coin_shapes(target))


def best_second_coin(target: Target) -> float:
    """Return π_2 of the best randomized response, or ½ if there is none."""
    found = best_coins(target)
    return 0.5 if found is None else float(found.parameters["second_coin"])


def best_first_coin(target: Target) -> float | None:
    """Return π_1 of the best randomized response, or None if there is none."""
    found = best_coins(target)
    return None if found is None else found.dial


def best_yes_laws(target: Target) -> tuple[float, float]:
    """Return P(Yes) of a device in the cell and of one elsewhere, for the best randomized response."""
    return _yes_laws(target, best_first_coin(target) or 0.5)


def _sampled(target: Target, _: Shape, first: float) -> Candidate:
    parameters: dict[str, Any] = {"sampling": 1.0, "first_coin": first, "second_coin": best_second_coin(target)}
    return Candidate(SampledResponse(cells=target.cells, **parameters), target, parameters)


def _yes_laws(target: Target, first: float) -> tuple[float, float]:
    """Return P(Yes) of a device in the cell and of one elsewhere, for this first coin and the best second coin."""
    false_yes = (1.0 - first) * best_second_coin(target)
    return min(first + false_yes, 1.0), false_yes


def _noise(target: Target, _: Shape, first: float) -> Candidate:
    yes, no = _yes_laws(target, first)
    parameters: dict[str, Any] = {"sampling": yes, "sampling_no": no}
    return Candidate(SamplingAndNoise(cells=target.cells, **parameters), target, parameters)


def _anonymized(target: Target, _: Shape, first: float) -> Candidate:
    yes, no = _yes_laws(target, first)
    parameters: dict[str, Any] = {
        "sampling_yes_one": 1.0,
        "sampling_yes_two": 0.0,
        "sampling_no": 1.0,
        "first_coin": yes,
        "second_coin": 0.0,
        "third_coin": no,
        "estimator": "yes",
    }
    return Candidate(AnonymizedLocal(cells=target.cells, **parameters), target, parameters)


FAMILIES = (
    Family("randomized_response", "randomized_response", COIN, FIRST, (_coins,), starts=_coin_shapes),
    Family("warner", "warner", Dial(1e-6, 40.0), "the log odds of the truth ln(p/(1 − p))", (_warner,)),
    Family("sampled_response", "sampled_response", COIN, FIRST, (_sampled,), guess=best_first_coin),
    Family("sampling_and_noise", "sampling_and_noise", COIN, "π_sYes − π_sNo", (_noise,), guess=best_first_coin),
    Family(
        "anonymized_local",
        "anonymized_local",
        COIN,
        "the coins' difference π_1 − π_3",
        (_anonymized,),
        guess=best_first_coin,
    ),
)
