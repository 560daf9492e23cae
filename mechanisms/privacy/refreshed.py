"""What is released tells where blanks are refreshed: bounds, of published differences and of whole counts."""

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.crowd_ratio import CrowdRatioDelta
from mechanisms.privacy.sampled_value import linked_blanks, linked_claim
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences


def refreshed_release_claim(
    view: ReleasedDifferences | ReleasedCounts, *, sampling: float, blanks: NDArray[np.float64], refresh: float
) -> PrivacyClaim:
    """Return a bound of what refreshed rounds tell once only their counts, or differences, are published.

    Everyone's linked pairs in no order say all that the counts of both rounds say, and everyone's steps (what
    a device adds to each cell's difference) all that the differences say. Of these a device in cell v and one
    outside give two only with different probabilities:

    - counts: the pair (0, v) with π_s + m_v in the cell and m_v outside, (0, 0) with m_0 and π_s + m_0;
    - differences: a step up in v, the same two; no step at all, with s = Σ_w π_w(1 − ρ + ρ·b_w) and π_s + s.

    Of the crowd alone both are the histogram of three kinds of answers, the third as likely in either world
    (`CrowdRatioDelta`). Rarer blanks hide less (showing some of a cell's blanks leaves it rarer), so v is the
    rarest cell; whoever else was asked only hides more, and dropping small differences tells no more. With ρ =
    0 the bound of the differences is their exact δ.

    Moving between two cells is bounded by the linked pair of reports, of which everything released is a
    function and the others' independent reports.

    Parameters
    ----------
    view : ReleasedDifferences or ReleasedCounts
        The crowd (the worst is a crowd of one, where it is not given), and the queries.
    sampling : float
        π_s, below 1.
    blanks : (cells + 1,) float64
        π_0…π_V.
    refresh : float
        ρ, above 0.

    Returns
    -------
    PrivacyClaim
        A bound; "infinite" where some cell's count can still tell with certainty; unknown where neither is
        proved.
    """
    queries = view.queries
    differences = isinstance(view, ReleasedDifferences)
    if isinstance(view, ReleasedDifferences) and view.other_crowd is not None:
        linked = linked_claim(sampling=sampling, queries=queries, blanks=blanks, refresh=refresh)
        if math.isinf(linked.epsilon) or linked.curve is None:
            return PrivacyClaim.unknown("With refresh only the linked pair's δ bounds a move between two cells.")
        return PrivacyClaim.bound(
            linked.epsilon, linked.curve, f"A function of the linked pair and of others' reports: {linked.basis}"
        )
    pairs = linked_blanks(sampling=sampling, blanks=blanks, refresh=refresh)
    up = float(pairs[1:].min())
    still = (
        float((blanks * (1.0 - refresh + refresh * blanks / (1.0 - sampling))).sum())
        if differences
        else float(pairs[0])
    )
    if up == 0.0 and isinstance(view, ReleasedDifferences) and view.k is not None:
        return PrivacyClaim.unknown(
            "With refresh and suppression, whether a step that no blank makes ever shows is open."
        )
    curve = CrowdRatioDelta(
        crowd=view.crowd or 1,
        up=sampling + up,
        still=still,
        up_ratio=up / (sampling + up),
        still_ratio=1.0 + sampling / still if still > 0.0 else 1.0,
        apart=0.0 if still > 0.0 else sampling,
        queries=queries,
    )
    hidden = "steps" if differences else "linked pairs"
    more = "" if queries == 1 else "; over T queries T·δ(ε/T)"
    certain = "; a step that no blank makes shows where all of the crowd are sampled" if up == 0.0 else ""
    return PrivacyClaim.bound(
        curve.epsilon,
        curve,
        f"One device's {hidden} among those of its crowd, in no order, between the rarest cell and outside, everyone "
        f"else known (from SP eqs 12-16 with refresh ρ = {refresh:g}){certain}{more}.",
    )
