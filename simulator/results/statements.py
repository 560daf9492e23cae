"""The only maker of sentences: claims, their reasons and notes of a run in words."""

import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from mechanisms.privacy.claim import Claim, Reason
from simulator.files.messages import Note
from simulator.results.claims import LINKED, PUBLISHED, RECEIVED, VALUES
from simulator.results.formatting import (
    LEAST_CHANCE,
    at_least,
    chance,
    claimed,
    inner_case,
    listed,
    number,
    of_hundred,
    percent,
    related,
    sentence_case,
)
from simulator.results.names import OwnerNames

_ALWAYS = attrgetter("epsilon")

REASONS = {
    Reason.ROUNDS_DIFFER: "Rounds counted different devices",
    Reason.SERVERS_COMBINE: "Servers are combined other than by addition",
}


def say(value: Claim | Note | Reason) -> str:
    """State a value of this module in words: a claim in one whole sentence, whose limit `short_limit` has in brief."""
    match value:
        case Claim():
            return sentence(value)
        case Reason():
            return REASONS[value]
    return value.text


class Subject(NamedTuple):
    """The observers of a sentence: what they are, with the clauses that say when, and whether they are several."""

    parts: tuple[str, ...]
    several: bool = False

    def __str__(self) -> str:
        return ", ".join(self.parts)


_ORDINALS = {"": "", "1": "first", "2": "second", "3": "third"}
_COUNTS = {2: "two", 3: "three"}
_OBSERVERS = {
    "report": "A server that receives a device’s answer",
    "report_of_round": "A server that receives only the {ordinal} answer of a device",
    "known_report": "An observer that knows which device sent an answer",
    "linked_reports": "{Answers} servers that link the {answers} answers of a device",
    "linked_by_one": "A server that receives the {answers} answers of a device",
    "located_reports": "A server chosen by where a device is",
    "linked_campaigns": "An observer that links all that a device sends in {campaigns}",
    "received": "{coalition}, pooling all that they stored in {campaigns}",
    "published": "Any reader of all that is published in {campaigns}",
    "released_counts": "Any reader of the published {what}",
    "released_differences": "Any reader of the published {what}",
    "released_values": "Any reader of the published speeds",
    "reading_servers": "{colluding} servers that read",
    "shuffled": "A server that receives {which} answers shuffled{among}",
    "shares": "Some servers that combine their shares",
    "one_share": "One of the {servers} servers that hold shares of a device’s answers",
    "several_shares": "{holders} that combine their shares",
}
"""Who observes, by its code."""
_SEVERAL = ("received", "linked_reports", "reading_servers", "shares", "several_shares")
"""Codes of observers that are several."""


def subject_of(claim: Claim) -> Subject:
    """Return the observer of a claim's view, as in ``Two servers that link the two answers of a device``."""
    code, answers = _observer_code(claim), _COUNTS.get(claim.rounds, str(claim.rounds))
    what = (
        "estimates" if claim.view != "released_counts" else "counts" if claim.rounds == 1 else "counts of every round"
    )
    name = _OBSERVERS.get(code, sentence_case(claim.view.replace("_", " "))).format(
        ordinal=_ORDINALS[claim.round],
        answers=answers,
        Answers=sentence_case(answers),
        what=what,
        which=f"round {claim.round}’s" if claim.round else "all",
        among=f" among {claim.crowd:,} devices" if claim.crowd else "",
        colluding=claim.colluding,
        servers=claim.servers,
        holders=sentence_case(share_holders(claim.colluding or 0, claim.servers or 0)),
        campaigns=campaigns_of(claim),
        coalition=sentence_case(coalition_of(claim)),
    )
    parts = [name if claim.seen else f"{name} (none in this run)"]
    if code in {"released_counts", "released_differences", "reading_servers"}:
        if claim.servers:
            parts.append(f"with the noise of {claim.servers - (claim.colluding or 0)} of {claim.servers} servers")
        if code == "reading_servers":
            parts.append(f"the published {what}")
        parts += _crowd(claim)
    parts += [f"over {claim.queries} queries"] * (claim.queries > 1)
    return Subject((*parts, *([f"campaign {claim.campaign}"] if claim.campaign else [])), code in _SEVERAL)


def _observer_code(claim: Claim) -> str:
    code = claim.family
    match code:
        case "linked_reports" if claim.campaigns:
            code = "linked_campaigns"
        case "report" if claim.round:
            code = "report_of_round"
        case "linked_reports" if claim.one_server:
            code = "linked_by_one"
        case "linked_reports" if claim.rounds not in _COUNTS:
            code = "known_report"
        case "released_counts" if claim.one_server:
            code = "shuffled"
        case "released_counts" if claim.servers and claim.colluding:
            code = "reading_servers"
        case "shares" if claim.servers and claim.colluding:
            code = "one_share" if claim.colluding == 1 else "several_shares"
    return code


def _crowd(claim: Claim) -> list[str]:
    """Return the clauses on who else is in the cell, and on what is left out."""
    clauses = [] if claim.k is None else [f"where counts below {claim.k} are left out"]
    if claim.crowd == 1:
        return ["if the device is alone in its cell", *clauses]
    if claim.crowd is not None:
        least = "at least " if claim.view == "released_counts" and claim.k is None else ""
        return [f"if {least}{claim.crowd:,} devices, including this one, are in its cell", *clauses]
    return clauses


def campaigns_of(claim: Claim) -> str:
    """Name the campaigns that a claim is about together, by their number."""
    several = (claim.campaigns or "").count(",") + 1
    return {1: f"campaign {claim.campaigns}", 2: "both campaigns"}.get(several, f"all {several} campaigns")


def coalition_of(claim: Claim) -> str:
    """Name the parties of operators that a claim is about together."""
    words = (claim.coalition or "").replace("operator:*/*", "all operators").replace("/*", "")
    return words.replace("operator:", "operator ").replace(", ", " and ")


def share_holders(colluding: int, servers: int) -> str:
    """Name several of the servers that hold shares."""
    every = "both servers" if servers == 2 else f"all {servers} servers"
    return every if colluding == servers else f"{colluding} of the {servers} servers"


_LARGEST_LIMIT = math.log(1e6)
"""Largest ε that is reported as a limit: odds shifted a millionfold."""
_HARDLY_A_LIMIT = math.log(1e3)


def learns(claim: Claim, *, several: bool = False) -> str:
    """
    State what the observer of a claim's view can learn.

    Parameters
    ----------
    claim
        The claim.
    several
        Whether the subject is plural.

    Returns
    -------
    text
        A sentence without its subject and full stop, for example ``learns the device’s exact cell with probability
        45 %``.
    """
    code, epsilon, delta = claim.limit
    verb, most = "learn" if several else "learns", "at most " if claim.delta_kind == "bound" else ""
    text = "may learn anything: no limit is proved, so treat it as no protection"
    never = "no ε holds always" if claim.kind == "infinite" else "no ε is known to hold always"
    match code:
        case "everything":
            text = f"{verb} {_unprotected(claim)}, for certain. There is no protection here"
        case "constant":
            what = "the device’s exact cell" if claim.tells_cell else "for certain that the device was there"
            what += " at one query or more" if claim.queries > 1 else ""
            likely = f"with probability {most}{percent(delta, up=True)}"
            text = f"{verb} {what} {likely}; no ε changes that ({related('δ', '=', delta)} at every ε)"
        case "never":
            text = f"can sometimes learn where the device is for certain; {never.replace('ε', 'finite ε')}"
        case "except":
            most = "" if 0 < delta < LEAST_CHANCE else most
            text = f"{_shift(claim, epsilon)} except with probability {most}{chance(delta)}; {never}"
        case "always" if epsilon < 1e-12:
            text = f"{verb} nothing about where the device is: the observation is equally likely wherever it is"
        case "always":
            text = f"{_shift(claim, epsilon)}{'; the truth may be better' if claim.kind == 'bound' else ''}"
    return text


def _shift(claim: Claim, epsilon: float) -> str:
    """State by how much ε lets an observer shift the odds; above `_LARGEST_LIMIT`, that it is no protection."""
    if epsilon > _LARGEST_LIMIT:
        return f"can learn {_unprotected(claim)}: ε = {claimed(epsilon)} is no protection"
    odds = f"can shift the odds between {_alternatives(claim)} at most {number(math.exp(epsilon), up=True)}-fold"
    return f"{odds}{', which is hardly a limit' if epsilon > _HARDLY_A_LIMIT else ''} (ε = {claimed(epsilon)})"


def _unprotected(claim: Claim) -> str:
    return "how fast the device drives" if claim.view == VALUES else "where the device is"


def _alternatives(claim: Claim) -> str:
    if claim.view == VALUES:
        return "any two speeds at which the device might drive"
    return {
        "move": "any two places where the device might be",
        "add_remove": "the device’s taking part in a cell or not at all, where no number of devices is published,",
    }.get(claim.adjacency, "the device’s being in a cell or outside all cells")


_SHORT = {
    "unknown": "not known",
    "unlimited": "no limit is proved",
    "everything": "everything (δ = 1)",
    "constant": "{delta} at every ε",
    "except": "{delta} at ε = {epsilon}, {never}",
    "never": "{never}",
    "always": "ε {sign} {epsilon} ({kind})",
}
"""A limit in a few words, by its code."""


def short_limit(claim: Claim) -> str:
    """State the limit of a claim in a few words, such as ``δ = 0.45 at every ε``."""
    code, epsilon, delta = claim.limit
    sign = "≤" if (claim.kind if code == "always" else claim.delta_kind) == "bound" else "="
    never = "no finite ε" if claim.kind == "infinite" else "no finite ε known"
    values = {"epsilon": claimed(epsilon), "delta": related("δ", sign, delta), "kind": claim.kind, "never": never}
    return _SHORT[code].format(sign=sign, **values)


def wording_key(claim: Claim) -> tuple[object, ...]:
    """Return the limit with its numbers as they are written, and what they are about: equal for equal words."""
    code, *numbers = claim.limit
    return code, *map(claimed, numbers), claim.kind, claim.delta_kind, claim.tells_cell, claim.adjacency


def sentence(claim: Claim, *, over: str | None = None, subject: Subject | None = None, end: str = "") -> str:
    """
    State who the observer is and what it can learn.

    Parameters
    ----------
    claim
        The claim.
    over
        How the sentence states the queries that the claim is about, with which it begins; empty for nothing. By default
        the observer's name includes their number.
    subject
        The observers, if there are others than the claim's.
    end
        What the sentence says after its limit.

    Returns
    -------
    text
        One whole sentence.
    """
    who = subject or subject_of(claim if over is None else replace(claim, queries=1, campaign=None))
    text = f"{who}{', ' if len(who.parts) > 1 else ' '}{learns(claim, several=who.several)}{end}."
    return f"{over}, {inner_case(text)}" if over else text


def one_line(claims: Iterable[Claim], *, queries: int = 1) -> str:
    """
    State in one line what one mechanism's reports to a number of queries reveal about a device.

    Parameters
    ----------
    claims
        One mechanism's claims.
    queries
        The number of queries.

    Returns
    -------
    text
        For example ``answer 2 alone: ε = 3.2 (exact); linked reports: δ = 0.45 at every ε``.
    """
    chosen = [claim for claim in claims if claim.queries == queries]
    reports = [claim for claim in chosen if claim.family == "report"]
    linked = [claim for claim in chosen if claim.view == "linked_reports"]
    pooled = [claim for claim in chosen if claim.family in _POOLED]
    parts = []
    if reports:
        weakest = max(reports, key=_ALWAYS)
        name = f"answer {weakest.round} alone" if weakest.round else "its answer" + "s" * (queries > 1)
        parts.append(f"{name}: {short_limit(weakest)}")
    parts += [f"linked reports: {short_limit(claim)}" for claim in linked if claim.rounds > 1]
    if pooled:
        weakest = max(pooled, key=_ALWAYS)
        shared = f"shares of {share_holders(weakest.colluding or 0, weakest.servers or 0)}"
        parts.append(f"{_POOLED[weakest.family] or shared}: {short_limit(weakest)}")
    return "; ".join(parts) or "no claim was made"


_POOLED = {
    "shares": "",
    "located_reports": "located reports",
    **dict.fromkeys(("shuffled", "released_counts", "released_differences", VALUES), "shuffled answers"),
}
"""What reveals something of reports mixed with others, by the view's family; shares are named by their number."""


def campaign_lines(claims: Sequence[Claim], *, queries: int, windows: Collection[int] = ()) -> list[str]:
    """
    State what one mechanism reveals over a whole campaign, then over fewer queries.

    Parameters
    ----------
    claims
        The mechanism's claims that hold in the campaign.
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
    lines = []
    for seen in dict.fromkeys((queries, *sorted(windows, reverse=True), 1)):
        if seen in stated:
            over = f"over {seen:,} queries: " if seen > 1 else "in one query: " if queries > 1 else ""
            lines.append(f"{over}{one_line(claims, queries=seen)}")
    return lines or [one_line([])]


def whole_run_lines(claims: Sequence[Claim]) -> list[str]:
    """
    State what one mechanism reveals in all campaigns together, in at most two lines.

    Parameters
    ----------
    claims
        The mechanism's claims about all campaigns together.

    Returns
    -------
    lines
        For all that a device sends, and for all that is published unless its limit is the same.
    """
    by_view = {claim.view: claim for claim in claims}
    sent, published = by_view[LINKED], by_view[PUBLISHED]
    lines = [f"all that it sends in {campaigns_of(sent)}, {sent.queries:,} queries: {short_limit(sent)}"]
    if published.limit != sent.limit:
        lines.append(f"all that is published: {short_limit(published)}")
    pooled = [claim for claim in claims if claim.view == RECEIVED]
    return lines + [f"stored by {coalition_of(claim)}: {short_limit(claim)}" for claim in pooled]


def loss_sentences(about: str, queries: int, losses: Sequence[float]) -> list[str]:
    """
    State what linked answers to several queries reveal of a device's current place, and what of its route.

    Parameters
    ----------
    about
        The mechanism, and the campaign if there are several.
    queries
        The number of queries.
    losses
        ε of the current place, if the device moves as the prior says; and ε of the route, however it moves.

    Returns
    -------
    sentences
        One on the current place and one on the route.
    """
    who = f"With {about}, an observer that links a device’s answers to {queries:,} queries"
    which = ("places where the device might be now, if it moves as the prior says", "routes that it might have taken")
    sentences = []
    for what, loss in zip(which, losses, strict=True):
        fold = f"at most {number(math.exp(loss), up=True)}-fold (ε = {claimed(loss)})"
        limit = fold if loss <= _LARGEST_LIMIT else f"ε = {claimed(loss)} is no protection"
        sentences.append(f"{who} can shift the odds between any two {what}: {limit}.")
    return sentences


def row_words(alike: Sequence[Claim]) -> str:
    """State what the observer learns, or of several claims that differ in their crowd, what the limits depend on."""
    claim = alike[0]
    if len(alike) == 1:
        return sentence(claim)
    where = "among the reports" if claim.family == "shuffled" else "in its cell"
    return (
        f"{subject_of(replace(claim, crowd=None))}, to tell apart {_alternatives(claim)}: "
        f"the limits depend on how many devices, including this one, are {where}."
    )


_WORDS = tomllib.loads(Path(__file__).with_name("guess_words.toml").read_text(encoding="utf-8"))
NULLS: Mapping[str, str] = _WORDS["nulls"]
"""Guesses by attacks that know less, in words, by what their metrics begin with."""


def guess_words(attack: str, metric: str) -> tuple[str, str]:
    """Return of which drivers an attack guessed what its metric says, and what a right guess does."""
    unnamed = "were attacked", f"be right ({metric.replace('_', ' ')})"
    key = next((key for key in (f"{attack} {metric}".strip(), metric) if key in _WORDS["guessed"]), None)
    return unnamed if key is None else tuple(_WORDS["guessed"][key])


def parties_of(coalition: str) -> str:
    """Name the members of a coalition of `attacks.parquet`, as in ``server 1 and the mixer together``."""
    for pattern, words in _WORDS["parties"].items():
        coalition = re.sub(pattern, words, coalition)
    members = coalition.split(", ")
    if len(members) > 1 and all(member.startswith("server ") for member in members):
        return f"servers {listed([member.removeprefix('server ') for member in members])} together"
    return listed(members) + " together" * (len(members) > 1)


def driver_sentence(found: Mapping[str, Any], owners: OwnerNames, where: str = "") -> str:
    """
    State for a driver how often a coalition guesses right, and how often anybody does without the system.

    Parameters
    ----------
    found
        A finding about guesses, a row of `attacks.parquet`.
    owners
        The nouns for data owners.
    where
        Where the drivers were asked, as in ``campaign rush``; empty for nothing.

    Returns
    -------
    text
        ``Of 100 drivers who answered a query, server 1 would name the right cell for about 47; guessing without the
        system, for about 6.``
    """
    who, right = guess_words(found["attack"], found["metric"])
    who = who.format(**found).replace(" 1 queries", " one query")
    drivers = "drivers" if owners == OwnerNames() else owners.many
    of_100 = f"In {where}, of 100" if where else "Of 100"
    told = f"{of_100} {drivers} who {who}, {parties_of(found['coalition'])} would {right}"
    guessed, usual = of_hundred(found["success"]), of_hundred(found["prior"])
    return f"{told} for {guessed}; guessing without the system, for {usual}."


def reviewer_words(found: Mapping[str, Any], others: Iterable[Mapping[str, Any]] = ()) -> str:
    """
    State the numbers of a finding about guesses that can be checked.

    Parameters
    ----------
    found
        A finding about guesses, a row of `attacks.parquet`.
    others
        The other findings of the same attack on the same campaign and mechanism. Of them the guesses that know less are
        stated too, and beside the attack's first guess what is measured and no guess.

    Returns
    -------
    text
        As in ``46.7 % right; 95 % interval 45.0 % to 48.3 %; in theory 48.2 %; ε at least 3.76``.
    """
    low, high = (percent(found["prior"] + (found[end] or 0.0)) for end in ("gain_low", "gain_high"))
    words = {
        f"{percent(found['success'])} right": found["success"],
        f"95 % interval {low} to {high}": found["gain_low"],
        f"in theory {percent(found['theory'])}": found["theory"],
        f"ε at least {at_least(found['epsilon_lower'])}": found["epsilon_lower"] or None,
        f"{number(found['value'])} m off on average": found["value"] if found["unit"] == "m" else None,
    }
    nulls = {f"{null}_{found['metric']}".rstrip("_"): name for null, name in NULLS.items()}
    for one in others:
        name = (nulls | _WORDS["measured"]).get(one["metric"], one["metric"].replace("_", " "))
        words[f"{name} {percent(one['success'])}"] = one["success"] if one["metric"] in nulls else None
        words[f"{name} {number(one['value'])}"] = (
            None if found["metric"] or one["success"] is not None else one["value"]
        )
    return "; ".join(text for text, value in words.items() if value is not None)
