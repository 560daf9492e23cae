"""``[[mechanisms]]``: what runs on the devices; all of them answer the same queries."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from scenarios import anonymized, rivals
from scenarios.faults import Breach
from scenarios.mechanism_section import MechanismSection
from scenarios.permissions import trusted_only
from scenarios.sampling_privacy import SamplingPrivacy
from scenarios.section import Known, Name, PositiveProbability, Probability, tag_by, without_default

PLUG_IN_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


class NoPrivacy(MechanismSection):
    """Every device says where it is: the baseline."""

    kind: Literal["no_privacy"]
    name: Name = "no_privacy"
    """Its name in key paths and results; no two alike."""


class RandomizedResponse(MechanismSection):
    """Two coins, tossed for each cell as a yes/no question."""

    kind: Literal["randomized_response"]
    name: Name = "randomized_response"
    """Its name in key paths and results; no two alike."""
    first_coin: PositiveProbability = 0.8
    """Probability of answering with the truth."""
    second_coin: Probability = 0.2
    """Probability of "yes" where the first coin said not to."""


class PlugIn(MechanismSection):
    """A user's mechanism, ``package.module:Class``; its other keys are its parameters."""

    model_config = ConfigDict(extra="allow")

    kind: Annotated[str, Field(pattern=PLUG_IN_PATTERN), trusted_only("its class would have to be imported")]
    name: Name = Field(default="", json_schema_extra=without_default)
    """Its name in key paths and results, no two alike; left out, the name of the class."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Name it after its class where it has no name."""
        return {"name": str(given.get("kind")).partition(":")[2], **given}

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for each parameter that is NaN or infinite."""
        for key, value in known.items():
            yield from _not_finite((key,), value)


def _not_finite(at: tuple[str | int, ...], value: Any) -> Iterator[Breach]:
    if isinstance(value, float) and not math.isfinite(value):
        yield Breach(at, "must be a finite number", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite((*at, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_finite((*at, index), item)


def mechanism_tag(value: Any) -> str | None:
    """Tell the kinds apart: a text with a colon names a plug-in."""
    tag = tag_by("kind")(value)
    return "<plug-in>" if tag is not None and ":" in tag else tag


KINDS = (
    "no_privacy",
    "sampling_privacy",
    "randomized_response",
    "warner",
    "k_randomized_response",
    "sue",
    "oue",
    "the",
    "olh",
    "subset_selection",
    "hadamard_response",
    "longitudinal_unary",
    "distributed_laplace",
    "sampling_and_noise",
    "sampled_response",
    "anonymized_local",
    "anonymized_first_attempt",
    "anonymized_cancelling",
    "anonymized_deniable",
)
"""Every kind that has a short name."""

Mechanism = Annotated[
    Annotated[NoPrivacy, Tag("<no_privacy>")]
    | Annotated[SamplingPrivacy, Tag("<sampling_privacy>")]
    | Annotated[RandomizedResponse, Tag("<randomized_response>")]
    | Annotated[rivals.Warner, Tag("<warner>")]
    | Annotated[rivals.KRandomizedResponse, Tag("<k_randomized_response>")]
    | Annotated[rivals.SymmetricUnary, Tag("<sue>")]
    | Annotated[rivals.OptimisedUnary, Tag("<oue>")]
    | Annotated[rivals.ThresholdHistogram, Tag("<the>")]
    | Annotated[rivals.LocalHashing, Tag("<olh>")]
    | Annotated[rivals.SubsetSelection, Tag("<subset_selection>")]
    | Annotated[rivals.HadamardResponse, Tag("<hadamard_response>")]
    | Annotated[rivals.LongitudinalUnary, Tag("<longitudinal_unary>")]
    | Annotated[rivals.DistributedLaplace, Tag("<distributed_laplace>")]
    | Annotated[anonymized.SamplingAndNoise, Tag("<sampling_and_noise>")]
    | Annotated[anonymized.SampledResponse, Tag("<sampled_response>")]
    | Annotated[anonymized.AnonymizedLocal, Tag("<anonymized_local>")]
    | Annotated[anonymized.AnonymizedFirstAttempt, Tag("<anonymized_first_attempt>")]
    | Annotated[anonymized.AnonymizedCancelling, Tag("<anonymized_cancelling>")]
    | Annotated[anonymized.AnonymizedDeniable, Tag("<anonymized_deniable>")]
    | Annotated[PlugIn, Tag("<plug-in>")],
    Discriminator(
        mechanism_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context={
            "key": "kind",
            "choices": ", ".join(KINDS),
            "or_else": "a class of your own as package.module:Class",
        },
    ),
]
