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
from mechanisms.privacy.report_claims import one_round_claim
from mechanisms.privacy.view import View


@dataclass(frozen=True, kw_only=True)
class PureProtocol(ABC):
    """A pure protocol (Wang, Blocki, Li and Jha 2017, *Locally Differentially Private Protocols*, definition 4).

    A report supports a set of symbols: a device's own cell with probability p, `true_yes`, and any other cell with the
    same probability q, `false_yes`. So C_v, the number of reports that support cell v, is Bin(Y, p) + Bin(N − Y, q),
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
        """q, probability that a report supports a given cell that the device is not in."""

    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """Shape of the tally."""

    @property
    @abstractmethod
    def batch(self) -> int:
        """Number of devices per batch; their coins and reports take at most about 64 MB."""

    @abstractmethod
    def toss(self, memory: Any, *, rng: np.random.Generator) -> Coins:
        """Return all coins of the batch."""

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
        """Draw counts as simulated devices would produce them."""

    @abstractmethod
    def _support(self, counts: Counts) -> NDArray[np.int64]:
        """Return the number of reports that support each cell, (V,) int64, from one round's (*tally_shape,) counts."""

    @abstractmethod
    def _report_claim(self, queries: int) -> PrivacyClaim:
        """Return the claim about one device's reports to `queries` queries."""

    def warnings(self) -> list[str]:
        """Return the papers' warnings about these parameters: there are none."""
        return []

    def enrol(self, n: int, *, rng: np.random.Generator) -> Memory:  # noqa: ARG002 - others draw
        """Return the memory of n devices: none."""
        return NoMemory(n)

    def estimate(self, counts: Counts, *, counted: Sequence[int], asked: Sequence[int]) -> Estimate:
        """Return (C − qN)/(p − q) for support C (Wang et al. 2017 eq 3); N(C/n − q)/(p − q) if n of N were counted.

        Parameters
        ----------
        counts : (1, *tally_shape) int64
        counted, asked : (1,) int

        Returns
        -------
        Estimate
            Unbiased, with an interval that inverts the distribution of C.
        """
        heard = ResponseCounts.from_rounds(counted, asked, rounds=self.rounds, truth_round=self.truth_round)
        tallied = check_counts("counts", counts, (self.rounds, *self.tally_shape))[0]
        support = self._support(tallied)
        return estimate_proportion(support, true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)

    def std_error(
        self, true_counts: Counts, *, asked: Sequence[int] | None = None, counted: Sequence[int] | None = None
    ) -> NDArray[np.float64]:
        """Return the standard error √(Y·p(1 − p) + (N − Y)·q(1 − q))/(p − q), (V,).

        This is Wang et al. 2017 eq 4 in exact form; they drop the first term for rare cells. If only some of the
        devices were counted, the variance of a simple random sample is added.

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
        """Return the claim about a view: exact for a report, and at most that for views derived from reports."""
        return one_round_claim(view, self._report_claim)

    def _variance(self, heard: ResponseCounts) -> QuadraticVariance:
        """Return the variance of the estimate as a function of the truth."""
        return proportion_variance(true_yes=self.true_yes, false_yes=self.false_yes, heard=heard)

    def _sample_support(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V + 1) support of outside and of each cell: independent draws of Bin(Y, p) + Bin(N − Y, q)."""
        truth = check_true_counts(true_counts, self.cells)
        drawn = rng.binomial(truth, self.true_yes) + rng.binomial(truth.sum() - truth, self.false_yes)
        counts: Counts = drawn.astype(np.int64, copy=False)
        return counts[np.newaxis]


# Below LEAST, double precision does not separate a mechanism's two probabilities; above GREATEST, there is no privacy.
LEAST, GREATEST = 1e-6, 50.0


def check_budget(field: str, value: object) -> float:
    """Return the ε of a mechanism as a float in 1e-6…50; reject 0, NaN and infinity."""
    number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
    if math.isnan(number):
        raise ParameterError(field, "must be a number", value)
    if not LEAST <= number <= GREATEST:
        raise ParameterError(field, f"must be in {LEAST:g}..{GREATEST:g}", value)
    return number
