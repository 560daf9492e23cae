"""Questions answered Yes, No or not at all: the outputs, and the choice of the count to estimate from."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.parts.linear_estimator import (
    LinearEstimator,
    estimator_of_least_variance,
    estimator_of_output,
)
from mechanisms.local.parts.question import Answers, Question
from mechanisms.parameter import ParameterError

OUTPUTS = ("No", "Yes", "⊥")
NO, YES, SILENT = range(3)
# Which count to estimate from: of Yes, of No, of ⊥, or the best combination of all three.
Choice = Literal["yes", "no", "silent", "best"]
COUNT_OF = {"no": NO, "yes": YES, "silent": SILENT}


def check_choice(choice: str) -> None:
    """Refuse an estimator of another name."""
    if choice not in get_args(Choice):
        raise ParameterError("estimator", f"must be one of {', '.join(get_args(Choice))}", choice)


def check_share(share: float | None, cells: int) -> float:
    """Return the share of Yes-holders to be best at: between 0 and 1, 1/(V + 1) if none is given; NaN is refused."""
    if share is None:
        return 1.0 / (cells + 1)
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ParameterError("yes_share", "must be between 0 and 1, both excluded", share)
    return float(share)


def build_yes_no_silent(*, yes: tuple[float, float, float], no: tuple[float, float, float]) -> Question:
    """Return the question asked once that is answered No, Yes or ⊥ with these probabilities."""
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
        Named in the error.

    Raises
    ------
    NotEstimableError
        If that count says nothing.
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
