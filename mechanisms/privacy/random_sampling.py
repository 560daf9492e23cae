"""Random sampling: ε and δ of a sample's release from the population's, and the reverse (HDK theorem 1)."""

import math

from mechanisms.parameter import check_epsilon, check_probability

# Above this ε, e^−ε is below the last digit of 1, and e^ε may overflow.
LARGE = 40.0


def population_privacy(*, epsilon: float, delta: float = 0.0, share: float) -> tuple[float, float]:
    """Return the population's (ε_N, δ_N) where a sample's release is (ε_n, δ_n)-private.

    HDK theorem 1, for n of N drawn by simple random sampling without replacement and neighbours of one changed value:
    ε_N = ln(1 + (n/N)(e^ε_n − 1)), δ_N = (n/N)δ_n. The same algebra holds for independent sampling with probability
    n/N and neighbours that hold one device more or less (LQS theorem 1).

    Parameters
    ----------
    epsilon, delta : float
        ε_n ≥ 0, perhaps infinite, and δ_n in [0, 1].
    share : float
        n/N, in (0, 1].

    Returns
    -------
    float, float
        Accurate to the last few digits for every ε, however small or large.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    epsilon, delta, share = _checked(epsilon, delta, share)
    if share == 1.0:
        return epsilon, delta
    if epsilon <= LARGE:
        return math.log1p(share * math.expm1(epsilon)), share * delta
    # ln(1 − q + q·e^ε), with the larger of both terms factored out.
    sampled = epsilon + math.log(share)
    if sampled > 0.0:
        return sampled + math.log1p((1.0 - share) * math.exp(-sampled)), share * delta
    return math.log1p(math.exp(sampled) - share), share * delta


def sample_privacy(*, epsilon: float, delta: float = 0.0, share: float) -> tuple[float, float]:
    """Return the (ε_n, δ_n) with which a sample may be released for the population's (ε_N, δ_N).

    HDK theorem 1 solved for the sample: ε_n = ln(1 + (N/n)(e^ε_N − 1)), δ_n = (N/n)δ_N. Where that exceeds 1, anything
    may be released.

    Parameters
    ----------
    epsilon, delta : float
        ε_N ≥ 0, perhaps infinite, and δ_N in [0, 1].
    share : float
        n/N, in (0, 1].

    Returns
    -------
    float, float
        Accurate to the last few digits for every ε; δ_n is at most 1.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    epsilon, delta, share = _checked(epsilon, delta, share)
    if share == 1.0:
        return epsilon, delta
    within = min(1.0, delta / share)
    if epsilon > LARGE:
        return epsilon - math.log(share), within
    grown = math.expm1(epsilon) / share
    # For a share so small that the quotient overflows, ln(1 + x) is ln x.
    return (math.log1p(grown) if grown < math.inf else math.log(math.expm1(epsilon)) - math.log(share)), within


def _checked(epsilon: float, delta: float, share: float) -> tuple[float, float, float]:
    """Return the three arguments after checking their ranges."""
    return check_epsilon(epsilon), check_probability("delta", delta), check_probability("share", share, above_zero=True)
