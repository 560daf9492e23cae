"""Checks of a user's own traffic engine: `check_engine`.

The table lists, in order, the fault that each check finds:

============= ========================================================================================================
interface     `vehicles` or `at` missing or wrong; states that are no `VehicleStates`, or have wrong types or shapes
vehicles      more departed vehicles than `vehicles`, or fewer than at an earlier time; a state that is none
arrived       a vehicle that has arrived and is under way later
places        coordinates that are not finite or far outside the roads; links or fractions out of range
repeatable    other states from equal generators
looks         states that depend on the times of earlier calls
speeds        wrong shapes, or speeds that differ by more than a factor of 3 from the way covered in a second
randomness    use of numpy's or Python's global random numbers
============= ========================================================================================================
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import simpy

from simulator.arrays import FloatArray
from simulator.experiment.assembly.constructors import accepted
from simulator.kits.kit import check_randomness, report_of, small_city
from simulator.kits.mechanisms.findings import ConformanceReport, Findings, SkippedCheckError, checks_of
from simulator.roads import RoadNetwork
from simulator.traffic.clock import Clock, after_traffic
from simulator.traffic.engine import State, VehicleStates
from simulator.traffic.own_engine import UserEngine, copied, speeds_fault, state_faults

DURATION_S, EVERY_S = 600.0, 15.0
_BESIDE = 0.1
"""Greatest distance outside the extent of the roads, as a share of the extent."""
_FACTOR = 3.0
_SLACK_M = 1.0


@dataclass(frozen=True, eq=False)
class EngineTrial:
    """Roads, the function that makes an engine, and what the first one returned at each of some times."""

    roads: RoadNetwork
    make: Callable[[], Any]
    vehicles: int
    times_s: Sequence[float]
    states: list[VehicleStates]
    speeds: list[FloatArray]

    def again(self, looks: slice = slice(None)) -> list[VehicleStates]:
        """Return the states of another engine with an equal generator, asked at some of the times."""
        return _watch(self.make(), self.times_s[looks])[0]

    def places(self, states: VehicleStates) -> FloatArray:
        """Return the coordinates of vehicles, metres, (vehicles, 2)."""
        return states.xy_on(self.roads)


def _prepare(make: Callable[..., Any], seed: int, _: Findings) -> EngineTrial:
    roads = small_city()
    given = {"roads": roads, "duration_s": DURATION_S, "step_s": 1.0, "bounds": roads.bounds}

    def make_one() -> Any:
        return make(**accepted(make, {**given, "rng": np.random.default_rng(seed)}))

    engine = make_one()
    vehicles = UserEngine(engine, kind="engine", roads=roads, clock=Clock()).vehicles
    times_s = [start + after for start in np.arange(0.0, DURATION_S, EVERY_S).tolist() for after in (0.0, 1.0)]
    return EngineTrial(roads, make_one, vehicles, times_s, *_watch(engine, times_s))


def _watch(engine: Any, times_s: Sequence[float]) -> tuple[list[VehicleStates], list[FloatArray]]:
    """Return the states and speeds of an engine at some times, ascending; raise `InputError` for no states.

    Of an engine without speeds there are none.
    """
    env, states, speeds = simpy.Environment(), [], []
    has_speeds, start, close = (callable(getattr(engine, name, None)) for name in ("speeds", "start", "close"))

    def look() -> Generator[simpy.Event, None, None]:
        for time_s in times_s:
            yield after_traffic(env, time_s)
            states.append(copied(engine.at(time_s)))
            if has_speeds:
                speeds.append(np.array(engine.speeds(time_s), dtype=np.float64))

    try:
        if start:
            engine.start(env)
        env.process(look())
        env.run(until=np.nextafter(times_s[-1], np.inf))
    finally:
        if close:
            engine.close()
    return states, speeds


def _expect_none(trial: EngineTrial, findings: Findings, *subjects: str) -> None:
    """Record the faults of all states that are about some subjects; of each subject at the first time with one."""
    before = trial.states[0]
    for time_s, states in zip(trial.times_s, trial.states, strict=True):
        faults = state_faults(states, before, vehicles=trial.vehicles, links=len(trial.roads.links))
        findings.faults += [f"at({time_s:g}) {fault}" for subject, fault in faults if subject in subjects]
        if findings.faults:
            return
        before = states


def check_vehicles(trial: EngineTrial, findings: Findings) -> None:
    """Check that vehicles are neither lost nor more than planned, and that each has a state."""
    _expect_none(trial, findings, "vehicles", "states")
    findings.figures["departed"] = len(trial.states[-1])


def check_arrived(trial: EngineTrial, findings: Findings) -> None:
    """Check that vehicles that have arrived stay so."""
    _expect_none(trial, findings, "arrived")


def check_places(trial: EngineTrial, findings: Findings) -> None:
    """Check that places are known, and near the roads."""
    _expect_none(trial, findings, "places")
    low, high = np.reshape(trial.roads.bounds, (2, 2))
    beside = _BESIDE * (high - low)
    for time_s, states in zip(trial.times_s, trial.states, strict=True):
        if states.xy is None:
            continue
        far = ((states.xy < low - beside) | (states.xy > high + beside)).any(axis=1) & (states.state != State.ABSENT)
        if far.any():
            x, y = states.xy[far][0].tolist()
            findings.fault(f"at({time_s:g}) has vehicle {far.argmax()} at ({x:.1f}, {y:.1f}), far from the roads")
            return


def check_repeatable(trial: EngineTrial, findings: Findings) -> None:
    """Check that a second engine with an equal generator has equal states."""
    _expect_equal(trial, findings, slice(None), "returns other states with an equal generator")


def check_looks(trial: EngineTrial, findings: Findings) -> None:
    """Check that an engine that is asked at fewer times has the same states at those."""
    _expect_equal(trial, findings, slice(1, None, 5), "returns other states if it is asked less often")


def _expect_equal(trial: EngineTrial, findings: Findings, looks: slice, fault: str) -> None:
    """Expect that another engine, asked at some of the times, has the same states."""
    times_s, close = trial.times_s[looks], partial(np.allclose, equal_nan=True)
    for time_s, seen, again in zip(times_s, trial.states[looks], trial.again(looks), strict=True):
        equal = np.array_equal(seen.state, again.state) and np.array_equal(seen.link, again.link)
        same_xy = seen.xy is again.xy if seen.xy is None or again.xy is None else equal and close(seen.xy, again.xy)
        if not (equal and close(seen.fraction, again.fraction) and same_xy):
            findings.fault(f"at({time_s:g}) {fault}")
            return


def check_speeds(trial: EngineTrial, findings: Findings) -> None:
    """Check speeds against the distance covered in a second, over all vehicles on the road together."""
    if not trial.speeds:
        raise SkippedCheckError("it has no method speeds(time_s): it cannot serve campaigns of speeds")
    for time_s, states, speeds in zip(trial.times_s, trial.states, trial.speeds, strict=True):
        fault = speeds_fault(speeds, states)
        if not fault and (speeds[states.state != State.ON_ROAD] > 0).any():
            fault = "must be 0 for vehicles that are not on the road"
        if fault:
            findings.fault(f"speeds({time_s:g}) {fault}")
            return
    stated = covered = steps = 0.0
    for i in range(0, len(trial.states) - 1, 2):
        now, later = trial.states[i], trial.states[i + 1]
        on = np.flatnonzero((now.state == State.ON_ROAD) & (later.state[: len(now)] == State.ON_ROAD))
        stated += float((trial.speeds[i][on] + trial.speeds[i + 1][on]).sum()) / 2
        moved = trial.places(later)[on] - trial.places(now)[on]
        covered += float(np.hypot(*moved.T).sum())
        steps += len(on)
    findings.figures |= {"stated_m": round(stated, 1), "covered_m": round(covered, 1)}
    least, most = sorted((stated, covered))
    fault = f"speeds add up to {stated:,.1f} m in steps of a second, in which vehicles cover {covered:,.1f} m"
    findings.expect(most <= _FACTOR * least + _SLACK_M * steps, fault)


CHECKS = {**checks_of(globals()), "randomness": check_randomness}


def check_engine(make: Callable[..., Any], *, seed: int = 0) -> ConformanceReport:
    """Run all checks on an engine, over ten minutes of a small generated city, and return every fault.

    Parameters
    ----------
    make
        A class or function that makes the engine, called with those of ``roads``, ``duration_s``, ``step_s``, ``rng``
        and ``bounds`` that it has parameters for. Several are made.
    seed
        Seed of the generators, 0 or above.

    Returns
    -------
    ConformanceReport
        The result of each check; its ``raise_for_failures`` raises an error if any failed.
    """
    return report_of(make, _prepare, CHECKS, seed)
