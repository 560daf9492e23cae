"""Budget schedules: a budget ε that covers any w consecutive queries of a campaign, as in LDP-IDS.

Source: Ren, Shi, Yu, Yang, Zhao and Xu, *LDP-IDS: Local Differential Privacy for Infinite Data Streams*, SIGMOD 2022.
LBU (uniform) asks each query with ε/w; `uniform_budget` is all that it needs. LPU (population uniform) asks 1/w of the
devices at each query, with the whole ε. LBA (budget absorption) and LPA (population absorption) ask up to two questions
at a query. The reports to the first one, the dissimilarity question, show how far the counts have moved from the last
release. Only if they have moved further than a new estimate would err is the second one asked, the publication
question; else the last release is published again.

Half of the budget is for each question, in units of ε/(2w), or of 1/(2w) of the devices. A dissimilarity question uses
one unit; a publication question uses its own unit and the units of the queries since the last publication, at most w.
As many queries minus one after it may then not publish ("nullified" in the paper). Here they do not ask the
dissimilarity question either, because its answer would have no effect.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, TypeVar

import numpy as np

from mechanisms.compiled import Floats, expit
from mechanisms.local.common.frequency_oracle import BudgetedProtocol
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.parameter import check_integer
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.report_claims import MirrorDelta, released_reports_claim
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, Report, Shuffled
from mechanisms.privacy.view_claims import ViewClaims

Division = Literal["budget", "population"]
Answered = TypeVar("Answered", Report, Shuffled, ReleasedCounts)


def uniform_budget(epsilon: float, window: int) -> float:
    """Return ε/w, the budget of each query of LBU."""
    return epsilon / check_integer("window", window, at_least=1)


def most_units(queries: int, window: int) -> int:
    """Return the most units that the publications of any T consecutive queries use: max(T, w).

    Let the publications in the T queries use u₁, …, u_m units. The units of one publication are the units of the u
    queries that end with it. As the u − 1 queries after it are nullified, they may as well be counted as the units of
    the u queries that begin with it. Count the first publication forwards and all others backwards: for m > 1 these
    ranges are disjoint and within the T queries. One publication alone uses at most w.
    """
    return max(queries, window)


class PublicationUnits:
    """The w units of the publication budget, and which of them a query may use.

    A unit is used again no earlier than w queries after its last use: by `most_units`, at least as many units as are
    available have not been used in the last w − 1 queries, and those that were used longest ago are taken first.

    Parameters
    ----------
    window : int
        w, at least 1.
    """

    def __init__(self, window: int) -> None:
        self._window = check_integer("window", window, at_least=1)
        self._saved_from = 1
        self._used_at = [1 - window] * window

    def available(self, query: int) -> int:
        """Return how many units a publication at this query would use; 0 if the query is nullified."""
        return min(max(query - self._saved_from + 1, 0), self._window)

    def take(self, query: int) -> tuple[int, ...]:
        """Use all available units at this query, and nullify as many queries minus one after it.

        Parameters
        ----------
        query : int
            From 1, above the query of any earlier call.

        Returns
        -------
        tuple of int
            The units, each in 0…w − 1.
        """
        units = sorted(range(self._window), key=lambda unit: (self._used_at[unit], unit))[: self.available(query)]
        for unit in units:
            self._used_at[unit] = query
        self._saved_from = max(self._saved_from, query + len(units))  # a nullified query has no units and saves none
        return tuple(units)


def mean_variance(mechanism: BudgetedProtocol, counts: Floats, *, counted: int, asked: int) -> float:
    """Return the variance of the estimate, averaged over the cells; infinite if no report is counted.

    Parameters
    ----------
    mechanism : BudgetedProtocol
    counts : (cells,) float64
        Unbiased estimates of the true counts, not clipped: the variance is nearly linear in them, so its average is
        estimated without bias, which clipped counts would cause.
    counted, asked : int
        Reports counted, a random sample of the devices asked.
    """
    received = ResponseCounts.from_rounds([counted], [asked], rounds=1, truth_round=1)
    return math.inf if received.silent else float(np.mean(mechanism.variance(received).at(counts)))


def estimate_dissimilarity(
    mechanism: BudgetedProtocol, counts: Floats, release: Floats, *, counted: int, asked: int
) -> float:
    """Return the unbiased estimate of the mean squared difference between the true counts and the last release.

    It is the mean of (c − r)² over the cells minus the mean variance of c (LDP-IDS, LBA and LPA, dis). It may be
    negative; it is −∞ if no report was counted.

    Parameters
    ----------
    mechanism : BudgetedProtocol
        The mechanism of the dissimilarity question.
    counts : (cells,) float64
        c, its unbiased estimate.
    release : (cells,) float64
        r, the last release.
    counted, asked : int
        Reports counted, a random sample of the devices asked.
    """
    noise = mean_variance(mechanism, counts, counted=counted, asked=asked)
    return float(np.mean(np.square(counts - release))) - noise


@dataclass(frozen=True, eq=False)
class AdaptiveBudget(ViewClaims):
    """LBA or LPA for one mechanism: what each question asks, which devices it asks, and what their reports reveal.

    The first query always publishes; the paper compares it with a release of zeros.

    Parameters
    ----------
    make : callable
        Returns the mechanism with a given ε.
    epsilon : float
        ε of any w consecutive queries.
    window : int
        w, at least 1.
    divides : {"budget", "population"}
        "budget" (LBA): all devices answer each question, with their units of ε/(2w). "population" (LPA): each device
        belongs to one of 2w groups, w for dissimilarity and w for publication, and a question is answered by the groups
        of its units, with the whole ε.

    Raises
    ------
    ParameterError
        If the window is below 1, or the mechanism refuses ε or ε/(2w).
    """

    make: Callable[[float], BudgetedProtocol]
    epsilon: float
    window: int
    divides: Division
    rounds: ClassVar[int] = 2
    truth_round: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_integer("window", self.window, at_least=1)
        object.__setattr__(self, "cells", self.mechanism(1).cells)

    @property
    def parts(self) -> int:
        """The number of groups into which LPA divides the devices, 2w."""
        return 2 * self.window

    @cached_property
    def _made(self) -> Callable[[float], BudgetedProtocol]:
        return lru_cache(maxsize=None)(self.make)

    def mechanism(self, units: int) -> BudgetedProtocol:
        """Return the mechanism of a question that uses this number of units."""
        return self._made(self.epsilon * units / (2 * self.window) if self.divides == "budget" else self.epsilon)

    def answering(self, units: int) -> float:
        """Return the expected share of the devices that answer a question of this number of units."""
        return 1.0 if self.divides == "budget" else units / (2 * self.window)

    def publishes(self, dissimilarity: float, release: Floats, *, units: int, asked: int) -> bool:
        """Return whether a new estimate is expected to err less than the last release.

        Parameters
        ----------
        dissimilarity : float
            As of `estimate_dissimilarity`.
        release : (cells,) float64
            The last release, at which the error of a new estimate is computed.
        units : int
            Units that it would use.
        asked : int
            Devices of the query. The error is that without loss of reports.
        """
        counted = round(asked * self.answering(units))
        return dissimilarity > mean_variance(self.mechanism(units), release, counted=counted, asked=asked)

    def groups(self, query: int, units: Iterable[int] | None = None) -> tuple[int, ...]:
        """Return the groups of devices that answer a question of LPA, each in 0…2w − 1.

        Parameters
        ----------
        query : int
            From 1.
        units : iterable of int, optional
            The units of a publication question; by default the question is about dissimilarity.
        """
        return ((query - 1) % self.window,) if units is None else tuple(self.window + unit for unit in units)

    def claim_report(self, view: Report | LinkedReports | Shuffled) -> Claim:
        """Return the claim of all reports of the device to T consecutive queries.

        Which questions are asked depends on earlier reports, so no amplification by shuffling is claimed.
        """
        return self._linked(view.queries)

    claim_linked = claim_shuffled = claim_report

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the same bound for published counts."""
        return released_reports_claim(self._linked(view.queries))

    def _linked(self, queries: int) -> Claim:
        """Return a bound for all reports of one device to T consecutive queries.

        It covers both adjacencies: two sequences of cells may differ at every query. Which questions are asked depends
        on earlier reports. Whatever they are, the likelihoods of the reports under two sequences of cells differ at
        most by the sum of the budgets used, and that sum has the bound stated.
        """
        w = self.window
        if self.divides == "population":
            answers = -(-queries // w)
            return _bound_of_answers(self.mechanism(1).claim(LinkedReports(queries=answers)), answers, queries)
        epsilon = self.epsilon * (queries + most_units(queries, w)) / (2 * w)
        basis = (
            f"The budgets of {queries} consecutive queries sum to at most ε(T + max(T, w))/(2w) = "
            f"{rounded_up(epsilon, 6)}, whichever of them publish; no mechanism with this ε has a larger δ (Kairouz, "
            "Oh and Viswanath 2015)."
        )
        return Claim.bound(epsilon, MirrorDelta(float(expit(epsilon)), epsilon), basis)


@dataclass(frozen=True, eq=False)
class UniformPopulation(ViewClaims):
    """LPU for one mechanism: each device belongs to one of w groups, and the groups answer one query each, in turn.

    A device answers exactly one of any w consecutive queries, with the whole ε.

    Parameters
    ----------
    mechanism : BudgetedProtocol
        The mechanism with the whole ε. It keeps no randomness from query to query.
    window : int
        w, at least 1.

    Raises
    ------
    ParameterError
        If the window is below 1.
    """

    mechanism: BudgetedProtocol
    window: int
    rounds: ClassVar[int] = 1
    truth_round: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_integer("window", self.window, at_least=1)
        object.__setattr__(self, "cells", self.mechanism.cells)

    @property
    def parts(self) -> int:
        """The number of groups into which the devices are divided, w."""
        return self.window

    def groups(self, query: int) -> tuple[int, ...]:
        """Return the group that answers a query, in 0…w − 1; queries are numbered from 1."""
        return ((query - 1) % self.window,)

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of the reports of a device to T consecutive queries; it answers at most ⌈T/w⌉ of them.

        Who sees the reports sees the device's group. If w divides T, all groups answer T/w queries, and the claim is as
        exact as the mechanism's; else it is a bound, as some groups answer one query less.
        """
        claim = self.mechanism.claim_report(self._answered(view))
        return claim if view.queries % self.window == 0 else self._bound(claim, view)

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return a bound for the shuffled reports of the group that answers each query: it holds for every group."""
        return self._bound(self.mechanism.claim_shuffled(self._answered(view)), view)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return a bound for the published counts of the group that answers each query: it holds for every group."""
        return self._bound(self.mechanism.claim_counts(self._answered(view)), view)

    def _answered(self, view: Answered) -> Answered:
        """Return the view of the queries that a device answers, for the group that answers most of them."""
        return replace(view, queries=-(-view.queries // self.window))

    def _bound(self, claim: Claim, view: Answered) -> Claim:
        return _bound_of_answers(claim, self._answered(view).queries, view.queries)


def _bound_of_answers(claim: Claim, answers: int, queries: int) -> Claim:
    """Return the bound for a device that answers at most some of the queries, from the claim of these answers."""
    return claim.as_bound(f"At most {answers} of {queries} queries are answered, each with the whole ε.")
