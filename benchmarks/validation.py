"""Makes docs/validation.md: the traffic engines beside kinematic wave theory, and beside SUMO on real networks.

SUMO is that of pip install 'crowdveil[sumo]'; its scenarios are looked for in the folder sumo under CROWDVEIL_DATA.
"""

import argparse
import gzip
import math
import os
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import simpy
import sumo

import scenarios
from simulator.experiment.build.city import build_city
from simulator.experiment.build.engine import build_engine
from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.streams import Streams
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.lanes import LinkPhysics
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

PAGE = Path(__file__).parents[1] / "docs" / "validation.md"
CELL_M, WARM_UP_S, END_S, EVERY_S = 200.0, 600, 3600, 60
JITTERED_RUNS = 5


class City(NamedTuple):
    """One of SUMO's scenarios: its files, the second at which it begins, and the mean space of a standing car."""

    net: str
    routes: str
    additional: tuple[str, ...]
    begin_s: int
    spacing_m: float


CITIES = {
    "cologne8": City("cologne8.net.xml.gz", "cologne8.rou.xml.gz", (), 25200, 5.8),
    "acosta": City(
        "acosta_buslanes.net.xml.gz", "acosta.rou.xml.gz", ("acosta_vtypes.add.xml", "acosta_tls.add.xml"), 0, 6.3
    ),
    "pasubio": City(
        "pasubio_buslanes.net.xml.gz", "pasubio.rou.xml.gz", ("pasubio_vtypes.add.xml", "pasubio_tls.add.xml"), 0, 6.3
    ),
}


def drive(links: Sequence[dict[str, Any]], trips: Sequence[tuple[float, Sequence[int]]], until_s: int) -> Fleet:
    """Drive trips, each a departure and nodes, over links with the keys of a road graph and `ends`."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(crs="EPSG:32618")
    for node in sorted({node for link in links for node in link["ends"]}):
        graph.add_node(node, x=500_000.0 + 10 * node, y=4_500_000.0 + 7 * node * node)
    for link in links:
        values = {"speed_mps": 15.0, "lanes": 1, "capacity_vph": 1800.0} | link
        graph.add_edge(*values.pop("ends"), **values)
    roads = RoadNetwork.from_graph(graph)
    number = {ends: i for i, ends in enumerate(zip(roads.links.from_node, roads.links.to_node, strict=True))}
    ordered = sorted(trips, key=lambda trip: trip[0])
    paths = [[number[ends] for ends in pairwise(nodes)] for _, nodes in ordered]
    routes = Routes(np.cumsum([0, *map(len, paths)]), np.array([link for path in paths for link in path], np.int32))
    ends = np.array([(nodes[0], nodes[-1]) for _, nodes in ordered], dtype=np.int32)
    ticks = np.array([int(depart_s) for depart_s, _ in ordered], dtype=np.int32)
    physics = LinkPhysics.build(roads.links, Clock())
    engine = Fleet(roads.links, physics, Trips(ends[:, 0], ends[:, 1], ticks), routes, clock=Clock(), record_entries=1)
    return run(engine, until_s)


def run(engine: Fleet, until_s: float) -> Fleet:
    """Run an engine to a moment."""
    env = simpy.Environment()
    engine.start(env)
    env.run(until=until_s + 0.01)
    engine.advance()
    return engine


def exits_s(engine: Fleet, link: int) -> np.ndarray:
    """Return when vehicles left a link, seconds, ascending."""
    log = engine.log_by_vehicle()
    left = (log[:-1, 1] == link) & (log[:-1, 0] == log[1:, 0])
    return np.sort(log[1:, 3][left]) / ONE_TICK


def on_links(engine: Fleet) -> list[int]:
    """Return the number of vehicles on each link."""
    places = engine.places()
    return np.bincount(places.link[places.state == State.ON_ROAD], minlength=len(engine._physics)).tolist()  # noqa: SLF001


def theory() -> list[tuple[str, str, str]]:
    """Return cases with what kinematic wave theory expects and what the engine does."""
    sixty = drive(
        [{"ends": (i, i + 1), "length_m": 50.0, "speed_mps": 13.89} for i in range(60)], [(0, range(61))], 300
    )
    rows = [("60 links of 50 m at 13.89 m/s, seconds", "215.98", f"{sixty.totals().mean_trip_s:.2f}")]
    drop = [{"ends": (0, 1), "length_m": 1500.0, "lanes": 2}, {"ends": (1, 2), "length_m": 1500.0}]
    for until_s, expected in ((300, "125, 50"), (600, "200, 50")):
        engine = drive(drop, [(i / 0.75, (0, 1, 2)) for i in range(450)], until_s)
        found = ", ".join(map(str, on_links(engine)))
        rows.append((f"2 lanes into 1 at 2,700 vehicles/h: vehicles on both links after {until_s} s", expected, found))
    for first, second, lanes, expected in (
        (1700, 1700, 1, "900, 900"),
        (1200, 600, 1, "1,200, 600"),
        (3400, 1700, 2, "1,200, 600"),
    ):
        links = [
            {"ends": (0, 2), "length_m": 3000.0, "lanes": lanes},
            {"ends": (1, 2), "length_m": 3000.0},
            {"ends": (2, 3), "length_m": 600.0},
        ]
        trips = [(i * 3600 / first, (0, 2, 3)) for i in range(first // 3)]
        trips += [(i * 3600 / second + 0.3, (1, 2, 3)) for i in range(second // 3)]
        engine = drive(links, trips, 1250)
        flows = [int(np.count_nonzero((exits_s(engine, i) >= 600) & (exits_s(engine, i) < 1200)) * 6) for i in (0, 1)]
        named = f"{lanes} + 1 lanes into 1, {first:,} and {second:,} vehicles/h arrive: vehicles/h"
        rows.append((named, expected, ", ".join(f"{flow:,}" for flow in flows)))
    for each in (4, 8, 16):
        around = [{"ends": (i, (i + 1) % 12), "length_m": 150.0} for i in range(12)]
        trips = [(j * 2.0, [(i + step) % 12 for step in range(480)]) for i in range(12) for j in range(each)]
        engine = drive(around, trips, 1850)
        flow = np.mean([np.count_nonzero((exits_s(engine, i) >= 600) & (exits_s(engine, i) < 1800)) for i in range(12)])
        density = 12 * each / 1800
        expected_vph = 3600 * min(15 * density, 5 * (1 / 7.5 - density))
        rows.append((f"ring, {1000 * density:.0f} vehicles/km: vehicles/h", f"{expected_vph:.0f}", f"{3 * flow:.0f}"))
    return rows


def simulate(folder: Path, city: City, out: Path, **options: str) -> tuple[pd.DataFrame, float, float]:
    """Run SUMO; return vehicles at whole minutes (t, x, y, speed), the mean trip, and the seconds it took."""
    settings = {
        "net-file": folder / city.net,
        "route-files": folder / city.routes,
        "additional-files": ",".join(str(folder / file) for file in city.additional),
        "begin": city.begin_s,
        "end": city.begin_s + END_S,
        "fcd-output": f"{out}.fcd.csv",
        "fcd-output.attributes": "x,y,speed",
        "device.fcd.period": EVERY_S,
        "tripinfo-output": f"{out}.trips.xml",
        "vehroute-output": f"{out}.routes.xml",
        "vehroute-output.intended-depart": "true",
        "vehroute-output.write-unfinished": "true",
        "no-step-log": "true",
        "no-warnings": "true",
    } | options
    started = time.perf_counter()
    program = Path(sumo.SUMO_HOME) / "bin" / "sumo"
    given = [f"--{name}={value}" for name, value in settings.items() if value != ""]
    subprocess.run([program, *given], check=True, capture_output=True)
    took_s = time.perf_counter() - started
    with gzip.open(folder / city.net, "rt") as lines:
        text = next(line for line in lines if "netOffset" in line)
    offset = [float(part) for part in text.split('netOffset="')[1].split('"')[0].split(",")]
    seen = pd.read_csv(f"{out}.fcd.csv", sep=";").dropna(subset=["vehicle_id"])
    t = (seen["timestep_time"] - city.begin_s).round().astype(int)
    x, y = seen["vehicle_x"] - offset[0], seen["vehicle_y"] - offset[1]
    vehicles = pd.DataFrame({"t": t, "x": x, "y": y, "speed": seen["vehicle_speed"]})[t % EVERY_S == 0]
    done = ET.parse(f"{out}.trips.xml").getroot().findall("tripinfo")  # noqa: S314 - SUMO made it
    times = [float(trip.get("duration", 0)) + float(trip.get("departDelay", 0)) for trip in done]
    return vehicles, float(np.mean(times)), took_s


def build(folder: Path, city: City, out: Path) -> tuple[Any, Fleet]:
    """Build the fleet engine for the routes that SUMO's vehicles drove; return the city too."""
    routes = ["<routes>"]
    vehicles = ET.parse(f"{out}.routes.xml").getroot().findall("vehicle")  # noqa: S314 - SUMO made it
    for vehicle in sorted(vehicles, key=lambda one: float(one.get("depart", 0))):
        route = vehicle.findall("route") + vehicle.findall("routeDistribution/route")
        number, depart = vehicle.get("id"), vehicle.get("depart")
        routes.append(f'<vehicle id="{number}" depart="{depart}"><route edges="{route[-1].get("edges")}"/></vehicle>')
    Path(f"{out}.rou.xml").write_text("\n".join([*routes, "</routes>"]))
    programs = [file for file in city.additional if "tls" in file]
    additional = {"additional": str(folder / programs[0])} if programs else {}
    scenario = scenarios.Scenario.model_validate(
        {
            "scenario": {"name": folder.name, "seed": 1, "duration_s": END_S},
            "roads": {"source": "sumo", "path": str(folder / city.net)} | additional,
            "cells": {"kind": "square", "size_m": CELL_M},
            "traffic": {
                "demand": "trips",
                "trips": f"{out}.rou.xml",
                "begin_s": city.begin_s,
                "undrivable": "leave_out",
                "spacing_m": city.spacing_m,
            },
            "campaigns": [{"name": "all", "start_s": 700, "queries": 1, "round_gap_s": 1, "deadline_s": 1}],
            "mechanisms": [{"name": "exact", "kind": "no_privacy"}],
        }
    )
    area = build_city(scenario)
    return area, build_engine(scenario, area, streams=Streams(1), stopwatch=Stopwatch(), end_s=END_S)


def jittered(engine: Fleet, seed: int) -> Fleet:
    """Return the engine anew, with departures up to a second earlier or later; as they are for seed 0."""
    trips, routes = engine.trips, engine.routes
    if seed:
        moved = trips.departure_tick + np.random.default_rng(seed).integers(-1, 2, len(trips))
        ticks = np.maximum(moved, 0).astype(np.int32)
        order = np.argsort(ticks, kind="stable")
        trips = Trips(trips.origin[order], trips.destination[order], ticks[order])
        routes = Routes.gathered(routes.links, routes.offsets[:-1][order], np.diff(routes.offsets)[order])
    return Fleet(engine._road_links, engine._physics, trips, routes, clock=Clock())  # noqa: SLF001


def vehicles_of(engine: Fleet, roads: RoadNetwork) -> tuple[pd.DataFrame, float]:
    """Run the engine; return its vehicles at whole minutes, and the seconds that it took without looking at them."""
    env = simpy.Environment()
    engine.start(env)
    looks, took_s = [], 0.0
    for t in range(0, END_S, EVERY_S):
        started = time.perf_counter()
        env.run(until=t + 0.01)
        engine.advance()
        took_s += time.perf_counter() - started
        places = engine.places()
        driving = places.state == State.ON_ROAD
        x, y = places.xy_on(roads)[driving].T
        looks.append(pd.DataFrame({"t": t, "x": x, "y": y, "speed": engine.speeds()[driving]}))
    return pd.concat(looks), took_s


def scores(reference: pd.DataFrame, other: pd.DataFrame) -> tuple[float, float, float]:
    """Return the ratio of vehicles on the road, and the correlations of occupancy by cell and minute and of speeds."""
    tables = []
    for seen in (reference, other):
        kept = seen[(seen["t"] >= WARM_UP_S) & (seen["t"] < END_S)]
        tables.append(kept.assign(cell=list(zip(kept["x"] // CELL_M, kept["y"] // CELL_M, strict=True))))
    counts = [table.groupby(["t", "cell"]).size().unstack(fill_value=0) for table in tables]
    cells = counts[0].columns.union(counts[1].columns)
    a, b = (count.reindex(columns=cells, fill_value=0).to_numpy(dtype=float).ravel() for count in counts)
    speeds = [table.groupby("cell")["speed"].agg(["mean", "size"]) for table in tables]
    both = speeds[0].join(speeds[1], rsuffix="_other", how="inner")
    both = both[(both["size"] >= 50) & (both["size_other"] >= 50)]
    return b.sum() / a.sum(), np.corrcoef(a, b)[0, 1], np.corrcoef(both["mean"], both["mean_other"])[0, 1]


def beside_sumo(data: Path) -> list[str]:
    """Return the rows of the table of SUMO's networks whose files are there."""
    rows = []
    for name, city in CITIES.items():
        folder = data / "sumo" / name
        if not folder.is_dir():
            print(f"{folder} is not there")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch)
            micro, trip_s, micro_took_s = simulate(folder, city, out / "1", seed="1")
            again, again_s, _ = simulate(folder, city, out / "2", seed="2")
            meso, meso_s, _ = simulate(folder, city, out / "meso", seed="1", mesosim="true")
            area, engine = build(folder, city, out / "1")
        runs = []
        for seed in range(JITTERED_RUNS):
            fleet = jittered(engine, seed)
            seen, took_s = vehicles_of(fleet, area.roads)
            runs.append((*scores(micro, seen), fleet.totals().mean_trip_s / trip_s, took_s))
        for label, (road, occupancy, speed), trip in (
            ("SUMO, another seed", scores(micro, again), again_s / trip_s),
            ("SUMO, mesoscopic", scores(micro, meso), meso_s / trip_s),
        ):
            rows.append(f"| {name} | {label} | {occupancy:.3f} | {speed:.2f} | {road:.2f} | {trip:.2f} | |")
        means = np.mean(runs, axis=0)
        low, high = min(one[1] for one in runs), max(one[1] for one in runs)
        faster = micro_took_s / np.median([one[4] for one in runs[1:]])
        rows.append(
            f"| {name} | crowdveil | **{means[1]:.3f}** ({low:.3f} … {high:.3f}) | {means[2]:.2f} | {means[0]:.2f} | "
            f"{means[3]:.2f} | {math.floor(faster):,} × |"
        )
    return rows


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = ["| case | theory | engine |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in theory())]
    head = "| network | vehicles of | r of occupancy | r of speed | on the road | mean trip | faster than SUMO |"
    table = [head, "|---|---|---|---|---|---|---|", *beside_sumo(Path(os.environ.get("CROWDVEIL_DATA", "")))]
    text = PAGE.read_text(encoding="utf-8")
    for name, part in (("theory", lines), ("sumo", table)):
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = "\n".join([before + begin, "", *part, "", end + rest.split(end)[1]])
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
