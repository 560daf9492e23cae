"""Rules of an attack: which campaigns have its parties, its mechanisms and its queries."""

from collections.abc import Iterator, Sequence

from scenarios.attacks import VEHICLES, corrupted_in, parties_of
from scenarios.faults import Breach
from scenarios.section import Known, known_of
from scenarios.wording import suggestion

MOST_ROUNDS = 3
"""Rounds a mechanism may have; exactly how many, and so which servers are there, is seen when it is built."""


def broken_attack(
    attack: Known, *, campaigns: Sequence[Known], mechanisms: Sequence[Known], aggregation: Known, traffic: Known
) -> Iterator[Breach]:
    """Yield each broken rule of one attack; paths are relative to it.

    Parameters
    ----------
    attack
        Its valid fields.
    campaigns, mechanisms
        Of each, its valid fields.
    aggregation
        That of campaigns without their own.
    traffic
        Its valid fields.
    """
    yield from _names(attack, "mechanisms", "mechanism", mechanisms)
    yield from _names(attack, "campaigns", "campaign", campaigns)
    coalition = parties_of(attack.get("coalition") or ())
    if traffic.has("vehicles") and corrupted_in(coalition) > traffic["vehicles"]:
        words = f"there are only traffic.vehicles = {traffic['vehicles']} to corrupt"
        yield Breach(("coalition",), words, list(coalition))
    meant = _meant(attack, campaigns)
    for place, name in enumerate(attack.get("campaigns") or ()):
        for campaign in meant:
            if campaign.get("name") == name and campaign.get("statistic", "count") != "count":
                words = 'must be a campaign with statistic = "count": attacks are on what devices say of their place'
                yield Breach(("campaigns", place), words, name)
    counting = [campaign for campaign in meant if campaign.get("statistic", "count") == "count"]
    if not counting:
        return
    yield from _parties(attack, coalition, counting, aggregation)
    yield from _queries(attack, counting)


def _names(attack: Known, key: str, what: str, items: Sequence[Known]) -> Iterator[Breach]:
    if not all(item.has("name") for item in items):
        return
    names = [item["name"] for item in items]
    for place, wanted in enumerate(attack.get(key) or ()):
        if wanted not in names:
            hint = suggestion(wanted, names) or f"; there are {', '.join(names)}"
            yield Breach((key, place), f"there is no such {what}{hint}", wanted)


def _meant(attack: Known, campaigns: Sequence[Known]) -> list[Known]:
    """Return the campaigns an attack names; all, if it names none."""
    named = attack.get("campaigns")
    return [campaign for campaign in campaigns if named is None or campaign.get("name") in named]


def _parties(attack: Known, coalition: Sequence[str], campaigns: Sequence[Known], default: Known) -> Iterator[Breach]:
    """Yield a fault for each party that a campaign named has not, or, where none is named, no campaign has."""
    if any("aggregation" not in campaign for campaign in campaigns):
        return  # at fault itself
    deployments = [
        (campaign.get("name"), default if campaign["aggregation"] is None else known_of(campaign["aggregation"]))
        for campaign in campaigns
    ]
    if any("kind" not in deployment for _, deployment in deployments):
        return
    if attack.get("kind") == "shares" and not any(one["kind"] == "secret_shared" for _, one in deployments):
        words = 'needs a campaign with aggregation.kind = "secret_shared": nobody else holds shares'
        yield Breach(("kind",), words, "shares")
        return
    lacking = [
        (name, deployment, [place for place, member in enumerate(coalition) if not _has(deployment, member)])
        for name, deployment in deployments
    ]
    if attack.get("together"):
        nowhere = set.intersection(*(set(missing) for _, _, missing in lacking))
        lacking = [(name, deployment, sorted(nowhere)) for name, deployment, _ in lacking]
    elif attack.get("campaigns") is None and any(not missing for _, _, missing in lacking):
        return
    told = set()
    for name, deployment, missing in lacking:
        for place in missing:
            if place not in told:
                told.add(place)
                words = (
                    f"there is no such party in campaigns.{name}, which is {deployment['kind']}: {_there(deployment)}"
                )
                yield Breach(("coalition", place), words, coalition[place])


def _servers(deployment: Known) -> int:
    if deployment["kind"] == "secret_shared":
        return int(deployment.get("servers") or 2)
    return MOST_ROUNDS if deployment["kind"] == "per_round" else 1


def _has(deployment: Known, member: str) -> bool:
    if member.startswith(VEHICLES) or member == "network":
        return True
    if member == "mixer":
        return bool(deployment["kind"] == "shuffled")
    return int(member.partition(":")[2]) <= _servers(deployment)


def _there(deployment: Known) -> str:
    if deployment["kind"] == "per_round":
        return "there are a server for each round, and network"
    servers = [f"server:{number}" for number in range(1, _servers(deployment) + 1)]
    listed = servers if len(servers) <= 4 else [*servers[:2], "…", servers[-1]]
    return f"there are {', '.join([*listed, *(['mixer'] if deployment['kind'] == 'shuffled' else []), 'network'])}"


def _queries(attack: Known, campaigns: Sequence[Known]) -> Iterator[Breach]:
    """Yield a fault for each number of queries that a campaign named, or any where none is named, does not ask."""
    if not all(campaign.has("queries", "name") for campaign in campaigns):
        return
    most = max(campaign["queries"] for campaign in campaigns)
    starts = attack.get("from_query")
    if starts is not None and starts > most:
        yield Breach(("from_query",), f"must be at most {most}, the queries of a campaign", starts)
    if attack.get("together"):
        total = sum(campaign["queries"] for campaign in campaigns)
        for place, times in enumerate(attack.get("asked") or ()):
            if times > total:
                yield Breach(("asked", place), f"must be at most {total}, the queries of all campaigns together", times)
        return
    enough = max if attack.get("campaigns") is None else min
    limit = enough(campaign["queries"] for campaign in campaigns)
    for place, times in enumerate(attack.get("asked") or ()):
        if times > limit:
            name = next(campaign["name"] for campaign in campaigns if campaign["queries"] == limit)
            yield Breach(("asked", place), f"must be at most campaigns.{name}.queries = {limit}", times)
