"""Memory of a run, estimated before it is allocated.

Constants are fitted to the peak resident memory of runs of tiny, grid20, manhattan and rivals with 60 to 3,000,000
vehicles and 9 to 90,000 cells, less the memory of the smallest run (about 400 MB, nearly all of it libraries).
"""

import math
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mechanisms.local import LocalMechanism
from scenarios import Fault, Scenario, ScenarioError
from simulator.experiment.study_area import City
from simulator.files.resources import in_words, shortage
from simulator.traffic.clock import DAY_S
from simulator.traffic.trips import typical_links, vehicles_nbytes

_AGENT = 3_000
"""Bytes of a vehicle's process in engine agents, in addition to what every engine keeps."""
_PROCESS = 1_500.0
"""Bytes per device of the message-level engine in one query of one mechanism, with two rounds of messages."""
_DEVICE = 24
"""Bytes per device and mechanism, if devices answer one by one, in addition to coins."""
_CELL, _ROW = 1_600, 360
"""Bytes per cell, with its name and shapes; per row of `estimates.parquet`, with its part of the report."""
_SEEN = 50
"""Bytes per vehicle and moment of floating-car data."""


class Part(NamedTuple):
    """Memory that one part of a run needs.

    Attributes
    ----------
    field
        Key path of the scenario.
    what
        The part and its size, in words.
    nbytes
        Estimate, bytes.
    """

    field: str
    what: str
    nbytes: float


def check_memory(
    scenario: Scenario,
    city: City,
    mechanisms: Mapping[str, LocalMechanism] | None = None,
    *,
    vehicles: int | None = None,
) -> None:
    """Compare the memory that a run needs with the memory available, before it is allocated.

    Parameters
    ----------
    scenario, city
        The scenario and its study area.
    mechanisms
        By name; by default none, while they are not built.
    vehicles
        Number of vehicles; by default the scenario's.

    Raises
    ------
    ScenarioError
        If the estimate is above the memory available: the message states the field that needs most, the estimate, and
        the memory available.
    """
    parts = sorted(estimate(scenario, city, mechanisms or {}, vehicles=vehicles), key=lambda part: -part.nbytes)
    needed = sum(part.nbytes for part in parts)
    shares = ", ".join(f"{part.what} {in_words(part.nbytes)}" for part in parts[:3] if part.nbytes > needed / 20)
    if problem := shortage(needed, to=f"run this ({shares})"):
        raise ScenarioError(scenario.name, [Fault(parts[0].field, problem)])


def estimate(
    scenario: Scenario, city: City, mechanisms: Mapping[str, LocalMechanism], *, vehicles: int | None = None
) -> Iterator[Part]:
    """Yield the memory that the parts of a run need; parameters as in `check_memory`."""
    traffic: Any = scenario.traffic
    if vehicles is None:
        vehicles = getattr(traffic, "vehicles", None) or 0
    nodes, tours = len(city.roads.node_names) if city.has_roads else 0, getattr(traffic, "tours", None)
    # Of a table whose trips name their vehicle, tours are taken to have as many trips as others.
    trips = vehicles * ((tours.stops + 1) * math.ceil(scenario.scenario.duration_s / DAY_S) if tours else 1)
    moved = vehicles_nbytes(trips, nodes=nodes) + (trips * _AGENT if traffic.engine == "agents" else 0)
    yield Part("traffic.vehicles", f"{vehicles:,} vehicles", moved)
    if scenario.fcd is not None:
        section, duration_s = scenario.fcd, scenario.scenario.duration_s
        moments = ((section.to_s or duration_s) - section.from_s) / section.every_s + 1
        nbytes = moments * (200 + _SEEN * vehicles * _driving(city, duration_s))
        yield Part("fcd.every_s", f"{moments:,.0f} moments", nbytes)
    cells = sum(each.count for each in city.partitions.values())
    queries = sum(one.queries for one in scenario.campaigns)
    refined = sum(len(refinement.mechanisms or scenario.mechanisms) for refinement in scenario.refinements)
    answered = sum(city.divided(one.cells).cells.count * one.queries for one in scenario.campaigns)
    rows = answered * (len(scenario.mechanisms) + refined)
    yield Part("cells", f"{cells:,} cells × {queries:,} queries", cells * _CELL + rows * _ROW)
    outside = scenario.population.outside if scenario.population.answers == "reports" else 0
    reporting = outside + (0 if scenario.population.answers == "counts" else vehicles)
    field = "population.outside" if outside > vehicles else "traffic.vehicles"
    yield Part(field, f"reports of {reporting:,} devices", reporting * _DEVICE * max(1, len(mechanisms)))
    # Only vehicles on the road are asked: in a peak about twice as many as on average.
    driving = 1.0 if traffic.parked == "answer" else min(1.0, 2 * _driving(city, scenario.scenario.duration_s))
    asked = outside + (reporting - outside) * driving
    share = sum(section.share or 0.0 for section in scenario.behaviours)
    acting = asked * len(mechanisms) * (1.0 if scenario.sensing.engine == "messages" else share)
    if acting:
        yield Part(field, f"{acting:,.0f} reports of devices that act for themselves", acting * _PROCESS)
    rng, passing = np.random.default_rng(0), []
    for name, mechanism in mechanisms.items():
        kept, tossed = (_nbytes_per_device(mechanism, coins=coins, rng=rng) for coins in (False, True))
        tallies = math.prod(mechanism.tally_shape) * mechanism.rounds * 8.0 * max(1, queries)
        yield Part(f"mechanisms.{name}", f"memory and tallies of {name}", reporting * kept + tallies)
        # Its coins are for one batch, and freed before the next batch draws its own.
        passing.append(Part(f"mechanisms.{name}", f"coins of {name}", min(asked, mechanism.batch) * tossed))
    yield from sorted(passing, key=lambda part: -part.nbytes)[:1]


def _driving(city: City, duration_s: float) -> float:
    """Return the approximate share of the vehicles that is on the road at a moment."""
    if not city.has_roads:
        return 1.0
    with np.errstate(over="ignore"):  # where it takes for ever, all vehicles are on the road
        crossing_s = float(np.median(city.roads.links.length_m / city.roads.links.speed_mps))
    return min(1.0, typical_links(len(city.roads.node_names)) * crossing_s / duration_s)


def _nbytes_per_device(mechanism: LocalMechanism, *, coins: bool, rng: np.random.Generator) -> float:
    """Return the bytes that a mechanism keeps per device: of its coins in a query, or else from query to query.

    They are an eighth of the difference between nine devices and one.
    """

    def size(devices: int) -> int:
        memory = mechanism.enrol(devices, rng=rng)
        return len(pickle.dumps(mechanism.toss(memory, rng=rng) if coins else memory, protocol=5))

    return max(0.0, (size(9) - size(1)) / 8)
