"""Interface of report likelihoods, checks of the observed reports, and the success of the best guess."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.packed_bits import AnswerReports, BitReports
from mechanisms.local.common.response_counts import check_values
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.hockey_stick import check_distribution

Logs = Floats


@dataclass(frozen=True, eq=False)
class ReportOutcomes:
    """The reports that a device can send in all rounds of a query.

    Parameters
    ----------
    masses : (V + 1, outcomes) float64
        Probability of each outcome given each truth.
    encodings : tuple of (outcomes, *tally_shape) int64
        By round: the encoding of the report.
    """

    masses: Floats
    encodings: tuple[Integers, ...]


class ReportLaw(ABC):
    """The joint law of a mechanism's reports of some rounds, given each truth 0…V."""

    no_candidates = "it is not defined which of its reports matter to a cell."
    """Why `candidates` returns none, as a sentence."""

    @abstractmethod
    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return log P(a device's reports | truth), (n, V + 1), up to a constant per row; −∞ if impossible."""

    def repeated(self, queries: Sequence[Sequence[Any]]) -> Logs:
        """Return log P(a device's reports of all queries | truth, the same in all): coins are fresh in each."""
        return reduce(np.add, map(self.log_likelihood, queries))

    def guess_success(self, prior: Floats, queries: int) -> float | None:  # noqa: ARG002 - laws override it
        """Return the exact success of the best guess from T queries' reports, or None if it is unknown."""
        return None

    def outcomes(self) -> ReportOutcomes | None:
        """Return all reports of a device in these rounds; None if they are too many, or not known."""
        return None

    def candidates(self, cell: int) -> Sequence[Any]:  # noqa: ARG002 - laws override it
        """Return reports of one device that include the best forgery of any round for this cell; none if unknown."""
        return ()


def check_rounds(rounds: Sequence[int] | None, of: int) -> tuple[int, ...]:
    """Return the observed rounds, numbered from 1, each once; all of them by default.

    Raises
    ------
    ParameterError
        If the sequence is empty, repeats a round, or has a round that the mechanism does not have.
    """
    if rounds is None:
        return tuple(range(1, of + 1))
    seen = tuple(check_integer("rounds", r, at_least=1, at_most=of) for r in rounds)
    if not seen or len(set(seen)) < len(seen):
        raise ParameterError("rounds", "must name at least one round, each once", list(rounds))
    return seen


def check_prior(prior: Any, cells: int) -> Floats:
    """Return the checked prior over outside and every cell, (cells + 1,) float64."""
    q = check_distribution("prior", prior)
    if q.shape != (cells + 1,):
        raise ParameterError("prior", f"must hold outside and {cells} cells, shape {(cells + 1,)}", q.shape)
    return q


def greatest_other(prior: Floats) -> Floats:
    """Return for each truth the greatest prior among all others, (truths,); there must be at least two truths."""
    second, first = np.partition(prior, -2)[-2:]
    others = np.full(len(prior), first)
    others[int(prior.argmax())] = second
    return others


# Stands for what no mechanism sends, for example a sum of only some of the shares, which is no valid encoding.
INVALID = -1


def read_values(reports: Any, *, outputs: int) -> Integers:
    """Return one value per device, (n,) int64 in 0…outputs − 1, or INVALID.

    Parameters
    ----------
    reports : (n,) int32, or (n, outputs) int64 or uint64
        Values, or encodings; encodings of honest devices are one-hot.
    outputs : int

    Raises
    ------
    ParameterError
        If the reports have another shape, or a value is out of range.
    """
    if isinstance(reports, np.ndarray) and reports.ndim == 2:
        return _place_of_one(check_vectors(reports, (outputs,)))
    return check_values(reports, outputs=outputs).astype(np.int64)


def read_answers(reports: Any, *, cells: int, outputs: int) -> Integers:
    """Return the answer about every cell, (n, cells) int64 in 0…outputs − 1, or INVALID.

    Parameters
    ----------
    reports : BitReports, AnswerReports, or (n, cells, outputs) int64 or uint64
    cells, outputs : int
    """
    if isinstance(reports, np.ndarray):
        return _place_of_one(check_vectors(reports, (cells, outputs)))
    if isinstance(reports, BitReports | AnswerReports) and reports.cells == cells:
        held = 2 if isinstance(reports, BitReports) else reports.outputs
        if held == outputs:
            return reports.to_dense().astype(np.int64)
    raise ParameterError("reports", f"must be answers about {cells} cells, {outputs} outputs", reports)


def check_vectors(reports: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the encodings, (n, *shape) of 64-bit integers; raise `ParameterError` for another dtype or shape."""
    if reports.dtype not in {np.dtype(np.int64), np.dtype(np.uint64)}:
        raise ParameterError("reports", "must be encodings of 64-bit integers", str(reports.dtype))
    if reports.shape[1:] != shape:
        raise ParameterError("reports", f"must have encodings of shape {shape}", reports.shape)
    return reports


def _place_of_one(vectors: NDArray[Any]) -> Integers:
    """Return the index of the 1 along the last axis, INVALID where the axis is not one-hot."""
    ones = vectors == 1
    fine = (ones.sum(axis=-1) == 1) & ((vectors == 0) | ones).all(axis=-1)
    return np.where(fine, ones.argmax(axis=-1), INVALID)


class NoLikelihoodError(NotImplementedError):
    """Raised if the likelihood of a mechanism's reports is not defined, so that no best guess can be made from them.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism's class.
    reason : str
        What is missing, as a sentence.
    """

    def __str__(self) -> str:
        """Return the mechanism and the reason in one sentence."""
        mechanism, reason = self.args
        return f"{mechanism} has no likelihood: {reason}"


# With more levels than this, over all cells, sorting takes too long or too much memory.
LARGEST_LEVELS = 4_000_000


def expected_best(prior: Floats, log_ratio: Floats, log_mass: Floats) -> float | None:
    """Return E[max(q_0, max_v q_v·R_v)] for independent R_v of the same distribution; None if it has too many levels.

    If the evidence about different cells is independent, and truth v changes only the evidence about cell v, then an
    observation x has P(x | v) = P(x | 0)·R_v(x), where R_v is the likelihood ratio of the evidence about cell v. So the
    best guess is right with probability Σ_x max_t q_t·P(x | t) = E_0[max(q_0, max_v q_v·R_v)], plus the probability of
    observations that are possible for one truth only. The distribution function of the maximum is the product of the
    cells' distribution functions. The levels are sorted from the greatest q_v·R_v down, and each adds its value times
    the probability that it is the greatest. Nothing is subtracted, so the result is exact up to rounding, in
    O(L log L) for L levels in all.

    Parameters
    ----------
    prior : (cells + 1,) float64
        q_0…q_V.
    log_ratio, log_mass : (levels,) float64
        ln R, −∞ for R = 0, and ln P_0(R), in any order; all masses are positive.

    Returns
    -------
    float or None
    """
    cells, levels = len(prior) - 1, len(log_ratio)
    if cells * levels > LARGEST_LEVELS:
        return None
    order = np.argsort(log_ratio, kind="stable")
    # ln P_0(R_v = R | R_v ≤ R): the mass of a level over the mass of it and all lower levels.
    shares = np.minimum(log_mass[order] - np.logaddexp.accumulate(log_mass[order]), 0.0)
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    weight = np.add.outer(log_prior[1:], log_ratio[order])
    floor = max(float(log_prior[0]), float(weight[:, 0].max(initial=-np.inf)))
    places = np.flatnonzero(weight > floor)
    weight, share = weight.ravel()[places], np.tile(shares, cells)[places]
    descending = np.argsort(-weight, kind="stable")
    weight, share = weight[descending], share[descending]
    with np.errstate(divide="ignore"):
        left = np.log1p(-np.exp(share))
    ahead = np.concatenate([[0.0], np.cumsum(left)])
    best = float(np.exp(weight + share + ahead[:-1]).sum())
    return best + float(np.exp(floor + ahead[-1]))
