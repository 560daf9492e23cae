"""What the published counts of both rounds tell about one device: more than their differences do."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.hockey_stick import Distribution, pair_delta
from mechanisms.privacy.view import ReleasedCounts

# Larger crowds are bounded by this one: its table of outcomes has a million entries.
LARGEST_CROWD = 1_000


@dataclass(frozen=True)
class ReleasedCountsDelta:
    """δ(ε) of both rounds' published counts when nobody but the crowd was asked, as a function of ε.

    The device is in the cell or outside every cell, the number asked fixed, everyone else known. What the counts add
    to the difference K, the sampled devices of the cell, is how many unsampled devices gave a blank that can be told
    from a sampled device's 0:

    - multi-valued: R = Σ_{v≥1} C_v,₁ ~ Bin(n − T, 1 − π_0/(1 − π_s)), T all the sampled devices, wherever they are;
      the counts of 0 follow from K, R and n, and how R falls to the cells is the same in both worlds;
    - one question: R = C1₁, a Yes of probability π_1/(1 − π_s) from each unsampled device.

    In both a device outside is in R with probability (1 − π_s) times that, and in K never.

    Parameters
    ----------
    crowd : int
        n, the one in question included.
    sampling : float
        π_s, below 1.
    seen : float
        Probability that an unsampled device's blank is in R.
    queries : int
        T: by basic composition, T·δ(ε/T).
    """

    crowd: int
    sampling: float
    seen: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return δ for one query, a bound for more."""
        p, q = _outcomes(self.crowd, self.sampling, self.seen)
        return min(1.0, self.queries * pair_delta(p, q, epsilon=check_epsilon(epsilon) / self.queries))


def released_counts_claim(view: ReleasedCounts, *, sampling: float, seen: float) -> PrivacyClaim:
    """Return what both rounds' published counts tell about one device, between its cell and outside every cell.

    Every other device asked adds the same independent counts to both worlds, so a crowd alone is the worst case: its
    δ bounds every larger gathering.

    Parameters
    ----------
    view : ReleasedCounts
        The crowd and the queries.
    sampling : float
        π_s.
    seen : float
        (1 − π_s − π_0)/(1 − π_s): probability that an unsampled device's blank is not 0.

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ a bound, attained for one query where only the crowd was asked.
    """
    basis = (
        "K and the unsampled blanks of round one, for one device between the cell and outside, everyone else known "
        "(from SP eqs 6-16)"
    )
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1 the counts are the truth.")
    curve = ReleasedCountsDelta(min(view.crowd, LARGEST_CROWD), sampling, seen, view.queries)
    more = "" if view.queries == 1 else "; over T queries T·δ(ε/T)"
    if view.crowd > LARGEST_CROWD:
        more += f"; a crowd of {LARGEST_CROWD} bounds a larger one"
    return PrivacyClaim.bound(
        math.inf, curve, f"{basis}; exact where nobody else was asked, and every other device asked only hides{more}."
    )


@lru_cache(maxsize=4)
def _outcomes(n: int, beta: float, seen: float) -> tuple[Distribution, Distribution]:
    """Return the law of (K, R) with the device in the cell and outside, ((n + 1)²,) float64 each."""
    present = _table(n, n, beta, seen)
    others = _table(n - 1, n, beta, seen)
    # The device outside adds nothing to K, and 1 to R if it is unsampled and its blank is seen.
    share = (1.0 - beta) * seen
    absent = (1.0 - share) * others
    absent[:, 1:] += share * others[:, :-1]
    return present.ravel(), absent.ravel()


def _table(n: int, most: int, beta: float, seen: float) -> NDArray[np.float64]:
    """Return P[K = k, R = r] of n devices in the cell, K ~ Bin(n, β), R ~ Bin(n − K, seen), k and r in 0…most."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for one view only

    table = np.zeros((most + 1, most + 1))
    k = np.arange(n + 1)
    table[: n + 1] = binom.pmf(k, n, beta)[:, np.newaxis] * binom.pmf(
        np.arange(most + 1)[np.newaxis], (n - k)[:, np.newaxis], seen
    )
    return table
