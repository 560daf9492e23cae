"""One device's coin among the coins of others: the pair that any shuffled reports come down to."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, window

# e^ε beyond this overflows a double; by then only the certain part of δ is left.
LARGEST_EPSILON = 700.0
# Numbers of coins looked at one by one; of more, so many runs of neighbours are.
LARGEST_SUM = 1_024


def coin_delta(
    others: NDArray[np.int64], *, heads: float, one: float, other: float, epsilon: float
) -> NDArray[np.float64]:
    """Return the hockey stick of Bin(M, q) + Bernoulli(x) against Bin(M, q) + Bernoulli(y), x > y, for each M.

    The likelihood ratio of d heads rises with d, so what tells is d ≥ τ with

    τ = ⌊(M + 1)·cq/((x − e^ε y)(1 − q) + cq)⌋ + 1,   c = e^ε(1 − y) − (1 − x),

    and δ = (x − e^ε y)·P[Bin(M, q) = τ − 1] − (e^ε − 1)·P[Bin(M, q) ≥ τ]: two terms that are not nearly
    equal.

    Parameters
    ----------
    others : (…) int64
        M, at least 0.
    heads : float
        q, in [0, 1].
    one, other : float
        x and y.
    epsilon : float
        At least 0, at most 700.

    Returns
    -------
    (…) float64
    """
    factor = math.exp(epsilon)
    gain = one - factor * other
    if gain <= 0.0:
        return np.zeros(others.shape)
    cost = factor * (1.0 - other) - (1.0 - one)
    share = cost * heads / (gain * (1.0 - heads) + cost * heads)
    least = np.minimum(np.floor((others + 1) * share) + 1, others + 1)
    telling = gain * mass_at(least - 1, others, heads) - math.expm1(epsilon) * mass_above(least - 1, others, heads)
    return np.maximum(telling, 0.0)


@dataclass(frozen=True)
class HiddenCoinDelta:
    """δ(ε) of seeing how many coins show heads, one of them a device's own, as a function of ε.

    The device's own coin shows heads with probability `one` in one world and `other` in the other. Each of the
    other devices has a coin with probability `hides`, which shows heads with probability `heads`, and how many
    have one is known: δ = E_M[coin_delta(M)], M ~ Bin(n − 1, hides), the larger of both directions.

    Parameters
    ----------
    others : int
        n − 1.
    hides, heads, one, other : float
        As above; one > other.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    others: int
    hides: float
    heads: float
    one: float
    other: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return δ, from above: what the window over M leaves out, at most 1e-17, is added.

        One more coin only hides more, so of a run of neighbouring M the first bounds the rest: over windows
        of more than 1,024 values, less than a hundred-thousandth is added so.
        """
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_EPSILON)
        first, masses = window(self.others, self.hides)
        left_out = LEFT_OUT if len(masses) <= self.others else 0.0
        starts = np.arange(0, len(masses), -(-len(masses) // LARGEST_SUM))
        coins, masses = first + starts, np.add.reduceat(masses, starts)
        there = coin_delta(coins, heads=self.heads, one=self.one, other=self.other, epsilon=epsilon)
        # Seen from the tails, the other world is the one with more of them.
        back = coin_delta(coins, heads=1.0 - self.heads, one=1.0 - self.other, other=1.0 - self.one, epsilon=epsilon)
        return min(1.0, self.queries * (max(float(masses @ there), float(masses @ back)) + left_out))

    @property
    def epsilon(self) -> float:
        """The least ε at which this δ is 0 even where nobody else is a coin."""
        if self.other == 0.0 or self.one == 1.0:
            return math.inf
        ratios = math.log(self.one / self.other), math.log((1.0 - self.other) / (1.0 - self.one))
        return self.queries * max(ratios)
