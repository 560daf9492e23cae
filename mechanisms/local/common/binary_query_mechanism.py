"""Mechanisms that ask one binary query per cell: their linear unbiased estimators, exact variance and claims."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.base import BaseMechanism
from mechanisms.local.common.binary_query import Answers, BinaryQuery, BinaryQueryCoins, batch_of_rows
from mechanisms.local.common.estimators import estimate_proportion
from mechanisms.local.common.intervals import QuadraticVariance, invert_tails
from mechanisms.local.common.packed_bits import AnswerReports
from mechanisms.local.common.response_counts import ResponseCounts, check_where, estimate_between, estimate_nothing
from mechanisms.local.mechanism import Counts, Estimate, NoMemory, NotEstimableError, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_choice, check_integer, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.published_sums import answer_sums_claim
from mechanisms.privacy.report_claims import mixed_reports_claim, per_cell_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, Report, Shuffled

# Tolerance for rounding errors in the check that the weights are unbiased.
TOLERANCE = 1e-7
# Distributions this close count as equal: then no output distinguishes a Yes from a No.
SAME = 1e-12


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

    Raises
    ------
    ParameterError
        If the weights are not unbiased.
    """

    binary_query: BinaryQuery
    weights: NDArray[np.float64]
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check that the estimate is unbiased for every truth."""
        size = 1.0 + np.abs(self.weights).max()
        for field, law, mean in (("yes", self.binary_query.yes, 1.0), ("no", self.binary_query.no, 0.0)):
            expected = float(np.array(law) @ self.scores.sum(axis=1)) + self.offset
            if not abs(expected - mean) <= TOLERANCE * size:
                raise ParameterError("weights", f"must have mean {mean:g} for a {field} holder", expected)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The contribution of each answer in each round, (answers, rounds)."""
        return np.asarray((self.binary_query.given * self.weights).sum(axis=2))

    def count(self, counts: NDArray[np.int64], received: ResponseCounts) -> NDArray[np.float64]:
        """Return the estimates, (cells,), from (rounds, cells, outputs) counts; `received.silent` must be False."""
        rates = np.array([received.devices / n if n else 0.0 for n in received.counted])
        each = np.einsum("rvo,ro->rv", counts.astype(np.float64), self.weights)
        return np.asarray(rates @ each + self.offset * received.devices)

    def estimate(self, counts: NDArray[np.int64], received: ResponseCounts) -> Estimate:
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

    def _moments(self, law: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the means (rounds,) and covariances (rounds, rounds) of a device's contributions."""
        masses = np.array(law)
        mean = masses @ self.scores
        away = self.scores - mean
        return mean, away.T @ (masses[:, np.newaxis] * away)


def estimator_of_output(binary_query: BinaryQuery, output: int, *, mechanism: str) -> LinearEstimator:
    """Return (C − qN)/(p − q) of a single output's count C in a question asked once (ALP lemmas 1, 3 and 5).

    Parameters
    ----------
    binary_query : BinaryQuery
        Asked once.
    output : int
        The number of the output.
    mechanism : str
        The mechanism's name, for the error message.

    Raises
    ------
    NotEstimableError
        If devices in the cell and others give the output equally often, so that the divisor is 0.
    """
    yes, no = binary_query.in_round(1)
    gap = yes[output] - no[output]
    if abs(gap) <= SAME:
        raise NotEstimableError(
            mechanism,
            f"the count of {binary_query.outputs[output]} does not depend on the truth, since devices in the cell and "
            f"others give it with the same probability, {yes[output]:g}.",
        )
    weights = np.zeros((1, len(binary_query.outputs)))
    weights[0, output] = 1.0 / gap
    return LinearEstimator(binary_query, weights, -float(no[output] / gap))


def estimator_of_least_variance(binary_query: BinaryQuery, *, yes_share: float, mechanism: str) -> LinearEstimator:
    """Return the unbiased linear estimator of least variance for a given share of devices in the cell.

    Every unbiased linear estimator has weights with w·p̄ = 1 and w·q̄ = 0, where p̄ and q̄ are the distributions of the
    outputs in all rounds (an offset is a weight on all outputs of a round). Its variance per device is wᵀVw with
    V = s·V_yes + (1 − s)·V_no. V is singular, as a round's counts sum to the number of devices, so the conditions for a
    minimum are solved by least squares. The estimator is unbiased at every share, and has least variance at this one.

    Parameters
    ----------
    binary_query : BinaryQuery
    yes_share : float
        s, above 0 and below 1.
    mechanism : str
        The mechanism's name, for the error message.

    Raises
    ------
    NotEstimableError
        If devices in the cell and others give every output of every round equally often.
    """
    given = binary_query.given.reshape(len(binary_query.answers), -1).astype(np.float64)
    means = np.stack([np.array(law) @ given for law in (binary_query.yes, binary_query.no)])
    if np.abs(means[0] - means[1]).max() <= SAME:
        raise NotEstimableError(
            mechanism, "devices in the cell and others answer alike, so the counts do not depend on the truth."
        )
    covariance = sum(
        share * (given.T * np.array(law)) @ given - share * np.multiply.outer(mean, mean)
        for share, law, mean in zip(
            (yes_share, 1.0 - yes_share), (binary_query.yes, binary_query.no), means, strict=True
        )
    )
    conditions = np.block([[np.asarray(covariance), means.T], [means, np.zeros((2, 2))]])
    target = np.concatenate([np.zeros(given.shape[1]), [1.0, 0.0]])
    solution = np.linalg.lstsq(conditions, target, rcond=None)[0]
    return LinearEstimator(binary_query, solution[: given.shape[1]].reshape(binary_query.rounds, -1))


OUTPUTS = ("No", "Yes", "⊥")
NO, YES, SILENT = range(3)
# Which count to estimate from: of Yes, of No, of ⊥, or the best combination of all three.
EstimatorChoice = Literal["yes", "no", "silent", "best"]
COUNT_OF = {"no": NO, "yes": YES, "silent": SILENT}


def check_share(share: float | None, cells: int) -> float:
    """Return the share of Yes-holders to optimise for, between 0 and 1, by default 1/(V + 1); reject NaN."""
    if share is None:
        return 1.0 / (cells + 1)
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ParameterError("yes_share", "must be between 0 and 1, both excluded", share)
    return float(share)


def build_yes_no_silent(*, yes: tuple[float, float, float], no: tuple[float, float, float]) -> BinaryQuery:
    """Return the single-round question that is answered No, Yes or ⊥ with these probabilities."""
    laws: list[dict[Answers, float]] = [{(output,): p for output, p in enumerate(law)} for law in (yes, no)]
    return BinaryQuery.build(OUTPUTS, yes=laws[0], no=laws[1])


def _certain_answers(binary_query: BinaryQuery) -> str:
    """Return a text that names answers which reveal the truth with certainty; empty if there are none."""
    parts = []
    for answers, who in ((binary_query.only_from_yes, "in the cell"), (binary_query.only_from_no, "not in it")):
        if answers:
            parts.append(f"{binary_query.name(answers[0])} is given only by a device {who}")
    return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class BinaryQueryMechanism(BaseMechanism):
    """A yes/no question about every cell, answered with one of a few outputs; one set of coins serves all rounds.

    A device is a Yes-holder of the question about its own cell and a No-holder of all others. A device outside
    every cell is a No-holder of all. Its coins for different cells are independent. The truth is that of
    round one.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1; with 1 it is the single question of the papers.
    """

    cells: int
    source: ClassVar[str]

    def __post_init__(self) -> None:
        """Check the number of cells, and check the parameters by computing the distribution of the answers."""
        check_integer("cells", self.cells, at_least=1)
        _ = self.binary_query

    @abstractmethod
    def build_binary_query(self) -> BinaryQuery:
        """Return the distribution of the answers; raise ParameterError if the parameters define none."""

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

    @abstractmethod
    def build_estimator(self) -> LinearEstimator:
        """Return the estimator; raise NotEstimableError if there is none."""

    @cached_property
    def binary_query(self) -> BinaryQuery:
        """The distribution of the answers."""
        return self.build_binary_query()

    @cached_property
    def linear_estimator(self) -> LinearEstimator:
        """The linear estimator with its weights.

        Raises
        ------
        NotEstimableError
            If there is none.
        """
        return self.build_estimator()

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, outputs): the number of each output about each cell."""
        return (self.cells, len(self.binary_query.outputs))

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and one round's reports take at most about 64 MB."""
        return batch_of_rows(self.binary_query.words(self.cells))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> BinaryQueryCoins:
        """Draw every device's answers in all rounds, for its own cell and for any other."""
        return self.binary_query.toss(memory.devices, self.cells, rng=rng)

    def answer(self, round: int, truth: Truth, coins: BinaryQueryCoins) -> AnswerReports:  # noqa: A002 - the paper's word
        """Return an answer about every cell; a device outside every cell is a No-holder of each question."""
        self.check_answer(round, truth, len(coins))
        return self.binary_query.answer(round, truth, coins, self.cells)

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
        """Draw (rounds, V, outputs) counts: the answers of Y and of N − Y devices, independent between cells."""
        return self.binary_query.sample_counts(check_true_counts(true_counts, self.cells), rng=rng)

    def claim_report(self, view: Report) -> PrivacyClaim:
        """Return the claim of one round's answers, computed exactly from those that change when a device moves."""
        if self.rounds == 1:
            return self.claim_linked(LinkedReports(view.queries, adjacency=view.adjacency))
        yes, no = self.binary_query.in_round(view.round)
        cells, source = self._changed(view), f"{self.source}, round {view.round} alone"
        return per_cell_claim(yes, no, cells=cells, queries=view.queries, source=source)

    def claim_linked(self, view: LinkedReports) -> PrivacyClaim:
        """Return the claim of all rounds' answers; its basis names an answer that reveals the truth with certainty."""
        yes, no, cells = self.binary_query.yes, self.binary_query.no, self._changed(view)
        return per_cell_claim(yes, no, cells=cells, queries=view.queries, source=self._whole_source)

    def claim_shuffled(self, view: Shuffled) -> PrivacyClaim:
        """Return the claim of one round's answers in random order."""
        local, single = Report(view.round, view.queries, adjacency=view.adjacency), Report(view.round)
        # The reports that hide the device's come from any cells, so they differ from it as much as after a move.
        return mixed_reports_claim(view, local=self.claim_report(local), single=self.claim_report(single))

    def claim_counts(self, view: ReleasedCounts) -> PrivacyClaim:
        """Return the claim of published counts of the answers about each cell."""
        linked = self.claim_linked(LinkedReports(view.queries, adjacency=view.adjacency))
        yes, no = np.array(self.binary_query.yes), np.array(self.binary_query.no)
        return answer_sums_claim(view, yes=yes, no=no, linked=linked, source=self._whole_source)

    @property
    def _whole_source(self) -> str:
        """Return the source, and which answers reveal the truth with certainty, if there are any."""
        certain = _certain_answers(self.binary_query)
        return f"{self.source}; {certain}" if certain else self.source

    def _changed(self, view: Report | LinkedReports) -> int:
        """Return V for a move, which changes two answers; 1 where only one changes."""
        return self.cells if view.adjacency == "move" else 1


@dataclass(frozen=True, kw_only=True)
class ThreeAnswerMechanism(BinaryQueryMechanism):
    """A question asked once and answered No, Yes or ⊥, with the count to estimate from as a parameter.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from, or the best combination of all three.
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default.
    """

    estimator: EstimatorChoice = "yes"
    yes_share: float | None = None

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, get_args(EstimatorChoice))
        super().__post_init__()
        object.__setattr__(self, "yes_share", check_share(self.yes_share, self.cells))

    def build_estimator(self) -> LinearEstimator:
        """Return the chosen estimator; raise NotEstimableError if its count does not depend on the truth."""
        if self.estimator == "best":
            share = check_share(self.yes_share, self.cells)
            return estimator_of_least_variance(self.binary_query, yes_share=share, mechanism=type(self).__name__)
        return estimator_of_output(self.binary_query, COUNT_OF[self.estimator], mechanism=type(self).__name__)
