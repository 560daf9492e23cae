"""Every claim of multi-valued Sampling Privacy, with and without refresh."""

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.refreshed import refreshed_release_claim
from mechanisms.privacy.released_claims import released_differences_claim
from mechanisms.privacy.released_counts import released_counts_claim
from mechanisms.privacy.sampled_value import linked_claim, round_one_claim, round_two_claim
from mechanisms.privacy.shares import shares_claim
from mechanisms.privacy.shuffled import shuffled_value_claim
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled, View


def sampling_claim(view: View, *, sampling: float, blanks: NDArray[np.float64], refresh: float) -> PrivacyClaim:
    """Return what a view of both rounds tells.

    Parameters
    ----------
    view : View
        Whose.
    sampling : float
        π_s.
    blanks : (cells + 1,) float64
        π_0…π_V.
    refresh : float
        ρ. Refreshing changes no single round's law: each round's blanks come with π_v.
    """
    if sampling == 1.0:
        refresh = 0.0  # there are no blanks to refresh
    if isinstance(view, Report | Shuffled):
        return _claim_round(view, sampling=sampling, blanks=blanks)
    if isinstance(view, LinkedReports):
        return linked_claim(sampling=sampling, queries=view.queries, blanks=blanks, refresh=refresh)
    if isinstance(view, Shares):
        linked = linked_claim(sampling=sampling, queries=view.queries, blanks=blanks, refresh=refresh)
        return shares_claim(view, linked=linked)
    if refresh > 0.0:
        return refreshed_release_claim(view, sampling=sampling, blanks=blanks, refresh=refresh)
    if isinstance(view, ReleasedDifferences):
        return released_differences_claim(view, sampling)
    return _claim_counts(view, sampling=sampling, blanks=blanks)


def _claim_round(view: Report | Shuffled, *, sampling: float, blanks: NDArray[np.float64]) -> PrivacyClaim:
    """Return what one round's report tells, alone or shuffled among others'."""
    if view.round == 1:
        return round_one_claim()
    if view.round != 2:
        return PrivacyClaim.unknown("The mechanism has two rounds only.")
    report = round_two_claim(sampling=sampling, blanks=blanks, queries=view.queries)
    return (
        report
        if isinstance(view, Report)
        else shuffled_value_claim(view, sampling=sampling, blanks=blanks, local=report)
    )


def _claim_counts(view: ReleasedCounts, *, sampling: float, blanks: NDArray[np.float64]) -> PrivacyClaim:
    """Return what the counts of both rounds tell without refresh."""
    cells, every = float(blanks[1:].sum()), float(blanks.sum())
    return released_counts_claim(view, sampling=sampling, seen=cells / every if every else 0.0)
