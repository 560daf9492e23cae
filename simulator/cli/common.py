"""Steps that several commands share: load a scenario, find a user's modules, and print."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from scenarios import Scenario

MOST_NAMED = 5
LEAST_TEXT = 20
"""Columns that a text has beside its name, however narrow the terminal is."""
UNLIMITED = 10**6
"""Columns of a pipe, so that each text is one line there."""


def load_scenario(
    reference: str,
    overrides: list[str] | None = None,
    *,
    seed: int | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
) -> "Scenario":
    """Read a scenario, and print which files outside its folder it reads."""
    import scenarios  # noqa: PLC0415 - slow to import, and not for every command

    scenario = scenarios.load(
        reference, overrides=tuple(overrides or ()), seed=seed, allow_plugins=allow_plugins, untrusted=untrusted
    )
    print_files_outside(scenario.files_outside())
    if scenario.permissions.allow_plugins:
        find_own_modules()
    return scenario


def print_files_outside(files: Sequence[object]) -> None:
    """Print which files outside the scenario's and the data folder are read; if there are many, the first few."""
    if files:
        more = f" and {len(files) - MOST_NAMED:,} more" if len(files) > MOST_NAMED else ""
        named = ", ".join(map(str, files[:MOST_NAMED]))
        typer.echo(f"note: reads outside the scenario's folder and CROWDVEIL_DATA: {named}{more}", err=True)


def print_notes(notes: Iterable[object]) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)


@contextmanager
def saying_what_is_kept(words: str) -> Iterator[None]:
    """Print a note on standard error if a signal ends the block."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        print_notes([words])
        raise


def find_own_modules() -> None:
    """Let modules in the working directory be imported: a user's own are there."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)


@contextmanager
def meter(name: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show on standard error, if it is a terminal, how much is done and the time left; yield what adds to it."""
    from rich.console import Console  # noqa: PLC0415 - imported only when needed
    from rich.progress import Progress  # noqa: PLC0415 - imported only when needed

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield partial(progress.advance, progress.add_task(name, total=total))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns, the texts wrapped as `wrapped` does."""
    listed = list(rows)
    indent = max((len(name) for name, _ in listed), default=0) + 2
    for name, text in listed:
        typer.echo(f"{name:<{indent}}{wrapped(text, indent)}".rstrip())


def wrapped(text: str, indent: int = 0) -> str:
    """Wrap a text between words at the width of the terminal or `COLUMNS`; a pipe without has no width.

    Each line but the first begins with `indent` spaces, the space that is left of the first.
    """
    width = max(shutil.get_terminal_size((UNLIMITED, 24)).columns - indent, LEAST_TEXT)
    return f"\n{'':<{indent}}".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def print_json(value: object, *, allow_nan: bool = True) -> None:
    """Print a value as JSON alone on standard output, in ASCII if the stream is not in Unicode."""
    ascii_only = not sys.stdout.encoding.lower().startswith("utf")
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=allow_nan))
