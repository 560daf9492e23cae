"""Demand from SUMO's route files: vehicles on their given routes, trips between edges, and what SUMO itself draws."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.arrays import FloatArray, Int32Array, Mask
from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.files.messages import counted
from simulator.roads.network import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.sumo_attributes import VehicleType
from simulator.traffic.demand.sumo_file import Course, SumoFile
from simulator.traffic.demand.trip_sampling import whole_vehicles
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.sumo.drawing import draw_vehicles
from simulator.traffic.trips import Trips, VehicleClasses, too_many

_EDGE_UNKNOWN = "its edges are not all among the roads"
_NOT_CONSECUTIVE = "its edges are not consecutive"
_NO_PATH = "no path leads along its edges"
_SEEDS = 2**31


class NotDrivableError(InputError):
    """None of SUMO's vehicles can be driven on the roads.

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
    *,
    classes: Sequence[str | None] | None = None,
    paths: ShortestPaths | None = None,
) -> tuple[Routes, Faults]:
    """Find the routes of courses, those of trips by shortest paths; a course that cannot be driven has no links.

    Parameters
    ----------
    courses
        What vehicles drive over.
    network
        The roads.
    classes
        Vehicle class of each course, whose turns a trip keeps to; by default, that of all.
    paths
        Shortest paths of the network for all classes, if already available.

    Raises
    ------
    InputError
        If the network's edges carry no SUMO ids.
    """
    link_of = sumo_link_ids(network)
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
            trips.setdefault(classes[number] if classes else None, []).append(number)
    between: dict[tuple[int, int, str | None], list[int] | None] = {}
    of_all = network.banned_turns
    for kind, numbers in trips.items():
        legs = sorted({leg for number in numbers for leg in pairwise(named[number])})
        closed = of_all if kind is None else network.banned_to([kind])
        if paths is None or len(closed) > len(of_all):
            found = _shortest(legs, ShortestPaths(network.links, through=network.through, banned=closed))
        else:
            found = _shortest(legs, paths)
        between |= {(*leg, kind): path for leg, path in found.items()}
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


def sumo_link_ids(network: RoadNetwork) -> dict[str, int]:
    """Return the link of each SUMO edge.

    Raises
    ------
    InputError
        If no edge of the graph carries ``sumo_edge``: the roads did not come from a SUMO network.
    """
    link_of = network.links_named_by("sumo_edge")
    if not link_of:
        raise InputError(["SUMO routes need roads read from SUMO's network: these links have no SUMO edges"])
    return link_of


def _shortest(legs: Sequence[tuple[int, int]], paths: ShortestPaths) -> dict[tuple[int, int], list[int] | None]:
    """Return the links of the shortest path between each pair of links, None where there is no path."""
    reached, routes = paths.between(*np.array(legs, dtype=np.int32).reshape(-1, 2).T)
    return {leg: routes.of(i).tolist() if reached[i] else None for i, leg in enumerate(legs)}


class SumoRoutes(NamedTuple):
    """Trips and routes of the vehicles.

    Attributes
    ----------
    trips
        In the order of departure; a round trip has one node for origin and destination.
    routes
        One route per trip.
    ids
        SUMO's ids, one per trip. The vehicles of flow "f" are "f.0", "f.1", …. With a share above 1, copies have
        one id.
    notes
        What was left out and why, one sentence each.
    classes
        Classes, speeds and sizes of the vehicles, by their types; those of a distribution of types are drawn.
    """

    trips: Trips
    routes: Routes
    ids: list[str]
    notes: list[str]
    classes: VehicleClasses


def read_sumo_routes(
    files: Iterable[str | Path],
    network: RoadNetwork,
    *,
    net: Path | None,
    vehicle_class: str | None = None,
    seed: int | None = None,
    clock: Clock,
    duration_s: float = np.inf,
    begin_s: float = 0.0,
    share: float = 1.0,
    vehicles: int | None = None,
    paths: ShortestPaths | None = None,
    rng: np.random.Generator,
) -> SumoRoutes:
    """Read SUMO's vehicles, trips and flows for roads that were read from SUMO's network.

    A vehicle with a route drives that route. A trip drives its first edge, its edges on the way and its last edge, and
    the free-flow shortest-time path between them by allowed turns. SUMO itself draws the vehicles of flows, those
    between zones or junctions, and those whose route is a distribution of routes, and finds their routes: this needs
    SUMO. Vehicles need not be sorted by departure. A vehicle's start and end positions on its edges, its lane and its
    stops are ignored, and its type but for its class, its highest speed, and the mean length and gap of all types.

    Parameters
    ----------
    files
        Route files, and additional files with routes, plain or gzipped. An ``<include>`` is not followed.
    network
        Roads whose edges carry ``sumo_edge``, SUMO's id.
    net, vehicle_class
        SUMO's network file, on which SUMO draws flows, None if there is none; and the only vehicle class of the roads,
        which all vehicles then have, None if each has its own.
    seed
        SUMO's seed: SUMO draws the same flows as in a run of its own with this seed. By default, it is drawn.
    clock
        Conversion between ticks and seconds.
    duration_s
        Length of the run: vehicles that depart later are left out.
    begin_s
        Second of the files at which the run starts: vehicles that depart earlier are left out.
    share
        Mean number of copies of each vehicle; the total is within 1 of share × the number of drivable vehicles.
    vehicles
        Total number of vehicles, instead of a share.
    paths
        Shortest paths of the network, if already available.
    rng
        Draws SUMO's seed, if it is not given and SUMO has to draw anything, the vehicles selected by a share, and the
        types of vehicles that have a distribution of types.

    Returns
    -------
    SumoRoutes
        Trips, routes, ids and notes.

    Raises
    ------
    InputError
        If a file cannot be used, the roads carry no SUMO edges, or no vehicle is left.
    """
    listed = list(files)
    named = ", ".join(str(file) for file in listed)
    held = SumoFile(listed)
    read = held.vehicles
    if held.drawn:
        if net is None:
            raise InputError(
                [f"{held.drawn[0].where}: SUMO draws it on its network, and the roads are of another source"]
            )
        try:
            read += draw_vehicles(
                held,
                net,
                begin_s=begin_s,
                end_s=begin_s + duration_s,
                step_s=clock.step_s,
                vehicle_class=vehicle_class,
                seed=int(rng.integers(_SEEDS)) if seed is None else seed,
            )
        except (ProgramError, RejectionError) as error:
            raise type(error)(f"{named}: {fault}" for fault in error.faults) from None
    depart_s = np.array([vehicle.depart_s for vehicle in read], dtype=np.float64)
    depart_s[depart_s < 0] = begin_s
    numbers: dict[tuple[Course, str | None], int] = {}
    course = np.empty(len(read), dtype=np.int32)
    for place, vehicle in enumerate(read):
        # A given route is one for all classes.
        kind = None if vehicle.course.given or vehicle_class else held.types_of(vehicle.name)[0][0].vehicle_class
        course[place] = numbers.setdefault((vehicle.course, kind), len(numbers))
    courses, kinds = [course for course, _ in numbers], [kind for _, kind in numbers]
    driven, faults = course_routes(courses, network, classes=kinds, paths=paths)
    unused = Counter(held.unhandled)
    fits = _count_unfit(unused, depart_s, course, faults, courses, begin_s=begin_s, end_s=begin_s + duration_s)
    notes = [f"{named}: {total:,} not driven: {reason}" for reason, total in unused.items()]
    if not fits.any():
        edges = {edge for number in faults for edge in courses[number].edges}
        raise NotDrivableError([f"{named}: no vehicle of {len(read):,} can be driven on these roads", *notes], edges)
    order = np.flatnonzero(fits)[np.argsort(depart_s[fits], kind="stable")]
    copies = whole_vehicles(
        np.ones(len(order)) if vehicles is not None else np.full(len(order), share), total=vehicles, rng=rng
    )
    if not copies.any():
        raise InputError([f"{named}: a share of {share:g} of {counted(len(order), 'vehicle')} leaves none"])
    if fault := too_many(int(copies.sum()), nodes=len(network.node_names)):
        raise InputError([f"{named}: share × vehicles: {fault}"])
    chosen = np.repeat(order, copies)
    ticks = np.floor((depart_s[chosen] - begin_s) / clock.step_s)
    if ticks[-1] > np.iinfo(np.int32).max:
        raise InputError([f"{named}: departures must be before tick 2³¹, got second {depart_s[chosen[-1]]:g}"])
    tick = ticks.astype(np.int32)
    routes = Routes.gathered(driven.links, driven.offsets[course[chosen]], np.diff(driven.offsets)[course[chosen]])
    if against := np.count_nonzero(routes.has_turn(network.banned_turns)):
        given = counted(int(against), "route has", "routes have")
        notes.append(f"{named}: {given} a turn that the roads do not allow; the vehicles drive as the file states")
    links = network.links
    trips = Trips(links.from_node[routes.first], links.to_node[routes.last], tick)
    ids = [read[place].name for place in chosen]
    kept = [_without_folders(note, listed) for note in notes]
    return SumoRoutes(trips, routes, ids, kept, _classes(held, ids, vehicle_class, rng))


def _classes(held: SumoFile, ids: Sequence[str], only: str | None, rng: np.random.Generator) -> VehicleClasses:
    """Return the class and the highest speed of each vehicle, and the mean space that they take."""
    kinds: dict[VehicleType, int] = {}
    of, space_m = np.empty(len(ids), dtype=np.intp), 0.0
    by_type: dict[tuple[tuple[VehicleType, ...], tuple[float, ...]], list[int]] = {}
    for place, name in enumerate(ids):
        by_type.setdefault(held.types_of(name), []).append(place)
    for (parts, weights), places in by_type.items():
        share = np.array(weights if any(weights) else np.ones(len(weights)))
        share /= share.sum()
        numbers = np.array([kinds.setdefault(part, len(kinds)) for part in parts])
        of[places] = numbers[0] if len(parts) == 1 else numbers[rng.choice(len(parts), len(places), p=share)]
        space_m += len(places) * float(share @ [part.space_m for part in parts])
    names = sorted({kind.vehicle_class for kind in kinds}) if only is None else [only]
    index = np.array([0 if only else names.index(kind.vehicle_class) for kind in kinds], dtype=np.uint8)
    speed_mps = np.array([kind.speed_mps for kind in kinds])
    return VehicleClasses(tuple(names), index[of], speed_mps[of], space_m / len(ids))


def _count_unfit(
    unused: Counter[str],
    depart_s: FloatArray,
    course: Int32Array,
    faults: Faults,
    courses: Sequence[Course],
    *,
    begin_s: float,
    end_s: float,
) -> Mask:
    """Return which vehicles can be driven in the run, (vehicles,) bool, and count the others by reason."""
    fits = np.ones(len(course), dtype=np.bool_)
    undrivable = {
        rule: np.isin(course, [number for number, (other, _) in faults.items() if other == rule])
        for rule in (_EDGE_UNKNOWN, _NOT_CONSECUTIVE, _NO_PATH)
    }
    for rule, which in {
        f"they depart before the run starts (second {begin_s:.10g})": depart_s < begin_s,
        f"they depart after the run ends (second {np.floor(1000 * end_s) / 1000:.10g})": depart_s >= end_s,
        **undrivable,
    }.items():
        first = next(iter(course[fits & which].tolist()), None)
        if first is not None:
            example = f" (as in {courses[first].where}: {faults[first][1]})" if rule in undrivable else ""
            unused[rule + example] += int((fits & which).sum())
            fits &= ~which
    return fits


def _without_folders(note: str, files: Sequence[str | Path]) -> str:
    """Remove the folders from file names, because notes are read elsewhere."""
    for file in files:
        note = note.replace(str(file), Path(file).name)
    return note
