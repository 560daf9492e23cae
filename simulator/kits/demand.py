"""Checks of a user's own demand: `check_demand`.

The table lists, in order, the fault that each check finds:

============= ========================================================================================================
interface     the method missing; no data frame, no trips, or columns, nodes or times that a run refuses
driven        fewer than half of the trips driven: the others end where they begin, or depart outside the run
repeatable    other trips from equal generators
roads         roads that are written on
randomness    use of numpy's or Python's global random numbers
============= ========================================================================================================
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from simulator.formats.tables.trips import table_of_frame
from simulator.kits.kit import check_randomness, report_of, require_methods, small_city
from simulator.kits.mechanisms.findings import ConformanceReport, Findings, checks_of
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.synthetic import Demand
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.paths import ShortestPaths

DURATION_S, VEHICLES = 1200.0, 200


@dataclass(frozen=True, eq=False)
class DemandTrial:
    """The function that makes a demand, the seed of its random numbers, its trips, and what a run makes of them."""

    make: Callable[[], Any]
    seed: int
    frame: pd.DataFrame
    drawn: Demand

    def again(self, roads: RoadNetwork | None = None) -> pd.DataFrame:
        """Return the trips of a new demand with an equal generator."""
        return _trips(self.make(), roads or small_city(), self.seed)


def _trips(demand: Any, roads: RoadNetwork, seed: int) -> pd.DataFrame:
    trips: pd.DataFrame = demand.trips(roads, vehicles=VEHICLES, duration_s=DURATION_S, rng=np.random.default_rng(seed))
    return trips


def _prepare(make: Callable[..., Any], seed: int, _: Findings) -> DemandTrial:
    roads, demand = small_city(), make()
    require_methods("demand", demand)
    frame, rng = _trips(demand, roads, seed), np.random.default_rng(seed)
    table, paths = table_of_frame(frame, title="trips"), ShortestPaths.of(roads)
    options = SamplingOptions(duration_s=DURATION_S)
    return DemandTrial(make, seed, frame, draw_table_trips(table, roads, paths, options, clock=Clock(), rng=rng))


def check_driven(trial: DemandTrial, findings: Findings) -> None:
    """Check that at least half of the trips are driven; what a run would note of the others is listed."""
    for note in trial.drawn.notes:
        findings.note(note)
    trips, driven = len(trial.frame), len(trial.drawn.trips)
    findings.expect(2 * driven >= trips, f"only {driven} of {trips} trips are driven")
    findings.figures |= {"trips": trips, "driven": driven}


def check_repeatable(trial: DemandTrial, findings: Findings) -> None:
    """Check that a second demand with an equal generator has equal trips."""
    same = trial.frame.equals(trial.again())
    findings.expect(same, "trips returns other trips with an equal generator")


def check_roads(trial: DemandTrial, findings: Findings) -> None:
    """Check that the roads, which the run uses afterwards, are as before."""
    roads = small_city()
    before = pickle.dumps(roads)
    trial.again(roads)
    findings.expect(pickle.dumps(roads) == before, "trips writes on the roads that it is given")


CHECKS = {**checks_of(globals()), "randomness": check_randomness}


def check_demand(make: Callable[[], Any], *, seed: int = 0) -> ConformanceReport:
    """Run all checks on a demand, asked for 200 vehicles over 20 minutes in a small generated city.

    Parameters
    ----------
    make
        A class or function that makes the demand, called without arguments. Several are made.
    seed
        Seed of the generators, 0 or above.

    Returns
    -------
    ConformanceReport
        The result of each check; its ``raise_for_failures`` raises an error if any failed.
    """
    return report_of(make, _prepare, CHECKS, seed)
