"""Exact analysis of protocols given as tables: their tallies, estimators, standard errors and privacy claims."""

from mechanisms.algebra.claims import (
    NoFreeLunch,
    WorstPairDelta,
    growth_floor,
    growth_floor_at,
    no_free_lunch,
    protocol_claim,
    released_claim,
)
from mechanisms.algebra.estimator import Estimator, NotEstimable, best_estimator
from mechanisms.algebra.protocol import Answers, Count, Face, Protocol, Tallies
from mechanisms.algebra.published_protocols import (
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    binary_sampling_privacy,
    plausible_deniability,
    randomized_response,
    sampling_and_noise,
    sampling_privacy,
    toy_one,
    toy_two,
    warner,
)
from mechanisms.parameter import ParameterError
