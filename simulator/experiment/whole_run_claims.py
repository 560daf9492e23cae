"""What a device reveals of one mechanism over a whole run: all that it sends, and all that is published, together."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from mechanisms.local.common.base import BaseMechanism
from mechanisms.privacy import Claim, ConstantDelta, LinkedReports, LocatedReports, ReleasedCounts
from mechanisms.privacy.composition import together
from mechanisms.privacy.view import possible_adjacency
from mechanisms.privacy.view_claims import bounded_by_reports, located_claim
from simulator.aggregation.server_noise import noisy_claim
from simulator.experiment.deployment_record import CountedReports, deployment_views
from simulator.results.claims import LINKED, PUBLISHED
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, keeps_randomness


def whole_run_claims(campaigns: Sequence[Campaign], queries: Sequence[Query]) -> Iterator[Claim]:
    """Yield the claims about each mechanism in all campaigns together; nothing for a single campaign.

    The change that a claim hides is a move: at every query the device is in any cell of the queried partition or
    outside all of its cells, instead of in any other. A device that enters the cells of one partition may move between
    two cells of another at that moment, so claims about entering do not compose.

    Parameters
    ----------
    campaigns
        The campaigns of the run.
    queries
        Closed queries.
    """
    asked = Counter(query.campaign for query in queries)
    for name in dict.fromkeys(name for campaign in campaigns for name in campaign.mechanisms):
        asking = [one for one in campaigns if asked[one.name] and (one.speeds is None or one.speeds.mechanism == name)]
        if len(campaigns) < 2 or not asking:
            continue
        whole = _WholeRun(name, asking, queries, asked)
        names = ", ".join(campaign.name for campaign in asking)
        sent, published = whole.sent(), whole.published()
        if published.kind == "unknown":
            published = replace(sent, kind=sent.kind if sent.kind == "unknown" else "bound")
        for view, claim in ((LINKED, sent), (PUBLISHED, bounded_by_reports(sent, published))):
            yield claim.about(mechanism=name, view=view, campaigns=names, queries=whole.total(asking))


@dataclass(frozen=True, eq=False)
class _WholeRun:
    """One mechanism in the campaigns that ask it, and the closed queries of all campaigns."""

    name: str
    campaigns: Sequence[Campaign]
    queries: Sequence[Query]
    asked: Counter[str]

    def sent(self) -> Claim:
        """Return the claim of all reports of a device, linked."""
        made = deployment_views(self.name, [one for one in self.campaigns if one.speeds is None], self.queries, 1)
        if any(isinstance(view, LocatedReports) for view, _ in made):
            return located_claim()
        return self._together(lambda campaign: id(campaign.asked[self.name]), self._linked)

    def published(self) -> Claim:
        """Return the claim of all that is published, whatever the truths of the other devices."""
        return self._together(self._way_of_publishing, self._published)

    def total(self, campaigns: Sequence[Campaign]) -> int:
        """Return the number of queries of some campaigns."""
        return sum(self.asked[campaign.name] for campaign in campaigns)

    def _together(self, key: Callable[[Campaign], Hashable], claim: Callable[[Sequence[Campaign]], Claim]) -> Claim:
        """Return the claim of all campaigns: campaigns of one key are one view of all their queries, the keys compose.

        Campaigns that ask one mechanism of one partition have one key. So they are never divided where devices keep
        randomness from query to query, which they do for each mechanism and partition, whatever the campaign.
        """
        groups: dict[Hashable, list[Campaign]] = {}
        for campaign in self.campaigns:
            groups.setdefault(key(campaign), []).append(campaign)
        claims = [self._attainable(claim(group), group) for group in groups.values()]
        return together(claims, attained=self._at_different_moments(self.campaigns))

    def _attainable(self, claim: Claim, group: Sequence[Campaign]) -> Claim:
        """Return the claim, as a bound where its worst case may need a device to be in two places at one moment.

        It does not for mechanisms without memory: two truths that are the same at all queries are the worst case.
        """
        mechanism = group[0].mechanisms[self.name]
        fresh = isinstance(mechanism, BaseMechanism) and not keeps_randomness(mechanism)
        if claim.kind == "unknown" or fresh or self._at_different_moments(group):
            return claim
        return replace(claim, kind="bound" if claim.kind == "exact" else claim.kind, delta_kind="bound")

    def _at_different_moments(self, campaigns: Sequence[Campaign]) -> bool:
        """Return whether no two of these campaigns ask for where devices are at one moment."""
        names = {campaign.name for campaign in campaigns}
        moments = {(query.campaign, query.time_s) for query in self.queries if query.campaign in names}
        return len({time_s for _, time_s in moments}) == len(moments)

    def _linked(self, group: Sequence[Campaign]) -> Claim:
        return group[0].asked[self.name].claim(LinkedReports(self.total(group)))

    def _way_of_publishing(self, campaign: Campaign) -> Hashable:
        """Return the key of campaigns whose published values have one claim about all their queries."""
        asked = id(campaign.asked[self.name])
        if keeps_randomness(campaign.mechanisms[self.name]):
            return asked
        plain = campaign.speeds is None and self.name not in campaign.publications and campaign.deployment.noise is None
        return asked if plain else campaign.name

    def _published(self, group: Sequence[Campaign]) -> Claim:
        first, queries = group[0], self.total(group)
        mechanism, noises = first.mechanisms[self.name], {campaign.deployment.noise for campaign in group}
        if first.speeds is not None:
            return Claim.exact(math.inf, ConstantDelta(1.0), "A row of speeds shows who is in its cell.")
        if self.name in first.publications:
            change = possible_adjacency("move", cells=mechanism.cells)
            return first.publications[self.name].release.claim(crowd=None, queries=queries, adjacency=change)
        counted = CountedReports.of(self.name, group, self.queries)
        if counted is None or len(noises) > 1:  # kept bits in sums with other noise: at most the reports
            return Claim.bound(math.inf, ConstantDelta(1.0), "Sums of reports, some with servers' noise.")
        view = ReleasedCounts(None, queries, adjacency="move")
        if first.deployment.noise is None or not any(counted.fewest):
            return counted.claim(first.asked[self.name], view)
        servers = min(len(campaign.deployment.servers_of(mechanism)) for campaign in group)
        view = replace(view, counted=counted.fewest[0], colluding=0, servers=servers)
        return noisy_claim(mechanism, view, first.deployment.noise)
