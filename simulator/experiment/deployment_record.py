"""Record of each campaign in `run.json`: its release, and its deployment with its costs and what coalitions learn."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mechanisms.central import CountRelease, LaplaceCounts
from mechanisms.local import LocalMechanism
from mechanisms.privacy import (
    Claim,
    ConstantDelta,
    LinkedReports,
    LocatedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Shares,
    Shuffled,
    View,
)
from mechanisms.privacy.claim import Reason
from mechanisms.privacy.view_claims import located_claim
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import MIXER, NETWORK, named_by
from simulator.experiment.assembly.own_kinds import same_keys
from simulator.experiment.error_theory import OCCUPANCIES
from simulator.files.messages import texts_of
from simulator.results.record import (
    CostRecord,
    DeploymentRecord,
    MechanismDeployment,
    OccupancyTheory,
    ReleaseRecord,
    ViewRecord,
)
from simulator.results.statements import say
from simulator.sensing.adaptive_survey import BudgetSchedule
from simulator.sensing.campaign import Campaign
from simulator.sensing.query import Query, answers_of_devices, keeps_randomness

FEW_SERVERS = 4
EPSILON = 1.0
"""The ε at which the record states δ."""

NOTHING = Claim.exact(0.0, ConstantDelta(0.0), "Nothing is received of the device.")
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
    def of(cls, mechanism: str, campaigns: Sequence[Campaign], queries: Sequence[Query]) -> Self | None:
        """Return the numbers of a mechanism's reports counted in queries of counts; None if no query asked for any."""
        named = {campaign.name: campaign for campaign in campaigns}
        answers = [
            answer
            for (campaign, name), asked in answers_of_devices(queries).items()
            if name == mechanism and campaign in named
            for _, answer in asked
        ]
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
            " ".join(dict.fromkeys(campaign.deployment.rests_on for campaign in campaigns)),
        )

    def reason(self, view: View) -> Reason | None:
        """Return why published values have no better claim than linked reports; None for all other views."""
        if self.matched or not isinstance(view, ReleasedCounts | ReleasedDifferences) or not any(self.fewest):
            return None
        return Reason.ROUNDS_DIFFER if self.summed else Reason.SERVERS_COMBINE

    def claim(self, mechanism: LocalMechanism | BudgetSchedule, view: View) -> Claim:
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
            if self.rests_on and isinstance(view, Shares) and view.colluding < view.servers:
                return claim.as_bound(self.rests_on)
            return claim
        if not (self.fewest[view.round - 1] if isinstance(view, Shuffled) else any(self.fewest)):
            return Claim.exact(0.0, ConstantDelta(0.0), "No report was counted, so none can be observed.")
        if isinstance(view, ReleasedCounts) and self.matched:
            # The first query of a budget over time asks one of its two questions only.
            view = replace(view, counted=min(filter(None, self.fewest)))
        claim = mechanism.claim(view)
        if (why := self.reason(view)) is not None and claim.kind != "unknown":
            linked = mechanism.claim(LinkedReports(queries=view.queries))
            return linked.as_bound(f"{say(why)}: at most what a device's linked reports reveal.")
        if isinstance(view, ReleasedCounts) and claim.kind == "exact" and view.queries > 1 and not self.even:
            basis = f"{claim.basis} Other queries counted more devices."
            return replace(claim, kind="bound", delta_kind="bound", basis=basis)
        return claim


def describe_deployments(campaigns: Sequence[Campaign], queries: Sequence[Query]) -> list[DeploymentRecord]:
    """Return for each campaign its deployment, with the costs and views of each mechanism that answers in it.

    Parameters
    ----------
    campaigns
        The campaigns of the run.
    queries
        Closed queries; queries of speeds are left out, as speeds are sent to one trusted server only.

    Returns
    -------
    list of DeploymentRecord
        For campaigns that ask for counts.
    """
    described = []
    for campaign in campaigns:
        deployment = campaign.deployment
        every = {name: CountedReports.of(name, [campaign], queries) for name in campaign.mechanisms}
        answering = {name: counted for name, counted in every.items() if counted is not None}
        if not answering:
            continue
        statements: dict[str, int] = {}  # the number of each sentence in the deployment
        mechanisms = []
        for name, counted in answering.items():
            mechanism = campaign.mechanisms[name]
            learns = [_view(one, campaign, name, counted, statements) for one in coalitions(deployment, mechanism)]
            cost = CostRecord.model_validate(deployment.cost(mechanism), from_attributes=True)
            stored = {named_by(campaign.operator, party): nbytes for party, nbytes in cost.stored_bytes.items()}
            cost, parties = cost.model_copy(update={"stored_bytes": stored}), [*campaign.parties(name)]
            mechanisms.append(MechanismDeployment(mechanism=name, parties=parties, cost=cost, learns=learns))
        described.append(
            DeploymentRecord(
                campaign=campaign.name,
                operator=campaign.operator,
                servers=max(len(deployment.servers_of(campaign.mechanisms[name])) for name in answering),
                mechanisms=mechanisms,
                **same_keys(deployment, "kind", "needed", "paired", "robust", "handles"),
                **same_keys(deployment, "min_batch", "min_gap_s", "committed"),
            )
        )
    return described


def deployment_views(
    name: str, campaigns: Sequence[Campaign], queries: Sequence[Query], repeats: int
) -> Iterator[tuple[View, CountedReports]]:
    """Yield each view of one mechanism that the deployments create, and the reports it is based on.

    Deployments that are alike create the same views again.

    Parameters
    ----------
    name
        The mechanism's name.
    campaigns
        Campaigns that ask the same mechanisms.
    queries
        Closed queries.
    repeats
        Number of queries that a device answers. If it cannot be followed from query to query, its view is of one query.
    """
    for campaign in campaigns:
        deployment, mechanism = campaign.deployment, campaign.mechanisms[name]
        counted = CountedReports.of(name, [campaign], queries)
        if counted is None:
            continue
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
        yield from ((view, counted) for view in seen if view is not None)


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
        listed = [servers[:k] for k in shown]
    else:
        listed = [*((server,) for server in servers), *(servers[:k] for k in sizes if k > 1)]
    if MIXER in parties:
        listed += [(MIXER,), (*servers, MIXER)]
    if NETWORK in parties and deployment.handles == "query" and not deployment.anonymous:
        listed += [(*coalition, NETWORK) for coalition in ((servers[:1], servers) if len(servers) > 1 else (servers,))]
    return [*listed, (NETWORK,)] if NETWORK in parties else listed


def view_of_coalition(
    coalition: Sequence[str], campaign: Campaign, name: str, counted: CountedReports, queries: int = 1
) -> tuple[View | None, Claim]:
    """Return a coalition's view of a device over some queries of a campaign, None if it sees nothing, and its claim.

    A device that cannot be followed from query to query reveals at most what it reveals where it can be.
    """
    mechanism, devices = campaign.mechanisms[name], max(1, counted.fewest[0])
    view = campaign.deployment.view(coalition, mechanism, devices=devices, queries=queries)
    if view is None:
        return None, NOTHING
    claim = counted.claim(campaign.asked[name], replace(view, queries=queries))
    return view, claim if view.queries == queries else claim.as_bound(
        "Pseudonyms hide which reports are of one device."
    )


def _view(
    coalition: Coalition, campaign: Campaign, name: str, counted: CountedReports, statements: dict[str, int]
) -> ViewRecord:
    """Return the record of a coalition's view."""
    view, claim = view_of_coalition(coalition, campaign, name, counted)
    delta, statement = claim.delta(EPSILON), campaign.deployment.learns(coalition, campaign.mechanisms[name])
    return ViewRecord(
        coalition=[named_by(campaign.operator, party) for party in coalition],
        statement=statements.setdefault(statement, len(statements)),
        words=statement,
        view=None if view is None else view.name,
        kind=claim.kind,
        epsilon=float(claim.epsilon) if math.isfinite(claim.epsilon) else None,
        delta=None if claim.kind == "unknown" else float(delta),
        delta_kind=claim.delta_kind,
    )


def describe_releases(campaigns: Sequence[Campaign]) -> list[ReleaseRecord]:
    """Return the record in `run.json` of every campaign of speeds or under a release."""
    return [
        ReleaseRecord(
            campaign=campaign.name,
            statistic=campaign.statistic,
            unit="vehicles" if campaign.speeds is None else "m/s",
            release=dict(campaign.release),
            words=campaign.release_words,
            mechanisms=[campaign.speeds.mechanism] if campaign.speeds else list(campaign.publications),
            notes=texts_of(campaign.notes),
            theory={
                name: theory
                for name, publication in campaign.publications.items()
                if (theory := _theory(publication.release)) is not None
            },
        )
        for campaign in campaigns
        if campaign.speeds or campaign.publications
    ]


def _theory(release: CountRelease) -> OccupancyTheory | None:
    if not isinstance(release, LaplaceCounts):
        return None  # suppressed counts are not noise around the truth
    shown = np.array(OCCUPANCIES, dtype=np.int64)
    return OccupancyTheory(occupancy=shown.tolist(), std_error=release.std_error(shown).tolist())
