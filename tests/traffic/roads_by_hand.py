"""Roads small enough to compute by hand."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import simpy
from single_places import advance_and_compare

from simulator.arrays import FloatArray
from simulator.roads import RoadNetwork
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

ENGINES = (Fleet, Agents)


def routes_of(routes: list[list[int]]) -> Routes:
    """Routes from one list of link ids per vehicle."""
    offsets = np.cumsum([0, *map(len, routes)], dtype=np.int64)
    return Routes(offsets, np.array([link for route in routes for link in route], dtype=np.int32))


def chain(*links: dict[str, float]) -> RoadNetwork:
    """Nodes 0, 1, 2 … along the x axis, joined by one link each; link i leads from node i to node i + 1."""
    edges = [
        (i, i + 1, {"speed_mps": 10.0, "lanes": 1, "capacity_vph": 1800.0, **link}) for i, link in enumerate(links)
    ]
    x = np.concatenate([[0.0], np.cumsum([link["length_m"] for link in links])])
    return network({i: (float(at), 0.0) for i, at in enumerate(x)}, edges)


def network(nodes: dict[int, tuple[float, float]], edges: Sequence[tuple[int, int, dict[str, Any]]]) -> RoadNetwork:
    """Any small network, nodes by place."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs="EPSG:32618")
    graph.add_nodes_from((node, {"x": 500_000 + x, "y": 4_500_000 + y}) for node, (x, y) in nodes.items())
    graph.add_edges_from(
        (u, v, {"speed_mps": 10.0, "lanes": 1, "capacity_vph": 1800.0, **data}) for u, v, data in edges
    )
    return RoadNetwork.from_graph(graph)


def links_by_ends(roads: RoadNetwork) -> dict[tuple[int, int], int]:
    """Return the link between two nodes, without parallel ones."""
    pairs = zip(roads.links.from_node.tolist(), roads.links.to_node.tolist(), strict=True)
    return {pair: link for link, pair in enumerate(pairs)}


def run_to(engine: Fleet | Agents, tick: float) -> simpy.Environment:
    """Start an engine, run it until just after a tick, and return the environment, in which it may go on."""
    env = simpy.Environment()
    engine.start(env)
    env.run(until=tick + 0.51)
    advance_and_compare(engine)
    return env


def movement(node: int, start: int, end: int, **values: Any) -> dict[str, Any]:
    """Return a movement over a node, from link to link, straight on, and from lane 0 to lane 0 unless stated."""
    ends = {"node": node, "from_link": start, "to_link": end, "from_lane": 0, "to_lane": 0}
    return ends | {"turn": "straight", "yields_to": ()} | values


def window(signal: str, from_s: float, to_s: float, *, cycle_s: float, **values: Any) -> dict[str, Any]:
    """Return a window of green: of group 0, protected, and without offset unless stated."""
    times = {"from_s": from_s, "to_s": to_s, "cycle_s": cycle_s, "offset_s": 0.0}
    return {"signal": signal, "group": 0, "protected": True, "actuated": False} | times | values


def drive(
    engine: type[Fleet] | type[Agents],
    roads: RoadNetwork,
    trips: Sequence[tuple[int, Sequence[int]]],
    *,
    until: int,
    stuck_s: float | None = None,
    step_s: float = 1.0,
    **physics: Any,
) -> Fleet | Agents:
    """Drive trips of (departure tick, node path) to tick `until`; parallel links are not supported.

    `physics` are further parameters of `LinkPhysics.build`.
    """
    link = links_by_ends(roads)
    paths = [[link[pair] for pair in pairwise(path)] for _, path in trips]
    clock = Clock(step_s)
    built = engine(
        roads.links,
        LinkPhysics.build(roads.links, clock, stuck_s=stuck_s, **physics),
        Trips(
            np.array([path[0] for _, path in trips], dtype=np.int32),
            np.array([path[-1] for _, path in trips], dtype=np.int32),
            np.array([tick for tick, _ in trips], dtype=np.int32),
        ),
        routes_of(paths),
        clock=clock,
        record_entries=True,
    )
    run_to(built, until)
    return built


def entry_times_s(engine: Fleet | Agents, vehicle: int, *, step_s: float = 1.0) -> list[float]:
    """Return when a vehicle entered the links of its route, seconds."""
    entries = engine.entries
    return (entries[entries[:, 0] == vehicle, 3] / ONE_TICK * step_s).tolist()


def exit_times_s(engine: Fleet | Agents, link: int) -> FloatArray:
    """Return when vehicles left a link, (exits,) seconds, ascending; movements must take no time."""
    log = engine.log_by_vehicle()
    left = np.flatnonzero((log[:-1, 0] == log[1:, 0]) & (log[:-1, 1] == link))
    return np.sort(log[left + 1, 3]) / ONE_TICK
