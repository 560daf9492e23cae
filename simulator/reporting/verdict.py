"""What a run found, in a few sentences computed from its data."""

import math

import pandas as pd

from simulator.reporting.claims_text import learns, who
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.numerals import number, percent
from simulator.reporting.view_claim import ViewClaim, view_claims

QUESTION = (
    "If vehicles report where they are through a privacy protocol, how good is the resulting traffic "
    "picture, "
    "and what does each party, alone or colluding, learn about a driver?"
)


def accuracy(run: FinishedRun) -> list[str]:
    """
    Say how far off each mechanism was.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentences
        One or two a campaign.
    """
    campaigns = list(dict.fromkeys(run.scores["campaign"]))
    sentences = []
    for campaign in campaigns:
        scores = run.scores[run.scores["campaign"] == campaign]
        prefix = f"Campaign {campaign}: " if len(campaigns) > 1 else ""
        sentences.append(prefix + _comparison(run, scores))
    return sentences


def _comparison(run: FinishedRun, scores: pd.DataFrame) -> str:
    rows = {str(name): float(rmse) for name, rmse in zip(scores["mechanism"], scores["rmse"], strict=True)}
    facts = run.facts
    baseline = [name for name in rows if name in facts and facts[name].kind == "no_privacy"]
    ranked = sorted((name for name in rows if name not in baseline and math.isfinite(rows[name])), key=rows.__getitem__)
    if not ranked:
        return "Nothing private was measured in this run; the exact counts are the only estimate."
    best = ranked[0]
    text = f"{run.label(best)}’s estimates were off by {number(rows[best])} vehicles a cell (root mean square)"
    for name in ranked[1:]:
        times = f", {number(rows[name] / rows[best])} times as much" if rows[best] > 0 else ""
        text += f"; {_inner(run.label(name))}’s by {number(rows[name])}{times}"
    text += "."
    held = _mean_truth(run, scores)
    if math.isfinite(held):
        text += f" A cell held {number(held)} on average."
    coverage = {str(name): value for name, value in zip(scores["mechanism"], scores["coverage"], strict=True)}
    if best in coverage and math.isfinite(coverage[best]):
        text += f" {run.label(best)}’s 95 % intervals held the truth {percent(coverage[best])} of the time."
    return text


def _mean_truth(run: FinishedRun, scores: pd.DataFrame) -> float:
    estimates = run.estimates
    truth = estimates.loc[estimates["campaign"].isin(scores["campaign"]), "truth"]
    return float(truth.mean()) if len(truth) else math.nan


def _inner(label: str) -> str:
    """Write a label inside a sentence: proper names keep their capitals."""
    return label if any(letter.isupper() for letter in label[1:]) else label[0].lower() + label[1:]


def price(run: FinishedRun) -> list[str]:
    """
    Say what the linked reports of each mechanism give away.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentences
        One a mechanism, on the view that says most: the linked reports, else the single one.
    """
    claims = view_claims(run.claims)
    sentences = []
    for name, facts in run.facts.items():
        claim = worst_view([claim for claim in claims if claim.mechanism == name and claim.queries == 1], facts.rounds)
        if claim is None or facts.kind == "no_privacy":
            continue
        subject = who(claim, rounds=facts.rounds)
        verb = learns(claim)
        if claim.view == "linked_reports" and facts.rounds > 1:
            verb = verb.replace("learns", "learn", 1) if verb.startswith("learns") else verb
        sentences.append(f"{facts.label}: {subject[0].lower()}{subject[1:]} {verb}")
    return sentences


def worst_view(claims: list[ViewClaim], rounds: int) -> ViewClaim | None:
    """
    Choose the view of one device's own reports that gives away most.

    Parameters
    ----------
    claims
        One mechanism's claims over one query.
    rounds
        How many answers it takes.

    Returns
    -------
    claim
        The linked reports where there are several answers; else the report; None where neither is claimed.
    """
    linked = [claim for claim in claims if claim.view == "linked_reports"]
    reports = [claim for claim in claims if claim.view.startswith("report")]
    if linked and (rounds > 1 or not reports):
        return linked[0]
    return max(reports, key=lambda claim: math.inf if claim.epsilon is None else claim.epsilon, default=None)
