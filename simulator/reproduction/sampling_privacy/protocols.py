"""Protocols of SP's evaluation with their parameters (sec 5.1), and the error bars it draws."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from mechanisms.local import RandomizedResponse, SamplingPrivacy

FIRST_COIN, SECOND_COIN = 0.8, 0.2
SAMPLING, SAMPLING_TWO = 0.45, 0.25
SP_Z, RR_Z = 2.0, 2.576
"""Standard deviations in the bars that Fig 6 states as 95 %: they differ between both, as all 22 bars show."""
FAIR_Z = 1.96


def sampling_privacy(cells: int, sampling: float = SAMPLING) -> "SamplingPrivacy":
    """Return "H Privacy": Sampling Privacy with equal blanks, which the paper omits and errors do not depend on."""
    from mechanisms.local import SamplingPrivacy  # noqa: PLC0415  imports wait until needed

    return SamplingPrivacy(cells=cells, sampling=sampling)


def randomized_response(cells: int) -> "RandomizedResponse":
    """Return randomized response with coin probabilities .8 and .2."""
    from mechanisms.local import RandomizedResponse  # noqa: PLC0415  imports wait until needed

    return RandomizedResponse(cells=cells, first_coin=FIRST_COIN, second_coin=SECOND_COIN)


def with_outside(inside: ArrayLike, devices: int) -> NDArray[np.int64]:
    """Return (cells + 1,) counts: the devices outside every cell, then those in each."""
    counts = np.asarray(inside, dtype=np.int64)
    return np.concatenate([[devices - counts.sum()], counts])


def crossover(devices: int, sampling: float = SAMPLING) -> float:
    """Return the occupancy Y above which randomized response has the smaller standard error.

    Y(1 − π_s)/π_s = (Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/π_1², solved for Y; infinite if there is none.
    """
    false_yes = (1.0 - FIRST_COIN) * SECOND_COIN
    true_yes = FIRST_COIN + false_yes
    noise = false_yes * (1.0 - false_yes)
    slope = FIRST_COIN**2 * (1.0 - sampling) / sampling - (true_yes * (1.0 - true_yes) - noise)
    return noise * devices / slope if slope > 0.0 else math.inf
