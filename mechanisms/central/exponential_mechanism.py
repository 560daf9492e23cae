"""The exponential mechanism: one of several options drawn by how good it is, with differential privacy."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.parameter import ParameterError, check_epsilon


def exponential_probabilities(qualities: ArrayLike, *, sensitivity: float, epsilon: float) -> NDArray[np.float64]:
    """Return the probability of drawing each option: proportional to exp(ε·quality/(2·sensitivity)).

    McSherry and Talwar 2007. One device changes no quality by more than the sensitivity Δ, so no weight by more
    than e^(ε/2), nor the sum of the weights: ε-differentially private.

    Parameters
    ----------
    qualities : (options,) float
        Finite; at least one.
    sensitivity : float
        Δ, above 0.
    epsilon : float
        ε, at least 0 and finite; 0 draws blindly.

    Returns
    -------
    (options,) float64

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    scores = np.asarray(qualities, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0 or not np.isfinite(scores).all():
        raise ParameterError("qualities", "must be finite numbers, at least one", qualities)
    if isinstance(sensitivity, bool) or not 0.0 < sensitivity < math.inf:
        raise ParameterError("sensitivity", "must be above 0 and finite", sensitivity)
    if math.isinf(check_epsilon(epsilon)):
        raise ParameterError("epsilon", "must be finite: an infinite one would always draw the best", epsilon)
    weights = np.exp(epsilon / (2.0 * sensitivity) * (scores - scores.max()))
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def draw_option(qualities: ArrayLike, *, sensitivity: float, epsilon: float, rng: np.random.Generator) -> int:
    """Draw one option, 0 to options − 1, by `exponential_probabilities`."""
    shares = exponential_probabilities(qualities, sensitivity=sensitivity, epsilon=epsilon)
    return int(rng.choice(len(shares), p=shares))
