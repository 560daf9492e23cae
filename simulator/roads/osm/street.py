"""One direction of a street: what its tags say, and what its class stands in for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.roads.class_defaults import CLASS_DEFAULTS, class_defaults
from simulator.roads.osm.tags import lanes, speed_kph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNKNOWN = CLASS_DEFAULTS["unclassified"]
"""Speed and lanes of a street without a class that is known."""


class Street(NamedTuple):
    """A stretch driven one way.

    ``guessed`` names those of ``speed_mps``, ``lanes`` and ``capacity_vph`` that are defaults of the class, with the
    value in words.
    """

    way: str
    road_class: str | None
    length_m: float
    speed_mps: float
    lanes: int
    capacity_vph: float
    guessed: tuple[tuple[str, str], ...]

    @classmethod
    def from_tags(
        cls, tags: Mapping[str, str], *, way: str, length_m: float, along: bool, capacity_vph: float
    ) -> Street:
        """Read a stretch's tags.

        Parameters
        ----------
        tags
            Of the way, or of an edge that OSMnx made of it.
        way
            The way's id.
        length_m
            Metres.
        along
            Driven in the order of the way's nodes, or against it.
        capacity_vph
            Vehicles per hour and lane, where the class of road says nothing.

        Returns
        -------
        Street
            With defaults where tags say nothing that can be used.
        """
        road_class = tags.get("highway")
        own = class_defaults(road_class)
        default = own or UNKNOWN
        guessed = []
        kph = speed_kph(tags, along=along)
        if kph is None:
            kph = default.speed_mps * 3.6
            guessed.append(("speed_mps", f"{kph:g} km/h"))
        count = lanes(tags, along=along)
        if count is None:
            count = default.lanes
            guessed.append(("lanes", str(count)))
        capacity = capacity_vph if own is None else own.capacity_vph
        guessed.append(("capacity_vph", f"{capacity:,g}"))
        return cls(way, road_class, length_m, kph / 3.6, count, capacity, tuple(guessed))


def link_of(streets: Sequence[Street]) -> dict[str, Any]:
    """Make one link of the stretches between two junctions.

    Parameters
    ----------
    streets
        In the order they are driven; at least one.

    Returns
    -------
    dict
        Attributes in the schema of :mod:`simulator.roads.schema`: the stretches' length and, by its speed, their
        travel time; the fewest lanes and the least capacity of any; the class of most metres. ``osm_ways`` names
        the ways.
    """
    length_m = sum(street.length_m for street in streets)
    metres: dict[str | None, float] = {}
    for street in streets:
        metres[street.road_class] = metres.get(street.road_class, 0.0) + street.length_m
    link: dict[str, Any] = {
        "length_m": length_m,
        "speed_mps": length_m / sum(street.length_m / street.speed_mps for street in streets),
        "lanes": min(street.lanes for street in streets),
        "capacity_vph": float(min(street.capacity_vph for street in streets)),
        "osm_ways": ";".join(dict.fromkeys(street.way for street in streets)),
    }
    longest = max(metres, key=lambda road_class: metres[road_class])
    return link if longest is None else link | {"class": longest}


def guesses_of(streets: Sequence[Street]) -> dict[str, tuple[str | None, str]]:
    """Say which defaults a link took, those of its longest stretch that took one.

    Parameters
    ----------
    streets
        As for :func:`link_of`.

    Returns
    -------
    dict
        Name of a value to the class of road and the default in words.
    """
    guesses: dict[str, tuple[str | None, str]] = {}
    for street in sorted(streets, key=lambda street: street.length_m):
        guesses.update({name: (street.road_class, words) for name, words in street.guessed})
    return guesses
