"""Privacy claims as sentences, and the report's section of claims: what each observer can learn about a driver."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pandas as pd

from simulator.charts.page import Page
from simulator.results.formatting import chance, claimed, number, percent, related, sentence_case
from simulator.results.run import RunResult
from simulator.results.tables import records

_NUMBERS = ("crowd", "k", "colluding", "servers")
_KEYS = ("campaign", "mechanism", "view", "release", "adjacency", "queries", *_NUMBERS)
_COLUMNS = (*_KEYS, "epsilon", "delta", "kind", "basis")
_WEAKEST_FIRST = ("unknown", "infinite", "bound")


@dataclass(frozen=True)
class ViewClaim:
    """
    All claims about one mechanism in one view.

    Parameters
    ----------
    mechanism
        The mechanism's name in the scenario.
    view
        The view's name in `claims.parquet`.
    adjacency
        The change of one device that the claim hides: ``move``, ``enter_leave``, or ``one_value`` for speeds.
    campaign
        The campaign that has a budget, or publishes what the claim is about; None for claims of all campaigns without
        a budget.
    release
        The release that the claim is about, in words; None if it is about none.
    queries
        Number of queries observed together.
    crowd, k, colluding, servers
        The view's parameters; None where it has none.
    epsilon
        The ε that holds at δ = 0; infinite where no finite ε holds, None where it is not known.
    kind
        Kind of that claim: ``exact``, ``bound``, ``infinite`` or ``unknown``.
    deltas
        Pairs (ε, δ), in ascending ε; δ is None where not known.
    delta_kind
        The weakest kind among the claims in `deltas`.
    basis
        What the claim is derived from.
    party
        The observer's name where a deployment has another than the view alone.
    """

    mechanism: str
    view: str
    adjacency: str
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
    campaign: str | None = None
    release: str | None = None
    party: str | None = None

    @property
    def limits(self) -> tuple[object, ...]:
        """The claimed values of ε and δ and their kinds."""
        return self.epsilon, self.kind, self.deltas, self.delta_kind

    @property
    def has_finite_epsilon(self) -> bool:
        """Whether a finite ε holds at δ = 0."""
        return self.kind != "infinite" and self.epsilon is not None and math.isfinite(self.epsilon)

    @property
    def nearest_one(self) -> tuple[float, float | None] | None:
        """The listed ε nearest to 1, and its δ; None where none is listed."""
        return min(self.deltas, key=lambda pair: abs(pair[0] - 1.0), default=None)

    @property
    def constant_delta(self) -> float | None:
        """The δ that is the same at every listed ε where no finite ε holds; None otherwise."""
        values = [delta for _, delta in self.deltas]
        if self.kind != "infinite" or not values or None in values:
            return None
        known = [delta for delta in values if delta is not None]
        return known[0] if max(known) - min(known) <= 1e-9 * max(known) else None


def view_claims(claims: pd.DataFrame) -> list[ViewClaim]:
    """
    Gather the rows of `claims.parquet` by mechanism and view.

    Parameters
    ----------
    claims
        The frame, one row per ε.

    Returns
    -------
    gathered
        In the frame's order.
    """
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in records(claims.reindex(columns=list(_COLUMNS))):
        # In earlier runs, claims about counts with different noise of servers differ only in their basis.
        groups.setdefault(tuple(row[name] for name in (*_KEYS, "basis")), []).append(row)
    return [_gather(rows) for rows in groups.values()]


def worth_reading(claims: list[ViewClaim], *, rounds: int) -> list[ViewClaim]:
    """
    Drop redundant claims for a table.

    Parameters
    ----------
    claims
        One mechanism's claims.
    rounds
        Number of answers the mechanism takes per query. With one answer there is nothing to link and no difference.

    Returns
    -------
    chosen
        The claims that remain; those that are the same for every crowd are merged into one without a crowd, and those
        that are the same for both adjacencies into the one for a move, which bounds the other.
    """
    chosen: dict[tuple[object, ...], ViewClaim] = {}
    for claim in claims:
        alone = [
            other
            for other in chosen.values()
            if other.view.startswith("report") and (other.queries, other.campaign) == (claim.queries, claim.campaign)
        ]
        if rounds == 1 and claim.view == "linked_reports" and claim.limits in [other.limits for other in alone]:
            continue
        if rounds == 1 and claim.view == "released_differences" and claim.kind == "unknown":
            continue
        key = (
            claim.campaign,
            claim.view,
            claim.queries,
            claim.k,
            claim.colluding,
            claim.servers,
            claim.limits,
            claim.release,
        )
        if key in chosen:
            same = chosen[key]
            both = "move" if "move" in {claim.adjacency, same.adjacency} else claim.adjacency
            claim = replace(claim, crowd=claim.crowd if claim.crowd == same.crowd else None, adjacency=both)  # noqa: PLW2901 - the merged claim
        chosen[key] = claim
    return list(chosen.values())


def _gather(rows: list[dict[str, Any]]) -> ViewClaim:
    always = min((row for row in rows if row["delta"] == 0), key=_always_first, default=rows[0])
    rest = [row for row in rows if row is not always]
    pairs = [(row["epsilon"], row["delta"]) for row in rest if row["epsilon"] is not None]
    kind, kinds = always["kind"], {row["kind"] for row in rest}
    return ViewClaim(
        mechanism=always["mechanism"],
        view=always["view"],
        adjacency=always["adjacency"] or "move",
        queries=int(always["queries"] or 1),
        **{name: None if always[name] is None else int(always[name]) for name in _NUMBERS},
        epsilon=math.inf if kind == "infinite" else None if kind == "unknown" else always["epsilon"],
        kind=kind,
        deltas=tuple(sorted(pairs, key=itemgetter(0))),
        delta_kind=next((name for name in _WEAKEST_FIRST if name in kinds), "exact") if rest else kind,
        basis=always["basis"] or "",
        campaign=always["campaign"],
        release=always["release"],
        party=None,
    )


def _always_first(row: dict[str, Any]) -> float:
    """
    Return a sort key for rows with δ = 0: an infinite or unknown ε first, then ε in ascending order.

    The first row is the claim at δ = 0; further rows with δ = 0 are listed values of ε above that of the claim.
    """
    return -1.0 if row["epsilon"] is None or math.isinf(row["epsilon"]) else row["epsilon"]


KIND_WORDS = {
    "exact": "Exact",
    "bound": "Upper bound",
    "infinite": "No finite ε",
    "unknown": "Not known",
}
VALUES = "released_values"
"""The only view that concerns a device's speed and not its location."""
_OBSERVERS = {VALUES: "Any reader of the published speeds", "located_reports": "A server chosen by where you are"}
_ORDINALS = {1: "first", 2: "second", 3: "third"}


def observer(claim: ViewClaim, *, rounds: int = 2) -> str:
    """
    Name the observer of a claim's view.

    Parameters
    ----------
    claim
        The claim.
    rounds
        Number of answers the mechanism takes per query.

    Returns
    -------
    text
        For example ``Two servers that link your two answers``.
    """
    text = claim.party or _observer(claim, rounds)
    text = f"{text}, over {claim.queries} queries" if claim.queries > 1 else text
    return f"{text}, campaign {claim.campaign}" if claim.campaign else text


def _observer(claim: ViewClaim, rounds: int) -> str:
    view, tail = claim.view, claim.view.rpartition("_")[2]
    if view.startswith("report"):
        several = rounds > 1 and tail.isdigit()
        return f"A server that receives {f'only your {_ORDINALS[int(tail)]}' if several else 'your'} answer"
    if view == "linked_reports":
        return {
            2: "Two servers that link your two answers",
            3: "Three servers that link your three answers",
        }.get(rounds, "An observer that knows which answer is yours")
    if view in _OBSERVERS:
        return _OBSERVERS[view]
    if view.startswith("released"):
        what = "counts" if rounds == 1 else "counts of every round"
        what = what if view == "released_counts" else "estimates"
        reader = "Any reader of the published"
        if claim.servers:
            others = claim.servers - (claim.colluding or 0)
            noise = f"with the noise of {others} of {claim.servers} servers"
            reader = f"{claim.colluding} servers that read, {noise}, the published" if claim.colluding else reader
            what += "" if claim.colluding else f", {noise}"
        return f"{reader} {what}{_crowd(claim)}{_suppressed(claim)}"
    if view.startswith("shuffled"):
        which = f"round {tail}’s" if rounds > 1 and tail.isdigit() else "all"
        among = f" among {claim.crowd:,} devices" if claim.crowd else ""
        return f"A server that receives {which} answers shuffled{among}"
    return _sharers(claim) if view == "shares" else view.replace("_", " ").capitalize()


def _sharers(claim: ViewClaim) -> str:
    if not claim.colluding or not claim.servers:
        return "Some servers that combine their shares"
    if claim.colluding == 1:
        return f"One of the {claim.servers} servers that hold shares of your answers"
    return f"{sentence_case(share_holders(claim.colluding, claim.servers))} that combine their shares"


def share_holders(colluding: int, servers: int) -> str:
    """Name several of the servers that hold shares."""
    every = "both servers" if servers == 2 else f"all {servers} servers"
    return every if colluding == servers else f"{colluding} of the {servers} servers"


def _crowd(claim: ViewClaim) -> str:
    if claim.crowd is None:
        return ""
    if claim.crowd == 1:
        return ", if you are alone in your cell"
    least = "at least " if claim.view == "released_counts" and claim.k is None else ""
    return f", if {least}{claim.crowd:,} devices, including yours, are in your cell"


def _suppressed(claim: ViewClaim) -> str:
    return "" if claim.k is None else f", where counts below {claim.k} are left out"


_LARGEST_LIMIT = math.log(1e6)
"""Largest ε that is reported as a limit: odds shifted a millionfold."""
_UNLIMITED = "may learn anything: no limit is proved, so treat it as no protection."


def _no_limit(claim: ViewClaim) -> bool:
    """Return whether every δ is 1, which holds of anything."""
    return all(delta is not None and delta >= 1 - 1e-12 for _, delta in claim.deltas)


def learns(claim: ViewClaim) -> str:
    """
    State what the observer of a claim's view can learn.

    Parameters
    ----------
    claim
        The claim.

    Returns
    -------
    text
        One sentence without its subject, for example ``learns your exact cell with probability 45 %.``
    """
    if claim.kind == "unknown" or claim.epsilon is None:
        return _UNLIMITED
    if claim.kind == "infinite" or math.isinf(claim.epsilon):
        return _learns_without_epsilon(claim)
    if claim.epsilon < 1e-12:
        return "learns nothing about where you are: the observation is equally likely wherever you are."
    shift = _shift(claim, claim.epsilon)
    return f"{shift}; the truth may be better." if claim.kind == "bound" else f"{shift}."


def _shift(claim: ViewClaim, epsilon: float) -> str:
    """State by how much ε lets an observer shift the odds; above `_LARGEST_LIMIT`, that it is no protection."""
    if epsilon > _LARGEST_LIMIT:
        return f"can learn {_unprotected(claim)}: ε = {claimed(epsilon)} is no protection"
    odds = f"can shift the odds between {_alternatives(claim)} at most {number(math.exp(epsilon), up=True)}-fold"
    return f"{odds}{', which is hardly a limit' if epsilon > math.log(1e3) else ''} (ε = {claimed(epsilon)})"


def _learns_without_epsilon(claim: ViewClaim) -> str:
    most = "at most " if claim.delta_kind == "bound" else ""
    constant = claim.constant_delta
    if claim.delta_kind == "bound" and claim.deltas and _no_limit(claim):
        return _UNLIMITED
    if constant is not None and constant >= 1 - 1e-12:
        return f"learns {_unprotected(claim)}, for certain. There is no protection here."
    if constant is not None:
        likely = f"with probability {most}{percent(constant, up=True)}"
        # The sum of all shares is the linked reports.
        cell = claim.view in {"linked_reports", "shares"}
        what = "learns your exact cell" if cell else "learns for certain that you were there"
        what += " at one query or more" if claim.queries > 1 else ""
        return f"{what} {likely}; no ε changes that ({related('δ', '=', constant)} at every ε)."
    pair = _middle(claim.deltas)
    if pair is None:
        return "can sometimes learn where you are for certain; no finite ε holds always."
    epsilon, delta = pair
    likely = chance(delta)
    most = "" if likely.startswith("less than") else most
    return f"{_shift(claim, epsilon)} except with probability {most}{likely}; no ε holds always."


def _unprotected(claim: ViewClaim) -> str:
    return "how fast you drive" if claim.view == VALUES else "where you are"


def _alternatives(claim: ViewClaim) -> str:
    if claim.view == VALUES:
        return "any two speeds at which you might drive"
    return "any two places you might be" if claim.adjacency == "move" else "your being in a cell or outside all cells"


def _middle(deltas: tuple[tuple[float, float | None], ...]) -> tuple[float, float] | None:
    known = [(epsilon, delta) for epsilon, delta in deltas if delta is not None and delta < 1 - 1e-12]
    return min(known, key=lambda pair: abs(pair[0] - 1)) if known else None


def sentence(claim: ViewClaim, *, rounds: int = 2, over: str | None = None, observers: str = "") -> str:
    """
    State who the observer is and what it can learn.

    Parameters
    ----------
    claim
        The claim.
    rounds
        Number of answers the mechanism takes per query.
    over
        How the sentence states the queries that the claim is about, with which it begins; empty for nothing. By default
        the observer's name includes their number.
    observers
        The observers' names, joined by "or", where they are not that of the claim.

    Returns
    -------
    text
        One whole sentence.
    """
    subject = observers or observer(claim if over is None else replace(claim, queries=1, campaign=None), rounds=rounds)
    text, first = learns(claim), subject.rpartition(" or ")[2].split()[0].lower()
    if first in {"two", "three", "some", "all", "both"} or first.isdigit():
        text = text.replace("learns", "learn", 1) if text.startswith("learns") else text
    separator = ", " if ", " in subject and not observers else " "
    text = f"{subject}{separator}{text}"
    return f"{over}, {text[0].lower()}{text[1:]}" if over else text


def one_line(claims: list[ViewClaim], *, rounds: int = 2, queries: int = 1) -> str:
    """
    State in one line what one mechanism's reports to a number of queries reveal about a device.

    Parameters
    ----------
    claims
        One mechanism's claims.
    rounds
        Number of answers the mechanism takes per query.
    queries
        The number of queries.

    Returns
    -------
    text
        For example ``answer 2 alone: ε = 3.2 (exact); linked reports: δ = 0.45 at every ε``.
    """
    chosen = [claim for claim in claims if claim.queries == queries]
    reports = [claim for claim in chosen if claim.view.startswith("report")]
    linked = [claim for claim in chosen if claim.view == "linked_reports"] if rounds > 1 else []
    parts = []
    if reports:
        weakest = weakest_claim(reports)
        tail = weakest.view.rpartition("_")[2]
        name = f"answer {tail} alone" if rounds > 1 and tail.isdigit() else "its answer" + "s" * (queries > 1)
        parts.append(f"{name}: {short_limit(weakest)}")
    parts += [f"linked reports: {short_limit(claim)}" for claim in linked]
    pooled = [claim for claim in chosen if claim.view.startswith(("shares", "shuffled", "released", "located"))]
    if pooled:
        weakest = weakest_claim(pooled)
        shared = f"shares of {share_holders(weakest.colluding or 0, weakest.servers or 0)}"
        names = {"shares": shared, "located": "located reports"}
        parts.append(f"{names.get(weakest.view.partition('_')[0], 'shuffled answers')}: {short_limit(weakest)}")
    return "; ".join(parts) if parts else "no claim was made"


def campaign_lines(claims: list[ViewClaim], *, rounds: int, queries: int, windows: Collection[int] = ()) -> list[str]:
    """
    State what one mechanism reveals over a whole campaign, then over fewer queries.

    Parameters
    ----------
    claims
        The mechanism's claims that hold in the campaign.
    rounds
        Number of answers the mechanism takes per query.
    queries
        Number of queries of the campaign.
    windows
        Further numbers of queries.

    Returns
    -------
    lines
        One for all queries, one for each further number that a claim is about, and one for a single query.
    """
    stated = {claim.queries for claim in claims}
    wanted = [number for number in dict.fromkeys((queries, *sorted(windows, reverse=True), 1)) if number in stated]
    lines = [one_line(claims, rounds=rounds, queries=number) for number in wanted]
    if queries == 1:
        return lines or [one_line([])]
    places = [f"over {number:,} queries" if number > 1 else "in one query" for number in wanted]
    return [f"{place}: {line}" for place, line in zip(places, lines, strict=True)] or [one_line([])]


def weakest_claim(reports: list[ViewClaim]) -> ViewClaim:
    """Return the weakest of some claims: an infinite or unknown ε ranks above any finite one."""
    return max(reports, key=lambda claim: math.inf if claim.epsilon is None else claim.epsilon)


def short_limit(claim: ViewClaim) -> str:
    """State the limit of a claim in a few words, such as ``δ = 0.45 at every ε``."""
    if claim.kind == "unknown" or claim.epsilon is None:
        return "not known"
    if claim.kind != "infinite" and math.isfinite(claim.epsilon):
        return f"ε {'≤' if claim.kind == 'bound' else '='} {claimed(claim.epsilon)} ({claim.kind})"
    sign = "≤" if claim.delta_kind == "bound" else "="
    constant = claim.constant_delta
    if claim.delta_kind == "bound" and claim.deltas and _no_limit(claim):
        return "no limit is proved"
    if constant is not None and constant >= 1 - 1e-12:
        return "everything (δ = 1)"
    if constant is not None:
        return f"{related('δ', sign, constant)} at every ε"
    pair = _middle(claim.deltas)
    return "no finite ε" if pair is None else f"{related('δ', sign, pair[1])} at ε = {claimed(pair[0])}, no finite ε"


def by_crowd(claims: list[ViewClaim]) -> list[list[ViewClaim]]:
    """Return the claims that differ in their crowd only as one list each, the smallest crowd first."""
    groups: dict[tuple[object, ...], list[ViewClaim]] = {}
    for claim in claims:
        key = tuple(getattr(claim, name) for name in (*_KEYS, "kind", "delta_kind") if name != "crowd")
        # A claim for any crowd stands alone: its limits hold without a condition.
        groups.setdefault((*key, claim.crowd is None), []).append(claim)
    return [sorted(group, key=lambda claim: claim.crowd or 0) for group in groups.values()]


def _row_words(alike: list[ViewClaim], *, rounds: int) -> str:
    if len(alike) == 1:
        return sentence(alike[0], rounds=rounds)
    claim = alike[0]
    subject = observer(replace(claim, crowd=None), rounds=rounds)
    where = "among the reports" if claim.view.startswith("shuffled") else "in your cell"
    return (
        f"{subject}, to tell apart {_alternatives(claim)}: "
        f"the limits depend on how many devices, including yours, are {where}."
    )


def claims_section(run: RunResult, _page: Page) -> dict[str, object]:
    """
    State in words what each observer can learn, for each mechanism.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template.
    """
    claims = view_claims(run.claims)
    tables = []
    for name in dict.fromkeys(claim.mechanism for claim in claims):
        rounds, seen = run.rounds_of(name), run.views_seen(name)
        own = worth_reading([claim for claim in claims if claim.mechanism == name], rounds=rounds)
        own = [
            claim
            if seen is None or claim.view in seen or not claim.view.startswith(("report", "linked"))
            else replace(claim, party=f"{_observer(claim, rounds)} (none in this run)")
            for claim in own
        ]
        epsilons = sorted({epsilon for claim in own for epsilon, _ in claim.deltas})
        rows = []
        for alike in by_crowd(own):
            deltas = [[dict(claim.deltas).get(at) for claim in alike] for at in epsilons]
            rows.append((_row_words(alike, rounds=rounds), alike, deltas))
        tables.append((run.label(name), epsilons, rows))
    return {"tables": tables, "kinds": KIND_WORDS}
