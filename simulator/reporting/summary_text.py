"""Summary of a run in a few sentences, computed from its data."""

import math

import pandas as pd

from simulator.reporting.claims_section import ViewClaim, sentence, view_claims
from simulator.reporting.formatting import number, percent, whole
from simulator.reporting.run_reader import COUNT, RELEASED_BY, FinishedRun, OwnerNames, Statistic

QUESTION = (
    "If vehicles report where they are through a privacy protocol, how good is the resulting traffic picture, and what "
    "does each party, alone or colluding, learn about a driver?"
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
    if run.owners == OwnerNames():
        return QUESTION
    words = run.owners.replace_in(QUESTION).replace("traffic picture", "picture")
    return words.replace("a driver", run.owners.person)


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
    campaign = str(scores["campaign"].iloc[0])
    statistic = run.statistics[campaign]
    if statistic is not COUNT:
        return _speeds(run, scores, statistic)
    # Exact counts that were published as they are have no error to compare.
    shown = [n for n in every if n in run.private or n not in run.mechanisms or run.release_of(campaign, n) is not None]
    ranked = sorted((n for n in shown if n not in run.refined and math.isfinite(every[n])), key=every.__getitem__)
    if not ranked:
        return "This run measured no private estimate; the exact counts are the only estimate."
    best, *others = ranked
    text = f"{_genitive(run, campaign, best)} estimates had an error of {number(every[best])} {run.owners.many} a cell "
    text += "(root mean square)"
    for name in others:
        times = f", {number(every[name] / every[best])} times as much" if every[best] > 0 else ""
        text += f"; {_inner(_genitive(run, campaign, name))} of {number(every[name])}{times}"
    text += "."
    refined = [f"{_inner(run.label(name))} {number(rmse)}" for name, rmse in every.items() if name in run.refined]
    if refined:
        text += f" Errors of refined estimates: {'; '.join(refined)}."
    occupancy = _mean_truth(run, scores)
    if math.isfinite(occupancy):
        text += f" A cell held {number(occupancy)} on average."
    coverage = {str(name): value for name, value in zip(scores["mechanism"], scores["coverage"], strict=True)}
    if math.isfinite(coverage[best]):
        text += f" {percent(coverage[best])} of {_inner(run.label(best))}’s 95 % intervals contain the truth."
    return text


def _speeds(run: FinishedRun, scores: pd.DataFrame, statistic: Statistic) -> str:
    """State the error of the published speeds of one campaign."""
    row = scores.iloc[0]
    record = run.release_of(str(row["campaign"]), str(row["mechanism"]))
    through = "as they are" if record is None else f"through {record.words}"
    what = statistic.name.replace("_", " ")
    rmse = float(row["rmse"])
    if not math.isfinite(rmse):
        return f"No cell ever held enough vehicles to publish a {what}."
    return (
        f"The {what}s, published {through}, had an error of {number(rmse)} m/s a cell (root mean square). The true "
        f"ones were {number(_mean_truth(run, scores))} m/s on average. {percent(float(row['coverage']))} of the 95 % "
        "intervals contain the truth."
    )


def _genitive(run: FinishedRun, campaign: str, mechanism: str) -> str:
    """Return a label in the genitive, followed by the release: “No privacy’s, released by laplace (epsilon = 1),”."""
    record = run.release_of(campaign, mechanism)
    own = f"{run.label(mechanism)}’s"
    return own if record is None else f"{own}, released by {record.words},"


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
    for name, mechanism in run.private.items():
        own = [claim for claim in claims if claim.mechanism == name and claim.queries == 1]
        claim = worst_view(own, mechanism.rounds)
        if claim is not None:
            text = sentence(claim, rounds=mechanism.rounds)
            sentences.append(f"{run.label(name)}: {text[0].lower()}{text[1:]}")
    for claim in claims:
        if claim.basis.startswith(RELEASED_BY) and claim.crowd is None and claim.queries == 1:
            release = claim.basis.partition(": ")[0]
            text = sentence(claim, rounds=run.rounds_of(claim.mechanism))
            sentences.append(f"{run.label(claim.mechanism)}, {release[0].lower()}{release[1:]}: {text}")
    return sentences


def key_figures(run: FinishedRun) -> list[tuple[str, str]]:
    """
    Return the size of the run.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    figures
        Names and numbers.
    """
    record, cells = run.record, len(run.cells)
    asked = sorted({round(value) for value in run.mean_asked.values()})
    each = "–".join(dict.fromkeys(map(whole, (asked[0], asked[-1])))) if asked else "–"
    return [
        (f"{run.owners.many} in the run", whole(record.vehicles)),
        ("cell" if cells == 1 else "cells", whole(cells)),
        ("query" if record.queries == 1 else "queries", whole(record.queries)),
        ("devices asked per query", each),
        ("mechanisms compared", whole(len(run.mechanisms))),
        ("answers sent", whole(record.device_answers)),
    ]


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
