"""Records of closed queries for attacks, and checks that a scenario's attacks fit its campaigns."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mechanisms.local import LocalMechanism, SamplingPrivacy
from scenarios import Fault, Scenario, ScenarioError
from scenarios.attacks import corrupted_in, parties_of
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import MIXER, Coalition
from simulator.experiment.attack_evaluation.campaign_record import CampaignRecord, QueryRecord
from simulator.experiment.attack_evaluation.runner import Challenged, challenge
from simulator.experiment.releases import CampaignRelease
from simulator.sensing.campaign import fleet_order
from simulator.sensing.query import Query
from simulator.streams import Streams

COUNT = "count"


def most_targets(scenario: Scenario, campaign: str) -> int:
    """Return the number of vehicles whose reports must be kept in each query for the attacks on a campaign."""
    return max(
        (attack.targets for attack in scenario.attacks if attack.campaigns is None or campaign in attack.campaigns),
        default=0,
    )


def most_corrupted(scenario: Scenario) -> int:
    """Return the largest number of vehicles that a coalition corrupts."""
    return max((corrupted_in(attack.coalition) for attack in scenario.attacks), default=0)


def check_attacks(
    scenario: Scenario, deployments: Mapping[str, Deployment], mechanisms: Mapping[str, LocalMechanism]
) -> None:
    """Raise an error for coalitions with parties that none of the attacked campaigns and mechanisms has.

    This check is exact; that of the schema is not, as the schema does not know the mechanisms' rounds.

    Raises
    ------
    ScenarioError
        If there is such a coalition; the message lists the parties that exist.
    """
    counting = [campaign.name for campaign in scenario.campaigns if campaign.statistic == COUNT]
    faults = []
    for attack in scenario.attacks:
        there: set[str] = set()
        coalition = Coalition.of(parties_of(attack.coalition)) if attack.coalition else Coalition()
        needed = {f"server:{server}" for server in coalition.servers} | ({MIXER} if coalition.mixer else set())
        fits = False
        for campaign in attack.campaigns or counting:
            for name in attack.mechanisms or mechanisms:
                parties = deployments[campaign].parties(mechanisms[name])
                there.update(parties)
                fits |= needed <= set(parties)
        if getattr(attack, "together", False):
            fits = needed <= there
        if not fits and there:
            words = f"has no campaign and mechanism with all these parties; there are {', '.join(sorted(there))}"
            faults.append(Fault(f"attacks.{attack.name}.coalition", words, list(parties_of(attack.coalition))))
    if faults:
        raise ScenarioError(scenario.name, faults)


def record_campaigns(
    queries: Sequence[Query],
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
    *,
    outside: int,
    releases: Mapping[str, CampaignRelease],
    fleet: npt.NDArray[np.int64] | None = None,
) -> dict[tuple[str, str], CampaignRecord]:
    """Return the records of closed queries that attacks need, by campaign and mechanism.

    Parameters
    ----------
    queries
        Closed queries; those of speeds are left out, and those for which no vehicle's reports were kept.
    deployments
        By campaign.
    mechanisms
        By name.
    outside
        Number of devices asked that are not vehicles and are in no cell: none of them is a target.
    releases
        By campaign.
    fleet
        The numbers of all vehicles in random order.
    """
    kept: dict[tuple[str, str], list[QueryRecord]] = {}
    for query in queries:
        if query.statistic != COUNT:
            continue
        occupancy = query.truth.copy()
        occupancy[0] -= outside
        for answer in query.answers:
            if answer.mechanism not in mechanisms:
                continue
            of_this = kept.setdefault((query.campaign, answer.mechanism), [])
            if answer.mechanism in query.recorded:
                found = query.recorded[answer.mechanism]
                of_this.append(
                    QueryRecord(
                        found.recorded,
                        found.truth,
                        occupancy,
                        found.counts,
                        [account.asked for account in answer.rounds],
                        [account.counted for account in answer.rounds],
                        getattr(answer.estimate, "count", None),
                        query.time_s,
                    )
                )
    return {
        (campaign, name): CampaignRecord(
            deployments[campaign],
            mechanisms[name],
            tuple(records),
            k=_least(releases[campaign], name),
            noised=_noised(releases[campaign], name, mechanisms[name]),
            fleet=fleet,
        )
        for (campaign, name), records in kept.items()
    }


def _least(release: CampaignRelease, mechanism: str) -> int | None:
    """Return the k below which a release suppresses a mechanism's values; None if it does not suppress."""
    suppresses = mechanism in release.counts and release.section["kind"] == "suppress"
    return int(release.section["k"]) if suppresses else None


def _noised(release: CampaignRelease, name: str, mechanism: LocalMechanism) -> str:
    """Return in words the release that replaces a mechanism's counts or differences; empty if there is none."""
    if name not in release.counts:
        return ""
    suppressed_differences = release.section["kind"] == "suppress" and isinstance(mechanism, SamplingPrivacy)
    return "" if suppressed_differences else release.words


def attack_campaigns(
    scenario: Scenario,
    queries: Sequence[Query],
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
    *,
    releases: Mapping[str, CampaignRelease],
    vehicles: int,
    streams: Streams,
) -> Challenged:
    """Run the attacks of a scenario on its closed queries.

    Raises
    ------
    ScenarioError
        If an attacked cell does not exist, or there are fewer vehicles than are to be corrupted.
    """
    records = record_campaigns(
        queries,
        deployments,
        mechanisms,
        outside=scenario.population.outside,
        releases=releases,
        fleet=np.argsort(fleet_order(streams, vehicles)),
    )
    return challenge(scenario.attacks, records, streams=streams, source=scenario.name)
