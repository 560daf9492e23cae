"""``[aggregation]`` and ``[release]``: who adds up the reports, and what is published."""

from typing import Literal

from scenarios.section import Section


class Aggregation(Section):
    """Who adds up the reports."""

    kind: Literal["trusted"] = "trusted"
    """One server, which sees every report."""


class Release(Section):
    """What is done to the counts before they are published."""

    kind: Literal["none"] = "none"
    """Nothing: they are published as they are."""
