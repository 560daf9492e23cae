"""Demand from MATSim's plans: the car legs of the selected plan of each person, on their routes of links."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyproj

from simulator.files.errors import InputError
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import TEXT, elements_of
from simulator.roads.network import RoadNetwork
from simulator.roads.projection import known_crs, transform
from simulator.traffic.demand.courses import CourseVehicles, course_routes, trips_on_courses
from simulator.traffic.demand.sumo_attributes import time_of_day
from simulator.traffic.demand.sumo_file import Course
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes

_CRS = "coordinateReferenceSystem"
_UTM = re.compile(r"WGS84_UTM(\d{1,2})([NS])")
_CRS_NAMES = {
    "Atlantis": "", "CH1903_LV03": "EPSG:21781", "CH1903_LV03_Plus": "EPSG:2056", "DHDN_GK4": "EPSG:31468",
    "GK4": "EPSG:31468", "DHDN_SoldnerBerlin": "EPSG:3068",
}  # fmt: skip
"""Systems that MATSim names in its own words, as PROJ knows them; those of UTM zones follow a pattern."""


def stated_crs(file: Path) -> pyproj.CRS | None:
    """Return the coordinate system that a MATSim network or population states; None for none, or for "Atlantis".

    Raises
    ------
    InputError
        If PROJ does not know the system.
    """
    attribute = stated = ""
    for name, attributes, _ in elements_of(file, texts=("attribute",), ends=False, doctype=True):
        if stated or name in ("person", "node"):
            break
        if name == "attribute":
            attribute = (attributes or {}).get("name", "")
        elif name == TEXT and attribute == _CRS and attributes:
            stated = attributes["attribute"].strip()
    zone = _UTM.fullmatch(stated)
    known = f"EPSG:32{6 if zone[2] == 'N' else 7}{zone[1]:0>2}" if zone else _CRS_NAMES.get(stated, stated)
    return known_crs(known, f"{file}: {_CRS} (or state roads.crs)") if known else None


_FAR_M = 1000.0
_NO_PLACE = f"an activity has no link of the roads, and no coordinates within {_FAR_M:,.0f} m of one"
_NO_TIME = "no time of departure is stated, and no duration of the activity before"
_STAYS = "they end on the link on which they begin"


class _Leg(NamedTuple):
    """A leg that is driven.

    Attributes
    ----------
    person
        Id of the person.
    depart_s, after
        When it departs: seconds from midnight if `after` is -1, else from the arrival of the leg of that number.
    own, ends
        Attributes of the leg, and of the activities before and after it: those of the file; ``where``, file and line;
        ``route`` of a leg, and ``route of``, "links" or, in version 4, "nodes" between its first and its last link.
    """

    person: str
    depart_s: float
    after: int
    own: dict[str, str]
    ends: tuple[dict[str, str], dict[str, str]]


def read_matsim_plans(
    file: Path,
    network: RoadNetwork,
    *,
    modes: Collection[str] = ("car",),
    crs: object = None,
    paths: ShortestPaths | None = None,
    **run: Any,
) -> Demand:
    """Read plans version 4 to 6: each leg of a mode that is driven is a trip.

    A vehicle starts at the end of its departure link, as in MATSim, and drives its last link to the end: its route
    begins with the link after the departure link. A leg that ends on its departure link is not driven. A leg without a
    route of links takes the free-flow shortest-time path between the links of its activities; where an activity has
    none, or the roads are not MATSim's, between the links nearest to their coordinates.

    A leg departs at the end of the activity before it. If only a duration of that activity is stated, and MATSim has
    not computed when the leg departs, the vehicle arrives there after the free-flow time of the leg before.

    Parameters
    ----------
    file
        ``plans.xml`` or ``population.xml``, plain or compressed.
    network
        Roads; if they are MATSim's, edges carry ``matsim_link``.
    modes
        Modes of legs that are driven.
    crs
        System of the coordinates of activities; None for the one that the file states, else that of the network.
    paths
        Shortest paths of the network, if already available.
    **run
        As for :func:`~simulator.traffic.demand.courses.trips_on_courses`.

    Returns
    -------
    Demand
        Trips, routes and notes.

    Raises
    ------
    InputError
        If the file is faulty, or no leg can be driven.
    """
    unused: Counter[str] = Counter()
    legs = [*_read_legs(file, modes, unused)]
    link_of = network.links_named_by("matsim_link")
    names = {link: name for name, link in link_of.items()} or {link: str(link) for link in range(len(network.links))}
    ends = [end for leg in legs for end in leg.ends]
    named = [name if (name := end.get("link", "")) in link_of else "" for end in ends]
    placed = [at for at, end in enumerate(ends) if not named[at] and "x" in end and "y" in end]
    xy = np.array([[finite_number(ends[at][axis]) for axis in ("x", "y")] for at in placed], dtype=np.float64)
    if placed:
        nearest, far_m = network.nearest_links(transform(crs or stated_crs(file) or network.crs, network.crs, xy))
        for at, link in zip(placed, np.where(far_m <= _FAR_M, nearest, -1).tolist(), strict=True):
            named[at] = names.get(link, "")
    numbers: dict[Course, int] = {}
    course = np.full(len(legs), -1, dtype=np.int32)
    joining = {(start, end): data.get("matsim_link", "") for start, end, data in network.graph.edges(data=True)}
    for at, leg in enumerate(legs):
        (first, last), route = named[2 * at : 2 * at + 2], leg.own.get("route", "") if link_of else ""
        edges: str | tuple[str, ...] = route or (first, last)
        if route and leg.own["route of"] == "nodes":
            edges = (first, *(joining.get(pair, "") for pair in pairwise(route.split())), last)
        if (first and last) or edges == route:
            new = Course(edges, given=bool(route), where=leg.own["where"])
            course[at] = numbers.setdefault(new, len(numbers))
    found, faults = course_routes([*numbers], network, {name: link for link, name in names.items()}, paths=paths)
    whole = np.diff(found.offsets)
    driven = Routes.gathered(found.links, found.offsets[:-1] + 1, np.maximum(whole - 1, 0))
    walked_s = np.append(0.0, np.cumsum(network.links.free_flow_s[driven.links]))[driven.offsets]
    free_s = np.append(np.diff(walked_s), 0.0)[course]
    depart_s = np.array([leg.depart_s for leg in legs])
    for at, leg in enumerate(legs):
        depart_s[at] += depart_s[leg.after] + free_s[leg.after] if leg.after >= 0 else 0.0
    reasons = {_NO_PLACE: course < 0, _STAYS: np.append(whole, 0)[course] == 1, _NO_TIME: np.isnan(depart_s)}
    drives = np.ones(len(legs), dtype=np.bool_)
    for reason, left_out in reasons.items():
        unused[reason] += int((drives & left_out).sum())
        drives &= ~left_out
    persons = [leg.person for leg, taken in zip(legs, drives, strict=True) if taken]
    read = CourseVehicles(file.name, persons, depart_s[drives], course[drives], [*numbers])
    trips, routes, _, notes = trips_on_courses(read, driven, faults, network, unused=+unused, **run)
    return Demand(trips, routes, tuple(notes))


def _read_legs(file: Path, modes: Collection[str], unused: Counter[str]) -> Iterator[_Leg]:
    """Yield the legs of selected plans that are driven, by person in driving order, and count those of other modes."""
    number = 0
    for person, items in _selected_plans(file):
        # When the person arrives at the activity: seconds, after the arrival of the leg of a number or midnight.
        arrives_s, after = np.nan, -1
        ends_s = leaves_s = np.nan
        for place, item in enumerate(items):
            if item["is"] != "leg":
                ends_s, lasts_s = _seconds(item, "end_time"), _seconds(item, "max_dur" if "max_dur" in item else "dur")
                leaves_s, after = (ends_s, -1) if ends_s >= 0 else (arrives_s + lasts_s, after)
                continue
            stated_s = _seconds(item, "dep_time")
            if stated_s >= 0 and not ends_s >= 0:
                leaves_s, after = stated_s, -1
            takes_s = _seconds(item, "trav_time")
            arrives_s = leaves_s + takes_s
            if item.get("mode") not in modes:
                unused[f"legs of mode {item.get('mode')!r}"] += 1
            elif 0 < place < len(items) - 1:
                yield _Leg(person, leaves_s, after, item, (items[place - 1], items[place + 1]))
                arrives_s, after = (arrives_s, after) if takes_s >= 0 else (0.0, number)
                number += 1


def _seconds(item: dict[str, str], key: str) -> float:
    """Return a time of an element, NaN if it is not stated, which MATSim also writes as undefined or -Infinity."""
    value = time_of_day(item.get(key, ""))
    return np.nan if value is None or value < 0 else value


def _selected_plans(file: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield each person's id, and the activities and legs of the plan that is selected, or of the first if none is."""
    root, person, items, best, selected = "", "", list[dict[str, str]](), None, False
    for name, attributes, line in elements_of(file, texts=("route",), doctype=True):
        root = root or name
        if root not in ("plans", "population"):
            raise InputError([f"{file}: line {line}: the file must begin with <plans> or <population>, got <{root}>"])
        if attributes is None and name == "plan" and (best is None or selected):
            best = items
        elif attributes is None and name == "person":
            yield person, best or []
            best = None
        elif attributes is None:
            continue
        elif name == "person":
            person = attributes.get("id", "")
        elif name == "plan":
            items, selected = [], attributes.get("selected") == "yes"
        elif name in ("act", "activity", "leg"):
            items.append({**attributes, "is": name, "where": f"{file.name}: line {line}"})
        elif name == "route" and items:
            items[-1]["route of"] = "nodes" if root == "plans" else attributes.get("type", "links")
            items[-1].setdefault("trav_time", attributes.get("trav_time", ""))
        elif name == TEXT and items and items[-1]["route of"] in ("nodes", "links"):
            items[-1]["route"] = attributes["route"].strip()
