"""What a notebook shows: how far a run or a study is, the scores of a run, and its map, which a reader can zoom."""

import sys
import time
from html import escape
from pathlib import Path
from typing import Any, Self

import numpy as np

from scenarios.run_clock import RunClock
from simulator.pages.document import Document, render, write_document
from simulator.pages.map_section import map_section
from simulator.pages.report import script_data
from simulator.results.formatting import number
from simulator.results.run import RunResult

_EVERY_S = 0.2
"""Least time between two pictures of a bar, seconds: each is a message to the browser."""
_COMPACT = (
    "header, main section { padding-top: 0 } .kicker { display: none } h1 { font-size: 1.1rem } #controls { top: 0 }"
)


class NotebookProgress:
    """A bar below a cell of a notebook, which is taken away when the work has ended.

    It is a receiver of the progress of a run.

    Parameters
    ----------
    shown
        Whether the bar is wanted; it is shown in a notebook only.
    """

    def __init__(self, *, shown: bool = True) -> None:
        # A kernel has imported IPython before any cell runs; the shell of a terminal has no kernel.
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        self._works = shown and hasattr(shell, "kernel")
        self._handle: Any = None
        self._name, self._until_s = "", 0.0
        self._begun_s, self._drawn_s = time.monotonic(), 0.0
        self.clock = RunClock()

    def __enter__(self) -> Self:
        """Return the receiver; the bar appears with the first report."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def phase(self, name: str, *, until_s: float | None = None) -> None:
        """Show that a phase begins; `until_s` is the end of its simulated time, if it has any."""
        self._name, self._until_s, self._drawn_s = name, until_s or 0.0, 0.0
        self.show(name)

    def advance_to(self, time_s: float) -> None:
        """Show the simulated time that the phase has reached, seconds from the start of the run."""
        if self._until_s > 0.0:
            reached = f"{self.clock.text(time_s)} of {self.clock.text(self._until_s)}"
            self.show(f"{self._name}: {reached}", time_s / self._until_s)

    def warn(self, text: str) -> None:
        """Ignore a warning, which is in the result too."""

    def show(self, words: str, share: float | None = None) -> None:
        """Show what is done, and its share of the whole if that is known; soon after the last time nothing."""
        now_s = time.monotonic()
        if not self._works or now_s < self._drawn_s + _EVERY_S:
            return
        self._drawn_s = now_s
        words = f"{words} ({now_s - self._begun_s:.0f} s)"
        value = "" if share is None else f' value="{share:.3f}"'
        html = f'<label><progress{value} style="width:16em"></progress> {escape(words)}</label>'
        shown: dict[str, Any] = {"text/html": html, "text/plain": words}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


class RunMap:
    """The map of a run: truth, estimate and error of each query, and the vehicles where the run keeps them.

    A notebook shows it in a frame. The frame is a page of its own: it loads nothing from elsewhere, and its scripts
    cannot reach the notebook.

    Parameters
    ----------
    run
        The run.
    vehicles
        Whether the movements of the vehicles are in the page.
    height_px
        Height of the frame in a notebook, pixels; the page scrolls inside the frame.
    """

    def __init__(self, run: RunResult, *, vehicles: bool = True, height_px: int = 640) -> None:
        self._run = run.leading if vehicles else run.leading.with_tables(entries=None, places=None)
        self._height_px = height_px

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def html(self) -> str:
        """The page, which opens in a browser offline."""
        run = self._run
        document = Document(
            title=f"{run.record.scenario} · crowdveil map",
            kicker="map of a run",
            heading=f"{run.record.scenario}, seed {run.record.seed}",
            header="",
            sections=[map_section(run)],
            made_of="; ".join(["from the run’s own files", *run.attributions]),
            values={"run": run},
            data=script_data(run),
            style=_COMPACT,
        )
        return render(document)

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="Map of {escape(self._run.record.scenario)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self._height_px:d}px;border:0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<map of {self._run!r}; save(path) writes it as a page>"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, which replaces an earlier one, and return its path."""
        return write_document(self.html, Path(path))


def summary_html(data: RunResult) -> str:
    """Return a run as HTML for a notebook: its name, its scores and its map without vehicles; all names are escaped."""
    columns = ["campaign", "mechanism", "statistic", "queries", "rmse", "theory_rmse", "coverage"]
    table = data.leading.scores[columns].to_html(index=False, border=0, float_format=number)
    html = f"<p><b>{escape(data.record.scenario)}</b>, seed {data.record.seed}, {len(data.cells):,} cells</p>{table}"
    return html + RunMap(data, vehicles=False)._repr_html_()
