"""Anonymized Local Privacy: answers Yes, No or ⊥, with separate rates for Yes-holders and No-holders.

Contains lemma 7: the estimates from every combination of signs.
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.binary_query import BinaryQuery, remainder
from mechanisms.local.common.binary_query_mechanism import (
    SILENT,
    YES,
    EstimatorChoice,
    ThreeAnswerMechanism,
    build_yes_no_silent,
)
from mechanisms.local.mechanism import Counts
from mechanisms.parameter import ParameterError, check_chance, check_integer, check_true_counts


@dataclass(frozen=True, kw_only=True)
class AnonymizedLocal(ThreeAnswerMechanism):
    """Answer Yes, No or ⊥ (ALP eqs 6-7).

    A Yes-holder answers ⊥ with probability 1 − π_Y1 − π_Y2, Yes with π_Y1·π_1 + π_Y2·π_2, and No otherwise. A No-holder
    answers ⊥ with probability 1 − π_No, Yes with π_No·π_3, and No otherwise. In the paper π_Y1·π_1 is the truthful and
    π_Y2·π_2 the forced Yes; only their sum can be observed.

    Each of the three counts has an estimator (C − qN)/(p − q) with its standard error (lemmas 1-6; lemma 3
    names its count of No "Yes", and eq 17 has σ("Yes") where σ("No") is meant). With d = p − q, the three
    satisfy Σ d·Ŷ = ΣC − N = 0, as Σ d = 0. So each is a combination of the other two, their covariance has rank 2,
    and a third adds no information. The best combination is the linear estimator of least variance from the
    three counts. Its optimal weights depend on the share of Yes-holders, which is unknown. They are therefore fixed for
    a share given beforehand: the estimator is unbiased at every truth and has least variance at that share.

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
        The count to estimate from, or the best combination (the default).
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default, as if devices
        were spread evenly.

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
    estimator: EstimatorChoice = "best"
    source: ClassVar[str] = "ALP eqs 6-7"

    def __post_init__(self) -> None:
        for field in ("sampling_yes_one", "sampling_yes_two", "sampling_no", "first_coin", "second_coin", "third_coin"):
            check_chance(field, getattr(self, field))
        super().__post_init__()

    def build_binary_query(self) -> BinaryQuery:
        """Return the distributions of No, Yes and ⊥ (ALP eqs 6-7)."""
        one, two, no = self.sampling_yes_one, self.sampling_yes_two, self.sampling_no
        silent = remainder("sampling_yes_two", two, one, two)
        said_no = one * (1.0 - self.first_coin) + two * (1.0 - self.second_coin)
        return build_yes_no_silent(
            yes=(said_no, one * self.first_coin + two * self.second_coin, silent),
            no=(no * (1.0 - self.third_coin), no * self.third_coin, 1.0 - no),
        )

    def count_std_errors(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return σ("No"), σ("Yes") and σ(⊥) of the counts themselves, (3, V) (lemmas 4, 2 and 6).

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        """
        truth = check_true_counts(true_counts, self.cells)
        yes, no = (law - law * law for law in self.binary_query.in_round(1))
        variances = np.multiply.outer(yes, truth[1:]) + np.multiply.outer(no, truth.sum() - truth[1:])
        return np.asarray(np.sqrt(variances))


Sign: TypeAlias = Literal[-1, 1]
SIGNS: tuple[Sign, Sign] = (1, -1)
# A determinant this small is a rounding error, as the probabilities are of order one.
SINGULAR = 1e-12


@dataclass(frozen=True, slots=True)
class SignSolution:
    """One solution (YES, σ) of eqs 25 and 26.

    Parameters
    ----------
    signs : tuple of int
        The sign of σ in eq 25 and in eq 26.
    yes : float
        YES, the number of Yes-holders.
    sigma : float
        σ, not negative.
    excess : float
        The error in eq 27: its left side minus DO. It is 0 if no device answered No, else minus the count of No.
    """

    signs: tuple[Sign, Sign]
    yes: float
    sigma: float
    excess: float


@dataclass(frozen=True, slots=True)
class SignSolutions:
    """Solutions of the equations of lemma 7.

    Parameters
    ----------
    solutions : tuple of SignSolution
        The solutions with neither YES nor σ negative.
    dependent : tuple of tuple of int
        The signs with which the two equations are equivalent or contradictory, so that they determine nothing.
    """

    solutions: tuple[SignSolution, ...]
    dependent: tuple[tuple[Sign, Sign], ...]


def solve_sign_combinations(mechanism: AnonymizedLocal, *, said_yes: int, silent: int, devices: int) -> SignSolutions:
    """Solve E["Yes"] ± σ = Observed("Yes") and E[⊥] ± σ = Observed(⊥) for YES and σ (ALP lemma 7, eqs 25-27).

    With each combination of signs, eqs 25 and 26 are two linear equations with two unknowns. Eq 27, their sum set
    to DO, is no independent equation if no device answers No, since then Observed("Yes") + Observed(⊥) = DO. If some
    devices answer No, it is wrong by their count. Solutions with a negative YES are dropped, as the paper prescribes.
    Those with a negative σ are dropped too: they repeat the solutions for the opposite signs.

    Findings. The single σ for both counts is based on the paper's observation that the standard deviations are equal
    at π_1 = π_2 = π_3 = 1. This is true for "Yes" and ⊥. It is not true for "No": no device answers No, σ("No") = 0,
    and the estimator of lemma 3 is 0/0. At exactly these parameters the equations give no new information: with equal
    signs the sum of the two equations is 2σ = 0, so YES is the estimate of lemma 1, and with opposite signs the
    equations are equivalent. With other parameters each pair of signs has its own solution, and no criterion selects
    the right one. So the σ found is no standard error: it is the value that makes two estimates equal which differ by
    chance. Use the best combination of the counts instead.

    Parameters
    ----------
    mechanism : AnonymizedLocal
        The parameters of eqs 6-7.
    said_yes, silent : int
        Observed("Yes") and Observed(⊥), for one cell.
    devices : int
        DO, at least 1.

    Returns
    -------
    SignSolutions

    Raises
    ------
    ParameterError
        If a count is negative, or the two exceed `devices`.
    """
    check_integer("devices", devices, at_least=1)
    check_integer("said_yes", said_yes, at_least=0)
    check_integer("silent", silent, at_least=0)
    if said_yes + silent > devices:
        raise ParameterError("silent", f"must be at most devices − said_yes = {devices - said_yes}", silent)
    yes, no = mechanism.binary_query.in_round(1)
    slope = (yes - no)[[YES, SILENT]]
    seen = np.array([said_yes, silent], dtype=np.float64) - no[[YES, SILENT]] * devices
    solutions: dict[tuple[float, float], SignSolution] = {}
    dependent: list[tuple[Sign, Sign]] = []
    for signs in product(SIGNS, SIGNS):
        determinant = float(slope[0] * signs[1] - slope[1] * signs[0])
        if abs(determinant) <= SINGULAR:
            dependent.append(signs)
            continue
        count = float(signs[1] * seen[0] - signs[0] * seen[1]) / determinant
        sigma = float(slope[0] * seen[1] - slope[1] * seen[0]) / determinant
        # The solution is exact up to rounding errors relative to N, so a smaller σ is 0.
        if abs(sigma) <= SINGULAR * devices:
            sigma = 0.0
        if count >= 0.0 and sigma >= 0.0:
            excess = float(said_yes + silent - devices)
            solutions.setdefault((count, sigma), SignSolution(signs, count, sigma, excess))
    return SignSolutions(tuple(solutions.values()), tuple(dependent))
