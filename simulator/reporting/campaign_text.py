"""Words for a campaign: its statistic, its unit and its release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from simulator.reporting.run_reader import FinishedRun

RELEASED_BY = "Released by "
"""Prefix of the basis of a claim about a release."""
UNMATCHED = "Rounds counted different devices"
"""Prefix of the basis of a claim where the noise of the rounds did not cancel."""


@dataclass(frozen=True)
class Statistic:
    """
    What a campaign estimates in each cell, in words.

    Parameters
    ----------
    name
        Its name in `scores.parquet`.
    unit
        Unit of the errors.
    of_truth
        What the true value of a cell is.
    """

    name: str
    unit: str
    of_truth: str


COUNT = Statistic("count", "vehicles", "vehicles that were asked and are there")
_STATISTICS = {
    statistic.name: statistic
    for statistic in (
        COUNT,
        Statistic("mean_speed", "m/s", "mean speed of the vehicles that were asked and are there"),
        Statistic("median_speed", "m/s", "median speed of the vehicles that were asked and are there"),
    )
}


def statistics(scores: pd.DataFrame) -> dict[str, Statistic]:
    """
    Return the statistic that each campaign estimates.

    Parameters
    ----------
    scores
        One row per campaign and mechanism; a campaign without a stated statistic estimates counts.

    Returns
    -------
    statistics
        By campaign, in the frame's order.
    """
    names = scores["statistic"]
    pairs = zip(scores["campaign"], names, strict=True)
    return {str(campaign): _STATISTICS.get(str(name), COUNT) for campaign, name in pairs}


def by_unit(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """
    Group scores by the unit of their errors.

    Parameters
    ----------
    scores
        One row per campaign and mechanism.

    Returns
    -------
    parts
        By unit, vehicles first; each in the frame's order.
    """
    known = statistics(scores)
    units = scores["campaign"].map(lambda campaign: known[str(campaign)].unit)
    every = sorted(units.unique(), key=lambda unit: unit != COUNT.unit)
    return {str(unit): scores[units == unit] for unit in every}


def release_records(run: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """
    Gather the records in `run.json` of campaigns that have a release or estimate speeds.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    records
        By campaign.
    """
    return {str(record["campaign"]): record for record in run.get("releases") or []}


def release_of(run: FinishedRun, campaign: str, mechanism: str) -> Mapping[str, Any] | None:
    """
    Find the release between a mechanism's server and the public in one campaign.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.

    Returns
    -------
    record
        Its record in `run.json`; None where the mechanism publishes its own estimate.
    """
    record = release_records(run.run).get(campaign)
    if record is None or mechanism not in record["mechanisms"] or record["release"]["kind"] == "none":
        return None
    return record


def published_label(run: FinishedRun, campaign: str, mechanism: str) -> str:
    """
    Return a label for a published estimate: the mechanism's label and, if there is one, the release.

    Parameters
    ----------
    run
        The finished run.
    campaign, mechanism
        Their names.

    Returns
    -------
    label
        For example ``No privacy, released by laplace (epsilon = 1)``.
    """
    record = release_of(run, campaign, mechanism)
    label = run.label(mechanism)
    return label if record is None else f"{label}, released by {record['words']}"


def release_notes(run: Mapping[str, Any]) -> list[str]:
    """
    List what no release covers, and why.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    notes
        One sentence each.
    """
    return [str(note) for record in run.get("releases") or [] for note in record["notes"]]
