"""What runs on a device and how its reports become an estimate, one mechanism a file."""

from mechanisms.local.anonymized_cancelling import AnonymizedCancelling
from mechanisms.local.anonymized_deniable import AnonymizedDeniable
from mechanisms.local.anonymized_first_attempt import AnonymizedFirstAttempt
from mechanisms.local.anonymized_local import AnonymizedLocal
from mechanisms.local.anonymized_parameters import (
    MinimalVariance,
    minimal_variance_frontier,
    minimal_variance_parameters,
)
from mechanisms.local.anonymized_signs import SignSolution, SignSolutions, solve_sign_combinations
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.estimate import Estimate
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import HashedReports, LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.mechanism import Coins, Counts, LocalMechanism, Memory, NoMemory, Reports, Truth, Vectors
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.not_estimable import NotEstimableError
from mechanisms.local.optimised_unary import OptimisedUnary
from mechanisms.local.parts.answer_rows import AnswerReports
from mechanisms.local.parts.bit_rows import BitReports
from mechanisms.local.parts.intervals import invert_binomial, score_interval
from mechanisms.local.parts.sparse_vectors import SparseVectors
from mechanisms.local.parts.variance import QuadraticVariance
from mechanisms.local.printed import Printed, printed_by_paper
from mechanisms.local.randomized_response import RandomizedResponse
from mechanisms.local.sampled_response import SampledResponse
from mechanisms.local.sampling_and_noise import SamplingAndNoise
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.symmetric_unary import SymmetricUnary
from mechanisms.local.threshold_histogram import ThresholdHistogram
from mechanisms.local.warner import Warner
from mechanisms.parameter import ParameterError, ParameterWarning

__all__ = [
    "AnonymizedCancelling",
    "AnonymizedDeniable",
    "AnonymizedFirstAttempt",
    "AnonymizedLocal",
    "AnswerReports",
    "BinarySamplingPrivacy",
    "BitReports",
    "Coins",
    "Counts",
    "DistributedLaplace",
    "Estimate",
    "HadamardResponse",
    "HashedReports",
    "KRandomizedResponse",
    "LocalHashing",
    "LocalMechanism",
    "LongitudinalUnary",
    "Memory",
    "MinimalVariance",
    "NoMemory",
    "NoPrivacy",
    "NotEstimableError",
    "OptimisedUnary",
    "ParameterError",
    "ParameterWarning",
    "Printed",
    "QuadraticVariance",
    "RandomizedResponse",
    "Reports",
    "SampledResponse",
    "SamplingAndNoise",
    "SamplingPrivacy",
    "SignSolution",
    "SignSolutions",
    "SparseVectors",
    "SubsetSelection",
    "SymmetricUnary",
    "ThresholdHistogram",
    "Truth",
    "Vectors",
    "Warner",
    "invert_binomial",
    "minimal_variance_frontier",
    "minimal_variance_parameters",
    "printed_by_paper",
    "score_interval",
    "solve_sign_combinations",
]
