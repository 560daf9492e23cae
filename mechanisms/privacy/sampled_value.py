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
class OwnValueDelta:
    """δ(ε) = [π_s − (e^ε − 1)·m]₊, m the least m_t, as a function of ε.

    A device with truth t gives its own output with m_t + π_s where any other gives it with m_t, and that is
    all that differs.

    Parameters
    ----------
    sampling : float
        π_s.
    least : float
        min m_t over t = 0…V.
    """

    sampling: float
    least: float

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if self.least == 0.0:
            return self.sampling
        return max(self.sampling - math.expm1(min(epsilon, LARGEST_EPSILON)) * self.least, 0.0)


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
    worst = int(blanks.argmin())
    basis = f"max over v = 0…V of ln((π_v + π_s)/π_v), at v = {worst} (SP eq 15; eq 29 leaves out v = 0)"
    if blanks[worst] == 0.0:
        basis += ": no blank says it"
    return _own_value_claim(sampling=sampling, least=float(blanks[worst]), queries=queries, basis=basis)


def linked_blanks(*, sampling: float, blanks: NDArray[np.float64], refresh: float) -> NDArray[np.float64]:
    """Return with what probability an unsampled device reports 0, then t: m_t = π_0((1 − ρ)[t = 0] + ρ·b_t).

    Parameters
    ----------
    sampling : float
        π_s.
    blanks : (cells + 1,) float64
        π_0…π_V; b_t = π_t/(1 − π_s).
    refresh : float
        ρ, with which an unsampled device redraws its blank in round two.

    Returns
    -------
    (cells + 1,) float64
    """
    again = blanks / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blanks)
    pairs: NDArray[np.float64] = blanks[0] * refresh * again
    pairs[0] += blanks[0] * (1.0 - refresh)
    return pairs


def linked_claim(
    *, sampling: float, queries: int, blanks: NDArray[np.float64] | None = None, refresh: float = 0.0
) -> PrivacyClaim:
    """Return what both reports of a device tell.

    Without refresh, no finite ε, and exactly how often they tell with certainty: a sampled device in cell v
    gives the pair (0, v), which nobody else gives, so δ ≥ π_s for every ε. An unsampled one gives (w, w) by
    π_w whatever its truth, so any two truths' laws overlap in all but π_s of their mass, and δ ≤ π_s. Over T
    queries, wherever the device goes, all but 1 − (1 − π_s)^T overlaps; staying in a cell attains it.

    With refresh an unsampled device gives the pair (0, t) too, with m_t (`linked_blanks`), and the laws of any
    two truths still differ at their own pairs only: ε = ln(1 + π_s/min m_t). The minimum runs over t = 0…V:
    it is at the least likely cell unless (1 − ρ) + ρ·b_0 is less than ρ·min b_v, as with ρ = 1 and a π_0 below
    every π_v, and then at outside.

    Parameters
    ----------
    sampling : float
        π_s.
    queries : int
        T.
    blanks : (cells + 1,) float64, optional
        π_0…π_V, needed with refresh.
    refresh : float
        ρ.
    """
    if refresh > 0.0 and blanks is not None:
        pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=refresh)
        worst = int(pairs.argmin())
        basis = (
            f"max over t = 0…V of ln(1 + π_s/m_t), m_t the probability that an unsampled device reports 0, then t, at "
            f"t = {worst} (from SP eqs 13-15 with refresh ρ = {refresh:g})"
        )
        if pairs[worst] == 0.0:
            basis += ": none does"
        return _own_value_claim(sampling=sampling, least=float(pairs[worst]), queries=queries, basis=basis)
    basis = (
        "The pair of reports (0, v) is given only by a sampled device in cell v, with π_s (from SP eqs 13-15; "
        "eq 29 does not cover it); over T queries 1 − (1 − π_s)^T, exactly."
    )
    return PrivacyClaim.exact(math.inf, ConstantDelta(_at_least_one(sampling, queries)), basis)


def _own_value_claim(*, sampling: float, least: float, queries: int, basis: str) -> PrivacyClaim:
    """Return the claim of a view in which a truth's own output comes with π_s more than it does from any other."""
    if least == 0.0:
        # Some output is given by its own devices only. Any two truths' laws overlap in all but π_s of their
        # mass, so T queries cannot tell more often than one of T independent events of probability π_s
        # happens, and staying there tells exactly as often.
        curve = ConstantDelta(_at_least_one(sampling, queries))
        return PrivacyClaim.exact(math.inf, curve, f"{basis}; over T queries δ = 1 − (1 − π_s)^T.")
    epsilon = math.log1p(sampling / least)
    if queries == 1:
        return PrivacyClaim.exact(epsilon, OwnValueDelta(sampling, least), f"{basis}.")
    # As telling, in both directions at once, as two truths that both have the least likely output: it
    # dominates every pair of truths, and is one where two are equally unlikely.
    rest = max(1.0 - sampling - 2.0 * least, 0.0)
    curve_bound = ComposedDelta.from_pair(
        (least + sampling, least, rest), (least, least + sampling, rest), queries=queries
    )
    basis = f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair."
    return PrivacyClaim.bound(queries * epsilon, curve_bound, basis)


def _at_least_one(probability: float, queries: int) -> float:
    """Return the probability that an event happens in at least one of the queries."""
    if queries == 1 or probability == 1.0:
        return probability
    return -math.expm1(queries * math.log1p(-probability))
