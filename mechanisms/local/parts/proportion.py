"""The estimator of one yes/no count: how far it is from what nobody's Yes would give."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.parts.count_law import CountLaw
from mechanisms.local.parts.heard import Heard, estimate_between, estimate_nothing
from mechanisms.local.parts.variance import QuadraticVariance


def estimate_proportion(yes: NDArray[np.int64], *, true_yes: float, false_yes: float, heard: Heard) -> Estimate:
    """Estimate the devices that hold a Yes by N(C/n − p₀)/(p₁ − p₀) (SP eqs 2-5), with the interval of C's law.

    Parameters
    ----------
    yes : (cells,) int64
        C.
    true_yes, false_yes : float
        p₁ and p₀: probability of a Yes from a device that holds one, and from one that does not.
    heard : Heard
        Devices asked and counted.
    """
    n, rows = heard.counted[-1], len(yes)
    if heard.silent or heard.devices == 0:
        return estimate_nothing(heard, rows)
    count = heard.devices * (yes / n - false_yes) / (true_yes - false_yes)
    variance = proportion_variance(true_yes=true_yes, false_yes=false_yes, heard=heard)
    # Devices in the cell say the one of the two answers more often that the law is of.
    more, p, q = (yes, true_yes, false_yes) if true_yes > false_yes else (n - yes, 1.0 - true_yes, 1.0 - false_yes)
    law = CountLaw.of_proportion(true_yes=p, false_yes=q, devices=heard.devices, counted=n, rows=rows)
    return estimate_between(count, variance, law.invert(np.clip(more, 0, n)), heard)


def proportion_variance(*, true_yes: float, false_yes: float, heard: Heard) -> QuadraticVariance:
    """Return the exact variance of that estimate, given that n of N answers were counted.

    All N answers have Var X = Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀). A simple random sample of n of them adds
    N²/n · (N − n)/(N − 1) · (p(1 − p) − Var X/N²), p = p₀ + (p₁ − p₀)Y/N, the expected spread within the N
    answers. Both are divided by (p₁ − p₀)².

    Parameters
    ----------
    true_yes, false_yes : float
        p₁ and p₀: probability of a Yes from a device that holds one, and from one that does not.
    heard : Heard
        Devices asked and counted; none silent.
    """
    n = heard.devices
    if n == 0:
        return QuadraticVariance(0.0, 0.0, 0.0)
    counted = heard.counted[-1]
    gap = true_yes - false_yes
    spread = false_yes * (1.0 - false_yes)
    more = true_yes * (1.0 - true_yes) - spread
    # N/n · (N − n)/(N − 1): the factor of the sample's variance, over N; 0 when every answer was counted.
    sample = n / counted * (n - counted) / max(n - 1, 1)
    return QuadraticVariance(
        constant=(n * spread + sample * (n - 1) * spread) / gap**2,
        linear=(more + sample * (gap * (1.0 - 2.0 * false_yes) - more / n)) / gap**2,
        square=-sample / n,
    )
