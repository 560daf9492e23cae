"""Base class of frequency oracles of one round, whose reports support the true symbol more often than any other."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.local.common.estimators import estimate_proportion, proportion_variance
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Coins, Counts, Estimate, Memory, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_counts, check_integer, check_true_counts
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.symmetric_pair import one_round_claim
from mechanisms.privacy.view import View


@dataclass(frozen=True, kw_only=True)
class PureProtocol(ABC):
    """A pure protocol (Wang, Blocki, Li and Jha 2017, *Locally Differentially Private Protocols*, definition 4).

    A report supports a set of symbols: a device's own cell with p, `true_yes`, and any cell it is not in with
    q, `false_yes`, whichever that is. So C_v, the reports that support cell v, is Bin(Y, p) + Bin(N − Y, q),
    and (C_v − qN)/(p − q) is unbiased (their eq 3).

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    """

    cells: int
    rounds: ClassVar[int] = 1
    truth_round: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the number of cells."""
        check_integer("cells", self.cells, at_least=1)

    @property
    @abstractmethod
    def true_yes(self) -> float:
        """p, probability that a report supports the cell the device is in."""

    @property
    @abstractmethod
    def false_yes(self) -> float:
        """q, probability that it supports any one cell the device is not in."""

    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """Shape of the tally."""

    @property
    @abstractmethod
    def batch(self) -> int:
        """Devices a batch: their coins and reports take about 64 MB at most."""

    @abstractmethod
    def toss(self, memory: Any, *, rng: np.random.Generator) -> Coins:
        """Return every coin of the batch."""

    @abstractmethod
    def answer(self, round: int, truth: Truth, coins: Any) -> Any:  # noqa: A002 - the paper's word
        """Return the reports."""

    @abstractmethod
    def encode(self, reports: Any) -> Vectors:
        """Return (n, *tally_shape) int64."""

    @abstractmethod
    def tally(self, reports: Any, where: Where | None = None) -> Counts:
        """Return the sum of the encodings."""

    @abstractmethod
    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return counts as devices would have made them."""

    @abstractmethod
    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the reports that support each cell, (V,) int64, from one round's (*tally_shape,) counts."""

    @abstractmethod
    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return what one device's reports to that many queries tell."""

    def warnings(self) -> list[str]:
        """Return what the papers advise against in these parameters: nothing."""
        return []

    def enrol(self, n: int, *, rng: np.random.Generator) -> Memory:  # noqa: ARG002 - others draw
        """Return the memory of n devices: none."""
        return NoMemory(n)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return (C − qN)/(p − q) for the support C (Wang et al. 2017 eq 3); n of N heard, N(C/n − q)/(p − q).

        Parameters
        ----------
        counts : (1, *tally_shape) int64
        counted, asked : (1,) int

        Returns
        -------
        Estimate
            Unbiased, with an interval that inverts the law of C.
        """
        heard = ResponseCounts.from_rounds(counted, asked, rounds=self.rounds, truth_round=self.truth_round)
        tallied = check_counts("counts", counts, (self.rounds, *self.tally_shape))[0]
        support = self._support(tallied)
        return estimate_proportion(support, true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return √(Y·p(1 − p) + (N − Y)·q(1 − q))/(p − q), (V,), and a sample's share where not all were heard.

        Wang et al. 2017 eq 4 exactly, where they drop the first term for rare cells.

        Parameters
        ----------
        true_counts : (V + 1,) int
            Devices outside and in each cell.
        asked, counted : (1,) int, optional
            An ideal channel by default.
        """
        truth = check_true_counts(true_counts, self.cells)
        heard = ResponseCounts.from_truth(
            int(truth.sum()), counted, asked, rounds=self.rounds, truth_round=self.truth_round
        )
        if heard.silent:
            return np.full(self.cells, np.inf)
        return self._variance(heard).std_error(truth[1:])

    def claim(self, view: View) -> PrivacyClaim:
        """Return what a view tells: a report exactly, and what is made from it at most that."""
        return one_round_claim(view, self._report_claim)

    def _variance(self, heard: ResponseCounts) -> QuadraticVariance:
        """Return the variance of the estimate as a function of the truth."""
        return proportion_variance(true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)

    def _sample_support(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Return (1, V + 1) support of outside and of each cell: Bin(Y, p) + Bin(N − Y, q), each by its own draw."""
        truth = check_true_counts(true_counts, self.cells)
        drawn = rng.binomial(truth, self.true_yes) + rng.binomial(truth.sum() - truth, self.false_yes)
        counts: Counts = drawn.astype(np.int64, copy=False)
        return counts[np.newaxis]


# Below, doubles cannot tell a mechanism's two probabilities apart well enough; above, nothing is hidden.
LEAST, GREATEST = 1e-6, 50.0


def check_budget(field: str, value: object) -> float:
    """Return the ε a mechanism shall have as a float in 1e-6…50; 0, NaN and infinity are refused."""
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if math.isnan(number):
        raise ParameterError(field, "must be a number", value)
    if not LEAST <= number <= GREATEST:
        raise ParameterError(field, f"must be in {LEAST:g}..{GREATEST:g}", value)
    return number
