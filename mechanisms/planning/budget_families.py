"""Planned family that divides the devices among the queries: each device answers at most once (LPA of LDP-IDS).

Over T queries that are observed together, an answer of every device to every query gives each answer about ε/T. If the
devices are divided instead, each of them answers at most once, with the whole ε. Source: Ren, Shi, Yu, Yang, Zhao and
Xu, *LDP-IDS: Local Differential Privacy for Infinite Data Streams*, SIGMOD 2022.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.budget_schedules import AdaptiveBudget
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts
from mechanisms.local.subset_selection import SubsetSelection
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import excess_kurtosis
from mechanisms.planning.search import BUDGET, Family, Shape
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.view import View


@dataclass(frozen=True)
class DividedDevices:
    """Devices that answer at most one of a number of queries, each with the whole budget.

    Parameters
    ----------
    budget : AdaptiveBudget
        The budget, which divides the population; its window is the number of queries.
    rounds : int
        Answers per query, as its observers see them.
    """

    budget: AdaptiveBudget
    rounds: int = 1

    def claim(self, view: View) -> PrivacyClaim:
        """Return what the budget claims."""
        return self.budget.claim(view)

    def answering(self, devices: int) -> int:
        """Return how many of the devices answer a publication question of one unit: N/(2w), rounded."""
        return round(devices * self.budget.answering(1))

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the standard error of cell 1, (1,), where an estimate is published at every query.

        Each is then made of one unit of the devices. Where counts change little, estimates are made at fewer queries
        and from more devices.
        """
        devices = int(true_counts.sum())
        if self.answering(devices) == 0:
            return np.array([math.inf])
        received = ResponseCounts.from_rounds([self.answering(devices)], [devices], rounds=1, truth_round=1)
        return self.budget.mechanism(1).variance(received).std_error(true_counts[1:2])


@excess_kurtosis.register
def _of_the_answers(mechanism: DividedDevices, target: Target) -> float:
    population = max(1, mechanism.answering(target.population))
    occupancy = min(population, mechanism.answering(target.expected))
    answering = replace(target, population=population, occupancy=occupancy, batch=None, crowd=None)
    return excess_kurtosis(mechanism.budget.mechanism(1), answering)


def _divided(target: Target, _: Shape, epsilon: float) -> Candidate:
    budget = AdaptiveBudget(
        lambda epsilon: SubsetSelection(cells=target.cells, epsilon=epsilon), epsilon, target.queries, "population"
    )
    section = {"kind": "population_absorption", "window": target.queries}
    return Candidate(DividedDevices(budget), target, {"epsilon": epsilon}, budget=section)


def _nothing_to_divide(target: Target) -> str | None:
    if target.queries == 1:
        return "The target is about one query: there are none to divide the devices among."
    if target.population < target.queries:
        return f"Of {target.population} devices, divided over {target.queries} queries, less than one answers each."
    return None


DIVIDED = Family(
    "population_absorption",
    BUDGET,
    "the budget ε of all queries",
    (_divided,),
    refusal=_nothing_to_divide,
    kind="subset_selection",
)
