"""Claims about discrete Laplace noise: sums of the devices' noise shares, and noisy counts of a sample."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernel import compiled
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.hockey_stick import ComposedDelta, Pair, dominating_pair, pair_delta
from mechanisms.privacy.random_sampling import sample_privacy
from mechanisms.privacy.symmetric_pair import mirror_claim

# Outputs beyond this are merged into one, to the disadvantage of the claim.
REACH = 200
# A recurrence starts where only e^−40 of its starting error is left at the outputs that are used.
SETTLED = 40.0


@dataclass(frozen=True)
class PartialNoise:
    """The difference of two negative binomial variables NB(r, 1 − α): a whole discrete Laplace variable at r = 1.

    Its distribution f is symmetric. From its generating function [(1 − α)²/((1 − αz)(1 − α/z))]^r follows
    α(k + 1 − r)f(k + 1) = k(1 + α²)f(k) − α(k − 1 + r)f(k − 1).

    Parameters
    ----------
    decay : float
        −ln α, the ε of whole noise (r = 1) for a change of one count by 1.
    share : float
        r, the amount of noise as a multiple of whole noise.
    """

    decay: float
    share: float

    @property
    def epsilon(self) -> float:
        """ε for a change of one count by 1.

        For r < 1 a negative binomial is a mixture of geometric distributions, so f is log-convex on k ≥ 0 and
        f(k − 1)/f(k) is greatest at k = 1. For r ≥ 1 it is log-concave, and the ratio rises to 1/α.
        """
        return self.decay if self.share >= 1.0 else -math.log(_ratios(self, 1)[0][0])

    def masses(self, count: int) -> tuple[NDArray[np.float64], float]:
        """Return f(0)…f(count − 1), (count,) float64, and the mass of one tail beyond them, for r < 1."""
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
    """Run the recurrence backwards from a point where f falls by the factor α a step.

    f is the decaying solution, so rounding errors would swamp it in a forward recurrence. Backwards, the error of the
    starting value shrinks by α² a step. The recurrence is for 1 − f(k + 1)/f(k), in which nothing cancels however near
    to 1 α is.
    """
    alpha, gap = math.exp(-decay), -math.expm1(-decay)
    fall, beyond = gap, alpha / gap
    last = beyond
    for k in range(start, 0, -1):
        # `fall` is 1 − f(k + 1)/f(k) and `beyond` is Σ_{j > k} f(j)/f(k); the step below takes both to k − 1.
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
        """The composition over the queries and, within each query, over the changed counts."""
        return ComposedDelta.from_pair(*_dominating_pair(self.noise), queries=self.counts * self.queries)


@lru_cache(maxsize=64)
def _dominating_pair(noise: PartialNoise) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a pair that dominates f shifted by 1 against f, for r < 1, with each tail merged into one output.

    The likelihood ratio is at most f(REACH)/f(REACH + 1) in the upper tail and at most α in the lower tail. Each tail's
    mass under P gets the mass of Q that attains this ratio; the rest of Q goes to an output of mass 0 under P. The two
    directions are mirror images of each other.
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
    """Return the claim of counts with this noise about one device that moves, all other devices known.

    A move between two cells changes two counts by 1 each, a move outside every cell changes one. The first bounds the
    second.

    Parameters
    ----------
    noise : PartialNoise
    cells : int
        V.
    queries : int
        T, with fresh noise in each.
    source : str
        The mechanism that adds the noise, for the basis.

    Returns
    -------
    PrivacyClaim
        Exact for whole noise, where a count reveals as much as a single randomized bit: ε is attained by both signs of
        the change. With less noise ε is exact and δ is a bound; with more noise both are bounds.
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


# A larger crowd reveals less; its claim is that of a crowd of this size.
LARGEST_CROWD = 1000


@dataclass(frozen=True)
class NoisySample:
    """Bin(n, β) plus discrete Laplace noise against Bin(n − 1, β) plus the same noise: one device there or outside.

    The noise is P(k) = α^|k|·(1 − α)/(1 + α).

    Parameters
    ----------
    crowd : int
        n, the device in question included.
    sampling : float
        β, in (0, 1].
    decay : float
        −ln α, the ε of the noise for a change of a count by 1.
    """

    crowd: int
    sampling: float
    decay: float

    @cached_property
    def pair(self) -> Pair:
        """P (device there) and Q (outside), (n + 1,) float64 each: outputs up to 0, 1…n − 1, and from n on.

        At 0 and below, and at n and above, P/Q is constant, so merging these outputs loses nothing.
        """
        from scipy.signal import lfilter  # noqa: PLC0415 - a second, for this claim only
        from scipy.stats import binom  # noqa: PLC0415 - a second, for this claim only

        alpha = math.exp(-self.decay)
        gap = -math.expm1(-self.decay)
        missed, seen = 1.0 - self.sampling * gap, self.sampling + (1.0 - self.sampling) * alpha
        laws = []
        for drawn, far in ((self.crowd, 1.0), (self.crowd - 1, alpha)):
            masses = binom.pmf(np.arange(self.crowd + 1), drawn, self.sampling)
            # Σ α^|k − s|·P(s), from s ≤ k and from s > k.
            up = lfilter([1.0], [1.0, -alpha], masses)
            down = lfilter([1.0], [1.0, -alpha], masses[::-1])[::-1] - masses
            middle = (up + down)[1 : self.crowd] * gap / (1.0 + alpha)
            law = np.concatenate([[missed**drawn / (1.0 + alpha)], middle, [far * seen**drawn / (1.0 + alpha)]])
            laws.append(law / law.sum())
        return laws[0], laws[1]

    def __call__(self, epsilon: float) -> float:
        """Return the exact δ(ε) of one query, the larger of both directions."""
        return pair_delta(*self.pair, epsilon=epsilon)


def noisy_sample_claim(
    *, crowd: int | None, sampling: float, epsilon: float, queries: int, source: str
) -> PrivacyClaim:
    """Return the claim of noisy counts of sampled devices about one device in a cell or outside, all others known.

    Parameters
    ----------
    crowd : int, optional
        Devices in the cell, the device in question included. By default any number; alone, the device is revealed most.
    sampling : float
        β.
    epsilon : float
        ε of one query; the noise on the sample's counts has ln(1 + (e^ε − 1)/β).
    queries : int
        T, each with a fresh sample, fresh noise and this crowd.
    source : str
        What is released, for the basis.

    Returns
    -------
    PrivacyClaim
        ε is attained at every crowd: T·ε at δ = 0. δ is exact over one query, or without sampling up to 4,096 queries;
        otherwise it is a bound.
    """
    decay, _ = sample_privacy(epsilon=epsilon, share=sampling)
    if sampling == 1.0:
        return mirror_claim(telling=1.0 / (1.0 + math.exp(-decay)), epsilon=decay, queries=queries, source=source)
    used = 1 if crowd is None else min(crowd, LARGEST_CROWD)
    noisy = NoisySample(used, sampling, decay)
    basis = f"{source}; β = {sampling:g} of the devices, drawn one by one (LQS theorem 1, attained)"
    basis += ", alone in its cell being the worst" if crowd is None else f", {crowd:,} in the cell"
    if crowd is not None and crowd > used:
        basis += f", claimed for as {used:,}"
    if queries == 1:
        kind: PrivacyClaim = PrivacyClaim.exact(epsilon, noisy, f"{basis}.")
        if crowd is None or crowd == used:
            return kind
        return PrivacyClaim("exact", epsilon, "bound", f"{basis}.", noisy)
    p, q = noisy.pair
    composed = ComposedDelta.from_pair(*dominating_pair([(p, q), (q, p)]), queries=queries)
    basis += "; over T queries T·ε, attained, and δ by composing the pair that dominates both directions"
    return PrivacyClaim("exact", queries * epsilon, "bound", f"{basis}.", composed)
