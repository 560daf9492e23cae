"""One device of a crowd of like devices, in the histogram of three kinds of answers: two exact hockey sticks."""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import mass_above, mass_at, mass_up_to, window

# n·e^ε beyond this overflows a double; by then only the certain part of δ is left.
LARGEST_EPSILON = 600.0


@dataclass(frozen=True)
class CrowdRatioDelta:
    """δ(ε) of how many of n devices answered up, still or otherwise, one of them with another law elsewhere.

    Each of the crowd, there, answers up with u, still with s and otherwise with what is left; the device in
    question, elsewhere, answers up with αu and still with γs, α < 1 ≤ γ, and otherwise just as often. The
    counts (a, b, n − a − b) are trinomial in one world, and in the other have the density

    (α·a + γ·b + (n − a − b))/n = 1 − ((1 − α)a − (γ − 1)b)/n

    with respect to that. Both hockey sticks are the means of a positive part linear in a: over a, given b, a
    binomial's partial mean, over b a sum.

    Parameters
    ----------
    crowd : int
        n.
    up, still : float
        u, above 0, and s.
    up_ratio, still_ratio : float
        α and γ.
    apart : float
        Probability that the device, elsewhere, answers what nobody there ever does: γs where s = 0.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    crowd: int
    up: float
    still: float
    up_ratio: float
    still_ratio: float
    apart: float = 0.0
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return δ for one query, within 1e-15 and at least uⁿ where α = 0; a bound for more."""
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_EPSILON)
        n, factor = self.crowd, math.exp(epsilon)
        first, masses = window(n, self.still)
        b = np.arange(first, first + len(masses), dtype=np.float64)
        others, p = n - b, min(self.up / (1.0 - self.still), 1.0)
        fewer, fall = np.maximum(others - 1.0, 0.0), 1.0 - self.up_ratio
        level = n + (self.still_ratio - 1.0) * b  # n times the density at a = 0
        # Elsewhere: E[(level − n·e^ε − fall·a) 1{a ≤ t}] given b.
        margin = level - n * factor
        t = np.ceil(margin / fall) - 1.0
        gain = (margin - fall * others * p) * mass_up_to(t - 1.0, fewer, p) + margin * (1.0 - p) * mass_at(t, fewer, p)
        elsewhere = float(masses @ np.maximum(np.where(others > 0.0, gain, margin), 0.0)) / n + self.apart
        # There: E[(n − e^ε·level + e^ε·fall·a) 1{a ≥ t + 1}] given b.
        margin, rise = n - factor * level, factor * fall
        t = np.floor(-margin / rise)
        gain = (margin + rise * others * p) * mass_above(t, fewer, p) + (margin + rise * others) * p * mass_at(
            t, fewer, p
        )
        there = float(masses @ np.maximum(gain, 0.0)) / n
        certain = self.up**n if self.up_ratio == 0.0 else 0.0
        return min(1.0, self.queries * max(elsewhere, there, certain))

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0: the density is α where all answer up, γ where all are still."""
        if self.up_ratio == 0.0 or self.apart > 0.0:
            return math.inf
        return self.queries * max(-math.log(self.up_ratio), math.log(self.still_ratio))
