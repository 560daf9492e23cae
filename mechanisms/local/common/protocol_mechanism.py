"""Mechanisms that are tables: a yes/no question about every cell, its estimate, exact variance and claims."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import Floats, Integers, Words
from mechanisms.local.common.base import DeclaredMechanism
from mechanisms.local.common.estimators import estimate_proportion
from mechanisms.local.common.intervals import QuadraticVariance, invert_tails
from mechanisms.local.common.packed_bits import AnswerReports, batch_of_rows, set_answers, toss_rows, words_of
from mechanisms.local.common.response_counts import ResponseCounts, check_where, estimate_between, estimate_nothing
from mechanisms.local.mechanism import Counts, DeviceRows, Estimate, NoMemory, NotEstimableError, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.published_sums import answer_sums_claim
from mechanisms.privacy.report_claims import per_cell_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, Report
from mechanisms.protocols.estimator import Estimator, NotEstimable, combined_estimator
from mechanisms.protocols.protocol import ASKED, BinaryQuery, Protocol, Tallies, label_of
from mechanisms.protocols.published import ProtocolTable


@dataclass(frozen=True, eq=False)
class LinearEstimator:
    """Ŷ = Σ_r (N/n_r) Σ_o w_ro·C_ro + cN: a device contributes 1 on average if it is in the cell, else 0.

    Parameters
    ----------
    binary_query : BinaryQuery
        The distribution of the answers.
    weights : (rounds, outputs) float64
        w, the weights of the counts.
    offset : float
        c, the constant per device.
    """

    binary_query: BinaryQuery
    weights: Floats
    offset: float = 0.0

    @classmethod
    def of(cls, estimator: Estimator) -> "LinearEstimator":
        """Return an exact estimator from `Tallies.by_round` in floats."""
        values, protocol = estimator.coefficients, estimator.protocol
        rows = [
            [float(values.get(label_of(r, o), 0)) for o in outputs] for r, outputs in enumerate(protocol.outputs, 1)
        ]
        return cls(BinaryQuery(protocol), np.array(rows), float(values.get(ASKED, 0)))

    @property
    def scores(self) -> Floats:
        """The contribution of each answer in each round, (answers, rounds)."""
        return np.asarray((self.binary_query.given * self.weights).sum(axis=2))

    def count(self, counts: Integers, received: ResponseCounts) -> Floats:
        """Return the estimates, (cells,), from (rounds, cells, outputs) counts; `received.silent` must be False."""
        rates = np.array([received.devices / n if n else 0.0 for n in received.counted])
        each = np.einsum("rvo,ro->rv", counts.astype(np.float64), self.weights)
        return np.asarray(rates @ each + self.offset * received.devices)

    def estimate(self, counts: Integers, received: ResponseCounts) -> Estimate:
        """Return the estimate with its interval, from (rounds, cells, outputs) counts.

        If the outputs of a single round have only two different weights, it is the estimate of a proportion, whose
        distribution is known. Else the distribution is approximated by a binomial with the estimate's mean and variance
        and no skewness, whose step is the greatest change of the estimate by one report. A coverage of 95 % then
        requires the noise of many devices.
        """
        if received.silent:
            return estimate_nothing(received, counts.shape[1])
        values = np.unique(self.weights)
        if self.binary_query.rounds == 1 and len(values) == 2:
            heavy = self.weights[0] == values[1]
            yes, no = (float(law[heavy].sum()) for law in self.binary_query.in_round(1))
            return estimate_proportion(counts[0][:, heavy].sum(axis=1), true_yes=yes, false_yes=no, received=received)
        count, variance = self.count(counts, received), self.variance(received)
        rates = received.devices / np.maximum(received.counted, 1)
        step = float((rates * np.ptp(self.weights, axis=1)).max())
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), max(step, 1.0), received.devices)
        return estimate_between(count, variance, ends, received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the exact variance, given that n_r of the N_r asked in round r were counted.

        Let x_r be the contribution of an answer in round r, V_rs its covariances for a device in the cell and U_rs for
        one not, and Δ_r the difference of its means. Then

        Var = Σ_rs F_rs (Y·V_rs + (N − Y)·U_rs) + Σ_rs (F_rs − 1)·Δ_r Δ_s·Y(N − Y)/(N − 1),

        with F_rr = N/n_r and F_rs = N/max(N_r, N_s). The devices counted in a round are a simple random sample of those
        asked, independently in each round, and of any two rounds one asks a subset of the other's devices. On an ideal
        channel every F is 1 and only the devices' own variances remain.

        Raises
        ------
        ParameterError
            If a round asked more devices than the one in which the truth was fixed.
        """
        n = received.devices
        if max(received.asked) > n:
            rule = f"must not exceed the {n} of round {received.truth_round}, in which the truth is fixed"
            raise ParameterError("asked", rule, list(received.asked))
        if n == 0:
            return QuadraticVariance(0.0, 0.0, 0.0)
        asked = np.array(received.asked, dtype=np.float64)
        factor = n / np.maximum.outer(asked, asked)
        np.fill_diagonal(factor, n / np.array(received.counted, dtype=np.float64))
        (yes_mean, yes), (no_mean, no) = (self._moments(law) for law in (self.binary_query.yes, self.binary_query.no))
        gap = yes_mean - no_mean
        between = float(((factor - 1.0) * np.multiply.outer(gap, gap)).sum()) / max(n - 1, 1)
        return QuadraticVariance(
            constant=n * float((factor * no).sum()),
            linear=float((factor * (yes - no)).sum()) + n * between,
            square=-between,
        )

    def _moments(self, law: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Return the means (rounds,) and covariances (rounds, rounds) of a device's contributions."""
        masses = np.array(law)
        mean = masses @ self.scores
        away = self.scores - mean
        return mean, away.T @ (masses[:, np.newaxis] * away)


@dataclass(frozen=True, eq=False, slots=True)
class BinaryQueryCoins(DeviceRows):
    """Answers drawn for every device, about every cell it is not in and about the cell it may be in.

    Parameters
    ----------
    no : (n, rounds, outputs − 1, ceil(cells / 64)) uint64
        Packed answers of each round about the cells the device is not in.
    yes : (n, rounds) uint8
        Answers about the cell the device is in; one per round suffices, since it is in one cell at most.
    """

    no: Words
    yes: NDArray[np.uint8]


# Weights beyond this come from distributions of the answers that differ by rounding errors only: by 1e-12 or less.
LARGEST_WEIGHT = 9.99e11


@dataclass(frozen=True, kw_only=True)
class ProtocolMechanism(DeclaredMechanism):
    """A table asked about every cell, answered with one of a few outputs; one set of coins serves all rounds.

    A device is a Yes-holder of the question about its own cell and a No-holder of all others. A device outside
    every cell is a No-holder of all. Its coins for different cells are independent. The truth is the truth of round
    one.

    A class states its `table`, whose parameters are its fields, and the `statistics` that its papers solve for the
    number of Yes-holders: sums of counts by the labels of `Tallies.by_round`.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1; with 1 it is the single question of the papers.
    """

    cells: int
    source: ClassVar[str]
    table: ClassVar[ProtocolTable[...]]

    def __post_init__(self) -> None:
        """Check the parameters, also by computing the table."""
        super().__post_init__()
        _ = self.protocol

    @cached_property
    def protocol(self) -> Protocol:
        """The table: the joint distribution of the answers about a cell, of the kinds "no" and "yes"."""
        return self.table.in_floats(**{field: getattr(self, field) for field in signature(self.table).parameters})

    @property
    @abstractmethod
    def statistics(self) -> tuple[Mapping[str, int], ...]:
        """Sums of counts, as coefficients by label, whose combination is the estimate."""

    @property
    def undetermined(self) -> str:
        """Why there is no estimate if the statistics do not determine it, as the end of a sentence."""
        return "the counts do not depend on the truth."

    @cached_property
    def binary_query(self) -> BinaryQuery:
        """The table in floats."""
        return BinaryQuery(self.protocol)

    def build_estimator(self) -> Estimator | NotEstimable | None:
        """Return the exact estimator from the statistics; None or a proof if there is none."""
        labels = dict.fromkeys(label for statistic in self.statistics for label in statistic)
        return combined_estimator(Tallies.by_round(self.protocol).only(*labels), "yes", *self.statistics)

    @cached_property
    def linear_estimator(self) -> LinearEstimator:
        """The linear estimator with its weights.

        Raises
        ------
        NotEstimableError
            If there is none.
        """
        found = self.build_estimator()
        if not isinstance(found, Estimator) or max(map(abs, found.coefficients.values())) >= LARGEST_WEIGHT:
            raise NotEstimableError(type(self).__name__, self.undetermined)
        return LinearEstimator.of(found)

    @cached_property
    def float_estimator(self) -> LinearEstimator:
        """The linear estimator solved in floats, ten times as fast, for a search.

        It is `linear_estimator` up to rounding errors, if there are two statistics; else that itself.

        Raises
        ------
        NotEstimableError
            If there is none.
        """
        if len(self.statistics) != 2:
            return self.linear_estimator
        query = self.binary_query
        labels = [[label_of(r, output) for output in outputs] for r, outputs in enumerate(self.protocol.outputs, 1)]
        weights = np.array([[[each.get(label, 0) for label in row] for row in labels] for each in self.statistics])
        offsets = np.array([each.get(ASKED, 0) for each in self.statistics])
        # What an answer adds to each statistic, (statistics, answers), and its means for both kinds of holder.
        added = np.tensordot(weights, query.given, axes=([1, 2], [1, 2])) + offsets[:, np.newaxis]
        (yes_one, yes_two), (no_one, no_two) = added @ np.array(query.yes), added @ np.array(query.no)
        size = yes_one * no_two - yes_two * no_one
        share = np.array([no_two, -no_one]) / size if size else np.full(2, np.inf)
        if np.abs(share).max() >= LARGEST_WEIGHT:
            raise NotEstimableError(type(self).__name__, self.undetermined)
        return LinearEstimator(query, np.tensordot(share, weights, axes=1), float(share @ offsets))

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return the linear estimate, with each round's counts divided by its response rate.

        Parameters
        ----------
        counts : (rounds, V, outputs) int64
        received : ResponseCounts
            Every device asked in a later round was also asked in round one.

        Returns
        -------
        Estimate
            Unbiased, with the interval of `LinearEstimator.estimate`.

        Raises
        ------
        NotEstimableError
            If the answers do not determine the count.
        """
        return self.linear_estimator.estimate(counts, received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the exact variance of the linear estimate.

        Raises
        ------
        NotEstimableError
            If the answers do not determine the count.
        """
        return self.linear_estimator.variance(received)

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, outputs): the number of each output about each cell."""
        return (self.cells, len(self.binary_query.outputs))

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and one round's reports take at most about 64 MB."""
        coins, outputs = (self.rounds + 1) * (len(self.binary_query.outputs) - 1), 2
        return batch_of_rows((coins + outputs) * words_of(self.cells))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> BinaryQueryCoins:
        """Draw every device's answers in all rounds, for the cells it is not in and for the one it may be in."""
        n, cells, answers = memory.devices, self.cells, self.binary_query.answers
        yes, no = np.array(self.binary_query.yes), self.binary_query.no
        planes = np.zeros((n, self.rounds, len(self.binary_query.outputs) - 1, words_of(cells)), dtype=np.uint64)
        # Output 0 in every round needs no bit, so it comes last and has the remaining probability.
        order = sorted((i for i, q in enumerate(no) if q > 0.0), key=lambda i: not any(answers[i]))
        taken = np.zeros((n, words_of(cells)), dtype=np.uint64)
        for place, i in enumerate(order):
            rest = order[place:]
            if not any(answers[i]):
                break
            share = no[i] / math.fsum(no[j] for j in rest) if len(rest) > 1 else 1.0
            drawn = toss_rows(n, cells, share, rng=rng, unless=taken)
            for round_, output in enumerate(answers[i]):
                if output:
                    planes[:, round_, output - 1] |= drawn
            taken |= drawn
        possible = np.flatnonzero(yes > 0.0)
        outcome = possible[np.searchsorted(np.cumsum(yes[possible])[:-1], rng.random(n), side="right")]
        return BinaryQueryCoins(planes, np.array(answers, dtype=np.uint8)[outcome])

    def answer(self, round: int, truth: Truth, coins: BinaryQueryCoins) -> AnswerReports:  # noqa: A002 - the paper's word
        """Return an answer about every cell; a device outside every cell is a No-holder of each question."""
        self.check_answer(round, truth, len(coins))
        planes = coins.no[:, round - 1].copy()
        set_answers(planes, truth, np.ascontiguousarray(coins.yes[:, round - 1]))
        return AnswerReports(planes, self.cells)

    def encode(self, reports: AnswerReports) -> Vectors:
        """Return (n, V, outputs) int64: a 1 for the answer given about each cell."""
        return self._check_reports(reports).one_hot()

    def tally(self, reports: AnswerReports, where: Where | None = None) -> Counts:
        """Return how often each answer was given about each cell, (V, outputs) int64."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        return reports.count(mask)

    def _check_reports(self, reports: AnswerReports) -> AnswerReports:
        """Reject reports with another number of cells or outputs."""
        cells, outputs = self.tally_shape
        if not isinstance(reports, AnswerReports) or (reports.cells, reports.outputs) != (cells, outputs):
            raise ParameterError("reports", f"must be AnswerReports about {cells} cells, {outputs} outputs", reports)
        return reports

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (rounds, V, outputs) counts: a multinomial of the joint answers for each kind of holder of each cell."""
        truth, query = check_true_counts(true_counts, self.cells), self.binary_query
        joint = rng.multinomial(truth[1:], query.yes) + rng.multinomial(truth.sum() - truth[1:], query.no)
        counts = np.tensordot(joint, query.given.astype(np.int64), axes=([1], [0]))
        return np.ascontiguousarray(counts.transpose(1, 0, 2)).astype(np.int64, copy=False)

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of one round's answers, computed exactly from those that change when a device moves."""
        if self.rounds == 1:
            return self.own_reports(view)
        yes, no = self.binary_query.in_round(view.round)
        cells, source = self.changed(view), f"{self.source}, round {view.round} alone"
        return per_cell_claim(yes, no, cells=cells, queries=view.queries, source=source)

    def claim_linked(self, view: LinkedReports) -> Claim:
        """Return the claim of all rounds' answers; its basis names an answer that reveals the truth with certainty."""
        yes, no, cells = self.binary_query.yes, self.binary_query.no, self.changed(view)
        return per_cell_claim(yes, no, cells=cells, queries=view.queries, source=self._whole_source)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published counts of the answers about each cell."""
        linked = self.own_reports(view)
        yes, no = np.array(self.binary_query.yes), np.array(self.binary_query.no)
        return answer_sums_claim(view, yes=yes, no=no, linked=linked, source=self._whole_source)

    @property
    def _whole_source(self) -> str:
        """Return the source, and which answers reveal the truth with certainty, if there are any."""
        query = self.binary_query
        certain = [
            f"{query.name(answers[0])} is given only by a device {who}"
            for answers, who in ((query.only_from_yes, "in the cell"), (query.only_from_no, "not in it"))
            if answers
        ]
        return f"{self.source}; {', '.join(certain)}" if certain else self.source
