"""``[aggregation]`` of the kinds that divide devices over servers."""

from typing import Annotated, Literal

from pydantic import Field

from scenarios.cells import HIGHEST
from scenarios.channel import AggregationSection


class RoadsideUnitsSection(AggregationSection):
    """A road-side unit for each district, to which the devices of the district report; it knows the district."""

    kind: Literal["roadside_units"]
    level: Annotated[int, Field(ge=0, le=HIGHEST)] = 1
    """How many times the side of a cell is doubled to obtain a district."""
    paired: bool = False
    """Whether a unit counts only devices received in every round."""
    handles: Literal["device", "query"] = "device"
    """Identifier under which units store reports: the device's number, or a one-time pseudonym, new in each query."""
