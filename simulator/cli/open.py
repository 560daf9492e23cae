"""`crowdveil open`: the report of a run or a study, in the browser."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from simulator.files.errors import InputError

app = typer.Typer(add_completion=False)

NEWEST = Path("runs/latest")
PAGE = "report.html"


@app.command("open")
def open_report(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="A finished run or study, or a page of its own.")
    ] = NEWEST,
) -> None:
    """Open the report of a run or a study in the browser, by default of the newest run, and print its path."""
    page = directory if directory.is_file() else directory / PAGE
    if not page.is_file():
        how = f"there is no {PAGE} in it; crowdveil report {directory} writes that of a finished run"
        if not directory.is_dir():
            how = "there is none; crowdveil run SCENARIO makes it" if directory == NEWEST else "there is no such folder"
        raise InputError([f"DIR must be a run or a study: {how}; got {directory}"])
    typer.echo(page)
    if browser_name() is not None:
        webbrowser.open(page.resolve().as_uri())


def browser_name() -> str | None:
    """Return the name of the browser that pages are opened in; None if there is none, or no display for it."""
    # Without a display, Python would find text browsers, which take over the terminal.
    shown = sys.platform in {"darwin", "win32"} or {"BROWSER", "DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
    try:
        return str(getattr(webbrowser.get(), "name", "the system's")) if shown else None
    except webbrowser.Error:
        return None
