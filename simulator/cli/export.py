"""`crowdveil export`: writes a finished run for other programs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from simulator.cli.common import FinishedRun, Overwrite

NAMES = {"geopackage": "run.gpkg", "kepler": "kepler.geojson", "simwrapper": "simwrapper"}
"""What is written into the run directory if no path is given."""
POSITIONS = "the true positions of vehicles are in it: no mechanism protects them"


def export(
    directory: FinishedRun,
    *,
    to: Annotated[
        Literal["geopackage", "kepler", "simwrapper"],
        typer.Option(help="A file for QGIS, trips for kepler.gl, or a folder for SimWrapper."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="What to write; DIR/run.gpkg, DIR/kepler.geojson or DIR/simwrapper if not given."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a finished run for QGIS, kepler.gl or SimWrapper."""
    from simulator.exports.geopackage import write_geopackage  # noqa: PLC0415 - slow to import
    from simulator.exports.positions import HOW_TO_KEEP, write_trips  # noqa: PLC0415 - slow to import
    from simulator.exports.simwrapper import write_folder  # noqa: PLC0415 - slow to import
    from simulator.results.run import RunResult  # noqa: PLC0415 - slow to import

    data, path = RunResult.load(directory), directory / NAMES[to] if out is None else out
    notes = [f"wherever this is shown, state the source of the data: {credit}" for credit in data.attributions]
    if to == "geopackage":
        write_geopackage(data, path, overwrite=overwrite)
    elif to == "kepler":
        write_trips(data, directory, path, overwrite=overwrite)
        notes.append(POSITIONS)
    else:
        moving = write_folder(data, directory, path, overwrite=overwrite)
        notes.append(POSITIONS if moving else f"no vehicles are in it, since the run kept no positions; {HOW_TO_KEEP}")
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{path}: written for {to}")
