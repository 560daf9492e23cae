"""`LocalMechanism`: the interface of a mechanism on the device, and the `Estimate` that it returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.view import View

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


# A mechanism takes back only the memory, coins and reports it made itself. A protocol cannot say so without
# three type parameters on every function that holds a mechanism, so what it takes back is Any and what it
# gives is named.
Memory: TypeAlias = Any
Coins: TypeAlias = Any
Counts: TypeAlias = NDArray[np.int64]
Vectors: TypeAlias = NDArray[np.int64]
Truth: TypeAlias = NDArray[np.int32]
Where: TypeAlias = NDArray[np.bool_]


class Reports(Protocol):
    """One round's answers of a batch, one row a device: an array, or packed rows that index like one."""

    @property
    def nbytes(self) -> int:
        """Bytes of the whole batch, as held and as sent."""

    def __len__(self) -> int:
        """Return the number of devices."""

    def __getitem__(self, index: Any, /) -> Any:
        """Return the reports of some devices: a slice, a boolean mask or an array of indices."""


@dataclass(frozen=True, slots=True)
class NoMemory:
    """What a device that keeps nothing between queries keeps: only how many there are is known."""

    devices: int

    def __post_init__(self) -> None:
        """Refuse a negative number of devices."""
        check_integer("n", self.devices, at_least=0)


@runtime_checkable
class LocalMechanism(Protocol):
    """A mechanism: coins, answers, their sum, the estimate from it, its theory, and its claims per view.

    Coins come before truth: `toss` draws everything a batch needs and `answer` draws nothing, so changing one
    device's truth changes no other device's report and leaves the generator as it was. A lone vehicle is a
    batch of one. `V` is the number of cells, numbered 1…V; 0 is being outside all of them, a truth like
    another.
    """

    @property
    def cells(self) -> int:
        """The number of cells V."""

    @property
    def rounds(self) -> int:
        """Answers a device gives per query."""

    @property
    def truth_round(self) -> int:
        """The round, from 1, at whose moment a device fixes the cell it answers about."""

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """Shape of one round's tally: (outputs,), or (cells, outputs per cell) where every cell is asked separately."""

    @property
    def sample_law(self) -> str:
        """The law `sample_counts` draws: "exact joint" or "exact per-cell marginals"."""

    @property
    def batch(self) -> int:
        """Devices a batch for which coins and every round's reports stay under about 64 MB."""

    def warnings(self) -> list[str]:
        """Return what the papers advise against in these parameters, one sentence each."""

    def enrol(self, n: int, *, rng: np.random.Generator) -> Memory:
        """Return what n devices keep between queries; unless `NoMemory`, it takes an array of their numbers."""

    def toss(self, memory: Memory, *, rng: np.random.Generator) -> Coins:
        """Return every coin the batch needs for one query, before any truth is seen."""

    def answer(self, round: int, truth: Truth, coins: Coins) -> Reports:  # noqa: A002 - the paper's word
        """Return the reports of one round, from 1, given each device's cell: (n,) int32 in 0…V."""

    def encode(self, reports: Any) -> Vectors:
        """Return (n, *tally_shape) int64: what a server adds up and what secret shares hide."""

    def tally(self, reports: Any, where: Where | None = None) -> Counts:
        """Return the sum of the encodings, (*tally_shape,) int64, of the devices in the (n,) mask `where`."""

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return the estimated devices in each cell from (rounds, *tally_shape) counts of `counted` of `asked`."""

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return theory's standard error of the estimate, (cells,), exactly, from the (cells + 1,) truth."""

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (rounds, *tally_shape) counts as devices would have made them, in O(cells)."""

    def claim(self, view: View) -> PrivacyClaim:
        """Return what is proved about whoever has this view: exact, a bound, or unknown; never a guess."""


class NotEstimableError(ValueError):
    """No unbiased estimate of the devices in a cell can be made from these answers.

    The mechanism itself is sound: it answers, its tallies have their law and its claims hold. They only do not tell
    what was asked.

    Parameters
    ----------
    mechanism : str
        Which one.
    reason : str
        Why, as a sentence.
    """

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(mechanism, reason)
        self.mechanism = mechanism
        self.reason = reason

    def __str__(self) -> str:
        """Mechanism and reason in one sentence."""
        return f"{self.mechanism} cannot be estimated: {self.reason}"
