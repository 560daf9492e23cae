"""Terminal output of a run: its progress on standard error, and its summary as tables."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from io import StringIO
from types import TracebackType
from typing import Self

import numpy as np
import pandas as pd
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from scenarios.run_clock import RunClock
from simulator.pages.attacks_section import attack_lines
from simulator.pages.counts_section import count_lines
from simulator.pages.findings_section import apart_and_linked, participation_lines, reveals
from simulator.pages.report import FILE_NAME, page_faults
from simulator.results.formatting import (
    LEAST_WIDTH,
    counted,
    duration,
    listed,
    number,
    parameter,
    percent,
    whole,
    wide_console,
)
from simulator.results.run import RunResult, opened
from simulator.results.statements import say, whole_run_lines
from simulator.results.tables import records


def print_summary(run: RunResult | str | os.PathLike[str], console: Console | None = None) -> None:
    """
    Print a summary of a run: what ran, the error of each mechanism, and what each reveals about a device.

    Parameters
    ----------
    run
        A run that has been saved, or its directory.
    console
        The console to print on; by default standard output. It need not be a terminal.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    PageError
        If a fault of the summary ends it.
    """
    console = console or wide_console()
    console.print()
    run = opened(run)
    directory = run.saved_in
    with page_faults(directory, "its summary"):
        print_run(run, console)
    report = directory / FILE_NAME
    # Not wrapped, so that the path can be copied.
    console.print(Text(f"Report: {report}" if report.is_file() else f"Results: {directory}"), soft_wrap=True)


@np.errstate(over="ignore", invalid="ignore")
def print_run(run: RunResult, console: Console) -> None:
    """Print the summary of a run on a console, without the path of its report."""
    run = run.leading
    console.print(_what_ran(run))
    for sentence in apart_and_linked(run):
        console.print(Text(sentence))
    for unit, scores in run.errors_by_unit.items():
        console.print(_scores(run, scores, unit))
    for sentence in (*participation_lines(run), *count_lines(run), *_cost_lines(run)):
        console.print(Text(sentence))
    if run.whole_run:
        rows = [(run.record.label(name), "\n".join(whole_run_lines(claims))) for name, claims in run.whole_run.items()]
        console.print(_privacy_table("What a device that stays through all campaigns reveals", rows))
    console.print(_privacy(run))
    if len(run.attacks):
        console.print(Text("Results of the attacks", style="bold"))
        for line in attack_lines(run):
            console.print(Text(f"  {line}"))
    for note in dict.fromkeys(run.record.noticed):
        if note.level == "note":
            console.print(Text(f"Note: {say(note)}", style="dim"))
    for warning in run.record.warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))


def summary_text(run: RunResult) -> str:
    """Return the summary of a run as text of fixed width."""
    text = StringIO()
    # In a notebook, rich would otherwise show the text itself, or write codes for colours into it.
    print_run(run, Console(file=text, width=LEAST_WIDTH, force_jupyter=False, force_terminal=False))
    return text.getvalue()


def _what_ran(run: RunResult) -> Text:
    record = run.record
    owners = run.record.owners.one if record.vehicles == 1 else run.record.owners.many
    text = Text(record.scenario, style="bold")
    text = Text.assemble(text, f", seed {record.seed}: {whole(record.vehicles)} {owners}, ")
    text.append(f"{counted(record.city.cells, 'cell')}, {whole(record.queries)} queries, ")
    text.append(f"{whole(record.device_answers)} answers")
    if "total" in record.wall_s:
        text.append(f", in {duration(record.wall_s['total'])}")
    return text


def _scores(run: RunResult, scores: pd.DataFrame, unit: str) -> Table:
    """Return the table of errors; mechanisms are listed below their campaign if there are several or releases."""
    several = scores["campaign"].nunique() > 1 or bool(run.record.releases)
    last = ""
    whose = ", of all vehicles, asked or not" if run.partial and scores["statistic"].eq("count").all() else ""
    table = Table("Mechanism", title=f"Error of a cell, {unit}{whose}", title_justify="left", title_style="bold")
    for name in ("RMSE", "in theory", "Bias", "Largest", "Coverage"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in records(scores):
        mechanism, campaign = row["mechanism"], row["campaign"]
        release = run.record.release_of(campaign, mechanism)
        named = campaign if release is None else f"{campaign} ({release.release['kind']})"
        if several and named != last:
            table.add_section()
            table.add_row(Text(named, style="bold"))
            last = named
        cells = [number(row.get(column)) for column in ("rmse", "theory_rmse", "bias", "max_error")]
        cells.append(percent(row.get("coverage")))
        # Indented below the campaign, in each line that a long label takes.
        label = Padding(Text(run.record.label(mechanism)), (0, 0, 0, 2 if several else 0))
        table.add_row(label, *map(Text, cells))
    return table


def _privacy(run: RunResult) -> Table:
    rows: dict[tuple[str, str], list[str]] = {}
    for row in records(run.scores[~run.scores["mechanism"].isin(list(run.record.refined))]):
        campaign, mechanism = row["campaign"], row["mechanism"]
        words = "\n".join(reveals(run, campaign, mechanism))
        rows.setdefault((run.record.label(mechanism), words), []).append(campaign)
    every = run.scores["campaign"].nunique()
    shown = [(label, f"{listed(names)}\n" * (every > len(names)) + words) for (label, words), names in rows.items()]
    table = _privacy_table("What a device that stays through a campaign reveals", shown)
    table.caption, table.caption_justify = "That a device takes part is hidden by no claim about where it is.", "left"
    return table


def _privacy_table(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


class Progress:
    """
    Progress display: one bar per phase on a terminal, one line per phase elsewhere.

    Parameters
    ----------
    console
        The console to draw on; by default standard error.

    Examples
    --------
    >>> with Progress() as progress:  # doctest: +SKIP
    ...     progress.phase("routes")
    ...     progress.phase("traffic and queries", until_s=1800)
    ...     progress.advance_to(600)
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr)
        self._bars = Bars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            refresh_per_second=5,
        )
        self._task: TaskID | None = None
        self._name = ""
        self._until_s: float | None = None
        self._begun = 0.0
        self.clock = RunClock()

    def __repr__(self) -> str:
        """Name the current phase."""
        return f"Progress(phase={self._name!r})"

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the last phase, marked as done only if nothing was raised, and restore the terminal."""
        self._end(done=kind is None)
        if self._console.is_terminal:
            self._bars.stop()

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """
        Begin a phase and end the previous one.

        Parameters
        ----------
        name
            The name of the phase, for example ``routes``.
        until_s
            End of the phase's simulated time, if it has any: the bar fills towards it. Otherwise the bar shows
            activity only.
        """
        self._end(done=True)
        self._name, self._until_s, self._begun = name, until_s, time.perf_counter()
        if self._console.is_terminal:
            self._task = self._bars.add_task(f"{name:<22}", total=until_s, words="")

    def advance_to(self, time_s: float) -> None:
        """
        Update the simulated time that the phase has reached.

        Parameters
        ----------
        time_s
            The simulated time, in seconds from the start of the run.
        """
        if self._task is not None and self._until_s is not None:
            words = f"{self.clock.text(time_s)} of {self.clock.text(self._until_s)}"
            self._bars.update(self._task, completed=min(time_s, self._until_s), words=words)

    def warn(self, text: str) -> None:
        """Print a warning that is known before traffic is simulated; the summary repeats it."""
        self._console.print(Text(f"Warning, before the run: {text}", style="yellow"))

    def _end(self, *, done: bool) -> None:
        if not self._name:
            return
        if self._task is not None:
            if done:
                total = self._until_s or 1.0
                self._bars.update(self._task, total=total, completed=total)
            self._bars.stop_task(self._task)
        elif not self._console.is_terminal and done:
            elapsed = duration(time.perf_counter() - self._begun)
            self._console.print(f"{self._name}: {elapsed}", markup=False, highlight=False)
        self._task, self._name, self._until_s = None, "", None


def _cost_lines(run: RunResult) -> list[str]:
    """Return what a query costs a device, from the cheapest mechanism to the dearest; nothing where it is not known."""
    costs = run.costs.dropna()
    if costs.empty:
        return []

    def span(column: str, shown: Callable[[float], str] = parameter) -> str:
        return " to ".join(dict.fromkeys(shown(end) for end in (costs[column].min(), costs[column].max())))

    up, down = (f"{span(f'messages_{way}')} {way} ({span(f'bytes_{way}', whole)} bytes)" for way in ("up", "down"))
    energy = f"energy {span('joules')} J if its LTE modem wakes up to answer"
    wait = f"{span('estimate_median_s')} s after the first question (median; 95 %: {span('estimate_95_s')} s)"
    return [f"Messages of a device in a query: {up} and {down}; {energy}. The estimate comes {wait}."]
