"""Anonymized Local Privacy's first attempt at cancelling the noise: two answers over two outputs."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local.not_estimable import NotEstimableError
from mechanisms.local.parts.linear_estimator import LinearEstimator
from mechanisms.local.parts.question import Answers, Question, remainder
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.parameter import ParameterError, check_probability

OUTPUTS = ("⊥1", "⊥2")


@dataclass(frozen=True, kw_only=True)
class AnonymizedFirstAttempt(QuestionMechanism):
    """Answer twice, a share moved up in A and down in B (ALP sec VI, eqs 28-31): a documented failure.

    One die for both answers, its faces side by side as the equations list them: a Yes-holder answers ⊥1 in A
    below π_⊥1 + π_Y and in B below π_⊥1 − π_Y, a No-holder likewise with π_N. What is common to both answers
    cancels, but E[⊥1A] − E[⊥1B] = 2π_Y·YES + 2π_N·NO (eqs 32-33): the term π_N·TOTAL stays, and it is noisy.
    With N known, as eqs 32-35 take it,

    YES = (C[⊥1,A] − C[⊥1,B] − 2π_N·N)/(2(π_Y − π_N)),
    Var = (YES·2π_Y(1 − 2π_Y) + NO·2π_N(1 − 2π_N))/(2(π_Y − π_N))².

    The error grows as √NO, which is what the attempt was to prevent. It is constant only with π_N = 0, when
    (⊥1, ⊥2) is given by Yes-holders alone, or with π_N = ½, when (⊥1, ⊥2) is all that No-holders give: either
    way a device's two answers tell its truth with certainty. With π_Y = π_N, "uniform sampling across both",
    the Yes terms cancel too and nothing can be estimated.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    base : float
        π_⊥1, in [0, 1].
    shift_yes, shift_no : float
        π_Y and π_N, in [0, 1], each at most π_⊥1 and 1 − π_⊥1.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    base: float
    shift_yes: float
    shift_no: float
    rounds: ClassVar[int] = 2
    source: ClassVar[str] = "ALP eqs 28-31"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_probability("base", self.base)
        for field in ("shift_yes", "shift_no"):
            shift = check_probability(field, getattr(self, field))
            if shift > self.base:
                raise ParameterError(field, f"must be at most base = {self.base:g}", shift)
        super().__post_init__()

    def build_question(self) -> Question:
        """Return the joint laws of both answers (ALP eqs 28-31)."""
        laws: list[dict[Answers, float]] = []
        for field in ("shift_yes", "shift_no"):
            shift = getattr(self, field)
            rest = remainder(field, shift, self.base, shift)
            laws.append({(0, 0): self.base - shift, (0, 1): 2.0 * shift, (1, 1): rest})
        return Question.build(OUTPUTS, yes=laws[0], no=laws[1])

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator from the difference of the counts of ⊥1 (ALP eqs 32-33).

        Raises
        ------
        NotEstimableError
            If π_Y = π_N.
        """
        gap = 2.0 * (self.shift_yes - self.shift_no)
        if gap == 0.0:
            raise NotEstimableError(type(self).__name__, "with π_Y = π_N the Yes terms cancel too (ALP sec VI).")
        weights = np.array([[1.0, 0.0], [-1.0, 0.0]]) / gap
        return LinearEstimator(self.question, weights, -2.0 * self.shift_no / gap)
