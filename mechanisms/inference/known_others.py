"""What a published sum of a cell reveals about one device if the cells of all other devices are known.

The sum adds up the other devices' parts, whose law is known, and the device's own part, 0 or 1. Of bits the part is the
device's bit about the cell. Of the differences of two-round Sampling Privacy without refresh it is 1 if the device is
in the cell and sampled: the others' parts sum to Bin(n − 1, π_s). The part and the device's own reports depend on each
other, and not on the others' parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy.sum_laws import others_law

TIES = 1e-9
"""Hypotheses whose probabilities differ by no more than this share are equally likely: they differ by rounding."""


@dataclass(frozen=True, eq=False)
class OwnPart:
    """Joint probabilities of what is read of a device's reports, and of its part in the sum, 0 or 1.

    Parameters
    ----------
    inside, outside : (n, 2) float64
        P(what is read, part | the device is in the cell), and outside every cell.
    """

    inside: Floats
    outside: Floats

    @classmethod
    def of_bits(cls, true_yes: float, false_yes: float, bits: Integers | None, devices: int) -> "OwnPart":
        """Return the probabilities of bits, (n,) int; None if they are not read."""
        laws = (np.tile([1.0 - yes, yes], (devices, 1)) for yes in (true_yes, false_yes))
        return cls(*(law if bits is None else np.where(np.eye(2)[bits] == 1, law, 0.0) for law in laws))

    @classmethod
    def of_reports(
        cls, mechanism: SamplingPrivacy, cell: Integers, first: Integers | None, second: Integers | None
    ) -> "OwnPart":
        """Return the probabilities of reports of two-round Sampling Privacy without refresh.

        A sampled device reports 0, then its cell, or 0 again if it is outside. A device that is not sampled reports
        the same blank twice.

        Parameters
        ----------
        mechanism
            Without refresh.
        cell : (n,) int
            The cell in question, 1…V.
        first, second : (n,) int or None
            The reports of rounds one and two; None if they are not read.
        """
        blanks, sampling = mechanism.blanks, mechanism.sampling
        at_first = np.ones(cell.shape) if first is None else 1.0 * (first == 0)
        same = np.ones(cell.shape, dtype=np.bool_) if first is None or second is None else first == second
        read = second if second is not None else first
        blank = np.where(same, 1.0 - sampling if read is None else blanks[read], 0.0)
        inside, outside = (
            sampling * at_first * (1.0 if second is None else second == truth) for truth in (cell, np.zeros_like(cell))
        )
        return cls(np.stack([blank, inside], axis=1), np.stack([blank + outside, np.zeros_like(blank)], axis=1))


def parts_of_reports(mechanism: SamplingPrivacy, cell: Integers, rounds: Sequence[int]) -> Iterator[OwnPart]:
    """Yield the probabilities of the reports of some rounds that tell "in the cell" and "outside" apart.

    Any others are equally likely in both cases, alone and with the sum.
    """
    zero = np.zeros_like(cell)
    for first in [zero] if 1 in rounds else [None]:
        for second in [cell, zero] if 2 in rounds else [None]:
            yield OwnPart.of_reports(mechanism, cell, first, second)


@dataclass(frozen=True, eq=False)
class LastDevice:
    """Cells in which the location of every device but one, the last device, is known.

    Parameters
    ----------
    sums : (n,) int64 or None
        The published sum minus what is known of it: parts of corrupted vehicles, and servers' own noise. Any number
        below `least` if it is suppressed. None if nothing was published.
    inside, outside : (n,) int64
        Other devices in the cell, and elsewhere, whose parts are not known.
    true_yes, false_yes : float
        Probabilities that the part of a device in the cell is 1, and of one elsewhere.
    own : OwnPart
        Of what is read of the last device's own reports.
    possible : sequence of OwnPart
        All that may be read, but for what is equally likely in both cases.
    least : (n,) int64, optional
        Sums below it are suppressed. By default none are.
    noise : tuple of float, optional
        Masses of the noise in the sum that is not known, symmetric around 0.
    """

    sums: Integers | None
    inside: Integers
    outside: Integers
    true_yes: float
    false_yes: float
    own: OwnPart
    possible: Sequence[OwnPart]
    least: Integers | None = None
    noise: tuple[float, ...] | None = None

    def guess(self) -> Mask:
        """Guess by likelihood, at even odds, whether the device was in the cell; "outside" if both are as likely.

        A sum that is impossible in both cases is no evidence.

        Returns
        -------
        (n,) bool
        """
        guessed = np.empty(len(self.inside), dtype=np.bool_)
        for row in range(len(guessed)):
            masses, place = self._law(row)
            seen = masses[:, place] if 0 <= place < masses.shape[1] else np.ones(2)
            guessed[row] = self.own.inside[row] @ seen > self.own.outside[row] @ seen * (1.0 + TIES)
        return guessed

    def success(self) -> Floats:
        """Return the exact expected success of the guess at even odds, (n,) float64."""
        success = np.empty(len(self.inside))
        for row in range(len(success)):
            masses, _ = self._law(row)
            best = [np.maximum(part.inside[row] @ masses, part.outside[row] @ masses).sum() for part in self.possible]
            # Of what else may be read, half of the guesses are right.
            success[row] = 0.5 * (1.0 + sum(best) - sum(part.outside[row].sum() for part in self.possible))
        return np.minimum(success, 1.0)

    def _law(self, row: int) -> tuple[Floats, int]:
        """Return the masses of all sums for parts 0 and 1, (2, values), and the place of the published one."""
        if self.sums is None:
            return np.ones((2, 1)), 0
        sizes = int(self.inside[row]), int(self.outside[row])
        first, others = others_law(*sizes, self.true_yes, self.false_yes, self.noise)
        masses = np.stack([np.append(others, 0.0), np.append(0.0, others)])
        place = int(self.sums[row]) - first
        hidden = 0 if self.least is None else max(int(self.least[row]) - first, 0)
        if hidden:
            masses = np.hstack([masses[:, :hidden].sum(axis=1, keepdims=True), masses[:, hidden:]])
            place = max(place - hidden + 1, 0)
        return masses, place
