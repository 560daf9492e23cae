"""Subset selection: a random subset of the symbols that holds the true one more often."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.mechanism import Counts, NoMemory, Truth, Vectors, Where
from mechanisms.local.parts.bit_rows import BitReports, words_of
from mechanisms.local.parts.budget import check_budget
from mechanisms.local.parts.checks import check_round, check_truth, check_where
from mechanisms.local.parts.pure_protocol import PureProtocol
from mechanisms.local.parts.subset_rows import draw_subsets, hold_or_miss
from mechanisms.local.parts.yes_no import batch_of_rows
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.mirror_pair import mirror_claim


@dataclass(frozen=True, eq=False, slots=True)
class SubsetCoins:
    """A uniform subset a device, and what turns it into a report.

    Parameters
    ----------
    rows : (n, ceil((V + 1) / 64)) uint64
        Subsets of d of the V + 1 symbols, packed.
    holds : (n,) bool
        Whether the report holds the truth.
    out, into : (n,) int32
        Ranks of the member that makes room for the truth, and of the other that replaces it.
    """

    rows: NDArray[np.uint64]
    holds: NDArray[np.bool_]
    out: NDArray[np.int32]
    into: NDArray[np.int32]

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self.holds)


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(PureProtocol):
    """Report d of k = V + 1 symbols: the true one among them with de^ε/(de^ε + k − d), the rest uniform.

    Ye and Barg 2018, *Optimal Schemes for Discrete Distribution Estimation under Locally Differential
    Privacy*, sec III; Wang, Huang, Wang, Nie, Xiong, Yang and Xu 2016. Outside every cell is symbol 0.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of a report; in 1e-6…50.
    size : int, optional
        d, 1…V; by default round(k/(e^ε + 1)), at least 1.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    epsilon: float
    size: int | None = None
    sample_law: ClassVar[str] = "exact per-cell marginals"

    def __post_init__(self) -> None:
        """Check the parameters and fill in the size."""
        super().__post_init__()
        best = max(1, round(self.symbols / (math.exp(check_budget("epsilon", self.epsilon)) + 1.0)))
        size = best if self.size is None else self.size
        object.__setattr__(self, "size", check_integer("size", size, at_least=1, at_most=self.cells))

    @property
    def symbols(self) -> int:
        """Return k = V + 1: outside, and each cell."""
        return self.cells + 1

    @property
    def true_yes(self) -> float:
        """Return p = de^ε/(de^ε + k − d), probability that the report holds the true symbol."""
        weight = self._size * math.exp(self.epsilon)
        return weight / (weight + self.symbols - self._size)

    @property
    def false_yes(self) -> float:
        """Return q = (p(d − 1) + (1 − p)d)/(k − 1), probability that it holds any one other."""
        others = self.symbols - self._size
        miss = others / (self._size * math.exp(self.epsilon) + others)
        return (self.true_yes * (self._size - 1) + miss * self._size) / self.cells

    @property
    def tally_shape(self) -> tuple[int]:
        """(V + 1,): reports that hold outside, and each cell."""
        return (self.symbols,)

    @property
    def report_bits(self) -> int:
        """Bits of a report as sent: one a symbol."""
        return self.symbols

    @property
    def batch(self) -> int:
        """Devices a batch: their coins and reports take about 64 MB at most."""
        return batch_of_rows(2 * words_of(self.symbols) + 2)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> SubsetCoins:
        """Draw a subset, whether it shall hold the truth, and the ranks of a swap."""
        n, size = memory.devices, self._size
        rows = draw_subsets(n, self.symbols, size, rng=rng)
        holds = rng.random(n) < self.true_yes
        out = rng.integers(size, size=n, dtype=np.int32)
        into = rng.integers(self.symbols - size, size=n, dtype=np.int32)
        return SubsetCoins(rows, holds, out, into)

    def answer(self, round: int, truth: Truth, coins: SubsetCoins) -> BitReports:  # noqa: A002 - the paper's word
        """Return a subset a device, (n, V + 1) packed; bit 0 is outside."""
        check_round(round, self.rounds)
        check_truth(truth, devices=len(coins), cells=self.cells)
        rows = coins.rows.copy()
        hold_or_miss(rows, truth, coins.holds, coins.out, coins.into, self.symbols)
        return BitReports(rows, self.symbols)

    def encode(self, reports: BitReports) -> Vectors:
        """Return (n, V + 1) int64: a 1 for every symbol in the subset."""
        return self._check_reports(reports).to_dense().astype(np.int64)

    def tally(self, reports: BitReports, where: Where | None = None) -> Counts:
        """Return the reports that hold each symbol, (V + 1,) int64."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        return reports.count_yes(mask)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (1, V + 1) counts, each Bin(Y, p) + Bin(N − Y, q), as among devices.

        Counts of different symbols are drawn independently; among devices they sum to dN.
        """
        return self._sample_support(true_counts, rng=rng)

    @property
    def _size(self) -> int:
        """Return d."""
        return 1 if self.size is None else self.size

    def _check_reports(self, reports: BitReports) -> BitReports:
        """Refuse reports about other symbols."""
        if not isinstance(reports, BitReports) or reports.cells != self.symbols:
            raise ParameterError("reports", f"must be BitReports about {self.symbols} symbols", reports)
        return reports

    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the reports that hold each cell."""
        return counts[1:]

    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return the exact claim: subsets that hold one of two truths and not the other tell, the rest do not."""
        telling = self.true_yes * (self.symbols - self._size) / self.cells
        source = (
            f"A subset of {self._size} of {self.symbols} that holds one truth and not the other is e^ε times as likely "
            "under it (Ye and Barg 2018)"
        )
        return mirror_claim(telling=telling, epsilon=self.epsilon, queries=queries, source=source)
