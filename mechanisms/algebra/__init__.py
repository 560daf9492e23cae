"""A small privacy algebra: from the table of a protocol to its tallies, estimators, error and claims, exactly."""

from mechanisms.algebra.anonymized_protocols import (
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    plausible_deniability,
    sampling_and_noise,
)
from mechanisms.algebra.best_estimator import best_estimator
from mechanisms.algebra.estimator import Estimator
from mechanisms.algebra.growth_floor import growth_floor, growth_floor_at
from mechanisms.algebra.no_free_lunch import NoFreeLunch, no_free_lunch
from mechanisms.algebra.not_estimable import NotEstimable
from mechanisms.algebra.protocol import Answers, Face, Protocol
from mechanisms.algebra.protocol_claim import protocol_claim
from mechanisms.algebra.released_claim import released_claim
from mechanisms.algebra.sampling_protocols import (
    binary_sampling_privacy,
    randomized_response,
    sampling_privacy,
    toy_one,
    toy_two,
    warner,
)
from mechanisms.algebra.tallies import Count, Tallies
from mechanisms.algebra.worst_pair import WorstPairDelta
from mechanisms.parameter import ParameterError

__all__ = [
    "Answers",
    "Count",
    "Estimator",
    "Face",
    "NoFreeLunch",
    "NotEstimable",
    "ParameterError",
    "Protocol",
    "Tallies",
    "WorstPairDelta",
    "anonymized_cancelling",
    "anonymized_deniable",
    "anonymized_first_attempt",
    "anonymized_local",
    "best_estimator",
    "binary_sampling_privacy",
    "growth_floor",
    "growth_floor_at",
    "no_free_lunch",
    "plausible_deniability",
    "protocol_claim",
    "randomized_response",
    "released_claim",
    "sampling_and_noise",
    "sampling_privacy",
    "toy_one",
    "toy_two",
    "warner",
]
