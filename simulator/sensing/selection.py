"""Selection: who takes part and whose reports arrive, by place and time; fixes with errors; and the bias of both."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from simulator.arrays import Cells, FloatArray, IntArray, Mask
from simulator.traffic.engine import VehicleStates


@dataclass(frozen=True, eq=False)
class LocalShare:
    """A probability that holds for the vehicles at some places, at some time: to take part, or that a report leaves.

    Attributes
    ----------
    share
        The probability.
    place
        Maps vehicle states to the vehicles that are there, (departed,) bool; None for everywhere.
    from_s, to_s
        The share holds from `from_s` until just before `to_s`.
    cells
        (n,) int64: the cells that the place is; None if it is everywhere, or no cells of a partition.
    partition
        The name of that partition.
    """

    share: float
    place: Callable[[VehicleStates], Mask] | None = None
    from_s: float = 0.0
    to_s: float = math.inf
    cells: IntArray | None = None
    partition: str = ""

    def holds(self, at_s: float) -> bool:
        """Return whether the share holds at a moment."""
        return self.from_s <= at_s < self.to_s


def share_of(shares: Sequence[LocalShare], places: VehicleStates, at_s: float) -> FloatArray:
    """Return the product of the shares that hold for each vehicle at a moment, (departed,) float64."""
    product: FloatArray = np.broadcast_to(1.0, len(places))
    for one in shares:
        if one.holds(at_s):
            product = product * np.where(True if one.place is None else one.place(places), one.share, 1.0)
    return product


def share_of_cells(shares: Sequence[LocalShare], count: int, at_s: float) -> FloatArray:
    """Return the product of the shares that hold in each of `count` cells at a moment, (count,) float64.

    A share must be for everywhere, or for cells of the partition that has these cells.
    """
    product = np.ones(count)
    for one in shares:
        if one.holds(at_s):
            product[slice(None) if one.cells is None else one.cells - 1] *= one.share
    return product


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """What a mechanism estimates on average for one query, if not every vehicle is equally likely to be counted.

    Fixes are as they were drawn, and averages are over all else: the coins, the losses and who takes part.

    Attributes
    ----------
    asked
        (cells + 1,) float64: the mean estimate for the devices that were asked; [0] is for the places outside.
    every
        (cells + 1,) float64: its mean over who takes part.
    variance
        (cells + 1,) float64: its variance due to who takes part.
    taking_part
        The mean share of the vehicles that take part.
    misplaced
        The number of vehicles asked whose fix is in another cell than they are.
    """

    asked: FloatArray
    every: FloatArray
    variance: FloatArray
    taking_part: float
    misplaced: int

    @property
    def asked_counts(self) -> IntArray:
        """`asked` as whole numbers with the same sum, each less than 1 away, (cells + 1,) int64."""
        return np.diff(np.rint(np.cumsum(self.asked)), prepend=0.0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class QuerySelection:
    """Who is asked in one query, whose messages are lost where they are, and in which cells they believe they are.

    Attributes
    ----------
    eligible, chances
        (n,) bool and float64, of the n vehicles that have departed at the start of the query: whether a query of
        everybody would have asked the vehicle, and the probability that it takes part.
    vehicles
        (asked,) int64: the vehicles asked.
    outside
        The number of further devices asked that are in no cell.
    zones
        The probability that messages leave, by place.
    measured_cells
        Maps vehicle states to the cells of their fixes; None if fixes have no errors.
    selects
        Whether vehicles differ in the probability that they are counted, or report other cells.
    lost, position
        Generators of the messages that are lost in zones, and of the errors of fixes.
    """

    eligible: Mask
    chances: FloatArray
    vehicles: IntArray
    outside: int
    zones: tuple[LocalShare, ...]
    measured_cells: Callable[..., Cells] | None
    selects: bool
    lost: np.random.Generator
    position: np.random.Generator

    def blocked(self, places: VehicleStates, at_s: float) -> Mask | None:
        """Draw which vehicles asked lose what they send at a moment because of where they are; None without zones."""
        if not self.zones:
            return None
        return self.lost.random(len(self.vehicles)) >= share_of(self.zones, places, at_s)[self.vehicles]

    def leaving(self, places: VehicleStates, cells: Cells, *, at_s: float, minlength: int) -> FloatArray:
        """Return the mean probability by cell that messages leave a vehicle there, (minlength,) float64; 1 if empty."""
        there = np.bincount(cells, minlength=minlength)
        leaving = np.bincount(cells, weights=share_of(self.zones, places, at_s), minlength=minlength)
        return np.divide(leaving, there, out=np.ones(minlength), where=there > 0)

    def measured(self, places: VehicleStates, cells: Cells) -> Cells:
        """Return the cells in which all vehicles believe they are, from those where they are, (departed,) int32."""
        return cells if self.measured_cells is None else self.measured_cells(places, rng=self.position)

    def expected(
        self, places: VehicleStates, cells: Cells, measured: Cells, *, at_s: float, minlength: int
    ) -> ExpectedCounts | None:
        """Return what estimates are on average; None if it is the truth.

        Mechanisms scale the reports that they counted to all devices asked, as if every device were equally likely to
        be counted. A vehicle whose report is less likely to arrive than others' counts less than 1, and others more.

        Parameters
        ----------
        places
            The vehicles at the moment of truth, `at_s`.
        cells, measured
            (departed,) int32: the cells where they are, and those in which they believe they are.
        minlength
            The number of cells, and 1.
        """
        if not self.selects:
            return None
        arriving, everyone, asked = share_of(self.zones, places, at_s), np.flatnonzero(self.eligible), self.vehicles

        def weight(who: IntArray, chance: FloatArray) -> FloatArray:
            sent, arrived = chance.sum() + self.outside, chance @ arriving[who] + self.outside
            return arriving[who] * (sent / arrived if arrived > 0.0 else 0.0)

        chance, there, own = self.chances[everyone], measured[everyone], measured[asked]
        counts = weight(everyone, chance)
        of_asked, every, variance = np.zeros((3, minlength))
        np.add.at(of_asked, own, weight(asked, np.ones(len(asked))))
        of_asked[0] += len(asked) + self.outside - of_asked.sum()
        np.add.at(every, there, chance * counts)
        np.add.at(variance, there, chance * (1.0 - chance) * counts**2)
        misplaced = int(np.count_nonzero(own != cells[asked]))
        return ExpectedCounts(of_asked, every, variance, float(np.mean(chance)) if len(chance) else 1.0, misplaced)
