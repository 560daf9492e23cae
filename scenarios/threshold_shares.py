"""``[aggregation]`` of kind ``threshold_shared``: servers of which a threshold suffices to read the sums."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from scenarios.channel import FEWEST_SHARES, MOST_SHARES, AggregationSection
from scenarios.errors import RuleViolation
from scenarios.field_types import without_default
from scenarios.section import ValidFields


class ThresholdShares(AggregationSection):
    """Servers that hold shares of each report, of which any ``threshold`` suffice."""

    kind: Literal["threshold_shared"]
    servers: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 3
    """Number of servers among which reports are shared."""
    threshold: Annotated[int, Field(ge=FEWEST_SHARES, le=MOST_SHARES)] = 2
    """Number of servers whose shares suffice, at most ``servers``; fewer servers learn nothing about a report."""
    paired: bool = False
    """Whether only devices received in every round are counted."""
    handles: Literal["device", "query"] = Field(default="device", json_schema_extra=without_default)
    """Identifier under which servers store shares: the device's number, or a one-time pseudonym, new in each query.

    Default: the device's number, and a pseudonym for paired shares."""

    @classmethod
    def resolve(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Fill in the handles, which depend on pairing."""
        return {"handles": "query" if given.get("paired") is True else "device", **given}

    @classmethod
    def broken_rules(cls, valid: ValidFields) -> Iterator[RuleViolation]:
        """Yield a fault for a threshold above the number of servers, and for pairing under device numbers."""
        if valid.has("servers", "threshold") and valid["threshold"] > valid["servers"]:
            yield valid.violation("threshold", f"must be at most servers = {valid['servers']}")
        if valid.get("paired") and valid.get("handles") == "device":
            rule = 'must be "query" where shares are paired: they are filed under one-time pseudonyms'
            yield RuleViolation(("handles",), rule, "device")
