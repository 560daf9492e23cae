"""One kind of one's own for each role: mechanism, aggregator, attack, traffic engine and cells."""

import math
from itertools import pairwise

import numpy as np
import shapely

from mechanisms.local import Estimate, NoMemory
from mechanisms.parameter import ParameterError
from mechanisms.privacy import PrivacyClaim
from simulator.aggregation.combining import normal_estimate
from simulator.attacks.observation import link_rounds_of
from simulator.attacks.reconstruction import Guesses
from simulator.traffic.engine import State, VehicleStates


class PlainResponse:
    """Mechanism: the true cell with probability p, else any of the V + 1 places (0 is outside)."""

    rounds = truth_round = 1

    def __init__(self, *, cells, truthful=0.5):
        if not 0 < truthful < 1:
            raise ParameterError("truthful", "must be above 0 and below 1", truthful)
        self.cells, self.tally_shape, self.truthful = cells, (cells + 1,), truthful

    def enrol(self, n, *, rng):  # noqa: ARG002 - a device keeps nothing
        return NoMemory(n)

    def toss(self, memory, *, rng):
        return rng.random(memory.devices) < self.truthful, rng.integers(0, self.cells + 1, memory.devices)

    def answer(self, round, truth, coins):  # noqa: A002, ARG002 - the interface
        honest, other = coins
        return np.where(honest, truth, other)

    def encode(self, reports):
        return np.eye(self.cells + 1, dtype=np.int64)[reports]

    def tally(self, reports, where=None):
        return np.bincount(reports if where is None else reports[where], minlength=self.cells + 1).astype(np.int64)

    def estimate(self, counts, *, counted, asked):
        received, devices = counted[0], asked[0]
        if received == 0:
            zero = np.zeros(self.cells)
            return Estimate(zero, zero + (math.inf if devices else 0.0), zero, zero + devices, "normal")
        scale = devices / received / self.truthful
        count = scale * (counts[0, 1:] - received * (1 - self.truthful) / (self.cells + 1))
        # A count of independent reports has a variance of at most that of a fair coin for each.
        error = np.full(self.cells, scale * math.sqrt(received) / 2)
        return normal_estimate(count, error, asked=devices)

    def sample_counts(self, true_counts, *, rng):
        kept = rng.binomial(true_counts, self.truthful)
        places = self.cells + 1
        return (kept + rng.multinomial(int((true_counts - kept).sum()), np.full(places, 1 / places)))[np.newaxis]

    def claim(self, view):  # noqa: ARG002 - nothing is claimed
        return PrivacyClaim.unknown("No claim is made.")


class TrimmedMean:
    """Aggregator: the mean of several servers' estimates without the lowest and the highest."""

    def __init__(self, servers=5):
        self.servers = servers

    def combine(self, tallies):
        scaled = [tally.scaled for tally in tallies]
        middle = np.sort([one.count for one in scaled], axis=0)[1:-1]
        error = np.median([one.std_error for one in scaled], axis=0)
        return normal_estimate(middle.mean(axis=0), error, asked=tallies[0].asked_in_all)


class MostFrequent:
    """Attack: the last report of a device names its cell, if it names one."""

    def guess(self, observation, prior, *, rng):  # noqa: ARG002 - it guesses without chance and without the prior
        query, found = observation.queries[0], []
        for linked in link_rounds_of(observation, query, range(1, observation.mechanism.rounds + 1)):
            encoded = observation.mechanism.encode(linked.reports[linked.rounds[-1]])
            if encoded.ndim == 2 and encoded.shape[1] == observation.mechanism.cells + 1:
                cells = encoded.argmax(axis=1).astype(np.int32)
                found.append(Guesses(query, linked.handle_kind, linked.handles, cells, math.nan))
        return found


class RingRoad:
    """Traffic engine: vehicles drive round a circle in the middle of the city, one lap in twenty minutes."""

    def __init__(self, *, bounds, vehicles=200, lap_s=1200.0):
        x_min, y_min, x_max, y_max = bounds
        self.vehicles, self._lap_s = vehicles, lap_s
        self._centre = np.array([(x_min + x_max) / 2, (y_min + y_max) / 2])
        self._radius = min(x_max - x_min, y_max - y_min) / 3

    def at(self, time_s):
        angle = 2 * np.pi * (np.arange(self.vehicles) / self.vehicles + time_s / self._lap_s)
        xy = self._centre + self._radius * np.column_stack([np.cos(angle), np.sin(angle)])
        return VehicleStates.from_coordinates(np.full(self.vehicles, State.ON_ROAD, dtype=np.uint8), xy)


class Strips:
    """Cells: strips of equal width from west to east."""

    def __init__(self, *, bounds, number=4):
        self._bounds, self._number = bounds, number

    def cell_of(self, xy):
        x_min, y_min, x_max, y_max = self._bounds
        inside = (xy[:, 0] >= x_min) & (xy[:, 0] < x_max) & (xy[:, 1] >= y_min) & (xy[:, 1] <= y_max)
        strip = (xy[:, 0] - x_min) / (x_max - x_min) * self._number
        return np.where(inside, 1 + np.nan_to_num(strip), 0).astype(np.int32)

    def polygons(self):
        x_min, y_min, x_max, y_max = self._bounds
        edges = np.linspace(x_min, x_max, self._number + 1)
        return [shapely.box(west, y_min, east, y_max) for west, east in pairwise(edges)]
