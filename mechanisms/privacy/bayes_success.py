"""Bayes success: the probability that the best guess of a device's cell from one view is right."""

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.parameter import ParameterError
from mechanisms.privacy.hockey_stick import check_distribution


def best_guess_success(matrix: ArrayLike, prior: ArrayLike) -> float:
    """Return the probability that the best guess of the truth (Bayes) is right.

    It is Σ over outputs of max over truths t of q_t·P_t(output).

    Parameters
    ----------
    matrix : (truths, outputs) float64
        Row t is the distribution of the output for a device whose truth is t.
    prior : (truths,) float64
        q_t, the prior probability of each truth.

    Returns
    -------
    float
    """
    rows, q = check_distribution("matrix", matrix), check_distribution("prior", prior)
    if rows.ndim != 2 or q.shape != rows.shape[:1]:
        raise ParameterError("prior", "must have one probability a row of the matrix", q.shape)
    return float((q[:, np.newaxis] * rows).max(axis=0).sum())


def linked_guess_success(*, sampling: float, blank_zero: float, prior: ArrayLike) -> float:
    """Return the probability that the best guess from both reports of a Sampling Privacy device is right.

    This is for mechanisms without refresh. A device in a cell is identified when it is sampled. Any pair of reports
    (w, w) with w ≠ 0 leaves the prior unchanged. The pair (0, 0) comes from a blank 0 or from a sampled device outside
    every cell. The probability is

    π_s(1 − q_0) + (1 − π_s − π_0)·max q + max(q_0(π_0 + π_s), π_0·max_{u≠0} q_u).

    Parameters
    ----------
    sampling, blank_zero : float
        π_s and π_0: the probabilities that a device is sampled, and that it is not sampled and its blank is 0.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V, the prior probabilities.
    """
    q = check_distribution("prior", prior)
    if q.ndim != 1 or len(q) < 2:
        raise ParameterError("prior", "must hold outside and at least one cell", q.shape)
    zero = max(float(q[0]) * (blank_zero + sampling), blank_zero * float(q[1:].max()))
    return sampling * (1.0 - float(q[0])) + (1.0 - sampling - blank_zero) * float(q.max()) + zero
