"""Scaling of what was estimated about the devices asked to all vehicles."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from simulator.arrays import FloatArray, IntArray
from simulator.sensing.query import Occupancy

_Z = float(ndtri(0.975))


class Participation(NamedTuple):
    """The share of the vehicles that take part.

    Attributes
    ----------
    actual
        The probability p with which each vehicle takes part.
    assumed
        The participation q by which the operator divides.
    """

    actual: float = 1.0
    assumed: float = 1.0


class Rows(NamedTuple):
    """Columns of an answer's table: one value for each cell that has a row, all of the same length.

    Attributes
    ----------
    cell
        int64, 1…V.
    truth
        Vehicles, int64; or m/s, float64.
    estimate, std_error, lower, upper
        float64, as estimated or published.
    theory
        float64, the theoretical standard error for the truth.
    """

    cell: IntArray
    truth: IntArray | FloatArray
    estimate: FloatArray
    std_error: FloatArray
    lower: FloatArray
    upper: FloatArray
    theory: FloatArray


def scale_to_all(occupancy: Occupancy, participation: Participation, rows: Rows) -> Rows:
    """Estimate all vehicles in each cell from an estimate x of those asked.

    Each vehicle takes part with probability p, so that Bin(n, p) of n are asked, and x/q estimates n. The variance is
    that of x, which covers lost reports and devices that left, divided by q², and n(1 − p)/p for who takes part. In a
    query of several rounds, vehicles have also departed and arrived since it began: shares c and l of all of them, of
    which the first are not asked and the second still answer. Their numbers in a cell vary by (c + l)n and differ by
    (c − l)n on average.

    The interval holds every n with (x/q − n)² ≤ w² + z²(kn + s²n²), where k = (1 − q)/q + c + l and s = |c − l|, and w
    is the distance of x/q from the end of the interval of x, divided by q. This is the score interval of a binomial for
    w = s = 0, and the interval of x for k = s = 0; different w on either side combine as in Zou and Donner (2008).

    Parameters
    ----------
    occupancy
        All vehicles, asked or not.
    participation
        p and q.
    rows
        x of every cell with its standard error, its 95 % interval, and its root mean square error in theory, for the
        devices asked.

    Returns
    -------
    Rows
        x/q with its standard error as the operator knows it; the truth is all vehicles in the cell at the moment of
        truth. NaN where an input is NaN. `theory` knows p, every vehicle and who came and left: a wrong q, or many that
        came and none that left, appear in it as bias.
    """
    p, q = participation
    present, eligible = (counts[1:].astype(np.float64) for counts in (occupancy.vehicles, occupancy.eligible))
    x = rows.estimate / q
    total = max(1, int(occupancy.vehicles.sum()))
    each = (1.0 - q) / q + (occupancy.came + occupancy.left) / total
    # With more, the interval would have no upper end; at one half it is fifty times the estimate.
    net = min(0.5, abs(occupancy.came - occupancy.left) / total)
    middle, lead = x + 0.5 * _Z**2 * each, 1.0 - (_Z * net) ** 2

    def reach(end: FloatArray) -> FloatArray:
        return np.sqrt(np.maximum(0.0, middle**2 - lead * (x**2 - (x - end / q) ** 2)))

    bias = eligible * p / q - present
    return Rows(
        rows.cell,
        occupancy.vehicles[1:],
        x,
        np.sqrt((rows.std_error / q) ** 2 + each * np.maximum(0.0, x) + (net * x) ** 2),
        (middle - reach(rows.lower)) / lead,
        (middle + reach(rows.upper)) / lead,
        np.sqrt((rows.theory**2 + eligible * p * (1.0 - p)) / q**2 + bias**2),
    )
