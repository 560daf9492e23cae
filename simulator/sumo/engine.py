"""Engine `sumo`: SUMO moves the vehicles, which are queried while it runs."""

import tempfile
from collections import Counter
from collections.abc import Generator, KeysView, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyproj
import simpy

from simulator.arrays import FloatArray, IntArray
from simulator.files.errors import InputError, ProgramError
from simulator.files.messages import Note, counted, notes_of
from simulator.roads.projection import transform
from simulator.roads.sumo_frame import NetFrame
from simulator.sumo.inputs import Insertions, SumoInputs
from simulator.sumo.outputs import TRIP_OPTIONS, TRIPS, EdgeOutput, read_trips
from simulator.sumo.process import Events, SumoProcess
from simulator.sumo.vehicle_registry import UNKNOWN, Edges, VehicleRegistry
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import State, Totals, VehicleStates, check_departed

BEAT_TICKS = 64
_MOST_WARNINGS = 5
_COUNTED = (
    ("teleport", "teleports"),
    ("vehicle in a collision", "vehicles in collisions"),
    ("emergency stop", "emergency stops"),
)


class Sumo:
    """Engine that steps SUMO tick by tick and returns the places of its vehicles on request.

    The state at tick t is the one that SUMO itself writes for time begin + t · step, for instance in its FCD output;
    between two ticks, it is the state of the earlier tick. A vehicle exists from its scheduled departure. It is
    waiting, at the start of its first edge, until SUMO can insert it; then on the road, at SUMO's position; and finally
    arrived, at the end of its last edge. A vehicle that SUMO is teleporting, or has discarded, is absent.

    Parameters
    ----------
    inputs
        Files and options of SUMO.
    insertions
        Vehicles that SUMO can insert, with their maximum number.
    frame
        Transformation from SUMO's coordinates to the coordinates of the network's source.
    clock
        Clock whose tick is SUMO's step.
    link_of
        The city's link of each edge, by SUMO's id; empty if the roads have another source.
    crs
        The city's coordinate system, if it differs from the network's.
    edge_output
        Measures on edges that SUMO makes for the table `links`; None for none.

    Attributes
    ----------
    vehicles
        Maximum number of vehicles in the whole run.
    """

    def __init__(
        self,
        inputs: SumoInputs,
        insertions: Insertions,
        frame: NetFrame,
        *,
        clock: Clock,
        link_of: Mapping[str, int],
        crs: pyproj.CRS | None = None,
        edge_output: EdgeOutput | None = None,
    ) -> None:
        self._inputs, self._insertions, self._clock = inputs, insertions, clock
        self._edge_output = edge_output
        self._tables: tuple[pd.DataFrame, pd.DataFrame] | None = None
        self._not_counted: list[Note] = []
        self._frame, self._crs = frame, crs
        self.vehicles = insertions.most
        self._registry = VehicleRegistry(insertions.most, insertions.unscheduled)
        self._link_of, self._edges = link_of, Edges({}, link_of)
        self._process: SumoProcess | None = None
        self._env: simpy.Environment | None = None
        self._next_tick, self._looked_tick = 0, -1
        self._last_look: tuple[VehicleStates, FloatArray]
        self._counted: Counter[str] = Counter()
        self._edges_off_roads = self._signals = 0

    @property
    def scheduled(self) -> int:
        """Number of vehicles whose scheduled departure has come; at the end of the run, all there were."""
        return self._registry.departed

    @property
    def files(self) -> tuple[Path, ...]:
        """Known files that SUMO reads: its input files, and the files they include."""
        inputs = self._inputs
        return (*inputs.others, *inputs.routes, *inputs.additional, *self._insertions.included)

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes held in this process for vehicles, and 0 for routes, which SUMO holds."""
        return self._registry.nbytes, 0

    def start(self, env: simpy.Environment) -> None:
        """Start SUMO, and add the process that steps it to `env`.

        Raises
        ------
        InputError
            If SUMO rejects its files, or uses other roads than the city's.
        """
        self._env = env
        with tempfile.TemporaryDirectory() as folder:
            self._process = SumoProcess.launch(self._measured(Path(folder) / "measures.add.xml"))
        self._edges = Edges(self._ask("edges", "at its start"), self._link_of)
        self._check_roads(self._edges.names)
        self._signals = self._ask("signals", "at its start")
        self._load(Events(*self._ask("events", "at its start")), clock_s=self._inputs.begin_s)
        env.process(self._drive(env))

    def _measured(self, file: Path) -> SumoInputs:
        """Return the inputs with the measures that SUMO is to make, which are written into `file`."""
        inputs = self._inputs
        if self._edge_output is None:
            return inputs
        file.write_text(self._edge_output.request(), encoding="utf-8")
        return replace(inputs, additional=(*inputs.additional, file), options={**inputs.options, **TRIP_OPTIONS})

    def _ask(self, request: str, what: str) -> Any:
        if self._process is None:
            raise RuntimeError("SUMO has not been started: call start(env) first")
        return self._process.ask(request, what=what)

    def _check_roads(self, driven: KeysView[str]) -> None:
        if not self._link_of:
            return
        if not (shared := driven & self._link_of.keys()):
            rule = "SUMO's network must be the one the roads were read from: no edge of it is among them"
            raise InputError([f"{self._inputs.net}: {rule}, as {min(driven, default='none')!r}"])
        self._edges_off_roads = len(driven - shared)

    def _drive(self, env: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Step SUMO at regular intervals, so that a long run shows its progress and can be interrupted."""
        while True:
            yield after_traffic(env, env.now + BEAT_TICKS)
            self.advance()

    def advance(self) -> None:
        """Move every vehicle to `env.now`, tick ⌊now⌋ included.

        Raises
        ------
        InputError
            If SUMO ends, with its own message, or inserts more vehicles than the maximum read from its files.
        """
        if self._env is None:
            raise RuntimeError("SUMO has not been started: call start(env) first")
        while self._next_tick <= int(self._env.now):
            now_s = self._inputs.begin_s + self._clock.seconds(self._next_tick)
            self._follow(Events(*self._ask("step", f"at {now_s:g} s of SUMO's time")), now_s)
            self._next_tick += 1

    def _follow(self, events: Events, now_s: float) -> None:
        """Record the events of a step whose state is the state at `now_s`."""
        registry = self._registry
        self._load(events, clock_s=now_s + self._clock.step_s)
        registry.schedule(now_s)
        for vehicle, class_, *edges in events.departed:
            row = registry.depart(vehicle, now_s, class_)
            if registry.rows["last_edge"][row] == UNKNOWN:
                registry.settle(row, *map(self._edges.number, edges))
        for vehicle in events.teleport_starts:
            registry.change(vehicle, State.ABSENT)
        for vehicle in events.teleport_ends:
            registry.change(vehicle, State.ON_ROAD)
        for vehicle in events.arrived:
            registry.arrive(vehicle, now_s)
        self._counted["teleport"] += len(events.teleport_starts)
        self._counted["vehicle in a collision"] += events.colliding
        self._counted["emergency stop"] += events.emergency_stops

    def _load(self, events: Events, *, clock_s: float) -> None:
        """Record loaded vehicles at SUMO's clock time `clock_s`, which after a step is the time of the next step."""
        gone = {vehicle for vehicle, *_ in events.departed}
        for vehicle, delay_s, class_, *edges in events.loaded:
            # The delay counts up to the departure or, before it, up to SUMO's clock.
            scheduled_s = (clock_s - self._clock.step_s if vehicle in gone else clock_s) - delay_s
            self._registry.load(vehicle, scheduled_s, class_, *map(self._edges.number, edges))

    def places(self) -> VehicleStates:
        """Return the place of every departed vehicle; call `advance` first.

        A vehicle on an edge of the roads has the edge's link, and SUMO's position along it. A vehicle within a junction
        is at the end of the link that it leaves, with SUMO's coordinates. A vehicle on an edge that is not part of the
        roads has no link.
        """
        return self._look()[0]

    def speeds(self) -> FloatArray:
        """Return SUMO's speed of every departed vehicle, (departed,) m/s, 0 off the road."""
        return self._look()[1]

    def place_of(self, numbers: IntArray) -> VehicleStates:
        """Return the places of some departed vehicles; SUMO is asked once a tick, for all vehicles."""
        self.advance()
        check_departed(numbers, self.scheduled)
        return self.places().of(numbers)

    def origin_of(self, numbers: IntArray) -> VehicleStates:
        """Return the beginnings of the first edges of some departed vehicles; see `Engine.origin_of`."""
        link, ends = self._edges.places(self._registry.rows["first_edge"][numbers])
        waiting = np.full(len(numbers), State.WAITING, dtype=np.uint8)
        return VehicleStates(waiting, link, np.zeros(len(numbers)), self._in_city(ends[:, :2]))

    def class_of(self, numbers: IntArray) -> list[str]:
        """Return SUMO's ``vClass`` of some departed vehicles."""
        return [self._registry.classes[number] for number in numbers]

    def _look(self) -> tuple[VehicleStates, FloatArray]:
        """Return places and speeds, which SUMO is asked for once a tick."""
        if self._looked_tick != self._next_tick:
            self._last_look, self._looked_tick = self._request_vehicles(), self._next_tick
        return self._last_look

    def _request_vehicles(self) -> tuple[VehicleStates, FloatArray]:
        registry, edges = self._registry, self._edges
        self._reconcile("asked for its vehicles")
        vehicles, on_edges, along, x, y, speed_mps = self._ask("vehicles", "asked for its vehicles")
        rows = np.array([registry.row_of(vehicle) for vehicle in vehicles], dtype=np.int64)
        known = rows >= 0
        rows = rows[known]
        state = registry.rows["state"].copy()
        driving_now = np.zeros(len(state), dtype=bool)
        driving_now[rows] = True
        state[(state == State.ON_ROAD) & ~driving_now] = State.ABSENT
        link = np.full(len(state), -1, dtype=np.int32)
        fraction = (state == State.ARRIVED).astype(np.float64)
        xy = np.full((len(state), 2), np.nan)
        for end, edge, point in ((State.WAITING, "first_edge", slice(0, 2)), (State.ARRIVED, "last_edge", slice(2, 4))):
            which = state == end
            links, ends = edges.places(registry.rows[edge][which])
            link[which], xy[which] = links, ends[:, point]
        xy[rows] = np.array([x, y], dtype=np.float64).T[known]
        link[rows] = np.array([edges.link(edge) for edge in on_edges], dtype=np.int32)[known]
        fraction[rows] = np.array(along, dtype=np.float64)[known]
        speed = np.zeros(len(state))
        speed[rows] = np.maximum(np.array(speed_mps, dtype=np.float64)[known], 0.0)
        return VehicleStates(state, link, fraction, self._in_city(xy)), speed

    def _in_city(self, xy: FloatArray) -> FloatArray:
        xy = self._frame.to_city(xy)
        if self._crs is None or self._crs == self._frame.crs:
            return xy
        return transform(self._frame.crs, self._crs, xy)

    def _reconcile(self, what: str) -> None:
        """Update the waiting vehicles: SUMO does not report vehicles that it discarded before they departed."""
        if self._registry.count(State.WAITING) or self._registry.count(State.ABSENT):
            self._registry.reconcile_waiting(self._ask("pending", what))

    def totals(self) -> Totals:
        """Return the number of vehicles in each state; link crossings in SUMO are not counted."""
        if self._process is not None and self._process.is_open:
            self._reconcile("asked for those that wait")
        return Totals.counted(
            self._registry.rows["state"],
            stuck_released=self._counted["teleport"],
            trip_time_s=self._registry.trip_time_s,
        )

    def notes(self) -> list[Note]:
        """Return notes on SUMO's version and seed, and on teleports, collisions and warnings."""
        if self._process is None:
            return []
        model = ", its mesoscopic model" if self._inputs.mesoscopic else ""
        signals = f"with {counted(self._signals, 'signal')}; links crossed are not counted"
        notes = [Note("sumo_drove", f"{self._process.version}{model} drove, seed {self._inputs.seed}, {signals}")]
        if self._inputs.outputs:
            unwritten = f"outputs that the configuration names are not written: {', '.join(self._inputs.outputs)}"
            notes.append(Note("outputs_not_written", unwritten))
        if self._edges_off_roads:
            off = counted(self._edges_off_roads, "edge of SUMO's network is", "edges of SUMO's network are")
            notes.append(
                Note("edges_off_roads", f"{off} not among the roads: a vehicle there has coordinates and no link")
            )
        happened = [(self._counted[one], one, many) for one, many in _COUNTED if self._counted[one]]
        notes += notes_of("sumo_counted", (f"SUMO counted {counted(*each)}" for each in happened))
        if absent := self._registry.count(State.ABSENT):
            away = counted(absent, "vehicle was", "vehicles were")
            notes.append(Note("absent", f"{away} being teleported at the end, or removed by SUMO"))
        notes += self.totals().gridlock(planned=self.scheduled)
        warned = self._process.warned()
        said = [f"SUMO warned{_times(one.times)}: {one.first}" for one in warned[:_MOST_WARNINGS]]
        if len(warned) > _MOST_WARNINGS:
            said.append(f"SUMO gave {counted(len(warned) - _MOST_WARNINGS, 'other warning')}")
        return [*notes, *self._not_counted, *notes_of("sumo_warned", said)]

    def close(self) -> None:
        """End SUMO, even after an error, and read the measures it made."""
        if self._process is None:
            return
        try:
            if self._edge_output is not None and self._process.finish():
                folder, rows, begin_s = self._process.outputs, self._registry.rows, self._inputs.begin_s
                links, self._not_counted = self._edge_output.read(folder)
                of_vehicles = self._registry.names, rows["state"], rows["scheduled_s"]
                self._tables = links, read_trips(folder / TRIPS, *of_vehicles, begin_s=begin_s)
        finally:
            self._process.close()

    def link_tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the tables `links` and `trips`, `trips` without `takes_part`; call `close` first.

        Raises
        ------
        ProgramError
            If SUMO has not written its outputs.
        """
        if self._tables is None:
            raise ProgramError(["SUMO ended without writing its outputs, from which links by interval are made"])
        return self._tables

    def __repr__(self) -> str:
        return f"<Sumo: at most {self.vehicles:,} vehicles, {self._inputs.net.name}, tick {self._next_tick - 1}>"


def _times(number: int) -> str:
    return "" if number == 1 else f" {number:,} times, first"
