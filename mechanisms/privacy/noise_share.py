"""Claims of counts hidden by shares of discrete Laplace noise, whole or in part."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.mirror_pair import mirror_claim

# Entries beyond this are lumped, to the claim's disadvantage.
REACH = 200
# e^−40 of what a recurrence starts from is left where it counts.
SETTLED = 40.0


@dataclass(frozen=True)
class PartialNoise:
    """The difference of two negative binomials NB(r, 1 − α): a whole discrete Laplace variable at r = 1.

    Its law f is symmetric, and from its generating function [(1 − α)²/((1 − αz)(1 − α/z))]^r,
    α(k + 1 − r)f(k + 1) = k(1 + α²)f(k) − α(k − 1 + r)f(k − 1).

    Parameters
    ----------
    decay : float
        −ln α, ε of whole noise for a change of one count by 1.
    share : float
        r, how much of a whole there is.
    """

    decay: float
    share: float

    @property
    def epsilon(self) -> float:
        """ε for a change of one count by 1.

        For r < 1 a negative binomial is a mixture of geometric laws, so f is log-convex on k ≥ 0 and f(k − 1)/f(k) is
        greatest at k = 1. For r ≥ 1 it is log-concave, and the ratio rises to 1/α.
        """
        return self.decay if self.share >= 1.0 else -math.log(_ratios(self, 1)[0][0])

    def masses(self, count: int) -> tuple[NDArray[np.float64], float]:
        """Return f(0)…f(count − 1), (count,) float64, and all beyond on one side, for r < 1."""
        ratios, first, last = _ratios(self, count)
        law = np.cumprod(np.append(1.0, ratios[: count - 1])) / (1.0 + 2.0 * first)
        return law, float(law[-1] * last)


@lru_cache(maxsize=256)
def _ratios(noise: PartialNoise, count: int) -> tuple[NDArray[np.float64], float, float]:
    """Return f(k + 1)/f(k) for k < count, Σ_{j > 0} f(j)/f(0) and Σ_{j ≥ count} f(j)/f(count − 1)."""
    ratios = np.empty(count)
    first, last = _run_back(noise.decay, noise.share, count + math.ceil(SETTLED / noise.decay), ratios)
    ratios.flags.writeable = False
    return ratios, first, last


@compiled
def _run_back(
    decay: float, share: float, start: int, ratios: NDArray[np.float64]
) -> tuple[float, float]:  # pragma: no cover - compiled
    """Run the recurrence backwards from where f falls by α a step.

    f is the solution that decays, so forwards it would be lost; backwards, what the start gets wrong shrinks by
    α² a step. Run for 1 − f(k + 1)/f(k), where nothing cancels however near to 1 α is.
    """
    alpha, gap = math.exp(-decay), -math.expm1(-decay)
    fall, beyond = gap, alpha / gap
    last = beyond
    for k in range(start, 0, -1):
        # fall is 1 − f(k + 1)/f(k) and beyond Σ_{j > k} f(j)/f(k); then both for k − 1.
        lost, kept = k * gap * gap + alpha * (k + 1 - share) * fall, alpha * (k - 1 + share)
        fall, ratio = lost / (lost + kept), kept / (lost + kept)
        beyond = ratio * (1.0 + beyond)
        if k <= ratios.size:
            ratios[k - 1] = ratio
        if k == ratios.size:
            last = beyond
    return beyond, last


@dataclass(frozen=True)
class PartialDelta:
    """A bound of δ(ε) for a change of one or two counts by 1 under less than whole noise, as a function of ε."""

    noise: PartialNoise
    counts: int
    queries: int

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        if self.queries == 1:
            p, q = _dominating_pair(self.noise)
            if self.counts == 2:
                p, q = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
            factor = math.exp(min(epsilon, 700.0))
            return math.fsum(np.maximum(p - factor * q, 0.0))
        return self.composed(epsilon)

    @property
    def composed(self) -> ComposedDelta:
        """The composition over the queries, and in each over the counts."""
        return ComposedDelta.from_pair(*_dominating_pair(self.noise), queries=self.counts * self.queries)


@lru_cache(maxsize=64)
def _dominating_pair(noise: PartialNoise) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a pair at least as telling as f shifted by 1 against f, for r < 1, with both tails lumped.

    In the upper tail the ratio is f(REACH)/f(REACH + 1) at most, in the lower α at most; each tail's mass under
    P is given just so much of Q, and what is left of Q goes where P has nothing. Either direction is the
    other's mirror image.
    """
    f, rest = noise.masses(REACH + 2)
    body = np.concatenate([f[REACH - 1 :: -1][: REACH - 1], f[:REACH]])  # f at |k| = REACH − 1…1, 0, 1…REACH − 1
    further = rest + f[REACH + 1]  # Σ f(k), k > REACH
    beyond = further + f[REACH]  # Σ f(k), k ≥ REACH
    # k = −REACH + 1…REACH: P has f(k − 1), Q has f(k).
    p = np.concatenate([[f[REACH]], body])
    q = np.concatenate([body, [f[REACH]]])
    # Upper tail, k > REACH: P has Σ_{k ≥ REACH} f. Lower tail, k ≤ −REACH: P has Σ_{k > REACH} f.
    upper = min(further, beyond * _ratios(noise, REACH + 2)[0][REACH])
    lower = min(beyond, further * math.exp(noise.decay))
    p = np.concatenate([p, [beyond, further, 0.0]])
    q = np.concatenate([q, [upper, lower, max(0.0, further + beyond - upper - lower)]])
    return p / p.sum(), q / q.sum()


def noise_claim(noise: PartialNoise, *, cells: int, queries: int, source: str) -> PrivacyClaim:
    """Return what counts under this noise tell of one device that moves, everything else known.

    A move between two cells changes two counts by 1, a move outside one; the first bounds the second.

    Parameters
    ----------
    noise : PartialNoise
    cells : int
        V.
    queries : int
        T, with fresh noise in each.
    source : str
        Whose noise it is.

    Returns
    -------
    PrivacyClaim
        Exact for whole noise, where a count tells as a single randomized bit does: ε is attained by both signs of the
        change. For less, ε is exact and δ a bound; for more, both are bounds.
    """
    changed = min(2, cells)
    if noise.share >= 1.0:
        # f(k − 1)/f(k) is 1/α for k ≥ 1 and α elsewhere: P(k ≥ 1) = 1/(1 + α) for each changed count.
        claim = mirror_claim(
            telling=(1.0 / (1.0 + math.exp(-noise.decay))) ** changed,
            epsilon=changed * noise.decay,
            queries=queries,
            source=f"{source}: discrete Laplace noise on each count, of which a move changes {changed} by 1",
        )
        if noise.share == 1.0 or claim.curve is None:
            return claim
        basis = f"More noise than a whole share is whole noise and something independent. {claim.basis}"
        return PrivacyClaim.bound(claim.epsilon, claim.curve, basis)
    basis = (
        f"{source}: {noise.share:.6g} of discrete Laplace noise on each count, of which a move changes {changed} by 1; "
        "ε from its law at 0 and 1, where it tells most, and δ bounded by its law with the tails lumped."
    )
    return PrivacyClaim(
        "exact", queries * changed * noise.epsilon, "bound", basis, PartialDelta(noise, changed, queries)
    )
