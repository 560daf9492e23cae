"""Warner's randomized response: tell the truth with one probability, its opposite otherwise, about every cell."""

from dataclasses import dataclass
from typing import ClassVar

from mechanisms.local.parts.linear_estimator import LinearEstimator, estimator_of_output
from mechanisms.local.parts.question import Answers, Question
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.parameter import ParameterError, check_probability

OUTPUTS = ("No", "Yes")


@dataclass(frozen=True, kw_only=True)
class Warner(QuestionMechanism):
    """One coin a cell: heads, say the truth; tails, say the opposite (Warner 1965).

    Ŷ = (C − (1 − p)N)/(2p − 1), with variance N·p(1 − p)/(2p − 1)² whatever the truth is. Both answers are
    counted in its ε: |ln(p/(1 − p))| for a single question, twice that when every cell is asked about, since a
    move changes two answers. It is the two-coin form with π_1 = 2p − 1 and π_2 = 1/2.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    truthful : float
        p, probability of telling the truth, in [0, 1] but not 1/2.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN, or p is 1/2, where an answer says nothing.
    """

    truthful: float
    source: ClassVar[str] = "Warner 1965, both answers"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_probability("truthful", self.truthful)
        if self.truthful == 0.5:
            raise ParameterError("truthful", "must not be 1/2, where an answer says nothing", self.truthful)
        super().__post_init__()

    def build_question(self) -> Question:
        """Return the laws of No and Yes."""
        lie = 1.0 - self.truthful
        yes: dict[Answers, float] = {(0,): lie, (1,): self.truthful}
        no: dict[Answers, float] = {(0,): self.truthful, (1,): lie}
        return Question.build(OUTPUTS, yes=yes, no=no)

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator from the count of Yes."""
        return estimator_of_output(self.question, OUTPUTS.index("Yes"), mechanism=type(self).__name__)
