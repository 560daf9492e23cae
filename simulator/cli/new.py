"""`crowdveil new` and `notebook`: write files to start from, a part of one's own with its test or a notebook."""

import keyword
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated, get_args

import typer

from simulator.cli.common import print_notes
from simulator.cli.options import Role, command
from simulator.files.errors import InputError
from simulator.files.extras import import_extra

TEMPLATES = Path(__file__).parent / "templates"
"""One folder for each role, with the files of `FILES`, in which ``$name`` and ``$class`` stand for the names."""
FILES = {"module.py.template": "{}.py", "test.py.template": "test_{}.py", "scenario.toml.template": "{}.toml"}
"""Files of a role's templates, and what they are written to."""
NOTEBOOK = "city.ipynb"
"""The shipped notebook: among the templates once installed, else in the repository's ``docs`` folder."""


@command
def new(role: Annotated[Role, typer.Argument(metavar="ROLE", help=f"{', '.join(get_args(Role))}.")], name: str) -> None:
    """Write a class of your own to start from, with a test and a scenario.

    Parameters
    ----------
    name : NAME
        Name of the module, without .py.
    """
    templates, class_ = TEMPLATES / role, _class_of(name)
    files = {Path(target.format(name)): templates / source for source, target in FILES.items()}
    for file in files:
        if file.exists():
            raise typer.BadParameter(f"{file} exists already; name another", param_hint="NAME")
    if find_spec(name) is not None:
        raise typer.BadParameter(f"a module {name} exists already, which {name}.py would hide", param_hint="NAME")
    for file, source in files.items():
        text = Template(source.read_text(encoding="utf-8")).substitute({"name": name, "class": class_})
        with file.open("x", encoding="utf-8") as written:
            written.write(text)
    module, test, scenario = (shlex.quote(str(file)) for file in files)
    option = " --set epsilon=1" if role == "mechanism" else ""
    typer.echo(f"{module}, {test} and {scenario} are written.")
    typer.echo(f"crowdveil check {name}:{class_}{option}")
    typer.echo(f"crowdveil run {scenario} --allow-plugins")
    typer.echo(f"python -m pytest {test}{'' if find_spec('pytest') else '    # needs the package pytest'}")


def _class_of(name: str) -> str:
    """Return the name of the class in a module of this name: my_attack has MyAttack."""
    parts = [word for word in name.split("_") if word]
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII) or keyword.iskeyword(name):
        raise typer.BadParameter(
            f"must be the name of a Python module: letters, digits and _, first a letter, and no keyword; got {name}",
            param_hint="NAME",
        )
    return "".join(word[0].upper() + word[1:] for word in parts)


@command
def notebook(file: Path = Path(NOTEBOOK)) -> None:
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
            copy.write(shipped_notebook().read_bytes())
    typer.echo(file)
    sys.stdout.flush()
    program = [sys.executable, "-m", "jupyterlab", str(file)]
    if sys.platform == "win32":  # where a new program would not take the place of this one
        raise typer.Exit(subprocess.run(program, check=False).returncode)  # noqa: S603 - this Python and a file
    os.execv(program[0], program)  # noqa: S606 - Ctrl-C is then for JupyterLab alone


def shipped_notebook() -> Path:
    """Return the path of the shipped notebook."""
    packaged = TEMPLATES / NOTEBOOK
    return packaged if packaged.is_file() else TEMPLATES.parents[2] / "docs" / "start" / NOTEBOOK
