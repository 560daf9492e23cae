"""Protocols of releases by a trusted server, the bounds that values are clamped to, and the exponential mechanism."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats, Integers
from mechanisms.local.common.intervals import LEVEL
from mechanisms.local.mechanism import Estimate
from mechanisms.parameter import ParameterError, check_counts, check_epsilon
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.view import Adjacency


@dataclass(frozen=True, slots=True)
class ValueEstimate:
    """One published statistic of the values of one cell's devices, with its error and its interval.

    Parameters
    ----------
    value : float
        As published.
    std_error : float
        Root mean square error, by theory or as the release states; at least 0, infinite where nothing is known.
    lower, upper : float
        Ends of the 95 % interval; they may be infinite.

    Raises
    ------
    ParameterError
        If a number is NaN, the value is not finite, or the interval's ends are in the wrong order.
    """

    value: float
    std_error: float
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Check that the numbers belong together."""
        for field in ("value", "std_error", "lower", "upper"):
            if math.isnan(getattr(self, field)):
                raise ParameterError(field, "must not be NaN", getattr(self, field))
        if math.isinf(self.value):
            raise ParameterError("value", "must be finite", self.value)
        if self.std_error < 0:
            raise ParameterError("std_error", "must not be negative", self.std_error)
        if self.lower > self.upper:
            raise ParameterError("lower", f"must not exceed upper ({self.upper:g})", self.lower)


@runtime_checkable
class CountRelease(Protocol):
    """A trusted server holds the exact number of devices in each cell and publishes a table of estimates."""

    def publish(self, counts: Integers, *, rng: np.random.Generator) -> Estimate:
        """Publish the table.

        Parameters
        ----------
        counts : (cells,) int64
            Devices held, cells 1…V in order; none negative.
        rng : numpy.random.Generator
            Draws the sampling and the noise.

        Returns
        -------
        Estimate
            Of the given counts. A suppressed cell has count 0, lower end 0, and as upper end the 95 % end given that
            fewer devices than the threshold were left to publish; never NaN.
        """

    def std_error(self, true_counts: Integers) -> Floats:
        """Return the root mean square error of every cell's published count, bias included.

        Parameters
        ----------
        true_counts : (cells,) int64
            Devices held, cells 1…V in order.

        Returns
        -------
        (cells,) float64
            Exact, unless the class states how it is approximated.
        """

    def claim(self, *, crowd: int | None, queries: int = 1, adjacency: Adjacency = "enter_leave") -> Claim:
        """Return the claim about one device, with all other devices known.

        Parameters
        ----------
        crowd : int or None
            Devices in the cell, the device in question included; None for any crowd. For a move, both cells hold this
            many while the device is in them.
        queries : int
            Releases of the same kind about the device.
        adjacency : {"enter_leave", "move"}
            The change that the claim hides: the device is in a cell or outside every cell, or it is in either of two
            cells. A claim for a move covers both. Where there is only one cell, a device can only enter or leave: a
            release that does not know its cells is then asked for that (`possible_adjacency`).
        """


@runtime_checkable
class ValueRelease(Protocol):
    """A trusted server holds a value (a speed) of every device of one cell and publishes one statistic of them."""

    def publish(self, values: Floats, *, rng: np.random.Generator, level: float = LEVEL) -> ValueEstimate:
        """Publish the statistic.

        Parameters
        ----------
        values : (n,) float64
            At least one, in any order; values beyond the release's bounds are clamped to them.
        rng : numpy.random.Generator
            Draws the sampling and the noise.
        level : float
            Least coverage of the interval, in (0, 1).
        """

    def truth(self, values: Floats) -> float:
        """Return the statistic of all values, against which the published one is scored."""

    def std_error(self, values: Floats) -> float:
        """Return the root mean square error of the published statistic given these values, by sampling and noise."""

    def claim(self, *, queries: int = 1) -> Claim:
        """Return the claim about one device's value; neighbours differ in that value (bounded neighbours)."""


def check_held(counts: ArrayLike, *, field: str = "counts", cells: int | None = None) -> Integers:
    """Return devices held as (cells,) int64, none negative.

    Parameters
    ----------
    counts : (cells,) int
        The counts to check.
    field : str
        Name of the argument, for the error.
    cells : int, optional
        Required number of cells; any number by default.

    Raises
    ------
    ParameterError
        If the array has another shape, does not hold integers, or holds a negative one.
    """
    array = np.asarray(counts)
    return check_counts(field, array, (array.size,) if cells is None else (cells,), signed=False)


def check_values(values: ArrayLike, *, field: str = "values") -> Floats:
    """Return values of a cell's devices as (n,) float64, at least one, all finite."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ParameterError(field, "must hold numbers", str(array.dtype))
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(field, "must be (n,) with n at least 1", array.shape)
    if not np.isfinite(array).all():
        raise ParameterError(field, "must be finite", float(array[~np.isfinite(array)][0]))
    return array.astype(np.float64, copy=False)


def check_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return bounds as floats; lower is below upper, and both and their distance are finite."""
    for field, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, bool) or not isinstance(bound, int | float | np.number) or not np.isfinite(bound):
            raise ParameterError(field, "must be a finite number", bound)
    if not lower < upper:
        raise ParameterError("upper", f"must be above lower ({lower:g})", upper)
    if math.isinf(float(upper) - float(lower)):
        raise ParameterError("upper", f"must be less than 1.8e308 above lower ({lower:g})", upper)
    return float(lower), float(upper)


def clamp(values: ArrayLike, lower: float, upper: float) -> Floats:
    """Return a new (n,) float64 copy of at least one finite value, with values beyond the bounds moved to them."""
    return np.clip(check_values(values), lower, upper)


def exponential_probabilities(qualities: ArrayLike, *, sensitivity: float, epsilon: float) -> Floats:
    """Return the probability of drawing each option: proportional to exp(ε·quality/(2·sensitivity)).

    McSherry and Talwar 2007. One device changes each quality by at most the sensitivity Δ, and so each weight and the
    sum of the weights by a factor of at most e^(ε/2). So the draw is ε-differentially private.

    Parameters
    ----------
    qualities : (options,) float
        Finite; at least one.
    sensitivity : float
        Δ, above 0.
    epsilon : float
        ε, at least 0 and finite; at 0 all options are equally likely.

    Returns
    -------
    (options,) float64

    Raises
    ------
    ParameterError
        If a value is out of range.
    """
    scores = np.asarray(qualities, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0 or not np.isfinite(scores).all():
        raise ParameterError("qualities", "must be finite numbers, at least one", qualities)
    if isinstance(sensitivity, bool) or not 0.0 < sensitivity < math.inf:
        raise ParameterError("sensitivity", "must be above 0 and finite", sensitivity)
    if math.isinf(check_epsilon(epsilon)):
        raise ParameterError("epsilon", "must be finite: an infinite one would always draw the best", epsilon)
    weights = np.exp(epsilon / (2.0 * sensitivity) * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


def draw_option(qualities: ArrayLike, *, sensitivity: float, epsilon: float, rng: np.random.Generator) -> int:
    """Draw one option, 0 to options − 1, by `exponential_probabilities`."""
    shares = exponential_probabilities(qualities, sensitivity=sensitivity, epsilon=epsilon)
    return int(rng.choice(len(shares), p=shares))


def median_rank(n: int) -> int:
    """Return the rank m = ⌈n/2⌉, from 1, of the median used throughout: the lower one where n is even.

    The lower median is one of the values, so smooth sensitivity bounds it as it does any order statistic; the mean of
    the two middle values is not covered.
    """
    return (n + 1) // 2


def lower_median(values: Floats) -> float:
    """Return the ⌈n/2⌉-th smallest value."""
    place = median_rank(len(values)) - 1
    return float(np.partition(values, place)[place])
