"""What is kept from query to query of a budget that divides devices or ε over a window; a query of LBA or LPA."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from mechanisms.local import (
    AdaptiveBudget,
    Estimate,
    LocalMechanism,
    PublicationUnits,
    UniformPopulation,
    estimate_dissimilarity,
)
from simulator.aggregation.rounds import RoundAccount
from simulator.arrays import FloatArray, IntArray
from simulator.sensing.divided_survey import DividedSurvey
from simulator.sensing.query import Respondents
from simulator.sensing.survey import Survey

BudgetSchedule = AdaptiveBudget | UniformPopulation
NOT_ASKED = RoundAccount(asked=0, answered=0, counted=0)
PUBLICATION = "publication"
"""Name of the publication question, which is asked when the moment that it is about has passed."""
MakeSurvey = Callable[[LocalMechanism, str], Survey | DividedSurvey]


@dataclass(eq=False)
class Release:
    """An estimate that was published, and what only the simulator knows about it.

    Attributes
    ----------
    estimate
        As published.
    std_error
        (cells,) float64: its theoretical standard error for the truth of its query.
    truth
        (cells,) int64: that truth.
    """

    estimate: Estimate
    std_error: FloatArray
    truth: IntArray


@dataclass(eq=False)
class BudgetHistory:
    """What one mechanism keeps from query to query of a campaign.

    Attributes
    ----------
    budget
        The division of the budget.
    groups
        (fleet,) int64: each vehicle's group, below `budget.parts`. Each device draws its group uniformly, once for the
        campaign and before any truth is known; it keeps the group while it is not on the road. (In the paper the server
        draws the devices of each question from those that have not answered in the window. Vehicles that have just
        departed would then be drawn more often than others, which would bias the estimates.)
    outside
        (parts,) int64: the number of devices outside every cell in each group.
    units
        The units of the publication budget of an adaptive one.
    queries
        The number of queries asked so far.
    release
        The last release; None before the first query is closed.
    """

    budget: BudgetSchedule
    groups: IntArray
    outside: IntArray
    units: PublicationUnits
    queries: int = 0
    release: Release | None = None

    @classmethod
    def begin(cls, budget: BudgetSchedule, *, fleet: int, outside: int, rng: np.random.Generator) -> Self:
        """Return the history before the first query, of a number of vehicles and of devices outside every cell."""
        groups = rng.integers(budget.parts, size=fleet)
        counts = rng.multinomial(outside, np.full(budget.parts, 1.0 / budget.parts))
        return cls(budget, groups, counts, PublicationUnits(budget.window))

    def members(
        self,
        present: Respondents,
        groups: tuple[int, ...],
        *,
        vehicles: IntArray,
        asked: Respondents,
        rng: np.random.Generator,
    ) -> Respondents:
        """Return the devices of some groups that are present.

        Parameters
        ----------
        present
            All devices that are present.
        groups
            The numbers of the groups.
        vehicles
            (vehicles,) int64 numbers of the vehicles asked.
        asked
            The devices asked.
        rng
            Generator of the devices outside every cell that remain in the groups when some have left.
        """
        of_outside = int(self.outside[list(groups)].sum())
        if present.outside < asked.outside:
            of_outside = int(rng.hypergeometric(of_outside, asked.outside - of_outside, present.outside))
        return Respondents(present.vehicles & np.isin(self.groups[vehicles], groups), of_outside)


@dataclass(eq=False)
class AdaptiveSurvey:
    """Asks the dissimilarity question and, if a new estimate is worth it, the publication question.

    It has the methods of `Survey`, with a round for each question. The publication question is about the cells of the
    moment of truth, and is asked one round gap later, when the reports to the first question have arrived. A question
    that is not asked has an account of zeros. If no report to the publication question is counted, the last release is
    published again.

    Parameters
    ----------
    history
        The state of the mechanism, which the query updates.
    vehicles
        (vehicles,) int64 numbers of the vehicles asked.
    asked
        The devices asked.
    make
        Makes the survey of a question from its mechanism and its name.
    rng
        Generator of the devices outside every cell that remain in each group when some have left.
    """

    history: BudgetHistory
    vehicles: IntArray
    asked: Respondents
    make: MakeSurvey
    rng: np.random.Generator
    paired: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Give the query the next number."""
        self.history.queries += 1
        self._number = self.history.queries
        self._seen: dict[str, Any] = {}
        self._dissimilarity: Survey | DividedSurvey | None = None
        self._publication: Survey | DividedSurvey | None = None
        self._accounts = [NOT_ASKED, NOT_ASKED]
        self._published = False

    @property
    def mechanism(self) -> AdaptiveBudget:
        """The division of the budget, which states the rounds."""
        return cast("AdaptiveBudget", self.history.budget)

    def ask(self, round_: int, *, moment: int, at_s: float, present: Respondents, **seen: Any) -> None:
        """Ask the question of a round, unless it is not needed; parameters as of `Survey.ask`."""
        budget, units = self.mechanism, self.history.units
        if round_ == 1:
            self._seen = {name: values for name, values in seen.items() if name != "blocked"}
            if self.history.release is not None and units.available(self._number):
                self._dissimilarity = self._make(1, "dissimilarity")
                there = self._answering(present, budget.groups(self._number))
                self._dissimilarity.ask(1, moment=moment, at_s=at_s, present=there, **seen)
        elif self._needs_estimate():
            taken = units.take(self._number)
            self._publication = self._make(len(taken), PUBLICATION)
            there = self._answering(present, budget.groups(self._number, taken))
            # About the cells of the moment of truth, from where devices are now.
            self._publication.ask(1, moment=moment, at_s=at_s, present=there, **{**seen, **self._seen})

    def _make(self, units: int, question: str) -> Survey | DividedSurvey:
        return self.make(cast("LocalMechanism", self.mechanism.mechanism(units)), question)

    def _needs_estimate(self) -> bool:
        """Close the dissimilarity question, and return whether the publication question is to be asked."""
        units, release = self.history.units.available(self._number), self.history.release
        if release is None:
            return True
        if self._dissimilarity is None:
            return False
        estimate, accounts = self._dissimilarity.close()
        self._accounts[0] = accounts[0]
        last, asked = release.estimate.count, self.asked.devices
        moved = estimate_dissimilarity(
            self.mechanism.mechanism(1), estimate.count, last, counted=accounts[0].counted, asked=asked
        )
        return units > 0 and self.mechanism.publishes(moved, last, units=units, asked=asked)

    def _answering(self, present: Respondents, groups: tuple[int, ...]) -> Respondents:
        """Return the devices present that answer: all of them, or the devices of some groups."""
        if self.mechanism.divides == "budget":
            return present
        return self.history.members(present, groups, vehicles=self.vehicles, asked=self.asked, rng=self.rng)

    def close(self) -> tuple[Estimate, list[RoundAccount]]:
        """Return the estimate that is published, new or again, and the accounts of both questions."""
        release = self.history.release
        if self._publication is not None:
            estimate, accounts = self._publication.close()
            self._accounts[1] = accounts[0]
            self._published = release is None or accounts[0].counted > 0
            if self._published:
                cells = len(estimate)
                release = Release(estimate, np.full(cells, np.nan), np.zeros(cells, dtype=np.int64))
                self.history.release = release
        self._release = cast("Release", release)  # without an earlier release, the query has published
        return self._release.estimate, self._accounts

    def std_error(self, true_counts: IntArray) -> FloatArray:
        """Return the theoretical error of what is published, (cells,); call it after `close`.

        For a new estimate it is the standard error. For a release that is published again it is the root of the
        variance that it had plus the square of the change of the truth since then. It does not take into account that a
        release is kept more often if its own error makes it look close to the current counts.
        """
        truth, release = true_counts[1:], self._release
        if self._published and self._publication is not None:
            release.std_error, release.truth = self._publication.std_error(true_counts), truth.copy()
        error: FloatArray = np.hypot(release.std_error, truth - release.truth)
        return error

    def recorded(self, occupancy: IntArray, time_s: float) -> None:
        """Return None: no attack on such a campaign is supported, so no device's reports are recorded."""
