"""The law of an estimate's variance, read off its theory: a quadratic in each cell's count."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.mechanism import Counts
from mechanisms.local.parts.variance import QuadraticVariance
from mechanisms.parameter import ParameterError, check_integer

# How far from a quadratic rounding may leave a variance, as a share of it.
ROUNDING = 1e-9

Theory: TypeAlias = Callable[[Counts], NDArray[np.float64]]
"""From the (cells + 1,) truth to the standard error in each cell, for what one query's channel did."""


def variance_law(theory: Theory, *, cells: int, devices: int) -> QuadraticVariance:
    """Return Var(Ŷ) = a + bY + cY² of each cell.

    An aggregator knows the mechanism, whom each round asked and how many it counted, so its theory; what it does not
    know is Y. The theory, exact at every truth, is asked at Y = 0, m and 2m in as many cells at once as there are
    devices for, and its answer at 3m is checked against the quadratic.

    Parameters
    ----------
    theory : callable
        As `LocalMechanism.std_error`, given what was asked and counted. A cell's standard error must depend on the
        truth through the cell's own count and the number of devices alone.
    cells, devices : int
        V, and N, the devices whose cells are estimated.

    Returns
    -------
    QuadraticVariance
        Coefficients (cells,); a is infinite where nothing was heard.

    Raises
    ------
    ParameterError
        If there is no theory (NaN), or the variance is no quadratic.
    """
    check_integer("cells", cells, at_least=1)
    check_integer("devices", devices, at_least=0)
    constant = _variance(theory, 0, cells=cells, devices=devices)
    if devices == 0 or np.isinf(constant).any():
        return QuadraticVariance(constant, np.zeros(cells), np.zeros(cells))
    if devices == 1:  # at Y = 0 and 1 a line is as good
        return QuadraticVariance(constant, _variance(theory, 1, cells=cells, devices=1) - constant, np.zeros(cells))
    step = max(1, devices // (2 * cells))
    once, twice = (_variance(theory, each, cells=cells, devices=devices) for each in (step, 2 * step))
    bend = twice - 2.0 * once + constant
    bend[np.abs(bend) <= ROUNDING * np.maximum(twice, np.maximum(once, constant))] = 0.0
    square = bend / (2.0 * step * step)
    law = QuadraticVariance(constant, (once - constant) / step - square * step, square)
    if devices >= 3 * step:
        truth = np.zeros(cells + 1, dtype=np.int64)
        truth[0], truth[1] = devices - 3 * step, 3 * step
        theirs, ours = float(theory(truth)[0]), float(law.std_error(np.full(cells, 3.0 * step))[0])
        if not np.isclose(theirs, ours, rtol=1e-6, atol=1e-9):
            raise ParameterError("theory", "must be of a variance that is quadratic in the count", [ours, theirs])
    return law


def _variance(theory: Theory, each: int, *, cells: int, devices: int) -> NDArray[np.float64]:
    """Return the variance in every cell when it holds `each` devices, (cells,)."""
    together = cells if each == 0 else min(cells, devices // each)
    found = np.empty(cells)
    for start in range(0, cells, together):
        held = slice(start, min(start + together, cells))
        truth = np.zeros(cells + 1, dtype=np.int64)
        truth[1:][held] = each
        truth[0] = devices - truth.sum()
        found[held] = np.square(theory(truth))[held]
    if np.isnan(found).any():
        raise ParameterError("theory", "must know the standard error", "NaN")
    return found
