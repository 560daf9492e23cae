"""The estimator of Sampling Privacy: what round two adds to round one, over the sampling probability."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.count_law import CountLaw
from mechanisms.local.parts.heard import Heard, estimate_between, estimate_nothing
from mechanisms.local.parts.intervals import invert_binomial
from mechanisms.local.parts.variance import QuadraticVariance


def estimate_difference(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    sampling: float,
    blank: float | NDArray[np.float64],
    heard: Heard,
) -> Estimate:
    """Estimate the devices in each cell from the two rounds' counts of it.

    On an ideal channel Ŷ = (C₂ − C₁)/π_s (SP eqs 11 and 16): the blanks of round one come again in round two
    and cancel, C₂ − C₁ is Bin(Y, π_s), and the interval inverts that. Otherwise each count is divided by the
    rate at which its round was heard, Ŷ = N(C₂/n₂ − C₁/n₁)/π_s, the blanks cancel only on average, and the
    interval is that of C₂ given C₁.

    Parameters
    ----------
    first, second : (cells,) int64
        C₁ and C₂, reports of each cell.
    sampling : float
        π_s.
    blank : float or (cells,) float64
        Probability π_v that an unsampled device reports the cell.
    heard : Heard
        Devices asked and counted.
    """
    if heard.silent:
        return estimate_nothing(heard, len(first))
    if not heard.ideal:
        rates = np.array([heard.devices / n if n else 0.0 for n in heard.counted])
        count = (second * rates[1] - first * rates[0]) / sampling
        variance = difference_variance(sampling=sampling, blank=blank, heard=heard)
        ends = conditional_ends(first, second, sampling=sampling, blank=blank, kept=1.0, heard=heard)
        return estimate_between(count, variance, ends, heard)
    difference = second - first
    count = difference / sampling
    # Honest counts never differ by less than 0 or more than N; forged ones must still give an interval.
    lower, upper = invert_binomial(np.clip(difference, 0, heard.devices), sampling)
    variance = difference_variance(sampling=sampling, blank=blank, heard=heard)
    return Estimate(
        count,
        variance.std_error(np.clip(count, 0.0, heard.devices)),
        np.minimum(lower, heard.devices).astype(np.float64),
        np.minimum(upper, heard.devices).astype(np.float64),
        "binomial inversion",
    )


def conditional_ends(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    sampling: float,
    blank: float | NDArray[np.float64],
    kept: float | NDArray[np.float64],
    heard: Heard,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the interval of Y from C₂ given C₁, which says nothing of Y by itself.

    Of the M devices of either round C₁ are known to have had the blank v in round one, n₁ − C₁ not to, and of M − n₁
    nothing is known. In round two they say v with α = π_v + κ(1 − π_v), β = π_v(1 − α)/(1 − π_v) and π_v; being in
    the cell adds nothing to the first, π_s/(1 − π_v) to the second, since none of them can be sampled and have said
    v, and π_s to the third.

    Parameters
    ----------
    first, second : (cells,) int64
        C₁ and C₂.
    sampling : float
        π_s.
    blank : float or (cells,) float64
        π_v.
    kept : float or (cells,) float64
        κ, the correlation of an unsampled device's two blanks at the cell.
    heard : Heard
        Devices asked and counted; none silent.

    Returns
    -------
    lower, upper : (cells,) float64
    """
    if heard.devices == 0:
        return np.zeros(len(first)), np.zeros(len(first))
    (n1, n2), most = heard.counted, max(heard.asked)
    known = np.clip(first, 0, n1)
    blank = np.broadcast_to(blank, known.shape)
    again = blank + kept * (1.0 - blank)
    other = 1.0 - blank
    shares = np.stack([known / most, (n1 - known) / most, np.full(known.shape, 1.0 - n1 / most)])
    said = np.stack([again, blank * (1.0 - again) / other, blank])
    adds = np.stack([np.zeros(known.shape), sampling / other, np.full(known.shape, sampling)])
    mean, gain = (shares * said).sum(axis=0), (shares * adds).sum(axis=0)
    spread = [(shares * one * two).sum(axis=0) for one, two in ((said, said), (said, adds), (adds, adds))]
    false_yes = (shares * said)[1:].sum(axis=0)
    law = CountLaw(
        devices=heard.devices,
        counted=n2,
        true_yes=false_yes + gain,
        false_yes=false_yes,
        known=known,
        again=again,
        among=most,
        spread=np.stack(spread) - np.stack([mean * mean, mean * gain, gain * gain]),
    )
    return law.invert(np.clip(second, 0, n2))


def difference_variance(
    *,
    sampling: float,
    blank: float | NDArray[np.float64],
    heard: Heard,
    kept: float | NDArray[np.float64] = 1.0,
    weight: float | NDArray[np.float64] = 1.0,
) -> QuadraticVariance:
    """Return the exact variance of the estimate, given how many devices each round asked and counted.

    On an ideal channel it is Y(1 − π_s)/π_s, whatever N is: the paper's constant error. With n₁ and n₂ of N
    heard, as independent simple random samples, and L = (N − n)/n,

    Var = Y(1 − π_s)/π_s + N[π_v(1 − π_v)L₁ + p₂(1 − p₂)L₂]/π_s² + L₂·Y(1 − Y/N)/(N − 1),   p₂ = π_v +
    π_s·Y/N,

    of which the last term, at most L₂/4 · N/(N − 1), is all that the usual first-order formula lacks. Where
    the rounds asked N₁ ≠ N₂ = N devices, the smaller set drawn from the larger of M, N·L₁ becomes N²(1/n₁ +
    1/N − 2/M), and what the blanks of both rounds no longer share takes 2Yπ_v(1 − N/M)/π_s away.

    Parameters
    ----------
    sampling : float
        π_s.
    blank : float or (cells,) float64
        π_v.
    heard : Heard
        Devices asked and counted; none silent.
    kept : float or (cells,) float64
        κ, the correlation of an unsampled device's two blanks at the cell; 1 where it repeats itself.
    weight : float or (cells,) float64
        λ.

    Returns
    -------
    QuadraticVariance
        In Y, the devices truly in the cell.
    """
    n = heard.devices
    if n == 0:
        return QuadraticVariance(0.0, 0.0, 0.0)
    most = max(heard.asked)
    first_spread = n * (weight * weight * n / heard.counted[0] + 1.0 - 2.0 * weight * kept * n / most)
    loss = (n - heard.counted[1]) / heard.counted[1]
    within = loss / max(n - 1, 1)
    blank_spread = blank * (1.0 - blank) / sampling**2
    return QuadraticVariance(
        constant=blank_spread * (first_spread + n * loss),
        linear=(1.0 - sampling - 2.0 * blank * (1.0 - weight * n / most) + loss * (1.0 - 2.0 * blank)) / sampling
        + within,
        square=-(loss + within) / n,
    )
