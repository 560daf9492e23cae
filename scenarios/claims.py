"""``[claims]``: for which parameters the privacy of a run is stated."""

from typing import Annotated

from pydantic import Field

from scenarios.section import Count, Positive, Section


class Claims(Section):
    """The parameters of the claims table."""

    epsilons: Annotated[tuple[Positive, ...], Field(strict=False, min_length=1)] = (0.5, 1.0, 2.0, 4.0)
    """Each ε at which δ is reported."""
    queries: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1,)
    """Numbers of queries a device answers."""
    crowds: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 10, 100, 1000)
    """Numbers of devices counted in a cell, for views whose privacy grows with the crowd."""
