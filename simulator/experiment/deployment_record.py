"""Record of each campaign's deployment in `run.json`: its costs, and what coalitions learn."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mechanisms.local import AdaptiveBudget, LocalMechanism
from mechanisms.privacy import (
    ConstantDelta,
    LinkedReports,
    LocatedReports,
    PrivacyClaim,
    ReleasedCounts,
    ReleasedDifferences,
    Shares,
    Shuffled,
    View,
)
from mechanisms.privacy.view_claims import located_claim
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import MIXER, NETWORK
from simulator.experiment.campaign_groups import CampaignGroup
from simulator.results.record import CostRecord, DeploymentRecord, MechanismDeployment, ViewRecord
from simulator.sensing.query import Query, answers_of_devices, keeps_randomness

FEW_SERVERS = 4
EPSILON = 1.0
"""The ε at which the record states δ."""

Deployments = Mapping[str, Deployment]
Coalition = tuple[str, ...]


@dataclass(frozen=True)
class CountedReports:
    """Numbers of counted reports of one mechanism, from which its claims for a run are computed.

    Attributes
    ----------
    fewest
        By round, the fewest reports counted in a query. Queries that counted none reveal nothing and are left out; 0
        if no query counted any.
    asked
        The fewest devices asked in a query that asked any.
    uncounted
        Whether some report of an asked device was not counted.
    even
        Whether every query counted the same number of reports.
    matched
        Whether every query counted the same devices in all rounds, and published the sums of all servers.
    summed
        Whether every query published the sums of all servers.
    rests_on
        On what claims about too few shares rest, as `Deployment.rests_on`.
    """

    fewest: tuple[int, ...]
    asked: int
    uncounted: bool
    even: bool
    matched: bool
    summed: bool = True
    rests_on: str = ""

    @classmethod
    def of(cls, mechanism: str, queries: Sequence[Query]) -> Self | None:
        """Return the numbers of a mechanism's reports counted in queries of counts; None if no query asked for any."""
        asked_for = answers_of_devices(queries)
        answers = [answer for (_, name), found in asked_for.items() if name == mechanism for _, answer in found]
        if not answers:
            return None
        counted, asked = [answer.counted for answer in answers], [answer.asked for answer in answers]
        return cls(
            tuple(min(filter(None, every), default=0) for every in zip(*counted, strict=True)),
            min(filter(None, (devices for devices, *_ in asked)), default=0),
            counted != asked,
            all(row == counted[0] for row in counted),
            all(
                answer.summed and (answer.paired or len(row) == 1 or row == of_all)
                for answer, row, of_all in zip(answers, counted, asked, strict=True)
            ),
            all(answer.summed for answer in answers),
        )

    def claim(self, mechanism: LocalMechanism | AdaptiveBudget, view: View) -> PrivacyClaim:
        """Return a mechanism's claim for a view, in which released and shuffled reports are the counted ones.

        If rounds counted different devices, the counts of both rounds are published and their noise does not cancel.
        The same may hold where servers are combined other than by addition. All published values are then bounded by
        the claim for the device's linked reports, from which they are computed together with reports that are
        independent of the device's truth.

        Parameters
        ----------
        mechanism
            The mechanism whose reports were counted.
        view
            The view; for shuffled reports with the crowd of this run.
        """
        if not isinstance(view, ReleasedCounts | ReleasedDifferences | Shuffled):
            claim = located_claim() if isinstance(view, LocatedReports) else mechanism.claim(view)
            if self.rests_on and isinstance(view, Shares) and view.colluding < view.servers and claim.curve is not None:
                return PrivacyClaim.bound(claim.epsilon, claim.curve, f"{self.rests_on} {claim.basis}")
            return claim
        if not (self.fewest[view.round - 1] if isinstance(view, Shuffled) else any(self.fewest)):
            return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "No report was counted, so none can be observed.")
        if isinstance(view, ReleasedCounts) and self.matched:
            view = replace(view, counted=self.fewest[0])
        claim = mechanism.claim(view)
        if not isinstance(view, Shuffled) and not self.matched and claim.curve is not None:
            why = "Rounds counted different devices" if self.summed else "Servers are combined other than by addition"
            return _bounded_by_linked(mechanism.claim(LinkedReports(queries=view.queries)), why)
        if isinstance(view, ReleasedCounts) and claim.kind == "exact" and view.queries > 1 and not self.even:
            basis = f"{claim.basis} Other queries counted more devices."
            return PrivacyClaim("bound", claim.epsilon, "bound", basis, claim.curve)
        return claim


def _bounded_by_linked(linked: PrivacyClaim, why: str) -> PrivacyClaim:
    """Return the claim about published values that are computed from linked reports, and `why` there is no better."""
    basis = f"{why}: at most what a device's linked reports reveal. {linked.basis}"
    if linked.curve is None:
        return PrivacyClaim.unknown(basis)
    return PrivacyClaim.bound(linked.epsilon, linked.curve, basis)


def describe_deployments(groups: Iterable[CampaignGroup]) -> list[DeploymentRecord]:
    """Return for each campaign its deployment, with the costs and views of each mechanism that answers in it.

    Parameters
    ----------
    groups
        The campaigns of the run. Queries of speeds are left out, as speeds are sent to one trusted server only.

    Returns
    -------
    list of DeploymentRecord
        For campaigns that ask for counts.
    """
    described = []
    for group in groups:
        for campaign, deployment in group.deployments.items():
            every = {name: _counted(name, campaign, group.queries) for name in group.mechanisms}
            rests_on = deployment.rests_on
            answering = {name: replace(one, rests_on=rests_on) for name, one in every.items() if one is not None}
            if not answering:
                continue
            described.append(
                DeploymentRecord(
                    campaign=campaign,
                    kind=deployment.kind,
                    servers=max(len(deployment.servers_of(group.mechanisms[name])) for name in answering),
                    needed=deployment.needed,
                    paired=deployment.paired,
                    robust=deployment.robust,
                    handles=deployment.handles,
                    mechanisms=[_describe(name, deployment, group, counted) for name, counted in answering.items()],
                )
            )
    return described


def deployment_views(
    name: str, deployments: Deployments, mechanism: LocalMechanism, queries: Sequence[Query], repeats: int
) -> Iterator[tuple[View, CountedReports]]:
    """Yield each view of one mechanism that the deployments of a run create, once, and the reports it is based on.

    Parameters
    ----------
    name
        The mechanism's name.
    deployments
        By campaign.
    mechanism
        The mechanism.
    queries
        Closed queries.
    repeats
        Number of queries that a device answers. If it cannot be followed from query to query, its view is of one query.
    """
    yielded: set[tuple[View, int, str]] = set()
    for campaign, deployment in deployments.items():
        counted = _counted(name, campaign, queries)
        if counted is None:
            continue
        counted = replace(counted, rests_on=deployment.rests_on)
        if repeats > 1 and keeps_randomness(mechanism):
            # Kept randomness hides a device only among devices that are in every query; their number is not known.
            counted = replace(counted, fewest=tuple(min(1, crowd) for crowd in counted.fewest))
        seen = [
            deployment.view(coalition, mechanism, devices=max(1, counted.fewest[0]), queries=repeats)
            for coalition in coalitions(deployment, mechanism)
        ]
        if deployment.kind == "shuffled":
            seen += [
                Shuffled(round_, max(1, crowd), queries=repeats) for round_, crowd in enumerate(counted.fewest, start=1)
            ]
        for view in seen:
            crowd = counted.fewest[view.round - 1] if isinstance(view, Shuffled) else 0
            if view is not None and (view, crowd, counted.rests_on) not in yielded:
                yielded.add((view, crowd, counted.rests_on))
                yield view, counted


def coalitions(deployment: Deployment, mechanism: LocalMechanism) -> list[Coalition]:
    """Return the coalitions that differ in what they learn: single parties, then increasing numbers of them.

    The network adds to what servers learn if it can link their one-time pseudonyms to devices.

    Servers that hold shares are interchangeable, so one coalition of k represents all coalitions of k. If there are
    many such servers, only one, all, as many as are needed, and one less are listed.
    """
    parties = deployment.parties(mechanism)
    servers = tuple(deployment.servers_of(mechanism))
    sizes = range(1, len(servers) + 1)
    if deployment.sharing is not None or not deployment.sums_reports:
        needed = deployment.needed or len(servers)
        shown = [k for k in sizes if len(servers) <= FEW_SERVERS or k in {1, needed - 1, needed, len(servers)}]
        found = [servers[:k] for k in shown]
    else:
        found = [*((server,) for server in servers), *(servers[:k] for k in sizes if k > 1)]
    if MIXER in parties:
        found += [(MIXER,), (*servers, MIXER)]
    if NETWORK in parties and deployment.handles == "query" and not deployment.anonymous:
        found += [(*coalition, NETWORK) for coalition in ((servers[:1], servers) if len(servers) > 1 else (servers,))]
    return [*found, (NETWORK,)] if NETWORK in parties else found


def _counted(mechanism: str, campaign: str, queries: Sequence[Query]) -> CountedReports | None:
    """Return the numbers of a mechanism's reports that one campaign counted."""
    return CountedReports.of(mechanism, [query for query in queries if query.campaign == campaign])


def _describe(name: str, deployment: Deployment, group: CampaignGroup, counted: CountedReports) -> MechanismDeployment:
    mechanism, claiming = group.mechanisms[name], group.claiming(name)
    return MechanismDeployment(
        mechanism=name,
        parties=list(deployment.parties(mechanism)),
        cost=CostRecord.model_validate(deployment.cost(mechanism), from_attributes=True),
        learns=[_view(one, deployment, mechanism, claiming, counted) for one in coalitions(deployment, mechanism)],
    )


def _view(
    coalition: Coalition,
    deployment: Deployment,
    mechanism: LocalMechanism,
    claiming: LocalMechanism | AdaptiveBudget,
    counted: CountedReports,
) -> ViewRecord:
    """Return the record of a coalition's view; without a view, of the claim that nothing is revealed."""
    view = deployment.view(coalition, mechanism, devices=max(1, counted.fewest[0]))
    nothing = PrivacyClaim.exact(0.0, ConstantDelta(0.0), "The coalition receives nothing of the device.")
    claim = nothing if view is None else counted.claim(claiming, view)
    delta = claim.delta(EPSILON)
    return ViewRecord(
        coalition=list(coalition),
        words=deployment.learns(coalition, mechanism),
        view=None if view is None else view.name,
        kind=claim.kind,
        epsilon=float(claim.epsilon) if math.isfinite(claim.epsilon) else None,
        delta=float(delta) if math.isfinite(delta) else None,
        delta_kind=claim.delta_kind,
    )
