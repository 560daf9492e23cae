"""What a published sum of a cell reveals about one device if the cells of all other devices are known.

The sum adds up the other devices' parts, whose law is known, and the device's own part, 0 or 1. Of bits the part is the
device's bit about the cell. Of the differences of two-round Sampling Privacy without refresh it is 1 if the device is
in the cell and sampled: the others' parts sum to Bin(n − 1, π_s). The part and the device's own reports depend on each
other, and not on the others' parts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.compiled import Floats, Integers
from mechanisms.inference.evidence import log_ratio
from mechanisms.local import SamplingPrivacy
from mechanisms.privacy.hockey_stick import Pair
from mechanisms.privacy.sum_laws import others_law


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
    share : (n,) float64, optional
        Where the cells of the other devices are not known, the probability with which each is in the cell,
        independently. By default the cells are known.
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
    share: Floats | None = None

    def evidence(self, row: int, law: tuple[int, Floats] | None = None) -> float:
        """Return ln(P/Q) of what was seen: P with the device in the cell, and Q with it outside; `law` is the row's.

        A sum that is impossible in both cases is no evidence.
        """
        first, masses = self.law(row) if law is None else law
        place = 0 if self.sums is None else int(self.shown(row, self.sums[row])) - first
        seen = masses[:, place] if 0 <= place < masses.shape[1] else np.ones(2)
        return float(log_ratio(self.own.inside[row] @ seen, self.own.outside[row] @ seen))

    def pair(self, row: int) -> Pair:
        """Return the probabilities of all that may be seen, with the device in the cell and outside.

        First come the published sums with the first of the `possible` reports, and so on; last, all other reports.
        """
        _, masses = self.law(row)
        inside = np.concatenate([part.inside[row] @ masses for part in self.possible])
        outside = np.concatenate([part.outside[row] @ masses for part in self.possible])
        rest = max(1.0 - float(outside.sum()), 0.0)
        return np.append(inside, rest), np.append(outside, rest)

    def key(self, row: int) -> tuple[object, ...]:
        """Return what determines the laws of a row."""
        parts = [part.inside[row].tobytes() + part.outside[row].tobytes() for part in self.possible]
        least, share = (None if one is None else one[row] for one in (self.least, self.share))
        published = self.sums is not None, self.noise
        return self.inside[row], self.outside[row], self.true_yes, self.false_yes, least, share, *published, *parts

    def shown(self, row: int, sums: Integers) -> Integers:
        """Return published sums of a cell; suppressed ones as the greatest number that is suppressed."""
        return sums if self.least is None else np.maximum(sums, self.least[row] - 1)

    def law(self, row: int) -> tuple[int, Floats]:
        """Return the first value, and the masses of all sums from it on for parts 0 and 1, (2, values)."""
        if self.sums is None:
            return 0, np.ones((2, 1))
        inside, outside, true_yes = int(self.inside[row]), int(self.outside[row]), self.true_yes
        if self.share is not None:
            share = float(self.share[row])
            inside, outside, true_yes = inside + outside, 0, share * true_yes + (1.0 - share) * self.false_yes
        first, others = others_law(inside, outside, true_yes, self.false_yes, self.noise)
        masses = np.stack([np.append(others, 0.0), np.append(0.0, others)])
        hidden = 0 if self.least is None else max(int(self.least[row]) - first, 0)
        if hidden:
            masses = np.hstack([masses[:, :hidden].sum(axis=1, keepdims=True), masses[:, hidden:]])
            first += hidden - 1
        return first, masses
