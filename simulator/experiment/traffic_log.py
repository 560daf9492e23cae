"""Traffic log: the states of an engine's vehicles over time."""

import math
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import simpy

from scenarios.run_clock import RunClock
from simulator.experiment.study_area import City
from simulator.files.messages import Note, texts_of, warning
from simulator.results.record import VEHICLE_STATES, TrafficRecord
from simulator.results.run_record import BESIDE
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import FEWEST_VEHICLES, Engine, State, Totals, vehicles_of
from simulator.traffic.fleet import Fleet
from simulator.traffic.queue_engine import QueueEngine

MOST_UNCOUNTED = 0.5
"""Share of the vehicles' time in no cell above which a run warns: most of its traffic is not in its counts."""


@dataclass
class TrafficLog:
    """Totals of one engine, recorded at several times; the record `traffic` of `run.json`.

    Attributes
    ----------
    engine
        Name of the engine in a scenario.
    times_s
        Times at which totals were recorded, seconds, ascending.
    totals
        The totals, one for each time.
    planned
        Number of vehicles of the whole run.
    clock
        The clock of the run.
    present, in_no_cell
        Sums, over the times at which cells are found, of the vehicles in traffic and of the vehicles in no cell.
    """

    engine: str
    times_s: list[float] = field(default_factory=list)
    totals: list[Totals] = field(default_factory=list)
    planned: int = 0
    clock: RunClock = field(default_factory=RunClock)
    present: int = 0
    in_no_cell: int = 0

    def take(
        self, time_s: float, engine: Engine, *, city: City | None = None, states: Collection[State] = (State.ON_ROAD,)
    ) -> None:
        """Record the totals of `engine`, which has been advanced to `time_s`.

        With `city`, the vehicles in no cell are counted too, among those in `states`.
        """
        self.times_s.append(time_s)
        self.totals.append(engine.totals())
        self.planned = len(engine.trips) if isinstance(engine, QueueEngine) else vehicles_of(engine)
        if city is None:
            return
        # Locating the whole fleet took half of a run's traffic.
        if isinstance(engine, Fleet) and [*states] == [State.ON_ROAD]:
            places, present = engine.places_on(city.leaves_cells), self.totals[-1].on_road
        else:
            places = engine.places()
            places = places.of(np.flatnonzero(places.within(states)))
            present = len(places)
        self.present += present
        self.in_no_cell += int((city.cells_of(places) == 0).sum())

    def notes(self, of_engine: Sequence[Note]) -> list[Note]:
        """Return an engine's notes, and those on what was logged: a past gridlock if the engine reports none."""
        past = [] if any(note.code == "gridlock" for note in of_engine) else self._past_gridlock()
        return [*of_engine, *self._uncounted(), *past]

    def record(self, notes: Sequence[Note]) -> TrafficRecord:
        """Return the record: counts and mean trip time by moment, the final totals, and the texts of notes."""
        return TrafficRecord(
            engine=self.engine,
            times_s=list(self.times_s),
            **{state: [getattr(seen, state) for seen in self.totals] for state in VEHICLE_STATES},
            mean_trip_s=[_mean_trip_s(seen) for seen in self.totals],
            arrived_total=self.totals[-1].arrived,
            stuck_released=self.totals[-1].stuck_released,
            notes=texts_of(notes),
        )

    def _uncounted(self) -> list[Note]:
        """Return a note on the share of the vehicles' time in no cell, a warning above one half; none if all is in."""
        if not self.in_no_cell:
            return []
        share = self.in_no_cell / self.present
        text = f"cells: of the vehicle-time of the run, {share * 100:.3g} % is in no cell, where nothing is counted"
        if share <= MOST_UNCOUNTED:
            return [Note("in_no_cell", text)]
        checks = "are the cells where the traffic is, and do they cover the area that is meant?"
        return [warning("in_no_cell", f"{text}: {checks}")]

    def _past_gridlock(self) -> list[Note]:
        """Return a warning of the worst moment, if vehicles forced on, late or waiting to enter exceed the limits."""
        seen = [(time_s, totals) for time_s, totals in zip(self.times_s, self.totals, strict=True)]
        seen = [moment for moment in seen if moment[1].departed >= FEWEST_VEHICLES and moment[1].crowding > 1]
        if not seen:
            return []
        time_s, worst = max(seen, key=lambda moment: moment[1].crowding)
        when = f" at second {time_s:g}{self.clock.aside(time_s)}, cleared by the end"
        return worst.gridlock(planned=self.planned, when=when)


def drive_alone(
    name: str, engine: Engine, planned: Sequence[Note] = (), *, clock: Clock, times_s: Sequence[float]
) -> tuple[TrafficRecord, list[Note]]:
    """Run an engine without campaigns, log its totals at given moments, and return its record and notes.

    Parameters
    ----------
    name
        Name of the engine in a scenario.
    engine
        An engine that is not started yet; it is closed at the end.
    planned
        Notes on its demand.
    clock
        Clock of the engine's ticks.
    times_s
        Times at which totals are logged, seconds, ascending.
    """
    log, env = TrafficLog(name), simpy.Environment()

    def watch() -> Generator[simpy.Event, None, None]:
        for time_s in times_s:
            yield after_traffic(env, clock.ticks(time_s))
            engine.advance()
            log.take(time_s, engine)

    try:
        engine.start(env)
        env.process(watch())
        env.run(until=math.nextafter(clock.ticks(times_s[-1]), math.inf))
    finally:
        engine.close()
    notes = [note.at(BESIDE) for note in (*planned, *log.notes(engine.notes()))]
    return log.record(notes), notes


def _mean_trip_s(seen: Totals) -> float | None:
    # An engine that keeps no trip times leaves their sum at 0, which no real trips can have.
    return seen.mean_trip_s if seen.trip_time_s > 0 and math.isfinite(seen.mean_trip_s) else None
