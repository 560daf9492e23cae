"""Clock: conversion between seconds and the engine's whole ticks, and events in a fixed order within a tick."""

import math
from dataclasses import dataclass

import simpy
from simpy.events import EventPriority

LAST = 1 << 62
"""Priority of events that observe the traffic: in one tick they happen after every vehicle has moved."""

DAY_S = 86_400.0
_NEARLY_WHOLE = 1e-9


@dataclass(frozen=True)
class Clock:
    """Simulation clock: SimPy's environment counts ticks of `step_s` seconds.

    Vehicles move at whole ticks, so two engines can agree exactly. Campaigns may query vehicles between whole ticks.

    Parameters
    ----------
    step_s
        Length of a tick in seconds, above 0.
    """

    step_s: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.step_s) and self.step_s > 0):
            raise ValueError(f"step_s must be a number above 0, received {self.step_s!r}")

    def ticks(self, seconds: float) -> float:
        """Convert the moment `seconds` to ticks; a result within rounding error of a whole number becomes whole."""
        ticks = seconds / self.step_s
        nearest = round(ticks)
        return float(nearest) if abs(ticks - nearest) <= _NEARLY_WHOLE * max(1.0, abs(ticks)) else ticks

    def whole_ticks(self, seconds: float) -> int:
        """Return the last whole tick at or before `seconds`."""
        return math.floor(self.ticks(seconds))

    def ticks_to_cover(self, seconds: float) -> int:
        """Return the least number of whole ticks that last at least `seconds`."""
        return math.ceil(self.ticks(seconds))

    def seconds(self, ticks: float) -> float:
        """Convert the moment `ticks` to seconds."""
        return ticks * self.step_s


class PriorityEvent(simpy.Event):
    """Event with a priority among the events of the same instant; lower `priority` happens first.

    SimPy's own `Timeout` has one priority. The physics serves links in ascending id and observes the result last, so it
    needs as many priorities as there are links.
    """

    def schedule(self, *, delay: float, priority: int) -> "PriorityEvent":
        """Schedule the event `delay` ticks from now, with `priority` among the events of that instant."""
        self._ok = True
        self._value = None
        self.env.schedule(self, EventPriority(priority), delay)
        return self


def after_traffic(env: simpy.Environment, at_tick: float) -> PriorityEvent:
    """Return an event at `at_tick` that happens after every vehicle has moved in that tick."""
    return PriorityEvent(env).schedule(delay=at_tick - env.now, priority=LAST)
