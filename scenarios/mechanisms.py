"""``[[mechanisms]]``: what runs on the devices; all of them answer the same queries."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.section import (
    Known,
    Name,
    PositiveProbability,
    Probability,
    Section,
    number,
    tag_by,
    without_default,
)

PLUG_IN_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
_SUM_TOLERANCE = 1e-9


class _Mechanism(Section):
    @property
    def parameters(self) -> dict[str, Any]:
        """What the mechanism is made with: every key given or defaulted, but its name and kind."""
        return self.model_dump(exclude={"name", "kind"}, exclude_none=True)


class NoPrivacy(_Mechanism):
    """Every device says where it is: the baseline."""

    kind: Literal["no_privacy"]
    name: Name = "no_privacy"
    """Its name in key paths and results; no two alike."""


class RandomizedResponse(_Mechanism):
    """Two coins, tossed for each cell as a yes/no question."""

    kind: Literal["randomized_response"]
    name: Name = "randomized_response"
    """Its name in key paths and results; no two alike."""
    first_coin: PositiveProbability = 0.8
    """Probability of answering with the truth."""
    second_coin: Probability = 0.2
    """Probability of "yes" where the first coin said not to."""


def _blank_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<number>"


Blank = Annotated[
    Annotated[Probability, Tag("<number>")] | Annotated[tuple[Probability, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_blank_tag),
]


class SamplingPrivacy(_Mechanism):
    """Two rounds: all devices answer with blanks, then the sampled ones with the truth."""

    kind: Literal["sampling_privacy"]
    name: Name = "sampling_privacy"
    """Its name in key paths and results; no two alike."""
    form: Literal["multi", "binary"] = "multi"
    """One answer among all cells, or a yes/no answer for each cell."""
    sampling: PositiveProbability
    """Probability that a device is sampled."""
    blank_zero: Probability | None = None
    """Probability of the blank 0, "in no cell"."""
    blank: Blank | None = None
    """Probability of each cell's blank: one number for all, or a list of them; in ``binary``, of face 1.

    Where `blank_zero` and `blank` are both left out, all blanks are equally likely."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for probabilities of one die that do not sum to one, or exceed it."""
        if known.get("form") == "binary" and isinstance(known.get("blank"), tuple):
            yield Breach(("blank",), 'must be one number where form = "binary"', known["blank"])
        elif known.has("sampling") and {"blank_zero", "blank", "form"} <= known.keys():
            yield from _die(known)

    @property
    def silent_blank(self) -> bool:
        """Whether a blank die never shows 0, as far as can be told before there are cells."""
        if self.blank_zero is not None:
            return self.blank_zero == 0
        whole_die = isinstance(self.blank, tuple) or (self.form == "binary" and self.blank is not None)
        return whole_die and abs(self.sampling + _total(self.blank) - 1) <= _SUM_TOLERANCE


def _total(blank: float | tuple[float, ...] | None) -> float:
    return math.fsum(blank) if isinstance(blank, tuple) else blank or 0.0


def _die(known: Known) -> Iterator[Breach]:
    zero, blank = known["blank_zero"], known["blank"]
    total = math.fsum([known["sampling"], zero or 0.0, _total(blank)])
    words = ["sampling"]
    words += ["blank_zero"] if zero is not None else []
    words += ["the sum of blank" if isinstance(blank, tuple) else "blank"] if blank is not None else []
    complete = len(words) == 3 and (isinstance(blank, tuple) or known["form"] == "binary")
    at = "sampling" if len(words) == 1 else "blank_zero" if blank is None else "blank"
    if complete and abs(total - 1) > _SUM_TOLERANCE:
        yield Breach((at,), f"{' + '.join(words)} must be 1, and is {number(total)}", known[at])
    elif not complete and total > 1 + _SUM_TOLERANCE:
        yield Breach((at,), f"{' + '.join(words)} must be at most 1, and is {number(total)}", known[at])


class PlugIn(_Mechanism):
    """A user's mechanism, ``package.module:Class``; its other keys are its parameters."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(pattern=PLUG_IN_PATTERN)
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


Mechanism = Annotated[
    Annotated[NoPrivacy, Tag("<no_privacy>")]
    | Annotated[RandomizedResponse, Tag("<randomized_response>")]
    | Annotated[SamplingPrivacy, Tag("<sampling_privacy>")]
    | Annotated[PlugIn, Tag("<plug-in>")],
    Discriminator(
        mechanism_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context={
            "key": "kind",
            "choices": "no_privacy, randomized_response, sampling_privacy",
            "or_else": "a class of your own as package.module:Class",
        },
    ),
]
