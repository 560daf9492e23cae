"""Bayes success: how often the best guess of the cell, or of being sampled, from a device's reports is right."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.inference.likelihood import report_law
from mechanisms.inference.report_law import check_prior, read_values
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import check_integer


def guess_success(mechanism: Any, rounds: Sequence[int] | None, prior: ArrayLike, queries: int = 1) -> float | None:
    """Return the exact expected success of the best guess of the cell from the reports of one or more queries, or None.

    The device stays in one cell. For one query the computation takes O(V log V). The method depends on the mechanism:

    - Reports that are one value (Sampling Privacy, with or without refresh, each round alone and both linked; k-ary
      randomized response; no privacy): a closed form from the distribution of the values. With linked rounds a device
      in a real cell reveals it as soon as it is sampled once, with probability 1 − (1 − π_s)^T; the remaining evidence
      is in the zeros.
    - Bits and binary queries, with fresh coins or memoised bits: the expected maximum of independent evidence.
    - Subset selection, one query: by the first member of the subset in descending order of the prior.
    - Hadamard response, one query: by halving the set of outputs.
    - Laplace shares, one query: the expected maximum of independent evidence.
    - Local hashing with more than one cell: None. The buckets of three symbols are not independent, and their joint
      distribution has no short form.

    None also for several queries where one query is stated above, and where the exact sum would take more than a few
    seconds. The order of `rounds` does not matter.

    Parameters
    ----------
    mechanism : LocalMechanism
    rounds : sequence of int, optional
        The rounds observed of each query, linked; all, if None.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V.
    queries : int
        T, at least 1.

    Returns
    -------
    float or None
        At least max q.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If a round does not exist, there is no query, or the prior is not a distribution.
    """
    times = check_integer("queries", queries, at_least=1)
    q = check_prior(prior, mechanism.cells)
    success = report_law(mechanism, rounds).guess_success(q, times)
    # The exact value is at least that of the guess without reports; rounding may put it below.
    return None if success is None else min(max(success, float(q.max())), 1.0)


def sampled_posterior(mechanism: SamplingPrivacy, reports: Any) -> NDArray[np.float64]:
    """Return P(the device was sampled | its report of round one).

    "Sampled" means that the device's categorical draw is S. Round one depends on the draw and not on the cell: report
    0 has probability π_s by sampling and π_0 as a blank. Reports that no device sends leave the prior probability π_s.

    Parameters
    ----------
    mechanism : SamplingPrivacy
    reports : Reports
        As one entry of what `log_likelihood` takes.

    Returns
    -------
    (n,) float64
    """
    blanks, sampling = mechanism.blanks, mechanism.sampling
    values = read_values(reports, outputs=len(blanks))
    zero = sampling / (sampling + blanks[0])
    unsent = (values < 0) | ((values > 0) & (blanks[values] == 0.0))
    return np.where(values == 0, zero, np.where(unsent, sampling, 0.0))


def sampled_guess_success(mechanism: SamplingPrivacy) -> float:
    """Return the success of the best guess of whether a device was sampled, from its report of round one.

    It is the sum, over the reports, of the larger of the joint probabilities with "sampled" and with "not sampled".
    """
    return min(max(mechanism.sampling, float(mechanism.blanks[0])) + math.fsum(mechanism.blanks[1:]), 1.0)
