"""What a tally says about the truth: a count for each cell, its error and its interval."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError

IntervalMethod = Literal["binomial inversion", "score", "exact", "noise, then binomial inversion"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated devices in each cell, 1…V in order.

    Parameters
    ----------
    count : (cells,) float64
        The unbiased estimate; may be negative.
    std_error : (cells,) float64
        Theory's standard error at the estimate clipped to what is possible; infinite where nothing was heard.
    lower, upper : (cells,) float64
        Ends of the 95 % interval, within 0 and the number of devices asked.
    interval : {"binomial inversion", "score", "exact", "noise, then binomial inversion"}
        How the interval was made; "score" inverts both tails of the law of the reports, computed or approximated by
        its first moments.

    Raises
    ------
    ParameterError
        If an array has another shape or dtype, holds a NaN, or the ends of an interval are in the wrong
        order.
    """

    count: NDArray[np.float64]
    std_error: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    interval: IntervalMethod

    def __post_init__(self) -> None:
        """Check that the arrays belong together."""
        if self.interval not in get_args(IntervalMethod):
            raise ParameterError("interval", f"must be one of {get_args(IntervalMethod)}", self.interval)
        for field in ("count", "std_error", "lower", "upper"):
            array = getattr(self, field)
            if not isinstance(array, np.ndarray) or array.dtype != np.float64:
                raise ParameterError(field, "must be a float64 array", getattr(array, "dtype", type(array).__name__))
            if array.ndim != 1 or array.shape != self.count.shape:
                raise ParameterError(field, "must have one value a cell", array.shape)
            if np.isnan(array).any():
                raise ParameterError(field, "must hold no NaN, first at cell", int(np.isnan(array).argmax()) + 1)
        if not np.isfinite(self.count).all():
            raise ParameterError("count", "must be finite", float(self.count[~np.isfinite(self.count)][0]))
        if (self.std_error < 0).any():
            raise ParameterError("std_error", "must not be negative", float(self.std_error.min()))
        if (self.lower < 0).any():
            raise ParameterError("lower", "must not be negative", float(self.lower.min()))
        if (self.lower > self.upper).any():
            cell = int((self.lower > self.upper).argmax())
            raise ParameterError("lower", f"must not exceed upper, at cell {cell + 1}", float(self.lower[cell]))

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.count)

    def __repr__(self) -> str:
        """Size, sum and method."""
        return f"<Estimate of {len(self)} cells, {self.count.sum():.1f} devices, {self.interval} interval>"
