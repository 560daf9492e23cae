"""Target of a plan: the size of the city, the view, and the privacy or the error to reach."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from mechanisms.parameter import ParameterError, check_choice, check_epsilon, check_integer, to_number
from mechanisms.privacy.view import (
    Adjacency,
    LinkedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shuffled,
    View,
)

RELEASED = ("released", "released_differences", "released_counts")
ROUNDS = ("", "_round_1", "_round_2", "_round_3")
VIEWS = (*(f"report{r}" for r in ROUNDS), "linked_reports", *RELEASED, *(f"shuffled{r}" for r in ROUNDS))
"""Views to plan for. "report" and "shuffled" mean the worst round; "released" means what the mechanism publishes."""

MOST_CELLS, MOST_DEVICES, MOST_QUERIES, MOST_SERVERS = 10**6, 10**12, 10**6, 255


_WHOLE: Mapping[str, tuple[int, int | str | None]] = {
    "cells": (1, MOST_CELLS),
    "population": (1, MOST_DEVICES),
    "occupancy": (0, "population"),
    "queries": (1, MOST_QUERIES),
    "batch": (1, "population"),
    "crowd": (1, None),
    "k": (1, None),
    "servers": (2, MOST_SERVERS),
    "honest": (0, "servers"),
    "simulated": (1, None),
}
"""Least and greatest values of whole numbers; a greatest value may be another field."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """The size of a city, a view, and either the privacy required of that view or the error allowed for a cell.

    The options of commands are made of the fields and of their texts.

    Parameters
    ----------
    cells : CELLS
        V, the number of cells.
    population : DEVICES
        N, the number of devices asked.
    occupancy : DEVICES
        Y, the number of devices expected in a cell. By default N/(V + 1), for devices spread evenly over the cells
        and outside, rounded, but at least 1.
    view
        What the observer sees: report, report_round_1…3, linked_reports, released, released_differences,
        released_counts, shuffled, shuffled_round_1…3. For a mechanism of one round, the view of any round is its
        only report, and it publishes counts where other mechanisms publish differences.
    epsilon
        ε required of the view, with delta.
    delta
        δ, below 1. With error, the δ at which ε is compared.
    error : VEHICLES
        The root mean square error allowed for a cell of occupancy, in vehicles.
    queries : QUERIES
        T, the number of queries observed together.
    adjacency
        The change of one device that the view must not reveal: a move between two cells or outside, or only
        entering or leaving a cell. A plan compares only claims for the same one.
    batch : DEVICES
        Least number of devices whose reports are counted or shuffled together, for which the claims must hold; N by
        default.
    crowd : DEVICES
        Devices that are certain to be in the cell, for released views; for a move in both cells. By default claims
        hold for any truths of the others where that is possible. Mechanisms whose published differences need a
        crowd rely on the occupancy, which a plan states; if k is given, on none.
    k
        Published differences below k are suppressed.
    servers : SERVERS
        Servers that hold shares and add noise to what they publish.
    honest : SERVERS
        How many of these servers do not collude; 0: all operators pool what they have, linked reports.
    published
        Whether the target covers what is published too, besides a view of reports.
    simulated : CELLS
        R, the number of cells of the simulation whose error the plan's interval is for.

    Raises
    ------
    ParameterError
        If a value is out of range, both or neither of `epsilon` and `error` is given, or `crowd` or `k` is given with a
        view that is not released.
    """

    cells: int
    population: int
    occupancy: int | None = None
    view: str = "linked_reports"
    epsilon: float | None = None
    delta: float = 0.0
    error: float | None = None
    queries: int = 1
    adjacency: Adjacency = "move"
    batch: int | None = None
    crowd: int | None = None
    k: int | None = None
    servers: int = 2
    honest: int = 1
    published: bool = True
    simulated: int = 1000

    def __post_init__(self) -> None:
        """Check every value and their combination."""
        check_choice("view", self.view, VIEWS)
        check_choice("adjacency", self.adjacency, get_args(Adjacency))
        for name, (least, most) in _WHOLE.items():
            if (value := getattr(self, name)) is not None:
                limit = getattr(self, most) if isinstance(most, str) else most
                check_integer(name, value, at_least=least, at_most=limit)
        if self.occupancy is None:
            object.__setattr__(self, "occupancy", max(1, round(self.population / (self.cells + 1))))
        if self.honest == 0:  # together all operators hold every device's reports
            for name, value in (("view", "linked_reports"), ("crowd", None), ("k", None)):
                object.__setattr__(self, name, value)
        self._check_goal()
        self._check_crowd()

    def _check_goal(self) -> None:
        """Raise `ParameterError` unless exactly one of `epsilon` and `error` is given, with a valid value."""
        if self.epsilon is None and self.error is None:
            raise ParameterError("epsilon", "must be given if no error is given", None)
        if self.epsilon is not None and self.error is not None:
            raise ParameterError("error", f"must not be given together with epsilon ({self.epsilon:g})", self.error)
        if self.epsilon is not None and math.isinf(check_epsilon(self.epsilon)):
            raise ParameterError("epsilon", "must be finite", self.epsilon)
        if not 0.0 <= to_number(self.delta) < 1.0:
            raise ParameterError("delta", "must be a probability below 1", self.delta)
        if self.error is not None and not 0.0 < to_number(self.error) < math.inf:
            raise ParameterError("error", "must be a finite number of vehicles above 0", self.error)

    def _check_crowd(self) -> None:
        """Raise `ParameterError` for a crowd or a threshold k with a view to which it does not apply."""
        for name in ("crowd", "k"):
            value = getattr(self, name)
            if value is None:
                continue
            if not self.covers_publication:
                left_out = "" if self.published else " alone"
                raise ParameterError(name, f"applies only to a released view, not {self.view}{left_out}", value)
        if self.k is not None and self.view == "released_counts":
            raise ParameterError("k", "applies only to released or released_differences, not released_counts", self.k)
        if self.crowd is not None and self.crowd > self.population:
            raise ParameterError("crowd", f"must be at most the population ({self.population})", self.crowd)

    @property
    def covers_publication(self) -> bool:
        """Whether what is published is among the views; linked reports bound it, whatever the others are."""
        return self.view in RELEASED or (self.published and self.view != "linked_reports")

    @property
    def expected(self) -> int:
        """Y, the occupancy as given or by default."""
        return 0 if self.occupancy is None else self.occupancy

    @property
    def counted(self) -> int:
        """Devices whose reports are counted or shuffled together: the batch, or all."""
        return self.population if self.batch is None else self.batch

    @property
    def known_crowd(self) -> int:
        """The crowd of released differences: as given, or the occupancy."""
        return self.crowd if self.crowd is not None else max(1, self.expected)

    def small_crowd(self, most: int) -> "Target":
        """Return the target with its crowd limited to `most`; unchanged if nothing published counts or k is given."""
        if not self.covers_publication or self.known_crowd <= most or self.k is not None:
            return self
        return replace(self, crowd=most)

    def views(self, *, rounds: int, differences: bool) -> tuple[View, ...]:
        """Return the views of a mechanism that the target refers to; the target must be met for each of them.

        What is published is one of them, unless the target leaves it out.

        Parameters
        ----------
        rounds : int
            Number of rounds per query.
        differences : bool
            Whether the mechanism publishes differences of two rounds' counts rather than its counts.
        """
        if self.view == "linked_reports":
            return (self.linked_view,)
        shows_differences = differences and self.view != "released_counts"
        published = self.differences_view if shows_differences else self.counts_view(differences=differences)
        if self.view in RELEASED:
            return (published,)
        kind, _, round_ = self.view.partition("_round_")
        chosen = range(1, rounds + 1) if rounds == 1 or not round_ else (int(round_),)
        reports = tuple(self.round_view(number, shuffled=kind == "shuffled") for number in chosen)
        # What is published of one round is made of its reports, which bound it.
        return (*reports, published) if self.published and rounds > 1 else reports

    @property
    def linked_view(self) -> LinkedReports:
        """The view of linked reports."""
        return LinkedReports(self.queries, adjacency=self.adjacency)

    @property
    def differences_view(self) -> ReleasedDifferences:
        """The view of published differences."""
        crowd = self.crowd if self.k is not None else self.known_crowd
        return ReleasedDifferences(crowd, self.k, self.queries, adjacency=self.adjacency)

    def counts_view(self, *, differences: bool) -> ReleasedCounts:
        """Return the view of published counts; of a known crowd's counts where their noise cancels in differences."""
        crowd = self.known_crowd if differences else self.crowd
        return ReleasedCounts(crowd, self.queries, self.counted, adjacency=self.adjacency)

    def round_view(self, number: int, *, shuffled: bool) -> Report | Shuffled:
        """Return the view of one round's reports, alone or shuffled."""
        if shuffled:
            return Shuffled(number, self.counted, self.queries, adjacency=self.adjacency)
        return Report(number, self.queries, adjacency=self.adjacency)
