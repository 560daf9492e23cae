"""What a count of sampled devices tells under discrete Laplace noise."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.signal import lfilter
from scipy.stats import binom

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.dominating_pair import Pair, dominating_pair
from mechanisms.privacy.hockey_stick import pair_delta
from mechanisms.privacy.mirror_pair import mirror_claim
from mechanisms.privacy.random_sampling import sample_privacy

# A larger crowd tells less; it is claimed for as one of this many.
LARGEST_CROWD = 1000


@dataclass(frozen=True)
class NoisySample:
    """Bin(n, β) plus discrete Laplace noise against Bin(n − 1, β) plus the same: one device there, or outside.

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
        """P (there) and Q (outside), (n + 1,) float64 each: outputs up to 0, 1…n − 1, and from n on.

        At 0 and below, and at n and above, P/Q is constant, so nothing is lost by lumping.
        """
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
    """Return what noisy counts of sampled devices tell of one device in a cell or outside, all others known.

    Parameters
    ----------
    crowd : int, optional
        Devices in the cell, that one included; whatever it is, by default: alone it tells most.
    sampling : float
        β.
    epsilon : float
        ε of one query; the noise on the sample has ln(1 + (e^ε − 1)/β).
    queries : int
        T, each with fresh coins and noise and this crowd.
    source : str
        What is released, for the basis.

    Returns
    -------
    PrivacyClaim
        ε is attained at every crowd: T·ε at δ = 0. δ is exact over one query, or without sampling up to 4,096 queries;
        else a bound.
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
