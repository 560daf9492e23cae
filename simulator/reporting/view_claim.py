"""All that is claimed about one mechanism in one view, gathered from the rows of `claims.parquet`."""

import math
from dataclasses import dataclass, replace
from operator import itemgetter

import pandas as pd

from simulator.reporting.numerals import real

_NAMES = ("mechanism", "view")
_KEYS = (*_NAMES, "queries", "crowd", "k", "colluding", "servers")
_WEAKEST_FIRST = ("unknown", "infinite", "bound")


@dataclass(frozen=True)
class ViewClaim:
    """
    All that is claimed about one mechanism in one view.

    Parameters
    ----------
    mechanism
        The mechanism's name in the scenario.
    view
        What is seen, as `claims.parquet` calls it.
    queries
        Over how many queries.
    crowd, k, colluding, servers
        The view's parameters; None where it has none.
    epsilon
        The ε that holds always (δ = 0); infinite where none is finite, None where not known.
    kind
        How good that statement is: ``exact``, ``bound``, ``infinite`` or ``unknown``.
    deltas
        Pairs (ε, δ), in ascending ε; δ is None where not known.
    delta_kind
        How good those are.
    basis
        Where it comes from.
    """

    mechanism: str
    view: str
    queries: int
    crowd: int | None
    k: int | None
    colluding: int | None
    servers: int | None
    epsilon: float | None
    kind: str
    deltas: tuple[tuple[float, float | None], ...]
    delta_kind: str
    basis: str

    @property
    def constant_delta(self) -> float | None:
        """The δ that is the same at every ε listed, where there is no finite ε; else None."""
        values = [delta for _, delta in self.deltas]
        if self.kind != "infinite" or not values or None in values:
            return None
        known = [delta for delta in values if delta is not None]
        return known[0] if max(known) - min(known) <= 1e-9 * max(known) else None


def _whole(value: object) -> int | None:
    known = real(value)
    return None if known is None else int(known)


def view_claims(claims: pd.DataFrame) -> list[ViewClaim]:
    """
    Gather the rows of `claims.parquet` by mechanism and view.

    Parameters
    ----------
    claims
        The frame, one row an ε.

    Returns
    -------
    gathered
        In the frame's order.
    """
    groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for record in claims.to_dict("records"):
        row = {str(key): value for key, value in record.items()}
        # Two releases of one view differ in what they are based on.
        key = (*(row[name] if name in _NAMES else _whole(row.get(name)) for name in _KEYS), row.get("basis"))
        groups.setdefault(key, []).append(row)
    return [_gather(rows) for rows in groups.values()]


def worth_reading(claims: list[ViewClaim], *, rounds: int) -> list[ViewClaim]:
    """
    Leave out what says nothing new: for a table that a person reads.

    Parameters
    ----------
    claims
        One mechanism's claims.
    rounds
        How many answers it takes per query: of one answer there is nothing to link, and no difference.

    Returns
    -------
    chosen
        The claims, with those that are the same for every crowd as one without a crowd.
    """
    chosen: dict[tuple[object, ...], ViewClaim] = {}
    for claim in claims:
        what = (claim.epsilon, claim.kind, claim.deltas, claim.delta_kind)
        alone = [other for other in chosen.values() if other.view.startswith("report")]
        known = [
            (other.epsilon, other.kind, other.deltas, other.delta_kind)
            for other in alone
            if other.queries == claim.queries
        ]
        if rounds == 1 and claim.view == "linked_reports" and what in known:
            continue
        if rounds == 1 and claim.view == "released_differences" and claim.kind == "unknown":
            continue
        key = (claim.view, claim.queries, claim.k, claim.colluding, claim.servers, *what)
        chosen[key] = replace(claim, crowd=None) if key in chosen else claim
    return list(chosen.values())


def _gather(rows: list[dict[str, object]]) -> ViewClaim:
    always = min((row for row in rows if real(row["delta"]) == 0), key=_always_first, default=rows[0])
    rest = [row for row in rows if row is not always]
    pairs = [(epsilon, real(row["delta"])) for row in rest if (epsilon := real(row["epsilon"])) is not None]
    kind, kinds = str(always["kind"]), {str(row["kind"]) for row in rest}
    epsilon = math.inf if kind == "infinite" else None if kind == "unknown" else real(always["epsilon"])
    return ViewClaim(
        mechanism=str(always["mechanism"]),
        view=str(always["view"]),
        queries=_whole(always.get("queries")) or 1,
        crowd=_whole(always.get("crowd")),
        k=_whole(always.get("k")),
        colluding=_whole(always.get("colluding")),
        servers=_whole(always.get("servers")),
        epsilon=epsilon,
        kind=kind,
        deltas=tuple(sorted(pairs, key=itemgetter(0))),
        delta_kind=next((name for name in _WEAKEST_FIRST if name in kinds), "exact") if rest else kind,
        basis=str(always.get("basis") or ""),
    )


def _always_first(row: dict[str, object]) -> float:
    """Order rows with δ = 0: an infinite or unknown ε, then the least; others are listed ε already above it."""
    epsilon = real(row["epsilon"])
    return -1.0 if epsilon is None or math.isinf(epsilon) else epsilon
