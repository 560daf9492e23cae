"""OpenStreetMap tags: access, direction, speed and lanes of a way, with defaults by class of street."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from simulator.roads.class_defaults import CLASS_DEFAULTS, class_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLASSES = frozenset(CLASS_DEFAULTS) - {"service"}
"""``highway`` classes that are streets: OSMnx's "drive" less what it lets through by not naming it."""
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
"""Tags that are read; the last is OSMnx's own."""

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
    """Say whether a way is a street that the public may drive.

    Parameters
    ----------
    tags
        Of the way.

    Returns
    -------
    bool
        True for the classes in :data:`CLASSES` that are no area, no yard or parking lane by ``service``, and not
        closed by the most specific of ``motorcar``, ``motor_vehicle``, ``vehicle`` and ``access``.
    """
    if tags.get("highway") not in CLASSES or tags.get("area") == "yes" or tags.get("service") in _YARDS:
        return False
    said = next((tags[key] for key in _ACCESS if key in tags), "yes")
    return not _CLOSED & {part.strip() for part in said.split(";")}


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Say which way a way may be driven.

    Parameters
    ----------
    tags
        Of the way.

    Returns
    -------
    along, against : bool
        In the order of its nodes, and against it. Roundabouts and motorways lead one way unless tagged otherwise;
        reversible ways lead both.
    """
    said = tags.get("oneway", "").strip()
    if said in _AGAINST:
        return False, True
    if said in _ALONG:
        return True, False
    implied = tags.get("junction") in _CIRCLES or tags.get("highway") in _IMPLIED
    return (True, False) if implied and not said else (True, True)


def is_reversible(tags: Mapping[str, str]) -> bool:
    """Say whether a way's direction changes with the hour."""
    return tags.get("oneway", "").strip() in _BOTH


def speed_kph(tags: Mapping[str, str], *, along: bool) -> float | None:
    """Read the speed limit of one direction.

    Parameters
    ----------
    tags
        Of the way.
    along
        In the order of its nodes, or against it.

    Returns
    -------
    float or None
        Kilometres per hour; the mean of several, as OSMnx has it. None where there is no limit in numbers
        ("signals", "none", "DE:rural"), or none that a road can have.
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

    ``lanes`` counts both directions of a two-way street: each has half of them, rounded down, but one at least.

    Parameters
    ----------
    tags
        Of the way.
    along
        In the order of its nodes, or against it.

    Returns
    -------
    int or None
        1 or more; None where the tags do not say.
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
    """One speed limit in km/h."""
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
    """Lanes, the fewest of several."""
    numbers = [_SPEED.fullmatch(part.strip()) for part in re.split(r"[;|,]", said or "")]
    counts = [float(number[1]) for number in numbers if number and not number[2]]
    known = [int(count) for count in counts if 1 <= count < _MOST_LANES + 1]
    return min(known, default=None)


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
