"""Traffic log: the states of an engine's vehicles over time."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from simulator.files.messages import Doubt
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import Engine
from simulator.traffic.vehicle_states import FEWEST_VEHICLES, Totals


@dataclass
class TrafficLog:
    """Totals of one engine, looked at again and again; what `run.json` says under `traffic`.

    Attributes
    ----------
    engine
        Its name, as a scenario has it.
    times_s
        When it was looked at, seconds, ascending.
    totals
        What was seen, one a time.
    planned
        Vehicles of the whole run.
    """

    engine: str
    times_s: list[float] = field(default_factory=list)
    totals: list[Totals] = field(default_factory=list)
    planned: int = 0

    def take(self, time_s: float, engine: Engine) -> None:
        """Look at `engine`, which has been advanced to `time_s`."""
        self.times_s.append(time_s)
        self.totals.append(engine.totals())
        self.planned = engine.vehicles

    def facts(self, notes: Sequence[str]) -> dict[str, Any]:
        """Return what is kept: counts and mean trip time by moment, and how it ended.

        Parameters
        ----------
        notes
            What the engine says of its traffic; a past gridlock is added where it does not report one at the end.

        Returns
        -------
        dict
            `times_s`; as long, `departed`, `waiting`, `on_road`, `arrived`, `absent`, and `mean_trip_s`: of those
            arrived by then, from scheduled departure to arrival, seconds, null while nobody has arrived or where
            the engine does not know. Of the last moment, `arrived_total` and `stuck_released`.
        """
        last = self.totals[-1] if self.totals else None
        return {
            "engine": self.engine,
            "times_s": list(self.times_s),
            **{
                name: [getattr(seen, name) for seen in self.totals]
                for name in ("departed", "waiting", "on_road", "arrived", "absent")
            },
            "mean_trip_s": [_mean_trip_s(seen) for seen in self.totals],
            "arrived_total": last.arrived if last else 0,
            "stuck_released": last.stuck_released if last else 0,
            "notes": [*notes, *([] if any(note.startswith("gridlock") for note in notes) else self._past_gridlock())],
        }

    def _past_gridlock(self) -> list[Doubt]:
        """Warn of the worst moment at which vehicles were forced on, late, or waiting to enter beyond the limits."""
        seen = [at for at, totals in enumerate(self.totals) if totals.departed >= FEWEST_VEHICLES]
        if not seen:
            return []
        worst = max(seen, key=lambda at: self.totals[at].crowding)
        when = f" at second {self.times_s[worst]:g}, cleared by the end"
        if self.totals[worst].crowding <= 1:
            return []
        return self.totals[worst].gridlock(planned=self.planned, when=when)


def drive_alone(name: str, engine: Engine, *, clock: Clock, times_s: Sequence[float]) -> dict[str, Any]:
    """Let an engine drive with nobody asking, and log it at given moments.

    Parameters
    ----------
    name
        The engine's, as a scenario has it.
    engine
        Not started yet; closed in the end.
    clock
        Its ticks.
    times_s
        When to look, seconds, ascending.

    Returns
    -------
    dict
        As `TrafficLog.facts`.
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
    return log.facts(engine.notes())


def _mean_trip_s(seen: Totals) -> float | None:
    # An engine that keeps no trip times leaves their sum at 0; no trip takes no time.
    return seen.mean_trip_s if seen.trip_time_s > 0 and math.isfinite(seen.mean_trip_s) else None
