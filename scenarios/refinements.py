"""``[[refinements]]``: estimates changed afterwards, in rows of their own that are marked as biased."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from scenarios.errors import RuleViolation
from scenarios.section import Name, Section, ValidFields, tag_by, without_default


class RefinementSection(Section):
    """A refinement of some mechanisms' estimates; results name its rows ``MECHANISM+REFINEMENT``."""

    kind: str
    name: Name = Field(default="", json_schema_extra=without_default)
    """Its name in key paths and results, no two alike; left out, the kind."""
    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms refined; left out, every one but the baselines without privacy."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Name it after its kind where it has no name."""
        return {"name": str(given.get("kind")), **given}

    @classmethod
    def broken_rules(cls, known: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for each mechanism named twice."""
        for name, times in Counter(known.get("mechanisms") or ()).items():
            if times > 1:
                yield RuleViolation(
                    ("mechanisms",), f"must name each mechanism once, and {name} is there {times} times"
                )


class Clip(RefinementSection):
    """Counts below 0 become 0, counts above the devices asked those."""

    kind: Literal["clip"]


class ToTotal(RefinementSection):
    """A refinement whose counts have a given sum."""

    total: Literal["estimated", "asked"] = "estimated"
    """The sum of the unrefined estimates, within 0 and the devices asked; or all devices asked, which takes
    every one of them to be in some cell."""


class NormSub(ToTotal):
    """Counts below 0 become 0, then the same amount is taken off (or put on) all others, until the sum is right."""

    kind: Literal["norm_sub"]


class NormMul(ToTotal):
    """Counts below 0 become 0, and all others are multiplied by the factor that makes the sum right."""

    kind: Literal["norm_mul"]


class Simplex(ToTotal):
    """The nearest counts that are not below 0 and have the sum; the same as norm_sub where the total is estimated."""

    kind: Literal["simplex"]


class Combine(RefinementSection):
    """The last queries' estimates together, each by the inverse of its variance."""

    kind: Literal["combine"]
    window: Annotated[int, Field(ge=2)]
    """How many queries, the one asked about included; the first ones have fewer."""


KINDS = ("clip", "norm_sub", "norm_mul", "simplex", "combine")

refinement_tag = tag_by("kind")

Refinement = Annotated[
    Annotated[Clip, Tag("<clip>")]
    | Annotated[NormSub, Tag("<norm_sub>")]
    | Annotated[NormMul, Tag("<norm_mul>")]
    | Annotated[Simplex, Tag("<simplex>")]
    | Annotated[Combine, Tag("<combine>")],
    Discriminator(
        refinement_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context={"key": "kind", "choices": ", ".join(KINDS)},
    ),
]
