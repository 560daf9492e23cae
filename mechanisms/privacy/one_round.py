"""Views of a mechanism with one round, all from what one report tells."""

import math
from collections.abc import Callable

from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.shares import shares_claim
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.view import LinkedReports, ReleasedDifferences, Report, Shares, Shuffled, View


def one_round_claim(view: View, report: Callable[[int], PrivacyClaim]) -> PrivacyClaim:
    """Return the claim of any view of a one-round mechanism.

    A device's only report is also all there is to link. Published counts are made from it and from what does
    not hang on its truth, other devices' reports, so they tell at most what it tells.

    Parameters
    ----------
    view : View
    report : callable
        The claim of one device's report, given the number of queries.
    """
    if isinstance(view, Report | Shuffled) and view.round > 1:
        return PrivacyClaim.unknown("The mechanism has one round only.")
    if isinstance(view, ReleasedDifferences):
        return PrivacyClaim.unknown("One-round mechanisms publish no differences.")
    claim = report(view.queries)
    if isinstance(view, Report | LinkedReports):
        return claim
    if isinstance(view, Shares):
        return shares_claim(view, linked=claim)
    if isinstance(view, Shuffled):
        return shuffled_claim(view, local=claim, single=report(1))
    return released_reports_claim(claim)


def released_reports_claim(report: PrivacyClaim) -> PrivacyClaim:
    """Return what published counts tell, from what the device's reports tell that they are made of."""
    if report.curve is None or not math.isfinite(report.epsilon):
        return PrivacyClaim.unknown("A report has no finite ε, and what published counts hide of it is not computed.")
    basis = f"Counts are made from the report without its truth, so they tell at most as much. {report.basis}"
    return PrivacyClaim.bound(report.epsilon, report.curve, basis)
