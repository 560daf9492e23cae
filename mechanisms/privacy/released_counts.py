"""What the published counts of both rounds tell about one device: more than their differences do."""

import math

from mechanisms.parameter import check_integer, check_probability
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.crowd_ratio import CrowdRatioDelta
from mechanisms.privacy.view import ReleasedCounts


def released_counts_delta(*, crowd: int, sampling: float, seen: float, epsilon: float) -> float:
    """Return δ(ε) of both rounds' published counts when nobody but the crowd was asked, the larger of both directions.

    The device is in the cell or outside every cell, the number asked fixed, everyone else known. What the
    counts add to the difference K, the sampled devices of the cell, is how many unsampled devices gave a blank
    that can be told from a sampled device's 0:

    - multi-valued: R = Σ_{v≥1} C_v,₁, the devices whose blank is not 0; the counts of 0 follow from K, R and
      n, and how R falls to the cells is the same in both worlds;
    - one question: R = C1₁, the devices whose blank is 1.

    In both a device outside is in R with probability (1 − π_s)s, s = `seen`, as often as one in the cell, and
    in K never. So K is how many answer up, with π_s or not at all, and n − K − R how many are still, with z =
    1 − π_s − (1 − π_s)s or with π_s more (`CrowdRatioDelta`). With z = 0 a device that was outside and sampled
    is alone in being still: δ ≥ π_s.

    Parameters
    ----------
    crowd : int
        n, the one in question included, at least 1.
    sampling : float
        π_s, in (0, 1].
    seen : float
        s, probability that an unsampled device's blank is in R, in [0, 1].
    epsilon : float
        At least 0.

    Returns
    -------
    float
        Within 1e-15, and at least π_sⁿ.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    n = check_integer("crowd", crowd, at_least=1)
    beta = check_probability("sampling", sampling, above_zero=True)
    check_probability("seen", seen)
    if beta == 1.0:
        return 1.0  # the counts are the truth
    return _curve(n, beta, seen, 1)(epsilon)


def _curve(crowd: int, sampling: float, seen: float, queries: int) -> CrowdRatioDelta:
    """Return δ(ε) of both rounds' counts, for π_s below 1."""
    rest = (1.0 - sampling) * (1.0 - seen)
    return CrowdRatioDelta(
        crowd=crowd,
        up=sampling,
        still=rest,
        up_ratio=0.0,
        still_ratio=1.0 + sampling / rest if rest > 0.0 else 1.0,
        apart=0.0 if rest > 0.0 else sampling,
        queries=queries,
    )


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
    more = "" if view.queries == 1 else "; over T queries T·δ(ε/T)"
    return PrivacyClaim.bound(
        math.inf,
        _curve(view.crowd, sampling, seen, view.queries),
        f"{basis}; exact where nobody else was asked, and every other device asked only hides{more}.",
    )
