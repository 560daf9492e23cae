"""Sampler: the process that looks where every vehicle is."""

from collections.abc import Generator

import numpy as np
import numpy.typing as npt
import pyproj
import simpy

from simulator.roads import RoadNetwork
from simulator.stopwatch import Stopwatch
from simulator.traffic.clock import Clock, look
from simulator.traffic.engine import Engine
from simulator.traffic.fcd.samples import Look, Samples
from simulator.traffic.places import Places, State

_REACH = 1e-3
_NEARLY_WHOLE = 1e-9


class Sampler:
    """Looks at regular moments; holds 50 bytes a vehicle and moment until they are written.

    Seen is whoever a query would ask if all took part: vehicles on the road, those that wait to enter it (at the
    start of their link, speed 0), and where the parked answer those that have arrived, where they stand.

    Parameters
    ----------
    engine
        What moves the vehicles.
    clock
        Of the run.
    every_s, from_s, to_s
        The first moment is `from_s`, and none is after `to_s`.
    crs
        System that places are in.
    roads
        The network, None where there is none.
    parked
        Whether vehicles that have arrived are seen.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock,
        every_s: float,
        from_s: float,
        to_s: float,
        crs: pyproj.CRS,
        roads: RoadNetwork | None = None,
        parked: bool = False,
    ) -> None:
        self._engine, self._clock, self._crs, self._roads, self._parked = engine, clock, crs, roads, parked
        count = int(np.floor((to_s - from_s) / every_s * (1 + _NEARLY_WHOLE) + _NEARLY_WHOLE)) + 1
        self._moments_s = [from_s + number * every_s for number in range(max(count, 0))]
        self._looks: list[Look] = []

    def start(self, env: simpy.Environment, stopwatch: Stopwatch) -> None:
        """Put the sampler into `env`; its time goes to the phase "fcd"."""
        env.process(self._run(env, stopwatch))

    def samples(self) -> Samples:
        """Return what was seen, once the run is over."""
        return Samples.gather(self._moments_s[: len(self._looks)], self._looks, self._crs)

    def _run(self, env: simpy.Environment, stopwatch: Stopwatch) -> Generator[simpy.Event, None, None]:
        for moment_s in self._moments_s:
            yield look(env, self._clock.ticks(moment_s))
            self._engine.advance()
            with stopwatch.phase("fcd"):
                self._looks.append(self._look(self._engine.places(), self._engine.speeds()))

    def _look(self, places: Places, speeds: npt.NDArray[np.float64]) -> Look:
        seen = (places.state == State.ON_ROAD) | (places.state == State.WAITING)
        if self._parked:
            seen |= places.state == State.ARRIVED
        fraction = places.fraction
        if places.xy is not None:
            xy, link = places.xy, places.link
            # Coordinates say how a vehicle went; how far it is along its link only some of these engines know.
            tangent, along = np.zeros((len(places), 2)), np.full(len(places), np.nan)
            seen &= np.isfinite(xy).all(axis=1)
            if self._roads is not None:
                exact = (link >= 0) & (fraction > 0)
                along[exact] = fraction[exact] * self._roads.links.length_m[link[exact]]
        elif self._roads is not None:
            link = places.link
            xy = self._roads.locate(link, fraction)
            ahead = self._roads.locate(link, np.minimum(fraction + _REACH, 1.0))
            tangent = ahead - self._roads.locate(link, np.maximum(fraction - _REACH, 0.0))
            along = fraction * self._roads.links.length_m[link]
        else:
            raise ValueError("an engine without coordinates needs roads")
        return Look(
            np.flatnonzero(seen).astype(np.int32),
            xy[seen],
            tangent[seen].astype(np.float32),
            speeds[seen].astype(np.float32),
            link[seen].astype(np.int32),
            along[seen].astype(np.float32),
        )
