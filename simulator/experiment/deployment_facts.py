"""Deployment facts: what `run.json` says of who adds up each campaign's reports, what it costs, and who learns what."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mechanisms.local import LocalMechanism
from mechanisms.privacy import PrivacyClaim, Shuffled, View
from simulator.aggregation.deployment import Deployment
from simulator.sensing.query import Query

NETWORK, MIXER = "network", "mixer"
FEW_SERVERS = 4
EPSILON = 1.0
"""Where the matrix states δ."""

Deployments = Mapping[str, Deployment]
Mechanisms = Mapping[str, LocalMechanism]
Coalition = tuple[str, ...]


def describe_deployments(
    deployments: Deployments, mechanisms: Mechanisms, queries: Sequence[Query]
) -> list[dict[str, Any]]:
    """Return, campaign by campaign, the deployment and what it means for each mechanism that answers there.

    Parameters
    ----------
    deployments
        By campaign.
    mechanisms
        By name.
    queries
        Closed; those of speeds are left out, for they are told to one trusted server and nobody else.

    Returns
    -------
    list of dict
        `campaign`, `kind`, `servers`, `paired`, `robust`, `handles`, and `mechanisms`: each with its `parties`, its
        `cost` in bytes, and `learns`, for small coalitions what they can compute about one device over one query, in
        words and as a claim (`epsilon` at δ = 0 and `delta` at ε = 1, null where infinite or unknown).
    """
    described = []
    for campaign, deployment in deployments.items():
        answering = _answering(campaign, queries)
        if not answering:
            continue
        described.append(
            {
                "campaign": campaign,
                "kind": deployment.kind,
                "servers": max(_servers(deployment.parties(mechanisms[name])) for name in answering),
                "paired": bool(getattr(deployment, "paired", False)),
                "robust": bool(getattr(deployment, "robust", False)),
                "handles": getattr(deployment, "handles", None),
                "mechanisms": [
                    _describe(name, deployment, mechanisms[name], devices) for name, devices in answering.items()
                ],
            }
        )
    return described


def deployment_views(
    name: str, deployments: Deployments, mechanism: LocalMechanism, queries: Sequence[Query], repeats: int
) -> Iterator[View]:
    """Yield the views of one mechanism that the deployments of a run create, each once.

    Parameters
    ----------
    name
        The mechanism's.
    deployments
        By campaign.
    mechanism
        The mechanism.
    queries
        Closed.
    repeats
        Queries a device answers. Where it cannot be followed from one to the next, its view is of one.
    """
    told: set[View] = set()
    for campaign, deployment in deployments.items():
        devices = _answering(campaign, queries).get(name)
        if devices is None:
            continue
        seen = [
            deployment.view(coalition, mechanism, devices=devices, queries=repeats)
            for coalition in coalitions(deployment, mechanism)
        ]
        if deployment.kind == "shuffled":
            seen += [Shuffled(round_, devices, queries=repeats) for round_ in range(1, mechanism.rounds + 1)]
        for view in seen:
            if view is not None and view not in told:
                told.add(view)
                yield view


def coalitions(deployment: Deployment, mechanism: LocalMechanism) -> list[Coalition]:
    """Return the coalitions worth telling apart: parties alone, then more and more of them together.

    Servers that hold shares are alike, so of those any k stand for all; among many servers, one, all but one, and all.
    """
    parties = deployment.parties(mechanism)
    servers = tuple(party for party in parties if party.startswith("server:"))
    sizes = range(1, len(servers) + 1)
    if deployment.kind == "secret_shared":
        shown = [k for k in sizes if len(servers) <= FEW_SERVERS or k in {1, len(servers) - 1, len(servers)}]
        found = [servers[:k] for k in shown]
    else:
        found = [*((server,) for server in servers), *(servers[:k] for k in sizes if k > 1)]
    if MIXER in parties:
        found += [(MIXER,), (*servers, MIXER)]
    return [*found, (NETWORK,)] if NETWORK in parties else found


def _answering(campaign: str, queries: Sequence[Query]) -> dict[str, int]:
    """Return the fewest devices that answered a query of a campaign, by mechanism, at least one."""
    fewest: dict[str, int] = {}
    for query in queries:
        if query.campaign != campaign or query.statistic != "count":
            continue
        for answer in query.answers:
            if not answer.rounds:  # refined: nobody was asked for it
                continue
            answered = min(account.answered for account in answer.rounds)
            fewest[answer.mechanism] = max(1, min(answered, fewest.get(answer.mechanism, answered)))
    return fewest


def _servers(parties: Coalition) -> int:
    return sum(party.startswith("server:") for party in parties)


def _describe(name: str, deployment: Deployment, mechanism: LocalMechanism, devices: int) -> dict[str, Any]:
    cost = deployment.cost(mechanism)
    return {
        "mechanism": name,
        "parties": list(deployment.parties(mechanism)),
        "cost": {
            "bytes_up": cost.bytes_up,
            "bytes_down": cost.bytes_down,
            "stored_bytes": dict(cost.stored_bytes),
            "between_servers": cost.between_servers,
            "notes": list(cost.notes),
        },
        "learns": [
            {
                "coalition": list(coalition),
                "words": deployment.learns(coalition, mechanism),
                **_claim(mechanism, deployment.view(coalition, mechanism, devices=devices)),
            }
            for coalition in coalitions(deployment, mechanism)
        ],
    }


def _claim(mechanism: LocalMechanism, view: View | None) -> dict[str, Any]:
    """Return what a mechanism claims of a view, for JSON; of no view, that nothing is learnt."""
    if view is None:
        return {"view": None, "kind": "exact", "epsilon": 0.0, "delta": 0.0, "delta_kind": "exact"}
    claim: PrivacyClaim = mechanism.claim(view)
    delta = claim.delta(EPSILON)
    return {
        "view": view.name,
        "kind": claim.kind,
        "epsilon": float(claim.epsilon) if math.isfinite(claim.epsilon) else None,
        "delta": float(delta) if math.isfinite(delta) else None,
        "delta_kind": claim.delta_kind,
    }
