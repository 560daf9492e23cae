"""The mechanisms of *Anonymized Local Privacy* (ALP), and the false starts of both papers."""

from typing import Annotated, Literal

from pydantic import Field

from scenarios.mechanism_section import NamedByKind
from scenarios.section import PositiveProbability, Probability

Stay = Annotated[tuple[Probability, Probability, Probability], Field(strict=False)]
Estimator = Literal["yes", "no", "silent", "best"]


class SamplingAndNoise(NamedByKind):
    """Say something if sampled, else nothing (SP eq 1, ALP eq 2)."""

    kind: Literal["sampling_and_noise"]
    sampling: PositiveProbability
    """Probability that a device in the cell is sampled."""
    sampling_no: Probability | None = None
    """The same for a device that is not in it; left out, alike, and then nothing can be estimated."""
    says: Literal["noise", "value"] = "noise"
    """Whether whoever is sampled says Yes, or its own value."""


class SampledResponse(NamedByKind):
    """Say nothing unless sampled, then randomized response (SP eqs 2-5, ALP eqs 3-4)."""

    kind: Literal["sampled_response"]
    sampling: PositiveProbability
    """Probability that a device in the cell is sampled."""
    first_coin: PositiveProbability
    """Probability of the truth, once sampled."""
    second_coin: Probability
    """Probability of Yes otherwise."""
    sampling_no: Probability | None = None
    """Probability that a device not in the cell is sampled; left out, alike."""
    estimator: Estimator = "yes"
    """The count to estimate from, or the best combination."""
    yes_share: Probability | None = None
    """Share of devices in the cell at which the best combination is best; left out, evenly spread."""


class AnonymizedLocal(NamedByKind):
    """Answer Yes, No or nothing (ALP eqs 6-7)."""

    kind: Literal["anonymized_local"]
    sampling_yes_one: Probability
    """π_Y1."""
    sampling_yes_two: Probability
    """π_Y2; with π_Y1 at most 1."""
    sampling_no: Probability
    """π_No."""
    first_coin: Probability
    """π_1."""
    second_coin: Probability
    """π_2."""
    third_coin: Probability
    """π_3."""
    estimator: Estimator = "best"
    """The count to estimate from, or the best combination."""
    yes_share: Probability | None = None
    """Share of devices in the cell at which the best combination is best; left out, evenly spread."""


class AnonymizedFirstAttempt(NamedByKind):
    """Two answers over two outputs: the documented failure whose error grows (ALP eqs 28-35)."""

    kind: Literal["anonymized_first_attempt"]
    base: Probability
    """π_⊥1."""
    shift_yes: Probability
    """π_Y."""
    shift_no: Probability
    """π_N."""


class AnonymizedCancelling(NamedByKind):
    """Two answers over three outputs: constant error, no deniability (ALP eqs 36-45)."""

    kind: Literal["anonymized_cancelling"]
    shift: PositiveProbability
    """π_Y = π_N."""
    stay: Stay | None = None
    """π_⊥1, π_⊥2, π_⊥3; left out, equal."""


class AnonymizedDeniable(NamedByKind):
    """Three answers over three outputs: deniability, and an error that grows (ALP eqs 46-55)."""

    kind: Literal["anonymized_deniable"]
    shift: PositiveProbability
    """s, the share that is shifted."""
    yes_second: Probability
    """y₁."""
    yes_third: Probability
    """y₂."""
    no_second: Probability
    """n₁."""
    no_third: Probability
    """n₂."""
    onward: Probability
    """c."""
    onward_yes: Probability = 0.0
    """c_Y; 0 in the paper."""
    stay: Stay | None = None
    """π_⊥1, π_⊥2, π_⊥3 of those not shifted; left out, equal."""
