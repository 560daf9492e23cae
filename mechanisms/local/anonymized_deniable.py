"""Anonymized Local Privacy with plausible deniability: three answers over three outputs, solved from the last."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.binary_query import Answers, Question, remainder
from mechanisms.local.common.binary_query_mechanism import QuestionMechanism
from mechanisms.local.common.estimators import stay_shares
from mechanisms.local.common.linear_estimator import LinearEstimator
from mechanisms.local.mechanism import Counts, NotEstimableError
from mechanisms.parameter import ParameterError, check_probability

OUTPUTS = ("⊥1", "⊥2", "⊥3")
SHARES = ("yes_second", "yes_third", "no_second", "no_third", "onward", "onward_yes")


@dataclass(frozen=True, kw_only=True)
class AnonymizedDeniable(QuestionMechanism):
    """Answer three times; both kinds of holder move, in different proportions (ALP sec VII-B, eqs 46-55).

    The published equations are under-specified: NO_f lacks the π_f that YES_f has, and eqs 50 and 53 are identical.
    This class implements a corrected reading. A share s of all devices is shifted and answers ⊥1 in A. In B shifted
    Yes-holders move to ⊥2 and ⊥3 with probabilities y₁ and y₂, shifted No-holders with n₁ and n₂, and the rest stay. In
    C a fraction c of the No-holders moved to ⊥3 moves on to ⊥2. All other devices give the same answer three times.
    From the counts of ⊥2, starting with the last answer,

    NO  = (C₂[C] − C₂[B])/(s·n₂·c),
    YES = ((C₂[B] − C₂[A]) − n₁/(n₂c)·(C₂[C] − C₂[B]))/(s·y₁),
    Var = YES(1/(s·y₁) − 1) + NO·n₁(1 + n₁/(n₂c))/(s·y₁²).

    The estimate is unbiased, but its error grows as √NO: this is the cost of deniability. The deniability is one-sided.
    Every answer of a Yes-holder could be that of a No-holder, but only No-holders answer (⊥1, ⊥3, ⊥2), which reveals
    the truth with certainty. So the linked reports have no finite ε. If a fraction c_Y > 0 of the Yes-holders at ⊥3
    moves on as well (`onward_yes`, not in the paper), ε is finite; YES and NO then solve both equations together.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    shift : float
        s, in (0, 1].
    yes_second, yes_third, no_second, no_third : float
        y₁, y₂, n₁ and n₂ of the shifted devices, in [0, 1], each pair summing to 1 at most.
    onward : float
        c, in [0, 1].
    onward_yes : float
        c_Y, in [0, 1]; 0 in the paper.
    stay : (3,) sequence of float, optional
        π_⊥1, π_⊥2 and π_⊥3 of the devices not shifted, summing to 1 − shift; equal by default.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    shift: float
    yes_second: float
    yes_third: float
    no_second: float
    no_third: float
    onward: float
    onward_yes: float = 0.0
    stay: Sequence[float] | None = None
    rounds: ClassVar[int] = 3
    source: ClassVar[str] = "ALP eqs 46-55 in a fixed reading"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the default."""
        check_probability("shift", self.shift, above_zero=True)
        for field in SHARES:
            check_probability(field, getattr(self, field))
        object.__setattr__(self, "stay", stay_shares(self.shift, self.stay))
        super().__post_init__()

    def build_question(self) -> Question:
        """Return the joint distributions of the three answers (ALP eqs 47-55)."""
        return Question.build(
            OUTPUTS,
            yes=self._moves("yes_third", self.yes_second, self.yes_third, self.onward_yes),
            no=self._moves("no_third", self.no_second, self.no_third, self.onward),
        )

    def _moves(self, field: str, second: float, third: float, onward: float) -> dict[Answers, float]:
        """Return the joint distribution of the answers of one kind of holder."""
        one, two, three = stay_shares(self.shift, self.stay)
        still = remainder(field, third, second, third)
        return {
            (0, 0, 0): one + self.shift * still,
            (1, 1, 1): two,
            (2, 2, 2): three,
            (0, 1, 1): self.shift * second,
            (0, 2, 2): self.shift * third * (1.0 - onward),
            (0, 2, 1): self.shift * third * onward,
        }

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator of YES; raise NotEstimableError if the two equations do not determine it."""
        yes, _ = self._solve()
        return self._estimator(yes)

    def no_holders(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> NDArray[np.float64]:
        """Return the unbiased estimate of NO for each cell, (V,); it does not depend on YES if c_Y = 0.

        Parameters
        ----------
        counts : (3, V, 3) int64
        counted, asked : (3,) int

        Raises
        ------
        NotEstimableError
            If the two equations do not determine NO.
        ParameterError
            If devices were asked, and in some round none was counted.
        """
        heard, seen = self._hear(counted, asked), self._check_tallies(counts)
        if heard.silent:
            raise ParameterError("counted", "must be above 0 in every round", list(heard.counted))
        rates = np.array([heard.devices / n if n else 0.0 for n in heard.counted])
        _, no = self._solve()
        solved: NDArray[np.float64] = rates @ (no[:, np.newaxis] * seen[:, :, 1])
        return solved

    def _solve(self) -> NDArray[np.float64]:
        """Return the weights (2, rounds) of C₂ in A, B and C that estimate YES and NO.

        With d = (C₂[B] − C₂[A], C₂[C] − C₂[B]), E[d] = M·(YES, NO), which is solved for YES and NO.
        """
        moves = self.shift * np.array(
            [
                [self.yes_second, self.no_second],
                [self.yes_third * self.onward_yes, self.no_third * self.onward],
            ]
        )
        (a, b), (c, d) = moves.tolist()
        determinant = a * d - b * c
        if abs(determinant) <= 1e-12 * (a * d + b * c) or determinant == 0.0:
            raise NotEstimableError(
                type(self).__name__,
                "what moves to ⊥2 in B and in C does not determine YES and NO: y₁·n₂c = n₁·y₂c_Y.",
            )
        inverse = np.array([[d, -b], [-c, a]]) / determinant
        weights: NDArray[np.float64] = inverse @ np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
        return weights

    def _estimator(self, of_second: NDArray[np.float64]) -> LinearEstimator:
        """Return the estimator with these weights (rounds,) of C₂."""
        weights = np.zeros((3, 3))
        weights[:, 1] = of_second
        return LinearEstimator(self.question, weights)
