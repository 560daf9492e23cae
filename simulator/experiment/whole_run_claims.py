"""What a device reveals of one mechanism over a whole run: all that it sends, and all that is published, together."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechanisms.local.common.base import BaseMechanism
from mechanisms.privacy import Claim, ConstantDelta, LinkedReports, ReleasedCounts
from mechanisms.privacy.composition import together
from mechanisms.privacy.view import possible_adjacency
from mechanisms.privacy.view_claims import bounded_by_reports, located_claim
from simulator.aggregation.server_noise import noisy_claim
from simulator.aggregation.transcript import is_member
from simulator.experiment.deployment_record import Coalition, CountedReports, view_of_coalition
from simulator.results.claims import LINKED, PUBLISHED, RECEIVED
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, keeps_randomness


def whole_run_claims(
    campaigns: Sequence[Campaign], queries: Sequence[Query], coalitions: Iterable[Coalition] = ()
) -> Iterator[Claim]:
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
    coalitions
        Coalitions that have a claim of their own where they name operators, besides the parties of each and of all.
    """
    operators = dict.fromkeys(campaign.operator for campaign in campaigns if campaign.operator)
    every = [(f"operator:{one}/*",) for one in ([*operators, "*"] if len(operators) > 1 else operators)]
    named = {campaign.name: campaign for campaign in campaigns}
    for name in dict.fromkeys(name for campaign in campaigns for name in campaign.mechanisms):
        asked = (query for query in queries if named[query.campaign].asks(name, query.number))
        moments = [(query.campaign, query.time_s) for query in asked]
        asking = [campaign for campaign in campaigns if campaign.name in dict(moments)]
        if len(campaigns) < 2 or not asking:
            continue
        whole = WholeRun(name, asking, moments, queries)
        for view in (LINKED, PUBLISHED):
            yield whole.claim(view).about(view=view, **whole.subject(asking))
        for coalition in dict.fromkeys([*every, *(one for one in coalitions if "operator:" in str(one))]):
            yield from whole.received(coalition)


@dataclass(frozen=True, eq=False)
class WholeRun:
    """One mechanism in campaigns that ask it together.

    Attributes
    ----------
    name, campaigns
        The mechanism's name, and the campaigns.
    moments
        For each query that asks the mechanism, its campaign and its moment of truth, seconds.
    queries
        The closed queries; without them, before they are asked, all that is published is bounded by reports.
    """

    name: str
    campaigns: Sequence[Campaign]
    moments: Sequence[tuple[str, float]]
    queries: Sequence[Query] = ()

    def claim(self, view: str) -> Claim:
        """Return the claim of all reports of a device, linked, or of all that is published."""
        sent = self.composed(lambda campaign: id(campaign.asked[self.name]), self._linked)
        if any(campaign.deployment.locates for campaign in self.campaigns if campaign.speeds is None):
            sent = located_claim()
        if view == LINKED:
            return sent
        published = self.composed(self._way_of_publishing, self._published)
        if published.kind == "unknown":
            published = replace(sent, kind=sent.kind if sent.kind == "unknown" else "bound")
        return bounded_by_reports(sent, published)

    def received(self, coalition: Coalition) -> Iterator[Claim]:
        """Yield the claim of all that a coalition stores of a device, if it has a party of these campaigns.

        What it stores of one campaign is one view; campaigns that share what devices keep are one view of reports.
        """
        stored = {
            campaign.name: [own for party, own in campaign.parties(self.name).items() if is_member(party, coalition)]
            for campaign in self.campaigns
        }

        def held(group: Sequence[Campaign]) -> Claim:
            first, counted = group[0], CountedReports.of(self.name, group, self.queries)
            if counted is None or keeps_randomness(first.mechanisms[self.name]):
                return self._linked(group)
            return view_of_coalition(stored[first.name], first, self.name, counted, self.total(group))[1]

        def view(campaign: Campaign) -> Hashable:
            return id(campaign.asked[self.name]) if keeps_randomness(campaign.mechanisms[self.name]) else campaign.name

        if seen := [campaign for campaign in self.campaigns if stored[campaign.name]]:
            claim = replace(self, campaigns=seen).composed(view, held)
            yield claim.about(view=RECEIVED, coalition=", ".join(coalition), **self.subject(seen))

    def subject(self, campaigns: Sequence[Campaign]) -> dict[str, Any]:
        """Return what a claim about some campaigns is about."""
        names = ", ".join(campaign.name for campaign in campaigns)
        return {"mechanism": self.name, "campaigns": names, "queries": self.total(campaigns)}

    def total(self, campaigns: Sequence[Campaign]) -> int:
        """Return the number of queries of some campaigns."""
        names = {campaign.name for campaign in campaigns}
        return sum(campaign in names for campaign, _ in self.moments)

    def composed(self, key: Callable[[Campaign], Hashable], claim: Callable[[Sequence[Campaign]], Claim]) -> Claim:
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
        moments = {moment for moment in self.moments if moment[0] in names}
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
