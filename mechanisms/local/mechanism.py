"""The shape of every mechanism that runs on a device, and of what passes through it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.parameter import check_integer
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.view import View

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
