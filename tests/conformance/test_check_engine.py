"""The checks of users' engines pass correct ones, and each finds its fault."""

# ruff: noqa: ARG002 - interfaces have parameters that simple examples do not use

import random  # noqa: TID251 - the fault

import numpy as np
import pytest
from own_parts import Drones

from simulator.kits.engines import CHECKS, check_engine
from simulator.traffic.engine import State, VehicleStates


class OfStates(Drones):
    """Drones whose states a function changes."""

    # ruff: noqa: ARG002 - interfaces have parameters that simple examples do not use

    def change(self, state, xy, time_s):
        raise NotImplementedError

    def at(self, time_s):
        states = super().at(time_s)
        return VehicleStates.from_coordinates(*self.change(states.state.copy(), states.xy.copy(), time_s))


class LosesArrived(OfStates):
    def change(self, state, xy, time_s):
        return state[state != State.ARRIVED], xy[state != State.ARRIVED]


class DepartsAgain(OfStates):
    def change(self, state, xy, time_s):
        return np.where(time_s % 30 < 15, state, State.ON_ROAD), xy


class FarAway(OfStates):
    def change(self, state, xy, time_s):
        return state, xy + 10_000.0


class NotFinite(OfStates):
    def change(self, state, xy, time_s):
        xy[1:2] = np.nan
        return state, xy


class NoState(OfStates):
    def change(self, state, xy, time_s):
        return np.zeros_like(state), xy


class MoreThanPlanned(Drones):
    def __init__(self, *, bounds, duration_s, rng):
        super().__init__(bounds=bounds, duration_s=duration_s, rng=rng)
        self.vehicles = 50


class OwnGenerator(Drones):
    def __init__(self, *, bounds, duration_s):
        super().__init__(bounds=bounds, duration_s=duration_s, rng=np.random.default_rng())


class DrawsAtEachLook(OfStates):
    def __init__(self, *, bounds, duration_s, rng):
        super().__init__(bounds=bounds, duration_s=duration_s, rng=rng)
        self.rng = rng

    def change(self, state, xy, time_s):
        return state, xy + self.rng.uniform(-5.0, 5.0, size=xy.shape)


class KilometresPerHour(Drones):
    def speeds(self, time_s):
        return super().speeds(time_s) * 3.6


class GlobalNumbers(Drones):
    def at(self, time_s):
        np.random.random()  # noqa: NPY002 - the fault
        return super().at(time_s)


class PythonsNumbers(Drones):
    def at(self, time_s):
        random.random()  # noqa: S311 - the fault
        return super().at(time_s)


class Tuples(Drones):
    def at(self, time_s):
        states = super().at(time_s)
        return states.state, states.xy


class WithoutVehicles:
    def at(self, time_s):
        return None


BROKEN = {
    LosesArrived: "vehicles",
    MoreThanPlanned: "vehicles",
    NoState: "vehicles",
    DepartsAgain: "arrived",
    FarAway: "places",
    NotFinite: "places",
    OwnGenerator: "repeatable",
    DrawsAtEachLook: "looks",
    KilometresPerHour: "speeds",
    GlobalNumbers: "randomness",
    PythonsNumbers: "randomness",
    Tuples: "interface",
    WithoutVehicles: "interface",
}


class WithoutSpeeds(Drones):
    speeds = None


class InSteps(Drones):
    """Drones whose states a process of their own takes at each whole tick."""

    def start(self, env):
        def move():
            while True:
                self.now = super(InSteps, self).at(env.now)
                yield env.timeout(1)

        env.process(move())

    def at(self, time_s):
        return self.now

    def speeds(self, time_s):
        return np.where(self.now.state == State.ON_ROAD, self.speed_mps, 0.0)


@pytest.mark.parametrize("engine", [Drones, WithoutSpeeds, InSteps])
def test_correct_engines_pass(engine):
    report = check_engine(engine, seed=1)
    assert report.passed, str(report)
    assert [result.name for result in report.results] == ["interface", *CHECKS]
    assert report["speeds"].status == ("skipped" if engine is WithoutSpeeds else "passed")


@pytest.mark.parametrize("broken", BROKEN)
def test_each_fault_is_found_by_its_check(broken):
    report = check_engine(broken)
    assert report[BROKEN[broken]].status == "failed", str(report)
