"""Sampling and plausible deniability: two coins after sampling, each kind of holder with its own rate."""

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.local.parts.linear_estimator import LinearEstimator
from mechanisms.local.parts.question import Question
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.local.parts.yes_no_silent import (
    Choice,
    build_yes_no_silent,
    check_choice,
    check_share,
    chosen_estimator,
)
from mechanisms.parameter import check_probability


@dataclass(frozen=True, kw_only=True)
class SampledResponse(QuestionMechanism):
    """Say ⊥ unless sampled, then heads on the first coin tells the truth, else the second answers (SP toy 2).

    SP eqs 2-5 and, with a rate for each kind of holder, ALP eqs 3-4. A Yes-holder says Yes with π_sYes(π_1 +
    (1 − π_1)π_2), a No-holder with π_sNo(1 − π_1)π_2. With one rate, Ŷ = (C − π_s(1 − π_1)π_2·N)/(π_sπ_1); with
    both rates 1 it is randomized response. Rates that differ make ⊥ tell too.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s of Yes-holders, in (0, 1].
    first_coin : float
        π_1, probability of telling the truth once sampled, in (0, 1].
    second_coin : float
        π_2, probability of saying Yes otherwise, in [0, 1].
    sampling_no : float, optional
        π_s of No-holders, in [0, 1]; that of Yes-holders by default.
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from; that of Yes by default, as in the papers.
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    sampling: float
    first_coin: float
    second_coin: float
    sampling_no: float | None = None
    estimator: Choice = "yes"
    yes_share: float | None = None
    source: ClassVar[str] = "SP eqs 2-5 and ALP eqs 3-4"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the defaults."""
        check_probability("sampling", self.sampling, above_zero=True)
        check_probability("first_coin", self.first_coin, above_zero=True)
        check_probability("second_coin", self.second_coin)
        no = self.sampling if self.sampling_no is None else check_probability("sampling_no", self.sampling_no)
        object.__setattr__(self, "sampling_no", no)
        check_choice(self.estimator)
        super().__post_init__()
        object.__setattr__(self, "yes_share", check_share(self.yes_share, self.cells))

    def build_question(self) -> Question:
        """Return the laws of No, Yes and ⊥ (SP eqs 2-3, ALP eqs 3-4)."""
        rates = self.sampling, self.sampling if self.sampling_no is None else self.sampling_no
        false_yes = (1.0 - self.first_coin) * self.second_coin
        false_no = (1.0 - self.first_coin) * (1.0 - self.second_coin)
        laws = [
            (rate * says_no, rate * (1.0 - says_no), 1.0 - rate)
            for rate, says_no in zip(rates, (false_no, self.first_coin + false_no), strict=True)
        ]
        # What a No-holder says of Yes, written so that it is 0 exactly where no coin can make it say so.
        laws[1] = (laws[1][0], rates[1] * false_yes, laws[1][2])
        return build_yes_no_silent(yes=laws[0], no=laws[1])

    def build_estimator(self) -> LinearEstimator:
        """Return the chosen estimator; a NotEstimableError where its count says nothing."""
        share = check_share(self.yes_share, self.cells)
        return chosen_estimator(self.question, self.estimator, yes_share=share, mechanism=type(self).__name__)
