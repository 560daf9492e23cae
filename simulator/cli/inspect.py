"""`crowdveil inspect`: what files are, what is missing, and the scenario that reads them."""

import shlex
from pathlib import Path

import typer

from simulator.cli.common import print_notes, print_rows
from simulator.cli.options import Overwrite, command


@command
def inspect(paths: list[Path], *, write: Path | None = None, overwrite: Overwrite = False) -> None:
    """Show what files or a folder hold, and write the scenario that reads them.

    Parameters
    ----------
    paths : FILE|FOLDER…
        Roads, trips, recorded positions, counts or zones of one city; a folder of such files.
    write : FILE.toml
        Write the scenario, which `crowdveil run` runs at once, in place of printing it.
    """
    from simulator.files.atomic_write import export_file  # noqa: PLC0415 - imported only when needed
    from simulator.files.errors import InputError  # noqa: PLC0415 - imported only when needed
    from simulator.inspection.suggested_scenario import inspect as inspect_files  # noqa: PLC0415 - slow, and needed by this command alone

    if write is not None and write.suffix != ".toml":
        raise InputError([f"{write}: the name of the file must end in .toml"])
    folder, name = (Path(), "") if write is None else (write.parent, write.stem)
    found = inspect_files(paths, folder=folder, name=name)
    print_rows(found.rows)
    print_notes(found.notes)
    for line in found.missing:
        typer.echo(f"missing: {line}")
    if write is None:
        typer.echo(f"\n{found.toml}", nl=False)
        return
    if not found.complete:
        raise InputError([f"{write}: not written: {'; '.join(found.missing)}"])

    def fill(file: Path) -> None:
        file.write_text(found.toml, encoding="utf-8")

    export_file(write, fill, overwrite=overwrite)
    typer.echo(f"{write} is written: crowdveil run {shlex.quote(str(write))} runs it")
