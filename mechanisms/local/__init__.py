"""What runs on a device and how its reports become an estimate, one mechanism a file."""

from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.bit_rows import BitReports
from mechanisms.local.estimate import Estimate
from mechanisms.local.intervals import invert_binomial, score_interval
from mechanisms.local.mechanism import Coins, Counts, LocalMechanism, Memory, Reports, Truth, Vectors
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.printed import Printed, printed_by_paper
from mechanisms.local.randomized_response import RandomizedResponse
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.variance import QuadraticVariance
from mechanisms.parameter import ParameterError

__all__ = [
    "BinarySamplingPrivacy",
    "BitReports",
    "Coins",
    "Counts",
    "Estimate",
    "LocalMechanism",
    "Memory",
    "NoPrivacy",
    "ParameterError",
    "Printed",
    "QuadraticVariance",
    "RandomizedResponse",
    "Reports",
    "SamplingPrivacy",
    "Truth",
    "Vectors",
    "invert_binomial",
    "printed_by_paper",
    "score_interval",
]
