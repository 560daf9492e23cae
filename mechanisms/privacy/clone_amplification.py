"""Amplification by shuffling for any randomizer: hiding among the clones."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.binomial import LEFT_OUT, mass_above, mass_at, window

# e^ε beyond this overflows a double; δ is 0 there, since ε₀ is smaller.
LARGEST_EPSILON = 700.0
# Numbers of clones evaluated one by one; a wider window is cut into this many runs of neighbours.
LARGEST_SUM = 2**13


@dataclass(frozen=True)
class ClonesDelta:
    """A bound of δ(ε) of the shuffled reports of an ε₀-LDP randomizer, as a function of ε.

    Feldman, McMillan and Talwar 2021, *Hiding Among the Clones*, theorem 3.1: with probability e^−ε₀ another device's
    report is a clone of the report in question, drawn from either of its two laws with ½. Given that there are M ~
    Bin(n − 1, e^−ε₀) clones, what is seen is A ~ Bin(M, ½) plus a Bernoulli draw of probability x in one world and
    1 − x in the other, x = e^ε₀/(e^ε₀ + 1). The two worlds mirror each other, so both directions have the same δ.

    Parameters
    ----------
    devices : int
        n.
    epsilon : float
        ε₀ of one report, at δ = 0; finite.
    queries : int
        T queries, each with new coins: T·δ(ε/T), by basic composition.
    """

    devices: int
    epsilon: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ; what the window over M leaves out, at most 1e-30, is added.

        One more clone only hides more, so the first M of a run of neighbours bounds the others: a window of more than
        8,192 values adds less than a hundred-thousandth of δ in this way.
        """
        epsilon = min(check_epsilon(epsilon) / self.queries, LARGEST_EPSILON)
        first, masses = window(self.devices - 1, math.exp(-self.epsilon))
        left_out = LEFT_OUT if len(masses) < self.devices else 0.0
        starts = np.arange(0, len(masses), -(-len(masses) // LARGEST_SUM))
        delta = self.delta_among(first + starts, epsilon)
        return min(1.0, self.queries * (float(np.add.reduceat(masses, starts) @ delta) + left_out))

    def delta_among(self, clones: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
        """Return δ of one query given the number of clones M.

        The likelihood ratio of A = a rises with a. With y = 1 − x the first world is the likelier by more than e^ε
        from a = τ on,

        τ = ⌊(M + 1)·c/((x − y)(1 + e^ε))⌋ + 1,   c = (x − y) + (e^ε − 1)x,

        and δ = (x − e^ε·y)·P[Bin(M, ½) = τ − 1] − (e^ε − 1)·P[Bin(M, ½) ≥ τ]. x − y is computed as tanh(ε₀/2), because
        the subtraction would lose the digits of a small ε₀.

        Parameters
        ----------
        clones : (…) int64
            M, at least 0.
        epsilon : float
            At least 0, at most 700.

        Returns
        -------
        (…) float64
        """
        apart = math.tanh(self.epsilon / 2.0)
        towards = 1.0 / (1.0 + math.exp(-self.epsilon))
        away = math.exp(-self.epsilon) * towards
        growth = math.expm1(epsilon)
        gain = apart - growth * away
        if gain <= 0.0:
            return np.zeros(clones.shape)
        share = (apart + growth * towards) / (apart * (2.0 + growth))
        last = np.minimum(np.floor((clones + 1) * share), clones)
        delta = gain * mass_at(last, clones, 0.5) - growth * mass_above(last, clones, 0.5)
        return np.maximum(delta, 0.0)
