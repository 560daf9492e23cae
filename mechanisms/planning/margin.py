"""Margins: how far what a view tells is from (ε, δ), exactly or fast enough for a search to ask hundreds of times.

What a search finds is checked with the claim itself: nothing rough here is part of a claim.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechanisms.planning.told import Claimant, Told, tell
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.clone_amplification import ClonesDelta
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.noise_share import PartialDelta
from mechanisms.privacy.released_claims import ReleasedDelta
from mechanisms.privacy.shuffled import AmplifiedDelta
from mechanisms.privacy.view import View

# Of queries that together may lose more than this, the numerical composition takes minutes and gigabytes: basic
# composition then bounds δ alone.
LARGEST_COMPOSED = 200.0
# Places of the grid of losses, and how many standard deviations it reaches either way.
PLACES, REACH = 2**12, 12.0
# Between these a report's ε₀ is sought.
LEAST_LOCAL, LARGEST_LOCAL = 1e-12, 100.0


@dataclass(frozen=True)
class RememberedDelta(ComposedDelta):
    """The same δ(ε), computed once for each ε: claims of several views rest on one composition."""

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        return _remembered(self, epsilon)

    def compute(self, epsilon: float) -> float:
        """Return it without looking it up."""
        return super().__call__(epsilon)


@lru_cache(maxsize=1024)
def _remembered(composed: RememberedDelta, epsilon: float) -> float:
    return composed.compute(epsilon)


@dataclass(frozen=True)
class RoughDelta(RememberedDelta):
    """About the same δ(ε), in a millisecond: the losses on a coarser grid, their mean kept.

    They are rounded up to whole multiples of the interval as the exact composition rounds them, and then each is
    divided between two neighbouring places of a grid as wide as the sum of all queries' losses is likely to be.
    """

    def compute(self, epsilon: float) -> float:
        """Return about δ, the larger of both directions, and basic composition where that is less."""
        p, q = np.array(self.p), np.array(self.q)
        return min(self.basic(epsilon), max(self._direction(p, q, epsilon), self._direction(q, p, epsilon)))

    def _direction(self, p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
        shared = (p > 0.0) & (q > 0.0)
        if not shared.any():
            return 1.0
        masses = p[shared]
        kept = float(masses.sum())
        losses = np.ceil(np.log(masses / q[shared]) / self.interval - 1e-9) * self.interval
        mean = float(masses @ losses) / kept
        away = losses - mean
        spread = math.sqrt(self.queries * float(masses @ away**2) / kept)
        step = 2.0 * (REACH * spread + 2.0 * float(np.abs(away).max()) + 1e-300) / PLACES
        place = np.floor(away / step)
        above = (away / step - place) * masses
        index = place.astype(np.int64) % PLACES
        law = np.bincount(index, masses - above, PLACES) + np.bincount((index + 1) % PLACES, above, PLACES)
        summed = np.fft.irfft(np.fft.rfft(law) ** self.queries, PLACES)
        total = self.queries * mean + step * np.fft.fftfreq(PLACES, 1.0 / PLACES)
        told = -np.expm1(np.minimum(epsilon - total, 0.0))
        return min(1.0, max(0.0, 1.0 - kept**self.queries + float(summed @ told)))


def tell_once(mechanism: Claimant, view: View, *, devices: int, rough: bool = False) -> Told:
    """Return what `tell` does, each composition evaluated once, or roughly.

    What would take too long to compose is bounded by basic composition.
    """
    told = tell(mechanism, view, devices=devices)
    kind = RoughDelta if rough else RememberedDelta
    return Told(view, _recomposed(told.own, kind), tuple(_recomposed(claim, kind) for claim in told.made_from))


def _recomposed(claim: PrivacyClaim, kind: type[RememberedDelta]) -> PrivacyClaim:
    """Return a claim with another kind of composition."""
    curve = claim.curve
    if isinstance(curve, PartialDelta) and curve.queries > 1:
        curve = curve.composed
    if isinstance(curve, ComposedDelta):
        if claim.epsilon <= LARGEST_COMPOSED:
            return replace(claim, curve=_of_kind(curve, kind))
        return replace(claim, curve=curve.basic)
    if isinstance(curve, ReleasedDelta) and curve.composed is not None:
        return replace(claim, curve=replace(curve, composed=_of_kind(curve.composed, kind)))
    if isinstance(curve, AmplifiedDelta):
        return replace(claim, curve=replace(curve, local=_recomposed(curve.local, kind)))
    return claim


def _of_kind(composed: ComposedDelta, kind: type[RememberedDelta]) -> ComposedDelta:
    return kind(composed.p, composed.q, composed.queries, composed.interval)


def margin(told: Told, epsilon: float, delta: float, *, fixed: bool = False) -> float:
    """Return `Told.margin`, or where it is 0 or less another such number, by the cheapest of the bounds.

    Parameters
    ----------
    told : Told
    epsilon, delta : float
    fixed : bool
        Whether a search asks about this ε and δ only. δ among clones rises with a report's ε₀ and with nothing else
        of a mechanism; the greatest ε₀ allowed is then found once, and how far above it ln ε₀ is takes δ's place.
    """
    least = math.inf
    for claim in sorted((told.own, *told.made_from), key=lambda claim: isinstance(claim.curve, ComposedDelta)):
        curve, left = claim.curve, claim
        if fixed and delta > 0.0 and isinstance(curve, AmplifiedDelta) and isinstance(curve.shuffled, ClonesDelta):
            clones = curve.shuffled
            most = _largest_hidden(clones.devices, clones.queries, epsilon, delta)
            least = min(least, math.log(clones.epsilon / most))
            left = curve.local
        if least > 0.0:
            least = min(least, Told(told.view, left).margin(epsilon, delta))
    return least


@lru_cache(maxsize=256)
def _largest_hidden(devices: int, queries: int, epsilon: float, delta: float) -> float:
    """Return the greatest ε₀ of reports that among so many clones meet (ε, δ)."""

    def excess(log_local: float) -> float:
        found = ClonesDelta(devices, math.exp(log_local), queries)(epsilon)
        return max(math.log(found / delta), -20.0) if found > 0.0 else -20.0

    low, high = (math.log(local) for local in (max(epsilon / queries, LEAST_LOCAL), LARGEST_LOCAL))
    if low >= high or excess(high) <= 0.0:
        return LARGEST_LOCAL
    return math.exp(low if excess(low) >= 0.0 else brentq(excess, low, high, xtol=1e-9))
