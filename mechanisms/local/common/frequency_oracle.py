"""Base classes of frequency oracles of one round, whose reports support the true symbol more often than any other."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Integers
from mechanisms.declared import Declared, budget
from mechanisms.local.common.base import DeclaredMechanism
from mechanisms.local.common.estimators import estimate_proportion, proportion_variance
from mechanisms.local.common.intervals import QuadraticVariance
from mechanisms.local.common.response_counts import ResponseCounts
from mechanisms.local.mechanism import Counts, Estimate
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.report_claims import mirror_claim, released_reports_claim, released_shuffled_claim
from mechanisms.privacy.view import ReleasedCounts, Report, Shuffled


@dataclass(frozen=True, kw_only=True)
class PureProtocol(DeclaredMechanism):
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

    @property
    @abstractmethod
    def true_yes(self) -> float:
        """p, probability that a report supports the cell the device is in."""

    @property
    @abstractmethod
    def false_yes(self) -> float:
        """q, probability that a report supports a given cell that the device is not in."""

    @abstractmethod
    def support(self, counts: Counts) -> Integers:
        """Return the number of reports that support each cell, (V,) int64, from one round's (*tally_shape,) counts."""

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return (C − qN)/(p − q) for support C (Wang et al. 2017 eq 3); N(C/n − q)/(p − q) if n of N were counted.

        Parameters
        ----------
        counts : (1, *tally_shape) int64
        received : ResponseCounts
            Of one round.

        Returns
        -------
        Estimate
            Unbiased, with an interval that inverts the distribution of C.
        """
        support = self.support(counts[0])
        return estimate_proportion(support, true_yes=self.true_yes, false_yes=self.false_yes, received=received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the variance (Y·p(1 − p) + (N − Y)·q(1 − q))/(p − q)².

        This is Wang et al. 2017 eq 4 in exact form; they drop the first term for rare cells. If only some of the
        devices were counted, the variance of a simple random sample is added.
        """
        return proportion_variance(true_yes=self.true_yes, false_yes=self.false_yes, received=received)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published counts, a function of the shuffled reports of all devices counted.

        Where their number is not given, what the device's own report reveals bounds them.
        """
        if view.counted is None:
            return released_reports_claim(self.own_reports(view))
        shuffled = Shuffled(1, view.counted, view.queries, adjacency=view.adjacency)
        return released_shuffled_claim(self.claim_shuffled(shuffled))


@dataclass(frozen=True, kw_only=True)
class BudgetedProtocol(PureProtocol):
    """A pure protocol with a budget ε.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε, in 1e-6…50.
    """

    epsilon: float
    declared: ClassVar[Declared] = Declared(parameters=(budget("epsilon", "ε of one report."),))


@dataclass(frozen=True, kw_only=True)
class FrequencyOracle(BudgetedProtocol):
    """A pure protocol over V + 1 symbols, outside every cell being symbol 0, that reveals any two symbols equally.

    A report that distinguishes two symbols is e^ε times as likely under one of them; it comes with the probability
    `distinguishing`.
    """

    @property
    def symbols(self) -> int:
        """Return k = V + 1: one symbol for outside, and one for each cell."""
        return self.cells + 1

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """(V + 1,): reports that support outside, then each cell."""
        return (self.symbols,)

    @property
    @abstractmethod
    def distinguishing(self) -> float:
        """Probability of a report that supports the true symbol and not a given other one."""

    @property
    @abstractmethod
    def source(self) -> str:
        """The reason for the claim about a report, and the paper."""

    def support(self, counts: Counts) -> Integers:
        """Return the number of reports that support each cell."""
        return counts[1:]

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V + 1) counts, each Bin(Y, p) + Bin(N − Y, q), its exact distribution.

        Counts of different symbols are drawn independently, whereas the counts of devices' reports are dependent.
        """
        truth = check_true_counts(true_counts, self.cells)
        drawn = rng.binomial(truth, self.true_yes) + rng.binomial(truth.sum() - truth, self.false_yes)
        counts: Counts = drawn.astype(np.int64, copy=False)
        return counts[np.newaxis]

    def claim_report(self, view: Report) -> Claim:
        """Return the exact claim: of all reports, only those that support one of two symbols distinguish them.

        It is the same for both adjacencies: outside is a symbol like any other.
        """
        return mirror_claim(
            distinguishing=self.distinguishing, epsilon=self.epsilon, queries=view.queries, source=self.source
        )
