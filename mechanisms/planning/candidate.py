"""Candidate mechanism of a search: parameters, privacy and error."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.mechanism import Counts, NotEstimableError
from mechanisms.parameter import ParameterWarning
from mechanisms.planning.target import Target
from mechanisms.planning.view_bound import Claimant, ViewBound, margin, tell_once
from mechanisms.privacy.view import ReleasedDifferences

LARGEST_EPSILON = 700.0
# The score if there is no estimate: finite, because minimisers need finite scores.
IMPOSSIBLE = 1e300
# The score of an infinite ε: above that of every finite one.
INFINITE = 1e6


class PlannableMechanism(Claimant, Protocol):
    """The part of a mechanism's interface that planning uses."""

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the standard error of every cell."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mechanism with its parameters, to be compared with a target.

    Parameters
    ----------
    mechanism : PlannableMechanism
    target : Target
    parameters : mapping
        As in a scenario file.
    error : callable, optional
        Returns the root mean square error of a cell, if it is not the mechanism's own standard error.
    release : mapping, optional
        What is done to the counts before they are published, as in a scenario file.
    excess_kurtosis : float, optional
        Excess kurtosis of that error, if it is not that of the mechanism's estimate.
    dial : float
        The value of the family's dial.
    rough : bool
        Whether the bounds of views may be approximate, as in a search (`mechanisms.planning.view_bound`).
    cut_short : str, optional
        If the search that found it was cut short: a sentence that states after how many candidates, and how much the
        last ones improved the result.
    """

    mechanism: PlannableMechanism
    target: Target
    parameters: Mapping[str, Any]
    error: Callable[[], float] | None = None
    release: Mapping[str, Any] | None = None
    excess_kurtosis: float | None = None
    dial: float = math.nan
    rough: bool = False
    cut_short: str | None = None

    @cached_property
    def std_error(self) -> float:
        """The root mean square error of a cell of the target's occupancy; infinite if there is no estimate."""
        if self.error is not None:
            return self.error()
        try:
            return float(self.mechanism.std_error(self.target.truth)[0])
        except NotEstimableError:
            return math.inf

    @cached_property
    def differences(self) -> bool:
        """Whether the mechanism publishes differences."""
        if self.mechanism.rounds == 1:
            return False
        return self.mechanism.claim(ReleasedDifferences(1)).kind != "unknown"

    @cached_property
    def told(self) -> tuple[ViewBound, ...]:
        """The bounds of the target's views."""
        views = self.target.views(rounds=self.mechanism.rounds, differences=self.differences)
        devices = self.target.population
        return tuple(tell_once(self.mechanism, view, devices=devices, rough=self.rough) for view in views)

    @cached_property
    def excess(self) -> float:
        """The margin to the target, at most 0 if it is met: of privacy, or ln of the error over its limit."""
        target = self.target
        if target.error is not None:
            return math.log(self.std_error / target.error) if self.std_error > 0.0 else -math.inf
        return self._margin(0.0 if target.epsilon is None else target.epsilon, fixed=self.rough)

    def holds(self, epsilon: float) -> bool:
        """Return whether ε is proved to hold at the target's δ."""
        return self._margin(epsilon) <= 0.0

    def _margin(self, epsilon: float, *, fixed: bool = False) -> float:
        """Return the greatest margin of (ε, the target's δ) over the target's views: at most 0 if it holds for all."""
        return max(margin(told, epsilon, self.target.delta, fixed=fixed) for told in self.told)

    def delta(self, epsilon: float) -> float:
        """Return δ at this ε, the greatest over the target's views; NaN if it is not known for one of them."""
        deltas = [told.delta(epsilon)[0] for told in self.told]
        return math.nan if any(math.isnan(delta) for delta in deltas) else max(deltas)

    @cached_property
    def epsilon(self) -> float:
        """The least ε known at the target's δ; infinite if no finite one is known."""
        delta = self.target.delta
        if delta == 0.0:
            always = max((told.epsilon for told in self.told), default=math.nan, key=_unknown_last)
            return always if math.isfinite(always) else math.inf
        low, high = 0.0, LARGEST_EPSILON if self.target.epsilon is None else self.target.epsilon
        if not self.rough:
            # A plan usually reaches the target's ε exactly. If not, the approximate ε is near the exact one, and a few
            # exact evaluations around it are enough.
            if self.target.epsilon is not None and self.holds(high) and not self.holds(high * (1.0 - 1e-5)):
                return high
            near = replace(self, rough=True).epsilon
            tried = [near * (1.0 + share) for share in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)]
            tried = [*tried, LARGEST_EPSILON] if near < LARGEST_EPSILON else [LARGEST_EPSILON]
            return next((epsilon for epsilon in tried if self.holds(epsilon)), math.inf)
        if self.holds(low):
            return 0.0
        if not self.holds(high):
            high = LARGEST_EPSILON
            if not self.holds(high):
                return math.inf
        while high - low > 1e-6 * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.holds(middle) else (middle, high)
        return high

    @property
    def score(self) -> float:
        """The number to minimise: the error, or ε for an error target. An infinite ε scores by δ at ε = 1."""
        if self.target.error is None:
            return min(self.std_error, IMPOSSIBLE)
        if math.isfinite(self.epsilon):
            return self.epsilon
        delta = self.delta(1.0)
        return INFINITE * (2.0 if math.isnan(delta) else 1.0 + delta)


def _unknown_last(epsilon: float) -> float:
    """Return a sort key for ε that puts NaN, which is unknown, last."""
    return math.inf if math.isnan(epsilon) else epsilon


@contextmanager
def unwarned() -> Iterator[None]:
    """Suppress `ParameterWarning` while mechanisms are made: a search tries parameters that papers advise against."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParameterWarning)
        yield
