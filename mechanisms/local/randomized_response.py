"""Randomized response with the papers' two coins, asked as a yes/no question about every cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.estimate import Estimate
from mechanisms.local.mechanism import Counts, NoMemory, Truth, Vectors, Where
from mechanisms.local.parts.bit_rows import BitReports, set_bits, words_of
from mechanisms.local.parts.checks import check_round, check_truth
from mechanisms.local.parts.coin_rows import toss_rows
from mechanisms.local.parts.heard import Heard
from mechanisms.local.parts.proportion import estimate_proportion, proportion_variance
from mechanisms.local.parts.yes_no import batch_of_rows, encode_rows, tally_rows
from mechanisms.parameter import check_counts, check_integer, check_probability, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.one_round import one_round_claim
from mechanisms.privacy.per_cell import binary_answer_claim
from mechanisms.privacy.view import View


@dataclass(frozen=True, eq=False, slots=True)
class TwoCoins:
    """What the two coins of every device about every cell come to.

    Parameters
    ----------
    noise : (n, ceil(cells / 64)) uint64
        Cells about which the device says Yes whatever the truth: first coin tails, second heads.
    hits : (n,) bool
        Whether it says Yes about the cell it is in, if `noise` does not already.
    """

    noise: NDArray[np.uint64]
    hits: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of devices."""
        return len(self.hits)


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    """Two coins a cell: heads on the first, say the truth; else say what the second says (SP sec 3.3, π_s = 1).

    p₁ = π_1 + (1 − π_1)π_2 is the probability of a Yes about the device's own cell, p₀ = (1 − π_1)π_2 about
    any other.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    first_coin : float
        π_1, probability of telling the truth, in (0, 1].
    second_coin : float
        π_2, probability of saying Yes otherwise, in [0, 1].

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    cells: int
    first_coin: float
    second_coin: float
    rounds: ClassVar[int] = 1
    truth_round: ClassVar[int] = 1
    sample_law: ClassVar[str] = "exact joint"

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_integer("cells", self.cells, at_least=1)
        check_probability("first_coin", self.first_coin, above_zero=True)
        check_probability("second_coin", self.second_coin)

    @property
    def true_yes(self) -> float:
        """p₁, probability of a Yes about the device's own cell."""
        return self.first_coin + self.false_yes

    @property
    def false_yes(self) -> float:
        """p₀, probability of a Yes about any other cell."""
        return (1.0 - self.first_coin) * self.second_coin

    @property
    def tally_shape(self) -> tuple[int, int]:
        """(V, 2): No and Yes about each cell."""
        return (self.cells, 2)

    @property
    def batch(self) -> int:
        """Devices a batch: their coins and reports take about 64 MB at most."""
        return batch_of_rows(2 * words_of(self.cells))

    def warnings(self) -> list[str]:
        """Return what the papers advise against in these parameters: nothing."""
        return []

    def enrol(self, n: int, *, rng: np.random.Generator) -> NoMemory:  # noqa: ARG002 - others draw
        """Return the memory of n devices: none."""
        return NoMemory(n)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> TwoCoins:
        """Toss both coins of every device about every cell.

        Only what they come to is kept, with the same law: noise, with probability p₀ about each cell
        independently; and one hit a device, with probability π_1/(1 − p₀), which turns the No that noise
        leaves about its own cell into a Yes: p₀ + (1 − p₀)·π_1/(1 − p₀) = p₁. A device has one cell, so it
        needs one hit.
        """
        noise = toss_rows(memory.devices, self.cells, self.false_yes, rng=rng)
        hits = rng.random(memory.devices) < self.first_coin / (1.0 - self.false_yes)
        return TwoCoins(noise, hits)

    def answer(self, round: int, truth: Truth, coins: TwoCoins) -> BitReports:  # noqa: A002 - the paper's word
        """Return a Yes or No about every cell; a device outside every cell holds a No about each."""
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

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return (C − p₀N)/(p₁ − p₀) for the Yes count C (SP eqs 2-5), with n of N heard N(C/n − p₀)/(p₁ − p₀).

        Parameters
        ----------
        counts : (1, V, 2) int64
        counted, asked : (1,) int

        Returns
        -------
        Estimate
            Unbiased, with an interval that inverts the law of C.
        """
        heard = Heard.from_rounds(counted, asked, rounds=self.rounds, truth_round=self.truth_round)
        yes = check_counts("counts", counts, (self.rounds, *self.tally_shape))[0, :, 1]
        return estimate_proportion(yes, true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return √(Y·p₁(1 − p₁) + (N − Y)·p₀(1 − p₀))/(p₁ − p₀), (V,), and a sample's share where not all were heard.

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        asked, counted : (1,) int, optional
            An ideal channel by default.
        """
        truth = check_true_counts(true_counts, self.cells)
        heard = Heard.from_truth(int(truth.sum()), counted, asked, rounds=self.rounds, truth_round=self.truth_round)
        if heard.silent:
            return np.full(self.cells, np.inf)
        variance = proportion_variance(true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)
        return variance.std_error(truth[1:])

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (1, V, 2) counts: Yes is Bin(Y, p₁) + Bin(N − Y, p₀), independent from cell to cell."""
        truth = check_true_counts(true_counts, self.cells)
        devices, inside = truth.sum(), truth[1:]
        yes = rng.binomial(inside, self.true_yes) + rng.binomial(devices - inside, self.false_yes)
        return np.stack([devices - yes, yes], axis=-1).astype(np.int64, copy=False)[np.newaxis]

    def claim(self, view: View) -> PrivacyClaim:
        """Return what a view tells.

        A report is exact: the hockey stick of the two answers a move changes. At δ = 0 that is
        ln(p₁/p₀) + ln((1 − p₀)/(1 − p₁)), where SP eq 30 prints the first term only. Other views follow from it, as
        with any mechanism of one round.
        """

        def report(queries: int) -> PrivacyClaim:
            return binary_answer_claim(
                true_yes=self.true_yes,
                true_no=(1.0 - self.first_coin) * (1.0 - self.second_coin),
                false_yes=self.false_yes,
                apart=self.first_coin,
                cells=self.cells,
                queries=queries,
                source="SP sec 3.3 with π_s = 1; eq 30 leaves out the answer No and the second cell",
            )

        return one_round_claim(view, report)
