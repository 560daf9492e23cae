"""Anonymized Local Privacy with its noise cancelled: two answers over three outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.local.estimate import Estimate
from mechanisms.local.mechanism import Counts
from mechanisms.local.parts.difference import estimate_difference
from mechanisms.local.parts.heard import Heard
from mechanisms.local.parts.linear_estimator import LinearEstimator
from mechanisms.local.parts.question import Answers, Question
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.local.parts.stay_shares import stay_shares
from mechanisms.parameter import check_probability
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.released_claims import released_differences_claim
from mechanisms.privacy.view import ReleasedDifferences, View

OUTPUTS = ("⊥1", "⊥2", "⊥3")


@dataclass(frozen=True, kw_only=True)
class AnonymizedCancelling(QuestionMechanism):
    """Answer twice; a shifted Yes-holder goes from ⊥1 to ⊥3, a shifted No-holder from ⊥2 to ⊥3 (ALP sec VII).

    Everyone else gives one answer twice, ⊥1, ⊥2 or ⊥3. So C[⊥1,A] − C[⊥1,B] is Bin(YES, π_Y), and

    YES = (C[⊥1,A] − C[⊥1,B])/π_Y,   Var = YES(1 − π_Y)/π_Y,

    whatever the number of No-holders: constant error, as Sampling Privacy has, and at the same price. (⊥1, ⊥3)
    is given by Yes-holders only and (⊥2, ⊥3) by No-holders only, so whoever links both answers learns the truth
    with probability π_Y, and no finite ε holds: there is no deniability, as the paper says itself (sec VII-B).

    The equations in the reading under which the expectations 40-45 hold: eq 37 puts π_N at ⊥2; eqs 38 and 39
    move it to ⊥3 (eq 39 prints π_⊥N at ⊥2 in the place of π_⊥2); eq 41 has π_⊥1·NO where π_⊥2·NO is meant; eq 45
    is headed ⊥3A and is ⊥3B. A device's answers sum to one for Yes- and for No-holders alike only if π_Y = π_N,
    the `shift`.

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
        """Return the joint laws of both answers (ALP eqs 36-39)."""
        staying: dict[Answers, float] = {(o, o): share for o, share in enumerate(stay_shares(self.shift, self.stay))}
        return Question.build(OUTPUTS, yes={**staying, (0, 2): self.shift}, no={**staying, (1, 2): self.shift})

    def build_estimator(self) -> LinearEstimator:
        """Return the difference of the counts of ⊥1, over π_Y (ALP eqs 40 and 43)."""
        weights = np.zeros((2, 3))
        weights[:, 0] = 1.0 / self.shift, -1.0 / self.shift
        return LinearEstimator(self.question, weights)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return (C[⊥1,A] − C[⊥1,B])/π_Y, from realised rates where not everyone was heard in both rounds.

        Parameters
        ----------
        counts : (2, V, 3) int64
        counted, asked : (2,) int
            Nobody is asked in round two who was not asked in round one.

        Returns
        -------
        Estimate
            Unbiased; binomial inversion on an ideal channel, else the interval of round one given round two.
        """
        seen, heard = self._check_tallies(counts)[:, :, 0], self._hear(counted, asked)
        if not heard.silent:
            self.linear_estimator.variance(heard)  # refuses devices asked in round two only
        # To round two, which says nothing of the truth, round one adds Bin(YES, π_Y): Sampling Privacy backwards.
        backwards = Heard(heard.asked[::-1], heard.counted[::-1], truth_round=2)
        blank = stay_shares(self.shift, self.stay)[0]
        return estimate_difference(seen[1], seen[0], sampling=self.shift, blank=blank, heard=backwards)

    def claim(self, view: View) -> PrivacyClaim:
        """Return what a view tells; the published differences of ⊥1 are those of Sampling Privacy with π_s = π_Y."""
        if isinstance(view, ReleasedDifferences):
            return released_differences_claim(view, self.shift)
        return super().claim(view)
