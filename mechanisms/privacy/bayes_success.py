"""Bayes success: how often the best guess of a device's cell is right from one view."""

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.parameter import ParameterError
from mechanisms.privacy.hockey_stick import check_distribution


def best_guess_success(matrix: ArrayLike, prior: ArrayLike) -> float:
    """Return Σ over outputs of max over truths t of q_t·P_t(output): Bayes' best guess of the truth.

    Parameters
    ----------
    matrix : (truths, outputs) float64
        Row t is what is seen of a device whose truth is t.
    prior : (truths,) float64
        q.

    Returns
    -------
    float
    """
    rows, q = check_distribution("matrix", matrix), check_distribution("prior", prior)
    if rows.ndim != 2 or q.shape != rows.shape[:1]:
        raise ParameterError("prior", "must have one probability a row of the matrix", q.shape)
    return float((q[:, np.newaxis] * rows).max(axis=0).sum())


def linked_guess_success(*, sampling: float, blank_zero: float, prior: ArrayLike) -> float:
    """Return how often the best guess from both reports of a Sampling Privacy device is right, without refresh.

    A device in a cell is given away when sampled; any pair (w, w), w ≠ 0, leaves the prior as it was; (0, 0)
    comes of a blank 0 or of a sampled device outside:

    π_s(1 − q_0) + (1 − π_s − π_0)·max q + max(q_0(π_0 + π_s), π_0·max_{u≠0} q_u).

    Parameters
    ----------
    sampling, blank_zero : float
        π_s and π_0.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V.
    """
    q = check_distribution("prior", prior)
    if q.ndim != 1 or len(q) < 2:
        raise ParameterError("prior", "must hold outside and at least one cell", q.shape)
    zero = max(float(q[0]) * (blank_zero + sampling), blank_zero * float(q[1:].max()))
    return sampling * (1.0 - float(q[0])) + (1.0 - sampling - blank_zero) * float(q.max()) + zero
