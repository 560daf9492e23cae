"""Campaign groups: the campaigns of a run that ask the mechanisms with the same parameters, and so share claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechanisms.local import AdaptiveBudget, LocalMechanism
from mechanisms.privacy import PrivacyClaim, View
from simulator.aggregation.deployment import Deployment
from simulator.experiment.build.mechanisms import BudgetedCampaign
from simulator.experiment.releases import CampaignRelease
from simulator.sensing.query import Query, keeps_randomness


@dataclass(frozen=True, eq=False)
class CampaignGroup:
    """All campaigns without a budget, or one campaign with a budget.

    Attributes
    ----------
    campaign
        The name of the campaign with a budget; None for the campaigns without.
    mechanisms
        By name, with the parameters with which they are asked.
    releases, deployments
        By campaign.
    queries
        The closed queries of these campaigns.
    budget
        The campaign's budget, if it has one.
    """

    campaign: str | None
    mechanisms: Mapping[str, LocalMechanism]
    releases: Mapping[str, CampaignRelease]
    deployments: Mapping[str, Deployment]
    queries: Sequence[Query]
    budget: BudgetedCampaign | None = None

    @property
    def adaptive(self) -> Mapping[str, AdaptiveBudget]:
        """By name, the mechanisms whose budget is divided as their estimates require."""
        return {} if self.budget is None else self.budget.adaptive

    def claiming(self, name: str) -> LocalMechanism | AdaptiveBudget:
        """Return what makes the claims about a mechanism in these campaigns."""
        return self.adaptive.get(name, self.mechanisms[name])


def group_campaigns(
    mechanisms: Mapping[str, LocalMechanism],
    releases: Mapping[str, CampaignRelease],
    deployments: Mapping[str, Deployment],
    budgets: Mapping[str, BudgetedCampaign],
    queries: Sequence[Query],
    *,
    as_counts: bool = False,
) -> list[CampaignGroup]:
    """Divide a run into groups: first the campaigns without a budget, if there are any.

    Parameters
    ----------
    mechanisms
        By name, for campaigns without a budget.
    releases, deployments, budgets
        By campaign.
    queries
        Closed queries.
    as_counts
        Whether the answers of all devices are drawn as counts (`drawn_as_counts`).
    """
    fresh = [name for name in deployments if name not in budgets]
    groups = []
    for names, budget in [(fresh, None), *(([name], budget) for name, budget in budgets.items())]:
        if names:
            asked = mechanisms if budget is None else budget.mechanisms
            groups.append(
                CampaignGroup(
                    None if budget is None else names[0],
                    {name: drawn_as_counts(one) for name, one in asked.items()} if as_counts else asked,
                    {name: releases[name] for name in names},
                    {name: deployments[name] for name in names},
                    [query for query in queries if query.campaign in names],
                    budget,
                )
            )
    return groups


class _OneQuery:
    """A user's mechanism whose claims are known for one query only."""

    def __init__(self, mechanism: LocalMechanism) -> None:
        self._mechanism = mechanism

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def claim(self, view: View) -> PrivacyClaim:
        """Return the mechanism's claim about one query."""
        if view.queries == 1:
            return self._mechanism.claim(view)
        return PrivacyClaim.unknown("Answers are drawn as counts, with new coins in every query instead of kept ones.")


def drawn_as_counts(mechanism: LocalMechanism) -> LocalMechanism:
    """Return the mechanism that makes the claims where `sample_counts` draws the answers, with new coins in each query.

    If devices would keep randomness from query to query, its own claims do not hold over several queries. Those that
    hold are the ones of its `without_memory`; of a user's mechanism that has none they are unknown.
    """
    if not keeps_randomness(mechanism):
        return mechanism
    drawn: LocalMechanism = getattr(mechanism, "without_memory", None) or _OneQuery(mechanism)
    return drawn
