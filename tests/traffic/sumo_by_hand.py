"""A small SUMO scenario, made by SUMO's own tools, and the output of a plain SUMO run."""

import importlib.util
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, Self

import pytest
import simpy

from simulator.files.xml_elements import elements_of
from simulator.roads.sumo_frame import NetFrame
from simulator.sumo.engine import Sumo
from simulator.sumo.inputs import Insertions, SumoInputs
from simulator.traffic.clock import Clock

sumo = pytest.importorskip("sumo", reason="SUMO's programs are not installed: pip install eclipse-sumo")
if importlib.util.find_spec("libsumo") is None:  # not imported here: it conflicts with pyarrow's library
    pytest.skip("SUMO is not installed: pip install 'crowdveil[sumo]'", allow_module_level=True)

ROUTES = """<routes>
  <vType id="slow" maxSpeed="6" sigma="0.5"/>
  <route id="east" edges="A1B1 B1C1 C1D1"/>
  <vehicle id="first" depart="0" route="east"/>
  <flow id="queue" begin="0" end="60" period="1" route="east" type="slow"/>
  <vehicle id="parks" depart="2"><route edges="A2B2 B2C2 C2D2"/>
    <stop lane="B2C2_0" startPos="10" endPos="40" duration="400" parking="true"/></vehicle>
  <flow id="north" begin="3" end="120" probability="0.2" from="B0B1" to="C2C3"/>
  <trip id="later" depart="90.5" from="A0A1" to="D2D3"/>
  <flow id="chance" begin="95" end="200" period="exp(0.3)" from="D3D2" to="A1A0"/>
</routes>
"""


class Vehicle(NamedTuple):
    x: float
    y: float
    speed: float
    lane: str
    pos: float


def tool(name: str, *arguments: object) -> None:
    command = [str(Path(sumo.SUMO_HOME) / "bin" / name), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "SUMO_HOME": sumo.SUMO_HOME})


def make_net(folder: Path) -> Path:
    net = folder / "small.net.xml"
    tool("netgenerate", "--grid", "--grid.number", 4, "--grid.length", 120, "-j", "traffic_light", "-o", net)
    return net


def inputs(net: Path, routes: str | bytes = ROUTES, *, seed: int = 5, **options: object) -> SumoInputs:
    folder = net.parent
    file = folder / "by_hand.rou.xml"
    file.write_bytes(routes.encode() if isinstance(routes, str) else routes)
    return SumoInputs(net=net, routes=(file,), additional=(), seed=seed, **options)


def engine(given: SumoInputs, *, until_s: float = 300.0, most: int | None = None, **options: object) -> Sumo:
    insertions = Insertions.read(
        [*given.additional, *given.routes],
        begin_s=given.begin_s,
        end_s=given.begin_s + until_s,
        step_s=given.step_s,
        scale=given.scale,
    )
    if most is not None:
        insertions = Insertions(most, insertions.unscheduled)
    frame = NetFrame.from_location({"projParameter": "!"})
    return Sumo(given, insertions, frame, clock=Clock(given.step_s), **{"link_of": {}, **options})


class Driven:
    """A running engine; `to` advances it to a tick."""

    def __init__(self, sumo: Sumo) -> None:
        self.sumo, self.env = sumo, simpy.Environment()

    def __enter__(self) -> Self:
        try:
            self.sumo.start(self.env)
        except BaseException:
            self.sumo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.sumo.close()

    def to(self, tick: float) -> Sumo:
        if tick > self.env.now:
            self.env.run(until=tick)
        self.sumo.advance()
        return self.sumo

    def rows(self) -> dict[str, int]:
        """Row numbers of all vehicles that have not arrived."""
        return dict(self.sumo._registry._row)


def plain_run(given: SumoInputs, *, until_s: float) -> tuple[dict[float, dict[str, Vehicle]], list[dict[str, float]]]:
    """Run SUMO alone: its FCD by time and vehicle, and its finished trips."""
    fcd, trips = given.net.parent / "fcd.xml", given.net.parent / "trips.xml"
    ends = ("--end", given.begin_s + until_s)
    written = ("--fcd-output", fcd, "--tripinfo-output", trips, "--precision", 6)
    tool("sumo", *given.arguments(), *ends, *written)
    seen: dict[float, dict[str, Vehicle]] = defaultdict(dict)
    time_s = 0.0
    for element in elements_of(fcd):
        at = element.attributes or {}
        if element.name == "timestep" and at:
            time_s = float(at["time"])
        elif element.name == "vehicle" and at:
            numbers = (float(at[name]) for name in ("x", "y", "speed"))
            seen[time_s][at["id"]] = Vehicle(*numbers, at.get("lane", ""), float(at["pos"]))
    names = ("depart", "departDelay", "arrival", "duration")
    trip_attributes = [
        element.attributes for element in elements_of(trips) if element.name == "tripinfo" and element.attributes
    ]
    return seen, [{name: float(trip[name]) for name in names} for trip in trip_attributes]
