"""`crowdveil figures`: writes the figures of a finished run for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.common import FinishedRun, Overwrite


def figures(
    directory: FinishedRun,
    *,
    out: Annotated[Path | None, typer.Option(help="Folder of the figures; DIR/figures if not given.")] = None,
    width: Annotated[
        str, typer.Option(metavar="single|double|MM", help="A column of 3.5 in, two of 7.16 in, or millimetres.")
    ] = "single",
    format_: Annotated[str, typer.Option("--format", metavar="svg,pdf,png", help="Formats, with commas.")] = "svg,pdf",
    every: Annotated[bool, typer.Option("--all", help="Maps of every campaign, not of the first only.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the figures of a finished run as SVG and PDF, at the width of a paper's column."""
    from simulator.plots.files import formats_of, width_in_inches, write_figures  # noqa: PLC0415 - slow to import
    from simulator.results.run import RunResult  # noqa: PLC0415 - slow to import

    folder = directory / "figures" if out is None else out
    width_in, formats = width_in_inches(width), formats_of(format_)
    names, notes = write_figures(
        RunResult.load(directory), folder, width_in=width_in, formats=formats, overwrite=overwrite, every=every
    )
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{folder}: {len(names)} figures, each as {', '.join(formats)}")
