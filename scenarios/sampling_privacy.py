"""``kind = "sampling_privacy"``: the die of the papers' protocol."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.faults import Breach
from scenarios.mechanism_section import MechanismSection
from scenarios.section import Known, Name, PositiveProbability, Probability, number

SUM_TOLERANCE = 1e-9


def _blank_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<number>"


Blank = Annotated[
    Annotated[Probability, Tag("<number>")] | Annotated[tuple[Probability, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_blank_tag),
]


class SamplingPrivacy(MechanismSection):
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
    refresh: Probability = 0.0
    """Probability that an unsampled device draws its blank anew in round two (``multi`` alone)."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for probabilities of one die that do not sum to one, or exceed it."""
        if known.get("form") == "binary" and known.get("refresh"):
            yield Breach(("refresh",), 'goes with form = "multi"', known["refresh"])
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
        return whole_die and abs(self.sampling + _total(self.blank) - 1) <= SUM_TOLERANCE


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
    if complete and abs(total - 1) > SUM_TOLERANCE:
        yield Breach((at,), f"{' + '.join(words)} must be 1, and is {number(total)}", known[at])
    elif not complete and total > 1 + SUM_TOLERANCE:
        yield Breach((at,), f"{' + '.join(words)} must be at most 1, and is {number(total)}", known[at])
