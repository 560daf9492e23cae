"""Sampling and noise: the papers' first step, in which nobody can be told from anybody, or everybody can."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from mechanisms.local.not_estimable import NotEstimableError
from mechanisms.local.parts.linear_estimator import LinearEstimator, estimator_of_output
from mechanisms.local.parts.question import Question
from mechanisms.local.parts.question_mechanism import QuestionMechanism
from mechanisms.local.parts.yes_no_silent import YES, build_yes_no_silent
from mechanisms.parameter import ParameterError, check_probability

Reading = Literal["noise", "value"]


@dataclass(frozen=True, kw_only=True)
class SamplingAndNoise(QuestionMechanism):
    """Say something with π_s, else ⊥ (SP eq 1, ALP eq 2): a false start of both papers.

    Two readings. In "noise", whoever is sampled says Yes, whatever its truth, and nobody says No: SP's toy 1,
    and the text under ALP eq 2 ("a percentage of the No population responds Yes"). In "value", whoever is
    sampled says its own value: ALP eq 2 as the equation stands.

    What can be estimated:

    - "noise" with one π_s for all, SP's toy: nothing. One equation, C = π_s·(YES + NO), and two unknowns;
      knowing YES + NO = N does not help, since then C says nothing that was not known. It is the only one with
      ε = 0, for the same reason.
    - "noise" with π_sYes ≠ π_sNo: YES = (C − π_sNo·N)/(π_sYes − π_sNo), if N is known, as it is where ⊥ is
      written too. Without it there are still two unknowns.
    - "value": YES = C(Yes)/π_sYes, even if N is not known, and NO likewise from its own count; for only
      Yes-holders ever say Yes, and that is why no ε is finite.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    sampling : float
        π_s of Yes-holders, in (0, 1].
    sampling_no : float, optional
        π_s of No-holders, in [0, 1]; that of Yes-holders by default.
    says : {"noise", "value"}
        The reading.

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
        """Check the parameters and fill in the default."""
        check_probability("sampling", self.sampling, above_zero=True)
        if self.says not in get_args(Reading):
            raise ParameterError("says", f"must be one of {', '.join(get_args(Reading))}", self.says)
        no = self.sampling if self.sampling_no is None else check_probability("sampling_no", self.sampling_no)
        object.__setattr__(self, "sampling_no", no)
        super().__post_init__()

    @property
    def rates(self) -> tuple[float, float]:
        """π_sYes and π_sNo."""
        return self.sampling, self.sampling if self.sampling_no is None else self.sampling_no

    def build_question(self) -> Question:
        """Return the laws of No, Yes and ⊥ (SP eq 1, ALP eq 2)."""
        yes, no = self.rates
        said = (0.0, no) if self.says == "noise" else (no, 0.0)
        return build_yes_no_silent(yes=(0.0, yes, 1.0 - yes), no=(*said, 1.0 - no))

    def build_estimator(self) -> LinearEstimator:
        """Return the estimator from the count of Yes.

        Raises
        ------
        NotEstimableError
            In reading "noise" with one π_s for all.
        """
        yes, no = self.rates
        if self.says == "noise" and yes == no:
            raise NotEstimableError(
                type(self).__name__,
                "one equation, E[C] = π_s·(YES + NO), and two unknowns, since a sampled device says Yes whatever its "
                "truth (SP sec 3.2).",
            )
        return estimator_of_output(self.question, YES, mechanism=type(self).__name__)
