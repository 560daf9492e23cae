"""`crowdveil open`: the report of a run or a study, in the browser."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from simulator.files.errors import InputError

FOLDERS = ("runs", "studies")
"""Where commands write runs and studies if no other directory is given."""
PAGE = "report.html"


def open_report(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A finished run or study, or a page of its own.")
    ] = None,
) -> None:
    """Open a report in the browser, by default that of the newest run or study, and print its path."""
    directory = newest() if directory is None else directory
    page = directory if directory.is_file() else directory / PAGE
    if not page.is_file():
        how = f"there is no {PAGE} in it; crowdveil report {directory} writes that of a finished run"
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
        where = " or ".join(FOLDERS)
        raise InputError(
            [f"DIR must be a run or a study: there is no {PAGE} in {where}; crowdveil run SCENARIO makes one"]
        )
    return max(pages, key=lambda page: page.stat().st_mtime_ns)


def browser_name() -> str | None:
    """Return the name of the browser that pages are opened in; None if there is none, or no display for it."""
    # Without a display, Python would find text browsers, which take over the terminal.
    shown = sys.platform in {"darwin", "win32"} or {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    try:
        return str(getattr(webbrowser.get(), "name", "the system's")) if shown else None
    except webbrowser.Error:
        return None
