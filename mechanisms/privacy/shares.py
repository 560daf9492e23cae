"""What the secret shares of a device's reports tell those who hold some of them."""

from dataclasses import replace

from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.view import Shares


def shares_claim(view: Shares, *, linked: PrivacyClaim) -> PrivacyClaim:
    """Return what additive shares show: nothing short of all of them, and with all of them the reports.

    Any servers − 1 shares of a report are independent and uniform whatever the report is, so fewer than all
    tell nothing at all, to anyone with any means of computing. What is published of the sums is another view
    (`ReleasedDifferences`, `ReleasedCounts`).

    Parameters
    ----------
    view : Shares
        Who pools, and over how many queries.
    linked : PrivacyClaim
        Of all reports of the device, over as many queries: all the shares together are those.
    """
    if view.colluding < view.servers:
        basis = (
            f"{view.colluding} of {view.servers} additive shares are uniform whatever they share, so they tell nothing "
            "(of the shares alone; what the released sums show is another view)."
        )
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), basis)
    return replace(linked, basis=f"All {view.servers} servers' shares add up to the reports: {linked.basis}")
