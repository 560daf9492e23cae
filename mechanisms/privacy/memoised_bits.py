"""Claims about memoised bits: permanent noise drawn once, and fresh noise in every query."""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.compiled import Floats
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.hockey_stick import pair_delta
from mechanisms.privacy.report_claims import EXACT_QUERIES as WALKED_QUERIES
from mechanisms.privacy.report_claims import MirrorDelta, WorstPairDelta, convolved
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.view import Adjacency, possible_adjacency

# Queries for which δ is computed from the distributions of two sums; for more, the kept bits themselves bound it.
EXACT_QUERIES = 2**9


@dataclass(frozen=True)
class MemoisedBits:
    """A bit kept as 1 with p₁ (in the device's cell) or q₁ (elsewhere), then flipped with f in every query.

    Given the kept bit, the bits of the queries are independent, so the number of 1s among T bits is sufficient, with
    p₁·Bin(T, 1 − f) + (1 − p₁)·Bin(T, f) in the cell, and the same with q₁ elsewhere.

    Parameters
    ----------
    true_kept, false_kept : float
        p₁ > q₁.
    flip : float
        f, below ½.
    cells : int
        V; with more than one cell, a move changes two bits.
    """

    true_kept: float
    false_kept: float
    flip: float
    cells: int

    def epsilon(self, queries: float) -> float:
        """Return the exact ε of T queries while the truth does not change; T = ∞ covers any number of queries.

        The likelihood ratio rises with the number of 1s, so it is greatest where all T bits are 1 and least
        where no bit is 1.
        """
        odds = (self.flip / (1.0 - self.flip)) ** queries
        p, q = self.true_kept, self.false_kept
        ones = math.log((p + (1.0 - p) * odds) / (q + (1.0 - q) * odds))
        zeros = math.log(((1.0 - q) + q * odds) / ((1.0 - p) + p * odds))
        return ones + zeros if self.cells > 1 else max(ones, zeros)

    def laws(self, queries: int) -> tuple[Floats, Floats]:
        """Return the distributions of the number of 1s among T bits, in the cell and elsewhere, (T + 1,) each."""
        kept = convolved((self.flip, 1.0 - self.flip), queries)
        p, q = self.true_kept, self.false_kept
        return p * kept + (1.0 - p) * kept[::-1], q * kept + (1.0 - q) * kept[::-1]


@dataclass(frozen=True)
class MemoisedDelta:
    """The exact δ(ε) of T queries while the truth does not change, as a function of ε."""

    bits: MemoisedBits
    queries: int

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        yes, no = self.bits.laws(self.queries)
        if self.bits.cells > 1:
            yes, no = np.multiply.outer(yes, no).ravel(), np.multiply.outer(no, yes).ravel()
        return pair_delta(yes, no, epsilon=epsilon)


@dataclass(frozen=True)
class PureDelta:
    """The δ(ε) that ε₀ at δ = 0 implies, [e^ε₀ − e^ε]₊/(e^ε₀ + 1), or another bound where that is smaller.

    Parameters
    ----------
    pure : float
        ε₀.
    other : MirrorDelta
        Another bound.
    """

    pure: float
    other: MirrorDelta

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ at this ε."""
        # Randomized response with ε₀ dominates every mechanism with ε₀ at δ = 0 (Kairouz, Oh and Viswanath 2015).
        answer = MirrorDelta(1.0 / (1.0 + math.exp(-self.pure)), self.pure)
        return min(answer(epsilon), self.other(epsilon))


def staying_claim(bits: MemoisedBits, *, queries: int, source: str) -> Claim:
    """Return the claim of T ≥ 2 queries about a device that is in the same place, or outside, at all of them.

    Parameters
    ----------
    bits : MemoisedBits
    queries : int
        T.
    source : str
        Source of the bits, for the basis.

    Returns
    -------
    Claim
        ε is exact. δ is exact for up to 512 queries; for more it is bounded by the δ of the kept bits themselves.
    """
    epsilon = bits.epsilon(queries)
    basis = (
        f"For a device whose truth does not change between the queries only ({source}): the exact distribution of "
        f"the number of 1s; never above {rounded_up(bits.epsilon(math.inf), 6)} over any number of queries"
    )
    if queries <= EXACT_QUERIES:
        return Claim.exact(epsilon, MemoisedDelta(bits, queries), f"{basis}.")
    p, q = bits.true_kept, bits.false_kept
    yes, no = np.array([1.0 - p, p]), np.array([1.0 - q, q])
    if bits.cells > 1:
        yes, no = np.multiply.outer(yes, no).ravel(), np.multiply.outer(no, yes).ravel()
    curve = WorstPairDelta.of((yes, no))
    return Claim("exact", epsilon, "bound", f"{basis}; δ is bounded by the δ of the kept bits.", curve)


def moving_claim(bits: MemoisedBits, *, queries: int, source: str, adjacency: Adjacency = "move") -> Claim:
    """Return the claim of T ≥ 2 queries about a device that may be elsewhere at each of them.

    It is the lesser of two bounds. The first assumes that the kept bits are known: two truths then differ in at most
    two of them, or in one where the device enters or leaves a cell, which each query flips anew. If they are not known
    the view reveals no more, because the hockey-stick divergence is jointly convex. The second is the sum over the
    visited cells in `_journeys`.

    Parameters
    ----------
    bits : MemoisedBits
    queries : int
        T.
    source : str
        Source of the bits, for the basis.
    adjacency : {"move", "enter_leave"}
        The change at each query.

    Returns
    -------
    Claim
        δ is a bound. ε is exact for a move and up to 4,096 queries if there are enough cells for the worst two journeys
        to have no cell in common; otherwise it is a bound.
    """
    staying = staying_claim(bits, queries=queries, source=source)
    basis = (
        f"Whatever the cells at each query ({source}): each truth has its own kept bits, and a device that moves "
        f"reveals each that it visits. One that stays reveals {rounded_up(staying.epsilon, 6)} exactly, never above "
        f"{rounded_up(bits.epsilon(math.inf), 6)}: see staying_claim."
    )
    moves = possible_adjacency(adjacency, cells=bits.cells) == "move"
    changed = 2 if moves else 1
    single = changed * math.log((1.0 - bits.flip) / bits.flip)
    if queries > WALKED_QUERIES:
        return Claim.bound(queries * single, ConstantDelta(1.0), basis)
    flips = MirrorDelta((1.0 - bits.flip) ** changed, single, queries)
    epsilon, met = _journeys(bits, queries)
    curve = PureDelta(min(epsilon, queries * single), flips)
    return Claim("bound" if met or not moves else "exact", curve.pure, "bound", basis, curve)


def _journeys(bits: MemoisedBits, queries: int) -> tuple[float, bool]:
    """Return ε for any two journeys of T queries, summed over the visited cells, and whether they must share a cell.

    A journey is the sequence of a device's cells at the queries. The kept bits of one cell, visited at a set A of
    queries, are a mixture: 1 at all queries, with q₁; 1 at the queries in A only, with p₁ − q₁; 0 at all, with 1 − p₁.
    With R = (1 − f)/f, a set of size a is at most 1 + (p₁ − q₁)(R^a − 1)/(q₁R^(2a−T) + 1 − q₁) times as likely as no
    visit (for 1s in A alone), and no visit is at most (q₁R^−T + 1 − q₁)/(q₁R^−T + (p₁ − q₁)R^−a + 1 − p₁) times as
    likely as A (for no 1s). The visits of each journey sum to T; their worst division among cells is found by dynamic
    programming. If the journeys share no cell, all these ratios are attained at once. A cell that both visit reveals at
    most as much as two cells would.
    """
    p, q = bits.true_kept, bits.false_kept
    visits = np.arange(1, queries + 1)
    log_odds = math.log((1.0 - bits.flip) / bits.flip)
    no_visit = np.logaddexp(math.log(q) + (visits - queries) * log_odds, math.log1p(-q) - visits * log_odds)
    ahead = np.logaddexp(0.0, math.log(p - q) + np.log(-np.expm1(-visits * log_odds)) - no_visit)
    noise = q * math.exp(-queries * log_odds)
    behind = np.log((noise + 1.0 - q) / (noise + (p - q) * np.exp(-visits * log_odds) + 1.0 - p))
    if bits.cells == 1:
        return float(ahead.max() + behind.max()), True
    (ahead_most, ahead_cells), (behind_most, behind_cells) = _worst_shares(ahead), _worst_shares(behind)
    return ahead_most + behind_most, ahead_cells + behind_cells > bits.cells


def _worst_shares(gains: Floats) -> tuple[float, int]:
    """Return the greatest Σ gains[a − 1] over integers a ≥ 1 that sum to at most len(gains), and their number."""
    best, parts = np.zeros(len(gains) + 1), np.zeros(len(gains) + 1, dtype=np.int64)
    for total in range(1, len(best)):
        sums = best[total - 1 :: -1] + gains[:total]
        last = int(sums.argmax())
        best[total], parts[total] = sums[last], parts[total - 1 - last] + 1
    return float(best[-1]), int(parts[-1])
