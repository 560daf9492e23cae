"""Random roads with movements, signals and dense demand, on which rules of all kinds meet."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import simpy
from roads_by_hand import movement, network, routes_of, window

from simulator.roads import RoadNetwork
from simulator.roads.movements import RIGHTS_OF_WAY, TURNS, movement_table, signal_table
from simulator.traffic.agents import Agents
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import HCM_GAPS, SUMO_DRIVING, Driving, Gaps
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips, VehicleClasses


@dataclass(frozen=True)
class RandomCase:
    """Roads, demand and rules of a run, of which both engines must make the same."""

    roads: RoadNetwork
    trips: Trips
    routes: Routes
    physics: LinkPhysics
    clock: Clock
    closures: list[tuple[int, float, float]]
    reactive: bool

    def started(self, engine: type[Fleet] | type[Agents]) -> tuple[Fleet | Agents, simpy.Environment]:
        """Return an engine of this case that has been started, and its environment."""
        reactive = None
        if self.reactive:
            how = {"clock": self.clock, "every_s": 20.0, "share": 0.5, "rng": np.random.default_rng(1)}
            reactive = ReactiveRouting(self.roads.links, self.trips, **how)
        rules = {"clock": self.clock, "reactive": reactive, "record_entries": 1}
        built = engine(self.roads.links, self.physics, self.trips, self.routes, **rules)
        env = simpy.Environment()
        built.start(env)
        for closure in self.closures:
            built.close_link(*closure)
        return built, env


def random_case(seed: int, *, spokes: int = 0, reactive: bool = False) -> RandomCase:
    """Draw a case.

    Parameters
    ----------
    seed
        Of all that is random.
    spokes
        Dead ends at node 0, both ways, for nodes that many links leave.
    reactive
        Whether half of the vehicles re-route. No turn is banned then, as routing knows no bans here.
    """
    rng = np.random.default_rng(seed)
    roads = _grid(rng, spokes)
    links, clock = roads.links, Clock(float(rng.choice([0.5, 1.0, 2.0])))
    following = [
        list(range(links.first_out[node], links.first_out[node + 1])) for node in np.asarray(links.to_node).tolist()
    ]
    movements, signals, open_turns = _junctions(rng, roads, following, bans=not reactive)
    if rng.random() < 0.1:
        movements, open_turns = movement_table(), following
    vehicles = int(rng.integers(50, 60 * len(links) if not spokes else 1500))
    routes = [_walk(rng, open_turns, most=int(rng.choice([2, 10, 40]))) for _ in range(min(vehicles, 1500))]
    departures = np.sort(rng.integers(0, int(120 / clock.step_s), len(routes)))
    if reactive:
        driven = set()
        for at, route in enumerate(routes):  # a route that visits no link twice, as those of shortest paths
            driven.clear()
            length = next((i for i, link in enumerate(route) if link in driven or driven.add(link)), len(route))
            routes[at] = route[:length]
    ends = [(links.from_node[route[0]], links.to_node[route[-1]]) for route in routes]
    trips = Trips(*np.array(ends, dtype=np.int32).T, departures.astype(np.int32))
    classes = None
    if rng.random() < 0.5:
        of, top_mps = rng.integers(0, 2, len(trips)), rng.choice([5.0, 12.0, np.inf], len(trips))
        classes = VehicleClasses(("bus", "car"), of.astype(np.uint8), top_mps, spacing_m=7.5)
        chosen = rng.random(len(movements)) < 0.3
        movements.loc[chosen, "classes"] = rng.choice(["bus", "bus taxi", "car"], int(chosen.sum()))
    short = dict.fromkeys(HCM_GAPS, Gaps((3.0, 2.0, 1.0), (1.0, 2.0, 3.0)))
    other = Driving(start_loss_s=0.0, green_lost_s=0.0, yellow_used_s=0.0, gaps=short, impatience_s=30.0)
    driving = [Driving(), SUMO_DRIVING, other]
    physics = LinkPhysics.build(
        links,
        clock,
        stuck_s=rng.choice([None, None, 0.0, 8.0, 45.0, 100.0]),
        movements=movements,
        signals=signals,
        driving=driving[rng.integers(len(driving))],
        classes=classes,
        start_s=float(rng.choice([0.0, 1234.5])),
    )
    closures = []
    for link in rng.integers(0, len(links), rng.integers(0, 4)).tolist():
        start_s = float(rng.integers(0, 150))
        closures.append((link, start_s, start_s + float(rng.integers(5, 120))))
    return RandomCase(roads, trips, routes_of(routes), physics, clock, closures, reactive)


def _grid(rng: np.random.Generator, spokes: int) -> RoadNetwork:
    rows, columns = rng.integers(2, 5, 2).tolist()
    nodes = {r * columns + c: (100.0 * c, 100.0 * r) for r in range(rows) for c in range(columns)}
    pairs = [(n, n + 1) for n in nodes if (n + 1) % columns] + [(n, n + columns) for n in nodes if n + columns in nodes]
    ways = [(*(pair if rng.random() < 0.5 else pair[::-1]), rng.random() < 0.6) for pair in pairs]
    for spoke in range(len(nodes), len(nodes) + spokes):
        nodes[spoke] = (-100.0 - spoke, -100.0 + spoke)
        ways.append((0, spoke, True))
    tight = rng.random() < 0.5  # short links, on which cycles of full lanes arise
    scale = float(rng.choice([10.0, 150.0, 1200.0]))

    def one() -> dict[str, Any]:
        return {
            "length_m": float(rng.uniform(5.0, 40.0) if tight else rng.uniform(8.0, scale)),
            "speed_mps": float(rng.uniform(4.0, 25.0)),
            "lanes": int(rng.choice([1, 1, 1, 2, 3, 5])),
            "capacity_vph": float(rng.uniform(300.0, 2200.0)),
        }

    edges = [(u, v, one()) for u, v, _ in ways] + [(v, u, one()) for u, v, both in ways if both]
    return network(nodes, edges)


def _junctions(
    rng: np.random.Generator, roads: RoadNetwork, following: list[list[int]], *, bans: bool
) -> tuple[pd.DataFrame, pd.DataFrame, list[list[int]]]:
    links, nodes = roads.links, int(max(roads.links.to_node.max(), roads.links.from_node.max())) + 1
    lanes, known = links.lanes.astype(int).tolist(), rng.random(nodes) < rng.choice([0.3, 0.8, 1.0])
    banned = rng.choice([0.0, 0.15]) if bans else 0.0
    rights = (*RIGHTS_OF_WAY, None)
    rows: list[dict[str, Any]] = []
    open_turns: list[list[int]] = []
    places = np.zeros(nodes, dtype=int)
    signalised = rng.random(nodes) < 0.5
    for link, turns in enumerate(following):
        node = int(links.to_node[link])
        if not known[node]:
            open_turns.append(turns)
            continue
        open_turns.append([])
        for onto in turns:
            allowed = bool(rng.random() >= banned)
            if allowed:
                open_turns[-1].append(onto)
            kind, right = str(rng.choice(TURNS)), rights[rng.integers(len(rights))]
            group = int(rng.integers(-1 if rng.random() < 0.05 else 0, 4))
            for lane in rng.permutation(lanes[link])[: rng.integers(1, lanes[link] + 1)].tolist():
                for to_lane in rng.permutation(lanes[onto])[: rng.integers(1, 3)].tolist():
                    signal = (f"s{node}", group) if signalised[node] else (None, -1)
                    values = {"turn": kind, "right_of_way": right, "allowed": allowed, "place": int(places[node])}
                    values["length_m"] = float(rng.choice([np.nan, 0.0, rng.uniform(2.0, 30.0)]))
                    values["speed_mps"] = float(rng.choice([np.nan, rng.uniform(3.0, 15.0)]))
                    values |= {"from_lane": lane, "to_lane": to_lane, "signal": signal[0], "group": signal[1]}
                    rows.append(movement(node, link, onto, **values))
                    places[node] += 1
    density = float(rng.choice([0.1, 0.4]))
    for row in rows:
        foes = np.flatnonzero(rng.random(places[row["node"]] + 1) < density)  # the last place has no movement
        row["yields_to"] = None if rng.random() < 0.2 else tuple(foes.tolist())
    windows = [
        window
        for node in np.flatnonzero(signalised)
        for window in _windows(rng, f"s{node}", cycle_s=float(rng.uniform(15.0, 70.0)))
    ]
    return movement_table(rows), signal_table(windows), open_turns


def _windows(rng: np.random.Generator, signal: str, *, cycle_s: float) -> list[dict[str, Any]]:
    offset_s, found = float(rng.uniform(-100.0, 100.0)), []
    for group in range(4):
        if rng.random() < 0.05:
            continue  # never green
        edges = np.sort(rng.uniform(0.0, cycle_s, 2 * rng.integers(1, 3)))
        if rng.random() < 0.2:
            edges[0], edges[-1] = 0.0, cycle_s
        pairs = edges.reshape(-1, 2).tolist()
        if rng.random() < 0.3:  # a protected window that follows a permissive one at once
            middle = float(rng.uniform(*pairs[0]))
            pairs = [[pairs[0][0], middle], [middle, pairs[0][1]], *pairs[1:]]
        times = {"cycle_s": cycle_s, "offset_s": offset_s, "group": group}
        found += [
            window(signal, begin, end, protected=bool(rng.random() < 0.4), **times)
            for begin, end in pairs
            if end > begin
        ]
    return found


def _walk(rng: np.random.Generator, turns: list[list[int]], *, most: int) -> list[int]:
    route = [int(rng.integers(len(turns)))]
    while len(route) < most and turns[route[-1]]:
        route.append(int(rng.choice(turns[route[-1]])))
    return route
