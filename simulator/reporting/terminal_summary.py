"""Summary of a run as tables in the terminal."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from simulator.reporting.attack_text import attack_lines
from simulator.reporting.campaign_text import by_unit, release_notes, release_records
from simulator.reporting.claims_text import one_line, view_claims
from simulator.reporting.formatting import counted, duration, number, percent, real, whole
from simulator.reporting.report import FILE_NAME
from simulator.reporting.run_reader import FinishedRun, MechanismFacts, called, mechanism_facts, refined_labels


class Frames(Protocol):
    """The attributes of a result in memory that a summary needs."""

    @property
    def run(self) -> Mapping[str, Any]:
        """The content of `run.json`."""

    @property
    def scores(self) -> pd.DataFrame:
        """One row per campaign and mechanism."""

    @property
    def claims(self) -> pd.DataFrame:
        """One row per mechanism, view and ε."""


def print_summary(
    result: str | os.PathLike[str] | Frames, console: Console | None = None, *, directory: Path | None = None
) -> None:
    """
    Print a summary of a run: what ran, the error of each mechanism, and what each reveals about a device.

    Parameters
    ----------
    result
        A run directory, or the frames of a result in memory.
    console
        The console to print on; by default standard output. It need not be a terminal.
    directory
        The directory of the result, if `result` is not that directory itself: it is named in the last line.

    Raises
    ------
    UnfinishedRunError
        If a directory is given and holds no finished run.
    """
    console = console or Console()
    if isinstance(result, str | os.PathLike):
        directory = directory or Path(result)
        frames: Frames = FinishedRun(Path(result))
    else:
        frames = result
    facts = mechanism_facts(frames.run)
    console.print()
    console.print(_what_ran(frames.run))
    labels = {name: record.label for name, record in facts.items()} | refined_labels(frames.run, facts)
    for unit, part in by_unit(frames.scores).items():
        console.print(_scores(part, labels, called(frames.run).unit(unit), release_records(frames.run)))
    console.print(_learnt(frames.claims, facts))
    attacks = getattr(frames, "attacks", None)  # results of earlier versions have no attacks
    if attacks is not None and len(attacks):
        console.print(Text("What coalitions found", style="bold"))
        for line in attack_lines(attacks):
            console.print(Text(f"  {line}"))
    warnings = frames.run.get("warnings") or []
    for note in _notes(frames.run):
        if not any(str(warning).endswith(note) for warning in warnings):
            console.print(Text(f"Note: {note}", style="dim"))
    for warning in warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))
    if directory is not None:
        report = directory / FILE_NAME
        words = "Report: " if report.is_file() else "Results: "
        # Not wrapped, so that the path can be copied.
        console.print(Text(f"{words}{report if report.is_file() else directory}"), soft_wrap=True)


def _notes(run: Mapping[str, Any]) -> list[str]:
    """Gather the notes in `run.json` about the city, the traffic, published flows and releases."""
    traffic = run.get("traffic") or {}
    records = [run.get("city"), traffic, *(traffic.get("beside") or ()), run.get("flow_check")]
    notes = [str(note) for record in records if record for note in record.get("notes") or ()]
    return list(dict.fromkeys([*notes, *release_notes(run)]))


def _owners(run: Mapping[str, Any]) -> str:
    words = called(run)
    return f"{whole(run.get('vehicles'))} {words.one if run.get('vehicles') == 1 else words.many}"


def _what_ran(run: Mapping[str, Any]) -> Text:
    wall = run.get("wall_s") or {}
    city = run.get("city") or {}
    text = Text()
    text.append(str(run.get("scenario", "")), style="bold")
    text.append(f", seed {run.get('seed', '–')}: {_owners(run)}, {counted(city.get('cells'), 'cell')}, ")
    text.append(f"{whole(run.get('queries'))} queries, {whole(run.get('device_answers'))} answers")
    if wall.get("total") is not None:
        text.append(f", in {duration(wall['total'])}")
    return text


def _scores(
    scores: pd.DataFrame, labels: Mapping[str, str], unit: str, releases: Mapping[str, Mapping[str, Any]]
) -> Table:
    several = scores["campaign"].nunique() > 1 or bool(releases)
    table = Table(title=f"Error in {unit} a cell", title_justify="left", title_style="bold")
    table.add_column("Mechanism")
    if several:
        table.add_column("Campaign")
    for name in ("RMSE", "in theory", "Bias", "Largest", "Coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in scores.to_dict("records"):
        name = str(row["mechanism"])
        cells = [labels.get(name, name)]
        cells += [_campaign(str(row["campaign"]), name, releases)] if several else []
        cells += [number(real(row.get(column))) for column in ("rmse", "theory_rmse", "bias", "max_error")]
        cells.append(percent(real(row.get("coverage"))))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _campaign(campaign: str, mechanism: str, releases: Mapping[str, Mapping[str, Any]]) -> str:
    """Name a campaign and the kind of release between this mechanism's server and the public, if there is one."""
    record = releases.get(campaign)
    released = record is not None and mechanism in record["mechanisms"] and record["release"]["kind"] != "none"
    return f"{campaign} ({record['release']['kind']})" if record is not None and released else campaign


def _learnt(claims: pd.DataFrame, facts: Mapping[str, MechanismFacts]) -> Table:
    gathered = view_claims(claims)
    table = Table(title="What is learnt about a device", title_justify="left", title_style="bold", show_header=False)
    table.add_column("Mechanism")
    table.add_column("Learnt")
    for name, record in facts.items():
        own = [claim for claim in gathered if claim.mechanism == name]
        table.add_row(Text(record.label), Text(one_line(own, rounds=record.rounds)))
    return table
