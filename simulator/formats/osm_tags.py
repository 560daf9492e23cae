"""What tags of OpenStreetMap mean for cars: access, direction and speed limits, by the tables of ``osm_tags.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.files.messages import counted, values_in_words
from simulator.roads.class_defaults import CLASS_DEFAULTS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping, Sequence

_TABLES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CLASSES = frozenset(CLASS_DEFAULTS) - {"service"}
"""``highway`` classes that are streets: the classes of OSMnx's "drive", without classes that it accepts only because
its filter does not name them."""
_WAYS = {True: (":forward", ""), False: (":backward", "")}
"""Endings of the keys of a direction, the most specific first."""
_SPEED_KEYS = {
    along: [f"maxspeed{mode}{way}" for mode in (":motorcar", ":motor_vehicle", ":vehicle", "") for way in ways]
    for along, ways in _WAYS.items()
}
WAY_TAGS = frozenset(
    {"highway", "name", "area", "service", "junction", "speed_kph", "lanes:both_ways"}
    | {
        f"{key}{way}"
        for key in ("lanes", "turn:lanes", *_TABLES["access"]["keys"])
        for way in (*_WAYS[True], ":backward")
    }
    | {*_TABLES["oneway"]["keys"], *_TABLES["not_read"]["keys"], *_TABLES["maxspeed"]["fallbacks"]}
    | {key for keys in _SPEED_KEYS.values() for key in keys}
)
"""Tags that are read; "speed_kph" is added by OSMnx."""
_SEVERAL = re.compile(r"[;|]|,(?!\d)")
"""Separates several values; a comma before a digit begins a decimal fraction, as in OSMnx."""
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)?)\s*([a-z/]*)")
_THOUSANDS = re.compile(r"(\d),(?=\d{3}\b)")
_CONTEXT = re.compile(r"(?:([a-z]{2}(?:-[a-z]{2,3})?):)?(?:zone:?(?=\d))?([a-z_]+|\d+)")
_FASTEST_KPH = 330.0
_MOST_LANES = 20


def open_to_cars(tags: Mapping[str, str]) -> bool:
    """Return whether a way is a street on which the public may drive, in one direction at least.

    Parameters
    ----------
    tags
        Tags of the way.

    Returns
    -------
    bool
        True for the classes in :data:`CLASSES`, unless the way is an area, is a yard or parking lane according to
        ``service``, or is closed to cars in both directions.
    """
    return _is_street(tags) and any(directions(tags))


def _is_street(tags: Mapping[str, str]) -> bool:
    return (
        tags.get("highway") in CLASSES
        and tags.get("area") != "yes"
        and tags.get("service") not in _TABLES["yards"]["service"]
    )


def _stated(tags: Mapping[str, str], table: str, endings: Sequence[str] = ("",)) -> tuple[str, str, str]:
    """Return the most specific key of a table that a way has, its value, and the row of the table that has the value.

    The row is "unknown" if no row has it, and all three are empty if the way has no such key.
    """
    rows = _TABLES[table]
    for key in (f"{mode}{ending}" for mode in rows["keys"] for ending in endings):
        if text := tags.get(key, "").strip().lower():
            values = {part.strip() for part in text.split(";")} if table == "access" else {text}
            row = next((name for name, known in rows.items() if name != "keys" and values & {*known}), "unknown")
            return key, text, row
    return "", "", ""


def directions(tags: Mapping[str, str]) -> tuple[bool, bool]:
    """Return the directions in which cars may drive along a way.

    Parameters
    ----------
    tags
        Tags of the way.

    Returns
    -------
    along, against : bool
        Whether it may be driven in the order of its nodes, and in the opposite order. Roundabouts and motorways are
        one-way unless tagged otherwise; ways whose direction changes with the hour are open in both directions.
    """
    *_, row = _stated(tags, "oneway")
    if row in ("", "unknown"):
        row = "along" if any(tags.get(key) in values for key, values in _TABLES["implied_oneway"].items()) else "both"
    leads = [_stated(tags, "access", ends)[2] != "closed" for ends in _WAYS.values()]
    return leads[0] and row != "against", leads[1] and row != "along"


def noted(tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is left out of a way, or not understood: a kind of note, and the tag."""
    if not _is_street(tags):
        cause = next((key for key in ("area", "service") if key in tags and tags.get("highway") in CLASSES), "highway")
        if cause in tags:
            yield "left out", f"{cause} = {tags[cause]}"
        return
    for key, text, row in dict.fromkeys(_stated(tags, "access", ends) for ends in _WAYS.values()):
        kind = "unknown access" if row == "unknown" else row
        if kind in _TABLES["notes"]:
            yield kind, f"{key} = {text}"
    key, text, row = _stated(tags, "oneway")
    if row in ("unknown", "hourly"):
        yield f"{row} oneway", f"{key} = {text}"
    for key in _TABLES["not_read"]["keys"]:
        if key in tags:
            yield "not read", key


def noted_in_words(found: Counter[tuple[str, str]], unit: tuple[str, str]) -> Iterator[str]:
    """Yield a sentence for each kind of note that :func:`noted` yields, with the number of each tag.

    Parameters
    ----------
    found
        How often each note was yielded.
    unit
        The words for one way and for several.
    """
    for kind, words in _TABLES["notes"].items():
        if values := {tag: number for (of, tag), number in found.items() if of == kind}:
            yield f"{counted(sum(values.values()), *unit)} {words}: {values_in_words(values)}"


def speed_limit(tags: Mapping[str, str], *, along: bool) -> tuple[float | None, str | None]:
    """Read the speed limit of one direction.

    Parameters
    ----------
    tags
        Tags of the way.
    along
        True for the order of the way's nodes, False for the opposite direction.

    Returns
    -------
    kph : float or None
        Kilometres per hour; the mean of several values, as in OSMnx. None if the tags give no limit that is plausible
        for a road.
    unread : str or None
        If there is none, the first tag that states another value than a number or a context of a known country.
    """
    unread, fallbacks = None, _TABLES["maxspeed"]["fallbacks"]
    for key in (*_SPEED_KEYS[along], *fallbacks, "speed_kph"):
        text = tags.get(key, "").strip()
        limits = (_limit(part.strip().lower()) or 0.0 for part in _SEVERAL.split(text))
        known = [limit for limit in limits if 0 < limit <= _FASTEST_KPH]
        if known:
            return sum(known) / len(known), None
        if text and (key not in fallbacks or ":" in text):
            unread = unread or f"{key} = {text}"
    return None, unread


def _limit(text: str) -> float | None:
    """Convert one speed limit in lower case to km/h; None if it is not known."""
    number = _NUMBER.fullmatch(_THOUSANDS.sub(r"\1", text))
    if number and number[2] in _TABLES["units"]:
        return float(number[1].replace(",", ".")) * float(_TABLES["units"][number[2]])
    found = _CONTEXT.fullmatch(text)
    country, context = found.groups() if found else ("", "")
    of_country = _TABLES["limits"].get((country or "").upper(), {})
    if context.isdigit():
        return _limit(f"{context} mph" if "mph" in str(of_country.get("urban")) else context)
    limit = _TABLES["words"].get(context, of_country.get(context))
    return _limit(str(limit)) if limit is not None else None


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
    own_tag, other_tag = ("lanes:forward", "lanes:backward") if along else ("lanes:backward", "lanes:forward")
    if (own := _count(tags.get(own_tag))) is not None:
        return own
    total = _count(tags.get("lanes"))
    if total is None or not all(directions(tags)):
        return total
    total -= _count(tags.get("lanes:both_ways")) or 0
    other = _count(tags.get(other_tag))
    return max(1, total // 2 if other is None else total - other)


def _count(text: str | None) -> int | None:
    """Read a number of lanes, the smallest of several; None if there is none."""
    numbers = [_NUMBER.fullmatch(part.strip()) for part in _SEVERAL.split(text or "")]
    counts = [float(number[1].replace(",", ".")) for number in numbers if number and not number[2]]
    known = [int(count) for count in counts if 1 <= count < _MOST_LANES + 1]
    return min(known, default=None)
