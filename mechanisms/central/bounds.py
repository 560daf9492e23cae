"""Bounds: the range a value is clamped to before anything is computed from it."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechanisms.central.release import check_values
from mechanisms.parameter import ParameterError


def check_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return bounds as floats, lower below upper, both finite and their distance too."""
    for field, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, bool) or not isinstance(bound, int | float | np.number) or not np.isfinite(bound):
            raise ParameterError(field, "must be a finite number", bound)
    if not lower < upper:
        raise ParameterError("upper", f"must be above lower ({lower:g})", upper)
    if math.isinf(float(upper) - float(lower)):
        raise ParameterError("upper", f"must be less than 1.8e308 above lower ({lower:g})", upper)
    return float(lower), float(upper)


def clamp(values: ArrayLike, lower: float, upper: float) -> NDArray[np.float64]:
    """Return a fresh (n,) float64 copy of at least one finite value, those beyond the bounds moved to them."""
    clamped: NDArray[np.float64] = np.clip(check_values(values), lower, upper)
    return clamped
