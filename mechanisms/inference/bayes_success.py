"""Bayes success: how often the best guess of the cell, or of being sampled, from a device's reports is right."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.inference.likelihood import check_reports, report_law
from mechanisms.inference.report_law import (
    NoLikelihoodError,
    check_prior,
    check_rounds,
    expected_best,
    read_values,
)
from mechanisms.local.longitudinal_unary import LongitudinalUnary
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import check_integer
from mechanisms.privacy.memoised_bits import MemoisedBits
from mechanisms.privacy.sampling_privacy_claims import linked_blanks


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
    law = report_law(mechanism, rounds)
    if times > 1 and isinstance(mechanism, LongitudinalUnary):
        bits = MemoisedBits(mechanism.true_kept, mechanism.false_kept, mechanism.flip, mechanism.cells)
        yes, no = bits.laws(times)
        possible = (no > 0.0) & (yes > 0.0)
        found = expected_best(q, np.log(yes[possible]) - np.log(no[possible]), np.log(no[possible]))
    else:
        found = law.guess_success(q, times)
    # The exact value is at least that of the guess without reports; rounding may put it below.
    return None if found is None else min(max(found, float(q.max())), 1.0)


def sampled_posterior(
    mechanism: Any, reports: Sequence[Any], prior: ArrayLike, rounds: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Return P(the device was sampled | its reports of these rounds).

    "Sampled" means that the device's categorical draw is S. Round one depends on the draw and not on the cell: report
    0 has probability π_s by sampling and π_0 as a blank. In round two, and with linked rounds, value v has probability
    π_s·q_v by sampling. Reports that no device sends leave the prior probability π_s.

    Parameters
    ----------
    mechanism : SamplingPrivacy
    reports, rounds
        As `log_likelihood` takes them.
    prior : (cells + 1,) float64

    Returns
    -------
    (n,) float64

    Raises
    ------
    NoLikelihoodError
        If the mechanism does not sample.
    """
    seen = check_rounds(rounds, mechanism.rounds)
    reports = check_reports(reports, len(seen))
    sampled, blank, _ = _sampled_masses(mechanism, seen, prior)
    total = sampled + blank
    share = np.divide(sampled, total, out=np.full_like(total, mechanism.sampling), where=total > 0.0)
    values = read_values(reports[seen.index(max(seen))], outputs=len(blank))
    found = np.where(values < 0, mechanism.sampling, share[values])
    if len(seen) == 2:
        first = read_values(reports[seen.index(1)], outputs=len(blank))
        found = np.where(first > 0, 0.0, found)
    # A report that no device sends is no evidence: the prior remains.
    impossible = np.isneginf(report_law(mechanism, seen).log_likelihood(reports).max(axis=1))
    return np.where(impossible, mechanism.sampling, found)


def sampled_guess_success(mechanism: Any, rounds: Sequence[int] | None, prior: ArrayLike) -> float:
    """Return the success of the best guess of whether a device was sampled: Σ of the larger of the two masses.

    The sum is over all observations. The two masses are the joint probabilities of an observation with "sampled" and
    with "not sampled".

    Parameters
    ----------
    mechanism : SamplingPrivacy
    rounds : sequence of int, optional
    prior : (cells + 1,) float64
    """
    sampled, blank, rest = _sampled_masses(mechanism, check_rounds(rounds, mechanism.rounds), prior)
    return min(math.fsum(np.maximum(sampled, blank)) + rest, 1.0)


def _sampled_masses(
    mechanism: Any, seen: tuple[int, ...], prior: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return P(value, sampled) and P(value, blank), (V + 1,) each, and the mass of linked pairs that must be blanks."""
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(
            type(mechanism).__name__, "whether a device is sampled is defined for Sampling Privacy only."
        )
    q = check_prior(prior, mechanism.cells)
    blanks, sampling = mechanism.blanks, mechanism.sampling
    if seen == (1,):
        sampled = np.zeros_like(blanks)
        sampled[0] = sampling
        return sampled, blanks, 0.0
    if seen == (2,):
        return sampling * q, blanks, 0.0
    pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=mechanism.refresh)
    return sampling * q, pairs, float(blanks.sum() - pairs.sum())
