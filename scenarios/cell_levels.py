"""How often the cells of a city are merged."""

from typing import Annotated

from pydantic import Field

from scenarios.section import Section

HIGHEST = 40


class Levels(Section):
    """What all kinds of cells have in common."""

    level: Annotated[int, Field(ge=0, le=HIGHEST)] = 0
    """How often the cells are merged before anybody is counted, each time into blocks of about twice the side."""
