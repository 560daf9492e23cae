"""Likelihood of a device's reports given its cell, for every mechanism that defines one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.inference.direct_encoding import OwnValueLaw
from mechanisms.inference.report_law import (
    LARGEST_LEVELS,
    Logs,
    NoLikelihoodError,
    ReportLaw,
    check_rounds,
    check_vectors,
    expected_best_alike,
)
from mechanisms.inference.subset import hadamard_law, hashing_law, subset_law
from mechanisms.inference.unary import CellLaw
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.common.binary_query import Answers, Question
from mechanisms.local.common.binary_query_mechanism import QuestionMechanism
from mechanisms.local.distributed_laplace import DistributedLaplace, SparseVectors
from mechanisms.local.hadamard_response import HadamardResponse
from mechanisms.local.k_randomized_response import KRandomizedResponse
from mechanisms.local.local_hashing import LocalHashing
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.randomized_response import RandomizedResponse
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.local.unary_encoding import UnaryEncoding
from mechanisms.parameter import ParameterError
from mechanisms.privacy.laplace_noise import PartialNoise

# Beyond this entry the ratio of neighbouring masses is computed from its limit, α·(k/(k − 1))^(r − 1), exact to 1/k².
TABLED = 4_096
# Noise values with less mass than this are left out of the sum for the success.
LEFT_OUT = 1e-18


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The law of a vector whose entries are noise of distribution f, plus 1 in the entry of the true cell.

    Parameters
    ----------
    cells : int
        V.
    noise : PartialNoise
        f, the noise of one device: a share of the whole noise, at most 1.
    """

    cells: int
    noise: PartialNoise

    @classmethod
    def of_shares(cls, mechanism: DistributedLaplace) -> "NoiseLaw":
        """Return the law of one device's vector."""
        return cls(mechanism.cells, PartialNoise(mechanism.epsilon / mechanism.sensitivity, 1.0 / mechanism.devices))

    def log_ratio(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ln f(x − 1)/f(x) of entries x: positive for x ≥ 1, elsewhere the negative of its value at 1 − x."""
        away = np.where(entries >= 1, entries, 1 - entries)
        law = self.noise.masses(TABLED + 1)[0]
        usable = int(np.count_nonzero(law > 1e-290))
        table = np.log(law[: usable - 1]) - np.log(law[1:usable])
        near = table[np.minimum(away, len(table)) - 1]
        limit = self.noise.decay + (1.0 - self.noise.share) * -np.log1p(-1.0 / np.maximum(away, 2))
        return np.where(entries >= 1, 1.0, -1.0) * np.where(away <= len(table), near, limit)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return ln f(x_t − 1)/f(x_t) for each truth t that is a cell, and 0 for outside, (n, V + 1)."""
        vectors = reports[0]
        if isinstance(vectors, SparseVectors):
            vectors = vectors.to_dense()
        entries = check_vectors(np.asarray(vectors), (self.cells,)).astype(np.int64)
        logs = np.zeros((len(entries), self.cells + 1))
        logs[:, 1:] = self.log_ratio(entries)
        return logs

    def guess_success(self, prior: NDArray[np.float64], queries: int) -> float | None:
        """Return the success from one vector, the expected maximum of independent evidence, or None.

        Noise values of mass below `LEFT_OUT`, 1e-18, are left out. None for several queries, or if the noise is so
        wide that too many values would remain.
        """
        law, _ = self.noise.masses(TABLED)
        reach = int(np.count_nonzero(law > LEFT_OUT))
        if queries > 1 or reach >= TABLED or self.cells * 2 * reach > LARGEST_LEVELS:
            return None
        entries = np.arange(1 - reach, reach)
        masses = law[np.abs(entries)]
        found = expected_best_alike(prior, self.log_ratio(entries), np.log(masses / masses.sum()))
        return None if found is None else min(found, 1.0)


# Floats in a batch of rows: 32 MB, and a few times that during the computation.
BATCH_FLOATS = 2**22


class PluginLaw:
    """The law of a mechanism that has its own method `log_likelihood(reports, rounds)`.

    Parameters
    ----------
    mechanism : LocalMechanism
    rounds : tuple of int
    """

    def __init__(self, mechanism: Any, rounds: Sequence[int]) -> None:
        self.mechanism = mechanism
        self.rounds = tuple(rounds)

    def log_likelihood(self, reports: Sequence[Any]) -> Logs:
        """Return the mechanism's own log-likelihood; raise `ParameterError` for a wrong shape, NaN or +∞."""
        logs = np.asarray(self.mechanism.log_likelihood(reports, self.rounds), dtype=np.float64)
        shape = (len(reports[0]), self.mechanism.cells + 1)
        if logs.shape != shape or np.isnan(logs).any() or np.isposinf(logs).any():
            rule = f"must return {shape} logarithms, none of them NaN or +∞"
            raise ParameterError(f"{type(self.mechanism).__name__}.log_likelihood", rule, logs.shape)
        return logs

    def guess_success(self, prior: Any, queries: int) -> float | None:  # noqa: ARG002 - as every law
        """Return None: the success has no known closed form."""
        return None


@singledispatch
def report_law(mechanism: Any, rounds: Sequence[int]) -> ReportLaw:
    """Return the law of a mechanism's reports of some rounds; `report_law.register` adds a kind of mechanism.

    A mechanism with a method `log_likelihood(reports, rounds)` needs no registration, whatever its base class.

    Raises
    ------
    NoLikelihoodError
        If no law is registered for the mechanism and it has no such method.
    """
    if callable(getattr(mechanism, "log_likelihood", None)):
        return PluginLaw(mechanism, rounds)
    raise NoLikelihoodError(
        type(mechanism).__name__, "give it a method log_likelihood(reports, rounds) that returns (n, cells + 1) logs."
    )


@report_law.register
def _(mechanism: SamplingPrivacy, rounds: Sequence[int]) -> ReportLaw:
    return OwnValueLaw.of_sampling(mechanism, rounds)


@report_law.register
def _(mechanism: KRandomizedResponse, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return OwnValueLaw.of_values(np.full(mechanism.symbols, mechanism.false_yes), mechanism.truthful)


@report_law.register
def _(mechanism: NoPrivacy, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return OwnValueLaw.of_values(np.zeros(mechanism.cells + 1), 1.0)


@report_law.register
def _(mechanism: RandomizedResponse, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    p, q = mechanism.true_yes, mechanism.false_yes
    return CellLaw.of_bits(mechanism.cells, yes=p, not_yes=1.0 - p, no=q)


@report_law.register
def _(mechanism: UnaryEncoding, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return CellLaw.of_bits(mechanism.cells, yes=mechanism.true_yes, not_yes=mechanism.true_no, no=mechanism.false_yes)


@report_law.register
def _(mechanism: BinarySamplingPrivacy, rounds: Sequence[int]) -> ReportLaw:
    zero, one, sampling = mechanism.faces
    yes: dict[Answers, float] = {(0, 0): zero, (1, 1): one, (0, 1): sampling}
    no: dict[Answers, float] = {(0, 0): zero + sampling, (1, 1): one}
    return CellLaw.of_question(mechanism.cells, Question.build(("No", "Yes"), yes=yes, no=no), rounds)


@report_law.register
def _(mechanism: QuestionMechanism, rounds: Sequence[int]) -> ReportLaw:
    return CellLaw.of_question(mechanism.cells, mechanism.question, rounds)


@report_law.register
def _(mechanism: SubsetSelection, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return subset_law(mechanism)


@report_law.register
def _(mechanism: LocalHashing, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return hashing_law(mechanism)


@report_law.register
def _(mechanism: HadamardResponse, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return hadamard_law(mechanism)


@report_law.register
def _(mechanism: DistributedLaplace, rounds: Sequence[int]) -> ReportLaw:  # noqa: ARG001 - it has one
    return NoiseLaw.of_shares(mechanism)


def law_of(mechanism: Any, rounds: Sequence[int] | None) -> ReportLaw:
    """Return the law of the reports of these rounds, checked; the mechanism's own `log_likelihood` has precedence."""
    seen = check_rounds(rounds, mechanism.rounds)
    own = callable(getattr(mechanism, "log_likelihood", None))
    return PluginLaw(mechanism, seen) if own else report_law(mechanism, seen)


def log_likelihood(mechanism: Any, reports: Sequence[Any], rounds: Sequence[int] | None = None) -> Logs:
    """Return log P(a device's reports of these rounds | its truth), up to a constant per row.

    One round alone has its marginal distribution; several rounds are linked and have their joint distribution. A truth
    for which the reports are impossible has −∞. All truths have −∞ if no device sends such reports (forged reports,
    or a partial sum of shares).

    Parameters
    ----------
    mechanism : LocalMechanism
    reports : sequence of Reports, or of (n, *tally_shape) int64 or uint64
        One entry per round of `rounds`; row i is the same device in all. Plain reports, or the encodings that are the
        sum of the shares.
    rounds : sequence of int, optional
        Which rounds these are, from 1; all by default.

    Returns
    -------
    (n, cells + 1) float64
        The whole array is in memory: for many devices and cells use `guess_cells`, or slices of the reports.

    Raises
    ------
    NoLikelihoodError
        If the mechanism has no likelihood.
    ParameterError
        If rounds and reports do not fit.
    """
    law = law_of(mechanism, rounds)
    reports = check_reports(reports, len(check_rounds(rounds, mechanism.rounds)))
    logs = np.empty((len(reports[0]), mechanism.cells + 1))
    for rows in batches(len(logs), mechanism.cells):
        logs[rows] = law.log_likelihood([report[rows] for report in reports])
    return logs


def check_reports(reports: Sequence[Any], rounds: int) -> tuple[Any, ...]:
    """Return the reports as a tuple, one entry per round; raise `ParameterError` if the devices differ in number."""
    if not isinstance(reports, list | tuple) or len(reports) != rounds:
        found = len(reports) if isinstance(reports, list | tuple) else type(reports).__name__
        raise ParameterError("reports", f"must be a list with one entry a round, {rounds}", found)
    if len({len(report) for report in reports}) > 1:
        raise ParameterError("reports", "must have the same devices in every round", [len(r) for r in reports])
    return tuple(reports)


def batches(rows: int, cells: int) -> Iterator[slice]:
    """Return slices of the rows, such that cells + 1 floats per row fit into `BATCH_FLOATS`."""
    step = max(1, BATCH_FLOATS // (cells + 1))
    return (slice(start, start + step) for start in range(0, rows, step))
