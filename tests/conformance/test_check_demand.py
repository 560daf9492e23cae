"""The checks of users' demand pass a correct one, and each finds its fault."""

import random  # noqa: TID251 - the fault

import numpy as np
import pandas as pd
import pytest

from simulator.kits.demand import CHECKS, check_demand


class Commuters:
    """Trips from random nodes to the first."""

    def trips(self, roads, *, vehicles, duration_s, rng):
        names, departures = roads.node_names, rng.uniform(0.0, duration_s, vehicles)
        origin = [names[node] for node in rng.integers(1, len(names), vehicles)]
        return pd.DataFrame({"origin": origin, "destination": [names[0]] * vehicles, "departure_s": departures})


class Changed(Commuters):
    def trips(self, roads, *, vehicles, duration_s, rng):
        return self.change(super().trips(roads, vehicles=vehicles, duration_s=duration_s, rng=rng), roads)

    def change(self, frame, roads):
        raise NotImplementedError


class NoFrame(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.to_numpy()


class NoDestination(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.drop(columns="destination")


class UnknownNode(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.assign(origin=["nowhere", *frame["origin"][1:]])


class NotANumber(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.assign(departure_s=np.nan)


class StaysAtHome(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.assign(origin=frame["origin"].where(frame.index < 50, frame["destination"]))


class DepartsTomorrow(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        return frame.assign(departure_s=frame["departure_s"] + 86_400.0 * (frame.index > 50))


class OwnGenerator(Commuters):
    def trips(self, roads, *, vehicles, duration_s, rng):  # noqa: ARG002
        return super().trips(roads, vehicles=vehicles, duration_s=duration_s, rng=np.random.default_rng())


class MovesNodes(Changed):
    def change(self, frame, roads):
        places = roads.node_xy
        places.setflags(write=True)
        places += 1.0
        return frame


class GlobalNumbers(Changed):
    def change(self, frame, roads):  # noqa: ARG002
        random.random()  # noqa: S311
        return frame


class NoTrips:
    """Has another method."""

    def demand(self):
        """Return nothing."""


FAULTS = {
    NoTrips: "interface",
    NoFrame: "interface",
    NoDestination: "interface",
    UnknownNode: "interface",
    NotANumber: "interface",
    StaysAtHome: "driven",
    DepartsTomorrow: "driven",
    OwnGenerator: "repeatable",
    MovesNodes: "roads",
    GlobalNumbers: "randomness",
}


def test_a_correct_demand_passes():
    report = check_demand(Commuters)
    report.raise_for_failures()
    assert report["driven"].figures == {"trips": 200, "driven": 200}


@pytest.mark.parametrize("wrong", FAULTS)
def test_each_fault_is_found(wrong):
    assert [result.name for result in check_demand(wrong).failures] == [FAULTS[wrong]]


def test_every_check_has_a_fault():
    assert set(FAULTS.values()) == {"interface", *CHECKS}
