"""Told: what a view of a mechanism tells, by its own claim and by those of views it is made from."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mechanisms.privacy.claim import ClaimKind, PrivacyClaim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Shuffled, View


class Claimant(Protocol):
    """What makes claims: a mechanism, or as much of one as a search needs."""

    @property
    def rounds(self) -> int:
        """Answers a device gives per query."""

    def claim(self, view: View) -> PrivacyClaim:
        """Return what is proved about whoever has this view."""


@dataclass(frozen=True)
class Told:
    """What is proved about a view: the least of several bounds, the mechanism's own claim first.

    Parameters
    ----------
    view : View
        Whose.
    own : PrivacyClaim
        The mechanism's claim.
    made_from : sequence of PrivacyClaim
        Claims of views of which this one is a function of them and of what does not hang on the device.
    """

    view: View
    own: PrivacyClaim
    made_from: Sequence[PrivacyClaim] = ()

    @property
    def epsilon(self) -> float:
        """The least ε known at δ = 0; infinite where none is finite, NaN where not known."""
        return self._always[0]

    @property
    def kind(self) -> ClaimKind:
        """How good that ε is."""
        return self._always[1]

    @property
    def _always(self) -> tuple[float, ClaimKind]:
        """ε at δ = 0, and how good it is."""
        if self.own.kind == "infinite":
            return math.inf, "infinite"
        finite = min((c.epsilon for c in self.made_from if math.isfinite(c.epsilon)), default=math.inf)
        if math.isfinite(self.own.epsilon) and self.own.epsilon <= finite:
            return self.own.epsilon, self.own.kind
        return (finite, "bound") if math.isfinite(finite) else (math.nan, "unknown")

    def delta(self, epsilon: float) -> tuple[float, str]:
        """Return the least δ known at this ε, and how good it is; NaN and "unknown" where none is known."""
        own = self.own.delta(epsilon)
        if self.own.delta_kind == "exact":
            return own, "exact"
        known = [(own, str(self.own.delta_kind))] if not math.isnan(own) else []
        others = [delta for claim in self.made_from if not math.isnan(delta := claim.delta(epsilon))]
        known += [(delta, "bound") for delta in others]
        return min(known, key=lambda pair: pair[0], default=(math.nan, "unknown"))

    def meets(self, epsilon: float, delta: float) -> bool:
        """Whether (ε, δ) is proved to hold."""
        return self.margin(epsilon, delta) <= 0.0

    def margin(self, epsilon: float, delta: float, *, most: float = 50.0) -> float:
        """Return how far (ε, δ) is from held, 0 or less where it is proved: ε too much, or ln of δ over its limit."""
        always = self.epsilon
        if always <= epsilon:  # false for NaN
            return max(always - epsilon, -most)
        if delta == 0.0:
            return min(always - epsilon, most) if math.isfinite(always) else most
        found, _ = self.delta(epsilon)
        if math.isnan(found):
            return most
        return max(-most, min(most, math.log(found / delta))) if found > 0.0 else -most

    @property
    def basis(self) -> str:
        """Why: the own claim's sentence, or why another bounds it."""
        if not self.made_from or self.own.delta_kind == "exact":
            return self.own.basis
        return f"{self.own.basis} At most what it is made from tells: {self.made_from[0].basis}"


def tell(mechanism: Claimant, view: View, *, devices: int) -> Told:
    """Return what is proved about a view of a mechanism.

    Published counts and differences are sums over all the devices asked, so they are a function of the shuffled reports
    of all devices. For a mechanism of one round its own claim of these bounds them. For one of several rounds the
    linked reports of a device are one report of a randomizer, and hiding among the clones bounds them
    (`shuffled_claim`). Where the mechanism's own claim is exact nothing needs bounding.

    Parameters
    ----------
    mechanism : Claimant
        One of several rounds must draw new coins in every query: its queries are composed as independent releases.
    view : View
    devices : int
        N, devices asked.
    """
    own = mechanism.claim(view)
    if own.delta_kind == "exact":
        return Told(view, own)
    return Told(view, own, tuple(_made_from(mechanism, view, devices)))


def _made_from(mechanism: Claimant, view: View, devices: int) -> Iterator[PrivacyClaim]:
    """Yield claims that bound the view."""
    if isinstance(view, ReleasedCounts | ReleasedDifferences):
        linked = mechanism.claim(LinkedReports(view.queries))
        shuffled = Shuffled(1, devices, view.queries)
        if mechanism.rounds == 1:
            yield mechanism.claim(shuffled)
        else:
            yield shuffled_claim(shuffled, local=linked, single=mechanism.claim(LinkedReports()))
        yield linked
