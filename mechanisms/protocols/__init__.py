"""Protocols as tables: their tallies, estimators, standard errors and privacy claims, exactly."""

from mechanisms.parameter import ParameterError
from mechanisms.protocols.claims import protocol_claim, released_claim
from mechanisms.protocols.estimator import Estimator, NotEstimable, best_estimator, combined_estimator
from mechanisms.protocols.protocol import Answers, Count, Face, Protocol, Tallies
from mechanisms.protocols.published import (
    ProtocolTable,
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    anonymized_local,
    binary_sampling_privacy,
    randomized_response,
    sampled_response,
    sampling_and_noise,
    sampling_privacy,
    warner,
)
from mechanisms.protocols.theorems import NoFreeLunch, growth_floor, growth_floor_at, no_free_lunch
