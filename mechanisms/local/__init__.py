"""Local mechanisms: the reports of a device and the estimates from them, one mechanism per file."""

from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.budget_schedules import (
    AdaptiveBudget,
    PublicationUnits,
    UniformPopulation,
    estimate_dissimilarity,
    uniform_budget,
)
from mechanisms.local.common.intervals import QuadraticVariance, invert_binomial
from mechanisms.local.common.packed_bits import AnswerReports, BitReports
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import HashedReports, LocalHashing
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.mechanism import (
    Coins,
    Counts,
    Estimate,
    LocalMechanism,
    Memory,
    NoMemory,
    NotEstimableError,
    Reports,
    Truth,
    Vectors,
)
from mechanisms.local.minimal_variance import minimal_variance_parameters
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.published_epsilon import printed_by_paper
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import OptimisedUnary, RandomizedResponse, SymmetricUnary, ThresholdHistogram
from mechanisms.local.yes_no import AnonymizedLocal, SampledResponse, SamplingAndNoise, Warner
from mechanisms.local.yes_no_rounds import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt
from mechanisms.parameter import ParameterError, ParameterWarning
from mechanisms.protocols.theorems import solve_sign_combinations
