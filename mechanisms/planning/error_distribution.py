"""Distribution of an estimate's error, as needed to predict a simulation's root mean square error."""

import math
from functools import singledispatch

import numpy as np
from scipy.special import gammaincinv

from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.common.frequency_oracle import PureProtocol
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.distributed_laplace import DistributedLaplace
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.yes_no_rounds import AnonymizedCancelling
from mechanisms.planning.target import Target
from mechanisms.privacy.binomial import window

LEVEL = 0.95


def error_interval(std_error: float, *, cells: int, excess: float = 0.0, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval that holds the root mean square error of a simulation with probability `level`.

    For R independent errors of variance σ² and excess kurtosis κ, the mean square has relative variance (2 + κ)/R. A χ²
    distribution with R/(1 + κ/2) degrees of freedom has the same relative variance and replaces it: exact for normal
    errors, approximate for many cells. Below one degree of freedom, where σ comes mostly from rare large errors, both
    ends of the χ² interval would be near 0. The interval from 0 to σ/√((1 − level)/2) is returned instead, which holds
    for every distribution of the errors (Markov's inequality).

    Parameters
    ----------
    std_error : float
        σ.
    cells : int
        R, the number of simulated cells.
    excess : float
        κ, above −2.
    level : float
        The probability that the interval holds the error.

    Returns
    -------
    tuple of float
        The lower and the upper end.
    """
    if std_error == 0.0 or not math.isfinite(std_error):
        return std_error, std_error
    freedom = cells / max(1.0 + excess / 2.0, 1e-9)
    tail = (1.0 - level) / 2.0
    if freedom < 1.0:
        return 0.0, std_error / math.sqrt(tail)
    low, high = (2.0 * float(gammaincinv(freedom / 2.0, share)) for share in (tail, 1.0 - tail))
    return std_error * math.sqrt(low / freedom), std_error * math.sqrt(high / freedom)


@singledispatch
def excess_kurtosis(mechanism: object, target: Target) -> float:  # noqa: ARG001 - the signature of all registered functions
    """Return the excess kurtosis of the estimate of a cell with the target's occupancy; 0 if it is not known.

    Devices answer independently: the estimate's fourth cumulant is the sum of their contributions' fourth cumulants.
    """
    return 0.0


@excess_kurtosis.register
def _of_pure(mechanism: PureProtocol, target: Target) -> float:
    return _of_answers(mechanism.true_yes, mechanism.false_yes, target)


@excess_kurtosis.register(BinarySamplingPrivacy)
@excess_kurtosis.register(SamplingPrivacy)
def _of_sampling(mechanism: BinarySamplingPrivacy | SamplingPrivacy, target: Target) -> float:
    if isinstance(mechanism, SamplingPrivacy) and mechanism.refresh:
        return _of_refreshed(mechanism, target)
    return _of_answers(mechanism.sampling, 0.0, target)


@excess_kurtosis.register
def _of_cancelling(mechanism: AnonymizedCancelling, target: Target) -> float:
    return _of_answers(mechanism.shift, 0.0, target)


@excess_kurtosis.register
def _of_binary_query(mechanism: ProtocolMechanism, target: Target) -> float:
    scores = mechanism.linear_estimator.scores.sum(axis=1)
    inside, outside = (
        _cumulants(scores, np.array(law)) for law in (mechanism.binary_query.yes, mechanism.binary_query.no)
    )
    return _together(inside, outside, target)


@excess_kurtosis.register
def _of_laplace(mechanism: DistributedLaplace, target: Target) -> float:
    return laplace_excess(mechanism.alpha) * mechanism.devices / target.population  # a share n/N has N/n times that


def suppressed_excess(occupancy: int, *, sampling: float, k: int) -> float:
    """Return the kurtosis less 3, with moments about 0, of the error of an estimate D/β suppressed to 0 if D < k.

    D ~ Bin(Y, β) is the published difference. Moments are about 0 rather than the mean, because suppression is biased.

    Parameters
    ----------
    occupancy : int
        Y.
    sampling : float
        β.
    k : int
    """
    first, masses = window(occupancy, sampling)
    seen = first + np.arange(len(masses), dtype=np.float64)
    squares = (np.where(seen >= k, seen / sampling, 0.0) - occupancy) ** 2
    mean = float(masses @ squares)
    return float(masses @ squares**2) / mean**2 - 3.0 if mean > 0.0 else 0.0


def laplace_excess(alpha: float) -> float:
    """Return the excess kurtosis of discrete Laplace noise, from the cumulants of the geometric law."""
    return (1.0 + 4.0 * alpha + alpha**2) / (2.0 * alpha)


def _of_refreshed(mechanism: SamplingPrivacy, target: Target) -> float:
    """Return the excess kurtosis with refresh, where a device contributes second − λ·first report of cell 1."""
    sampling, refresh, blank = mechanism.sampling, mechanism.refresh, float(mechanism.blanks[1])
    received = ResponseCounts.from_truth(target.population, None, None, rounds=2, truth_round=2)
    weight = float(np.ravel(mechanism.estimator(1).weight(received))[0])
    again = blank / (1.0 - sampling) if sampling < 1.0 else 0.0
    both = blank * (1.0 - refresh + refresh * again)
    values = np.array([1.0 - weight, 1.0, -weight, 0.0])
    in_cell = np.array([both, blank - both + sampling, blank - both, 0.0])
    elsewhere = np.array([both, blank - both, blank - both, 0.0])
    laws = [np.append(law[:3], 1.0 - law[:3].sum()) for law in (in_cell, elsewhere)]
    return _together(_cumulants(values, laws[0]), _cumulants(values, laws[1]), target)


def _of_answers(true_yes: float, false_yes: float, target: Target) -> float:
    """Return the excess kurtosis of a count of Yes answers, Bin(Y, p) + Bin(N − Y, q)."""
    inside, outside = (_cumulants(np.array([0.0, 1.0]), np.array([1.0 - p, p])) for p in (true_yes, false_yes))
    return _together(inside, outside, target)


def _cumulants(values: np.ndarray, law: np.ndarray) -> tuple[float, float]:
    """Return the second and fourth cumulant of a discrete variable with these values and probabilities."""
    centred = values - values @ law
    second = float(centred**2 @ law)
    return second, float(centred**4 @ law) - 3.0 * second**2


def _together(inside: tuple[float, float], outside: tuple[float, float], target: Target) -> float:
    """Return the excess kurtosis of the sum over devices in the cell and devices elsewhere."""
    in_cell, elsewhere = target.expected, target.population - target.expected
    second, fourth = (in_cell * a + elsewhere * b for a, b in zip(inside, outside, strict=True))
    return max(fourth / second**2, -2.0 + 1e-9) if second > 0.0 else 0.0
