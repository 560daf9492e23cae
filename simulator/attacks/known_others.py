"""Known others: whether one device is in a cell, by a coalition that knows where all other devices are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.inference import OwnReportMasses, difference_log_ratio, own_reports_guess_success
from mechanisms.local import SamplingPrivacy
from simulator.attacks.observation import OwnReports

IntArray = npt.NDArray[np.int64]
TIES = 1e-9
"""Log ratios up to it are even evidence, but for rounding."""


@dataclass(frozen=True, eq=False)
class LastDevice:
    """Cells of which everything is known but whether one more device is in it.

    Parameters
    ----------
    cell
        (n,) int64.
    crowd
        (n,) int64, devices in the cell with it, those left out whose reports the coalition knows.
    differences
        (n,) int64, what was published of the cell less what those devices added; anything below k where suppressed.
        None where nothing was published.
    k
        (n,) int64: differences below it are suppressed, less what those devices added; None: none are.
    rounds
        Which of the device's own reports are read.
    first, second
        (n,) int64, these reports; None where they are not read.
    """

    cell: IntArray
    crowd: IntArray
    differences: IntArray | None
    k: IntArray | None
    rounds: tuple[int, ...] = ()
    first: IntArray | None = None
    second: IntArray | None = None

    def theory(self, mechanism: SamplingPrivacy) -> npt.NDArray[np.float64]:
        """Return the expected success at even odds, (n,) float64."""
        return own_reports_guess_success(
            mechanism,
            cell=self.cell,
            crowd=self.crowd,
            rounds=self.rounds,
            k=self.k,
            published=self.differences is not None,
        )


def known_others(mechanism: SamplingPrivacy, last: LastDevice) -> npt.NDArray[np.bool_]:
    """Guess whether the one device was in the cell or outside all, even odds, by the ratio of likelihoods.

    The difference of the n − 1 others is Bin(n − 1, π_s); the device adds what its reports say (papers.md, item 3).
    Even evidence is taken for "outside".

    Parameters
    ----------
    mechanism
        Without refresh: its differences are binomial.
    last
        What is known, read and published.

    Returns
    -------
    (n,) bool
        Whether it is guessed to be there.
    """
    ratio = None
    if last.differences is not None:
        ratio = difference_log_ratio(last.differences, crowd=last.crowd, sampling=mechanism.sampling)
        if last.k is not None:
            for k in np.unique(last.k[last.k > 0]).tolist():
                hidden = (last.k == k) & (last.differences < k)
                ratio[hidden] = difference_log_ratio(
                    last.differences[hidden], crowd=last.crowd[hidden], sampling=mechanism.sampling, k=k
                )
    own = OwnReportMasses.of(mechanism, last.cell, last.first, last.second)
    guessed: npt.NDArray[np.bool_] = own.log_ratio(ratio, sampling=mechanism.sampling) > TIES
    return guessed


def added_by(own: OwnReports | None, cells: int) -> tuple[IntArray, IntArray]:
    """Return what corrupted vehicles added to each cell's difference, and how many were in it, (cells + 1,) each."""
    if own is None:
        return np.zeros(cells + 1, dtype=np.int64), np.zeros(cells + 1, dtype=np.int64)
    first, second = (np.bincount(np.asarray(reports), minlength=cells + 1) for reports in own.reports)
    return (second - first).astype(np.int64), np.bincount(own.truth, minlength=cells + 1).astype(np.int64)
