"""Privacy claims of a run as values, read from the columns of `claims.parquet`, and which of them are worth reading."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from simulator.results.formatting import claimed
from simulator.results.tables import records

VALUES = "released_values"
"""The only view that concerns a device's speed and not its location."""
LINKED, PUBLISHED = "linked_reports", "published"
"""The views of a whole run: all that a device sends, and all that is published."""
_NUMBERS = ("crowd", "suppressed_below", "colluding", "servers")
_KEYS = ("campaign", "campaigns", "mechanism", "view", "release", "adjacency", "queries", *_NUMBERS)
_WEAKEST_FIRST = ("unknown", "infinite", "bound")
_NEARLY_ONE = 1 - 1e-12


class Reason(StrEnum):
    """Why published values have no better claim than a device's linked reports."""

    ROUNDS_DIFFER = "rounds_differ"
    SERVERS_COMBINE = "servers_combine"


class Limit(NamedTuple):
    """
    What a claim says of its observer.

    Parameters
    ----------
    code
        ``unknown``: nothing is proved. ``unlimited``: nothing better than δ = 1 is proved. ``everything``: δ = 1 is
        reached. ``constant``: δ is the same at every ε. ``except``: ε holds except with probability δ. ``never``: no
        finite ε holds (none is known, of a claim of kind ``bound``), and no δ is known. ``always``: ε holds at δ = 0.
    epsilon, delta
        The limit; NaN where the code states it.
    """

    code: str
    epsilon: float = math.nan
    delta: float = math.nan


@dataclass(frozen=True)
class Claim:
    """
    All claims about one mechanism in one view.

    Parameters
    ----------
    mechanism
        The mechanism's name in the scenario.
    view
        The view's name in `claims.parquet`.
    adjacency
        The change of one device that the claim hides: ``move``, ``enter_leave``, ``add_remove``, or ``one_value`` for
        speeds.
    queries
        Number of queries observed together.
    crowd, suppressed_below, colluding, servers
        The view's parameters, of which the second is the column `k`; None where it has none.
    epsilon
        The ε that holds at δ = 0; infinite where no finite ε holds, None where it is not known.
    kind
        Kind of that claim: ``exact``, ``bound``, ``infinite`` or ``unknown``.
    curve
        Pairs (ε, δ), in ascending ε; δ is None where not known.
    delta_kind
        The weakest kind among the claims in `curve`.
    basis
        What the claim is derived from, in words to be shown.
    reason
        Why there is no better claim; None where there is no such reason.
    campaign
        The campaign that has a budget, or publishes what the claim is about; None for claims of all campaigns without
        a budget.
    campaigns
        All campaigns of the mechanism, of which the claim is together; None for claims that hold in one campaign.
    release
        The release that the claim is about; None if it is about none.
    rounds
        Number of answers the mechanism takes per query.
    seen
        Whether any party of the run has the view.
    one_server
        Whether a single server has the view: it receives all answers of a device, or all answers shuffled.
    """

    mechanism: str
    view: str
    adjacency: str
    queries: int
    crowd: int | None
    suppressed_below: int | None
    colluding: int | None
    servers: int | None
    epsilon: float | None
    kind: str
    curve: tuple[tuple[float, float | None], ...]
    delta_kind: str
    basis: str
    reason: Reason | None = None
    campaign: str | None = None
    campaigns: str | None = None
    release: str | None = None
    rounds: int = 2
    seen: bool = True
    one_server: bool = False

    @property
    def family(self) -> str:
        """The view's name without its round."""
        return self.view.partition("_round_")[0]

    @property
    def round(self) -> str:
        """The number of the view's round where the mechanism has several; empty otherwise."""
        return self.view.partition("_round_")[2] if self.rounds > 1 else ""

    @property
    def of_reports(self) -> bool:
        """Whether the view is of a device's own reports."""
        return self.family in {"report", "linked_reports"}

    @property
    def tells_cell(self) -> bool:
        """Whether an observer that is certain of a device knows its cell: the sum of all shares is linked reports."""
        return self.family in {"linked_reports", "shares"}

    @property
    def limits(self) -> tuple[object, ...]:
        """The claimed values of ε and δ and their kinds."""
        return self.epsilon, self.kind, self.curve, self.delta_kind

    @property
    def has_finite_epsilon(self) -> bool:
        """Whether a finite ε holds at δ = 0. If none is, a claim of kind ``bound`` leaves open whether one holds."""
        return self.epsilon is not None and math.isfinite(self.epsilon)

    @property
    def nearest_one(self) -> tuple[float, float | None] | None:
        """The listed ε nearest to 1, and its δ; None where none is listed."""
        return min(self.curve, key=_from_one, default=None)

    @property
    def constant_delta(self) -> float | None:
        """The δ that is the same at every listed ε where no finite ε holds; None otherwise."""
        values = [delta for _, delta in self.curve if delta is not None]
        if self.has_finite_epsilon or not values or len(values) < len(self.curve):
            return None
        return values[0] if max(values) - min(values) <= 1e-9 * max(values) else None

    @property
    def limit(self) -> Limit:
        """What the claim says of its observer."""
        if self.kind == "unknown" or self.epsilon is None:
            return Limit("unknown")
        if self.has_finite_epsilon:
            return Limit("always", self.epsilon)
        constant = self.constant_delta
        known = [(epsilon, delta) for epsilon, delta in self.curve if delta is not None]
        below_one = [(epsilon, delta) for epsilon, delta in known if delta < _NEARLY_ONE]
        if self.delta_kind == "bound" and self.curve and len(known) == len(self.curve) and not below_one:
            return Limit("unlimited")
        if constant is not None:
            return Limit("everything") if constant >= _NEARLY_ONE else Limit("constant", delta=constant)
        return Limit("except", *min(below_one, key=_from_one)) if below_one else Limit("never")

    @property
    def stated(self) -> tuple[object, ...]:
        """The limit with its numbers as they are written, and what they are about: equal for equal words."""
        code, *numbers = self.limit
        return code, *map(claimed, numbers), self.kind, self.delta_kind, self.tells_cell, self.adjacency


def _from_one(pair: tuple[float, object]) -> float:
    return abs(pair[0] - 1.0)


def claims_in(table: pd.DataFrame, rounds: Mapping[str, int] | None = None) -> list[Claim]:
    """
    Gather the rows of `claims.parquet` by mechanism and view.

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
    table = with_rows_at_delta_zero(table).rename(columns={"k": "suppressed_below"})
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in records(table.reindex(columns=[*_KEYS, "at_delta_zero", "epsilon", "delta", "kind", "basis", "reason"])):
        groups.setdefault(tuple(row[name] for name in _KEYS), []).append(row)
    return [_gather(rows, (rounds or {}).get(rows[0]["mechanism"], 2)) for rows in groups.values()]


def _gather(rows: list[dict[str, Any]], rounds: int) -> Claim:
    always = next((row for row in rows if row["at_delta_zero"]), rows[0])
    rest = [row for row in rows if row is not always]
    pairs = [(row["epsilon"], row["delta"]) for row in rest if row["epsilon"] is not None]
    kind, kinds = always["kind"], {row["kind"] for row in rest}
    given = {name: always[name] for name in _KEYS}
    given |= {name: int(always[name]) for name in _NUMBERS if always[name] is not None}
    return Claim(
        **{**given, "adjacency": always["adjacency"] or "move", "queries": int(always["queries"] or 1)},
        epsilon=None if kind == "unknown" else math.inf if kind == "infinite" else always["epsilon"],
        kind=kind,
        curve=tuple(sorted(pairs, key=itemgetter(0))),
        delta_kind=next((name for name in _WEAKEST_FIRST if name in kinds), "exact") if rest else kind,
        basis=always["basis"] or "",
        reason=always["reason"] and Reason(always["reason"]),
        rounds=rounds,
    )


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
        first[order] = ~claims.iloc[order].duplicated([name for name in ("key", *_KEYS, "k") if name in claims])
        marked = marked.where(marked.notna(), first)
    return claims.assign(campaigns=campaigns, at_delta_zero=marked.astype(bool))


def weakest_claim(claims: Iterable[Claim]) -> Claim:
    """Return the weakest of some claims: an infinite or unknown ε ranks above any finite one."""
    return max(claims, key=lambda claim: math.inf if claim.epsilon is None else claim.epsilon)


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
    same_for = attrgetter(
        "mechanism", "campaign", "view", "queries", "suppressed_below", "colluding", "servers", "limits", "release"
    )
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
    same_for = attrgetter(*(name for name in _KEYS if name != "crowd"), "kind", "delta_kind")
    groups: dict[tuple[object, ...], list[Claim]] = {}
    for claim in claims:
        # A claim for any crowd stands alone: its limits hold without a condition.
        groups.setdefault((*same_for(claim), claim.crowd is None), []).append(claim)
    return [sorted(group, key=lambda claim: claim.crowd or 0) for group in groups.values()]
