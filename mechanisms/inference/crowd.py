"""What a few devices' reports reveal about each, where some are linked to devices and of others sums or lists are seen.

The truths of the devices are independent draws from one prior, and so are their coins. Everything that is seen is a
function of the devices' reports. So the posterior of a device's truth is the sum of the probabilities of all
combinations of the devices' reports that agree with what is seen, and it is exact. It is computed by going through
them, which limits it to a few devices with few reports.

Since nothing that is seen is left out, whoever sees more guesses at least as well: a guess from less is also a guess
from more, and the best one is at least as good.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Most combinations of the devices' reports, times the truths.
MOST_COMBINATIONS = 2**17
MULTIPLIER = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Crowd:
    """A few devices with the same prior and mechanism.

    Parameters
    ----------
    devices : int
        n.
    prior : (V + 1,) float64
    masses : (V + 1, outcomes) float64
        Probability of each outcome, all of one device's reports, given each truth.
    sums : (outcomes, width) int64
        What a device with this outcome adds to the sums and lists.
    least : (width,) int64
        Sums below it are hidden: they are seen as one less than it.
    """

    devices: int
    prior: NDArray[np.float64]
    masses: NDArray[np.float64]
    sums: NDArray[np.int64]
    least: NDArray[np.int64]

    @staticmethod
    def fits(devices: int, outcomes: int, truths: int) -> bool:
        """Return whether all combinations of so many devices' reports can be gone through."""
        return bool(outcomes**devices * truths <= MOST_COMBINATIONS)

    @property
    def _joint(self) -> NDArray[np.float64]:
        """P(truth, outcome) of one device, (outcomes, V + 1)."""
        return (self.prior[:, np.newaxis] * self.masses).T

    def _shown(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what is seen of each combination of outcomes, (combinations, width)."""
        return np.asarray(np.maximum(self.sums[rows].sum(axis=1), self.least - 1))

    def posterior(self, possible: Sequence[NDArray[np.bool_]], seen: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return each device's posterior, (n, V + 1); None if no reports agree with what is seen.

        Parameters
        ----------
        possible : n of (outcomes,) bool
            Which outcomes agree with the reports that are linked to the device.
        seen : (width,) int64
            What is seen of the sums of all devices.
        """
        joint = self._joint
        rows = _combinations([np.flatnonzero(agreeing) for agreeing in possible])
        agree = (self._shown(rows) == seen).all(axis=1)
        rows = rows[agree]
        each = joint.sum(axis=1)
        weights = each[rows].prod(axis=1)
        total = weights.sum()
        if total <= 0.0:
            return None
        after = joint / np.where(each > 0.0, each, 1.0)[:, np.newaxis]
        each_device = [weights @ after[rows[:, device]] / total for device in range(self.devices)]
        return np.stack(each_device)

    def success(self, linked: Sequence[Sequence[NDArray[np.int64]]], device: int) -> float:
        """Return the exact success of the best guess about a device: Σ of the best mass over all that may be seen.

        Parameters
        ----------
        linked : n sequences of (outcomes,) int64
            For each device the reports that are linked to it, as numbers: equal numbers are equal reports.
        device : int
            The position of the device.
        """
        joint = self._joint
        rows = _combinations([np.arange(len(joint))] * self.devices)
        keys = [self._shown(rows)]
        keys += [numbers[rows[:, place]][:, np.newaxis] for place, reports in enumerate(linked) for numbers in reports]
        key = np.concatenate(keys, axis=1)
        # Rows are compared by a polynomial modulo 2⁶⁴: different ones are hardly ever equal.
        weights = np.cumprod(np.full(key.shape[1], MULTIPLIER, dtype=np.uint64))
        _, number = np.unique((key.astype(np.uint64) * weights).sum(axis=1), return_inverse=True)
        others = np.delete(joint.sum(axis=1)[rows], device, axis=1).prod(axis=1)
        masses_of_device = joint[rows[:, device]] * others[:, np.newaxis]
        masses = np.stack([np.bincount(number, column) for column in masses_of_device.T], axis=1)
        return float(masses.max(axis=1).sum())


def _combinations(outcomes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return all combinations of one outcome for each device, (combinations, n)."""
    return np.stack(np.meshgrid(*outcomes, indexing="ij"), axis=-1).reshape(-1, len(outcomes))
