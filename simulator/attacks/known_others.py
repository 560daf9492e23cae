"""Known others: the published differences, by somebody who knows where everyone is but one device."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.inference import difference_guess_success, difference_log_ratio
from mechanisms.local import SamplingPrivacy

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LastDevice:
    """Cells of which everything is known but whether one more device is in it.

    Parameters
    ----------
    crowd
        (n,) int64, devices in the cell if it is.
    differences
        (n,) int64, what was published of the cell; where suppressed, anything below k.
    k
        Differences below it are suppressed; None: none are.
    """

    crowd: IntArray
    differences: IntArray
    k: int | None


def known_others(mechanism: SamplingPrivacy, last: LastDevice) -> npt.NDArray[np.bool_]:
    """Guess whether the one device was in the cell or outside all, even odds, by the ratio of likelihoods.

    The difference is Bin(n, π_s) with it and Bin(n − 1, π_s) without (papers.md, item 3). Even evidence is taken for
    "outside".

    Parameters
    ----------
    mechanism
        Without refresh: its differences are binomial.
    last
        What is known and what was published.

    Returns
    -------
    (n,) bool
        Whether it is guessed to be there.
    """
    ratio = difference_log_ratio(last.differences, crowd=last.crowd, sampling=mechanism.sampling, k=last.k)
    guessed: npt.NDArray[np.bool_] = ratio > 0.0
    return guessed


def known_others_theory(mechanism: SamplingPrivacy, crowd: IntArray, k: int | None) -> float:
    """Return the expected success over such cells, at even odds."""
    return float(difference_guess_success(crowd=crowd, sampling=mechanism.sampling, k=k).mean())
