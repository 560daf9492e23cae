"""Plays the attacks of a scenario on the closed queries of its campaigns."""

from collections.abc import Mapping, Sequence

from mechanisms.local import LocalMechanism, SamplingPrivacy
from scenarios import Scenario
from simulator.aggregation.deployment import Deployment
from simulator.arrays import IntArray
from simulator.experiment.build.constructors import faults_of_files
from simulator.experiment.releases import CampaignRelease
from simulator.games.games import Attack, AttackResults, play_attacks
from simulator.games.records import CampaignRecord, QueryRecord
from simulator.sensing.query import Answer, Query, answers_of_devices
from simulator.streams import Streams


def attack_campaigns(
    scenario: Scenario,
    attacks: Sequence[Attack],
    queries: Sequence[Query],
    deployments: Mapping[str, Deployment],
    mechanisms: Mapping[str, LocalMechanism],
    releases: Mapping[str, CampaignRelease],
    *,
    fleet: IntArray,
    streams: Streams,
) -> AttackResults:
    """Play every attack on every campaign and mechanism that it applies to.

    Parameters
    ----------
    scenario, attacks
        The scenario, and its attacks.
    queries
        Closed queries; those of speeds are left out, and those for which no vehicle's reports were kept.
    deployments, releases
        By campaign.
    mechanisms
        By name.
    fleet
        The numbers of all vehicles in random order.
    streams
        The run's generators.

    Raises
    ------
    ScenarioError
        As `play_attacks` raises an `InputError`.
    """
    outside = scenario.population.outside
    records = {
        (campaign, name): CampaignRecord(
            deployments[campaign],
            mechanisms[name],
            tuple(_record(query, answer, outside) for query, answer in found if name in query.recorded),
            *_replaced(deployments[campaign], releases[campaign], name, mechanisms[name]),
            fleet=fleet,
        )
        for (campaign, name), found in answers_of_devices(queries).items()
    }
    with faults_of_files(scenario, "attacks"):
        return play_attacks(attacks, records, streams=streams)


def _record(query: Query, answer: Answer, outside: int) -> QueryRecord:
    found, occupancy = query.recorded[answer.mechanism], query.truth.copy()
    occupancy[0] -= outside
    values = getattr(answer.estimate, "count", None)
    counts, time_s = found.counts, query.time_s
    return QueryRecord(
        found.recorded, found.truth, occupancy, counts, answer.asked, answer.counted, values, time_s, found.noise
    )


def _replaced(
    deployment: Deployment, release: CampaignRelease, name: str, mechanism: LocalMechanism
) -> tuple[int | None, str]:
    """Return the k below which a release suppresses a mechanism's values, and in words what replaces its counts.

    The k is None if nothing is suppressed; the words are empty if counts or differences are published.
    """
    if deployment.noise is not None:
        return None, "the servers' noise"
    if name not in release.counts:
        return None, "" if deployment.sums_reports else f"the combination by {deployment.kind}"
    k = int(release.section["k"]) if release.section["kind"] == "suppress" else None
    return k, "" if k is not None and isinstance(mechanism, SamplingPrivacy) else release.words
