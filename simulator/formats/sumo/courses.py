"""Vehicles on courses: routes and trips whose links are known, and the vehicles of them that a run drives."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from simulator.arrays import FloatArray, Int32Array
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.formats.sumo.route_file import Course
from simulator.roads.network import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.trip_sampling import whole_vehicles
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips, too_many

_EDGE_UNKNOWN = "its edges are not all among the roads"
_NOT_CONSECUTIVE = "its edges are not consecutive"
_NO_PATH = "no path leads along its edges"


class NotDrivableError(InputError):
    """None of the vehicles of a file can be driven on the roads.

    Attributes
    ----------
    edges : set of str
        The edges of the routes that cannot be driven.
    """

    def __init__(self, faults: Iterable[str], edges: set[str]) -> None:
        super().__init__(faults)
        self.edges = edges


Faults = Mapping[int, tuple[str, str]]
"""Rule that a course breaks, and where, by number; only for courses that cannot be driven."""


def course_routes(
    courses: Sequence[Course],
    network: RoadNetwork,
    link_of: Mapping[str, int],
    *,
    classes: Sequence[str | None],
    paths: ShortestPaths | None = None,
) -> tuple[Routes, Faults]:
    """Route each course; a bare trip takes the shortest path. A course that cannot be driven has no links.

    Parameters
    ----------
    courses
        What vehicles drive over.
    network
        The roads.
    link_of
        Link of each edge that courses name.
    classes
        Vehicle class of each course, whose turns a trip keeps to; None for the turns of all.
    paths
        Shortest paths of the network for all classes, if already available.
    """
    start, end = network.links.from_node, network.links.to_node
    named: list[list[int]] = []
    faults: dict[int, tuple[str, str]] = {}
    for number, course in enumerate(courses):
        edges = course.edges
        links = [link_of.get(edge, -1) for edge in edges]
        gaps = [place for place, (a, b) in enumerate(pairwise(links), 1) if end[a] != start[b]]
        if -1 in links:
            faults[number] = (_EDGE_UNKNOWN, f"edge {edges[links.index(-1)]!r}")
        elif course.given and gaps:
            faults[number] = (_NOT_CONSECUTIVE, f"edge {edges[gaps[0]]!r} after edge {edges[gaps[0] - 1]!r}")
        # A trip drives a repeated edge once.
        named.append([] if number in faults else links if course.given else [link for link, _ in groupby(links)])
    trips: dict[str | None, list[int]] = {}
    for number, course in enumerate(courses):
        if not course.given and number not in faults:
            trips.setdefault(classes[number], []).append(number)
    between: dict[tuple[int, int, str | None], list[int] | None] = {}
    of_all = network.banned_turns
    for kind, numbers in trips.items():
        legs = sorted({leg for number in numbers for leg in pairwise(named[number])})
        closed = of_all if kind is None else network.banned_to([kind])
        if paths is not None and len(closed) <= len(of_all):
            used = paths
        else:
            used = ShortestPaths(network.links, through=network.through, banned=closed)
        reached, routes = used.between(*np.array(legs, dtype=np.int32).reshape(-1, 2).T)
        for place, leg in enumerate(legs):
            between[*leg, kind] = routes.of(place).tolist() if reached[place] else None
    for kind, number in ((kind, number) for kind, numbers in trips.items() for number in numbers):
        whole = named[number][:1]
        for a, b in pairwise(named[number]):
            path = between[a, b, kind]
            if path is None:
                edges = courses[number].edges
                faults[number] = (_NO_PATH, f"from edge {edges[0]!r} to edge {edges[-1]!r}")
                whole = []
                break
            whole += [*path, b]
        named[number] = whole
    offsets = np.cumsum([0, *map(len, named)], dtype=np.int64)
    return Routes(offsets, np.array([link for links in named for link in links], dtype=np.int32)), faults


class CourseVehicles(NamedTuple):
    """Vehicles of a file: the file, and of each its name, its departure in the file's seconds, and its course.

    Attributes
    ----------
    file
        Name of the file, for messages.
    names
        One per vehicle.
    depart_s
        (vehicles,) float64.
    course
        (vehicles,) int32: index of each vehicle's course.
    courses
        The courses.
    """

    file: str
    names: Sequence[str]
    depart_s: FloatArray
    course: Int32Array
    courses: Sequence[Course]


def trips_on_courses(
    read: CourseVehicles,
    driven: Routes,
    faults: Faults,
    network: RoadNetwork,
    *,
    unused: Counter[str],
    clock: Clock,
    begin_s: float,
    duration_s: float,
    share: float,
    vehicles: int | None,
    rng: np.random.Generator,
) -> tuple[Trips, Routes, list[str], list[str]]:
    """Choose the vehicles that depart within the run and can be driven, and count the others by reason.

    Parameters
    ----------
    read
        The vehicles.
    driven, faults
        The routes of their courses, as `course_routes` returns them.
    network
        The roads.
    unused
        Number of vehicles that are already left out, by reason.
    clock, begin_s, duration_s
        Ticks of the run, the file's second at which it starts, and its length.
    share, vehicles
        Mean number of copies of each vehicle, or the total number of vehicles.
    rng
        Draws the vehicles selected by a share.

    Returns
    -------
    trips : Trips
        In the order of departure.
    routes : Routes
        One per trip.
    names : list of str
        The name of each trip's vehicle.
    notes : list of str
        What was left out and why, one sentence each.

    Raises
    ------
    InputError
        If no vehicle is left, or there are too many.
    """
    named, depart_s, course = read.file, read.depart_s, read.course
    end_s = begin_s + duration_s
    undrivable = {
        rule: np.isin(course, [number for number, (other, _) in faults.items() if other == rule])
        for rule in (_EDGE_UNKNOWN, _NOT_CONSECUTIVE, _NO_PATH)
    }
    fits = np.ones(len(course), dtype=np.bool_)
    for rule, which in {
        f"they depart before the run starts (second {begin_s:.10g})": depart_s < begin_s,
        f"they depart after the run ends (second {np.floor(1000 * end_s) / 1000:.10g})": depart_s >= end_s,
        **undrivable,
    }.items():
        if (fits & which).any():
            first = course[fits & which][0]
            example = f" (as in {read.courses[first].where}: {faults[first][1]})" if rule in undrivable else ""
            unused[rule + example] += int((fits & which).sum())
            fits &= ~which
    notes = [f"{named}: {total:,} not driven: {reason}" for reason, total in unused.items()]
    if not fits.any():
        edges = {edge for number in faults for edge in read.courses[number].edges}
        rule = f"{named}: no vehicle of {len(read.names):,} can be driven on these roads"
        raise NotDrivableError([rule, *notes], edges)
    order = np.flatnonzero(fits)[np.argsort(depart_s[fits], kind="stable")]
    copies = whole_vehicles(np.full(len(order), share if vehicles is None else 1.0), total=vehicles, rng=rng)
    if not copies.any():
        raise InputError([f"{named}: a share of {share:g} of {counted(len(order), 'vehicle')} leaves none"])
    if fault := too_many(int(copies.sum()), nodes=len(network.node_names)):
        raise InputError([f"{named}: share × vehicles: {fault}"])
    chosen = np.repeat(order, copies)
    ticks = np.floor((depart_s[chosen] - begin_s) / clock.step_s)
    if ticks[-1] > np.iinfo(np.int32).max:
        raise InputError([f"{named}: departures must be before tick 2³¹, got second {depart_s[chosen[-1]]:g}"])
    routes = Routes.gathered(driven.links, driven.offsets[course[chosen]], np.diff(driven.offsets)[course[chosen]])
    if against := np.count_nonzero(routes.has_turn(network.banned_turns)):
        given = counted(int(against), "route has", "routes have")
        notes.append(f"{named}: {given} a turn that the roads do not allow; the vehicles drive as the file states")
    links = network.links
    trips = Trips(links.from_node[routes.first], links.to_node[routes.last], ticks.astype(np.int32))
    return trips, routes, [read.names[place] for place in chosen.tolist()], notes
