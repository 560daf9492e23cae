"""Yes/no questions asked once about every cell: Warner's, the papers' with sampling, and Anonymized Local Privacy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mechanisms.compiled import Floats
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.mechanism import Counts
from mechanisms.parameter import ParameterError, check_true_counts
from mechanisms.protocols.estimator import Estimator, NotEstimable, best_estimator
from mechanisms.protocols.protocol import Tallies, exact
from mechanisms.protocols.published import (
    SILENT,
    Reading,
    anonymized_local,
    sampled_response,
    sampling_and_noise,
    warner,
)


@dataclass(frozen=True, kw_only=True)
class OneCountMechanism(ProtocolMechanism):
    """A question asked once, estimated from the count C of one output by (C − qN)/(p − q) (ALP lemmas 1, 3 and 5)."""

    @property
    def counted(self) -> int:
        """The number of the output that is counted: of Yes, unless a class states another."""
        return 1

    @property
    def statistics(self) -> tuple[Mapping[str, int], ...]:
        """The count of the output, and N."""
        return ({f"C1[{SILENT[self.counted]}]": 1}, {"N": 1})

    @property
    def undetermined(self) -> str:
        """Why there is no estimate: p = q, so that the divisor is 0."""
        query = self.binary_query
        return (
            f"the count of {query.outputs[self.counted]} does not depend on the truth, since devices in the cell and "
            f"others give it with the same probability, {query.in_round(1)[0][self.counted]:g}."
        )


@dataclass(frozen=True, kw_only=True)
class Warner(OneCountMechanism):
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
    declared: ClassVar[Declared] = declaration("warner")
    table = warner

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truthful == 0.5:
            rule = "must not be 1/2, where an answer does not depend on the truth"
            raise ParameterError("truthful", rule, self.truthful)


# Which count to estimate from: of Yes, of No, of ⊥, or the best combination of all three.
EstimatorChoice = Literal["yes", "no", "silent", "best"]
COUNT_OF = {"no": 0, "yes": 1, "silent": 2}


def check_share(share: float | None, cells: int) -> float:
    """Return the share of Yes-holders to optimise for, between 0 and 1, by default 1/(V + 1); reject NaN."""
    if share is None:
        return 1.0 / (cells + 1)
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 < share < 1.0:
        raise ParameterError("yes_share", "must be between 0 and 1, both excluded", share)
    return float(share)


@dataclass(frozen=True, kw_only=True)
class ThreeAnswerMechanism(OneCountMechanism):
    """A question asked once and answered No, Yes or ⊥, with the count to estimate from as a parameter.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from, or the best combination of all three.
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default.
    """

    estimator: EstimatorChoice = "yes"
    yes_share: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "yes_share", check_share(self.yes_share, self.cells))

    @property
    def counted(self) -> int:
        """The number of the output that is counted."""
        return COUNT_OF[self.estimator]

    def build_estimator(self) -> Estimator | NotEstimable | None:
        """Return the chosen estimator: of one count, or the combination of least variance at the share `yes_share`."""
        if self.estimator != "best":
            return super().build_estimator()
        share = exact("yes_share", check_share(self.yes_share, self.cells))
        people = {"yes": share.numerator, "no": share.denominator - share.numerator}
        return best_estimator(Tallies.by_round(self.protocol), "yes", population=people)

    @property
    def undetermined(self) -> str:
        """Why there is no estimate."""
        if self.estimator != "best":
            return super().undetermined
        return "devices in the cell and others answer alike, so the counts do not depend on the truth."


@dataclass(frozen=True, kw_only=True)
class SampledMechanism(OneCountMechanism):
    """A question that only sampled devices answer; the others report ⊥.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s of Yes-holders, in (0, 1].
    sampling_no : float, optional
        π_s of No-holders, in [0, 1]; by default the π_s of Yes-holders.
    """

    sampling: float
    sampling_no: float | None = None

    def __post_init__(self) -> None:
        """Check the parameters and fill in the default."""
        super().__post_init__()
        object.__setattr__(self, "sampling_no", self.sampling if self.sampling_no is None else self.sampling_no)


@dataclass(frozen=True, kw_only=True)
class SampledResponse(SampledMechanism, ThreeAnswerMechanism):
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
        π_s of No-holders, in [0, 1]; by default the π_s of Yes-holders.
    estimator : {"yes", "no", "silent", "best"}
        The count to estimate from; by default the count of Yes, as in the papers.
    yes_share : float, optional
        The share of Yes-holders at which "best" has the least variance; 1/(V + 1) by default.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    first_coin: float
    second_coin: float
    source: ClassVar[str] = "SP eqs 2-5 and ALP eqs 3-4"
    declared: ClassVar[Declared] = declaration("sampled_response")
    table = sampled_response


@dataclass(frozen=True, kw_only=True)
class SamplingAndNoise(SampledMechanism):
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
        π_s of No-holders, in [0, 1]; by default the π_s of Yes-holders.
    says : {"noise", "value"}
        The reading of the equations.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    says: Reading = "noise"
    source: ClassVar[str] = "SP eq 1 and ALP eq 2"
    declared: ClassVar[Declared] = declaration("sampling_and_noise")
    table = sampling_and_noise

    @property
    def undetermined(self) -> str:
        """Why there is no estimate: SP's toy has two unknowns."""
        if self.says == "value" or self.sampling != self.sampling_no:
            return super().undetermined
        return (
            "there is one equation, E[C] = π_s·(YES + NO), for two unknowns, since a sampled device answers Yes "
            "for either truth (SP sec 3.2)."
        )


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
    declared: ClassVar[Declared] = declaration("anonymized_local")
    table = anonymized_local

    def count_std_errors(self, true_counts: Counts) -> Floats:
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
