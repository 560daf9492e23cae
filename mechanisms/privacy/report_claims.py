"""Claims about reports: answers about every cell, mirrored pairs, secret shares, and what is computed from reports."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import SupportsFloat, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.compiled import Floats
from mechanisms.privacy.blanket import VariationRatioDelta, pairs_over
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.hockey_stick import check_distribution, dominating_pair, pair_delta, pair_epsilon
from mechanisms.privacy.rounding import rounded_up
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import Shares, Shuffled

# Queries for which the sum of losses is convolved exactly, in under a second; for more, δ is bounded.
EXACT_QUERIES = 2**12


@dataclass(frozen=True)
class MirrorDelta:
    """The exact δ(ε) over T queries of the pair P = (a, b, rest), Q = (b, a, rest), b = a·e^−ε₁.

    Each query adds ε₁, −ε₁ or nothing to the loss. Where the total loss is mε₁, Q is e^−mε₁ times as likely as P, so
    δ(ε) = Σ_m P(m)·[1 − e^(ε − mε₁)]₊. P and Q mirror each other, so both directions have the same δ.

    Parameters
    ----------
    distinguishing : float
        a, the probability of the outputs that are e^ε₁ times as likely under P as under Q.
    epsilon : float
        ε₁ of one query.
    queries : int
        T.
    """

    distinguishing: float
    epsilon: float
    queries: int = 1

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        if self.queries == 1:
            return self.distinguishing * max(0.0, -math.expm1(min(epsilon - self.epsilon, 0.0)))
        losses = self.epsilon * np.arange(1, self.queries + 1)
        return math.fsum(self._walk()[self.queries + 1 :] * -np.expm1(np.minimum(epsilon - losses, 0.0)))

    @property
    def pair(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """P and Q of one query."""
        other = self.distinguishing * math.exp(-self.epsilon)
        rest = max(0.0, 1.0 - self.distinguishing - other)
        return (self.distinguishing, other, rest), (other, self.distinguishing, rest)

    def _walk(self) -> Floats:
        """Return P(m) for m = −T…T, (2T + 1,) float64."""
        (up, down, level), _ = self.pair
        return convolved((down, level, up), self.queries)


@lru_cache(maxsize=256)
def convolved(masses: tuple[float, ...], times: int) -> Floats:
    """Return the distribution of the sum of independent draws, each i with masses[i].

    Direct convolution loses no tail.
    """
    law = np.array(masses)
    if times > 1:
        half = convolved(masses, times // 2)
        law = np.convolve(np.convolve(half, half), law) if times % 2 else np.convolve(half, half)
    law.flags.writeable = False  # the next caller gets the same array
    return law


def mirror_claim(*, distinguishing: float, epsilon: float, queries: int, source: str) -> Claim:
    """Return the claim of a view in which any two truths give a mirrored pair or a post-processing of it.

    The pair distinguishes two different truths at a query; two equal truths are not distinguished. So any two journeys
    (a device's truths at all queries) are distinguished at most as well as two that differ at every query; those are T
    independent draws of the pair.

    Parameters
    ----------
    distinguishing : float
        Probability, in one query, of outputs e^ε times as likely under the truth as under the other truth.
    epsilon : float
        ε of one query.
    queries : int
        T.
    source : str
        Source of the pair, for the basis.

    Returns
    -------
    Claim
        Exact: ε·T at δ = 0, and δ in closed form; for more than 4,096 queries δ is a bound.
    """
    curve = MirrorDelta(distinguishing, epsilon, queries)
    if queries == 1:
        return Claim.exact(epsilon, curve, f"{source}.")
    basis = f"{source}; over T queries T·ε at δ = 0, attained by two sequences of cells that differ at every query"
    if queries <= EXACT_QUERIES:
        return Claim.exact(queries * epsilon, curve, f"{basis}, and the exact distribution of the summed loss.")
    bound = ComposedDelta.from_pair(*curve.pair, queries=queries)
    basis = f"{basis}, and δ by composing the privacy loss distribution."
    return Claim("exact", queries * epsilon, "bound", basis, bound)


def shares_claim(view: Shares, *, linked: Claim) -> Claim:
    """Return the claim of additive shares: fewer than all of them reveal nothing, and all of them reveal the reports.

    Any servers − 1 shares of a report are independent and uniform for every report, so fewer than all reveal nothing,
    even to an adversary with unlimited computing power. What is published of the sums is another view
    (`ReleasedDifferences`, `ReleasedCounts`).

    Parameters
    ----------
    view : Shares
        The colluding servers, and the number of queries.
    linked : Claim
        Claim of all reports of the device over the same queries; all the shares together are those reports.
    """
    if view.colluding < view.servers:
        basis = (
            f"{view.colluding} of {view.servers} shares are uniform for every report, so they reveal nothing "
            "(about the shares alone; the released sums are another view)."
        )
        return Claim.exact(0.0, ConstantDelta(0.0), basis)
    return replace(linked, basis=f"The shares of all servers add up to the reports: {linked.basis}")


def mixed_reports_claim(view: Shuffled, *, local: Claim, single: Claim) -> Claim:
    """Return the claim of shuffled reports with fresh randomness; with stronger clones for mirrored pairs.

    Parameters
    ----------
    view : Shuffled
    local, single : Claim
        Of one device's reports over all the view's queries, and over one; `single` is for a move, whatever the view's
        adjacency, because the others' reports come from any cells. If its curve is a `MirrorDelta`, every two truths
        give this pair, or one with the same δ(0) and a smaller ε, which it bounds: the smaller pair is made from it by
        turning a part of the rest into either of the other parts, for the device and for the others.
    """
    pair, stronger = single.curve, None
    if isinstance(pair, MirrorDelta):
        *_, rest = pair.pair[0]
        ratio = math.exp(pair.epsilon)
        apart, pairs = pair.distinguishing, pairs_over(view.queries)
        stronger = VariationRatioDelta(view.devices, ratio, apart, apart, rest, ratio, pairs=pairs)
    return shuffled_claim(view, local=local, single=single, stronger=stronger)


def released_shuffled_claim(shuffled: Claim) -> Claim:
    """Derive the claim of published counts from the claim of the shuffled reports of all devices."""
    return shuffled.as_bound("Counts are computed from the reports in any order, so they reveal at most as much.")


def released_reports_claim(report: Claim) -> Claim:
    """Derive the claim of published counts from the claim of the device's own reports."""
    if not math.isfinite(report.epsilon):
        return Claim.unknown("A report has no finite ε, and how much published counts hide is not computed.")
    return report.as_bound("Counts are computed from the report without its truth, so they reveal at most as much.")


Masses: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class WorstPairDelta:
    """The exact function δ(ε) that is the greatest over several pairs of distributions and both directions.

    Parameters
    ----------
    pairs : tuple of (P, Q)
        Two distributions over the same outcomes each.
    """

    pairs: tuple[tuple[Masses, Masses], ...]

    @classmethod
    def of(cls, *pairs: tuple[Iterable[SupportsFloat], Iterable[SupportsFloat]]) -> "WorstPairDelta":
        """Return the function for pairs of masses, converted to floats; equal masses stay equal."""
        return cls(tuple((tuple(map(float, p)), tuple(map(float, q))) for p, q in pairs))

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        return max((pair_delta(p, q, epsilon=epsilon) for p, q in self.pairs), default=0.0)

    @property
    def epsilon(self) -> float:
        """The least ε at δ = 0; infinite if some outcome is possible under only one distribution of a pair."""
        return max((pair_epsilon(p, q) for p, q in self.pairs), default=0.0)

    def claim(self, queries: int, basis: str, *, mirrored: bool = False) -> Claim:
        """Return the claim over T queries; at each query any of the pairs, in any direction, may be the view.

        Parameters
        ----------
        queries : int
            T.
        basis : str
            Source of the pairs.
        mirrored : bool
            Whether there is one pair and it is its own mirror image, so that it dominates its reverse.

        Returns
        -------
        Claim
            Exact for one query. For T queries ε is T times the ε of one query, and δ is a bound.
        """
        if queries == 1:
            return Claim.exact(self.epsilon, self, f"{basis}.")
        arrays = [(np.array(p), np.array(q)) for p, q in self.pairs]
        # The worst pair, or its direction, may differ from query to query.
        p, q = arrays[0] if mirrored else dominating_pair([*arrays, *((q, p) for p, q in arrays)])
        return Claim(
            "infinite" if math.isinf(self.epsilon) else "bound",
            queries * self.epsilon,
            "bound",
            f"{basis}; over T queries T·ε at δ = 0, "
            "and δ by composing the privacy loss distribution of the worst pair.",
            ComposedDelta.from_pair(p, q, queries=queries),
        )


@dataclass(frozen=True)
class BinaryAnswerDelta:
    """The exact δ(ε) of one Yes-or-No answer, from its masses and losses; subtracting masses would lose digits.

    Parameters
    ----------
    true_yes, yes_loss : float
        p and ln(p/q).
    false_no, no_loss : float
        1 − q and ln((1 − q)/(1 − p)).
    """

    true_yes: float
    yes_loss: float
    false_no: float
    no_loss: float

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε, the larger of both directions."""
        return max(
            MirrorDelta(self.true_yes, self.yes_loss)(epsilon), MirrorDelta(self.false_no, self.no_loss)(epsilon)
        )


def binary_answer_claim(
    *, true_yes: float, true_no: float, false_yes: float, apart: float, cells: int, queries: int, source: str
) -> Claim:
    """Return the claim of a view that shows a Yes or a No about each cell, at full precision for a small ε.

    A move between cells changes two answers. Only the outcomes (Yes, No) and (No, Yes) distinguish the two truths, each
    with a loss of ln(p/q) + ln((1 − q)/(1 − p)) in one direction; (No, No) and (Yes, Yes) are equally likely.

    Parameters
    ----------
    true_yes, true_no : float
        p and 1 − p, the probabilities of Yes and No about the device's own cell.
    false_yes : float
        q, the probability of Yes about any other cell; below p.
    apart : float
        p − q, computed without subtracting two numbers that are nearly equal.
    cells : int
        The number of cells V.
    queries : int
        T.
    source : str
        Source of the probabilities, for the basis.

    Returns
    -------
    Claim
        Exact for one query, and for up to 4,096 with two cells or more. For T queries about a single cell, ε is T times
        the ε of one query, and δ is a bound.
    """
    false_no = true_no + apart  # 1 − q, which a subtraction of a q near 1 would lose
    yes, no = (true_no, true_yes), (false_no, false_yes)
    if true_no == 0.0 or false_yes == 0.0:
        return per_cell_claim(yes, no, cells=cells, queries=queries, source=source)
    yes_loss, no_loss = math.log1p(apart / false_yes), math.log1p(apart / true_no)
    if cells > 1:
        between, outside = yes_loss + no_loss, max(yes_loss, no_loss)
        source = (
            f"Two answers change when a device moves between cells, ε = {rounded_up(between, 6)}; one when it leaves "
            f"every cell, ε = {rounded_up(outside, 6)}, which the first bounds ({source})"
        )
        return mirror_claim(distinguishing=true_yes * false_no, epsilon=between, queries=queries, source=source)
    composed = per_cell_claim(yes, no, cells=1, queries=queries, source=source)
    epsilon = queries * max(yes_loss, no_loss)
    if queries == 1:
        curve = BinaryAnswerDelta(true_yes, yes_loss, false_no, no_loss)
        return Claim.exact(epsilon, curve, composed.basis)
    return replace(composed, epsilon=epsilon)


def per_cell_claim(yes: ArrayLike, no: ArrayLike, *, cells: int, queries: int, source: str) -> Claim:
    """Return the claim of a view that shows an answer about each cell.

    A move of a device from one cell to another changes the truth of two answers, a Yes to a No and a No to a Yes. The
    other answers keep their distribution and reveal nothing. A move outside every cell changes one of the two, so its
    view is the view of a move between cells with one answer dropped, and reveals no more. With a single cell, a device
    can only move outside.

    Parameters
    ----------
    yes, no : (outputs,) float64
        Distribution of the output about a cell, for a device in it and for a device not in it.
    cells : int
        The number of cells V.
    queries : int
        Queries seen. Over several, the claim compares a device's cells at all of them with any other cells.
    source : str
        Source of `yes` and `no`, for the basis.

    Returns
    -------
    Claim
        Exact for one query. For T queries ε is T times the ε of one query, and δ is a bound, or exact with two possible
        outputs and two cells or more.
    """
    yes, no = check_distribution("yes", yes), check_distribution("no", no)
    if len(yes) == 2 and cells > 1 and yes.min() > 0.0 and no.min() > 0.0:
        y = 1 if yes[1] >= no[1] else 0  # the answer that a device in the cell gives more often
        return binary_answer_claim(
            true_yes=float(yes[y]),
            true_no=float(yes[1 - y]),
            false_yes=float(no[y]),
            apart=float(yes[y] - no[y]),
            cells=cells,
            queries=queries,
            source=source,
        )
    if cells == 1:
        # A device may be in the cell at one query and outside at the next.
        curve, basis = WorstPairDelta.of((yes, no)), "One answer changes when a device leaves its cell for outside"
    else:
        curve = WorstPairDelta.of((np.multiply.outer(yes, no).ravel(), np.multiply.outer(no, yes).ravel()))
        basis = "Two answers change when a device moves between cells, which also bounds moving outside"
    exactly = "; the exact hockey stick of their product" if queries == 1 else ""
    return curve.claim(queries, f"{basis} ({source}){exactly}", mirrored=cells > 1)
