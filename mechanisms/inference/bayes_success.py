"""Bayes success: how often the best guess of the cell, or of being sampled, from one query's reports is right."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.algebra.protocol import Protocol
from mechanisms.inference.likelihood import batches, check_reports, law_of
from mechanisms.inference.posterior import posterior
from mechanisms.inference.report_law import NoLikelihoodError, check_prior, check_rounds, read_answers, read_values
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.privacy.hockey_stick import best_guess_success
from mechanisms.privacy.sampling_privacy import linked_blanks


def guess_success(mechanism: Any, rounds: Sequence[int] | None, prior: ArrayLike) -> float | None:
    """Return the exact expected success of the best guess of the cell from these rounds' reports, or None.

    The computation takes O(V log V). The method depends on the mechanism:

    - Reports that are one value (Sampling Privacy, with or without refresh, each round alone and both linked; k-ary
      randomized response; no privacy): a closed form from the distribution of the values.
    - Bits and binary queries: the expected maximum of independent evidence.
    - Subset selection: by the first member of the subset in descending order of the prior.
    - Hadamard response: by halving the set of outputs.
    - Local hashing with more than one cell: None. The buckets of three symbols are not independent, and their joint
      distribution has no short form. `simulated_guess_success` estimates the success with a standard error.

    The order of `rounds` does not matter.

    Parameters
    ----------
    mechanism : LocalMechanism or Protocol
        A `Protocol` is a table: its prior is over its kinds, in order.
    rounds : sequence of int, optional
        The rounds observed, linked; all, if None.
    prior : (cells + 1,) float64
        q_0 (outside) … q_V.

    Returns
    -------
    float or None
        At least max q.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If a round does not exist or the prior is not a distribution.
    """
    if isinstance(mechanism, Protocol):
        return best_guess_success(protocol_matrix(mechanism, rounds), prior)
    q = check_prior(prior, mechanism.cells)
    found = law_of(mechanism, rounds).guess_success(q, 1)
    # The exact value is at least that of the guess without reports; rounding may put it below.
    return None if found is None else max(found, float(q.max()))


def protocol_matrix(protocol: Protocol, rounds: Sequence[int] | None = None) -> Any:
    """Return the probability of every linked answer of these rounds from every kind, (kinds, answers) float64."""
    seen = check_rounds(rounds, protocol.rounds)
    places: dict[tuple[str, ...], int] = {}
    rows = []
    for kind in protocol.kinds:
        row: dict[int, list[float]] = {}
        for answers, probability in protocol.law(kind).items():
            part = tuple(answers[r - 1] for r in seen)
            row.setdefault(places.setdefault(part, len(places)), []).append(float(probability))
        rows.append(row)
    matrix = np.zeros((len(rows), len(places)))
    for k, row in enumerate(rows):
        for place, masses in row.items():
            matrix[k, place] = math.fsum(masses)
    return matrix


def sampled_posterior(
    mechanism: Any, reports: Sequence[Any], prior: ArrayLike, rounds: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Return P(the device was sampled | its reports of these rounds).

    "Sampled" means that the device's categorical draw is S. Round one depends on the draw and not on the cell: report
    0 has probability π_s by sampling and π_0 as a blank. In round two, and with linked rounds, value v has probability
    π_s·q_v by sampling. Reports that no device sends leave the prior probability π_s.

    Parameters
    ----------
    mechanism : SamplingPrivacy or BinarySamplingPrivacy
    reports, rounds
        As `log_likelihood` takes them.
    prior : (cells + 1,) float64

    Returns
    -------
    (n,) or (n, cells) float64
        One probability per device; for `BinarySamplingPrivacy`, which draws once per cell, one per device and cell.

    Raises
    ------
    NoLikelihoodError
        If the mechanism does not sample.
    """
    q = check_prior(prior, mechanism.cells)
    seen = check_rounds(rounds, mechanism.rounds)
    reports = check_reports(reports, len(seen))
    if isinstance(mechanism, SamplingPrivacy):
        return _of_values(mechanism, reports, q, seen)
    if isinstance(mechanism, BinarySamplingPrivacy):
        found = np.empty((len(reports[0]), mechanism.cells))
        for rows in batches(len(found), mechanism.cells):
            found[rows] = _of_bits(mechanism, [report[rows] for report in reports], q, seen)
        return found
    raise NoLikelihoodError(type(mechanism).__name__, "it throws no die that says S.")


def sampled_guess_success(mechanism: SamplingPrivacy, rounds: Sequence[int] | None, prior: ArrayLike) -> float:
    """Return the success of the best guess of whether a device was sampled: Σ of the larger of the two masses.

    The sum is over all observations. The two masses are the joint probabilities of an observation with "sampled" and
    with "not sampled".

    Parameters
    ----------
    mechanism : SamplingPrivacy
    rounds : sequence of int, optional
    prior : (cells + 1,) float64
    """
    if not isinstance(mechanism, SamplingPrivacy):
        raise NoLikelihoodError(type(mechanism).__name__, "it throws no die that says S about the device as a whole.")
    sampled, blank, rest = _masses(
        mechanism, check_prior(prior, mechanism.cells), check_rounds(rounds, mechanism.rounds)
    )
    return min(math.fsum(np.maximum(sampled, blank)) + rest, 1.0)


def _masses(
    mechanism: SamplingPrivacy, prior: NDArray[np.float64], seen: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return P(value, sampled) and P(value, blank), (V + 1,) each, and the mass of linked pairs that must be blanks."""
    blanks, sampling = mechanism.blanks, mechanism.sampling
    if seen == (1,):
        sampled = np.zeros_like(blanks)
        sampled[0] = sampling
        return sampled, blanks, 0.0
    if seen == (2,):
        return sampling * prior, blanks, 0.0
    pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=mechanism.refresh)
    return sampling * prior, pairs, float(blanks.sum() - pairs.sum())


def _of_values(
    mechanism: SamplingPrivacy, reports: Sequence[Any], prior: NDArray[np.float64], seen: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return the posterior of being sampled, with one draw per device."""
    sampled, blank, _ = _masses(mechanism, prior, seen)
    total = sampled + blank
    share = np.divide(sampled, total, out=np.full_like(total, mechanism.sampling), where=total > 0.0)
    values = read_values(reports[seen.index(max(seen))], outputs=len(blank))
    found = np.where(values < 0, mechanism.sampling, share[values])
    if len(seen) == 2:
        first = read_values(reports[seen.index(1)], outputs=len(blank))
        found = np.where(first > 0, 0.0, found)
    # A report that no device sends is no evidence: the prior remains.
    impossible = np.isneginf(law_of(mechanism, seen).log_likelihood(reports).max(axis=1))
    return np.where(impossible, mechanism.sampling, found)


def _of_bits(
    mechanism: BinarySamplingPrivacy, reports: Sequence[Any], prior: NDArray[np.float64], seen: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return the posterior of being sampled, with one draw per cell, averaged over the posterior of the cell."""
    zero, one, sampling = mechanism.faces
    after = posterior(law_of(mechanism, seen).log_likelihood(reports), prior)[:, 1:]
    elsewhere = sampling / (sampling + zero)
    last = read_answers(reports[seen.index(max(seen))], cells=mechanism.cells, outputs=2)
    if seen == (1,):
        return np.where(last == 1, 0.0, elsewhere)
    inside = np.where(last == 1, sampling / (sampling + one), 0.0)
    outside = np.where(last == 1, 0.0, elsewhere)
    if len(seen) == 2:
        first = read_answers(reports[seen.index(1)], cells=mechanism.cells, outputs=2)
        inside = np.where(last == 1, np.where(first == 1, 0.0, 1.0), 0.0)
    return after * inside + (1.0 - after) * outside
