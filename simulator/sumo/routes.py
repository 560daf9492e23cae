"""Demand from SUMO's route files: vehicles on their given routes, trips between edges, and what SUMO itself draws."""

import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.files.messages import counted_by
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.attributes import VehicleType
from simulator.formats.sumo.courses import CourseVehicles, course_routes, trips_on_courses
from simulator.formats.sumo.route_file import Course, SumoFile, Vehicle, most_of_flow
from simulator.roads.network import RoadNetwork
from simulator.sumo.inputs import SumoInputs, refuse_connection
from simulator.sumo.process import SumoProcess
from simulator.traffic.clock import Clock
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips, VehicleClasses, too_many

_SEEDS = 2**31


def sumo_link_ids(network: RoadNetwork) -> dict[str, int]:
    """Return the link of each SUMO edge.

    Raises
    ------
    InputError
        If no edge of the graph carries ``sumo_edge``: the roads did not come from a SUMO network.
    """
    if not (link_of := network.links_named_by("sumo_edge")):
        raise InputError(["SUMO routes need roads read from SUMO's network: these links have no SUMO edges"])
    return link_of


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
        Classes, speeds and sizes of the vehicles, by their types; types of a distribution are drawn.
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
    driven, faults = course_routes(courses, network, sumo_link_ids(network), classes=kinds, paths=paths)
    trips, routes, ids, notes = trips_on_courses(
        CourseVehicles(named, [vehicle.name for vehicle in read], depart_s, course, courses),
        driven,
        faults,
        network,
        unused=Counter(held.unhandled),
        clock=clock,
        begin_s=begin_s,
        duration_s=duration_s,
        share=share,
        vehicles=vehicles,
        rng=rng,
    )
    stated = Counter(held.types_of(name)[0][0].vehicle_class for name in ids)
    if stated.keys() - {vehicle_class or "passenger"}:
        as_one = f"; all drive as roads.vehicle_class = {vehicle_class!r}" if vehicle_class else ""
        notes.append(f"{named}: vehicles by class: {counted_by(stated)}{as_one}")
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


def _without_folders(note: str, files: Sequence[str | Path]) -> str:
    """Remove the folders from file names, because notes are read elsewhere."""
    for file in files:
        note = note.replace(str(file), Path(file).name)
    return note


_POINT_LIKE = '<vType id="{0}" vClass="{0}" length="0.01" minGap="0" tau="0.01"/>'
"""Type of vehicles that are not in each other's way when they depart."""


def draw_vehicles(
    held: SumoFile, net: Path, *, begin_s: float, end_s: float, step_s: float, vehicle_class: str | None, seed: int
) -> list[Vehicle]:
    """Have SUMO draw the departures and routes of flows, and of vehicles between zones or by distributions of routes.

    SUMO runs without traffic: each vehicle is removed as soon as it departs.

    Parameters
    ----------
    held
        The files with the flows.
    net
        SUMO's network.
    begin_s, end_s
        Begin and end of the run, in seconds of the files.
    step_s
        SUMO's step: SUMO draws a flow with a probability once a step.
    vehicle_class
        SUMO's vehicle class, whose lanes the routes keep to; None for each vehicle's own, or the first of its types.
    seed
        SUMO's seed.

    Raises
    ------
    InputError
        If the run has no end, a flow has too many vehicles, or SUMO is not installed or rejects an element.
    """
    flows = [node for node in held.drawn if node.name == "flow"]
    if not math.isfinite(end_s):
        raise InputError([f"{held.drawn[0].where}: a flow without an end needs a run that ends"])
    most = 0
    for flow in flows:
        most += most_of_flow(flow.attributes, begin_s=begin_s, end_s=end_s, step_s=step_s, where=flow.where)
        if fault := too_many(most):
            raise InputError([f"{flow.where}: {fault}"])
    # Scenarios that are not trusted may have flows, so SUMO must read and write no other file.
    for element in elements_of(net):
        refuse_connection(element, net)
        if not {"file", "href"}.isdisjoint(element.attributes or ()):
            raise InputError(
                [f"{net}: line {element.line}: a network on which SUMO draws flows must name no other file"]
            )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.add.xml"
        nodes = held.drawn_by_class(vehicle_class)
        types = "".join(_POINT_LIKE.format(name) for name in sorted({node.attributes["type"] for node in nodes}))
        text = held.xml() + "".join(node.xml() for node in nodes)
        file.write_text(f"<additional>{types}{text}</additional>", encoding="utf-8")
        zones = {"junction-taz": "true"} if "Junction=" in text else {}
        inputs = SumoInputs(net, (), (file,), seed, step_s=step_s, begin_s=begin_s, mesoscopic=True, options=zones)
        process = SumoProcess.launch(inputs)
        try:
            steps = math.ceil((end_s - begin_s) / step_s) + 1
            names, depart_s, numbers, routes = process.ask("draw", steps, what="while it draws vehicles")
        finally:
            process.close()
    return [
        Vehicle(name, leaves, Course(tuple(routes[number]), given=True, where=f"vehicle {name!r}"))
        for name, leaves, number in zip(names, depart_s, numbers, strict=True)
    ]
