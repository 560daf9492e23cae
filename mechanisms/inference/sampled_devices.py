"""Who was sampled: what the reports of Sampling Privacy tell about the die, not the place."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.inference.evidence import read_answers, read_values
from mechanisms.inference.likelihood import batches, check_reports, law_of
from mechanisms.inference.no_likelihood import NoLikelihoodError
from mechanisms.inference.posterior import posterior
from mechanisms.inference.report_law import check_prior, check_rounds
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.privacy.sampled_value import linked_blanks


def sampled_posterior(
    mechanism: Any, reports: Sequence[Any], prior: ArrayLike, rounds: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Return P(the die said S | a device's reports of these rounds).

    Round one tells of the die and not of the place: 0 comes of S with π_s and of a blank with π_0. In round two, and
    linked, value v comes of S with π_s·q_v. Reports that no device sends leave π_s.

    Parameters
    ----------
    mechanism : SamplingPrivacy or BinarySamplingPrivacy
    reports, rounds
        As `log_likelihood` takes them.
    prior : (cells + 1,) float64

    Returns
    -------
    (n,) or (n, cells) float64
        One die a device; in the binary form one a cell.

    Raises
    ------
    NoLikelihoodError
        If the mechanism samples nobody.
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
    """Return how often the best guess of whether a device was sampled is right: Σ of the larger of both masses.

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
    """Return with what probability each value comes of S and of a blank, (V + 1,) each, and what shows a blank."""
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
    """Return the posterior of one die a device."""
    sampled, blank, _ = _masses(mechanism, prior, seen)
    total = sampled + blank
    share = np.divide(sampled, total, out=np.full_like(total, mechanism.sampling), where=total > 0.0)
    values = read_values(reports[seen.index(max(seen))], outputs=len(blank))
    found = np.where(values < 0, mechanism.sampling, share[values])
    if len(seen) == 2:
        first = read_values(reports[seen.index(1)], outputs=len(blank))
        found = np.where(first > 0, 0.0, found)
    # What no device sends tells nothing.
    impossible = np.isneginf(law_of(mechanism, seen).log_likelihood(reports).max(axis=1))
    return np.where(impossible, mechanism.sampling, found)


def _of_bits(
    mechanism: BinarySamplingPrivacy, reports: Sequence[Any], prior: NDArray[np.float64], seen: tuple[int, ...]
) -> NDArray[np.float64]:
    """Return the posterior of one die a cell: that of a cell the device is in, and of any other, by where it is."""
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
