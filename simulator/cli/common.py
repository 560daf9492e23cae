"""Arguments, options and steps that several commands share."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer

import scenarios
from scenarios import Scenario
from simulator.cli import completions

Reference = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A shipped name or a file.", autocompletion=completions.scenario_names),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="A.B=V", help="Change a value, list items by name or index: mechanisms.sampling.sampling=0.3"
    ),
]
FinishedRun = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of a finished run.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files of the same names.")]
Yes = Annotated[bool, typer.Option("--yes", help="Continue even if memory may not suffice.")]
Seed = Annotated[int | None, typer.Option(help="Seed that replaces the scenario's.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")]
AllowPlugins = Annotated[
    bool, typer.Option("--allow-plugins", help="Import the classes the scenario names; CROWDVEIL_ALLOW_PLUGINS=1 too.")
]
Untrusted = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        help="Refuse plug-ins, engine sumo, and files outside the scenario's folder and CROWDVEIL_DATA; "
        "CROWDVEIL_UNTRUSTED=1 too.",
    ),
]


class StudyOptions(NamedTuple):
    """What `sweep` and `evaluate` have in common: seed and permissions, and where and how long the points run."""

    seed: Seed = None
    scheduler: Annotated[
        str, typer.Option(metavar="processes|dask://HOST:PORT", help="Where the runs are computed.")
    ] = "processes"
    workers: Annotated[int | None, typer.Option(help="Processes; if not given, as many as cores and memory allow.")] = (
        None
    )
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Longest time of a point, after which it counts as failed.")
    ] = None
    quiet: Quiet = False
    allow_plugins: AllowPlugins = False
    untrusted: Untrusted = False
    yes: Yes = False

    def loading(self) -> dict[str, Any]:
        """Return how scenarios are loaded, as `scenarios.load` takes it; a user's own modules can then be imported."""
        if self.allow_plugins:
            find_own_modules()
        return {"seed": self.seed, "allow_plugins": self.allow_plugins, "untrusted": self.untrusted}

    def running(self) -> dict[str, Any]:
        """Return how points are run, as `Sweep` and `Evaluation` take it."""
        from simulator.studies.workers import start_of  # noqa: PLC0415 - imported only when needed

        start = start_of(self.scheduler, self.workers)
        return {"start": start, "assume_yes": self.yes, "timeout_s": self.timeout}


Role = Literal["mechanism", "aggregator", "attack", "engine", "cells", "demand", "reader"]
"""The roles of classes of a user's own."""
MOST_NAMED = 5
LEAST_TEXT = 20
"""Columns that a text has beside its name, however narrow the terminal is."""
UNLIMITED = 10**6
"""Columns of a pipe, so that each text is one line there."""


Command = TypeVar("Command", bound=Callable[..., None])


def target_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the parameters of `mechanisms.planning.Target` as options, which it receives as keywords.

    Parameters
    ----------
    names
        Those that it has; by default all.
    """
    from mechanisms.planning import Target  # noqa: PLC0415 - imported only when needed

    options = []
    for field in fields(Target):
        if not names or field.name in names:
            completed = completions.view_names if field.name == "view" else None
            flags = ["--published/--unpublished"] if field.name == "published" else [f"--{field.name}"]
            stated = field.metadata
            option = typer.Option(*flags, metavar=stated["unit"], help=stated["text"], autocompletion=completed)
            default = Parameter.empty if field.default is MISSING else field.default
            kind = Annotated[field.type, option]  # type: ignore[name-defined]  # known when it is run
            options.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return partial(_with_options, before=options)


def study_options(command: Command) -> Command:
    """Give a command the fields of `StudyOptions` as options, which it receives as keywords."""
    kinds, defaults = get_type_hints(StudyOptions, include_extras=True), StudyOptions._field_defaults
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kinds[name]) for name in kinds
    ]
    return _with_options(command, after=options)


def _with_options(command: Command, before: Sequence[Parameter] = (), after: Sequence[Parameter] = ()) -> Command:
    declared = [each for each in signature(command).parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    command.__signature__ = Signature([*before, *declared, *after])  # type: ignore[attr-defined]
    command.__annotations__ |= {option.name: option.annotation for option in (*before, *after)}
    return command


def load_scenario(
    reference: str,
    overrides: list[str] | None = None,
    *,
    seed: int | None = None,
    allow_plugins: bool = False,
    untrusted: bool = False,
) -> Scenario:
    """Read a scenario, and print which files outside its folder it reads."""
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
    """Print a value as JSON alone on standard output."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=allow_nan))
