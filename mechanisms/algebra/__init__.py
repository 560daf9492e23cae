"""Exact analysis of protocols given as tables: their tallies, estimators, standard errors and privacy claims."""

# A name imported as itself is exported.
from mechanisms.algebra.claims import NoFreeLunch as NoFreeLunch
from mechanisms.algebra.claims import WorstPairDelta as WorstPairDelta
from mechanisms.algebra.claims import growth_floor as growth_floor
from mechanisms.algebra.claims import growth_floor_at as growth_floor_at
from mechanisms.algebra.claims import no_free_lunch as no_free_lunch
from mechanisms.algebra.claims import protocol_claim as protocol_claim
from mechanisms.algebra.claims import released_claim as released_claim
from mechanisms.algebra.estimator import Estimator as Estimator
from mechanisms.algebra.estimator import NotEstimable as NotEstimable
from mechanisms.algebra.estimator import best_estimator as best_estimator
from mechanisms.algebra.protocol import Answers as Answers
from mechanisms.algebra.protocol import Count as Count
from mechanisms.algebra.protocol import Face as Face
from mechanisms.algebra.protocol import Protocol as Protocol
from mechanisms.algebra.protocol import Tallies as Tallies
from mechanisms.algebra.published_protocols import anonymized_cancelling as anonymized_cancelling
from mechanisms.algebra.published_protocols import anonymized_deniable as anonymized_deniable
from mechanisms.algebra.published_protocols import anonymized_first_attempt as anonymized_first_attempt
from mechanisms.algebra.published_protocols import anonymized_local as anonymized_local
from mechanisms.algebra.published_protocols import binary_sampling_privacy as binary_sampling_privacy
from mechanisms.algebra.published_protocols import plausible_deniability as plausible_deniability
from mechanisms.algebra.published_protocols import randomized_response as randomized_response
from mechanisms.algebra.published_protocols import sampling_and_noise as sampling_and_noise
from mechanisms.algebra.published_protocols import sampling_privacy as sampling_privacy
from mechanisms.algebra.published_protocols import toy_one as toy_one
from mechanisms.algebra.published_protocols import toy_two as toy_two
from mechanisms.algebra.published_protocols import warner as warner
from mechanisms.parameter import ParameterError as ParameterError
