"""`crowdveil notebook`: a copy of the shipped notebook, opened in JupyterLab."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from simulator.cli.common import print_notes
from simulator.cli.options import command
from simulator.files.errors import InputError
from simulator.files.extras import import_extra

SHIPPED = "city.ipynb"


@command
def notebook(file: Path = Path(SHIPPED)) -> None:
    """Write a copy of the shipped notebook, which makes a city of its own, and open it in JupyterLab.

    Parameters
    ----------
    file : [FILE]
        The copy; city.ipynb if not given. A file that exists is opened as it is.
    """
    import_extra("jupyterlab", needed="a notebook needs JupyterLab", extra="notebook")
    if file.suffix != ".ipynb":
        raise InputError([f"FILE: must end in .ipynb; got {file}"])
    if file.exists():
        print_notes([f"{file} exists, and is opened as it is"])
    else:
        with file.open("xb") as copy:
            copy.write(shipped().read_bytes())
    typer.echo(file)
    sys.stdout.flush()
    program = [sys.executable, "-m", "jupyterlab", str(file)]
    if sys.platform == "win32":  # where a new program would not take the place of this one
        raise typer.Exit(subprocess.run(program, check=False).returncode)  # noqa: S603 - this Python and a file
    os.execv(program[0], program)  # noqa: S606 - Ctrl-C is then for JupyterLab alone


def shipped() -> Path:
    """Return the shipped notebook: beside this module once installed, else in the repository's ``docs`` folder."""
    packaged = Path(__file__).with_name(SHIPPED)
    return packaged if packaged.is_file() else Path(__file__).parents[2] / "docs" / "start" / SHIPPED
