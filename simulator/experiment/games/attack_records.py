"""Attack records: closed queries as the challenger needs them, and whether attacks fit what was built."""

from collections.abc import Mapping, Sequence

from mechanisms.local import LocalMechanism
from scenarios import Fault, Scenario, ScenarioError
from scenarios.attacks import corrupted_in
from simulator.aggregation.coalition import Coalition
from simulator.aggregation.deployment import Deployment
from simulator.experiment.games.challenge import CampaignRecord, Challenged, QueryRecord, challenge
from simulator.experiment.releases import CampaignRelease
from simulator.sensing.query import Query
from simulator.streams import Streams

COUNT = "count"


def most_targets(scenario: Scenario, campaign: str) -> int:
    """Return of how many vehicles a query's reports must be kept for the attacks on a campaign."""
    return max(
        (attack.targets for attack in scenario.attacks if attack.campaigns is None or campaign in attack.campaigns),
        default=0,
    )


def check_attacks(
    scenario: Scenario, deployments: Mapping[str, Deployment], mechanisms: Mapping[str, LocalMechanism]
) -> None:
    """Refuse coalitions of parties that are nowhere where they attack: exact, where the schema knows no rounds.

    Raises
    ------
    ScenarioError
        Naming the parties there are.
    """
    counting = [campaign.name for campaign in scenario.campaigns if campaign.statistic == COUNT]
    faults = []
    for attack in scenario.attacks:
        there: set[str] = set()
        fits = False
        for campaign in attack.campaigns or counting:
            for name in attack.mechanisms or mechanisms:
                parties = deployments[campaign].parties(mechanisms[name])
                there.update(parties)
                coalition = Coalition.of(attack.coalition)
                servers = {f"server:{server}" for server in coalition.servers}
                fits |= servers <= set(parties) and (not coalition.mixer or "mixer" in parties)
        if not fits and there:
            words = f"has no campaign and mechanism with all these parties; there are {', '.join(sorted(there))}"
            faults.append(Fault(f"attacks.{attack.name}.coalition", words, list(attack.coalition)))
    if faults:
        raise ScenarioError(scenario.name, faults)


def check_corrupted(scenario: Scenario, *, vehicles: int) -> None:
    """Refuse coalitions of more vehicles than there are: the schema does not know how many a file of trips holds.

    Raises
    ------
    ScenarioError
        Naming how many there are.
    """
    faults = [
        Fault(f"attacks.{attack.name}.coalition", f"there are only {vehicles:,} vehicles", list(attack.coalition))
        for attack in scenario.attacks
        if corrupted_in(attack.coalition) > vehicles
    ]
    if faults:
        raise ScenarioError(scenario.name, faults)


def record_campaigns(
    queries: Sequence[Query],
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
    *,
    outside: int,
    releases: Mapping[str, CampaignRelease],
) -> dict[tuple[str, str], CampaignRecord]:
    """Return what the challenger needs of closed queries, by campaign and mechanism.

    Parameters
    ----------
    queries
        As closed; those of speeds are left out, and those of which nobody's reports were kept.
    deployments
        By campaign.
    mechanisms
        By name.
    outside
        Devices asked that are no vehicles and in no cell: none of them is a target.
    releases
        By campaign.
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
            if answer.mechanism in query.targets:
                found = query.targets[answer.mechanism]
                asked = [account.asked for account in answer.rounds]
                counted = [account.counted for account in answer.rounds]
                of_this.append(QueryRecord(found.recorded, found.truth, occupancy, found.counts, asked, counted))
    return {
        (campaign, name): CampaignRecord(
            deployments[campaign], mechanisms[name], tuple(records), noised=_noised(releases[campaign], name)
        )
        for (campaign, name), records in kept.items()
    }


def _noised(release: CampaignRelease, mechanism: str) -> str:
    """Return the release that publishes for a mechanism, in words; empty if it publishes the counts or some of them."""
    return release.words if mechanism in release.counts and release.section["kind"] != "suppress" else ""


def attack_campaigns(
    scenario: Scenario,
    queries: Sequence[Query],
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
    *,
    releases: Mapping[str, CampaignRelease],
    streams: Streams,
) -> Challenged:
    """Let the attacks of a scenario be tried on its closed queries.

    Raises
    ------
    ScenarioError
        If there is no such cell, or fewer vehicles than are to be corrupted.
    """
    records = record_campaigns(queries, deployments, mechanisms, outside=scenario.population.outside, releases=releases)
    return challenge(scenario.attacks, records, streams=streams, source=scenario.name)
