"""Bars: the truth, and how far above it a bound of so many standard deviations lies."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.reproduction.sampling_privacy.protocols import (
    FIRST_COIN,
    RR_Z,
    SAMPLING,
    SP_Z,
    randomized_response,
    sampling_privacy,
    with_outside,
)


@dataclass(frozen=True)
class Bars:
    """The bars of one figure.

    Parameters
    ----------
    devices : int
        Asked, N.
    truth : (groups,) int64
    sampling_error, response_error : (groups,) float64
        Standard errors of Sampling Privacy at π_s = .45 and of randomized response at .8/.2.
    """

    devices: int
    truth: NDArray[np.int64]
    sampling_error: NDArray[np.float64]
    response_error: NDArray[np.float64]

    def sampling(self, z: float = SP_Z) -> NDArray[np.int64]:
        """Return Sampling Privacy's bars, (groups,): ⌊Y + z·σ⌋, as Fig 6 prints them with z = 2."""
        return floor(self.truth + z * self.sampling_error)

    def response(self, z: float = RR_Z) -> NDArray[np.int64]:
        """Return randomized response's bars, (groups,): ⌊Y + z·σ⌋, as Fig 6 prints them with z = 2.576."""
        return floor(self.truth + z * self.response_error)


def floor(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round down, but for what rounding took from a whole number."""
    return np.floor(values + 1e-9).astype(np.int64)


def bars_of(truth: tuple[int, ...], devices: int) -> Bars:
    """Compute the bars of a question asked of so many devices, those of no group outside."""
    counts = with_outside(truth, devices)
    return Bars(
        devices,
        counts[1:],
        sampling_privacy(len(truth)).std_error(counts),
        randomized_response(len(truth)).std_error(counts),
    )


def sampling_coverage(truth: int, bound: float) -> float:
    """Return the exact probability that Bin(Y, π_s)/π_s, Sampling Privacy's estimate, is within a bound of Y."""
    from scipy.stats import binom  # noqa: PLC0415  imports wait until needed

    sampled = np.arange(truth + 1)
    near = np.abs(sampled / SAMPLING - truth) <= bound + 1e-9
    return float(binom.pmf(sampled, truth, SAMPLING)[near].sum())


def response_coverage(truth: int, devices: int, bound: float) -> float:
    """Return the exact probability that randomized response's estimate of Y is within a bound of it.

    The count of Yes is Bin(Y, p₁) + Bin(N − Y, p₀), whose law is a convolution.
    """
    from scipy.stats import binom  # noqa: PLC0415  imports wait until needed

    response = randomized_response(1)
    inside = binom.pmf(np.arange(truth + 1), truth, response.true_yes)
    outside = binom.pmf(np.arange(devices - truth + 1), devices - truth, response.false_yes)
    law = np.convolve(inside, outside)
    estimate = (np.arange(devices + 1) - response.false_yes * devices) / FIRST_COIN
    return math.fsum(law[np.abs(estimate - truth) <= bound + 1e-9])
