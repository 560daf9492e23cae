"""Candidate of a search: a mechanism's parameters, its error, and the tightest proved bounds of the target's views.

A search evaluates hundreds of margins to a target (ε, δ), which may be approximate. The result of a search is checked
with the claims themselves.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq

from mechanisms.compiled import Floats
from mechanisms.local.common.base import BaseMechanism
from mechanisms.local.common.protocol_mechanism import ProtocolMechanism
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, NotEstimableError
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.planning.target import Target
from mechanisms.privacy.blanket import BlanketDelta, VariationRatioDelta
from mechanisms.privacy.claim import LARGEST_EPSILON, Claim, LeastDelta
from mechanisms.privacy.composition import ComposedCurve, ComposedDelta, composed
from mechanisms.privacy.published_sums import AnyTruthsDelta, SumsDelta
from mechanisms.privacy.released import ReleasedDelta
from mechanisms.privacy.shuffled import AmplifiedDelta, ClonesDelta, shuffled_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Shuffled, View


class PlannableMechanism(Protocol):
    """The part of a mechanism's interface that planning uses."""

    @property
    def rounds(self) -> int:
        """Number of answers that a device gives per query."""

    def claim(self, view: View) -> Claim:
        """Return what is proved about this view."""

    def std_error(self, true_counts: Counts) -> Floats:
        """Return the standard error of every cell, of cell 1 at least."""


def margin(claim: Claim, epsilon: float, delta: float, *, fixed: bool = False) -> float:
    """Return the margin of (ε, δ): at most 0 if it is proved, else the excess of ε, or ln of δ over its limit.

    The cheapest bounds come first: if one of them proves (ε, δ), the others are not evaluated.

    Parameters
    ----------
    claim : Claim
    epsilon, delta : float
    fixed : bool
        Whether a search uses only this ε and δ. The δ of amplification by clones depends on the mechanism only
        through a report's ε₀, and increases with it. So the greatest ε₀ allowed is computed once, and the margin is
        how far ln ε₀ is above it, instead of a margin of δ. Up to it the margin is at most −1: a root there would
        hide one beyond it, where another bound holds.
    """
    least = math.inf
    for part in sorted(_parts(claim), key=lambda part: isinstance(part.curve, ComposedDelta)):
        curve, left = part.curve, part
        clones, queries = _single(curve.shuffled) if isinstance(curve, AmplifiedDelta) else (None, 1)
        if fixed and delta > 0.0 and isinstance(curve, AmplifiedDelta) and isinstance(clones, ClonesDelta):
            most = _largest_hidden(clones.devices, queries, epsilon, delta)
            above = math.log(clones.epsilon / most)
            least = min(least, above if above > 0.0 else above - 1.0)
            left = curve.local
            if curve.stronger is not None and least > 0.0:
                left = Claim.bound(left.epsilon, AmplifiedDelta(curve.stronger, left), left.basis)
        elif isinstance(curve, AmplifiedDelta) and curve.stronger is not None and least > 0.0:
            # The stronger bound of shuffled reports is hardly ever above the other one, which takes as long.
            stronger = Claim.bound(part.epsilon, AmplifiedDelta(curve.stronger, curve.local), part.basis)
            least = min(least, _claim_margin(stronger, epsilon, delta))
        if least > 0.0:
            least = min(least, _claim_margin(left, epsilon, delta))
    return least


def bound_view(mechanism: PlannableMechanism, view: View, *, devices: int, rough: bool = False) -> Claim:
    """Return what is proved about a view of a mechanism.

    Published counts and differences are sums over all devices counted, so they are a function of the shuffled reports
    of all devices. The linked reports of a device are one report of a randomizer, and amplification by shuffling, with
    clones, bounds what is published of several rounds (`shuffled_claim`). No other claim is needed if the
    mechanism's own claim is exact, or if it is about sums for any truths of the others: such a claim is within half a
    percent of an attained ε.

    Parameters
    ----------
    mechanism : PlannableMechanism
        One of several rounds must draw new coins in every query: its queries are composed as independent releases.
    view : View
    devices : int
        N, the number of devices asked.
    rough : bool
        Whether the curves are fast approximations, for a search.
    """
    stated = mechanism.claim(view)
    alone = stated.delta_kind == "exact" or _is_of_sums(stated.curve)
    claims = (stated,) if alone else (stated, *made_from(mechanism, view, devices))
    own, *others = (_rough_claim(claim) for claim in claims) if rough else claims
    basis = f"{own.basis} It reveals at most what it is computed from: {others[0].basis}" if others else own.basis
    return own.at_most(*others).about(view, basis=basis)


def _is_of_sums(curve: Any) -> bool:
    match curve:
        case LeastDelta():
            return any(_is_of_sums(claim.curve) for claim in curve.claims)
        case AmplifiedDelta():
            return _is_of_sums(curve.shuffled)
        case ComposedCurve():
            return _is_of_sums(curve.curve)
        case _:
            return isinstance(curve, SumsDelta | AnyTruthsDelta)


def made_from(mechanism: PlannableMechanism, view: View, devices: int) -> Iterator[Claim]:
    """Yield claims about views from which this one can be computed, with data that do not depend on the device."""
    if isinstance(view, ReleasedCounts | ReleasedDifferences):
        linked = mechanism.claim(LinkedReports(view.queries, adjacency=view.adjacency))
        if mechanism.rounds == 1:
            yield mechanism.claim(Shuffled(1, devices, view.queries, adjacency=view.adjacency))
        else:
            # The reports that hide the device's come from any cells, so they differ from it as much as after a move.
            single = mechanism.claim(LinkedReports())
            yield shuffled_claim(Shuffled(1, devices, view.queries), local=linked, single=single)
        yield linked


# Points up to the root mean square loss for an approximate composition, of a curve and of a pair.
ROUGH_FINENESS, ROUGH_PAIR_FINENESS = 2, 10
# Points of an approximate curve of suppressed differences.
ROUGH_POINTS = 150
# Pairs that an approximate bound of shuffled reports sums; over queries fewer.
ROUGH_PAIRS = 2**16
# The greatest margin, and the negative of the least.
MOST_MARGIN = 50.0
# The range in which a report's ε₀ is searched.
LEAST_LOCAL, LARGEST_LOCAL = 1e-12, 100.0


def _rough_claim(claim: Claim) -> Claim:
    return replace(claim, curve=_roughly(claim.curve))


def _parts(claim: Claim) -> Iterator[Claim]:
    """Yield the parts of a claim that is the least of several claims; the claim itself if it has no parts."""
    if isinstance(claim.curve, LeastDelta):
        for part in claim.curve.claims:
            yield from _parts(part)
    else:
        yield claim


def _single(curve: Any) -> tuple[Any, int]:
    """Return the curve of one query, and the queries that it is composed over."""
    return (curve.curve, curve.queries) if isinstance(curve, ComposedCurve) else (curve, 1)


def _roughly(curve: Any) -> Any:
    """Return a fast approximation of a bound; the bound itself where it is fast."""
    match curve:
        case LeastDelta():
            rough: Any = LeastDelta(tuple(_rough_claim(part) for part in curve.claims))
        case AmplifiedDelta():
            local, shuffled, stronger = _rough_claim(curve.local), _roughly(curve.shuffled), _roughly(curve.stronger)
            rough = replace(curve, local=local, shuffled=shuffled, stronger=stronger)
        case ReleasedDelta():
            rough = replace(curve, searched=False, points=ROUGH_POINTS)
        case ComposedCurve():
            rough = replace(curve, curve=_roughly(curve.curve), fineness=ROUGH_FINENESS)
        case ComposedDelta():
            rough = replace(curve, fineness=ROUGH_PAIR_FINENESS)
        case AnyTruthsDelta():
            rough = _roughly(curve.sums)
        case SumsDelta():
            rough = replace(curve, certified=False, leaving=_roughly(curve.leaving))
        case BlanketDelta() | VariationRatioDelta():
            rough = replace(curve, pairs=min(ROUGH_PAIRS, curve.pairs // 8), rough=True)
        case _:
            rough = curve
    return rough


def _claim_margin(claim: Claim, epsilon: float, delta: float) -> float:
    """Return the margin of (ε, δ) by one claim, clipped to ±`MOST_MARGIN`."""
    if claim.kind == "unknown":
        return MOST_MARGIN
    if claim.epsilon <= epsilon:
        return max(claim.epsilon - epsilon, -MOST_MARGIN)
    if delta == 0.0:
        return min(claim.epsilon - epsilon, MOST_MARGIN) if math.isfinite(claim.epsilon) else MOST_MARGIN
    bound = claim.delta(epsilon)
    return max(-MOST_MARGIN, min(MOST_MARGIN, math.log(bound / delta))) if bound > 0.0 else -MOST_MARGIN


@lru_cache(maxsize=256)
def _largest_hidden(devices: int, queries: int, epsilon: float, delta: float) -> float:
    """Return the greatest ε₀ of a report for which shuffling among this number of devices meets (ε, δ)."""

    def excess(log_local: float) -> float:
        local = math.exp(log_local)
        bound = composed(ClonesDelta.over(queries, devices, local), queries, limit=local)(epsilon)
        return max(math.log(bound / delta), -20.0) if bound > 0.0 else -20.0

    low, high = (math.log(local) for local in (max(epsilon / queries, LEAST_LOCAL), LARGEST_LOCAL))
    if low >= high or excess(high) <= 0.0:
        return LARGEST_LOCAL
    return math.exp(low if excess(low) >= 0.0 else brentq(excess, low, high, xtol=1e-9))


# The score if there is no estimate: finite, because minimisers need finite scores.
IMPOSSIBLE = 1e300
# The score of an infinite ε: above the score of every finite ε.
INFINITE = 1e6


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
        Returns the root mean square error of a cell given its count, if it is not the mechanism's own standard error.
    release : mapping, optional
        What is done to the counts before they are published, as in a scenario file.
    excess_kurtosis : callable, optional
        Returns the excess kurtosis of that error, if it is not the excess kurtosis of the mechanism's estimate.
    aggregation : mapping, optional
        The servers that the claim relies on, as in a scenario file.
    budget : mapping, optional
        The campaign's budget over several queries, as in a scenario file.
    dial : float
        The value of the family's dial.
    rough : bool
        Whether the bounds of views may be approximate, as in a search (`mechanisms.planning.candidate`).
    cut_short : str, optional
        If the search that found it was cut short: a sentence that states after how many candidates, and how much the
        last ones improved the result.
    """

    mechanism: PlannableMechanism
    target: Target
    parameters: Mapping[str, Any]
    error: Callable[[int], float] | None = None
    release: Mapping[str, Any] | None = None
    excess_kurtosis: Callable[[], float] | None = None
    aggregation: Mapping[str, Any] | None = None
    budget: Mapping[str, Any] | None = None
    dial: float = math.nan
    rough: bool = False
    cut_short: str | None = None

    @cached_property
    def std_error(self) -> float:
        """The root mean square error of a cell of the target's occupancy; infinite if there is no estimate."""
        return self.error_at(self.target.expected, self.target.population)

    def error_at(self, occupancy: int, population: int) -> float:
        """Return the error of a cell of this occupancy, all others outside; infinite if there is no estimate."""
        mechanism = self.mechanism
        if self.error is not None:
            return self.error(occupancy)
        try:
            if not isinstance(mechanism, BaseMechanism):
                return float(mechanism.std_error(np.array([population - occupancy, occupancy]))[0])
            # Without a vector of all cells: there may be a million cells.
            received = ResponseCounts.from_truth(
                population, None, None, rounds=mechanism.rounds, truth_round=mechanism.truth_round
            )
            one_cell: Any = mechanism
            if isinstance(mechanism, SamplingPrivacy):
                one_cell = mechanism.estimator(1)
            elif self.rough and isinstance(mechanism, ProtocolMechanism):
                one_cell = mechanism.float_estimator
            variance = one_cell.variance(received)
            return float(variance.std_error([occupancy])[0])
        except NotEstimableError:
            return math.inf

    @cached_property
    def differences(self) -> bool:
        """Whether the mechanism publishes differences."""
        if self.mechanism.rounds == 1:
            return False
        return self.mechanism.claim(ReleasedDifferences(1)).kind != "unknown"

    @cached_property
    def bounds(self) -> tuple[Claim, ...]:
        """The bounds of the target's views."""
        return tuple(self._each_bound())

    @property
    def views(self) -> tuple[View, ...]:
        """The target's views of the mechanism."""
        return self.target.views(rounds=self.mechanism.rounds, differences=self.differences)

    def _each_bound(self) -> Iterator[Claim]:
        for view in self.views:
            yield bound_view(self.mechanism, view, devices=self.target.counted, rough=self.rough)

    def fails(self) -> bool:
        """Return whether the privacy target is not met; the first view for which it is not is enough."""
        epsilon, delta = self.target.epsilon or 0.0, self.target.delta
        return any(margin(bound, epsilon, delta, fixed=self.rough) > 0.0 for bound in self._each_bound())

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
        return max(margin(bound, epsilon, self.target.delta, fixed=fixed) for bound in self.bounds)

    def delta(self, epsilon: float) -> float:
        """Return δ at this ε, the greatest over the target's views."""
        return max(bound.delta(epsilon) for bound in self.bounds)

    @cached_property
    def epsilon(self) -> float:
        """The least ε known at the target's δ; infinite if no finite one is known."""
        delta = self.target.delta
        if delta == 0.0:
            return max((bound.epsilon for bound in self.bounds), default=math.inf)
        low, high = 0.0, LARGEST_EPSILON if self.target.epsilon is None else self.target.epsilon
        if not self.rough:
            # A plan usually reaches the target's ε to a thousandth. If not, the approximate ε is near the exact one,
            # and a few exact evaluations around it are enough.
            approximate = replace(self, rough=True)
            # Approximate bounds that do not hold at the target's ε are of no use below it.
            if (
                self.target.epsilon is not None
                and self.holds(high)
                and not (approximate.holds(high) and self.holds(high * (1.0 - 1e-3)))
            ):
                return high
            near = approximate.epsilon
            tried = [near * (1.0 + share) for share in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)]
            tried = sorted([*tried, high, LARGEST_EPSILON]) if near < LARGEST_EPSILON else [LARGEST_EPSILON]
            first = bisect_left(tried, 1, key=lambda epsilon: int(self.holds(epsilon)))
            return tried[first] if first < len(tried) else math.inf
        if self.holds(low):
            return 0.0
        if not self.holds(high):
            high = LARGEST_EPSILON
            if not self.holds(high):
                return math.inf
        return float(brentq(self._margin, low, high, xtol=1e-9, rtol=1e-7))

    @property
    def score(self) -> float:
        """The number to minimise: the error, or ε for an error target. An infinite ε scores by δ at ε = 1."""
        if self.target.error is None:
            return min(self.std_error, IMPOSSIBLE)
        if math.isfinite(self.epsilon):
            return self.epsilon
        return INFINITE * (1.0 + self.delta(1.0))
