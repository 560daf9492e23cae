"""Claims of multi-valued Sampling Privacy: what one round tells, and what both tell together."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta

# e^ε beyond this overflows a double, and no blank is so unlikely that it matters.
LARGEST_EPSILON = 700.0


@dataclass(frozen=True)
class RoundTwoDelta:
    """δ(ε) = [π_s − (e^ε − 1)·π_a]₊ for the least likely blank a, as a function of ε.

    A device with truth v reports v with π_v + π_s where any other reports it with π_v, and that is all that
    differs.

    Parameters
    ----------
    sampling : float
        π_s.
    least_blank : float
        min π_a over a = 0…V.
    """

    sampling: float
    least_blank: float

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if self.least_blank == 0.0:
            return self.sampling
        return max(self.sampling - math.expm1(min(epsilon, LARGEST_EPSILON)) * self.least_blank, 0.0)


def round_one_claim() -> PrivacyClaim:
    """Return that round one tells nothing, in any number of queries."""
    return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "Round one is answered without the truth (SP eqs 13-14).")


def round_two_claim(*, sampling: float, blanks: NDArray[np.float64], queries: int) -> PrivacyClaim:
    """Return what round two tells: exact for one query, δ bounded for more.

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells + 1,) float64
        π_0…π_V: being outside every cell is a truth like another, so the worst blank is taken over 0…V.
    queries : int
        T.
    """
    least = float(blanks.min())
    worst = int(blanks.argmin())
    basis = f"max over v = 0…V of ln((π_v + π_s)/π_v), at v = {worst} (SP eq 15; eq 29 leaves out v = 0)"
    if least == 0.0:
        # Some value is told by its own devices only. Any two truths' laws overlap in all but π_s of their
        # mass, so T queries cannot tell more often than one of T independent events of probability π_s
        # happens, and staying there tells exactly as often.
        curve = ConstantDelta(_at_least_one(sampling, queries))
        return PrivacyClaim.exact(math.inf, curve, f"{basis}: no blank says it; over T queries δ = 1 − (1 − π_s)^T.")
    epsilon = math.log1p(sampling / least)
    if queries == 1:
        return PrivacyClaim.exact(epsilon, RoundTwoDelta(sampling, least), f"{basis}.")
    # As telling, in both directions at once, as two truths that both have the least likely blank: it
    # dominates every pair of truths, and is one where two blanks are equally unlikely.
    rest = max(1.0 - sampling - 2.0 * least, 0.0)
    curve_bound = ComposedDelta.from_pair(
        (least + sampling, least, rest), (least, least + sampling, rest), queries=queries
    )
    basis = f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair."
    return PrivacyClaim.bound(queries * epsilon, curve_bound, basis)


def linked_claim(*, sampling: float, queries: int) -> PrivacyClaim:
    """Return what both reports of a device tell: no finite ε, and exactly how often they tell with certainty.

    A sampled device in cell v gives the pair (0, v), which nobody else gives, so δ ≥ π_s for every ε. An
    unsampled one gives (w, w) by π_w whatever its truth, so any two truths' laws overlap in all but π_s of
    their mass, and δ ≤ π_s. Over T queries, wherever the device goes, all but 1 − (1 − π_s)^T overlaps;
    staying in a cell attains it.

    Parameters
    ----------
    sampling : float
        π_s.
    queries : int
        T.
    """
    basis = (
        "The pair of reports (0, v) is given only by a sampled device in cell v, with π_s (from SP eqs 13-15; "
        "eq 29 does not cover it); over T queries 1 − (1 − π_s)^T, exactly."
    )
    return PrivacyClaim.exact(math.inf, ConstantDelta(_at_least_one(sampling, queries)), basis)


def _at_least_one(probability: float, queries: int) -> float:
    """Return the probability that an event happens in at least one of the queries."""
    if queries == 1 or probability == 1.0:
        return probability
    return -math.expm1(queries * math.log1p(-probability))
