"""The estimator of refreshed Sampling Privacy: round one as a control variate of round two."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.difference import conditional_ends, difference_variance
from mechanisms.local.parts.heard import Heard, estimate_between, estimate_nothing
from mechanisms.local.parts.variance import QuadraticVariance


def kept_share(blank: NDArray[np.float64], *, sampling: float, refresh: float) -> NDArray[np.float64]:
    """Return κ, the correlation of whether an unsampled device's two blanks are a cell, (cells,) float64.

    A blank stays with 1 − ρ and else is drawn again from b_v = π_v/(1 − π_s), so the cell is both with
    π_v(1 − ρ + ρ·b_v), and κ = [π_v(1 − ρ) + ρπ_v²/(1 − π_s) − π_v²]/(π_v(1 − π_v)).

    Parameters
    ----------
    blank : (cells,) float64
        π_v, below 1.
    sampling : float
        π_s.
    refresh : float
        ρ.
    """
    again = blank / (1.0 - sampling) if sampling < 1.0 else np.zeros_like(blank)
    kept: NDArray[np.float64] = (1.0 - refresh + refresh * again - blank) / (1.0 - blank)
    return kept


def control_weight(blank: NDArray[np.float64], *, sampling: float, refresh: float, heard: Heard) -> NDArray[np.float64]:
    """Return λ = κ·n₁/M, what a count of round one is worth in an estimate from round two, (cells,) float64.

    With everyone heard it is κ, the regression of round two's count on round one's over the devices not in the
    cell: it must not hang on the count that is sought. With n₁ heard of the M of either round, that share of
    it: the variance of the estimate has λ²/n₁ − 2λκ/M.

    Parameters
    ----------
    blank : (cells,) float64
        π_v.
    sampling, refresh : float
        π_s and ρ.
    heard : Heard
        Devices asked and counted; none silent.
    """
    share = heard.counted[0] / max(heard.asked) if max(heard.asked) else 1.0
    weight: NDArray[np.float64] = kept_share(blank, sampling=sampling, refresh=refresh) * share
    return weight


def estimate_refreshed(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    sampling: float,
    blank: NDArray[np.float64],
    refresh: float,
    heard: Heard,
) -> Estimate:
    """Estimate the devices in each cell from both rounds' counts of it, where blanks are refreshed.

    Ŷ = N(C₂/n₂ − λC₁/n₁ − (1 − λ)π_v)/π_s is unbiased for any λ, as both rounds' blanks come with π_v. At λ = 1
    it is the difference (SP eq 16), at 0 round two alone, k-ary randomized response; `control_weight` is the λ
    between them that leaves least of the blanks' noise.

    Parameters
    ----------
    first, second : (cells,) int64
        C₁ and C₂, reports of each cell.
    sampling : float
        π_s.
    blank : (cells,) float64
        π_v.
    refresh : float
        ρ, above 0.
    heard : Heard
        Devices asked and counted.

    Returns
    -------
    Estimate
        With the interval of round two given round one.
    """
    if heard.silent:
        return estimate_nothing(heard, len(first))
    n = heard.devices
    rates = [n / counted if counted else 0.0 for counted in heard.counted]
    weight = control_weight(blank, sampling=sampling, refresh=refresh, heard=heard)
    count = (second * rates[1] - weight * (first * rates[0]) - (1.0 - weight) * (n * blank)) / sampling
    variance = refreshed_variance(sampling=sampling, blank=blank, refresh=refresh, heard=heard)
    kept = kept_share(blank, sampling=sampling, refresh=refresh)
    ends = conditional_ends(first, second, sampling=sampling, blank=blank, kept=kept, heard=heard)
    return estimate_between(count, variance, ends, heard)


def refreshed_variance(
    *, sampling: float, blank: NDArray[np.float64], refresh: float, heard: Heard
) -> QuadraticVariance:
    """Return the exact variance of that estimate, given how many devices each round asked and counted.

    On an ideal channel it is [Y·π_s(1 − π_s − 2π_v(1 − κ)) + N·π_v(1 − π_v)(1 − κ²)]/π_s²: its growth with N
    ends only with refresh, at κ = 1. (`difference_variance` has the terms of loss and churn.)

    Parameters
    ----------
    sampling : float
        π_s.
    blank : (cells,) float64
        π_v.
    refresh : float
        ρ.
    heard : Heard
        Devices asked and counted; none silent.
    """
    return difference_variance(
        sampling=sampling,
        blank=blank,
        heard=heard,
        kept=kept_share(blank, sampling=sampling, refresh=refresh),
        weight=control_weight(blank, sampling=sampling, refresh=refresh, heard=heard),
    )
