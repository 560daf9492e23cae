"""Inverse probability weighting: a correction of counts for devices that were not all equally likely to be counted."""

import numpy as np

from mechanisms.compiled import Floats
from mechanisms.local.mechanism import Estimate
from mechanisms.refinement.projections import Properties, RefinedEstimate

ONE = np.ones(1)


def inverse_probability(
    estimate: Estimate,
    *,
    asked: int,  # noqa: ARG001 - other refinements need it
    scale: Floats = ONE,
    participation: Floats = ONE,
) -> RefinedEstimate:
    """Divide what was counted in each cell by the probability that a device there is counted.

    That is the estimator of Horvitz and Thompson (A Generalization of Sampling Without Replacement From a Finite
    Universe, JASA 1952). It is unbiased if the probabilities are right.

    Parameters
    ----------
    estimate : Estimate
        Its mean is a constant times the number of devices that were counted in each cell.
    asked : int
        Devices asked.
    scale : (cells,) float64
        What turns this mean into the number of devices asked in each cell.
    participation : (cells,) float64
        The probability that a device of each cell was asked.

    Returns
    -------
    RefinedEstimate
        Of the devices asked; to estimate all devices, it is to be divided by its `participation`. Its standard error
        and its interval are scaled alike.
    """
    count, std_error = estimate.count * scale, estimate.std_error * scale
    lower, upper, interval = estimate.lower * scale, estimate.upper * scale, f"{estimate.interval}, scaled"
    properties = Properties("inverse_probability", biased=False, ordered=False)
    return RefinedEstimate(count, std_error, lower, upper, interval, properties, participation)
