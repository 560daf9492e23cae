"""Motion: where single vehicles were during a run, kept for maps that move.

Of the queue engines the link entries are kept: between two of them a place follows from the link. Of other engines,
which state places only, the places at regular moments are kept.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from simulator.arrays import FloatArray, IntArray, Mask
from simulator.traffic.clock import Clock
from simulator.traffic.fcd import Sampler
from simulator.traffic.physics import ONE_TICK
from simulator.traffic.queue_engine import ARRIVED_AT, QueueEngine
from simulator.traffic.routes import Routes

EVENTS = ("departure", "entry", "arrival")
"""Values of the column `event`: a trip begins, its vehicle enters a link, its vehicle arrives."""
MOST_ENTRIES = 4_000_000
"""Most link entries that are kept, more or less: 2.5 MB in a page."""
MOST_PLACES = 4_000_000
"""Most places at regular moments that are kept if every vehicle is there all the time, which few are."""
_MOMENTS = 360


class Motion(NamedTuple):
    """Where single vehicles were.

    Attributes
    ----------
    entries
        Of queue engines: `vehicle` (int32, in order of departure), `time_s` (float64), `event` (category, one of
        `EVENTS`), `link` (int32: the link of the origin, the link entered, the link of the destination), `lane` (int8:
        the queue of the link that is entered, from the edge of the road, from 0; −1 for other events), `takes_part`
        (bool, whether it answers queries); by vehicle, then by time.
    places
        Of other engines: `vehicle`, `time_s`, `lon`, `lat` (float64, WGS84 degrees), `takes_part`; by vehicle, then by
        time.
    every
        The vehicles, or in `entries` the trips, are those whose number is a multiple of this.
    """

    entries: pd.DataFrame | None = None
    places: pd.DataFrame | None = None
    every: int = 1


def logged_every(routes: Routes) -> int:
    """Return n, a power of 2, such that the links of every n-th route are at most `MOST_ENTRIES`, more or less."""
    return 1 << max(0, math.ceil(math.log2(len(routes.links) / MOST_ENTRIES)))


def moments_every_s(duration_s: float, *, step_s: float) -> float:
    """Return the seconds between two moments at which places are kept: whole steps, some 360 moments in a run."""
    return step_s * max(1, round(duration_s / _MOMENTS / step_s))


def sampled_every(vehicles: int, moments: int) -> int:
    """Return n, such that the places of every n-th vehicle are at most `MOST_PLACES`."""
    return max(1, math.ceil(vehicles * moments / MOST_PLACES))


def motion_of_entries(engine: QueueEngine, clock: Clock, takes_part: Mask, log: IntArray, *, every: int) -> Motion:
    """Return the departures, link entries and arrivals of every n-th trip, at the end of the run.

    `log` is the engine's `log_by_vehicle()`; `every` is a multiple of the engine's `record_entries`. `takes_part`,
    (vehicles,) bool, says whether each vehicle answers queries.
    """
    departed = engine.begun()
    departed = departed[departed % every == 0]
    log = log if every == engine.record_entries else log[log[:, 0] % every == 0]
    before = np.searchsorted(log[:, 0], departed)
    time = np.insert(log[:, 3], before, engine.departure_tick[departed].astype(np.int64) * ONE_TICK)
    trip, link = np.insert(log[:, 0], before, departed), np.insert(log[:, 1], before, -1)
    vehicle = trip if engine.trips.vehicle is None else engine.trips.vehicle[trip]
    lane = np.insert(log[:, 2], before, -1)
    begins = before + np.arange(len(departed))
    link[begins] = engine.first_links(departed)
    event = np.ones(len(link), dtype=np.int64)
    event[begins] = 0
    arrived = np.flatnonzero(link == ARRIVED_AT)
    link[arrived], lane[arrived], event[arrived] = link[arrived - 1], -1, 2
    table = pd.DataFrame(
        {
            "vehicle": vehicle.astype(np.int32),
            "time_s": time / ONE_TICK * clock.step_s,
            "event": pd.Categorical.from_codes(event, categories=pd.Index(EVENTS)),
            "link": link.astype(np.int32),
            "lane": lane.astype(np.int8),
            "takes_part": takes_part[vehicle],
        }
    )
    if vehicle is not trip:
        table = table.sort_values("vehicle", kind="stable", ignore_index=True)
    return Motion(entries=table, every=every)


def motion_of_places(sampler: Sampler, takes_part: Mask) -> Motion:
    """Return the places that a sampler has seen, at the end of the run; `takes_part` as for `motion_of_entries`."""
    samples = sampler.samples()
    time_s: FloatArray = samples.time_s
    table = samples.table[["vehicle", "lon", "lat"]]
    table.insert(1, "time_s", time_s)
    table = table.sort_values(["vehicle", "time_s"], kind="stable", ignore_index=True)
    return Motion(places=table.assign(takes_part=takes_part[table["vehicle"]]), every=sampler.every)
