"""Privacy claims of a run, read from the rows of `claims.parquet`, and which of them are worth reading."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from mechanisms.privacy.claim import SUBJECT, Claim
from simulator.results.tables import records

VALUES = "released_values"
"""The only view that concerns a device's speed and not its location."""
LINKED, PUBLISHED, RECEIVED = "linked_reports", "published", "received"
"""The views of a whole run: all that a device sends, all that is published, and all that a coalition stores of it."""


def claims_in(table: pd.DataFrame, rounds: Mapping[str, int] | None = None) -> list[Claim]:
    """
    Return the claims in a table of a run or of a study, each from the rows of its mechanism and view.

    Parameters
    ----------
    table
        The frame, one row per ε.
    rounds
        By mechanism, its number of answers per query; 2 where it is not given.

    Returns
    -------
    claims
        In the frame's order.
    """
    columns = ["key", *SUBJECT, "at_delta_zero", "epsilon", "delta", "kind", "basis", "reason"]
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in records(with_rows_at_delta_zero(table).reindex(columns=columns)):
        groups.setdefault((row["key"], *(row[name] for name in SUBJECT)), []).append(row)
    rounds = rounds or {}
    return [Claim.from_rows(rows, rounds=rounds.get(rows[0]["mechanism"], 2)) for rows in groups.values()]


def with_rows_at_delta_zero(claims: pd.DataFrame) -> pd.DataFrame:
    """
    Return a table of claims, of a run or a study, with the columns of this version that say what its rows are.

    Earlier versions do not mark the row of a claim at δ = 0. Of its rows of least δ, it is the one with an infinite or
    unknown ε, or else with the least: δ of other rows may be 0 too.
    """
    absent = pd.Series(None, index=claims.index, dtype=object)
    marked, campaigns = (claims.get(name, absent) for name in ("at_delta_zero", "campaigns"))
    if marked.isna().any():
        epsilon = claims["epsilon"].where(np.isfinite(claims["epsilon"]), -1.0)
        order = np.lexsort((epsilon, claims["delta"].fillna(0.0)))
        first = np.empty(len(claims), dtype=bool)
        first[order] = ~claims.iloc[order].duplicated([name for name in ("key", *SUBJECT) if name in claims])
        marked = marked.where(marked.notna(), first)
    return claims.assign(campaigns=campaigns, at_delta_zero=marked.astype(bool))


def worth_reading(claims: Iterable[Claim]) -> list[Claim]:
    """
    Drop redundant claims for a table: with one answer per query there is nothing to link and no difference.

    Parameters
    ----------
    claims
        The claims.

    Returns
    -------
    chosen
        The claims that remain; those that are the same for every crowd are merged into one without a crowd, and those
        that are the same for both adjacencies into the one for a move, which bounds the other.
    """
    same_for = attrgetter("mechanism", "campaign", "view", "queries", "k", "colluding", "servers", "limits", "release")
    of_same = attrgetter("mechanism", "queries", "campaign")
    chosen: dict[tuple[object, ...], Claim] = {}
    for claim in claims:
        alone = [
            other.limits for other in chosen.values() if other.family == "report" and of_same(other) == of_same(claim)
        ]
        unlinked = claim.view == "linked_reports" and claim.limits in alone
        no_difference = claim.view == "released_differences" and claim.kind == "unknown"
        if claim.rounds == 1 and (unlinked or no_difference):
            continue
        key, merged = (*same_for(claim), claim.adjacency == "add_remove"), claim
        if key in chosen:
            same = chosen[key]
            both = "move" if "move" in {claim.adjacency, same.adjacency} else claim.adjacency
            merged = replace(claim, crowd=claim.crowd if claim.crowd == same.crowd else None, adjacency=both)
        chosen[key] = merged
    return list(chosen.values())


def by_crowd(claims: Iterable[Claim]) -> list[list[Claim]]:
    """Return the claims that differ in their crowd only as one list each, the smallest crowd first."""
    same_for = attrgetter(*(name for name in SUBJECT if name != "crowd"), "kind", "delta_kind")
    groups: dict[tuple[object, ...], list[Claim]] = {}
    for claim in claims:
        # A claim for any crowd stands alone: its limits hold without a condition.
        groups.setdefault((*same_for(claim), claim.crowd is None), []).append(claim)
    return [sorted(group, key=lambda claim: claim.crowd or 0) for group in groups.values()]
