"""What published differences tell about one device: exactly, for crowds of any size."""

import math

from mechanisms.parameter import check_epsilon, check_integer, check_probability
from mechanisms.privacy.binomial import mass_above, mass_at, mass_up_to

# n·e^ε beyond this overflows a double; by then only the certain part of δ is left.
LARGEST_EPSILON = 600.0
# A peak beyond this is one of a δ that is 0 to the last digit.
LARGEST_CROWD = 10**15


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


def worst_crowd_delta(*, k: int, sampling: float, epsilon: float, at_least: int = 1) -> float:
    """Return the greatest δ(ε) of a cell's suppressed difference over every crowd: for who cannot say how many.

    Suppressed below k, differences of small crowds are never published and those of large ones tell little,
    so the worst crowd lies between. While t stays at k − 1 the first direction's δ grows by one more device
    just as long as n < (k − 1)/γ, γ = 1 − (1−β)e^−ε, and from t ≥ k − 1 on it is that without suppression,
    which never grows; the second likewise, with 1 − (1−β)e^ε where that is positive. So each direction has
    its one maximum at n = ⌈(k − 1)/γ⌉, or at k if that is more. (LQS theorem 5 bounds the same quantity from
    above: `mechanisms.privacy.strongly_safe`.)

    Parameters
    ----------
    k : int
        Differences below it are suppressed; at least 1.
    sampling : float
        β = π_s, in (0, 1].
    epsilon : float
        At least 0.
    at_least : int
        Devices known to be in the cell, the one in question included; only such crowds are looked at.

    Returns
    -------
    float
    """
    least = check_integer("k", k, at_least=1)
    known = check_integer("at_least", at_least, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    factor = math.exp(min(check_epsilon(epsilon), LARGEST_EPSILON))
    slopes = (1.0 - (1.0 - beta) / factor, 1.0 - (1.0 - beta) * factor)
    peaks = {math.ceil(min((least - 1) / slope, LARGEST_CROWD)) for slope in slopes if slope > 0.0}
    # One more on either side, for the rounding of the peak.
    crowds = {max(peak + step, least, known) for peak in peaks for step in (-1, 0, 1)}
    return max(released_differences_delta(crowd=n, sampling=beta, epsilon=epsilon, k=least) for n in crowds)


def _delta_present(n: int, beta: float, epsilon: float, least: int) -> float:
    """Return the hockey stick of Bin(n, β) against Bin(n − 1, β): many sampled tell that the device was there."""
    # t = n is reached only by rounding, when ε is so large that nothing but all n sampled is telling.
    t = max(min(math.floor(n * (1.0 - (1.0 - beta) * math.exp(-epsilon))), n - 1), least - 1)
    at, above = float(mass_at(t, n - 1, beta)), float(mass_above(t, n - 1, beta))
    return max(beta * at - math.expm1(epsilon) * above, 0.0)


def _delta_absent(n: int, beta: float, epsilon: float, least: int) -> float:
    """Return the hockey stick of Bin(n − 1, β) against Bin(n, β): few sampled tell that it was not."""
    s = math.ceil(n * (1.0 - (1.0 - beta) * math.exp(epsilon))) - 1
    if s < 0:
        return 0.0  # from ε = −ln(1 − β) on
    s = max(s, least - 1)
    # P[Bin(n) ≤ s] = P[Bin(n−1) ≤ s] − β P[Bin(n−1) = s]
    at, below = float(mass_at(s, n - 1, beta)), float(mass_up_to(s, n - 1, beta))
    return max(math.exp(epsilon) * beta * at - math.expm1(epsilon) * below, 0.0)
