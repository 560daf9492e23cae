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
