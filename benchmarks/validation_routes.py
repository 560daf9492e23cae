"""Drivers who choose their routes: published equilibria, and Sioux Falls as UXsim has it.

UXsim's links, demand and result for Sioux Falls (34,690 trips, 1,744 s a trip, 373 s of delay) come from its examples:
the files ``siouxfalls_nodes.csv``, ``siouxfalls_links.csv`` and ``siouxfalls_demand.csv`` of its folder ``dat``.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import simpy
from equilibrium import PublishedFlows, read_flows

import scenarios
from simulator import run as run_scenario
from simulator.experiment.components import RunComponents
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.paths import ShortestPaths
from simulator.traffic.physics import Driving
from simulator.traffic.reactive import ReactiveRouting
from simulator.traffic.trips import Trips

END_S, REACTION_S, PLATOON = 7200.0, 1.0, 5
PUBLISHED = ("UXsim, published", 34_690, 1744.0, 373.0, "")
Row = tuple[str, int, float, float, str]


def by_uxsim(folder: Path) -> Row:
    """Run UXsim's C++ engine on its own example, with its own settings."""
    uxsim = importlib.import_module("uxsim")
    world = uxsim.World(
        deltan=PLATOON,
        tmax=END_S,
        print_mode=0,
        save_mode=0,
        show_mode=0,
        random_seed=0,
        reaction_time=REACTION_S,
        cpp=True,
    )
    world.generate_Nodes_from_csv(str(folder / "siouxfalls_nodes.csv"))
    world.generate_Links_from_csv(str(folder / "siouxfalls_links.csv"))
    world.generate_demand_from_csv(str(folder / "siouxfalls_demand.csv"))
    started = time.perf_counter()
    world.exec_simulation()
    took_s = time.perf_counter() - started
    stats = world.analyzer
    stats.basic_analysis()
    return (
        f"UXsim {importlib.metadata.version('uxsim')}, C++",
        int(stats.trip_completed),
        float(stats.average_travel_time),
        float(stats.average_delay),
        f"{took_s:.2f} s",
    )


def by_fleet(folder: Path, *, every_s: float, share: float) -> Row:
    """Drive the same trips by the fleet engine; a share of the vehicles re-routes at regular intervals."""
    links = pd.read_csv(folder / "siouxfalls_links.csv")
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs="EPSG:32614")
    for node in pd.read_csv(folder / "siouxfalls_nodes.csv").itertuples(index=False):
        graph.add_node(int(node.name), x=5e5 + 8e4 * (node.x + 96.7), y=4.8e6 + 1.1e5 * (node.y - 43.5))
    for row in links.itertuples(index=False):
        headway_s = REACTION_S + 1 / row.kappa / row.u
        values = {
            "length_m": float(row.length),
            "speed_mps": float(row.u),
            "capacity_vph": 3600 / headway_s,
            "lanes": 1,
        }
        graph.add_edge(int(row.start), int(row.end), **values)
    roads = RoadNetwork.from_graph(graph)
    origins, ends, departures = [], [], []
    place = {name: i for i, name in enumerate(roads.node_names)}
    for row in pd.read_csv(folder / "siouxfalls_demand.csv").itertuples(index=False):
        # UXsim's platoons depart when the flow has added up to one; here their vehicles leave one by one until then.
        number = PLATOON * int((row.end_t - row.start_t) * row.q / PLATOON)
        times = row.start_t + (np.arange(number) + 1) / row.q if number else np.zeros(0)
        departures += times[times < END_S].tolist()
        origins += [place[int(row.orig)]] * int((times < END_S).sum())
        ends += [place[int(row.dest)]] * int((times < END_S).sum())
    clock = Clock()
    trips = Trips.from_unsorted(np.array(origins), np.array(ends), np.floor(departures).astype(np.int32))
    routes = ShortestPaths(roads.links).routes(trips.origin, trips.destination)
    driving = Driving(spacing_m=float(1 / links["kappa"].iloc[0]), reaction_s=REACTION_S)
    physics = LinkPhysics.build(roads.links, clock, driving=driving)
    reactive = ReactiveRouting(
        roads.links, trips, clock=clock, every_s=every_s, share=share, rng=np.random.default_rng(1)
    )
    engine = Fleet(roads.links, physics, trips, routes, clock=clock, reactive=reactive)
    engine.compile()
    env = simpy.Environment()
    engine.start(env)
    started = time.perf_counter()
    env.run(until=END_S + 0.01)
    engine.advance()
    took_s = time.perf_counter() - started
    totals = engine.totals()
    offsets, free = routes.offsets, roads.links.free_flow_s[routes.links]
    fastest_s = float(np.add.reduceat(free, offsets[:-1]).mean())
    name = f"crowdveil, {share:.0%} of drivers re-route every {every_s:.0f} s"
    return name, totals.arrived, totals.mean_trip_s, totals.mean_trip_s - fastest_s, f"{took_s:.2f} s"


def equilibria(data: Path) -> list[str]:
    """Return the table of link volumes beside published user equilibria; empty where their files are not there."""
    if not (data / "tntp").is_dir():
        return []
    lines = [
        "| scenario | correlation of volumes | RMSE, % of mean | sum, % of published | trips |",
        "|---|---|---|---|---|",
    ]
    for name in ("sioux-falls", "anaheim"):
        print(f"equilibrium of {name}", file=sys.stderr)
        scenario = scenarios.load(name, overrides={"report.link_interval_s": END_S})
        run = run_scenario(scenario)
        roads = RunComponents.build(scenario).city.roads
        file = next((data / "tntp").glob(f"{name.title().replace('-', '')}/*_flow.tntp"))
        published = PublishedFlows.matched(read_flows(file), roads, file=file.name).volume
        driven = run.links.groupby("link")["entered"].sum().reindex(range(len(roads.links)), fill_value=0)
        volume = driven.to_numpy() / scenario.traffic.share
        rmse = np.sqrt(np.mean((volume - published) ** 2)) / published.mean()
        correlation = np.corrcoef(volume, published)[0, 1]
        trips = len(run.trips)
        lines.append(
            f"| `{name}` | {correlation:.3f} | {rmse:.1%} | {volume.sum() / published.sum():.1%} | {trips:,} |"
        )
    return lines


def sioux_falls(folder: Path) -> list[str]:
    """Return the table; empty where UXsim's files are not there."""
    if not (folder / "siouxfalls_links.csv").is_file():
        print(f"{folder}: UXsim's files of Sioux Falls are not there", file=sys.stderr)
        return []
    print("Sioux Falls", file=sys.stderr)
    rows: list[Row] = [PUBLISHED]
    if importlib.util.find_spec("uxsim"):
        rows.append(by_uxsim(folder))
    rows += [by_fleet(folder, every_s=every_s, share=share) for every_s, share in ((600.0, 0.5), (120.0, 0.2))]
    table = ["| simulator | trips completed | mean trip | delay | time to run |", "|---|---|---|---|---|"]
    return table + [
        f"| {name} | {trips:,} | {mean:,.0f} s | {delay:,.0f} s | {took} |" for name, trips, mean, delay, took in rows
    ]
