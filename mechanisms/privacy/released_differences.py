"""What published differences tell about one device: exactly, for crowds of any size."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import check_epsilon, check_integer, check_probability
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.dominating_pair import dominating_pair
from mechanisms.privacy.view import ReleasedDifferences

# e^ε beyond this overflows a double; by then only the certain part of δ is left.
LARGEST_EPSILON = 700.0
# Crowds whose whole distribution is composed over queries; for larger ones δs are simply added up.
LARGEST_COMPOSED = 2_000


def released_differences_delta(*, crowd: int, sampling: float, epsilon: float, k: int | None = None) -> float:
    """Return the exact δ(ε) of a cell's published difference, the larger of both directions.

    The difference D = C₂ − C₁ of a cell with n devices is Bin(n, π_s), whatever the blanks: an unsampled
    device repeats itself and cancels (SP eqs 12-16 and 11; the δ is derived here, the paper has none).
    Neighbours: one device in the cell or outside every cell, the number queried fixed and everyone else
    known, so Bin(n, β) against Bin(n − 1, β) with β = π_s:

    δ(ε) = max( P[Bin(n,β) > t] − e^ε P[Bin(n−1,β) > t],  P[Bin(n−1,β) ≤ s] − e^ε P[Bin(n,β) ≤ s] ),
    t = ⌊n(1 − (1−β)e^−ε)⌋, s = ⌈n(1 − (1−β)e^ε)⌉ − 1.

    Computed with the two binomials' difference taken by hand (P[Bin(n) > t] = P[Bin(n−1) > t] + β P[Bin(n−1)
    = t]), which leaves two terms that are not nearly equal: small δ keep their digits.

    With differences below k suppressed, those are one output. Its likelihood ratio lies on the side where
    more was said already, so the same formulas hold with t and s raised to k − 1, and no δ is below 0.

    Adding a device to the crowd adds an independent Bernoulli(β) to both worlds, so without suppression δ
    never grows with the crowd.

    Parameters
    ----------
    crowd : int
        n, devices in the cell with the one in question, at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    k : int, optional
        Differences below it are suppressed; none are, by default.

    Returns
    -------
    float
        At least βⁿ for every ε, if n ≥ k: with all n sampled the device must have been there.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    epsilon = min(check_epsilon(epsilon), LARGEST_EPSILON)
    least = 0 if k is None else check_integer("k", k, at_least=1)
    if n < least:
        return 0.0  # nothing is ever published
    if beta == 1.0:
        return 1.0  # the difference is the count itself
    return max(_delta_present(n, beta, epsilon, least), _delta_absent(n, beta, epsilon, least))


def worst_crowd_delta(*, k: int, sampling: float, epsilon: float) -> float:
    """Return the greatest δ(ε) of a cell's suppressed difference over every crowd: for who cannot say how many.

    Suppressed below k, differences of small crowds are never published and those of large ones tell little,
    so the worst crowd lies between. δ without suppression bounds it and falls with the crowd: the search
    ends where that bound is below the best seen. (LQS theorem 5 bounds the same quantity from above.)

    Parameters
    ----------
    k : int
        Differences below it are suppressed; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.

    Returns
    -------
    float
    """
    crowd, worst = check_integer("k", k, at_least=1), 0.0
    while released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon) > worst:
        worst = max(worst, released_differences_delta(crowd=crowd, sampling=sampling, epsilon=epsilon, k=k))
        crowd += 1
    return worst


def _delta_present(n: int, beta: float, epsilon: float, least: int) -> float:
    """Return the hockey stick of Bin(n, β) against Bin(n − 1, β): many sampled tell that the device was there."""
    # t = n is reached only by rounding, when ε is so large that nothing but all n sampled is telling.
    t = max(min(math.floor(n * (1.0 - (1.0 - beta) * math.exp(-epsilon))), n - 1), least - 1)
    at, above = _at_and_above(t, n - 1, beta)
    return max(beta * at - math.expm1(epsilon) * above, 0.0)


def _delta_absent(n: int, beta: float, epsilon: float, least: int) -> float:
    """Return the hockey stick of Bin(n − 1, β) against Bin(n, β): few sampled tell that it was not."""
    s = math.ceil(n * (1.0 - (1.0 - beta) * math.exp(epsilon))) - 1
    if s < 0:
        return 0.0  # from ε = −ln(1 − β) on
    s = max(s, least - 1)
    # P[Bin(n) ≤ s] = P[Bin(n−1) ≤ s] − β P[Bin(n−1) = s]
    at, below = _at_and_below(s, n - 1, beta)
    return max(math.exp(epsilon) * beta * at - math.expm1(epsilon) * below, 0.0)


def _at_and_above(k: int, n: int, beta: float) -> tuple[float, float]:
    """Return P[Bin(n, β) = k] and P[Bin(n, β) > k], tails not as one minus something."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for one view only

    return float(binom.pmf(k, n, beta)), float(binom.sf(k, n, beta))


def _at_and_below(k: int, n: int, beta: float) -> tuple[float, float]:
    """Return P[Bin(n, β) = k] and P[Bin(n, β) ≤ k]."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for one view only

    return float(binom.pmf(k, n, beta)), float(binom.cdf(k, n, beta))


@dataclass(frozen=True)
class ReleasedDelta:
    """δ(ε) of published differences as a function of ε; over several queries a bound, the least of those given.

    Parameters
    ----------
    crowd : int
        Devices in the cell.
    sampling : float
        π_s.
    queries : int
        T: by basic composition ε and δ add up, T·δ(ε/T), which is the better bound where δ is tiny.
    k : int, optional
        Differences below it are suppressed.
    composed : ComposedDelta, optional
        A bound by numerical composition, better elsewhere.
    """

    crowd: int
    sampling: float
    queries: int = 1
    k: int | None = None
    composed: ComposedDelta | None = None

    def __call__(self, epsilon: float) -> float:
        """Return δ, or the bound of it."""
        single = released_differences_delta(
            crowd=self.crowd, sampling=self.sampling, epsilon=epsilon / self.queries, k=self.k
        )
        added = min(1.0, self.queries * single)
        return added if self.composed is None else min(added, self.composed(epsilon))


def released_differences_claim(view: ReleasedDifferences, sampling: float) -> PrivacyClaim:
    """Return what published differences tell about one device, between its cell and outside every cell.

    Parameters
    ----------
    view : ReleasedDifferences
        The crowd, the threshold and the queries.
    sampling : float
        π_s.

    Returns
    -------
    PrivacyClaim
        "infinite" at δ = 0, since δ(ε) ≥ π_sⁿ; δ exact for one query and a bound for more.
    """
    if view.k is not None and view.crowd < view.k:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "A difference of fewer than k devices is never published.")
    relation = "one device between the cell and outside every cell, the number queried fixed, everyone else known"
    suppressed = "" if view.k is None else f", differences below {view.k} suppressed"
    basis = (
        f"D is Bin(n, π_s) against Bin(n − 1, π_s) for {relation}{suppressed} (from SP eqs 11-16); δ(ε) ≥ π_sⁿ, so "
        "no ε is finite"
    )
    if sampling == 1.0:
        return PrivacyClaim.exact(math.inf, ConstantDelta(1.0), f"{basis}; with π_s = 1, D is the count itself.")
    if view.queries == 1:
        return PrivacyClaim.exact(math.inf, ReleasedDelta(view.crowd, sampling, k=view.k), f"{basis}.")
    if view.crowd > LARGEST_COMPOSED:
        curve = ReleasedDelta(view.crowd, sampling, view.queries, view.k)
        return PrivacyClaim.bound(math.inf, curve, f"{basis}; over T queries T·δ(ε/T), by basic composition.")
    present = _published(view.crowd, view, sampling)
    absent = _published(view.crowd - 1, view, sampling)
    # The device may come at one query and go at another, so both directions must be dominated at once.
    p, q = dominating_pair([(present, absent), (absent, present)])
    composed = ComposedDelta.from_pair(p, q, queries=view.queries)
    return PrivacyClaim.bound(
        math.inf,
        ReleasedDelta(view.crowd, sampling, view.queries, view.k, composed),
        f"{basis}; over T queries the lesser of T·δ(ε/T) and the composed privacy loss distribution of a pair that "
        "dominates both directions.",
    )


def _published(n: int, view: ReleasedDifferences, beta: float) -> NDArray[np.float64]:
    """Return the probabilities of 0…crowd under Bin(n, β), those below k taken together, as a float64 vector."""
    from scipy.stats import binom  # noqa: PLC0415 - half a second, for one view only

    masses: NDArray[np.float64] = np.asarray(binom.pmf(np.arange(view.crowd + 1), n, beta), dtype=np.float64)
    masses /= masses.sum()
    return masses if view.k is None else np.append(masses[: view.k].sum(), masses[view.k :])
