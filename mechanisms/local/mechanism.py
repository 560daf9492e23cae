"""`LocalMechanism`: the interface of a mechanism on the device, and the `Estimate` that it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, Self, TypeAlias, get_args, runtime_checkable

import numpy as np

from mechanisms.compiled import Floats, Integers, Mask, Values
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.view import View

IntervalMethod = Literal["binomial inversion", "score", "exact", "noise, then binomial inversion", "normal"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated number of devices in each cell, 1…V in order.

    Parameters
    ----------
    count : (cells,) float64
        The unbiased estimate; may be negative.
    std_error : (cells,) float64
        Theoretical standard error, evaluated at the estimate clipped to 0 … the number of devices asked; infinite if a
        round received no report.
    lower, upper : (cells,) float64
        Ends of the 95 % interval, within 0 and the number of devices asked.
    interval : {"binomial inversion", "score", "exact", "noise, then binomial inversion", "normal"}
        How the interval was computed; "score" inverts both tails of the distribution of the reports, which is
        computed or approximated by its first moments; "normal" is the estimate ± 1.96 standard errors.
    invert_sampled : callable, optional
        Returns the ends of the 95 % interval, two (cells,) float64, from the probability in (0, 1] that a device is
        asked. The interval is for all devices; the devices asked are a random sample of them. It is given where the
        distribution of the counts is known for every such probability; the ends cover each number of devices with at
        least 95 %.

    Raises
    ------
    ParameterError
        If an array has another shape or dtype, contains a NaN, or the lower end of an interval exceeds
        the upper end.
    """

    count: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    interval: IntervalMethod
    invert_sampled: Callable[[float], tuple[Floats, Floats]] | None = None

    def __post_init__(self) -> None:
        """Check the interval method, and that the arrays are valid and consistent."""
        if self.interval not in get_args(IntervalMethod):
            raise ParameterError("interval", f"must be one of {get_args(IntervalMethod)}", self.interval)
        check_arrays(self)

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        """Return the number of cells, the sum and the interval method."""
        return f"<Estimate of {len(self)} cells, {self.count.sum():.1f} devices, {self.interval} interval>"


def check_arrays(estimate: Any, *, refined: bool = False) -> None:
    """Raise ParameterError unless an estimate has four float64 arrays of one length that are valid and consistent.

    The standard error of a refined estimate may be NaN, and the ends of its interval negative.
    """
    for field in ("count", "std_error", "lower", "upper"):
        array = getattr(estimate, field)
        if not isinstance(array, np.ndarray) or array.dtype != np.float64:
            raise ParameterError(field, "must be a float64 array", getattr(array, "dtype", type(array).__name__))
        if array.ndim != 1 or array.shape != estimate.count.shape:
            raise ParameterError(field, "must have one value per cell", array.shape)
        if not refined and np.isnan(array).any():
            raise ParameterError(field, "must hold no NaN, first at cell", int(np.isnan(array).argmax()) + 1)
    if not np.isfinite(estimate.count).all():
        raise ParameterError("count", "must be finite", float(estimate.count[~np.isfinite(estimate.count)][0]))
    for field in () if refined else ("std_error", "lower"):
        if (getattr(estimate, field) < 0).any():
            raise ParameterError(field, "must not be negative", float(getattr(estimate, field).min()))
    if not (estimate.lower <= estimate.upper).all():
        cell = int((~(estimate.lower <= estimate.upper)).argmax())
        raise ParameterError("lower", f"must not exceed upper, at cell {cell + 1}", float(estimate.lower[cell]))


# A mechanism accepts only the memory, coins and reports that it made itself. A protocol cannot express this without
# three type parameters on every function that takes a mechanism. So what it accepts is Any, and what it returns has
# a name.
Memory: TypeAlias = Any
Coins: TypeAlias = Any
Counts: TypeAlias = Integers
Vectors: TypeAlias = Integers
Truth: TypeAlias = Values
Where: TypeAlias = Mask


class Reports(Protocol):
    """Reports of a batch in one round, one row per device: an array, or packed rows with array indexing."""

    @property
    def nbytes(self) -> int:
        """Number of bytes of the whole batch, in memory and as sent."""

    def __len__(self) -> int:
        """Return the number of devices."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return the reports of some devices: a slice, a boolean mask or an array of indices."""


@dataclass(frozen=True, eq=False, slots=True)
class DeviceRows:
    """Arrays with a row for each device, and what all devices have in common: coins, memory or reports."""

    @property
    def nbytes(self) -> int:
        """Number of bytes of the arrays."""
        return sum(column.nbytes for column in self._columns if isinstance(column, np.ndarray))

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: Any) -> Self:
        """Return the rows of some devices: a slice, a boolean mask or an array of indices."""
        return type(self)(*(rows[index] if isinstance(rows, np.ndarray) else rows for rows in self._columns))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several groups of devices as the rows of one group."""
        columns = [[getattr(part, column.name) for part in parts] for column in fields(cls)]
        return cls(*(np.concatenate(rows) if isinstance(rows[0], np.ndarray) else rows[0] for rows in columns))

    @property
    def _columns(self) -> list[Any]:
        return [getattr(self, name) for name in self.__dataclass_fields__]  # `fields` takes twice as long


def rows_of(held: Any, index: Any) -> Any:
    """Return the rows of some devices of coins or reports; of a tuple, the rows of each of its parts."""
    return tuple(part[index] for part in held) if isinstance(held, tuple) else held[index]


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Memory of devices that keep nothing between queries: only the number of devices is stored."""

    devices: int

    def __post_init__(self) -> None:
        """Reject a negative number of devices."""
        check_integer("n", self.devices, at_least=0)

    def __getitem__(self, index: Any) -> Self:
        """Return the rows of some devices: a slice, a boolean mask or an array of indices."""
        return type(self)(len(np.broadcast_to(np.False_, self.devices)[index]))


@runtime_checkable
class LocalMechanism(Protocol):
    """A local mechanism: coins, reports, tally, estimate, standard error, and a privacy claim per view.

    Coins are drawn before the truth is known: `toss` draws all random numbers of a batch and `answer` draws none. So
    changing one device's truth changes no other device's report and leaves the state of the generator unchanged.
    Memory, coins and reports have a row for each device: indexed by a slice, a boolean mask or an array of indices,
    they are the rows of some devices; coins may also be a tuple of such parts. A single vehicle is a batch of one,
    whose row answers as it does in a batch.

    `V` is the number of cells, numbered 1…V. The truth 0 means outside every cell; it is treated like any other truth.

    A mechanism of a user's own may also have `log_likelihood(reports, rounds)`, by which attacks guess: given the
    encodings of these rounds, a list of (n, *tally_shape) int64, log P(reports | cell), (n, V + 1) float64, up to a
    constant per row and −∞ if impossible. Without it they are not tried on it.
    """

    @property
    def cells(self) -> int:
        """The number of cells V."""

    @property
    def rounds(self) -> int:
        """Number of answers that a device gives per query."""

    @property
    def truth_round(self) -> int:
        """The round, counted from 1, at which a device fixes the cell it answers about."""

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """Shape of one round's tally: (outputs,), or (cells, outputs per cell) where every cell is asked separately."""

    @property
    def sample_law(self) -> str:
        """The distribution that `sample_counts` draws from: "exact joint" or "exact per-cell marginals"."""

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and the reports of all rounds take at most about 64 MB."""

    def warnings(self) -> list[str]:
        """Return the papers' warnings about these parameters, one sentence each."""

    def enrol(self, n: int, *, rng: np.random.Generator) -> Memory:
        """Return the memory of n devices between queries, a row for each."""

    def toss(self, memory: Memory, *, rng: np.random.Generator) -> Coins:
        """Return the coins of a batch for one query, a row for each device, drawn before any truth is known."""

    def answer(self, round: int, truth: Truth, coins: Coins) -> Reports:  # noqa: A002 - the paper's word
        """Return the reports of one round, counted from 1, given each device's cell: (n,) int32 in 0…V."""

    def encode(self, reports: Any) -> Vectors:
        """Return (n, *tally_shape) int64: the vectors that a server adds up or that devices secret-share."""

    def tally(self, reports: Any, where: Where | None = None) -> Counts:
        """Return the sum of the encodings, (*tally_shape,) int64, of the devices in the (n,) mask `where`."""

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Estimate the devices in each cell from (rounds, *tally_shape) counts and `counted` and `asked` per round."""

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> Floats:
        """Return the exact theoretical standard error of the estimate, (cells,), given the (cells + 1,) true counts."""

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (rounds, *tally_shape) counts as simulated devices would produce them, in O(cells) time."""

    def claim(self, view: View) -> Claim:
        """Return the privacy claim proved for an observer with this view: exact, a bound, or unknown; never a guess."""


class NotEstimableError(ValueError):
    """No unbiased estimate of the devices in a cell can be made from these answers.

    The mechanism itself is valid: it answers, its tallies have the stated distribution and its claims hold. But the
    tallies do not determine the number of devices in a cell.

    Parameters
    ----------
    mechanism : str
        The name of the mechanism.
    reason : str
        The reason, as a sentence.
    """

    def __str__(self) -> str:
        """Return mechanism and reason in one sentence."""
        mechanism, reason = self.args
        return f"{mechanism} cannot be estimated: {reason}"
