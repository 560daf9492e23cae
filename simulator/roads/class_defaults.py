"""Default speed, lanes and capacity by class of road.

The numbers come from MATSim's OpenStreetMap converter (``org.matsim.core.utils.io.OsmNetworkReader``, as kept in
arup-group/genet, ``matsim_xml_values.py``). A capacity below saturation flow accounts for the loss at junctions and
signals; lanes count one direction.

==================  ======  =====  =================
class               km/h    lanes  vehicles/h/lane
==================  ======  =====  =================
motorway            120     2      2,000
motorway_link       80      1      1,500
trunk               80      1      2,000
trunk_link          50      1      1,500
primary             80      1      1,500
primary_link        60      1      1,500
secondary, …_link   60      1      1,000
tertiary, …_link    45      1      600
unclassified, road  45      1      600
residential         30      1      600
living_street       15      1      300
service             15      1      300
==================  ======  =====  =================
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulator.files.messages import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class ClassDefaults:
    """Values assumed for a road if a file states no more than its class.

    Parameters
    ----------
    speed_mps
        Free-flow speed, metres per second.
    lanes
        Lanes of one direction.
    capacity_vph
        Vehicles per hour and lane.
    """

    speed_mps: float
    lanes: int
    capacity_vph: float


def _of(speed_kph: float, lanes: int, capacity_vph: float) -> ClassDefaults:
    return ClassDefaults(speed_kph / 3.6, lanes, capacity_vph)


CLASS_DEFAULTS: Mapping[str, ClassDefaults] = {
    "motorway": _of(120, 2, 2000),
    "motorway_link": _of(80, 1, 1500),
    "trunk": _of(80, 1, 2000),
    "trunk_link": _of(50, 1, 1500),
    "primary": _of(80, 1, 1500),
    "primary_link": _of(60, 1, 1500),
    "secondary": _of(60, 1, 1000),
    "secondary_link": _of(60, 1, 1000),
    "tertiary": _of(45, 1, 600),
    "tertiary_link": _of(45, 1, 600),
    "unclassified": _of(45, 1, 600),
    "road": _of(45, 1, 600),
    "residential": _of(30, 1, 600),
    "living_street": _of(15, 1, 300),
    "service": _of(15, 1, 300),
}
"""Defaults by OpenStreetMap's ``highway`` class."""


def class_defaults(road_class: str | None) -> ClassDefaults | None:
    """Look up the defaults of a class of road.

    Parameters
    ----------
    road_class
        OpenStreetMap's ``highway`` class, in any case, with spaces or hyphens for underscores, or as SUMO writes
        it ("highway.primary").

    Returns
    -------
    ClassDefaults or None
        None for a class that is not in the table, and for None.
    """
    if road_class is None:
        return None
    name = re.sub(r"[\s-]+", "_", road_class.strip().lower()).removeprefix("highway.")
    return CLASS_DEFAULTS.get(name)


def filled_in_words(name: str, filled: Iterable[tuple[str | None, str]], *, links: int) -> str | None:
    """Return one line stating how many links took which default, most frequent first.

    Parameters
    ----------
    name
        The value's name in the schema, such as "lanes".
    filled
        One pair for each link that took a default: its class, None if it has none, and the value in words.
    links
        The number of all links.

    Returns
    -------
    str or None
        As in "lanes taken by class of road in 3 of 9 links: residential 1 (2), motorway 2 (1)"; None if no link
        took a default.
    """
    counts = Counter((road_class or "no class", value) for road_class, value in filled)
    if not counts:
        return None
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{road_class} {value} ({number:,})" for (road_class, value), number in ordered)
    return f"{name} taken by class of road in {counts.total():,} of {counted(links, 'link')}: {listed}"
