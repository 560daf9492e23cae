"""Words for a campaign: its statistic, its unit and its release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from simulator.reporting.run_reader import FinishedRun

RELEASED_BY = "Released by "
"""How the basis of a release's own claim begins."""
UNMATCHED = "Rounds counted different devices"
"""How the basis of a claim begins where the noise of the rounds did not cancel."""


@dataclass(frozen=True)
class Statistic:
    """
    What a campaign estimates in each cell, in words.

    Parameters
    ----------
    name
        As `scores.parquet` calls it.
    unit
        What errors are in.
    of_truth
        What the truth of a cell is.
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
    Say what each campaign estimates.

    Parameters
    ----------
    scores
        One row a campaign and mechanism; where it does not say, counts.

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
    Divide scores by what their errors are in.

    Parameters
    ----------
    scores
        One row a campaign and mechanism.

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
    Gather what `run.json` says of the campaigns under a release, or of speeds.

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
        What `run.json` says of it; None where the mechanism publishes its own estimate.
    """
    record = release_records(run.run).get(campaign)
    if record is None or mechanism not in record["mechanisms"] or record["release"]["kind"] == "none":
        return None
    return record


def published_label(run: FinishedRun, campaign: str, mechanism: str) -> str:
    """
    Call what a campaign published by the mechanism's name and the release's.

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
    List what is not under a release, and why.

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
