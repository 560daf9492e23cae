"""SUMO's microscopic model on its own networks, and the fleet engine on the routes of its vehicles.

The constants of driving were chosen with the first three networks of `CASES`; the others test them. They are RESCO's
(folders of ``sumo_rl/nets/RESCO`` in PyPI's sumo_rl 1.4.5, to be put beside the first three), a part of Helsinki that
netconvert makes from OpenStreetMap, and a random network of netgenerate, both with random trips.
"""

import dataclasses
import math
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import simpy

import scenarios
from simulator.experiment.assembly.city import build_city
from simulator.experiment.assembly.engine import build_engine
from simulator.experiment.study_area import City
from simulator.files.resources import Stopwatch
from simulator.roads import RoadNetwork
from simulator.roads.sumo_frame import NetFrame
from simulator.streams import Streams
from simulator.sumo.routes import sumo_link_ids
from simulator.traffic.clock import Clock
from simulator.traffic.engine import State
from simulator.traffic.fleet import Fleet
from simulator.traffic.link_intervals import Traversals, links_by_interval
from simulator.traffic.routes import Routes
from simulator.traffic.trips import Trips

CELL_M, WARM_UP_S, END_S, EVERY_S = 200.0, 600, 3600, 60
VOLUME_S, GEH = 300, 5.0
JITTERED_RUNS = 5
COLUMNS = (
    *("network", "r of volumes", "GEH < 5", "r of occupancy", "its range", "r of speed", "its range"),
    *("road", "trip", "one place", "faster"),
)


class Case(NamedTuple):
    """One of SUMO's scenarios: its files, and the second at which it begins."""

    net: str
    routes: str
    types: tuple[str, ...]
    signals: tuple[str, ...]
    begin_s: int


CASES = {
    "cologne8": Case("cologne8.net.xml.gz", "cologne8.rou.xml.gz", (), (), 25200),
    **{
        name: Case(
            f"{name}_buslanes.net.xml.gz",
            f"{name}.rou.xml.gz",
            (f"{name}_vtypes.add.xml",),
            (f"{name}_tls.add.xml",),
            0,
        )
        for name in ("acosta", "pasubio")
    },
    **{
        name: Case(f"{name}.net.xml", f"{name}.rou.xml", (), (), begin_s)
        for name, begin_s in (
            *(("cologne1", 25200), ("cologne3", 25200)),
            *((f"ingolstadt{signals}", 57600) for signals in (1, 7, 21)),
            *(("helsinki", 0), ("random", 0)),
        )
    },
    **{name: Case(f"{name}.net.xml", f"{name}_1.rou.xml", (), (), 0) for name in ("grid4x4", "arterial4x4")},
}
MADE = {
    "helsinki": "netconvert --geometry.remove --ramps.guess --junctions.join --tls.guess-signals --tls.discard-simple "
    "--tls.join --remove-edges.isolated --keep-edges.by-vclass passenger --osm-files {osm}",
    "random": "netgenerate --rand --rand.grid --rand.iterations 120 --rand.min-distance 80 --rand.max-distance 200 "
    "--seed 42 --tls.guess --default.lanenumber 2 --random-lanenumber --turn-lanes 1 --turn-lanes.length 40",
}
"""SUMO's programs that make networks, with their options; each has 3,000 random trips in an hour."""


class Simulated(NamedTuple):
    """Vehicles at whole minutes (t, x, y, speed), volumes by edge and interval, the mean trip, the seconds it took."""

    vehicles: pd.DataFrame
    volumes: "pd.Series[int]"
    trip_s: float
    took_s: float


def folder_of(name: str, data: Path, scratch: Path) -> Path | None:
    """Return the folder with the files of a network, which are made in `scratch` if they can be; None if they miss."""
    # Helsinki's extract is binary, which netconvert cannot read.
    if name == "helsinki" and find_spec("osmium") is None:
        print(f"{name} is left out: it needs pip install osmium", file=sys.stderr)
        return None
    needed = {"helsinki": data / "osm_extracts" / "Helsinki.osm.pbf", "random": data / "sumo"}.get(
        name, data / "sumo" / name
    )
    if not needed.exists():
        print(f"{name} is left out: {needed} is not there", file=sys.stderr)
        return None
    if name not in MADE:
        return needed
    home, osm = Path(import_module("sumo").SUMO_HOME), scratch / "map.osm"
    if name == "helsinki":
        osmium = import_module("osmium")
        with osmium.SimpleWriter(str(osm)) as writer:
            for element in osmium.FileProcessor(str(needed)):
                writer.add(element)
    net = scratch / CASES[name].net
    program, *options = MADE[name].format(osm=osm).split()
    subprocess.run([home / "bin" / program, *options, "-o", net], check=True, capture_output=True)
    trips = ["-e", "3600", "-p", "1.2", "--fringe-factor", "5", "--seed", "42", "--validate"]
    files: list[str | Path] = ["-n", net, "-o", scratch / "trips.xml", "-r", scratch / CASES[name].routes]
    tool = [sys.executable, home / "tools" / "randomTrips.py", *files, *trips]
    subprocess.run(tool, check=True, capture_output=True, env=os.environ | {"SUMO_HOME": str(home)})
    return scratch


def simulate(folder: Path, case: Case, out: Path, **options: str) -> Simulated:
    """Run SUMO."""
    Path(f"{out}.add.xml").write_text(
        f'<additional><edgeData id="volumes" file="{out}.edges.xml" period="{VOLUME_S}"/></additional>'
    )
    settings = {
        "net-file": folder / case.net,
        "route-files": folder / case.routes,
        "additional-files": ",".join(
            [*(str(folder / file) for file in (*case.types, *case.signals)), f"{out}.add.xml"]
        ),
        "begin": case.begin_s,
        "end": case.begin_s + END_S,
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
    program = Path(import_module("sumo").SUMO_HOME) / "bin" / "sumo"
    given = [f"--{name}={value}" for name, value in settings.items() if value != ""]
    subprocess.run([program, *given], check=True, capture_output=True)
    took_s = time.perf_counter() - started
    seen = pd.read_csv(f"{out}.fcd.csv", sep=";").dropna(subset=["vehicle_id"])
    t = (seen["timestep_time"] - case.begin_s).round().astype(int)
    x, y = NetFrame.from_file(folder / case.net).to_city(seen[["vehicle_x", "vehicle_y"]].to_numpy()).T
    vehicles = pd.DataFrame({"t": t, "x": x, "y": y, "speed": seen["vehicle_speed"]})[t % EVERY_S == 0]
    done = ET.parse(f"{out}.trips.xml").getroot().findall("tripinfo")  # noqa: S314 - SUMO made it
    times = [float(trip.get("duration", 0)) + float(trip.get("departDelay", 0)) for trip in done]
    volumes = {
        (edge.attrib["id"], round(float(interval.attrib["begin"]) - case.begin_s)): int(edge.attrib["left"])
        + int(edge.attrib["arrived"])
        for interval in ET.parse(f"{out}.edges.xml").getroot()  # noqa: S314 - SUMO made it
        for edge in interval
    }
    return Simulated(vehicles, pd.Series(volumes), float(np.mean(times)), took_s)


def build(folder: Path, case: Case, out: Path) -> tuple[City, Fleet]:
    """Build the fleet engine for the vehicles that SUMO drove, with their routes and types; return the city too."""
    lines = ["<routes>"]
    vehicles = ET.parse(f"{out}.routes.xml").getroot().findall("vehicle")  # noqa: S314 - SUMO made it
    for vehicle in sorted(vehicles, key=lambda one: float(one.get("depart", 0))):
        route = vehicle.findall("route") + vehicle.findall("routeDistribution/route")
        given = " ".join(f'{name}="{vehicle.get(name)}"' for name in ("id", "type", "depart") if vehicle.get(name))
        lines.append(f'<vehicle {given}><route edges="{route[-1].get("edges")}"/></vehicle>')
    Path(f"{out}.rou.xml").write_text("\n".join([*lines, "</routes>"]))
    signals = {"additional": str(folder / case.signals[0])} if case.signals else {}
    scenario = scenarios.Scenario.model_validate(
        {
            "scenario": {"name": folder.name, "seed": 1, "duration_s": END_S},
            "roads": {"source": "sumo", "path": str(folder / case.net)} | signals,
            "cells": {"kind": "square", "size_m": CELL_M},
            "traffic": {
                "demand": "trips",
                "trips": [*(str(folder / file) for file in case.types), f"{out}.rou.xml"],
                "begin_s": case.begin_s,
                "undrivable": "leave_out",
            },
            "campaigns": [{"name": "all", "start_s": 700, "queries": 1, "round_gap_s": 1, "deadline_s": 1}],
            "mechanisms": [{"name": "exact", "kind": "no_privacy"}],
        }
    )
    city = build_city(scenario)
    engine: Any = build_engine(scenario, city, streams=Streams(1), stopwatch=Stopwatch(), end_s=END_S)
    return city, engine


def jittered(engine: Fleet, seed: int, *, logs: bool = False) -> Fleet:
    """Return the engine anew, with departures up to a second earlier or later; it may log all link entries."""
    trips, routes, physics = engine.trips, engine.routes, engine._physics  # noqa: SLF001
    moved = trips.departure_tick + np.random.default_rng(seed).integers(-1, 2, len(trips))
    ticks = np.maximum(moved, 0).astype(np.int32)
    order = np.argsort(ticks, kind="stable")
    by_vehicle = {name: values[order] for name in ("vehicle_class", "pace") if len(values := getattr(physics, name))}
    return Fleet(
        engine._road_links,  # noqa: SLF001
        dataclasses.replace(physics, **by_vehicle),
        Trips(trips.origin[order], trips.destination[order], ticks[order]),
        Routes.gathered(routes.links, routes.offsets[:-1][order], np.diff(routes.offsets)[order]),
        clock=Clock(),
        record_entries=int(logs),
    )


def volumes_of(engine: Fleet, roads: RoadNetwork) -> "pd.Series[int]":
    """Run an engine that logs all entries; return its volumes by SUMO's edges."""
    engine.advance_to(END_S)
    driven = Traversals.of(engine, Clock(), engine.log_by_vehicle())
    table = links_by_interval(driven, engine.length_m, every_s=VOLUME_S, end_s=END_S)
    edge_of = {link: edge for edge, link in sumo_link_ids(roads).items()}
    keys = zip(table["link"].map(edge_of), table["from_s"].astype(int), strict=True)
    return pd.Series(table["left"].to_numpy(), index=pd.MultiIndex.from_tuples(keys))


def volume_scores(reference: "pd.Series[int]", other: "pd.Series[int]") -> tuple[float, float]:
    """Return the correlation of volumes by link and interval, and the share with GEH < 5, of hourly volumes.

    Of links that any vehicle used in either, after the warm-up.
    """
    both = pd.concat([reference, other], axis=1).fillna(0)
    both = both[both.index.get_level_values(1) >= WARM_UP_S].unstack(fill_value=0)
    a, b = (both[column].to_numpy(dtype=float).ravel() * 3600 / VOLUME_S for column in (0, 1))
    used = a + b > 0
    geh = np.sqrt(2 * (a - b)[used] ** 2 / (a + b)[used])
    return float(np.corrcoef(a, b)[0, 1]), float((geh < GEH).mean())


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
    minutes, cells = counts[0].index.union(counts[1].index), counts[0].columns.union(counts[1].columns)
    whole = [count.reindex(minutes, fill_value=0).reindex(columns=cells, fill_value=0) for count in counts]
    a, b = (count.to_numpy(dtype=float).ravel() for count in whole)
    speeds = [table.groupby("cell")["speed"].agg(["mean", "size"]) for table in tables]
    both = speeds[0].join(speeds[1], rsuffix="_other", how="inner")
    both = both[(both["size"] >= 50) & (both["size_other"] >= 50)]
    return b.sum() / a.sum(), np.corrcoef(a, b)[0, 1], np.corrcoef(both["mean"], both["mean_other"])[0, 1]


def beside_sumo(data: Path, names: Sequence[str]) -> list[str]:
    """Return the table of SUMO's networks whose files are there: crowdveil/another seed/the mesoscopic model."""
    rows = [
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
    ]
    for name in names:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch)
            if (folder := folder_of(name, data, out)) is None:
                continue
            runs = {}
            for label, options in (
                ("1", {"seed": "1"}),
                ("another seed", {"seed": "2"}),
                ("mesoscopic", {"seed": "1", "mesosim": "true", "meso-junction-control": "true"}),
            ):
                print(f"{name}: SUMO, {label}", file=sys.stderr)
                runs[label] = simulate(folder, case, out / label.replace(" ", ""), **options)
            city, engine = build(folder, case, out / "1")
        micro, volumes, trip_s, micro_took_s = runs.pop("1")
        others = [
            (*scores(micro, seen), mean_s / trip_s, *volume_scores(volumes, volumes_too))
            for seen, volumes_too, mean_s, _ in runs.values()
        ]
        print(f"{name}: crowdveil", file=sys.stderr)
        vehicles_of(engine, city.roads)  # compiled, and in the caches
        figures, faster, shared = [], [], 0.0
        for seed in range(1, JITTERED_RUNS + 1):
            fleet = jittered(engine, seed)
            seen, took_s = vehicles_of(fleet, city.roads)
            shared = max(shared, one_place(seen))
            alike = volume_scores(volumes, volumes_of(jittered(engine, seed, logs=True), city.roads))
            figures.append((*scores(micro, seen), fleet.totals().mean_trip_s / trip_s, *alike))
            faster.append(micro_took_s / took_s)
        table = np.array(figures)
        road, occupancy, speed, trip, r, geh = zip(table.mean(axis=0), *others, strict=True)
        (_, low, slow, *_), (_, high, fast, *_) = table.min(axis=0), table.max(axis=0)
        cells = (
            *(name, _beside(r, ".3f"), _beside(geh, ".0%"), _beside(occupancy, ".3f"), f"{low:.3f} … {high:.3f}"),
            *(_beside(speed, ".2f"), f"{slow:.2f} … {fast:.2f}", _beside(road, ".2f"), _beside(trip, ".2f")),
            *(f"{shared:.1%}", f"{math.floor(np.median(faster)):,} ×"),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows if len(rows) > 2 else []  # without any network the page keeps its table


def _beside(figures: Sequence[float], form: str) -> str:
    """Return crowdveil's figure and SUMO's two, with a slash between."""
    return "/".join(f"{figure:{form}}" for figure in figures)


def one_place(seen: pd.DataFrame) -> float:
    """Return the share of vehicles that have the coordinates of another one at the same moment, to 1 cm."""
    rounded = seen[["t", "x", "y"]].round({"x": 2, "y": 2})
    return float(rounded.duplicated(keep=False).mean())
