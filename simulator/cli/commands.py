"""The commands of `crowdveil` by name. Their help lists them without importing them, so that it appears at once."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from math import inf
from shutil import get_terminal_size
from textwrap import shorten
from threading import Event, RLock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command

from simulator.files.extras import own_version

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


COMMANDS = {
    "run": "Simulate a scenario and write its run directory, report included.",
    "inspect": "Show what files or a folder hold, and write the scenario that reads them.",
    "sweep": "Run a scenario with varied values, and go on where an earlier command stopped; exit code 1 if points "
    "failed.",
    "evaluate": "Evaluate mechanisms over data sets: error, leak and cost of each, set for one target; one table.",
    "defences": "Print attacks × defences: of 100 drivers, how many each attack finds in each campaign of a scenario.",
    "participation": "Find how many vehicles must take part: error of counts, flows and speeds against participation.",
    "report": "Write report.html of a finished run again.",
    "statement": "Write one page on a finished run to take to a meeting: what is collected, who learns what, what can "
    "fail.",
    "figures": "Write the figures of a finished run or study as SVG and PDF, at the width of a paper's column, or a "
    "run's film.",
    "export": "Write a finished run for QGIS, SUMO or GMNS tools.",
    "reproduce": "Compute the papers' tables and figures and compare them; exit code 0 even if published values "
    "differ.",
    "check": "Check a class of your own against the contract of its role; exit code 1 if it fails.",
    "audit": "Estimate an ε from below and the bias of a randomiser; exit code 1 if the ε is above the one claimed.",
    "open": "Open a report in the browser, by default the report of the newest run or study, and print its path.",
    "notebook": "Write a copy of the shipped notebook, which makes a city of its own, and open it in JupyterLab.",
    "new": "Write a class of your own to start from, with a test and a scenario.",
    "explore": "Open a page with sliders: two designs side by side, their errors, and what each party learns.",
    "advise": "Find the best design for a city under each trust: its error in three zones, and what each party learns.",
    "plan": "Find each mechanism's parameters that meet a privacy or an error target, or state why none do.",
    "scenarios": "Scenario files: list, show, new, check, schema.",
    "data": "Data sets: list, check, fetch.",
    "roads": "Roads of a scenario: show, export.",
}
"""The first line of each command's own help."""
PLACES = {name: f"finished_runs:{name}" for name in ("report", "statement", "figures", "export")} | {
    "open": "finished_runs:open_report",
    "notebook": "new:notebook",
}
"""Module and function of a command in this package, if they have not the command's name."""


@contextmanager
def notice(command: str) -> Iterator[None]:
    """Show on standard error, a terminal, which command runs and for how long, whenever nothing is printed for 1 s.

    The line is erased before the command prints, and at the end. Importing rich for it would take too long.
    """
    streams = [one for one in (sys.stderr, sys.stdout) if one is not None and one.isatty()]
    ended, lock, began_s = Event(), RLock(), monotonic()
    printed_s, shown, show = began_s, "", sys.stderr.write
    command = shorten(f"crowdveil {command}", max(20, get_terminal_size().columns - 12), placeholder=" …")

    def print_over(write: Callable[[str], int], text: str) -> int:
        nonlocal printed_s, shown
        with lock:
            if shown:
                show(f"\r{' ' * len(shown)}\r")
                sys.stderr.flush()
            # After part of a line, as of a progress bar, the notice waits for the end of the line.
            printed_s, shown = monotonic() if text.endswith("\n") else inf, ""
            return write(text)

    def tick() -> None:
        nonlocal shown
        while not ended.wait(0.25):
            with lock:
                if monotonic() - printed_s >= 1.0:
                    shown = f"{command} … {monotonic() - began_s:.0f} s"
                    show(f"\r{shown}")
                    sys.stderr.flush()

    for stream in streams:
        stream.write = partial(print_over, stream.write)  # type: ignore[method-assign]
    Thread(target=tick, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        print_over(show, "")
        for stream in streams:
            del stream.write


class Group(TyperGroup):
    """A group that prints its help where no command is given, and suggests one where there is none of a name."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Return the arguments; print the help if there are none."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002 - as typer calls it
        """List the commands with the first lines of their help, whole."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (its.help or "").partition("\n")[0]) for name, its in self.commands.items()])

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, Command | None, list[str]]":
        """Return the name of the command called, the command itself, and its arguments."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            from scenarios.errors import suggestion  # noqa: PLC0415 - imported only when needed

            hint = suggestion(name, self.commands)
            ctx.fail(f"there is no command {ctx.command_path} {name}{hint}; there are {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that imports the module of a command when the command is called."""

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, Command | None, list[str]]":
        """Return the name of the command called, the command itself, and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        if name is None:
            return None, listed, rest
        return name, load_command(name), rest


def load_command(name: str) -> "Command":
    """Import the module of a command and return the command, whose help is plain text: rich breaks words in boxes."""
    module, _, function = PLACES.get(name, f"{name}:{name}").partition(":")
    imported = import_module(f"simulator.cli.{module}")
    if (group := getattr(imported, "app", None)) is None:
        group = typer.Typer(add_completion=False)
        group.command()(getattr(imported, function))
    group.rich_markup_mode = None
    return get_command(group)


app = typer.Typer(
    name="crowdveil",
    cls=LazyGroup,
    help="Simulate vehicular crowdsourcing under a privacy protocol: how good is the traffic picture, and what does "
    "each party learn about a driver?",
    rich_markup_mode=None,  # importing rich for the boxes of typer takes longer than all else
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def crowdveil(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False
) -> None:
    """Answer options that need no command."""
    if version:
        print_version()
        raise typer.Exit


def print_version() -> None:
    """Print the version of crowdveil."""
    typer.echo(f"crowdveil {own_version()}")


def _listed() -> None:
    """Do nothing: the command of this name is imported when it is called."""


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_listed)
