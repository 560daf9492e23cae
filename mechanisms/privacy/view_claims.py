"""`ViewClaims`: the one place that selects the rule by which a mechanism's claim about a view is computed."""

import math
from typing import ClassVar, assert_never, get_args

from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.report_claims import shares_claim
from mechanisms.privacy.view import (
    LinkedReports,
    LocatedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
    with_possible_change,
)


class ViewClaims:
    """Claims by view, with one rule (a method) for each kind of view; a view without a rule has an unknown claim.

    A class defines the rules that it has. `claim` calls them with views of rounds that exist, and with one cell only
    with the adjacency ``enter_leave`` (`with_possible_change`). The rules of shares, and of reports to a server that is
    chosen by place, are the same for every mechanism.
    """

    cells: int
    rounds: ClassVar[int] = 1

    def claim(self, view: View) -> Claim:
        """Return the claim proved for an observer with this view: exact, a bound, or unknown; never a guess.

        It is unknown for an object that is not one of the views, also of a class derived from one, which may show more.
        """
        if type(view) not in get_args(View):
            return Claim.unknown(f"{type(view).__name__} is not one of the views about which claims are proved.")
        view = with_possible_change(view, cells=self.cells)
        if isinstance(view, Report | Shuffled) and view.round > self.rounds:
            return Claim.unknown(f"The mechanism has {self.rounds} round(s) only.")
        match view:
            case Report():
                claim = self.claim_report(view)
            case LinkedReports():
                claim = self.claim_linked(view)
            case LocatedReports():
                claim = located_claim()
            case Shares():
                claim = shares_claim(view, linked=self.own_reports(view))
            case Shuffled():
                report = self.claim_report(Report(view.round, view.queries, adjacency=view.adjacency))
                claim = bounded_by_reports(report, self.claim_shuffled(view))
            case ReleasedCounts():
                claim = bounded_by_reports(self.own_reports(view), self.claim_counts(view))
            case ReleasedDifferences():
                claim = bounded_by_reports(self.own_reports(view), self.claim_differences(view))
            case _:
                assert_never(view)
        return claim

    def own_reports(self, view: View) -> Claim:
        """Return the claim of all reports of a device to the queries of a view."""
        return self.claim_linked(LinkedReports(view.queries, adjacency=view.adjacency))

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of the reports of one round."""
        return _no_rule(view)

    def claim_linked(self, view: LinkedReports) -> Claim:
        """Return the claim of all reports of a device; of one round they are the reports of that round."""
        if self.rounds > 1:
            return _no_rule(view)
        return self.claim_report(Report(1, view.queries, adjacency=view.adjacency))

    def claim_shuffled(self, view: Shuffled) -> Claim:
        """Return the claim of all devices' reports of one round in random order."""
        return _no_rule(view)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of the published counts of every round."""
        return _no_rule(view)

    def claim_differences(self, view: ReleasedDifferences) -> Claim:
        """Return the claim of the published differences of two rounds' counts."""
        return _no_rule(view)


def bounded_by_reports(reports: Claim, claim: Claim) -> Claim:
    """Use the smaller of the bound of what is made of all reports and the claim of the device's own reports.

    The reports of the others are independent of the device's.
    """
    if claim.kind == "unknown":
        return claim
    lowered = claim.at_most(reports)
    if reports.epsilon < claim.epsilon:
        return lowered.about(basis=f"At most the device's own reports. {claim.basis}")
    return lowered


def _no_rule(view: View) -> Claim:
    """Return the claim of a view that a mechanism states no rule for."""
    if isinstance(view, ReleasedDifferences):
        return Claim.unknown("The mechanism publishes no differences of two rounds' counts.")
    return Claim.unknown(f"No claim is proved for the view {view.name} of the mechanism.")


def located_claim() -> Claim:
    """Return the claim of the reports of a device whose server is chosen by its place, whatever the mechanism."""
    basis = "The server that a device reports to shows in which part of the city it is, whatever it reports."
    return Claim.exact(math.inf, ConstantDelta(1.0), basis)
