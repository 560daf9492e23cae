"""Mechanisms that only plans have: a trusted server's release, noise that servers add, and devices divided by query.

Over T queries that are observed together, an answer of every device to every query gives each answer about ε/T. If the
devices are divided instead, each of them answers one query, with the whole ε. Source: Ren, Shi, Yu, Yang, Zhao and Xu,
*LDP-IDS: Local Differential Privacy for Infinite Data Streams*, SIGMOD 2022.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.central.release import CountRelease
from mechanisms.compiled import Floats
from mechanisms.local.budget_schedules import UniformPopulation
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.planning.error_distribution import excess_kurtosis
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.integer_noise import IntegerNoise
from mechanisms.privacy.published_sums import known_counts_claim
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, Shuffled, View, possible_adjacency


@dataclass(frozen=True)
class TrustedServer:
    """Devices that report their true cells, and a trusted server that publishes counts through a release.

    Parameters
    ----------
    cells : int
    release : CountRelease
    crowd : int, optional
        Devices in the cell; if None, claims hold for every crowd.
    """

    cells: int
    release: CountRelease
    crowd: int | None
    rounds: int = 1

    def claim(self, view: View) -> Claim:
        """Return what is proved: the release's claim about published views, and no privacy for the server's views."""
        if isinstance(view, ReleasedCounts | ReleasedDifferences):
            adjacency = possible_adjacency(view.adjacency, cells=self.cells)
            return self.release.claim(crowd=self.crowd, queries=view.queries, adjacency=adjacency)
        return NoPrivacy(cells=self.cells).claim(view)

    def std_error(self, true_counts: Counts) -> Floats:
        """Return the root mean square error of cell 1, (1,)."""
        return self.release.std_error(true_counts[1:2])


@dataclass(frozen=True)
class NoisyServers:
    """Devices that share their true cells among servers; each server adds noise to the sums that it publishes.

    Parameters
    ----------
    cells : int
    noise : IntegerNoise
        Of one server on a cell's count.
    honest, servers : int
        Servers whose noise a coalition does not know, and all servers.
    """

    cells: int
    noise: IntegerNoise
    honest: int
    servers: int
    rounds: int = 1

    def claim(self, view: View) -> Claim:
        """Return what is proved about published counts; all servers together hold the reports."""
        if not isinstance(view, ReleasedCounts):
            return NoPrivacy(cells=self.cells).claim(view)
        seen = replace(view, colluding=self.servers - self.honest, servers=self.servers)
        return known_counts_claim(seen, self.noise, two=view.adjacency == "move" and self.cells > 1)

    def std_error(self, true_counts: Counts) -> Floats:  # noqa: ARG002 - the same for every count
        """Return the standard deviation of all servers' noise, (1,)."""
        return np.array([math.sqrt(self.servers * self.noise.variance)])


@excess_kurtosis.register
def _of_servers_noise(mechanism: NoisyServers, target: Target) -> float:  # noqa: ARG001 - the same for every target
    return mechanism.noise.excess_kurtosis / mechanism.servers


@dataclass(frozen=True)
class DividedDevices:
    """Devices divided into a part for each query: each device answers once, with the whole budget.

    Parameters
    ----------
    budget : UniformPopulation
        The budget, which divides the population; its window is the number of queries.
    rounds : int
        Answers per query, as its observers see them.
    """

    budget: UniformPopulation
    rounds: int = 1

    def claim(self, view: View) -> Claim:
        """Return what the budget claims about a view of all devices, where only the part that answers is seen.

        That a number of devices is in the cell does not guarantee that any of them answers.
        """
        if isinstance(view, Shuffled):
            view = replace(view, devices=max(1, self.answering(view.devices)))
        elif isinstance(view, ReleasedCounts):
            counted = None if view.counted is None else max(1, self.answering(view.counted))
            view = replace(view, crowd=None, counted=counted)
        return self.budget.claim(view)

    def answering(self, devices: int) -> int:
        """Return how many of the devices answer a query: N/w, rounded down."""
        return devices // self.budget.window

    def std_error(self, true_counts: Counts) -> Floats:
        """Return the standard error of cell 1, (1,); infinite if fewer devices are asked than there are queries."""
        devices = int(true_counts.sum())
        if self.answering(devices) == 0:
            return np.array([math.inf])
        received = ResponseCounts.from_rounds([self.answering(devices)], [devices], rounds=1, truth_round=1)
        return self.budget.mechanism.variance(received).std_error(true_counts[1:2])


@excess_kurtosis.register
def _of_the_answers(mechanism: DividedDevices, target: Target) -> float:
    population = max(1, mechanism.answering(target.population))
    occupancy = min(population, mechanism.answering(target.expected))
    answering = replace(target, population=population, occupancy=occupancy, batch=None, crowd=None)
    return excess_kurtosis(mechanism.budget.mechanism, answering)
