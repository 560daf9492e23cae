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

from mechanisms.conformance.findings import ConformanceReport, Findings
from simulator.conformance.kit import global_random_states, report_of, small_city
from simulator.experiment.build.constructors import METHODS
from simulator.files.errors import InputError
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock
from simulator.traffic.demand.trip_sampling import SamplingOptions, draw_table_trips
from simulator.traffic.demand.trip_table_readers import table_of_frame
from simulator.traffic.paths import ShortestPaths

DURATION_S, VEHICLES = 1200.0, 200


@dataclass(frozen=True, eq=False)
class _Trial:
    """The function that makes a demand, the seed of its random numbers, its trips, and what a run notes of them."""

    make: Callable[[], Any]
    seed: int
    frame: pd.DataFrame
    notes: tuple[str, ...]
    driven: int

    def again(self, roads: RoadNetwork) -> pd.DataFrame:
        """Return the trips of a new demand with an equal generator."""
        return _trips(self.make(), roads, self.seed)


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

    def prepare(findings: Findings) -> _Trial | None:
        roads, own = small_city(), make()
        if missing := [name for name in METHODS["demand"] if not callable(getattr(own, name, None))]:
            findings.fault(f"must have {', '.join(missing)}")
            return None
        frame = _trips(own, roads, seed)
        taking = SamplingOptions(duration_s=DURATION_S)
        paths = ShortestPaths(roads.links, through=roads.through)
        try:
            table = table_of_frame(frame, title="trips")
            demand = draw_table_trips(table, roads, paths, taking, clock=Clock(), rng=np.random.default_rng(seed))
        except InputError as error:
            findings.faults += error.faults
            return None
        return _Trial(make, seed, frame, tuple(demand.notes), len(demand.trips))

    return report_of(getattr(make, "__name__", type(make).__name__), prepare, CHECKS, seed)


def _trips(own: Any, roads: RoadNetwork, seed: int) -> pd.DataFrame:
    trips: pd.DataFrame = own.trips(roads, vehicles=VEHICLES, duration_s=DURATION_S, rng=np.random.default_rng(seed))
    return trips


def check_driven(trial: _Trial, findings: Findings) -> None:
    """Check that at least half of the trips are driven; what a run would note of the others is listed."""
    for note in trial.notes:
        findings.note(note)
    words = f"only {trial.driven} of {len(trial.frame)} trips are driven"
    findings.expect(2 * trial.driven >= len(trial.frame), words)
    findings.figures |= {"trips": len(trial.frame), "driven": trial.driven}


def check_repeatable(trial: _Trial, findings: Findings) -> None:
    """Check that a second demand with an equal generator has equal trips."""
    same = trial.frame.equals(trial.again(small_city()))
    findings.expect(same, "trips returns other trips with an equal generator")


def check_roads(trial: _Trial, findings: Findings) -> None:
    """Check that the roads, which the run uses afterwards, are as before."""
    roads = small_city()
    before = pickle.dumps(roads)
    trial.again(roads)
    findings.expect(pickle.dumps(roads) == before, "trips writes on the roads that it is given")


def check_randomness(trial: _Trial, findings: Findings) -> None:
    """Check that numpy's and Python's global generators are as before."""
    before = global_random_states()
    trial.again(small_city())
    findings.expect(global_random_states() == before, "uses global random numbers: use the given rng")


CHECKS: dict[str, Callable[[_Trial, Findings], None]] = {
    "driven": check_driven,
    "repeatable": check_repeatable,
    "roads": check_roads,
    "randomness": check_randomness,
}
