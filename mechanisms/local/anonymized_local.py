"""Anonymized Local Privacy: answers Yes, No or ⊥, with separate rates for Yes-holders and No-holders.

Contains the first attempt, the construction whose noise cancels (two answers over three outputs), and lemma 7: the
estimates from every combination of signs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.binary_query import Answers, Question, remainder
from mechanisms.local.common.binary_query_mechanism import QuestionMechanism
from mechanisms.local.common.estimators import estimate_difference, stay_shares
from mechanisms.local.common.linear_estimator import (
    NO,
    SILENT,
    YES,
    Choice,
    LinearEstimator,
    build_yes_no_silent,
    check_choice,
    check_share,
    chosen_estimator,
    count_covariance,
    estimator_of_output,
)
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, Estimate, NotEstimableError
from mechanisms.parameter import ParameterError, check_integer, check_probability, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.released import released_differences_claim
from mechanisms.privacy.view import ReleasedDifferences, View


@dataclass(frozen=True, kw_only=True)
class AnonymizedLocal(QuestionMechanism):
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
        """Return the distributions of No, Yes and ⊥ (ALP eqs 6-7)."""
        one, two, no = self.sampling_yes_one, self.sampling_yes_two, self.sampling_no
        silent = remainder("sampling_yes_two", two, one, two)
        said_no = one * (1.0 - self.first_coin) + two * (1.0 - self.second_coin)
        return build_yes_no_silent(
            yes=(said_no, one * self.first_coin + two * self.second_coin, silent),
            no=(no * (1.0 - self.third_coin), no * self.third_coin, 1.0 - no),
        )

    def build_estimator(self) -> LinearEstimator:
        """Return the chosen estimator; raise NotEstimableError if its count does not depend on the truth."""
        share = check_share(self.yes_share, self.cells)
        return chosen_estimator(self.question, self.estimator, yes_share=share, mechanism=type(self).__name__)

    def estimate_by(
        self, estimator: Choice, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]
    ) -> Estimate:
        """Return the estimate of another estimator from the same counts (lemmas 1, 3 and 5, or the best).

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
            If one of the three counts does not depend on the truth.
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


OUTPUTS = ("⊥1", "⊥2")


@dataclass(frozen=True, kw_only=True)
class AnonymizedFirstAttempt(QuestionMechanism):
    """Answer twice, a share shifted up in A and down in B (ALP sec VI, eqs 28-31): a documented failure.

    Both answers come from one categorical draw, a uniform number whose intervals are ordered as in the equations: a
    Yes-holder answers ⊥1 in A below π_⊥1 + π_Y and in B below π_⊥1 − π_Y, a No-holder likewise with π_N. The part
    common to both answers cancels, but E[⊥1A] − E[⊥1B] = 2π_Y·YES + 2π_N·NO (eqs 32-33): the term π_N·TOTAL remains,
    and it is noisy. With N known, as eqs 32-35 assume,

    YES = (C[⊥1,A] − C[⊥1,B] − 2π_N·N)/(2(π_Y − π_N)),
    Var = (YES·2π_Y(1 − 2π_Y) + NO·2π_N(1 − 2π_N))/(2(π_Y − π_N))².

    The error grows as √NO, which the attempt was meant to prevent. It is constant in two cases only: with π_N = 0, when
    only Yes-holders answer (⊥1, ⊥2), and with π_N = ½, when No-holders always answer (⊥1, ⊥2). In both cases a device's
    two answers can reveal its truth with certainty. With π_Y = π_N, "uniform sampling across both", the Yes terms
    cancel too and nothing can be estimated.

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
        """Return the joint distributions of both answers (ALP eqs 28-31)."""
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


CANCELLING_OUTPUTS = ("⊥1", "⊥2", "⊥3")


@dataclass(frozen=True, kw_only=True)
class AnonymizedCancelling(QuestionMechanism):
    """Answer twice; a shifted Yes-holder moves from ⊥1 to ⊥3, a shifted No-holder from ⊥2 to ⊥3 (ALP sec VII).

    All other devices give the same answer twice, ⊥1, ⊥2 or ⊥3. So C[⊥1,A] − C[⊥1,B] is Bin(YES, π_Y), and

    YES = (C[⊥1,A] − C[⊥1,B])/π_Y,   Var = YES(1 − π_Y)/π_Y,

    whatever the number of No-holders: the error is constant, as in Sampling Privacy, and at the same cost. Only
    Yes-holders answer (⊥1, ⊥3) and only No-holders answer (⊥2, ⊥3). So an observer who links both answers learns the
    truth with probability π_Y, and no finite ε holds: there is no deniability, as the paper itself states (sec VII-B).

    The equations are read so that the expectations 40-45 hold: eq 37 puts π_N at ⊥2; eqs 38 and 39 move it to ⊥3
    (eq 39 has π_⊥N at ⊥2 instead of π_⊥2); eq 41 has π_⊥1·NO where π_⊥2·NO is meant; eq 45 is labelled ⊥3A but is ⊥3B.
    The answer probabilities sum to one for both Yes-holders and No-holders only if π_Y = π_N, the `shift`.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    shift : float
        π_Y = π_N, in (0, 1].
    stay : (3,) sequence of float, optional
        π_⊥1, π_⊥2 and π_⊥3, summing to 1 − shift; equal by default.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    shift: float
    stay: Sequence[float] | None = None
    rounds: ClassVar[int] = 2
    source: ClassVar[str] = "ALP eqs 36-39"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the default."""
        check_probability("shift", self.shift, above_zero=True)
        object.__setattr__(self, "stay", stay_shares(self.shift, self.stay))
        super().__post_init__()

    def build_question(self) -> Question:
        """Return the joint distributions of both answers (ALP eqs 36-39)."""
        staying: dict[Answers, float] = {(o, o): share for o, share in enumerate(stay_shares(self.shift, self.stay))}
        return Question.build(
            CANCELLING_OUTPUTS, yes={**staying, (0, 2): self.shift}, no={**staying, (1, 2): self.shift}
        )

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator that divides the difference of the counts of ⊥1 by π_Y (ALP eqs 40 and 43)."""
        weights = np.zeros((2, 3))
        weights[:, 0] = 1.0 / self.shift, -1.0 / self.shift
        return LinearEstimator(self.question, weights)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return (C[⊥1,A] − C[⊥1,B])/π_Y; if not all were counted, counts are scaled by response rates.

        Parameters
        ----------
        counts : (2, V, 3) int64
        counted, asked : (2,) int
            Every device asked in round two was also asked in round one.

        Returns
        -------
        Estimate
            Unbiased; binomial inversion on an ideal channel, else the interval of round one given round two.
        """
        seen, heard = self._check_tallies(counts)[:, :, 0], self._hear(counted, asked)
        if not heard.silent:
            self.linear_estimator.variance(heard)  # rejects devices asked in round two only
        # The count of round one exceeds that of round two, which is independent of the truth, by Bin(YES, π_Y): this is
        # Sampling Privacy with the rounds exchanged.
        backwards = ResponseCounts(heard.asked[::-1], heard.counted[::-1], truth_round=2)
        blank = stay_shares(self.shift, self.stay)[0]
        return estimate_difference(seen[1], seen[0], sampling=self.shift, blank=blank, heard=backwards)

    def claim(self, view: View) -> PrivacyClaim:
        """Return the claim about a view; published differences of ⊥1 are as in Sampling Privacy with π_s = π_Y."""
        if isinstance(view, ReleasedDifferences):
            return released_differences_claim(view, self.shift)
        return super().claim(view)


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
    yes, no = mechanism.question.in_round(1)
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
