"""Claims about mechanisms that answer about every cell with independent randomness."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.hockey_stick import ComposedDelta, check_distribution, dominating_pair, pair_delta, pair_epsilon
from mechanisms.privacy.symmetric_pair import MirrorDelta, mirror_claim


@dataclass(frozen=True)
class PairDelta:
    """The exact δ(ε) of one pair of distributions, the larger of both directions, as a function of ε."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        return pair_delta(self.p, self.q, epsilon=epsilon)


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
) -> PrivacyClaim:
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
    PrivacyClaim
        Exact for one query, and for up to 4,096 with two cells or more. For T queries about a single cell, ε is T times
        that of one query, and δ is a bound.
    """
    yes, no = (true_no, true_yes), (1.0 - false_yes, false_yes)
    if true_no == 0.0 or false_yes == 0.0:
        return per_cell_claim(yes, no, cells=cells, queries=queries, source=source)
    yes_loss, no_loss = math.log1p(apart / false_yes), math.log1p(apart / true_no)
    if cells > 1:
        between, outside = yes_loss + no_loss, max(yes_loss, no_loss)
        source = (
            f"Two answers change when a device moves between cells, ε = {between:.6g}; one when it leaves every cell, "
            f"ε = {outside:.6g}, which the first bounds ({source})"
        )
        return mirror_claim(telling=true_yes * (1.0 - false_yes), epsilon=between, queries=queries, source=source)
    composed = per_cell_claim(yes, no, cells=1, queries=queries, source=source)
    epsilon = queries * max(yes_loss, no_loss)
    if queries == 1:
        curve = BinaryAnswerDelta(true_yes, yes_loss, 1.0 - false_yes, no_loss)
        return PrivacyClaim.exact(epsilon, curve, composed.basis)
    return replace(composed, epsilon=epsilon)


def per_cell_claim(yes: ArrayLike, no: ArrayLike, *, cells: int, queries: int, source: str) -> PrivacyClaim:
    """Return the claim of a view that shows an answer about each cell.

    A move of a device from one cell to another changes the truth of two answers, a Yes to a No and a No to a Yes. The
    other answers keep their distribution and reveal nothing. A move outside every cell changes one of the two, so its
    view is that of a move between cells with one answer dropped, and reveals no more. With a single cell, a device can
    only move outside.

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
    PrivacyClaim
        Exact for one query. For T queries ε is T times that of one query, and δ is a bound, or exact with two possible
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
    if cells > 1:
        p, q = np.multiply.outer(yes, no).ravel(), np.multiply.outer(no, yes).ravel()
        basis = f"Two answers change when a device moves between cells, which also bounds moving outside ({source})"
    else:
        p, q = yes, no
        basis = f"One answer changes when a device leaves the only cell ({source})"
    epsilon = pair_epsilon(p, q)
    if queries == 1:
        curve = PairDelta(tuple(p.tolist()), tuple(q.tolist()))
        return PrivacyClaim.exact(epsilon, curve, f"{basis}; the exact hockey stick of their product.")
    if cells == 1:
        # A device may be in the cell at one query and outside at the next, so both directions must be dominated at
        # once. With two cells the product is its own mirror image.
        p, q = dominating_pair([(yes, no), (no, yes)])
    return PrivacyClaim.bound(
        queries * epsilon if math.isfinite(epsilon) else math.inf,
        ComposedDelta.from_pair(p, q, queries=queries),
        f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair.",
    )
