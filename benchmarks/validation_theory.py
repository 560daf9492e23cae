"""Cases of kinematic wave theory, driven by the fleet engine, by UXsim and by SUMO's microscopic model.

Every simulator gets the same links, routes and departures: 7.5 m a standing vehicle, and a headway of 2 s a lane at the
speed of the link. UXsim (pip install uxsim) and SUMO are left out where they are not installed.
"""

import importlib
import importlib.util
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import simpy

from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.queue_engine import ARRIVED_AT
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

SPACING_M, HEADWAY_S, SPEED_MPS = 7.5, 2.0, 15.0


class Link(NamedTuple):
    """A link between two nodes."""

    start: int
    end: int
    length_m: float
    lanes: int = 1
    speed_mps: float = SPEED_MPS
    capacity_vph: float = 1800.0


Trip = tuple[float, Sequence[int]]
"""Departure in seconds, and nodes."""
Drives = list[list[tuple[int, float, float]]]
"""For each trip, the number of each link that it entered, when, and when it left it (infinite if it has not)."""


class Case(NamedTuple):
    """A case: what is driven until when, what is measured, and what theory expects."""

    name: str
    links: Sequence[Link]
    trips: Sequence[Trip]
    until_s: float
    measure: Callable[[Drives], str]
    expected: str
    beside: bool = True
    """Whether UXsim and SUMO can drive it."""


def on_links(drives: Drives, moment_s: float, links: int) -> str:
    """Return the number of vehicles on each of the first links."""
    counts = [sum(at == link and a <= moment_s < b for one in drives for at, a, b in one) for link in range(links)]
    return ", ".join(map(str, counts))


def flows_vph(drives: Drives, links: Sequence[int], from_s: float, to_s: float) -> list[float]:
    """Return the vehicles an hour that leave each link in an interval."""
    left = [[b for one in drives for at, _, b in one if at == link and from_s <= b < to_s] for link in links]
    return [len(times) * 3600 / (to_s - from_s) for times in left]


def cases() -> list[Case]:
    """Return the cases."""

    def flows(links: Sequence[int], from_s: float, to_s: float) -> Callable[[Drives], str]:
        return lambda drives: ", ".join(f"{flow:,.0f}" for flow in flows_vph(drives, links, from_s, to_s))

    sixty = [Link(i, i + 1, 50.0, speed_mps=13.89, capacity_vph=1800.0) for i in range(60)]
    found = [
        Case(
            "60 links of 50 m at 13.89 m/s: seconds",
            sixty,
            [(0.0, range(61))],
            300.0,
            lambda drives: f"{drives[0][-1][2] - drives[0][0][1]:.2f}",
            "215.98",
        )
    ]
    drop = [Link(0, 1, 1500.0, 2), Link(1, 2, 1500.0)]
    many = [(i / 0.75, (0, 1, 2)) for i in range(450)]
    name = "2 lanes into 1 at 2,700 vehicles/h: vehicles on both links after"
    found += [
        Case(f"{name} {until_s:.0f} s", drop, many, until_s, lambda drives, t=until_s: on_links(drives, t, 2), expected)  # type: ignore[misc]
        for until_s, expected in ((300.0, "125, 50"), (600.0, "200, 50"))
    ]
    for lanes, onto, demands, expected in (
        ((1, 1), 1, (1200, 600), "1,200, 600"),
        # From here on each approach is fed 1.25 times its capacity, so that the merge decides the shares.
        ((1, 1), 1, (2250, 2250), "900, 900"),
        ((2, 1), 1, (4500, 2250), "1,200, 600"),
        ((2, 1), 2, (4500, 2250), "2,400, 1,200"),
        ((2, 2), 2, (4500, 4500), "1,800, 1,800"),
        ((3, 1), 3, (6750, 2250), "4,050, 1,350"),
    ):
        links = [*(Link(i, 2, 3000.0, wide) for i, wide in enumerate(lanes)), Link(2, 3, 600.0, onto)]
        trips: list[Trip] = [
            (i * 3600 / demand + 0.3 * start, (start, 2, 3))
            for start, demand in enumerate(demands)
            for i in range(demand // 3)
        ]
        arrive = f"{demands[0]:,} and {demands[1]:,} vehicles/h arrive"
        name = f"{lanes[0]} + {lanes[1]} lanes into {onto}, {arrive}: vehicles/h"
        found.append(Case(name, links, trips, 1250.0, flows((0, 1), 600.0, 1200.0), expected))
    around = [Link(i, (i + 1) % 12, 150.0) for i in range(12)]
    for each in (4, 8, 16):
        trips = [(j * 2.0, [(i + step) % 12 for step in range(480)]) for i in range(12) for j in range(each)]
        density = 12 * each / 1800
        flow = 3600 * min(15 * density, 5 * (1 / 7.5 - density))
        found.append(
            Case(
                f"ring, {1000 * density:.0f} vehicles/km: vehicles/h",
                around,
                trips,
                1850.0,
                lambda drives: f"{np.mean(flows_vph(drives, range(12), 600.0, 1800.0)):,.0f}",
                f"{flow:,.0f}",
                beside=False,  # SUMO inserts too few vehicles, and UXsim's routes repeat no link
            )
        )
    return found


def by_fleet(case: Case) -> Drives:
    """Drive a case by the fleet engine."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs="EPSG:32618")
    for node in sorted({node for link in case.links for node in link[:2]}):
        graph.add_node(node, x=500_000.0 + 10 * node, y=4_500_000.0 + 7 * node * node)
    for link in case.links:
        values = link._asdict()
        graph.add_edge(values.pop("start"), values.pop("end"), **values)
    roads = RoadNetwork.from_graph(graph)
    number = {ends: i for i, ends in enumerate(zip(roads.links.from_node, roads.links.to_node, strict=True))}
    order = sorted(range(len(case.trips)), key=lambda i: case.trips[i][0])
    paths = [[number[ends] for ends in pairwise(case.trips[i][1])] for i in order]
    routes = Routes(np.cumsum([0, *map(len, paths)]), np.array([link for path in paths for link in path], np.int32))
    ends = np.array([(case.trips[i][1][0], case.trips[i][1][-1]) for i in order], dtype=np.int32)
    ticks = np.array([int(case.trips[i][0]) for i in order], dtype=np.int32)
    physics = LinkPhysics.build(roads.links, Clock())
    engine = Fleet(roads.links, physics, Trips(ends[:, 0], ends[:, 1], ticks), routes, clock=Clock(), record_entries=1)
    env = simpy.Environment()
    engine.start(env)
    env.run(until=case.until_s + 0.01)
    engine.advance()
    place = {(link.start, link.end): i for i, link in enumerate(case.links)}
    of_link = {number[ends]: at for ends, at in place.items()}
    drives: Drives = [[] for _ in case.trips]
    log = engine.log_by_vehicle()
    for row, following in zip(log.tolist(), [*log[1:].tolist(), [-1, 0, 0, 0]], strict=True):
        if row[1] != ARRIVED_AT:
            left_s = following[3] / ONE_TICK if following[0] == row[0] else np.inf
            drives[order[row[0]]].append((of_link[row[1]], row[3] / ONE_TICK, left_s))
    return drives


def by_uxsim(case: Case) -> Drives:
    """Drive a case by UXsim, vehicle by vehicle."""
    uxsim = importlib.import_module("uxsim")
    # The reaction time gives a headway of 2 s: 1.5 s + 7.5 m / 15 m/s.
    reaction_s = HEADWAY_S - SPACING_M / case.links[0].speed_mps
    world = uxsim.World(
        deltan=1,
        reaction_time=reaction_s,
        tmax=case.until_s + reaction_s,
        print_mode=0,
        save_mode=0,
        show_mode=0,
        random_seed=1,
        vehicle_logging_timestep_interval=1,
    )
    for node in sorted({node for link in case.links for node in link[:2]}):
        world.addNode(str(node), node, node * node)
    for i, link in enumerate(case.links):
        world.addLink(
            str(i),
            str(link.start),
            str(link.end),
            link.length_m,
            free_flow_speed=link.speed_mps,
            jam_density_per_lane=1 / SPACING_M,
            number_of_lanes=link.lanes,
            merge_priority=link.lanes,
        )
    place = {(link.start, link.end): str(i) for i, link in enumerate(case.links)}
    vehicles = []
    for number, (depart_s, nodes) in enumerate(case.trips):
        route = [place[ends] for ends in pairwise(nodes)]
        vehicle = world.addVehicle(str(nodes[0]), str(nodes[-1]), depart_s, name=str(number))
        vehicle.enforce_route(route)
        vehicles.append(vehicle)
    world.exec_simulation()
    drives: Drives = []
    for vehicle in vehicles:
        driven: list[tuple[int, float, float]] = []
        for entry_s, link in vehicle.log_t_link:
            if driven:
                driven[-1] = (*driven[-1][:2], float(entry_s))
            if hasattr(link, "length"):
                driven.append((int(link.name), float(entry_s), np.inf))
        drives.append(driven)
    return drives


def by_sumo(case: Case) -> Drives:
    """Drive a case by SUMO's microscopic model: cars that do not dawdle, and junctions at which lanes merge in turn."""
    sumo = importlib.import_module("sumo")
    programs = Path(sumo.SUMO_HOME) / "bin"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        nodes = sorted({node for link in case.links for node in link[:2]})
        # Links are straight, so that the nodes of a merge lie on a line.
        at = {node: (sum(link.length_m for link in case.links[: max(0, node)]), 40.0 * (node == 1)) for node in nodes}
        files = {
            "nodes.nod.xml": "<nodes>"
            + "".join(f'<node id="{n}" x="{at[n][0]}" y="{at[n][1]}" type="zipper"/>' for n in nodes)
            + "</nodes>",
            "edges.edg.xml": "<edges>"
            + "".join(
                f'<edge id="e{i}" from="{link.start}" to="{link.end}" numLanes="{link.lanes}" speed="{link.speed_mps}" '
                f'length="{link.length_m}"/>'
                for i, link in enumerate(case.links)
            )
            + "</edges>",
        }
        place = {(link.start, link.end): f"e{i}" for i, link in enumerate(case.links)}
        reaction_s = HEADWAY_S - SPACING_M / case.links[0].speed_mps
        order = sorted(range(len(case.trips)), key=lambda i: case.trips[i][0])
        files["routes.rou.xml"] = (
            f'<routes><vType id="car" sigma="0" speedDev="0" tau="{reaction_s}" length="5" minGap="2.5"/>'
            + "".join(
                f'<vehicle id="{i}" type="car" depart="{case.trips[i][0]:.2f}" departSpeed="max" departLane="best">'
                f'<route edges="{" ".join(place[ends] for ends in pairwise(case.trips[i][1]))}"/></vehicle>'
                for i in order
            )
            + "</routes>"
        )
        for name, text in files.items():
            (folder / name).write_text(text)
        net, out = folder / "net.xml", folder / "out.xml"
        given = ["-n", folder / "nodes.nod.xml", "-e", folder / "edges.edg.xml", "-o", net, "--no-internal-links"]
        run(programs / "netconvert", *given)
        given = ["-n", net, "-r", folder / "routes.rou.xml", "--end", case.until_s, "--step-length", 0.5]
        written = ["--vehroute-output", out, "--vehroute-output.exit-times", "--vehroute-output.write-unfinished"]
        run(programs / "sumo", *given, *written, "--no-warnings", "--no-step-log")
        drives: Drives = [[] for _ in case.trips]
        for vehicle in ET.parse(out).getroot().findall("vehicle"):  # noqa: S314 - SUMO made it
            (route,) = vehicle.findall("route")
            entry_s = float(vehicle.get("depart", 0))
            for edge, left in zip(route.get("edges", "").split(), route.get("exitTimes", "").split(), strict=True):
                left_s = float(left) if float(left) >= 0 else np.inf
                drives[int(vehicle.get("id", 0))].append((int(edge[1:]), entry_s, left_s))
                if left_s == np.inf:
                    break
                entry_s = left_s
    return drives


def run(program: Path, *given: Any) -> None:
    """Run a program of SUMO's."""
    subprocess.run([str(program), *map(str, given)], check=True, capture_output=True)


def theory() -> list[str]:
    """Return the rows of the page's table: case, theory, and what each simulator does."""
    others = [drive for name, drive in (("uxsim", by_uxsim), ("sumo", by_sumo)) if importlib.util.find_spec(name)]
    names = [{by_uxsim: "UXsim", by_sumo: "SUMO"}[drive] for drive in others]
    rows = [f"| {' | '.join(['case', 'theory', 'crowdveil', *names])} |", f"|{'---|' * (3 + len(names))}"]
    for case in cases():
        print(case.name, file=sys.stderr)
        beside = [case.measure(drive(case)) if case.beside else "" for drive in others]
        rows.append(f"| {' | '.join([case.name, case.expected, case.measure(by_fleet(case)), *beside])} |")
    return rows
