"""Anonymized Local Privacy with several answers per query: the first attempt, cancelling noise, and deniability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.declared import Declared, declaration
from mechanisms.local.common.estimators import TwoRounds
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, Estimate
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.released import released_differences_claim
from mechanisms.privacy.view import ReleasedDifferences
from mechanisms.protocols.published import (
    anonymized_cancelling,
    anonymized_deniable,
    anonymized_first_attempt,
    chance,
    stay_shares,
)


@dataclass(frozen=True, kw_only=True)
class AnonymizedFirstAttempt(ProtocolMechanism):
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
    declared: ClassVar[Declared] = declaration("anonymized_first_attempt")
    table = anonymized_first_attempt
    # The difference of the counts of ⊥1 (ALP eqs 32-33).
    statistics: ClassVar[tuple[Mapping[str, int], ...]] = ({"C1[⊥1]": 1, "C2[⊥1]": -1}, {"N": 1})
    undetermined: ClassVar[str] = "with π_Y = π_N the Yes terms cancel too (ALP sec VI)."


def staying(mechanism: "AnonymizedCancelling | AnonymizedDeniable") -> tuple[float, ...]:
    """Return π_⊥1, π_⊥2 and π_⊥3; equal ones by default."""
    return tuple(float(share) for share in stay_shares(chance("shift", mechanism.shift), mechanism.stay))


@dataclass(frozen=True, kw_only=True)
class AnonymizedCancelling(ProtocolMechanism):
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
    declared: ClassVar[Declared] = declaration("anonymized_cancelling")
    table = anonymized_cancelling
    statistics: ClassVar[tuple[Mapping[str, int], ...]] = ({"C1[⊥1]": 1, "C2[⊥1]": -1},)  # ALP eqs 40 and 43

    def __post_init__(self) -> None:
        """Check the parameters and fill in the defaults."""
        super().__post_init__()
        object.__setattr__(self, "stay", staying(self))

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return (C[⊥1,A] − C[⊥1,B])/π_Y; if not all were counted, counts are scaled by response rates.

        Parameters
        ----------
        counts : (2, V, 3) int64
        received : ResponseCounts
            Every device asked in round two was also asked in round one.

        Returns
        -------
        Estimate
            Unbiased; binomial inversion on an ideal channel, else the interval of round one given round two.
        """
        first, second = counts[:, :, 0]
        if not received.silent:
            self.linear_estimator.variance(received)  # rejects devices asked in round two only
        # The count of round one exceeds the count of round two, which is independent of the truth, by Bin(YES, π_Y):
        # this is Sampling Privacy with the rounds exchanged.
        backwards = ResponseCounts(received.asked[::-1], received.counted[::-1], truth_round=2)
        return TwoRounds(self.shift, staying(self)[0]).estimate(second, first, backwards)

    def claim_differences(self, view: ReleasedDifferences) -> Claim:
        """Return the claim of the published differences of ⊥1: the differences of Sampling Privacy with π_s = π_Y."""
        return released_differences_claim(view, self.shift)


@dataclass(frozen=True, kw_only=True)
class AnonymizedDeniable(ProtocolMechanism):
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
    Every answer of a Yes-holder could be a No-holder's, but only No-holders answer (⊥1, ⊥3, ⊥2), which reveals the
    truth with certainty. So the linked reports have no finite ε. If a fraction c_Y > 0 of the Yes-holders at ⊥3 moves
    on as well (`onward_yes`, not in the paper), ε is finite; YES and NO then solve both equations together.

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
    declared: ClassVar[Declared] = declaration("anonymized_deniable")
    table = anonymized_deniable
    # The moves to ⊥2 in B and in C.
    statistics: ClassVar[tuple[Mapping[str, int], ...]] = ({"C1[⊥2]": -1, "C2[⊥2]": 1}, {"C2[⊥2]": -1, "C3[⊥2]": 1})
    undetermined: ClassVar[str] = "the moves to ⊥2 in B and in C do not determine YES and NO: y₁·n₂c = n₁·y₂c_Y."

    def __post_init__(self) -> None:
        """Check the parameters and fill in the defaults."""
        super().__post_init__()
        object.__setattr__(self, "stay", staying(self))
