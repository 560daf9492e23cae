"""Randomized response per cell: with two coins, Warner's with one coin, and the papers' variants with sampling."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from mechanisms.declared import Declared, declaration
from mechanisms.local.common.binary_query import Answers, BinaryQuery
from mechanisms.local.common.binary_query_mechanism import (
    YES,
    BinaryQueryMechanism,
    LinearEstimator,
    ThreeAnswerMechanism,
    build_yes_no_silent,
    estimator_of_output,
)
from mechanisms.local.mechanism import NotEstimableError
from mechanisms.local.unary_encoding import BitProbabilities, UnaryEncoding
from mechanisms.parameter import ParameterError, check_chance, check_choice


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(UnaryEncoding):
    """Two coins per cell: answer truthfully if the first is heads, else as the second shows (SP sec 3.3, π_s = 1).

    p₁ = π_1 + (1 − π_1)π_2 is the probability of a Yes about the device's own cell, and p₀ = (1 − π_1)π_2 that of a Yes
    about any other cell. So it is a unary encoding with p = p₁ and q = p₀: the estimate is (C − p₀N)/(p₁ − p₀) for the
    Yes count C (SP eqs 2-5), with standard error √(Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/(p₁ − p₀).

    The claim about a report is exact: the hockey-stick divergence of the two answers that a move changes. At δ = 0 its
    ε is ln(p₁/p₀) + ln((1 − p₀)/(1 − p₁)), of which SP eq 30 states the first term only. Claims about other views
    follow from it, as for any mechanism of one round.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    first_coin : float
        π_1, probability of a truthful answer, in (0, 1].
    second_coin : float
        π_2, probability of a Yes otherwise, in [0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    first_coin: float
    second_coin: float
    declared: ClassVar[Declared] = declaration("randomized_response")
    source: ClassVar[str] = "SP sec 3.3 with π_s = 1; eq 30 leaves out the answer No and the second cell"

    @property
    def bit(self) -> BitProbabilities:
        """Return p₁ = π_1 + p₀, 1 − p₁ = (1 − π_1)(1 − π_2), p₀ = (1 − π_1)π_2 and p₁ − p₀ = π_1."""
        tails = 1.0 - self.first_coin
        false_yes = tails * self.second_coin
        return BitProbabilities(
            self.first_coin + false_yes, tails * (1.0 - self.second_coin), false_yes, self.first_coin
        )


OUTPUTS = ("No", "Yes")


@dataclass(frozen=True, kw_only=True)
class Warner(BinaryQueryMechanism):
    """One coin per cell: answer truthfully if it is heads, with the opposite if it is tails (Warner 1965).

    The estimate is Ŷ = (C − (1 − p)N)/(2p − 1), with variance N·p(1 − p)/(2p − 1)² whatever the truth is. Both possible
    answers count towards ε: it is |ln(p/(1 − p))| for a single question, and twice that when every cell is asked about,
    since a move changes two answers. The mechanism equals the two-coin form with π_1 = 2p − 1 and π_2 = 1/2.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    truthful : float
        p, probability of a truthful answer, in [0, 1] but not 1/2.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN, or p is 1/2, where an answer does not depend on the truth.
    """

    truthful: float
    source: ClassVar[str] = "Warner 1965, both answers"

    def __post_init__(self) -> None:
        check_chance("truthful", self.truthful)
        if self.truthful == 0.5:
            raise ParameterError(
                "truthful", "must not be 1/2, where an answer does not depend on the truth", self.truthful
            )
        super().__post_init__()

    def build_binary_query(self) -> BinaryQuery:
        """Return the distributions of No and Yes."""
        lie = 1.0 - self.truthful
        yes: dict[Answers, float] = {(0,): lie, (1,): self.truthful}
        no: dict[Answers, float] = {(0,): self.truthful, (1,): lie}
        return BinaryQuery.build(OUTPUTS, yes=yes, no=no)

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator from the count of Yes."""
        return estimator_of_output(self.binary_query, OUTPUTS.index("Yes"), mechanism=type(self).__name__)


def sampling_rates(mechanism: "SampledResponse | SamplingAndNoise") -> tuple[float, float]:
    """Return π_sYes and π_sNo; by default they are equal."""
    return mechanism.sampling, mechanism.sampling if mechanism.sampling_no is None else mechanism.sampling_no


@dataclass(frozen=True, kw_only=True)
class SampledResponse(ThreeAnswerMechanism):
    """Two-coin randomized response of the sampled devices; the others answer ⊥ (SP toy 2).

    A sampled device answers truthfully if the first coin is heads, else as the second coin shows. SP eqs 2-5 and, with
    a sampling rate for each kind of holder, ALP eqs 3-4. A Yes-holder answers Yes with probability π_sYes(π_1 +
    (1 − π_1)π_2), a No-holder with π_sNo(1 − π_1)π_2. With one rate, Ŷ = (C − π_s(1 − π_1)π_2·N)/(π_sπ_1); with both
    rates 1 it is randomized response. If the rates differ, the answer ⊥ also depends on the truth.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s of Yes-holders, in (0, 1].
    first_coin : float
        π_1, probability of a truthful answer if sampled, in (0, 1].
    second_coin : float
        π_2, probability of a Yes otherwise, in [0, 1].
    sampling_no : float, optional
        π_s of No-holders, in [0, 1]; by default that of Yes-holders.
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from; by default that of Yes, as in the papers.
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
    source: ClassVar[str] = "SP eqs 2-5 and ALP eqs 3-4"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the defaults."""
        check_chance("sampling", self.sampling, above_zero=True)
        check_chance("first_coin", self.first_coin, above_zero=True)
        check_chance("second_coin", self.second_coin)
        object.__setattr__(self, "sampling_no", check_chance("sampling_no", sampling_rates(self)[1]))
        super().__post_init__()

    def build_binary_query(self) -> BinaryQuery:
        """Return the distributions of No, Yes and ⊥ (SP eqs 2-3, ALP eqs 3-4)."""
        rates = sampling_rates(self)
        false_yes = (1.0 - self.first_coin) * self.second_coin
        false_no = (1.0 - self.first_coin) * (1.0 - self.second_coin)
        laws = [
            (rate * answers_no, rate * (1.0 - answers_no), 1.0 - rate)
            for rate, answers_no in zip(rates, (false_no, self.first_coin + false_no), strict=True)
        ]
        # A No-holder's probability of Yes, computed so that it is exactly 0 where no coin outcome leads to Yes.
        laws[1] = (laws[1][0], rates[1] * false_yes, laws[1][2])
        return build_yes_no_silent(yes=laws[0], no=laws[1])


Reading = Literal["noise", "value"]


@dataclass(frozen=True, kw_only=True)
class SamplingAndNoise(BinaryQueryMechanism):
    """Answer with probability π_s, else ⊥ (SP eq 1, ALP eq 2): a failed first attempt of both papers.

    There are two readings. In "noise", a sampled device answers Yes whatever its truth, and no device answers No: SP's
    toy 1, and the text under ALP eq 2 ("a percentage of the No population responds Yes"). In "value", a sampled device
    reports its own value: ALP eq 2 as published.

    What can be estimated:

    - "noise" with one π_s for all devices, SP's toy: nothing. There is one equation, C = π_s·(YES + NO), and two
      unknowns. Knowing YES + NO = N does not help, since C then contains no further information. For the same reason
      it is the only variant with ε = 0.
    - "noise" with π_sYes ≠ π_sNo: YES = (C − π_sNo·N)/(π_sYes − π_sNo), if N is known, as it is where ⊥ is
      reported too. If N is not known there are still two unknowns.
    - "value": YES = C(Yes)/π_sYes, even if N is not known, and NO likewise from its own count. The reason is that only
      Yes-holders ever answer Yes, which is also why no finite ε exists.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s of Yes-holders, in (0, 1].
    sampling_no : float, optional
        π_s of No-holders, in [0, 1]; by default that of Yes-holders.
    says : {"noise", "value"}
        The reading of the equations.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    sampling: float
    sampling_no: float | None = None
    says: Reading = "noise"
    source: ClassVar[str] = "SP eq 1 and ALP eq 2"

    def __post_init__(self) -> None:
        check_chance("sampling", self.sampling, above_zero=True)
        check_choice("says", self.says, get_args(Reading))
        object.__setattr__(self, "sampling_no", check_chance("sampling_no", sampling_rates(self)[1]))
        super().__post_init__()

    def build_binary_query(self) -> BinaryQuery:
        """Return the distributions of No, Yes and ⊥ (SP eq 1, ALP eq 2)."""
        yes, no = sampling_rates(self)
        stated = (0.0, no) if self.says == "noise" else (no, 0.0)
        return build_yes_no_silent(yes=(0.0, yes, 1.0 - yes), no=(*stated, 1.0 - no))

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator from the count of Yes.

        Raises
        ------
        NotEstimableError
            In reading "noise" with one π_s for all devices.
        """
        yes, no = sampling_rates(self)
        if self.says == "noise" and yes == no:
            raise NotEstimableError(
                type(self).__name__,
                "there is one equation, E[C] = π_s·(YES + NO), for two unknowns, since a sampled device answers Yes "
                "for either truth (SP sec 3.2).",
            )
        return estimator_of_output(self.binary_query, YES, mechanism=type(self).__name__)
