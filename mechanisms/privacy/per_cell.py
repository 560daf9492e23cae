"""Claims of mechanisms that ask about every cell separately, with independent coins."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.dominating_pair import dominating_pair
from mechanisms.privacy.hockey_stick import check_distribution, pair_delta, pair_epsilon


@dataclass(frozen=True)
class PairDelta:
    """The exact δ(ε) of one pair of distributions, the larger of both directions, as a function of ε."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __call__(self, epsilon: float) -> float:
        """Return δ at this ε."""
        return pair_delta(self.p, self.q, epsilon=epsilon)


def per_cell_claim(yes: ArrayLike, no: ArrayLike, *, cells: int, queries: int, source: str) -> PrivacyClaim:
    """Return the claim of a view that shows an answer about each cell.

    Moving a device from one cell to another changes two answers, a Yes to a No and a No to a Yes; the others
    have the same law and tell nothing. Moving it outside changes one of these two, so that pair is what the
    two answers tell with one of them thrown away, and tells no more. With a single cell there is only outside
    to go.

    Parameters
    ----------
    yes, no : (outputs,) float64
        What is seen of the answer about a cell, for a device in it and for one not in it.
    cells : int
        The number of cells V.
    queries : int
        Queries seen; over several, a device's cells at all of them against any others.
    source : str
        Where `yes` and `no` come from.

    Returns
    -------
    PrivacyClaim
        Exact for one query. For T, ε is T times that of one query, and δ is a bound.
    """
    yes, no = check_distribution("yes", yes), check_distribution("no", no)
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
        # A device may be there at one query and away at the next, so both directions must be dominated at
        # once. With two cells the product is its own mirror image.
        p, q = dominating_pair([(yes, no), (no, yes)])
    return PrivacyClaim.bound(
        queries * epsilon if math.isfinite(epsilon) else math.inf,
        ComposedDelta.from_pair(p, q, queries=queries),
        f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair.",
    )
