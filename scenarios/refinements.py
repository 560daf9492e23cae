"""``[[refinements]]``: post-processing of estimates, in separate result rows that are marked as biased."""

from typing import Annotated, Literal

from pydantic import Field

from scenarios.field_types import Name
from scenarios.rules import EachOnce
from scenarios.section import ByKind, NamedByKind


class RefinementSection(NamedByKind):
    """A refinement of some mechanisms' estimates; results name its rows ``MECHANISM+REFINEMENT``."""

    role = "refinement"
    mechanisms: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """Names of the mechanisms refined. Default: all except the baselines without privacy."""

    rules = (EachOnce(("mechanisms",)),)


class Clip(RefinementSection):
    """Counts below 0 become 0, and counts above the number of devices asked become that number."""

    kind: Literal["clip"]


class ToTotal(RefinementSection):
    """A refinement whose counts have a given sum."""

    total: Literal["estimated", "asked"] = "estimated"
    """The sum of the refined counts: that of the unrefined estimates, limited to between 0 and the number of devices
    asked; or the number of devices asked, which assumes that every one of them is in some cell."""


class NormSub(ToTotal):
    """Counts below 0 become 0, then the same amount is subtracted from (or added to) all others, until the sum fits."""

    kind: Literal["norm_sub"]


class NormMul(ToTotal):
    """Counts below 0 become 0, and all others are multiplied by the factor that gives the required sum."""

    kind: Literal["norm_mul"]


class Simplex(ToTotal):
    """The nearest non-negative counts with the required sum; equal to norm_sub if the total is estimated."""

    kind: Literal["simplex"]


Refinement = Annotated[RefinementSection, ByKind("refinement")]
