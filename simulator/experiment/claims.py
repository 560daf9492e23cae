"""Claims: what every mechanism proves about every view, as a table."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from mechanisms.local import LocalMechanism
from mechanisms.privacy import (
    LinkedReports,
    PrivacyClaim,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
)
from simulator.aggregation.deployment import Deployment
from simulator.experiment.deployment_facts import deployment_views
from simulator.experiment.release_claims import released_claims
from simulator.experiment.releases import CampaignRelease
from simulator.sensing.query import Query

COLUMNS = (
    "mechanism",
    "view",
    "queries",
    "crowd",
    "k",
    "colluding",
    "servers",
    "epsilon",
    "delta",
    "kind",
    "basis",
)

PARAMETERS = ("queries", "crowd", "k", "colluding", "servers")
"""What a view may have."""


def tabulate_claims(
    mechanisms: Mapping[str, LocalMechanism],
    *,
    epsilons: Sequence[float],
    queries: Sequence[int],
    crowds: Sequence[int],
    releases: Mapping[str, CampaignRelease],
    deployments: Mapping[str, Deployment] | None = None,
    closed: Sequence[Query] = (),
) -> pd.DataFrame:
    """Ask every mechanism for its claim on every view, and every release for its own.

    What is published through a release has that release's claim, whose basis names the campaigns and the release:
    `released_counts` for a mechanism whose server holds exact counts, `released_differences` for Sampling Privacy,
    and `released_values` for a statistic of speeds, whose neighbours differ in one device's speed and not in where it
    is. A crowd of null is "whatever the crowd". Of reports the server itself still sees all there is.

    Parameters
    ----------
    mechanisms
        By name.
    epsilons
        Where δ is reported.
    queries
        Numbers of queries a device answers.
    crowds
        Devices in the cell, for views of released counts.
    releases
        By campaign.
    deployments
        By campaign; the views they create, shares and shuffled reports, have rows too. Of shuffled reports `crowd` is
        the devices among which they are, the fewest that answered.
    closed
        Closed queries: which mechanisms answered where, and how many devices.

    Returns
    -------
    pandas.DataFrame
        The columns of `claims.parquet`: per view one row at δ = 0 (ε = inf and kind "infinite" where none is
        finite) and one for each of `epsilons` with its δ. Parameters that a view lacks, and what is unknown, are
        null.
    """
    rows: list[dict[str, object]] = []
    for name, mechanism in mechanisms.items():
        as_it_is = any(r.statistic == "count" and name not in r.counts for r in releases.values())
        for repeats in queries:
            views = list(_views(mechanism, repeats, crowds if as_it_is else ()))
            made = deployment_views(name, deployments or {}, mechanism, closed, repeats)
            for view in [*views, *(view for view in made if isinstance(view, Shares | Shuffled))]:
                seen = {field: getattr(view, field, None) for field in PARAMETERS}
                if isinstance(view, Shuffled):
                    seen["crowd"] = view.devices
                rows += _rows(name, view.name, seen, mechanism.claim(view), epsilons)
            for view_name, place, claim in released_claims(name, mechanism, releases.values(), repeats, crowds):
                rows += _rows(name, view_name, {"queries": repeats, **place}, claim, epsilons)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = dict.fromkeys(PARAMETERS, "Int64")
    return table.astype({**whole, "epsilon": "float64", "delta": "float64"})


def _views(mechanism: LocalMechanism, queries: int, crowds: Sequence[int]) -> Iterator[View]:
    for round_ in range(1, mechanism.rounds + 1):
        yield Report(round_, queries=queries)
    yield LinkedReports(queries=queries)
    if mechanism.rounds > 1:  # one round alone has no differences to publish
        for crowd in crowds:
            yield ReleasedDifferences(crowd, queries=queries)
    for crowd in crowds:
        yield ReleasedCounts(crowd, queries=queries)


def _rows(
    name: str, view: str, parameters: Mapping[str, int | None], claim: PrivacyClaim, epsilons: Sequence[float]
) -> Iterator[dict[str, object]]:
    place = {
        "mechanism": name,
        "view": view,
        **{field: parameters.get(field) for field in PARAMETERS},
        "basis": claim.basis,
    }
    if claim.kind == "unknown":
        yield {**place, "epsilon": np.nan, "delta": np.nan, "kind": "unknown"}
        return
    yield {**place, "epsilon": claim.epsilon, "delta": 0.0, "kind": claim.kind}
    for epsilon in epsilons:
        # Where no finite ε exists at δ = 0, δ at a finite ε is still a number with its own standing.
        yield {**place, "epsilon": epsilon, "delta": claim.delta(epsilon), "kind": claim.delta_kind}
