"""`crowdveil report`, `statement`, `figures`, `export` and `open`: what is made of a finished run, and its pages."""

import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from simulator.cli.common import print_notes
from simulator.cli.options import FinishedRun, Overwrite, StatementOptions, command, options_of
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from simulator.results.run import RunResult

EXPORTED = {"geopackage": "run.gpkg", "edgedata": "edgedata.xml", "gmns": "link_performance.csv"}
"""What an export writes into the run directory if no path is given."""
FOLDERS = ("runs", "studies")
"""Where commands write runs and studies if no other directory is given."""
PAGE = "report.html"


@contextmanager
def opened_run(directory: Path) -> Iterator["RunResult"]:
    """Load a finished run; an error in the block that has no message of its own names its directory."""
    from simulator.results.run import RunResult  # noqa: PLC0415 - slow to import
    from simulator.results.store import damage_named  # noqa: PLC0415 - slow to import

    with damage_named(directory):
        yield RunResult.load(directory)


@command
def report(directory: FinishedRun) -> None:
    """Write report.html of a finished run again."""
    from simulator.pages.report import write_report  # noqa: PLC0415 - slow to import
    from simulator.results.store import damage_named  # noqa: PLC0415 - slow to import

    with damage_named(directory):
        typer.echo(write_report(directory))


@partial(command, after=options_of(StatementOptions))
def statement(
    directory: FinishedRun,
    *,
    mechanism: str = "",
    campaign: str = "",
    out: Path | None = None,
    overwrite: Overwrite = False,
    **given: Any,
) -> None:
    """Write one page on a finished run to take to a meeting: what is collected, who learns what, what can fail.

    Parameters
    ----------
    mechanism : NAME
        What the page is about; if not given, the first mechanism other than no privacy.
    campaign : NAME
        In which campaign; if not given, the first that counts with the mechanism.
    out : FILE
        Ending in .html, which prints on one A4, .md or .json; DIR/statement.html if not given.
    """
    from simulator.pages.statement import statement_of_run, write_statement  # noqa: PLC0415 - slow to import

    out = directory / "statement.html" if out is None else out
    with opened_run(directory) as run:
        made = statement_of_run(run, mechanism, campaign, **given)
        write_statement(made, out, overwrite=overwrite)
        others = {own.mechanism for one in run.record.deployments for own in one.mechanisms}
    print_notes([f"about {made.title} only; --mechanism: {', '.join(sorted(others))}"] * (len(others) > 1))
    typer.echo(out)


@command
def figures(
    directory: FinishedRun,
    *,
    out: Path | None = None,
    width: str | None = None,
    format_: str | None = None,
    every: Annotated[bool, typer.Option("--all")] = False,
    film: bool = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the figures of a finished run or study as SVG and PDF, at the width of a paper's column, or a run's film.

    Parameters
    ----------
    out
        Folder of the figures, DIR/figures if not given; or the film, DIR/film.gif if not given.
    width : single|double|MM
        A column of 3.5 in, two of 7.16 in, or millimetres; single if not given, and 1,280 dots for a film.
    format_ : svg,pdf,png
        Formats, with commas; svg,pdf if not given. Of a film gif or mp4; gif if not given.
    every
        Maps of every campaign, not of the first only; of a study the charts that its page folds away.
    film
        Write a film of the vehicles and of the estimates instead of the figures.
    """
    from simulator.pages.plots.files import formats_of, width_in_inches, write_figures  # noqa: PLC0415 - slow to import
    from simulator.pages.plots.film import WIDTH_IN, write_film  # noqa: PLC0415 - slow to import
    from simulator.pages.plots.looks import pyplot  # noqa: PLC0415 - slow to import
    from simulator.results.store import COMPLETE  # noqa: PLC0415 - slow to import
    from simulator.studies.report import write_study_figures  # noqa: PLC0415 - slow to import
    from simulator.studies.store import FACTS, Study  # noqa: PLC0415 - slow to import

    width_in = WIDTH_IN if film and width is None else width_in_inches(width or "single")
    pyplot()  # before the run is read: without matplotlib there is nothing to do
    if film:
        file = directory / f"film.{format_ or 'gif'}" if out is None else out
        with opened_run(directory) as run:
            print_notes(write_film(run, file, width_in=width_in, overwrite=overwrite))
        typer.echo(file)
        return
    folder, formats = directory / "figures" if out is None else out, formats_of(format_ or "svg,pdf")
    options: dict[str, Any] = {"width_in": width_in, "formats": formats, "overwrite": overwrite, "every": every}
    if (directory / FACTS).is_file() and not (directory / COMPLETE).is_file():
        names, notes = write_study_figures(Study.load(directory), folder, **options)
    else:
        with opened_run(directory) as run:
            names, notes = write_figures(run, folder, **options)
    print_notes(notes)
    typer.echo(f"{folder}: {len(names)} figures, each as {', '.join(formats)}")


@command
def export(
    directory: FinishedRun,
    *,
    to: Literal["geopackage", "edgedata", "gmns"],
    out: Path | None = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a finished run for QGIS, SUMO or GMNS tools.

    Parameters
    ----------
    to
        A GeoPackage for QGIS, or links by interval: SUMO's edge data, or the link performance of DTALite and Path4GMNS.
    out
        What to write; run.gpkg, edgedata.xml or link_performance.csv in DIR if not given.
    """
    from simulator.pages.exports.geopackage import write_geopackage  # noqa: PLC0415 - slow to import
    from simulator.pages.exports.link_tables import write_edge_data, write_link_performance  # noqa: PLC0415 - slow to import

    path = directory / EXPORTED[to] if out is None else out
    write = {"geopackage": write_geopackage, "edgedata": write_edge_data, "gmns": write_link_performance}[to]
    with opened_run(directory) as run:
        notes = [f"wherever this is shown, state the source of the data: {credit}" for credit in run.attributions]
        write(run, path, overwrite=overwrite)
    print_notes(notes)
    typer.echo(f"{path}: written for {to}")


@command
def open_report(directory: Path | None = None) -> None:
    """Open a report in the browser, by default the report of the newest run or study, and print its path.

    Parameters
    ----------
    directory : [DIR]
        A finished run or study, or a page of its own.
    """
    directory = newest() if directory is None else directory
    page = directory if directory.is_file() else directory / PAGE
    if not page.is_file():
        how = f"there is no {PAGE} in it; crowdveil report {directory} writes it for a finished run"
        if not directory.is_dir():
            how = "there is no such folder"
        raise InputError([f"DIR must be a run or a study: {how}; got {directory}"])
    typer.echo(page)
    if browser_name() is not None:
        webbrowser.open(page.resolve().as_uri())


def newest() -> Path:
    """Return the report that was written last of those in `FOLDERS`.

    Raises
    ------
    InputError
        If there is none.
    """
    pages = [page for folder in FOLDERS for page in Path(folder).glob(f"*/{PAGE}") if not page.parent.is_symlink()]
    if not pages:
        none = f"there is no {PAGE} in {' or '.join(FOLDERS)}; crowdveil run SCENARIO makes one"
        raise InputError([f"DIR must be a run or a study: {none}"])
    return max(pages, key=lambda page: page.stat().st_mtime_ns)


def browser_name() -> str | None:
    """Return the name of the browser that pages are opened in; None if there is none, or no display for it."""
    # Without a display, Python would find text browsers, which take over the terminal.
    shown = sys.platform in {"darwin", "win32"} or {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    try:
        return str(getattr(webbrowser.get(), "name", "the system's")) if shown else None
    except webbrowser.Error:
        return None
