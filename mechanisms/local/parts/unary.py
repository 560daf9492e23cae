"""Unary encodings: one noisy bit a cell, all zeros before the noise for a device outside."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.mechanism import Counts, NoMemory, Truth, Vectors, Where
from mechanisms.local.parts.bit_rows import BitReports, set_bits, words_of
from mechanisms.local.parts.checks import check_round, check_truth
from mechanisms.local.parts.coin_rows import toss_rows
from mechanisms.local.parts.pure_protocol import PureProtocol
from mechanisms.local.parts.yes_no import batch_of_rows, encode_rows, tally_rows
from mechanisms.local.randomized_response import TwoCoins
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.per_cell import binary_answer_claim


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(PureProtocol):
    """Each cell's bit is 1 with p where the device is in it, with q elsewhere, independently.

    Moving a device between two cells changes the law of two bits, and leaving every cell that of one: the
    first is the worst, whatever p and q, and a claim is about it.
    """

    sample_law: ClassVar[str] = "exact joint"

    @property
    def true_no(self) -> float:
        """1 − p, as exactly as a double allows."""
        return 1.0 - self.true_yes

    @property
    @abstractmethod
    def apart(self) -> float:
        """Return p − q, without subtracting two numbers that are nearly equal."""

    @property
    def epsilon_between_cells(self) -> float:
        """ε of a report, for a move between two cells: ln(p(1 − q)/(q(1 − p)))."""
        return math.log1p(self.apart / self.false_yes) + math.log1p(self.apart / self.true_no)

    @property
    def epsilon_to_outside(self) -> float:
        """ε of a report, for a move between a cell and outside: max(ln(p/q), ln((1 − q)/(1 − p)))."""
        return math.log1p(self.apart / min(self.false_yes, self.true_no))

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, 2): No and Yes about each cell."""
        return (self.cells, 2)

    @property
    def batch(self) -> int:
        """Devices a batch: their coins and reports take about 64 MB at most."""
        return batch_of_rows(2 * words_of(self.cells))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> TwoCoins:
        """Toss a noise bit about every cell, and whether the device says Yes about its own if noise does not.

        Noise says Yes with q and the hit with (p − q)/(1 − q): q + (1 − q)·(p − q)/(1 − q) = p.
        """
        noise = toss_rows(memory.devices, self.cells, self.false_yes, rng=rng)
        hits = rng.random(memory.devices) < (self.true_yes - self.false_yes) / (1.0 - self.false_yes)
        return TwoCoins(noise, hits)

    def answer(self, round: int, truth: Truth, coins: TwoCoins) -> BitReports:  # noqa: A002 - the paper's word
        """Return a bit about every cell, (n, V) packed."""
        check_round(round, self.rounds)
        check_truth(truth, devices=len(coins), cells=self.cells)
        rows = coins.noise.copy()
        set_bits(rows, truth, coins.hits)
        return BitReports(rows, self.cells)

    def encode(self, reports: BitReports) -> Vectors:
        """Return (n, V, 2) int64: a 1 for No or for Yes about each cell."""
        return encode_rows(reports, self.cells)

    def tally(self, reports: BitReports, where: Where | None = None) -> Counts:
        """Return the answers No and Yes about each cell, (V, 2) int64."""
        return tally_rows(reports, self.cells, where)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (1, V, 2) counts: Yes is Bin(Y, p) + Bin(N − Y, q), independent from cell to cell."""
        truth = check_true_counts(true_counts, self.cells)
        devices, inside = truth.sum(), truth[1:]
        yes = rng.binomial(inside, self.true_yes) + rng.binomial(devices - inside, self.false_yes)
        return np.stack([devices - yes, yes], axis=-1).astype(np.int64, copy=False)[np.newaxis]

    @property
    @abstractmethod
    def _source(self) -> str:
        """Where p and q come from."""

    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the Yes answers."""
        return counts[:, 1]

    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return the exact hockey stick of the bits that a move changes."""
        return binary_answer_claim(
            true_yes=self.true_yes,
            true_no=self.true_no,
            false_yes=self.false_yes,
            apart=self.apart,
            cells=self.cells,
            queries=queries,
            source=self._source,
        )
