"""``[[mechanisms]]``: parameters of each mechanism; all of a scenario's mechanisms answer the same queries."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from scenarios.errors import RuleViolation
from scenarios.field_types import Count, Name, Positive, PositiveProbability, Probability, number, without_default
from scenarios.section import ByKind, NamedByKind, OwnKind, ValidFields, broken_parameters

SUM_TOLERANCE = 1e-9


def _blank_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<number>"


Blank = Annotated[
    Annotated[Probability, Tag("<number>")] | Annotated[tuple[Probability, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_blank_tag),
]


class SamplingPrivacySection(NamedByKind):
    """Two rounds: all devices answer with blanks, then the sampled devices answer with the truth."""

    kind: Literal["sampling_privacy"]
    name: Name = "sampling_privacy"
    """Unique name in key paths and results."""
    form: Literal["multi", "binary"] = "multi"
    """One answer among all cells, or a yes/no answer for each cell."""
    sampling: PositiveProbability
    """Probability that a device is sampled."""
    blank_zero: Probability | None = None
    """Probability of the blank 0, "in no cell"."""
    blank: Blank | None = None
    """Probability of each cell's blank: one number for all cells, or a list; in ``binary``, that of the blank 1.

    If `blank_zero` and `blank` are both omitted, all blanks are equally likely."""
    refresh: Probability = 0.0
    """Probability that an unsampled device draws a new blank in round two (``multi`` alone)."""

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for probabilities of one categorical draw that do not sum to one, or exceed it."""
        if valid.get("form") == "binary" and valid.get("refresh"):
            yield valid.violation("refresh", 'needs form = "multi"')
        if valid.get("form") == "binary" and isinstance(valid.get("blank"), tuple):
            yield valid.violation("blank", 'must be one number where form = "binary"')
        elif valid.has("sampling") and {"blank_zero", "blank", "form"} <= valid.keys():
            yield from _die(valid)

    @property
    def silent_blank(self) -> bool:
        """Whether a blank is never 0, as far as is known before the cells are built."""
        if self.blank_zero is not None:
            return self.blank_zero == 0
        whole_die = isinstance(self.blank, tuple) or (self.form == "binary" and self.blank is not None)
        return whole_die and abs(self.sampling + _total(self.blank) - 1) <= SUM_TOLERANCE


def _total(blank: float | tuple[float, ...] | None) -> float:
    return math.fsum(blank) if isinstance(blank, tuple) else blank or 0.0


def _die(valid: ValidFields) -> Iterator[RuleViolation]:
    zero, blank = valid["blank_zero"], valid["blank"]
    total = math.fsum([valid["sampling"], zero or 0.0, _total(blank)])
    summands = ["sampling"]
    summands += ["blank_zero"] if zero is not None else []
    summands += ["the sum of blank" if isinstance(blank, tuple) else "blank"] if blank is not None else []
    complete = len(summands) == 3 and (isinstance(blank, tuple) or valid["form"] == "binary")
    at = "sampling" if len(summands) == 1 else "blank_zero" if blank is None else "blank"
    if complete and abs(total - 1) > SUM_TOLERANCE:
        yield RuleViolation((at,), f"{' + '.join(summands)} must be 1, and is {number(total)}", valid[at])
    elif not complete and total > 1 + SUM_TOLERANCE:
        yield RuleViolation((at,), f"{' + '.join(summands)} must be at most 1, and is {number(total)}", valid[at])


Stay = Annotated[tuple[Probability, Probability, Probability], Field(strict=False)]
Estimator = Literal["yes", "no", "silent", "best"]


class SamplingAndNoiseSection(NamedByKind):
    """Report only if sampled (SP eq 1, ALP eq 2)."""

    kind: Literal["sampling_and_noise"]
    sampling: PositiveProbability
    """Probability that a device in the cell is sampled."""
    sampling_no: Probability | None = None
    """Probability that a device not in the cell is sampled. Default: `sampling`, and then nothing can be estimated."""
    says: Literal["noise", "value"] = "noise"
    """Report of a sampled device: Yes (``noise``), or its own value."""


class SampledResponseSection(NamedByKind):
    """Report only if sampled, by randomized response (SP eqs 2-5, ALP eqs 3-4)."""

    kind: Literal["sampled_response"]
    sampling: PositiveProbability
    """Probability that a device in the cell is sampled."""
    first_coin: PositiveProbability
    """Probability that a sampled device answers with the truth."""
    second_coin: Probability
    """Probability of Yes if it does not."""
    sampling_no: Probability | None = None
    """Probability that a device not in the cell is sampled. Default: `sampling`."""
    estimator: Estimator = "yes"
    """Count to estimate from (Yes, No or silent), or the combination of least variance (``best``)."""
    yes_share: Probability | None = None
    """Share of devices in the cell at which ``best`` has the least variance. Default: 1/(V + 1), devices evenly spread
    over the V cells and outside."""


class AnonymizedLocalSection(NamedByKind):
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
    """Count to estimate from (Yes, No or silent), or the combination of least variance (``best``)."""
    yes_share: Probability | None = None
    """Share of devices in the cell at which ``best`` has the least variance. Default: 1/(V + 1), devices evenly spread
    over the V cells and outside."""


class AnonymizedFirstAttemptSection(NamedByKind):
    """Two answers over two outputs: the documented failure whose error grows (ALP eqs 28-35)."""

    kind: Literal["anonymized_first_attempt"]
    base: Probability
    """π_⊥1."""
    shift_yes: Probability
    """π_Y."""
    shift_no: Probability
    """π_N."""


class AnonymizedCancellingSection(NamedByKind):
    """Two answers over three outputs: constant error, no deniability (ALP eqs 36-45)."""

    kind: Literal["anonymized_cancelling"]
    shift: PositiveProbability
    """π_Y = π_N."""
    stay: Stay | None = None
    """π_⊥1, π_⊥2, π_⊥3. Default: equal."""


class AnonymizedDeniableSection(NamedByKind):
    """Three answers over three outputs: deniability, and an error that grows (ALP eqs 46-55)."""

    kind: Literal["anonymized_deniable"]
    shift: PositiveProbability
    """s, the share of devices that is shifted."""
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
    """π_⊥1, π_⊥2, π_⊥3 of the devices that are not shifted. Default: equal."""


class NoPrivacySection(NamedByKind):
    """Every device reports its true cell: the baseline."""

    kind: Literal["no_privacy"]
    name: Name = "no_privacy"
    """Unique name in key paths and results."""


class RandomizedResponseSection(NamedByKind):
    """Randomized response with two coins, for each cell as a yes/no question."""

    kind: Literal["randomized_response"]
    name: Name = "randomized_response"
    """Unique name in key paths and results."""
    first_coin: PositiveProbability = 0.8
    """Probability of answering with the truth."""
    second_coin: Probability = 0.2
    """Probability of "yes" if the first coin does not select the truth."""


class PlugInSection(NamedByKind):
    """A user's mechanism, ``package.module:Class``; its other keys are its parameters."""

    model_config = ConfigDict(extra="allow")

    kind: OwnKind
    name: Name = Field(default="", json_schema_extra=without_default)
    """Unique name in key paths and results. Default: the name of the class."""

    rules = (broken_parameters,)


class _Budgeted(NamedByKind):
    """A mechanism whose one required parameter is ε; "outside every cell" is one more possible truth."""

    epsilon: Positive
    """ε of one report."""


class KRandomizedResponseSection(_Budgeted):
    """Report one of the cells, the true one e^ε times as likely as any other."""

    kind: Literal["k_randomized_response"]


class SymmetricUnarySection(_Budgeted):
    """A bit for each cell, each flipped with the same probability."""

    kind: Literal["sue"]


class OptimisedUnarySection(_Budgeted):
    """A bit for each cell, with the two flip probabilities that give the least error."""

    kind: Literal["oue"]


class HadamardResponseSection(_Budgeted):
    """Report an index of a Hadamard code."""

    kind: Literal["hadamard_response"]


class SubsetSelectionSection(_Budgeted):
    """Report a set of cells that contains the true one with a higher probability than any other."""

    kind: Literal["subset_selection"]
    size: Count | None = None
    """Number of cells in the set. Default: the best."""


class LocalHashingSection(_Budgeted):
    """Hash the cells onto a few buckets, and report a noisy bucket."""

    kind: Literal["olh"]
    buckets: Count | None = None
    """Number of buckets. Default: the best."""


class ThresholdHistogramSection(_Budgeted):
    """Add Laplace noise to the one-hot vector of the cell, and report which entries exceed a threshold."""

    kind: Literal["the"]
    threshold: float | None = None
    """Threshold between 1/2 and 1. Default: the best."""


class WarnerSection(NamedByKind):
    """A yes/no answer for each cell: the truth with probability `truthful`, else the opposite."""

    kind: Literal["warner"]
    truthful: Probability
    """Probability of a true answer; not 1/2."""


class LongitudinalUnarySection(NamedByKind):
    """A permanent noisy bit for each cell, stored by the device and randomized again in every query."""

    kind: Literal["longitudinal_unary"]
    epsilon_permanent: Positive
    """ε of any number of reports about one place."""
    epsilon_first: Positive
    """ε of one report; below `epsilon_permanent`."""
    permanent: Literal["optimised", "symmetric"] = "optimised"
    """How the permanent bits are drawn."""


class DistributedLaplaceSection(NamedByKind):
    """Add each device's share of discrete Laplace noise to its report: for servers that see sums only."""

    kind: Literal["distributed_laplace"]
    epsilon: Positive
    """ε of the published sums."""
    devices: Count
    """Number of devices among which the noise is divided; if fewer are counted, there is less noise and the run claims
    less privacy."""


Mechanism = Annotated[NamedByKind, ByKind("mechanism", plug_in="scenarios.mechanisms:PlugInSection")]
