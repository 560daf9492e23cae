"""Memoised longitudinal unary encoding: permanent noise on each bit, and fresh noise in every query."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from mechanisms.compiled import Words
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.packed_bits import BitReports, batch_of_rows, set_bits_where, toss_rows, words_of
from mechanisms.local.mechanism import DeviceRows, Truth
from mechanisms.local.unary_encoding import BitProbabilities, OptimisedUnary, SymmetricUnary, UnaryEncoding
from mechanisms.parameter import ParameterError, check_integer
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.memoised_bits import MemoisedBits, moving_claim, staying_claim
from mechanisms.privacy.report_claims import released_reports_claim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import ReleasedCounts, Report, Shuffled

PermanentStep = Literal["optimised", "symmetric"]
ENCODINGS: dict[PermanentStep, type[SymmetricUnary | OptimisedUnary]] = {
    "optimised": OptimisedUnary,
    "symmetric": SymmetricUnary,
}


@dataclass(frozen=True, eq=False, slots=True)
class KeptBits(DeviceRows):
    """Memory of a device: each cell's permanent bit while it is elsewhere, and a hit for when it is in the cell.

    As the coins of a query, they come with the bits that are flipped in it.

    Parameters
    ----------
    noise : (n, ceil(cells / 64)) uint64
        Permanent bits of the cells that a device is not in.
    hits : (n, ceil(cells / 64)) uint64
        Whether the permanent bit of a cell is 1 while the device is in the cell, if the noise bit is not already 1.
    flips : (n, ceil(cells / 64)) uint64, optional
        Bits that are flipped in this query.
    """

    noise: Words
    hits: Words
    flips: Words | None = None

    @property
    def devices(self) -> int:
        """Return the number of devices."""
        return len(self.noise)


@dataclass(frozen=True, kw_only=True)
class LongitudinalUnary(UnaryEncoding):
    """Two steps: one permanent noisy bit per cell, drawn at `enrol` and kept, and fresh flips of it in every query.

    Erlingsson, Pihur and Korolova 2014 (RAPPOR), with the parameters of Arcolezi, Couchot, Al Bouna and Xiao
    2021, *Improving the Utility of Locally Differentially Private Protocols for Longitudinal and
    Multidimensional Frequency Estimates*: the permanent step has ε∞, and the flip probability f is chosen
    so that both steps together have exactly ε₁: with p₁, q₁ of the permanent step, p = p₁(1 − f) + (1 − p₁)f, q
    likewise, and ε₁ = ln(p(1 − q)/(q(1 − p))).

    A device keeps one bit of noise and one hit per cell. So a move changes its permanent bits in two cells only, and
    a return restores them. While a device stays in place, any number of reports has ε∞ at most (`staying_claim`). Once
    it moves, its reports together reveal the move, with a larger ε than with fresh noise in every query (two queries,
    ε∞ = 2, ε₁ = 1: 2.34 instead of 2). `claim` holds for any sequence of cells.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon_permanent : float
        ε∞, the greatest ε of any number of reports about one truth; in 1e-6…50.
    epsilon_first : float
        ε₁ of one report; below ε∞. Both are for a move between cells.
    permanent : {"optimised", "symmetric"}
        p₁, q₁ of the permanent step: as in OUE (L-OSUE, the more accurate) or as in SUE (L-SUE, basic RAPPOR).

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN, or ε₁ is not below ε∞.
    """

    epsilon_permanent: float
    epsilon_first: float
    permanent: PermanentStep = "optimised"
    declared: ClassVar[Declared] = declaration("longitudinal_unary")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.epsilon_first < self.epsilon_permanent:
            rule = f"must be below epsilon_permanent = {self.epsilon_permanent:g}"
            raise ParameterError("epsilon_first", rule, self.epsilon_first)
        if not 0.0 < self.flip < 0.5:
            # In double precision the two values of ε are equal, or one of them is 0.
            rule = (
                f"must leave a second step with ε strictly between 0 and epsilon_permanent = {self.epsilon_permanent:g}"
            )
            raise ParameterError("epsilon_first", rule, self.epsilon_first)

    @cached_property
    def kept(self) -> SymmetricUnary | OptimisedUnary:
        """The encoding of the permanent step alone, with ε∞: p₁ and q₁ are its `true_yes` and `false_yes`."""
        return ENCODINGS[self.permanent](cells=self.cells, epsilon=self.epsilon_permanent)

    @cached_property
    def without_memory(self) -> SymmetricUnary | OptimisedUnary:
        """The encoding with the p and q of both steps together, with ε₁, whose bits are drawn anew in every query.

        `sample_counts` draws its counts: counts of one query have the same law, counts of several queries are
        independent.
        """
        return ENCODINGS[self.permanent](cells=self.cells, epsilon=self.epsilon_first)

    @property
    def true_kept(self) -> float:
        """p₁, probability that the permanent bit of the device's own cell is 1."""
        return self.kept.true_yes

    @property
    def false_kept(self) -> float:
        """q₁, probability that the permanent bit of any other cell is 1."""
        return self.kept.false_yes

    @property
    def bit(self) -> BitProbabilities:
        """The probabilities after both steps.

        p is 1/2 like p₁ (optimised) or e^(ε₁/2)/(e^(ε₁/2) + 1) (symmetric), q is 1/(e^ε₁ + 1) or 1/(e^(ε₁/2) + 1), and
        p − q is tanh(ε₁/2)/2 or tanh(ε₁/4).
        """
        return self.without_memory.bit

    @property
    def flip(self) -> float:
        """Return f = (q − q₁)/(1 − 2q₁), which turns q₁ into the q at which both steps together have ε₁."""
        return (self.false_yes - self.false_kept) / (1.0 - 2.0 * self.false_kept)

    @property
    def batch(self) -> int:
        """Number of devices per batch; their memory, coins and reports take at most about 64 MB."""
        return batch_of_rows(4 * words_of(self.cells))

    def enrol(self, n: int, *, rng: np.random.Generator) -> KeptBits:
        """Draw the permanent bits of n devices for every possible cell: 2 bits per device and cell."""
        check_integer("n", n, at_least=0)
        noise = toss_rows(n, self.cells, self.false_kept, rng=rng)
        hit = (self.true_kept - self.false_kept) / (1.0 - self.false_kept)
        return KeptBits(noise, toss_rows(n, self.cells, hit, rng=rng))

    def toss(self, memory: KeptBits, *, rng: np.random.Generator) -> KeptBits:
        """Draw the flips of every bit for this query."""
        return KeptBits(memory.noise, memory.hits, toss_rows(memory.devices, self.cells, self.flip, rng=rng))

    def answer(self, round: int, truth: Truth, coins: KeptBits) -> BitReports:  # noqa: A002 - the paper's word
        """Return the permanent bits that belong to the device's truth, with the flips of this query."""
        self.check_answer(round, truth, len(coins))
        rows = coins.noise.copy()
        set_bits_where(rows, truth, coins.hits)
        if coins.flips is not None:
            rows ^= coins.flips
        return BitReports(rows, self.cells)

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of the reports in random order, derived from all reports of a device together.

        Because of the kept bits, the reports of several queries are dependent, and so are the reports of the other
        devices.
        """
        # For a move: the others' reports come from any cells, so they differ from the device's as much.
        return shuffled_claim(view, local=self.claim_report(Report(1, view.queries)))

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published sums; over several queries it is the claim of the device's reports."""
        if view.queries > 1:
            return released_reports_claim(self.own_reports(view))
        return super().claim_counts(view)

    def staying_claim(self, *, queries: int) -> Claim:
        """Return the exact claim about T reports of a device that stays in one cell or outside: ε∞ at most.

        Parameters
        ----------
        queries : int
            T, the number of reports, at least 1.
        """
        if check_integer("queries", queries, at_least=1) == 1:
            return self.claim_report(Report(1))
        return staying_claim(self.memoised_bits, queries=queries, source=self.source)

    @property
    def memoised_bits(self) -> MemoisedBits:
        """The probabilities of the kept bits and of their flips."""
        return MemoisedBits(self.true_kept, self.false_kept, self.flip, self.cells)

    @property
    def source(self) -> str:
        """The source of p and q: paper and name."""
        name = "L-OSUE" if self.permanent == "optimised" else "L-SUE, basic RAPPOR"
        return f"Arcolezi et al. 2021, {name}, flipping with {self.flip:.6g}"

    def claim_report(self, view: Report) -> Claim:
        """Return the exact claim about one report, or a bound for several reports of a device that may move.

        A device that moves reveals more than ε∞, which bounds only the reports about one truth.
        """
        if view.queries == 1:
            return super().claim_report(view)  # one report of both steps is a unary encoding with ε₁
        return moving_claim(self.memoised_bits, queries=view.queries, source=self.source, adjacency=view.adjacency)
