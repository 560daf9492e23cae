"""Subset selection: a report is a random subset of the symbols that contains the true one more often."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mechanisms.compiled import Mask, Values, Words, compiled
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.frequency_oracle import FrequencyOracle
from mechanisms.local.common.packed_bits import BitReports, batch_of_rows, toss_rows, words_of
from mechanisms.local.common.response_counts import check_where
from mechanisms.local.mechanism import Counts, DeviceRows, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_integer

ONE = np.uint64(1)
MEMBERS, OTHERS = np.uint64(0), np.uint64(2**64 - 1)


def draw_subsets(n: int, symbols: int, size: int, *, rng: np.random.Generator) -> Words:
    """Return n uniform subsets of `size` of the symbols, (n, ceil(symbols / 64)) uint64.

    Each symbol is first included with probability size/symbols: given their number, the included symbols are a uniform
    subset of that size. Then uniform members are removed, or uniform other symbols added, until the size is right; this
    takes about √symbols steps.
    """
    rows = toss_rows(n, symbols, size / symbols, rng=rng)
    _even_out(rows, symbols, size, rng)
    return rows


@compiled
def _ones(word: np.uint64) -> Any:
    """Return the number of bits set in a word, as int64."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _even_out(rows: Words, symbols: int, size: int, rng: np.random.Generator) -> None:
    """Add or remove uniform symbols until every row has `size` members."""
    for i in range(rows.shape[0]):
        held = 0
        for j in range(rows.shape[1]):
            held += _ones(rows[i, j])
        while held != size:
            symbol = int(rng.random() * symbols)  # a 53-bit uniform number, never rounded up to `symbols`
            word = symbol >> 6
            bit = ONE << np.uint64(symbol & 63)
            has = (rows[i, word] & bit) != 0
            if held > size and has:
                rows[i, word] ^= bit
                held -= 1
            elif held < size and not has:
                rows[i, word] ^= bit
                held += 1


@compiled
def _flip_ranked(row: Words, rank: int, symbols: int, mirror: np.uint64) -> None:
    """Flip the member of this rank, from 0 in order of symbols; if `mirror` is all ones, the non-member."""
    for j in range(row.size):
        word = row[j] ^ mirror
        left = symbols - 64 * j
        if left < 64:
            word &= (ONE << np.uint64(left)) - ONE
        ones = _ones(word)
        if rank < ones:
            for _ in range(rank):
                word &= word - ONE
            row[j] ^= word & (~word + ONE)
            return
        rank -= ones


@compiled
def hold_or_miss(rows: Words, truth: Values, holds: Mask, out: Values, into: Values, symbols: int) -> None:
    """Make each subset contain its truth, or not contain it, by at most one swap.

    Where the subset must contain the truth and does not, the truth replaces the member of rank `out`. Where it must not
    contain the truth and does, the non-member of rank `into` replaces the truth. As the ranks are uniform, the rest of
    the subset stays uniform among the other symbols.
    """
    for i in range(truth.size):
        word = truth[i] >> 6
        bit = ONE << np.uint64(truth[i] & 63)
        has = (rows[i, word] & bit) != 0
        if holds[i] and not has:
            _flip_ranked(rows[i], out[i], symbols, MEMBERS)
            rows[i, word] ^= bit
        elif has and not holds[i]:
            # Ranked among the non-members before the truth becomes one of them.
            _flip_ranked(rows[i], into[i], symbols, OTHERS)
            rows[i, word] ^= bit


@dataclass(frozen=True, eq=False, slots=True)
class SubsetCoins(DeviceRows):
    """One uniform subset per device, and the draws that turn it into a report.

    Parameters
    ----------
    rows : (n, ceil((V + 1) / 64)) uint64
        Subsets of d of the V + 1 symbols, packed.
    holds : (n,) bool
        Whether the report contains the truth.
    out, into : (n,) int32
        Ranks of the member that the truth replaces, and of the non-member that replaces the truth.
    """

    rows: Words
    holds: Mask
    out: Values
    into: Values


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(FrequencyOracle):
    """Report d of k = V + 1 symbols: the true one among them with probability de^ε/(de^ε + k − d), the rest uniform.

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

    size: int | None = None
    sample_law: ClassVar[str] = "exact per-cell marginals"
    declared: ClassVar[Declared] = declaration("subset_selection")

    def __post_init__(self) -> None:
        """Check the parameters and fill in the size."""
        super().__post_init__()
        best = max(1, round(self.symbols / (math.exp(self.epsilon) + 1.0)))
        size = best if self.size is None else self.size
        object.__setattr__(self, "size", check_integer("size", size, at_least=1, at_most=self.cells))

    @property
    def true_yes(self) -> float:
        """Return p = de^ε/(de^ε + k − d), probability that the report contains the true symbol."""
        weight = self._size * math.exp(self.epsilon)
        return weight / (weight + self.symbols - self._size)

    @property
    def false_yes(self) -> float:
        """Return q = (p(d − 1) + (1 − p)d)/(k − 1), probability that it contains a given other symbol."""
        others = self.symbols - self._size
        miss = others / (self._size * math.exp(self.epsilon) + others)
        return (self.true_yes * (self._size - 1) + miss * self._size) / self.cells

    @property
    def report_bits(self) -> int:
        """Number of bits of a report as sent: one per symbol."""
        return self.symbols

    @property
    def batch(self) -> int:
        """Number of devices per batch; their coins and reports take at most about 64 MB."""
        return batch_of_rows(2 * words_of(self.symbols) + 2)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> SubsetCoins:
        """Draw a subset, whether it must contain the truth, and the ranks of the symbols to swap."""
        n, size = memory.devices, self._size
        rows = draw_subsets(n, self.symbols, size, rng=rng)
        holds = rng.random(n) < self.true_yes
        out = rng.integers(size, size=n, dtype=np.int32)
        into = rng.integers(self.symbols - size, size=n, dtype=np.int32)
        return SubsetCoins(rows, holds, out, into)

    def answer(self, round: int, truth: Truth, coins: SubsetCoins) -> BitReports:  # noqa: A002 - the paper's word
        """Return one subset per device, (n, V + 1) packed bits; bit 0 is outside."""
        self.check_answer(round, truth, len(coins))
        rows = coins.rows.copy()
        hold_or_miss(rows, truth, coins.holds, coins.out, coins.into, self.symbols)
        return BitReports(rows, self.symbols)

    def encode(self, reports: BitReports) -> Vectors:
        """Return (n, V + 1) int64: a 1 for every symbol in the subset."""
        return self._check_reports(reports).to_dense().astype(np.int64)

    def tally(self, reports: BitReports, where: Where | None = None) -> Counts:
        """Return the number of reports that contain each symbol, (V + 1,) int64."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        return reports.count_yes(mask)

    @property
    def _size(self) -> int:
        """Return d."""
        return 1 if self.size is None else self.size

    def _check_reports(self, reports: BitReports) -> BitReports:
        """Reject reports about a different number of symbols."""
        if not isinstance(reports, BitReports) or reports.cells != self.symbols:
            raise ParameterError("reports", f"must be BitReports about {self.symbols} symbols", reports)
        return reports

    @property
    def distinguishing(self) -> float:
        """Probability that the report contains the true symbol and not a given other one."""
        return self.true_yes * (self.symbols - self._size) / self.cells

    @property
    def source(self) -> str:
        """The reason for the claim about a report, and the paper."""
        return (
            f"A subset of {self._size} of {self.symbols} that holds one truth and not the other is e^ε times as likely "
            "under it (Ye and Barg 2018)"
        )
