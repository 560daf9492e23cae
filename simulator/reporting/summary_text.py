"""Summary of a run in a few sentences, computed from its data."""

import math

import pandas as pd

from simulator.reporting.campaign_text import COUNT, RELEASED_BY, Statistic, release_of, statistics
from simulator.reporting.claims_text import ViewClaim, learns, sentence, view_claims, who
from simulator.reporting.formatting import number, percent
from simulator.reporting.run_reader import Called, FinishedRun

QUESTION = (
    "If vehicles report where they are through a privacy protocol, how good is the resulting traffic "
    "picture, "
    "and what does each party, alone or colluding, learn about a driver?"
)


def question(run: FinishedRun) -> str:
    """
    Return the question that the simulator answers, with this run's noun for data owners.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentence
        About vehicles and drivers, or about data owners as the scenario calls them.
    """
    if run.called == Called():
        return QUESTION
    return run.called.of(QUESTION).replace("traffic picture", "picture").replace("a driver", run.called.who_pays)


def accuracy(run: FinishedRun) -> list[str]:
    """
    State the error of each mechanism.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentences
        One entry per campaign.
    """
    campaigns = list(dict.fromkeys(run.scores["campaign"]))
    sentences = []
    for campaign in campaigns:
        scores = run.scores[run.scores["campaign"] == campaign]
        prefix = f"Campaign {campaign}: " if len(campaigns) > 1 else ""
        sentences.append(prefix + _comparison(run, scores))
    return sentences


def _comparison(run: FinishedRun, scores: pd.DataFrame) -> str:
    every = {str(name): float(rmse) for name, rmse in zip(scores["mechanism"], scores["rmse"], strict=True)}
    rows = {name: rmse for name, rmse in every.items() if name not in run.refined}
    facts, campaign = run.facts, str(scores["campaign"].iloc[0])
    statistic = statistics(scores)[campaign]
    baseline = [
        name
        for name in rows
        if name in facts and facts[name].kind == "no_privacy" and release_of(run, campaign, name) is None
    ]
    ranked = sorted((name for name in rows if name not in baseline and math.isfinite(rows[name])), key=rows.__getitem__)
    if statistic is not COUNT:
        return _speeds(run, scores, statistic)
    if not ranked:
        return "Nothing private was measured in this run; the exact counts are the only estimate."
    best = ranked[0]
    off = f"{number(rows[best])} {run.called.many}"
    text = f"{_whose(run, campaign, best)} estimates were off by {off} a cell (root mean square)"
    for name in ranked[1:]:
        times = f", {number(rows[name] / rows[best])} times as much" if rows[best] > 0 else ""
        text += f"; {_inner(_whose(run, campaign, name))} by {number(rows[name])}{times}"
    text += "."
    refined = [f"{_inner(run.label(name))} by {number(rmse)}" for name, rmse in every.items() if name in run.refined]
    if refined:
        text += f" Refined estimates: {'; '.join(refined)}."
    held = _mean_truth(run, scores)
    if math.isfinite(held):
        text += f" A cell held {number(held)} on average."
    coverage = {str(name): value for name, value in zip(scores["mechanism"], scores["coverage"], strict=True)}
    if best in coverage and math.isfinite(coverage[best]):
        text += f" {run.label(best)}’s 95 % intervals held the truth {percent(coverage[best])} of the time."
    return text


def _speeds(run: FinishedRun, scores: pd.DataFrame, statistic: Statistic) -> str:
    """State the error of the published speeds of one campaign."""
    row = scores.iloc[0]
    record = release_of(run, str(row["campaign"]), str(row["mechanism"]))
    through = "as they are" if record is None else f"through {record['words']}"
    what = statistic.name.replace("_", " ")
    rmse = float(row["rmse"])
    if not math.isfinite(rmse):
        return f"No cell ever held enough vehicles to publish a {what}."
    text = f"The {what}s, published {through}, were off by {number(rmse)} m/s a cell (root mean square)."
    text += f" The true ones were {number(_mean_truth(run, scores))} m/s on average."
    return text + f" The 95 % intervals held the truth {percent(float(row['coverage']))} of the time."


def _whose(run: FinishedRun, campaign: str, mechanism: str) -> str:
    """Return a label in the genitive, followed by the release: “No privacy’s, released by laplace (epsilon = 1),”."""
    record = release_of(run, campaign, mechanism)
    own = f"{run.label(mechanism)}’s"
    return own if record is None else f"{own}, released by {record['words']},"


def _mean_truth(run: FinishedRun, scores: pd.DataFrame) -> float:
    estimates = run.estimates
    truth = estimates.loc[estimates["campaign"].isin(scores["campaign"]), "truth"]
    return float(truth.mean()) if len(truth) else math.nan


def _inner(label: str) -> str:
    """Return a label for use inside a sentence: proper names keep their capitals."""
    return label if any(letter.isupper() for letter in label[1:]) else label[0].lower() + label[1:]


def price(run: FinishedRun) -> list[str]:
    """
    State what the linked reports of each mechanism reveal.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    sentences
        One per mechanism, about the view that reveals most: the linked reports, else the single report; and one
        per release, about what it publishes, for any crowd.
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
    for claim in claims:
        if claim.basis.startswith(RELEASED_BY) and claim.crowd is None and claim.queries == 1:
            said = claim.basis.partition(": ")[0]
            tells = sentence(claim, rounds=_rounds(run, claim))
            sentences.append(f"{run.label(claim.mechanism)}, {said[0].lower()}{said[1:]}: {tells}")
    return sentences


def _rounds(run: FinishedRun, claim: ViewClaim) -> int:
    return run.facts[claim.mechanism].rounds if claim.mechanism in run.facts else 2


def worst_view(claims: list[ViewClaim], rounds: int) -> ViewClaim | None:
    """
    Choose the view of one device's own reports that reveals most.

    Parameters
    ----------
    claims
        One mechanism's claims over one query.
    rounds
        Number of answers it takes per query.

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
