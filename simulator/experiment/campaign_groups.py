"""Campaign groups: the campaigns of a run that ask the mechanisms with the same parameters, and so share claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechanisms.local import AdaptiveBudget, LocalMechanism
from simulator.aggregation.deployment import Deployment
from simulator.experiment.build.mechanisms import BudgetedCampaign
from simulator.experiment.releases import CampaignRelease
from simulator.sensing.query import Query


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
    """
    fresh = [name for name in deployments if name not in budgets]
    groups = []
    for names, budget in [(fresh, None), *(([name], budget) for name, budget in budgets.items())]:
        if names:
            groups.append(
                CampaignGroup(
                    None if budget is None else names[0],
                    mechanisms if budget is None else budget.mechanisms,
                    {name: releases[name] for name in names},
                    {name: deployments[name] for name in names},
                    [query for query in queries if query.campaign in names],
                    budget,
                )
            )
    return groups
