"""One kind of one's own for each role: mechanism, aggregator, attack, traffic engine, cells and reader of roads."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
import shapely

from crowdveil import (
    CategoricalReports,
    FrequencyOracle,
    Guesses,
    RawNetwork,
    State,
    VehicleStates,
    check_true_counts,
    link_rounds_of,
    normal_estimate,
)


@dataclass(frozen=True, kw_only=True)
class PlainResponse(CategoricalReports, FrequencyOracle):
    """Mechanism: the own cell (0 is outside) with probability p₁, else one of the V + 1 symbols."""

    batch: ClassVar[int] = 2**20

    @property
    def honest(self):
        return math.expm1(self.epsilon) / (math.exp(self.epsilon) + self.cells)

    @property
    def true_yes(self):
        return self.false_yes * math.exp(self.epsilon)

    @property
    def false_yes(self):
        return 1.0 / (math.exp(self.epsilon) + self.cells)

    @property
    def distinguishing(self):
        return self.true_yes

    @property
    def source(self):
        return "the own symbol is e^ε times as likely as any other one"

    def toss(self, memory, *, rng):
        n = memory.devices
        return np.where(rng.random(n) < self.honest, -1, rng.integers(0, self.symbols, n)).astype(np.int32)

    def answer(self, round, truth, coins):  # noqa: A002 - the interface
        self.check_answer(round, truth, len(coins))
        return np.where(coins < 0, truth, coins).astype(np.int32)

    def sample_counts(self, true_counts, *, rng):
        truth = check_true_counts(true_counts, self.cells)
        honest = rng.binomial(truth, self.honest)
        others = rng.multinomial(int((truth - honest).sum()), np.full(self.symbols, 1.0 / self.symbols))
        return (honest + others).astype(np.int64)[np.newaxis]


class TrimmedMean:
    """Aggregator: the mean of several servers' estimates without the lowest and the highest."""

    def __init__(self, servers=5):
        self.servers = servers

    def combine(self, tallies):
        scaled = [tally.scaled for tally in tallies]
        middle = np.sort([one.count for one in scaled], axis=0)[1:-1]
        error = np.median([one.std_error for one in scaled], axis=0) / math.sqrt(len(middle))
        return normal_estimate(middle.mean(axis=0), error, asked=tallies[0].asked_in_all)


class MostFrequent:
    """Attack: the last report of a device names its cell, if it names one."""

    def guess(self, observation, prior, *, rng):  # noqa: ARG002 - it guesses without chance and without the prior
        query, found = observation.queries[0], []
        for linked in link_rounds_of(observation, query, range(1, observation.mechanism.rounds + 1)):
            last = linked.reports[linked.rounds[-1]]
            encoded = last if np.ndim(last) == 2 else observation.mechanism.encode(last)
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


class Ladder:
    """Reader of roads: two long streets with rungs between them."""

    def __init__(self, rungs=5):
        self._rungs = rungs

    def read(self):
        rungs = range(self._rungs)
        nodes = pd.DataFrame(
            [(f"{side}{rung}", 200.0 * rung, 800.0 * (side == "b")) for side in "ab" for rung in rungs],
            columns=["node", "x", "y"],
        )
        ends = [(rung, rung + self._rungs) for rung in rungs]
        ends += [(side + rung, side + rung + 1) for side in (0, self._rungs) for rung in rungs[:-1]]
        links = pd.DataFrame(ends, columns=["from", "to"]).assign(speed=10.0, two_way=True)
        return RawNetwork(nodes=nodes, links=links, crs="EPSG:32632", file="ladder")
