"""Refined estimates: their values, the rules they satisfy, and the guarantees they lose."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError

NeverWorse = Literal["in each cell", "over all cells", "not promised"]
"""Where the error is never above that of the unrefined estimate, for every random outcome."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Properties that a refinement guarantees for its result, for every input.

    Parameters
    ----------
    refinement : str
        The method's name.
    biased : bool
        Whether its mean may differ from the truth.
    non_negative : bool
        Whether no count is negative.
    total : {"asked", "estimated"} or None
        Sum of the counts: the devices asked, the sum of the unrefined estimates, or None for no fixed sum.
    ordered : bool
        Whether the order of the cells by count is kept.
    never_worse : {"in each cell", "over all cells", "not promised"}
        Where the error (absolute, or the sum of its squares) is never above the unrefined estimate's.
    """

    refinement: str
    biased: bool
    non_negative: bool
    total: Literal["asked", "estimated"] | None
    ordered: bool
    never_worse: NeverWorse


@dataclass(frozen=True, eq=False)
class RefinedEstimate:
    """Devices in each cell, 1…V in order, after a refinement of an unbiased estimate.

    Parameters
    ----------
    count : (cells,) float64
        Finite; biased, if `properties` states so.
    std_error : (cells,) float64
        The standard deviation, NaN where it is not known. It does not include bias.
    lower, upper : (cells,) float64
        Ends of an interval with the coverage that `interval` implies; the count may lie outside it.
    interval : str
        The method of the interval, and the estimate it was made from.
    properties : Properties
        The properties that the refinement guarantees.

    Raises
    ------
    ParameterError
        If an array has another shape or dtype, a count or an end is NaN, or the ends are in the wrong order.
    """

    count: NDArray[np.float64]
    std_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    interval: str
    properties: Properties

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        if self.properties.never_worse not in get_args(NeverWorse):
            raise ParameterError("never_worse", f"must be one of {get_args(NeverWorse)}", self.properties.never_worse)
        for field in ("count", "std_error", "lower", "upper"):
            array = getattr(self, field)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                raise ParameterError(field, "must be a float64 array", getattr(array, "dtype", type(array).__name__))
            if array.ndim != 1 or array.shape != self.count.shape:
                raise ParameterError(field, "must have one value a cell", array.shape)
        if not np.isfinite(self.count).all():
            raise ParameterError("count", "must be finite", float(self.count[~np.isfinite(self.count)][0]))
        if not (self.lower <= self.upper).all():
            cell = int((~(self.lower <= self.upper)).argmax())
            raise ParameterError("lower", f"must not exceed upper, at cell {cell + 1}", float(self.lower[cell]))

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.count)

    def __repr__(self) -> str:
        """Name the method, the size and the sum."""
        return f"<RefinedEstimate by {self.properties.refinement}: {len(self)} cells, {self.count.sum():.1f} devices>"


def unrefined_interval(interval: str) -> str:
    """Return the name of the interval of a refined estimate that keeps the unrefined interval."""
    return f"{interval}, unrefined"
