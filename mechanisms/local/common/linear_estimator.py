"""Linear unbiased estimators: a weight per output and round, exact variance, answers with abstention."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.binary_query import Answers, Question
from mechanisms.local.common.estimators import estimate_proportion
from mechanisms.local.common.intervals import QuadraticVariance, invert_tails
from mechanisms.local.common.response_counts import ResponseCounts, estimate_between, estimate_nothing
from mechanisms.local.mechanism import Estimate, NotEstimableError
from mechanisms.parameter import ParameterError

# Tolerance for rounding errors in the check that the weights are unbiased.
TOLERANCE = 1e-7
# Distributions this close count as equal: then no output distinguishes a Yes from a No.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class LinearEstimator:
    """Ŷ = Σ_r (N/n_r) Σ_o w_ro·C_ro + cN: a device contributes 1 on average if it is in the cell, else 0.

    Parameters
    ----------
    question : Question
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

    question: Question
    weights: NDArray[np.float64]
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check that the estimate is unbiased for every truth."""
        size = 1.0 + np.abs(self.weights).max()
        for field, law, mean in (("yes", self.question.yes, 1.0), ("no", self.question.no, 0.0)):
            found = float(np.array(law) @ self.scores.sum(axis=1)) + self.offset
            if not abs(found - mean) <= TOLERANCE * size:
                raise ParameterError("weights", f"must have mean {mean:g} for a {field} holder", found)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The contribution of each answer in each round, (answers, rounds)."""
        scores: NDArray[np.float64] = (self.question.given * self.weights).sum(axis=2)
        return scores

    def count(self, counts: NDArray[np.int64], heard: ResponseCounts) -> NDArray[np.float64]:
        """Return the estimates, (cells,), from (rounds, cells, outputs) counts; `heard.silent` must be False."""
        rates = np.array([heard.devices / n if n else 0.0 for n in heard.counted])
        each = np.einsum("rvo,ro->rv", counts.astype(np.float64), self.weights)
        count: NDArray[np.float64] = rates @ each + self.offset * heard.devices
        return count

    def estimate(self, counts: NDArray[np.int64], heard: ResponseCounts) -> Estimate:
        """Return the estimate with its interval, from (rounds, cells, outputs) counts.

        If the outputs of a single round have only two different weights, it is the estimate of a proportion, whose
        distribution is known. Else the distribution is approximated by a binomial with the estimate's mean and variance
        and no skewness, whose step is the greatest change of the estimate by one report. A coverage of 95 % then
        requires the noise of many devices.
        """
        if heard.silent:
            return estimate_nothing(heard, counts.shape[1])
        values = np.unique(self.weights)
        if self.question.rounds == 1 and len(values) == 2:
            heavy = self.weights[0] == values[1]
            yes, no = (float(law[heavy].sum()) for law in self.question.in_round(1))
            return estimate_proportion(counts[0][:, heavy].sum(axis=1), true_yes=yes, false_yes=no, heard=heard)
        count, variance = self.count(counts, heard), self.variance(heard)
        rates = heard.devices / np.maximum(heard.counted, 1)
        step = float((rates * np.ptp(self.weights, axis=1)).max())
        ends = invert_tails(count, lambda y: (variance.at(y), np.zeros_like(y)), max(step, 1.0), heard.devices)
        return estimate_between(count, variance, ends, heard)

    def variance(self, heard: ResponseCounts) -> QuadraticVariance:
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
        n = heard.devices
        if max(heard.asked) > n:
            rule = f"must not exceed the {n} of round {heard.truth_round}, in which the truth is fixed"
            raise ParameterError("asked", rule, list(heard.asked))
        if n == 0:
            return QuadraticVariance(0.0, 0.0, 0.0)
        asked = np.array(heard.asked, dtype=np.float64)
        factor = n / np.maximum.outer(asked, asked)
        np.fill_diagonal(factor, n / np.array(heard.counted, dtype=np.float64))
        (yes_mean, yes), (no_mean, no) = (self._moments(law) for law in (self.question.yes, self.question.no))
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


def estimator_of_output(question: Question, output: int, *, mechanism: str) -> LinearEstimator:
    """Return (C − qN)/(p − q) of a single output's count C in a question asked once (ALP lemmas 1, 3 and 5).

    Parameters
    ----------
    question : Question
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
    yes, no = question.in_round(1)
    gap = yes[output] - no[output]
    if abs(gap) <= SAME:
        raise NotEstimableError(
            mechanism,
            f"the count of {question.outputs[output]} says nothing about the truth, since devices in the cell and "
            f"others give it with one probability, {yes[output]:g}.",
        )
    weights = np.zeros((1, len(question.outputs)))
    weights[0, output] = 1.0 / gap
    return LinearEstimator(question, weights, -float(no[output] / gap))


def estimator_of_least_variance(question: Question, *, yes_share: float, mechanism: str) -> LinearEstimator:
    """Return the unbiased linear estimator of least variance for a given share of devices in the cell.

    Every unbiased linear estimator has weights with w·p̄ = 1 and w·q̄ = 0, where p̄ and q̄ are the distributions of the
    outputs in all rounds (an offset is a weight on all outputs of a round). Its variance per device is wᵀVw with
    V = s·V_yes + (1 − s)·V_no. V is singular, as a round's counts sum to the number of devices, so the conditions for a
    minimum are solved by least squares. The estimator is unbiased at every share, and has least variance at this one.

    Parameters
    ----------
    question : Question
    yes_share : float
        s, above 0 and below 1.
    mechanism : str
        The mechanism's name, for the error message.

    Raises
    ------
    NotEstimableError
        If devices in the cell and others give every output of every round equally often.
    """
    given = question.given.reshape(len(question.answers), -1).astype(np.float64)
    means = np.stack([np.array(law) @ given for law in (question.yes, question.no)])
    if np.abs(means[0] - means[1]).max() <= SAME:
        raise NotEstimableError(
            mechanism, "devices in the cell and others answer alike, so the counts say nothing about the truth."
        )
    covariance = sum(
        share * (given.T * np.array(law)) @ given - share * np.multiply.outer(mean, mean)
        for share, law, mean in zip((yes_share, 1.0 - yes_share), (question.yes, question.no), means, strict=True)
    )
    conditions = np.block([[np.asarray(covariance), means.T], [means, np.zeros((2, 2))]])
    target = np.concatenate([np.zeros(given.shape[1]), [1.0, 0.0]])
    solution = np.linalg.lstsq(conditions, target, rcond=None)[0]
    return LinearEstimator(question, solution[: given.shape[1]].reshape(question.rounds, -1))


OUTPUTS = ("No", "Yes", "⊥")
NO, YES, SILENT = range(3)
# Which count to estimate from: of Yes, of No, of ⊥, or the best combination of all three.
Choice = Literal["yes", "no", "silent", "best"]
COUNT_OF = {"no": NO, "yes": YES, "silent": SILENT}


def check_choice(choice: str) -> None:
    """Reject an unknown estimator name."""
    if choice not in get_args(Choice):
        raise ParameterError("estimator", f"must be one of {', '.join(get_args(Choice))}", choice)


def check_share(share: float | None, cells: int) -> float:
    """Return the share of Yes-holders to optimise for, between 0 and 1, by default 1/(V + 1); reject NaN."""
    if share is None:
        return 1.0 / (cells + 1)
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ParameterError("yes_share", "must be between 0 and 1, both excluded", share)
    return float(share)


def build_yes_no_silent(*, yes: tuple[float, float, float], no: tuple[float, float, float]) -> Question:
    """Return the single-round question that is answered No, Yes or ⊥ with these probabilities."""
    laws: list[dict[Answers, float]] = [{(output,): p for output, p in enumerate(law)} for law in (yes, no)]
    return Question.build(OUTPUTS, yes=laws[0], no=laws[1])


def chosen_estimator(question: Question, choice: Choice, *, yes_share: float, mechanism: str) -> LinearEstimator:
    """Return the estimator from one count, or the best from all.

    Parameters
    ----------
    question : Question
        Asked once, answered No, Yes or ⊥.
    choice : {"yes", "no", "silent", "best"}
    yes_share : float
        The share of Yes-holders at which "best" has the least variance.
    mechanism : str
        The mechanism's name, for the error message.

    Raises
    ------
    NotEstimableError
        If the count does not depend on the truth.
    """
    if choice == "best":
        return estimator_of_least_variance(question, yes_share=yes_share, mechanism=mechanism)
    return estimator_of_output(question, COUNT_OF[choice], mechanism=mechanism)


def count_covariance(question: Question, yes: NDArray[np.int64], no: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the exact covariance (cells, 3, 3) of the counts of No, Yes and ⊥.

    Each kind of device adds a multinomial: Y(diag p − ppᵀ) + (N − Y)(diag q − qqᵀ), of rank 2 at most, since
    the three counts sum to N.

    Parameters
    ----------
    question : Question
        Asked once.
    yes, no : (cells,) int64
        Y and N − Y for each cell.
    """
    laws = question.in_round(1)
    spread = [np.diag(law) - np.multiply.outer(law, law) for law in laws]
    total: NDArray[np.float64] = np.multiply.outer(yes, spread[0]) + np.multiply.outer(no, spread[1])
    return total
