"""Places and times at which vehicles take part less often, or more reports are lost."""

from typing import Annotated, ClassVar

from pydantic import Field

from scenarios.field_types import Name, Probability
from scenarios.rules import GIVEN, LEFT_OUT, bounded, must, needs
from scenarios.run_clock import Moment
from scenarios.section import Rules, Section


class Local(Section):
    """Where and when something holds: at one place, or everywhere; at some time, or always."""

    cells: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None = None
    """In one of these cells, by name. For polygons of a file, name zones of a partition of kind ``zones``."""
    partition: Name | None = None
    """Partition that has these cells. Default: the first of `[[cells]]`."""
    road_class: Annotated[str, Field(min_length=1)] | None = None
    """On roads of this class: vehicles must be on links, and the source of the roads must state classes."""
    from_s: Moment | None = None
    """From this moment. Default: the start of the run."""
    to_s: Moment | None = None
    """Until just before this moment. Default: the end of the run."""

    rules: ClassVar[Rules] = (
        must("road_class", LEFT_OUT, "must be left out where cells are given", cells=GIVEN),
        needs("partition", "cells"),
        bounded("to_s", "above", "from_s"),
    )


_PLACE_AND_TIME = ("cells", "road_class", "from_s", "to_s")


class ParticipationRate(Local):
    """Vehicles that take part with another probability: of some class, or at some place and time."""

    rate: Probability
    """What `population.participation` is multiplied by, for vehicles that are there at the start of a query."""
    vehicle_class: Annotated[str, Field(min_length=1)] | None = None
    """For vehicles of this class, everywhere and always. Only vehicles of SUMO's files that the engines ``fleet`` and
    ``agents`` drive have classes."""

    rules = (must(_PLACE_AND_TIME, LEFT_OUT, "must be left out where vehicle_class is given", vehicle_class=GIVEN),)


class LossZone(Local):
    """Places where more reports are lost, such as tunnels."""

    loss: Probability
    """Probability that all messages which a device sends at a moment are lost because of where it is then."""
