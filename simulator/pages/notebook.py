"""What a notebook shows: how far a run or a study is, the scores of a run, and its map, which a reader can zoom."""

import sys
import time
from contextlib import suppress
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any, Self

import numpy as np

from scenarios.run_clock import RunClock
from simulator.files.atomic_write import write_file
from simulator.files.errors import InputError
from simulator.pages.document import Document, render
from simulator.pages.map_section import map_section
from simulator.pages.plots.looks import figure_of, paper_style, pyplot
from simulator.pages.plots.run_plots import NothingToDrawError, RunPlots
from simulator.pages.report import script_data
from simulator.results.formatting import counted, duration, number
from simulator.results.run import RunResult

_EVERY_S = 0.2
"""Least time between two pictures of a bar, seconds: each is a message to the browser."""
_COMPACT = """
header { padding-top: 0; }
.kicker { display: none; }
h1 { font-size: 1.1rem; }
main section { padding-top: 0; }
footer { font-size: .8rem; }
"""
_HEIGHT_PX = 640


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
        words = f"{words} ({duration(round(now_s - self._begun_s))})"
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

    def __init__(self, run: RunResult, *, vehicles: bool = True, height_px: int = _HEIGHT_PX) -> None:
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
            f'<iframe title="Map of {escape(self._run.record.scenario)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{self._height_px:d}px;border:0" srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        run = self._run
        return (
            f"<RunMap of {run.record.scenario}: {run.record.queries} queries, {run.record.city.cells} cells, "
            f"{counted(len(run.record.mechanisms), 'mechanism')}; save(path) writes it as a page>"
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page.

        Parameters
        ----------
        path
            The file; missing parent folders are created.
        overwrite
            Whether an existing file is replaced.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileExistsError
            If the file exists and may not be replaced.
        """
        html = self.html
        write_file(Path(path), lambda made: made.write_text(html, encoding="utf-8", newline="\n"), overwrite=overwrite)
        return Path(path)


def summary_html(data: RunResult) -> str:
    """Return a run as HTML for a notebook: its name, its scores and, if matplotlib is installed, a map without roads.

    All names are escaped.
    """
    columns = ["campaign", "mechanism", "statistic", "queries", "rmse", "theory_rmse", "coverage"]
    table = data.leading.scores[columns].to_html(index=False, border=0, float_format=number)
    html = f"<p><b>{escape(data.record.scenario)}</b>, seed {data.record.seed}, {len(data.cells):,} cells</p>{table}"
    with suppress(InputError, NothingToDrawError):
        with pyplot().rc_context(paper_style()):
            text = StringIO()
            figure_of(RunPlots(data, shown=False).map(roads=False)).savefig(text, format="svg", metadata={"Date": None})
        # The XML declaration and the document type have no place inside a page.
        html += text.getvalue()[text.getvalue().index("<svg") :]
    return html
