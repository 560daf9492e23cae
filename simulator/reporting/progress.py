"""Progress of a run on standard error."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from simulator.reporting.formatting import clock, duration


class Progress:
    """
    Draws a bar a phase on a terminal, and writes a line a phase elsewhere.

    Parameters
    ----------
    console
        Where to draw; by default standard error.

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

    def __repr__(self) -> str:
        """Name the phase under way."""
        return f"Progress(phase={self._name!r})"

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the last phase, as done only if nothing was raised, and leave the terminal as it was."""
        self._end(done=kind is None)
        if self._console.is_terminal:
            self._bars.stop()

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """
        Begin a phase, ending the one before.

        Parameters
        ----------
        name
            What is done, for example ``routes``.
        until_s
            Where its simulated time ends, if it has any: the bar fills towards it. Otherwise it only moves.
        """
        self._end(done=True)
        self._name, self._until_s, self._begun = name, until_s, time.perf_counter()
        if self._console.is_terminal:
            self._task = self._bars.add_task(f"{name:<22}", total=until_s, words="")

    def advance_to(self, time_s: float) -> None:
        """
        Say that the phase's simulated time has reached a moment.

        Parameters
        ----------
        time_s
            The moment, in seconds from the start of the run.
        """
        if self._task is not None and self._until_s is not None:
            words = f"{clock(time_s)} of {clock(self._until_s)}"
            self._bars.update(self._task, completed=min(time_s, self._until_s), words=words)

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
