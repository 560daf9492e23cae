"""The variance of an estimate as a quadratic in the count it estimates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class QuadraticVariance:
    """Var(Ŷ) = a + bY + cY², for Y devices truly in the cell.

    Every estimator here has this form: devices answer independently, which is linear in Y, and a simple
    random sample of their answers adds the spread within the population, which is quadratic.

    Parameters
    ----------
    constant, linear, square : float or (cells,) float64
        The coefficients a, b and c.
    """

    constant: float | NDArray[np.float64]
    linear: float | NDArray[np.float64]
    square: float | NDArray[np.float64]

    def at(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at each true count, (cells,) float64."""
        y = np.asarray(count, dtype=np.float64)
        # The quadratic is a variance, so below zero there is only rounding.
        return np.maximum(self.constant + y * (self.linear + y * self.square), 0.0)

    def std_error(self, count: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error at each true count, (cells,) float64."""
        return np.sqrt(self.at(count))
