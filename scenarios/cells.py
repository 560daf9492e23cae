"""``[cells]``: how the city is divided."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from scenarios.cell_levels import Levels
from scenarios.faults import Breach
from scenarios.place_cells import LocationCells, RoadCells, StationCells
from scenarios.section import Known, Place, Positive, rule, tag_by

Bounds = tuple[float, float, float, float]


def _four(bounds: Any) -> Any:
    if isinstance(bounds, list | tuple) and len(bounds) == 4:
        return tuple(bounds)
    raise rule("must be four numbers, [x_min, y_min, x_max, y_max]")


class _Windowed(Levels):
    """Cells over the extent of the roads or of what was recorded, or over a window of it."""

    bounds: Annotated[Bounds, BeforeValidator(_four)] | None = None
    """Window that is divided, [x_min, y_min, x_max, y_max]; the rest is outside every cell.

    Projected metres; in a generated city, metres from its south-west corner."""

    @classmethod
    def broken_rules(cls, known: Known) -> Iterator[Breach]:
        """Yield a fault for a window without width or height."""
        if known.has("bounds"):
            x_min, y_min, x_max, y_max = known["bounds"]
            for axis, low, high in (("x", x_min, x_max), ("y", y_min, y_max)):
                if low >= high:
                    yield Breach(("bounds",), f"{axis}_min must be below {axis}_max", known["bounds"])


class SquareCells(_Windowed):
    """Squares over the extent of the roads, or over a window of it."""

    kind: Literal["square"]
    size_m: Positive
    """Side of a cell, metres."""


class HexagonCells(_Windowed):
    """The cells of the global grid H3 that meet the extent of the roads, or a window of it."""

    kind: Literal["h3"]
    resolution: Annotated[int, Field(ge=0, le=15)]
    """H3's resolution: a side is about 531 m at 8, 201 m at 9, 76 m at 10."""


class GeographicCells(Levels):
    """The papers' cells of one size in miles over a square of 9,500 miles, each with a 32-bit identifier."""

    kind: Literal["geographic"]
    size_miles: Positive = 0.15
    """Side of a cell, miles."""
    origin: Place = Place()
    """Centre of the square."""


cells_tag = tag_by("kind")

Cells = Annotated[
    Annotated[SquareCells, Tag("<square>")]
    | Annotated[GeographicCells, Tag("<geographic>")]
    | Annotated[HexagonCells, Tag("<h3>")]
    | Annotated[RoadCells, Tag("<roads>")]
    | Annotated[StationCells, Tag("<stations>")]
    | Annotated[LocationCells, Tag("<locations>")],
    Discriminator(
        cells_tag,
        custom_error_type="choice",
        custom_error_message="must be one of the known kinds",
        custom_error_context={"key": "kind", "choices": "square, geographic, h3, roads, stations, locations"},
    ),
]
