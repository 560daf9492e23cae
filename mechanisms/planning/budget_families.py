"""Planned family that divides the devices among the queries: each device answers one of them (LPU of LDP-IDS).

Over T queries that are observed together, an answer of every device to every query gives each answer about ε/T. If the
devices are divided instead, each of them answers one query, with the whole ε. Source: Ren, Shi, Yu, Yang, Zhao and Xu,
*LDP-IDS: Local Differential Privacy for Infinite Data Streams*, SIGMOD 2022.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.budget_schedules import UniformPopulation
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import excess_kurtosis
from mechanisms.planning.search import BUDGET, Family, Shape
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.view import ReleasedCounts, Shuffled, View


@dataclass(frozen=True)
class DividedDevices:
    """Devices of which a part answers each of a number of queries, each device once, with the whole budget.

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
        """Return what the budget claims about a view of all devices, of which only the part that answers is seen.

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

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:
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


def _divided(target: Target, _: Shape, epsilon: float) -> Candidate:
    budget = UniformPopulation(SubsetSelection(cells=target.cells, epsilon=epsilon), target.queries)
    section = {"kind": "population_uniform", "window": target.queries}
    return Candidate(DividedDevices(budget), target, {"epsilon": epsilon}, budget=section)


def _nothing_to_divide(target: Target) -> str | None:
    if target.queries == 1:
        return "The target is about one query: there are none to divide the devices among."
    if target.population < target.queries:
        return f"Of {target.population} devices, divided over {target.queries} queries, less than one answers each."
    return None


def _depends_on_change(target: Target) -> str:
    return _nothing_to_divide(target) or (
        "Its error depends on how much the counts change from query to query, which a target does not state. Where "
        "every query publishes a new estimate, that is made from half of the devices that population_uniform asks."
    )


def _family(name: str, refusal: Callable[[Target], str | None]) -> Family:
    letter = "the budget ε of all queries"
    return Family(name, BUDGET, letter, (_divided,), refusal=refusal, kind="subset_selection")


DIVIDED = (
    _family("population_uniform", _nothing_to_divide),
    _family("population_absorption", _depends_on_change),
)
