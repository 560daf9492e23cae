"""Published sums of independent bits: the maximum of δ over all others' truths, and claims.

A mechanism with one bit a cell publishes, for each cell, the number of devices whose bit is 1 (`sum_laws`). The sums
alone hide this much. Whoever receives the devices' whole reports, even in random order, learns more.
"""

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from mechanisms.parameter import ParameterError
from mechanisms.privacy.binomial import LEFT_OUT
from mechanisms.privacy.blanket import pairs_over, split_pair
from mechanisms.privacy.claim import LARGEST_CROWD_EPSILON, Claim, ConstantDelta
from mechanisms.privacy.composition import COMPOSED, FINENESS, composed
from mechanisms.privacy.hockey_stick import Pair, pair_curve, pair_of_curve
from mechanisms.privacy.integer_noise import IntegerNoise
from mechanisms.privacy.shuffled import AmplifiedDelta
from mechanisms.privacy.sum_laws import Masses, SummedCellLaw, bits_law, moved_delta
from mechanisms.privacy.view import ReleasedCounts

# Share by which the certified maximum may exceed the greatest δ found: the first for as many divisions, which suffice
# unless δ is nearly the same for all truths, then the second; and most divisions.
GAP, FEW_BOXES, WIDE_GAP, MOST_BOXES = 0.001, 200, 0.01, 2_000


Box = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SumsDelta:
    """δ(ε) of published sums of bits, little above its maximum over the truths of all other devices, and never below.

    How many of the others are in the device's cell, or in each of two cells, may be any number within the limits.
    Nobody else in the cell is not the worst case in general: where p = 1 − q, all others in one of the two cells of a
    move hide less, and for few devices the worst number lies between.

    The maximum is certified by branch and bound. If at least l and at most u of the others are in the cell, then l of
    them are in it and N − 1 − u are not, for any truths in the box. Leaving out the other bits is a post-processing, so
    δ of the sum of these alone is at least the δ of any truths in the box. Boxes are divided until the greatest such
    bound is within 0.1 % of the greatest δ found. Where ε is so small that all truths have nearly the same δ, this
    would take too many boxes, and 1 % is enough; after 2,000 divisions the bound is returned as it is. Bits beyond a
    variance of 2.5e7 are left out in the same way, which matters only at an ε below 0.002.

    Parameters
    ----------
    true_yes, false_yes : float
        p and q, p above q.
    counted : int
        N, devices counted, the device in question included.
    least, most : int
        Least and greatest number of other devices in the cell; for a move in each of the two cells.
    moves : bool
        Whether the device moves between two cells, instead of between one and outside.
    noise : tuple of float, optional
        Masses of the integer noise on each cell's sum.
    certified : bool
        If False, only the ends of the limits are evaluated: an approximation from below, for a search.
    leaving : SumsDelta, optional
        For a move, the curve of leaving a cell for outside, where moves between two cells do not bound it: all others
        may then be in that one cell, but between two cells the limits leave some for the other.
    """

    true_yes: float
    false_yes: float
    counted: int
    least: int
    most: int
    moves: bool
    noise: tuple[float, ...] | None = None
    certified: bool = True
    leaving: "SumsDelta | None" = None

    def __call__(self, epsilon: float) -> float:
        """Return the certified δ of one query."""
        moving = _remembered(self, min(epsilon, LARGEST_CROWD_EPSILON))
        return moving if self.leaving is None else max(moving, self.leaving(epsilon))

    def laws(self) -> tuple[Pair, ...]:
        """Return the pairs of a query where the truths of the others are fixed, or need not be certified; else none."""
        if self.certified and (self.least < self.most or self.leaving is not None):
            return ()
        return _dominating_law(self).laws(moves=self.moves)

    def at(self, inside: tuple[int, ...], epsilon: float) -> float:
        """Return the exact δ of one query for these numbers of others in the cell, or in each of two."""
        return self._delta(tuple((number, number) for number in inside), epsilon)

    def maximum(self, epsilon: float) -> float:
        """Return the certified maximum of one query's δ(ε), usually at most 0.1 % too large.

        Raises
        ------
        ParameterError
            If the others cannot fill both cells of a move as the limits require.
        """
        whole = self._within(self._whole())
        if whole is None:
            raise ParameterError("crowd", f"must leave room in both cells for {self.counted} devices", self.least + 1)
        reached = 0.0
        heap: list[tuple[float, Box]] = []
        offered: list[Box | None] = [whole]
        if not self.certified:
            return max(self.at(corner, epsilon) for corner in self._corners(whole))
        for divisions in range(MOST_BOXES):
            gap, corners = (GAP if divisions < FEW_BOXES else WIDE_GAP), (1 if divisions else 3)
            for box in offered:
                if box is not None:
                    bound = self._delta(box, epsilon)
                    if bound > reached * (1.0 + gap):
                        ends = itertools.islice(self._corners(box), corners)
                        reached = max(reached, *(self.at(corner, epsilon) for corner in ends))
                    heapq.heappush(heap, (-bound, box))
            if -heap[0][0] <= reached * (1.0 + gap) + LEFT_OUT:
                break
            _, box = heapq.heappop(heap)
            widest = max(range(len(box)), key=lambda i: box[i][1] - box[i][0])
            low, high = box[widest]
            halves = ((low, (low + high) // 2), ((low + high) // 2 + 1, high))
            offered = [self._within((*box[:widest], half, *box[widest + 1 :])) for half in halves]
        return -heap[0][0]

    def _delta(self, box: Box, epsilon: float) -> float:
        """Return δ of the bits that all truths in a box have in common."""
        p, q, others = self.true_yes, self.false_yes, self.counted - 1
        inside, outside = others, others
        if self.least < self.most:
            inside, outside = (math.ceil(MOST_VARIANCE / max(yes * (1.0 - yes), 1e-100)) for yes in (p, q))
        laws = [_kept_law(min(low, inside), min(others - high, outside), p, q, self.noise) for low, high in box]
        return laws[0].delta(epsilon) if len(laws) == 1 else moved_delta(laws[0], laws[1], epsilon)

    def _whole(self) -> Box:
        """Return the box of all truths."""
        others = self.counted - 1
        each = (self.least, min(self.most, others - self.least if self.moves else others))
        return (each, each) if self.moves else (each,)

    def _within(self, box: Box) -> Box | None:
        """Return the part of a box in which the others suffice; for a move with at most as many in the first cell."""
        if not self.moves:
            return box
        (low, high), (other_low, other_high) = box
        high, other_high = min(high, other_high), min(other_high, self.counted - 1 - low)
        other_low = max(other_low, low)
        high = min(high, self.counted - 1 - other_low)
        return None if low > high or other_low > other_high else ((low, high), (other_low, other_high))

    def _corners(self, box: Box) -> Iterator[tuple[int, ...]]:
        """Yield truths of a box: its least and greatest numbers that the others suffice for."""
        if not self.moves:
            yield from ((end,) for end in set(box[0]))
            return
        (low, high), (other_low, other_high) = box
        others = self.counted - 1
        yield low, min(other_high, others - low)
        yield low, other_low
        yield min(high, others - other_low), other_low


_kept_law = lru_cache(maxsize=512)(bits_law)
_remembered = lru_cache(maxsize=2048)(SumsDelta.maximum)


# Boxes of truths, and the most masses of all their laws together. Points of a curve on either side of ε = 0.
BOXES, MOST_MASSES, POINTS = 256, 2**24, 500
# For at most so many numbers of others in the cell, the exact maximum over two cells is composed.
FEW = 32
# Most variance of the others' bits in or outside a cell, unless the truths are fixed.
MOST_VARIANCE = 2.5e7
# Fineness of a composition for fixed truths.
FINE = 40


@dataclass(frozen=True)
class AnyTruthsDelta:
    """A bound of δ(ε) of published sums for any truths of the others, at each ε within half a percent of an attained ε.

    Over several queries the curve is needed at a hundred ε, far into its tail, and the worst truths may differ from ε
    to ε and from query to query. The numbers of others that may be in the cell are divided into up to 256 boxes. The
    bits that all truths in a box have in common are all but a 256th of the others', so their standard deviation is at
    most about a 500th too small, and their curve bounds the curves of the box (`SumsDelta`). The maximum of these
    curves in each direction is a convex curve, and its chords give a pair that dominates every truth of the others (as
    in `worst_move_delta`). For a move, one cell is entered and the other left, and their sums are independent: the
    product of the pair and its reverse dominates every move.

    Parameters
    ----------
    sums : SumsDelta
        The bits and the limits.
    """

    sums: SumsDelta

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ of one query."""
        law = _dominating_law(self.sums)
        return moved_delta(law, law, epsilon) if self.sums.moves else law.delta(epsilon)

    def laws(self) -> tuple[Pair, ...]:
        """Return the pairs that dominate a query."""
        return _dominating_law(self.sums).laws(moves=self.sums.moves)


def _dominating_law(sums: SumsDelta) -> SummedCellLaw:
    """Return a law of one cell that dominates the law of every number of others within the limits.

    Of the least and of the greatest number alone, where it need not be certified; their own law if they are equal.
    For one cell it dominates both directions at once.
    """
    return _dominating_laws(replace(sums.leaving or sums, moves=False))[sums.moves]


@lru_cache(maxsize=64)
def _dominating_laws(sums: SumsDelta) -> tuple[SummedCellLaw, SummedCellLaw]:
    """Return the laws of `_dominating_law` for one cell and for a move; what takes long is the same for both."""
    p, q, others = sums.true_yes, sums.false_yes, sums.counted - 1
    if sums.least == sums.most:
        return (bits_law(sums.least, others - sums.least, p, q, sums.noise),) * 2
    width = 24.0 * math.sqrt(others / 4.0) + len(sums.noise or ())
    numbers = min(sums.most, others) - sums.least + 1
    starts = np.linspace(0, numbers, min(numbers, max(16, min(BOXES, int(MOST_MASSES / width)))) + 1).astype(int)
    ends = [
        min(math.log(more / less) if less > 0.0 else math.inf, LARGEST_CROWD_EPSILON)
        for more, less in ((p, q), (1.0 - q, 1.0 - p))
    ]
    made: list[SummedCellLaw] = []
    # For one cell as in both directions at once, then for a move, the values of e^ε and the δ there of each direction.
    grids = [
        [np.exp(np.append(0.0, np.geomspace(1e-7 * end, end, POINTS))) for end in two]
        for two in ([max(ends)] * 2, ends)
    ]
    heights = [np.zeros((2, POINTS + 1)) for _ in grids]
    boxes = list(itertools.pairwise((starts + sums.least).tolist()))
    if not sums.certified:
        boxes = [(end, end + 1) for end in (sums.least, min(sums.most, others))]
    for low, beyond in boxes:
        law = bits_law(low, others - (beyond - 1), p, q, sums.noise)
        for (up, down), (there, elsewhere) in zip(grids, heights, strict=True):
            np.maximum(there, pair_curve(law.present, law.absent, up) + law.left_out, out=there)
            np.maximum(elsewhere, pair_curve(law.absent, law.present, down) + law.left_out, out=elsewhere)
    heights[0][:] = heights[0].max(axis=0)
    for (up, down), both in zip(grids, heights, strict=True):
        both[:, 0] = both[:, 0].max()
        made.append(SummedCellLaw(*pair_of_curve(up, both[0], down, both[1]), mirrored=not made))
    return made[0], made[1]


def sums_claim(
    view: ReleasedCounts,
    *,
    true_yes: float,
    false_yes: float,
    report: Claim,
    source: str,
    noise: IntegerNoise | None = None,
) -> Claim:
    """Return the claim of published sums of independent bits.

    Parameters
    ----------
    view : ReleasedCounts
        Where N is not given, it is the least number of devices that the crowd requires: more devices hide more.
    true_yes, false_yes : float
        p and q. If p is below q, the sums of the bits that are 0 are used, which are as good.
    report : Claim
        Of the device's bits over the same queries and for the same adjacency, which is as good at δ = 0.
    source : str
        Source of p and q, for the basis.
    noise : IntegerNoise, optional
        Noise that each server adds to each cell's sum. The view's colluding servers know their own noise.

    Returns
    -------
    Claim
        ε at δ = 0 exact or infinite; δ exact where the view fixes how many others are in the cell, else a bound,
        usually at most 0.1 % above the maximum for one query.
    """
    if true_yes < false_yes:
        true_yes, false_yes = 1.0 - true_yes, 1.0 - false_yes
    moves = view.adjacency == "move"
    least = (view.crowd or 1) - 1
    counted = max(view.counted or 1, 2 * least + 1 if moves else least + 1)
    most = min(view.most or counted, counted) - 1
    if true_yes == false_yes:
        return Claim.exact(0.0, ConstantDelta(0.0), f"Bits do not depend on the truth ({source}).")
    honest = 0 if noise is None else (view.servers or 1) - (view.colluding or 0)
    masses = noise.masses(honest) if noise is not None and honest else None
    curve = SumsDelta(true_yes, false_yes, counted, least, most, moves, masses)
    others = "any truths of the others"
    if least > 0 or most < counted - 1:
        others = f"between {least} and {most} others in {'each of the two cells' if moves else 'the cell'}"
    if moves and least > 0:
        alone = max(view.counted or 1, least + 1)
        leaving = replace(curve, counted=alone, most=min(view.most or alone, alone) - 1, moves=False)
        if view.counted is not None and view.counted < counted:
            # Too few devices for two such cells: only moves to outside are possible, which may reveal less.
            curve = leaving
            report = Claim.bound(report.epsilon, report.curve, report.basis)
        elif view.counted is None or least < most:
            curve = replace(curve, leaving=leaving)
    basis = (
        f"Sums of independent bits, {counted} devices counted, for "
        f"{'a move between two cells or outside' if moves else 'a device in a cell or outside'}; "
        f"{others} ({source}). For readers of the sums who see no single report"
    )
    hidden = None
    if noise is not None:
        if noise.kind == "discrete_gaussian" and honest:
            # The sum of h servers' noise is a discrete Gaussian but for a share of 10⁻¹⁶h if σ ≥ 2 (Kairouz, Liu and
            # Steinke 2021, The Distributed Discrete Gaussian Mechanism, theorem 1); else one server's noise is counted.
            spread = noise.scale * math.sqrt(honest if noise.scale >= 2.0 else 1)
            hidden = (spread, view.queries * (2 if moves else 1))
        basis = f"The {noise.kind} noise, scale {noise.scale:g}, of {honest} servers that do not collude. {basis}"
        pure = view.queries * (2 if moves else 1) * (noise.pure_epsilon(honest) if honest else math.inf)
        if pure < report.epsilon:
            # Noise alone bounds ε; the curve then has both.
            report = Claim.bound(pure, ConstantDelta(1.0), basis)
        elif honest and math.isfinite(report.epsilon):
            report = Claim.bound(report.epsilon, report.curve, basis)
    if view.queries == 1 and least == most:
        return replace(Claim.exact(report.epsilon, curve, f"{basis}; exact."), kind=report.kind, noise=hidden)
    over = (
        "; δ by branch and bound over the others' truths, usually within 0.1 % of its maximum"
        if view.queries == 1
        else COMPOSED
    )
    single = AnyTruthsDelta(curve) if view.queries > 1 and most - least >= FEW else curve
    # The curve for fixed truths is fast, so that more points of it can be used.
    fineness = FINE if least == most else FINENESS
    several = composed(single, view.queries, limit=report.epsilon / view.queries, fineness=fineness)
    claim = Claim.bound(report.epsilon, AmplifiedDelta(several, report), f"{basis}{over}.")
    return replace(claim, kind=report.kind, noise=hidden)


def known_counts_claim(view: ReleasedCounts, noise: IntegerNoise, *, two: bool) -> Claim:
    """Return the claim of counts that are known but for the noise of the servers that do not collude.

    Parameters
    ----------
    view : ReleasedCounts
        With `colluding` and `servers`, and the queries.
    noise : IntegerNoise
        Of one server on one count.
    two : bool
        Whether the device changes two counts by 1, instead of one.
    """
    certain = Claim.exact(math.inf, ConstantDelta(1.0), "A count without noise is known.")
    pinned = ReleasedCounts(
        1,
        view.queries,
        most=1,
        colluding=view.colluding,
        servers=view.servers,
        adjacency="move" if two else "enter_leave",
    )
    return sums_claim(pinned, true_yes=1.0, false_yes=0.0, report=certain, source="a known count", noise=noise)


def answer_sums_claim(view: ReleasedCounts, *, yes: Masses, no: Masses, linked: Claim, source: str) -> Claim:
    """Return the claim of published counts of the answers about each cell: for two answers, the claim of their sums.

    Of three answers or more, or of several rounds, it is a bound. The answers about different cells are independent
    given the truth, so only the cells that the device may be in matter. Their counts are a function of the devices'
    answers about these cells in no order. Of these answers the others' hide the device's, for any truths of the others
    (`split_pair`). An answer that only one of the two truths gives is hidden by no other device, unless others in the
    cell give it, and adds its probability to δ.

    Parameters
    ----------
    view : ReleasedCounts
    yes, no : (answers,) float64
        Distribution of the answers about a cell, all rounds together, for a device in it and for any other.
    linked : Claim
        Of the device's own answers over the same queries, for the same adjacency.
    source : str
        Source of the distributions, for the basis.
    """
    if len(yes) == 2:
        return sums_claim(view, true_yes=float(yes[1]), false_yes=float(no[1]), report=linked, source=source)
    moves = view.adjacency == "move"
    counted = max(view.counted or 1, view.crowd or 1)
    rows = [np.multiply.outer(*pair).ravel() for pair in ((yes, no), (no, yes), (no, no))] if moves else [yes, no]
    single = split_pair(rows[0], rows[1], np.array(rows), counted, pairs_over(view.queries))
    curve = composed(single, view.queries, limit=linked.epsilon / view.queries)
    over = "" if view.queries == 1 else COMPOSED
    basis = (
        f"Counts of answers, {counted} devices counted, any truths of the others: the answers about the changed "
        f"{'cells' if moves else 'cell'} in no order, hidden by the part that every truth gives ({source}){over}."
    )
    return Claim.bound(linked.epsilon, AmplifiedDelta(curve, linked), basis)
