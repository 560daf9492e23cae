"""Anonymized Local Privacy: Yes, No or ⊥, each kind of holder with its own rates and coins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.mechanism import Counts
from mechanisms.local.parts.linear_estimator import LinearEstimator, estimator_of_output
from mechanisms.local.parts.question import Question, remainder
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.local.parts.yes_no_silent import (
    NO,
    SILENT,
    YES,
    Choice,
    build_yes_no_silent,
    check_choice,
    check_share,
    chosen_estimator,
    count_covariance,
)
from mechanisms.parameter import check_probability, check_true_counts


@dataclass(frozen=True, kw_only=True)
class AnonymizedLocal(QuestionMechanism):
    """Answer Yes, No or ⊥ (ALP eqs 6-7).

    A Yes-holder says ⊥ with 1 − π_Y1 − π_Y2, Yes with π_Y1·π_1 + π_Y2·π_2, No otherwise; a No-holder says ⊥ with
    1 − π_No, Yes with π_No·π_3, No otherwise. The paper has π_Y1·π_1 for the truthful and π_Y2·π_2 for the forced
    Yes; only their sum is ever seen.

    Each of the three counts has an estimator (C − qN)/(p − q) with its standard error (lemmas 1-6; lemma 3
    heads its count of No "Yes", and eq 17 has σ("Yes") where σ("No") is meant). With d = p − q, the three
    satisfy Σ d·Ŷ = ΣC − N = 0, as Σ d = 0: each is a combination of the other two, their covariance has rank 2,
    and a third says nothing new. The best combination is the linear estimator of least variance from the
    three counts. Its weights depend on the share of Yes-holders, which is what is sought, so they are fixed
    for a share given beforehand: unbiased at every truth, of least variance at that share.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling_yes_one, sampling_yes_two : float
        π_Y1 and π_Y2, in [0, 1], summing to 1 at most.
    sampling_no : float
        π_No, in [0, 1].
    first_coin, second_coin, third_coin : float
        π_1, π_2 and π_3, in [0, 1].
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from, or the best combination, which is the default.
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default, devices spread
        evenly.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    sampling_yes_one: float
    sampling_yes_two: float
    sampling_no: float
    first_coin: float
    second_coin: float
    third_coin: float
    estimator: Choice = "best"
    yes_share: float | None = None
    source: ClassVar[str] = "ALP eqs 6-7"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the default."""
        for field in ("sampling_yes_one", "sampling_yes_two", "sampling_no", "first_coin", "second_coin", "third_coin"):
            check_probability(field, getattr(self, field))
        check_choice(self.estimator)
        super().__post_init__()
        object.__setattr__(self, "yes_share", check_share(self.yes_share, self.cells))

    def build_question(self) -> Question:
        """Return the laws of No, Yes and ⊥ (ALP eqs 6-7)."""
        one, two, no = self.sampling_yes_one, self.sampling_yes_two, self.sampling_no
        silent = remainder("sampling_yes_two", two, one, two)
        said_no = one * (1.0 - self.first_coin) + two * (1.0 - self.second_coin)
        return build_yes_no_silent(
            yes=(said_no, one * self.first_coin + two * self.second_coin, silent),
            no=(no * (1.0 - self.third_coin), no * self.third_coin, 1.0 - no),
        )

    def build_estimator(self) -> LinearEstimator:
        """Return the chosen estimator; a NotEstimableError where its count says nothing."""
        share = check_share(self.yes_share, self.cells)
        return chosen_estimator(self.question, self.estimator, yes_share=share, mechanism=type(self).__name__)

    def estimate_by(
        self, estimator: Choice, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]
    ) -> Estimate:
        """Return another estimator's estimate from the same counts (lemmas 1, 3 and 5, or the best).

        Parameters
        ----------
        estimator : {"yes", "no", "silent", "best"}
        counts : (1, V, 3) int64
        counted, asked : (1,) int
        """
        return replace(self, estimator=estimator).estimate(counts, counted=counted, asked=asked)

    def count_std_errors(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return σ("No"), σ("Yes") and σ(⊥) of the counts themselves, (3, V) (lemmas 4, 2 and 6).

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        """
        variances = np.diagonal(self._count_covariance(true_counts), axis1=1, axis2=2)
        return np.sqrt(variances.T)

    def estimator_covariance(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the exact covariance of the estimators from the counts of No, Yes and ⊥, (V, 3, 3): of rank 2.

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.

        Raises
        ------
        NotEstimableError
            If one of the three counts says nothing.
        """
        name = type(self).__name__
        slopes = np.array(
            [estimator_of_output(self.question, output, mechanism=name).weights.sum() for output in (NO, YES, SILENT)]
        )
        covariance: NDArray[np.float64] = self._count_covariance(true_counts) * np.multiply.outer(slopes, slopes)
        return covariance

    def _count_covariance(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the exact covariance of the three counts, (V, 3, 3)."""
        truth = check_true_counts(true_counts, self.cells)
        return count_covariance(self.question, truth[1:], truth.sum() - truth[1:])
