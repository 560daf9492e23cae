"""No privacy: the baseline, in which a device reports its cell."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.compiled import Values
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import CategoricalReports, DeclaredMechanism
from mechanisms.local.common.estimators import estimate_proportion, proportion_variance
from mechanisms.local.common.intervals import BinomialInversion, QuadraticVariance
from mechanisms.local.common.response_counts import ResponseCounts, check_round, check_truth
from mechanisms.local.mechanism import Counts, Estimate, NoMemory, Truth
from mechanisms.parameter import check_true_counts
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.view import ReleasedCounts, Report, Shuffled


@dataclass(frozen=True, kw_only=True)
class NoPrivacy(CategoricalReports, DeclaredMechanism):
    """Each device reports its cell, or 0 if it is in none: one round, no noise, no privacy.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.

    Raises
    ------
    ParameterError
        If `cells` is not a positive integer.
    """

    cells: int
    batch: ClassVar[int] = 2**20

    declared: ClassVar[Declared] = declaration("no_privacy")

    @property
    def tally_shape(self) -> tuple[int]:
        """(V + 1,): outside, then each cell."""
        return (self.cells + 1,)

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> NoMemory:  # noqa: ARG002 - other mechanisms draw from it
        """Return the coins of a batch: none."""
        return memory

    def answer(self, round: int, truth: Truth, coins: NoMemory) -> Values:  # noqa: A002 - the paper's word
        """Return each device's cell, (n,) int32 in 0…V."""
        check_round(round, self.rounds)
        return check_truth(truth, devices=coins.devices, cells=self.cells).copy()

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return the counts themselves, or N·C/n if only n of N devices were counted.

        Parameters
        ----------
        counts : (1, V + 1) int64
        received : ResponseCounts
            Of one round.

        Returns
        -------
        Estimate
            Exact on an ideal channel; else unbiased, with the interval of a hypergeometric count.
        """
        seen = counts[0, 1:]
        if received.ideal:
            count = seen.astype(np.float64)
            there = np.clip(seen, 0, received.devices)
            ends = there.astype(np.float64)
            return Estimate(count, np.zeros(self.cells), ends, ends, "exact", BinomialInversion(there, there, 1.0))
        return estimate_proportion(seen, true_yes=1.0, false_yes=0.0, received=received)

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the variance: 0 on an ideal channel, else the variance of a simple random sample."""
        return proportion_variance(true_yes=1.0, false_yes=0.0, received=received)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:  # noqa: ARG002 - other mechanisms draw from it
        """Return the true counts themselves, (1, V + 1) int64."""
        return check_true_counts(true_counts, self.cells)[np.newaxis].copy()

    def claim_report(self, view: Report) -> Claim:  # noqa: ARG002 - the same for any number of queries
        """Return ε = ∞, δ = 1: a report reveals the cell with certainty."""
        return Claim.exact(math.inf, ConstantDelta(1.0), "A report is the device's cell.")

    def claim_shuffled(self, view: Shuffled | ReleasedCounts) -> Claim:  # noqa: ARG002 - the same for any crowd
        """Return ε = ∞, δ = 1: the claim of exact counts."""
        basis = "With all other devices' cells known, exact counts reveal the last one."
        return Claim.exact(math.inf, ConstantDelta(1.0), basis)

    claim_counts = claim_shuffled
