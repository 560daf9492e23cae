"""OpenStreetMap tags: access, direction, speed and lanes of a way, with defaults by class of street."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.roads.class_defaults import CLASS_DEFAULTS, class_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLASSES = frozenset(CLASS_DEFAULTS) - {"service"}
"""``highway`` classes that are streets: those of OSMnx's "drive", without classes that it accepts only because its
filter does not name them."""
WAY_TAGS = frozenset(
    {
        "highway",
        "area",
        "service",
        "junction",
        "oneway",
        "access",
        "vehicle",
        "motor_vehicle",
        "motorcar",
        "maxspeed",
        "maxspeed:forward",
        "maxspeed:backward",
        "lanes",
        "lanes:forward",
        "lanes:backward",
        "lanes:both_ways",
        "speed_kph",
    }
)
"""Tags that are read; "speed_kph" is added by OSMnx."""

_ACCESS = ("motorcar", "motor_vehicle", "vehicle", "access")
_CLOSED = {"no", "private"}
_YARDS = {"alley", "driveway", "emergency_access", "parking", "parking_aisle", "private"}
_ALONG = {"yes", "true", "1", "F"}
_AGAINST = {"-1", "reverse", "T"}
_BOTH = {"reversible", "alternating"}
_IMPLIED = {"motorway", "motorway_link"}
_CIRCLES = {"roundabout", "circular"}
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*(km/h|kmh|kph|mph|knots)?")
_ZONE = re.compile(r"(?:[A-Z]{2}:)?zone:?(\d+)")
_KPH = {"mph": 1.609344, "knots": 1.852}
_URBAN_KPH = 50.0
_WALK_KPH = 7.0
_FASTEST_KPH = 330.0
_MOST_LANES = 20


def open_to_cars(tags: Mapping[str, str]) -> bool:
    """Return whether a way is a street on which the public may drive.

    Parameters
    ----------
    tags
        Tags of the way.

    Returns
    -------
    bool
        True for the classes in :data:`CLASSES`, unless the way is an area, is a yard or parking lane according to
        ``service``, or is closed by the most specific of ``motorcar``, ``motor_vehicle``, ``vehicle`` and ``access``.
    """
    if tags.get("highway") not in CLASSES or tags.get("area") == "yes" or tags.get("service") in _YARDS:
        return False
    said = next((tags[key] for key in _ACCESS if key in tags), "yes")
    return not _CLOSED & {part.strip() for part in said.split(";")}


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Return the directions in which a way may be driven.

    Parameters
    ----------
    tags
        Tags of the way.

    Returns
    -------
    along, against : bool
        Whether it may be driven in the order of its nodes, and in the opposite order. Roundabouts and motorways are
        one-way unless tagged otherwise; reversible ways may be driven in both directions.
    """
    said = tags.get("oneway", "").strip()
    if said in _AGAINST:
        return False, True
    if said in _ALONG:
        return True, False
    implied = tags.get("junction") in _CIRCLES or tags.get("highway") in _IMPLIED
    return (True, False) if implied and not said else (True, True)


def is_reversible(tags: Mapping[str, str]) -> bool:
    """Return whether a way's direction depends on the time of day."""
    return tags.get("oneway", "").strip() in _BOTH


def speed_kph(tags: Mapping[str, str], *, along: bool) -> float | None:
    """Read the speed limit of one direction.

    Parameters
    ----------
    tags
        Tags of the way.
    along
        True for the order of the way's nodes, False for the opposite direction.

    Returns
    -------
    float or None
        Kilometres per hour; the mean of several values, as in OSMnx. None if the tags give no numeric limit
        ("signals", "none", "DE:rural"), or none that is plausible for a road.
    """
    own = tags.get("maxspeed:forward" if along else "maxspeed:backward")
    for said in (own, tags.get("maxspeed"), tags.get("speed_kph")):
        limits = [_limit(part.strip()) for part in re.split(r"[;|,]", said or "")]
        known = [limit for limit in limits if limit is not None and 0 < limit <= _FASTEST_KPH]
        if known:
            return sum(known) / len(known)
    return None


def lanes(tags: Mapping[str, str], *, along: bool) -> int | None:
    """Read the lanes of one direction.

    ``lanes`` counts both directions of a two-way street: each has half of them, rounded down, but at least one.

    Parameters
    ----------
    tags
        Tags of the way.
    along
        True for the order of the way's nodes, False for the opposite direction.

    Returns
    -------
    int or None
        1 or more; None if the tags do not state a number.
    """
    here, there = ("lanes:forward", "lanes:backward") if along else ("lanes:backward", "lanes:forward")
    own = _count(tags.get(here))
    if own is not None:
        return own
    total = _count(tags.get("lanes"))
    if total is None or not all(directions(tags)):
        return total
    total -= _count(tags.get("lanes:both_ways")) or 0
    other = _count(tags.get(there))
    return max(1, total // 2 if other is None else total - other)


def _limit(said: str) -> float | None:
    """Convert one speed limit to km/h; None if it is not known."""
    number = _SPEED.fullmatch(said)
    if number:
        return float(number[1]) * _KPH.get(number[2] or "", 1.0)
    zone = _ZONE.fullmatch(said)
    if zone:
        return float(zone[1])
    if said == "walk":
        return _WALK_KPH
    return _URBAN_KPH if said.endswith(":urban") else None


def _count(said: str | None) -> int | None:
    """Read a number of lanes, the smallest of several; None if there is none."""
    numbers = [_SPEED.fullmatch(part.strip()) for part in re.split(r"[;|,]", said or "")]
    counts = [float(number[1]) for number in numbers if number and not number[2]]
    known = [int(count) for count in counts if 1 <= count < _MOST_LANES + 1]
    return min(known, default=None)


UNKNOWN = CLASS_DEFAULTS["unclassified"]
"""Speed and lanes of a street without a known class."""


class Street(NamedTuple):
    """A section of a way in one direction.

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
        """Make a section from the tags of its way.

        Parameters
        ----------
        tags
            Tags of the way, or of an edge that OSMnx made from it.
        way
            The way's id.
        length_m
            Length in metres.
        along
            True if driven in the order of the way's nodes, False for the opposite direction.
        capacity_vph
            Vehicles per hour and lane if the class of road has no default.

        Returns
        -------
        Street
            The section, with defaults where tags state no usable value.
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
    """Make one link from the sections between two junctions.

    Parameters
    ----------
    streets
        The sections in the order in which they are driven; at least one.

    Returns
    -------
    dict
        Attributes in the schema of :mod:`simulator.roads.schema`: the total length of the sections; the speed that
        gives their total travel time; the fewest lanes and the smallest capacity of any; the class with the most
        metres. ``osm_ways`` names the ways.
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
    """Return the defaults that a link took; for each value, that of its longest section that took one.

    Parameters
    ----------
    streets
        As for :func:`link_of`.

    Returns
    -------
    dict
        Name of each value to the class of road and the default in words.
    """
    guesses: dict[str, tuple[str | None, str]] = {}
    for street in sorted(streets, key=lambda street: street.length_m):
        guesses.update({name: (street.road_class, words) for name, words in street.guessed})
    return guesses
