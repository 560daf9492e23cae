"""The first screen of the report: what the run found, in at most four sentences and one table."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mechanisms.privacy.claim import Claim
from simulator.pages.attacks_section import told, where_of
from simulator.pages.document import written
from simulator.results.claims import LINKED, PUBLISHED
from simulator.results.formatting import inner_case, listed, number, percent
from simulator.results.names import COUNT
from simulator.results.run import RunResult
from simulator.results.statements import (
    Subject,
    campaign_lines,
    driver_sentence,
    sentence,
    short_limit,
    subject_of,
    wording_key,
)
from simulator.results.tables import guesses, records

_NAMED = 4
"""If more mechanisms ran than this, list only the best, the first, and the range of the others."""
_ROWS = 12
"""Most rows of the first table; a run with more shows one mechanism's rows, and the rest further down."""
_MEASURE = attrgetter("measure")
_LINKING = Subject(("a linking server", "which receives all answers of a device"))


def first_screen(run: RunResult) -> dict[str, object]:
    """
    State what the run found.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        `sentences`, at most four; `rows`, the table: rows of `RunResult.errors`, each with `guesses`, by the size of
        the coalitions that attacked the share of cells that the best attack guessed right and whether that is
        significantly more than the baseline guess, and `reveals`, what a device's reports, or what is published,
        reveal in a few words; `sizes`, the numbers of colluding parties that it has columns for; `hidden`, the number
        of rows that are left out; `prior`, success of the baseline guess.
    """
    found, refined = guesses(run.attacks, run.record.private), run.record.refined
    rows = [_with_findings(run, row, found) for row in records(run.errors) if row["mechanism"] not in refined]
    shown = rows
    if len(rows) > _ROWS:
        first = run.record.first_private or rows[0]["mechanism"]
        of_first = [row for row in rows if row["mechanism"] == first]
        shown = (of_first if len(of_first) > 1 else rows)[:_ROWS]
    return {
        "sentences": sentences(run),
        "rows": shown,
        "sizes": sorted({size for row in shown for size in row["guesses"]}),
        "hidden": len(rows) - len(shown),
        "prior": None if found.empty else float(found["prior"].mean()),
    }


class Finding(NamedTuple):
    """A row of the findings.

    Attributes
    ----------
    subject
        The mechanism or the campaigns that it is about; empty if the value names them.
    measure
        What was measured: "claim", "guess", "loss", the name of a statistic, "zero" or "participation".
    value
        The value measured; of claims and participation, the words of `simulator.results.statements`.
    limit
        What the value is compared with.
    """

    subject: str
    measure: str
    value: Any
    limit: Any = None


def sentences(run: RunResult) -> list[str]:
    """
    Return the finding of a run in at most four sentences.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentences
        One for each group of `findings`.
    """
    by_measure = ([(measure, [*rows]) for measure, rows in groupby(group, _MEASURE)] for group in findings(run))
    return [written("findings.txt.j2", groups=groups, many=run.record.owners.many) for groups in by_measure]


def findings(run: RunResult) -> list[list[Finding]]:
    """
    Return the findings of a run, in groups for at most four sentences.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    groups
        First, where servers receive one round each, what one of them learns and what a server that links all rounds
        learns; then, if there are several campaigns, what the first mechanism reveals in all of them; then, for a
        driver, the guess of the greatest gain. Then at most three: the verdict by the size of a coalition, or on lost
        reports, if the run is about these; the error of the published estimates; what the most revealing observer of a
        campaign learns.
    """
    by_size = _coalitions(run)
    others = [by_size, _lost(run), _errors(run), *_cost(run)]
    apart = [[Finding("", "claim", line)] for line in apart_and_linked(run)]
    return [*apart, *_whole_run(run), *_told(run, by_size), *[group for group in others if group][:3]][:4]


def apart_and_linked(run: RunResult) -> list[str]:
    """
    State what a server that receives one round of a query learns, and what a server that links all rounds learns.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    lines
        One sentence on the first mechanism, if the first campaign has a server for each round; else none.
    """
    label = inner_case(run.record.label(str(run.record.first_private)))
    for campaign in [*run.record.deployments_by_campaign][:1]:
        if found := _of_one_round(run, campaign, queries=1):
            alone, linked = found
            several = len(run.record.deployments_by_campaign) > 1
            over = f"With {label}, in one query{f' of campaign {campaign}' * several}"
            return [f"{sentence(alone, over=over).removesuffix('.')}; {sentence(linked, subject=_LINKING)}"]
    return []


def _of_one_round(run: RunResult, campaign: str, *, queries: int) -> tuple[Claim, Claim] | None:
    """Return the first mechanism's weakest claim about one round and its linked claim if no server has all rounds."""
    claims = [one for one in _in_campaign(run, campaign, str(run.record.first_private)) if one.queries == queries]
    alone = _strongest([claim for claim in claims if claim.family == "report"])
    linked = next((claim for claim in claims if claim.view == "linked_reports" and claim.rounds > 1), None)
    known = campaign in run.record.deployments_by_campaign
    return (alone, linked) if known and alone and linked and not linked.one_server else None


def _whole_run(run: RunResult) -> list[list[Finding]]:
    """Return what the first mechanism reveals in all campaigns together: of exact reports, what is published."""
    name = run.record.first_private or next(iter(run.whole_run), None)
    view = LINKED if name == run.record.first_private else PUBLISHED
    shown = [claim for claim in run.whole_run.get(name or "", []) if claim.view == view]
    return [[Finding(run.record.label(claim.mechanism), "claim", sentence(claim))] for claim in shown]


def _told(run: RunResult, by_size: Sequence[Finding]) -> list[list[Finding]]:
    """Return the guess of the greatest gain, unless the verdict by the size of a coalition is about as great a gain."""
    said = guesses(run.attacks, run.record.private)["gain"].max() if by_size else 0.0
    return [
        [Finding("", "told", driver_sentence(row, run.record.owners, where_of(run, row)))]
        for row in told(run, "words")[:1]
        if row["gain_low"] is not None and row["gain_low"] > 0.0 and row["gain"] > said
    ]


def _coalitions(run: RunResult) -> list[Finding]:
    """Return the guesses of the coalitions of each size in some campaigns, then the guess of the prior."""
    own = guesses(run.attacks, run.record.private)
    own = own[own["mechanism"] == run.record.first_private]
    if own["colluding"].nunique() < 2:
        return []
    groups: dict[tuple[int, int | None], list[tuple[str, float]]] = {}
    for campaign, rows in own.groupby("campaign", sort=False):
        better = rows[rows["better"]].groupby("colluding")["success"].max()
        size = int(better.index.min()) if len(better) else None
        # Only of coalitions that attacked is it known that they learned nothing.
        tried = rows["colluding"] if size is None else rows.loc[rows["colluding"] < size, "colluding"]
        idle = int(tried.max()) if len(tried) else 0
        groups.setdefault((idle, size), []).append((str(campaign), 0.0 if size is None else float(better[size])))
    several = own["campaign"].nunique() > 1
    found = []
    for limit, campaigns in sorted(groups.items(), key=lambda group: -group[0][0]):
        where = _named("campaign", [name for name, _ in campaigns]) if several else ""
        found.append(Finding(where, "guess", [success for _, success in campaigns], limit))
    return [*found, Finding(run.record.label(str(run.record.first_private)), "guess", float(own["prior"].mean()))]


def _named(noun: str, names: Sequence[str]) -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {listed(list(names))}"


def _lost(run: RunResult) -> list[Finding]:
    """Return what lost reports did to the error of the first mechanism of several rounds.

    Where devices do not follow the protocol, the error is not an error of lost reports.
    """
    misled = any(note.code == "behaviour" for note in run.record.noticed)
    for record in () if misled else run.record.loss:
        asked = run.mean_asked.get((record.campaign, record.mechanism), 0.0)
        rows = run.scores[(run.scores["campaign"] == record.campaign) & (run.scores["mechanism"] == record.mechanism)]
        if record.rounds < 2 or record.mechanism not in run.record.private or not asked or record.ideal is None:
            continue
        ideal, paired = (_at(asked, record.asked, curve) for curve in (record.ideal, record.paired))
        if ideal is None or paired is None:
            continue
        limit = {"share": 1.0 - min(record.heard), "ideal": ideal, "paired": paired}
        limit |= {"pairs": record.pairs, "can_pair": record.can_pair}
        return [Finding(run.record.label(record.mechanism), "loss", float(rows["rmse"].iloc[0]), limit)]
    return []


def _at(asked: float, at: Sequence[int], errors: Sequence[float | None] | None) -> float | None:
    """Return an error between two numbers of devices asked, on logarithmic scales."""
    if errors is None or any(error is None or error <= 0 for error in errors):
        return None
    return float(np.exp(np.interp(np.log(asked), np.log(at), np.log(np.array(errors, dtype=float)))))


def _errors(run: RunResult) -> list[Finding]:
    """Return the errors of the counts and of the speeds, and the counts that are no better than zero everywhere."""
    record = run.record
    rows = [row for row in records(run.errors) if row["mechanism"] not in record.refined and row["rmse"] is not None]
    by_statistic: dict[str, list[dict[Any, Any]]] = {}
    for row in rows:
        exact = row["mechanism"] not in record.private and record.release_of(row["campaign"], row["mechanism"]) is None
        if not exact or row["rmse"] > 0:
            by_statistic.setdefault(row["statistic"], []).append(row)
    if not by_statistic:
        return [Finding("", "nothing", "This run has no estimate other than the exact one.")]
    found: list[Finding] = []
    for statistic, own in by_statistic.items():
        if run.statistics[own[0]["campaign"]] is COUNT:
            found += [*_of_counts(run, own), *(Finding("", "participation", line) for line in participation_lines(run))]
        else:
            found += [Finding(row["campaign"], statistic, row["rmse"]) for row in own]
    return [*found, *_worse_than_zero(run, rows)]


def _worse_than_zero(run: RunResult, rows: list[dict[Any, Any]]) -> list[Finding]:
    """Name the private counts that are no better than zero everywhere; empty if all are better."""
    truths = run.estimates["truth"].pow(2).groupby([run.estimates["campaign"], run.estimates["mechanism"]]).mean()
    named: dict[str, list[bool]] = {}
    for row in rows:
        if run.statistics[row["campaign"]] is COUNT and row["mechanism"] in run.record.private:
            zero = float(truths.get((row["campaign"], row["mechanism"]), np.inf)) ** 0.5
            named.setdefault(inner_case(run.record.label(row["mechanism"])), []).append(row["rmse"] >= zero)
    worse = [
        name if all(found) else f"{name} in {sum(found)} of {len(found)} campaigns"
        for name, found in named.items()
        if any(found)
    ]
    every = len(worse) == len(named) > 1 and all(map(all, named.values()))
    return [Finding("", "zero", name, "any mechanism" if every else None) for name in worse]


def _of_counts(run: RunResult, rows: list[dict[Any, Any]]) -> list[Finding]:
    """Return the errors of what was published, the smallest first, beside the mean occupancy."""
    labels: dict[str, list[float]] = {}
    for row in rows:
        labels.setdefault(row["label"], []).append(row["rmse"])
    ranked = sorted(labels.items(), key=lambda item: sum(item[1]) / len(item[1]))
    counts = [name for name, statistic in run.statistics.items() if statistic is COUNT]
    truth = float(run.estimates.loc[run.estimates["campaign"].isin(counts), "truth"].mean())
    if len(ranked) > _NAMED:
        chosen = {ranked[0][0], run.record.label(run.record.first_private) if run.record.first_private else None}
        named = [item for item in ranked if item[0] in chosen]
        rest = [value for item in ranked if item not in named for value in item[1]]
        named.append((f"the {len(ranked) - len(named)} others", rest))
        ranked = named
    return [Finding(label, "count", errors, truth) for label, errors in ranked]


def participation_lines(run: RunResult) -> list[str]:
    """
    State how many take part, and how the errors of all vehicles divide, where fewer than all take part.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    lines
        None, or the participation, and for the first mechanism of counts the two parts of its error in theory: the
        protocol's part, and the part due to who takes part, comes and leaves.
    """
    if not run.partial:
        return []
    record, many = run.record, run.record.owners.many
    said = f"{percent(record.participation)} of the {many} take part"
    if record.assumed_participation != record.participation:
        said += f", and {percent(record.assumed_participation)} are assumed to"
    of_counts = run.asked.scores["statistic"] == "count"
    counts, said = run.asked.scores[of_counts], f"{said}."
    if len(counts):
        said = f"{said[:-1]}: truth and estimates are of all {many}, asked or not."
    if not of_counts.all():
        said += f" Speeds are for the {many} asked: who takes part does not change a mean speed on average."
    own = counts[counts["mechanism"] == run.record.first_private]
    for row in records(own if len(own) else counts)[:1]:
        protocol, whole = (row["theory_rmse"] or 0.0) / record.assumed_participation, row["scaled_theory_rmse"]
        if whole is not None and np.isfinite(whole):
            taking_part = max(0.0, whole**2 - protocol**2) ** 0.5
            said += (
                f" In theory {inner_case(record.label(row['mechanism']))} errs by {number(whole)}: {number(protocol)} "
                f"of the protocol and {number(taking_part)} of who takes part (their squares add up)."
            )
    return [said]


def _cost(run: RunResult) -> list[list[Finding]]:
    """Return what the observer that learns most learns: of the first mechanism, and of the release of least error.

    The claims are those over all queries of a campaign, of the first mechanism over the longest; earlier runs may have
    them over one query only.
    """
    said, scores = [], records(run.scores)
    asking = [str(row["campaign"]) for row in scores if row["mechanism"] == run.record.first_private]
    if text := _of_first(run, sorted(asking, key=lambda name: (name in run.budgeted, -run.record.queries_of(name)))):
        alone = len(run.record.mechanisms) == 1
        said.append([Finding("" if alone else run.record.label(str(run.record.first_private)), "claim", text)])
    released = [
        (row["rmse"], row["campaign"], row["mechanism"])
        for row in scores
        if row["rmse"] is not None and _of_release(run, row["campaign"], row["mechanism"])
    ]
    if released:
        _, campaign, mechanism = min(released, key=itemgetter(0))
        text = _over_campaign(run, [campaign], _stated(run, campaign, _of_release(run, campaign, mechanism)))
        said.append([Finding(run.record.published_label(campaign, mechanism), "claim", text)])
    return said


Stated = tuple[Claim | None, Claim | None]
"""The claims over all queries of a campaign, and over one."""


def _stated(run: RunResult, campaign: str, claims: Sequence[Claim]) -> Stated:
    whole, one = (
        _strongest([claim for claim in claims if claim.queries == queries])
        for queries in (run.record.queries_of(campaign), 1)
    )
    return whole, one


def _of_first(run: RunResult, campaigns: Sequence[str]) -> str:
    """State what servers learn of the first mechanism: of the first campaign, and who learns the same in the others."""
    groups: dict[tuple[object, ...], dict[Subject, list[str]]] = {}
    stated = {name: _stated(run, name, _in_campaign(run, name, str(run.record.first_private))) for name in campaigns}
    for name, (whole, one) in stated.items():
        if shown := whole or one:
            key = (run.record.queries_of(name), whole and wording_key(whole), one and wording_key(one))
            who = subject_of(replace(shown, queries=1, campaign=None))
            groups.setdefault(key, {}).setdefault(who, []).append(name)
    if not groups:
        return ""
    alike, *different = groups.values()
    named, others = (
        [name for group in part for names in group.values() for name in names] for part in ([alike], different)
    )
    each = [f"{who} ({_named('campaign', names)})" for who, names in alike.items()]
    listing = f"{', '.join([each[0], *map(inner_case, each[1:-1])])} or {inner_case(each[-1])}"
    several = Subject((listing,), several=[*alike][-1].several) if len(each) > 1 else None
    apart = None if several else _of_one_round(run, named[0], queries=run.record.queries_of(named[0]))
    beside = f"; answer {apart[0].round} alone: {short_limit(apart[0])}" if apart else None
    text = _over_campaign(run, named, stated[named[0]], several, alone=len(each) > 1 or not others, beside=beside)
    return f"{text} What observers learn in {_named('campaign', others)} is in the table." if others else text


def _over_campaign(
    run: RunResult,
    campaigns: Sequence[str],
    stated: Stated,
    subject: Subject | None = None,
    *,
    alone: bool = True,
    beside: str | None = None,
) -> str:
    """State the claim over all queries of campaigns, and beside it the claim over one query, or what is given.

    The text is empty if there is no claim.

    Campaigns are not named if `alone`, and all of the run are alike.
    """
    (whole, one), queries = stated, run.record.queries_of(campaigns[0])
    shown = whole or one
    if shown is None:
        return ""
    alike = alone and len({(run.record.queries_of(name), name in run.budgeted) for name in run.statistics}) == 1
    whose = (
        f"the campaign’s {queries:,} queries"
        if alike
        else f"the {queries:,} queries of {_named('campaign', campaigns)}"
    )
    over = f"Over {whose}, for a device that stays through it" if whole else f"In one of {whose}"
    end = beside or ("" if one is None or one is shown else f"; in one query {short_limit(one)}")
    return sentence(shown, over=over if queries > 1 else "", subject=subject, end=end)


def _in_campaign(run: RunResult, campaign: str, mechanism: str) -> list[Claim]:
    """Return the claims about a mechanism that hold in a campaign, of what as few of its servers as possible read."""
    holds_for = campaign if campaign in run.budgeted else None
    own = [claim for claim in run.privacy if claim.mechanism == mechanism and claim.campaign == holds_for]
    seen, record = run.record.views_seen(mechanism, campaign), run.record.deployments_by_campaign.get(campaign)
    if seen is None or record is None:
        return [claim for claim in own if claim.of_reports]
    of_one_server = {"released_counts", *(["linked_reports"] if seen.get("linked_reports") == 1 else [])}
    readers = None, record.needed or record.servers
    return [
        replace(claim, one_server=claim.view in of_one_server)
        for claim in own
        if claim.view in seen
        and claim.adjacency == "move"
        and (claim.crowd is None or claim.family == "shuffled")
        and claim.colluding in readers
        and claim.servers in {None, record.servers}
    ]


def _of_release(run: RunResult, campaign: str, mechanism: str) -> list[Claim]:
    """Return the claims about what a campaign's release publishes for any crowd, the one for a move first."""
    if run.record.release_of(campaign, mechanism) is None:
        return []
    own = [
        claim for claim in run.privacy if claim.release and (claim.campaign, claim.mechanism) == (campaign, mechanism)
    ]
    return sorted((one for one in own if one.crowd is None), key=lambda one: one.adjacency != "move")


def _strongest(claims: Sequence[Claim]) -> Claim | None:
    """Prefer the claim on linked answers; else the weakest other claim, of single answers before published values."""
    linked = [claim for claim in claims if claim.view == "linked_reports"]
    reports = [claim for claim in claims if claim.family == "report"]
    if linked and (linked[0].rounds > 1 or not reports):
        return linked[0]
    return max(reports or claims, key=attrgetter("epsilon"), default=None)


def reveals(run: RunResult, campaign: str, mechanism: str) -> list[str]:
    """
    State what a device's reports, or what is published of them through a release, reveal in one campaign.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.

    Returns
    -------
    lines
        As of `campaign_lines`: over all queries of the campaign first.
    """
    queries, published = run.record.queries_of(campaign), _of_release(run, campaign, mechanism)
    if not published:
        windows = {claim.queries for claim in run.privacy if claim.campaign in run.budgeted} - {1, queries}
        return campaign_lines(_in_campaign(run, campaign, mechanism), queries=queries, windows=windows)
    whole, one = _stated(run, campaign, published)
    over = f" over {queries:,} queries" if queries > 1 else ""
    lines = [f"from what is published{over}: {short_limit(whole)}"] if whole else []
    return lines + ([f"from what is published in one query: {short_limit(one)}"] if one and queries > 1 else [])


def _with_findings(run: RunResult, row: dict[Any, Any], found: pd.DataFrame) -> dict[Any, Any]:
    """Return a row of `RunResult.errors` with what coalitions guessed and what an observer learns."""
    own = found[(found["campaign"] == row["campaign"]) & (found["mechanism"] == row["mechanism"])]
    best = own.sort_values("success").drop_duplicates("colluding", keep="last")
    shares = zip(best["colluding"].astype(int), best["success"], best["better"], strict=True)
    guessed = {size: (success, better) for size, success, better in shares}
    return {**row, "guesses": guessed, "reveals": reveals(run, row["campaign"], row["mechanism"])}
