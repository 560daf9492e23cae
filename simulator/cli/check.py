"""`crowdveil check`: check that a mechanism satisfies the contract of local mechanisms."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.overrides import apply_overrides
from simulator.cli.common import find_own_modules, print_json

if TYPE_CHECKING:
    from mechanisms.conformance import ConformanceReport

app = typer.Typer(add_completion=False)


class MechanismError(ValueError):
    """A mechanism that cannot be made: its class does not exist, or does not accept the parameters."""


@app.command()
def check(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="PACKAGE.MODULE:CLASS", help="Any class; for one of mechanisms.local its name suffices."
        ),
    ],
    *,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter: sampling=0.3")
    ] = None,
    cells: Annotated[
        int,
        typer.Option(
            help="Cells of the instance that is checked; another has 10, or 3 if these are more.", min=1, max=16
        ),
    ] = 3,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer devices, one query, one number of cells.")] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="50 times the devices, large crowds: finds smaller faults, in minutes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a mechanism against the contract and its own claims; exit code 1 if it fails."""
    from mechanisms.conformance import check_mechanism  # noqa: PLC0415 - imported only when needed

    if quick and thorough:
        raise typer.BadParameter("--quick and --thorough cannot be given together")
    make = _mechanism_factory(mechanism, set_ or [])
    try:
        make(cells=cells)
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{mechanism} refuses its parameters: {error}") from error
    report = check_mechanism(make, cells=cells, seed=seed, quick=quick, thorough=thorough, raise_failures=False)
    if json:
        print_json(report.to_dict())
    else:
        _print_conformance(report)
    raise typer.Exit(0 if report.passed else 1)


def _mechanism_factory(reference: str, settings: list[str]) -> Callable[..., object]:
    """Import a class and return what makes an instance of it, given `cells`.

    Raises
    ------
    MechanismError
        If it cannot be imported, or a setting cannot be read.
    """
    module, colon, name = reference.partition(":")
    if not colon:
        module, name = "mechanisms.local", reference
    find_own_modules()
    parameters: dict[str, Any] = {}
    if faults := apply_overrides(parameters, settings):
        raise MechanismError("; ".join(str(fault) for fault in faults))
    try:
        make = getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's module may raise anything while it is imported
        raise MechanismError(f"{reference} cannot be imported ({type(error).__name__}: {error})") from error
    return lambda *, cells: make(**{"cells": cells, **parameters})


def _print_conformance(report: "ConformanceReport") -> None:
    """Print every check as a row of a table, and the verdict."""
    from rich.console import Console  # noqa: PLC0415 - imported only when needed
    from rich.table import Table  # noqa: PLC0415 - imported only when needed
    from rich.text import Text  # noqa: PLC0415 - imported only when needed

    styles = {"passed": "green", "failed": "bold red", "skipped": "dim"}
    table = Table("check", "", "what was found", title=Text(report.mechanism), title_justify="left")
    for result in report.results:
        # Lower bounds proved by samples are shown for claims of reports only; those of small crowds would fill a page.
        shown = result.figures.items() if result.name == "claims_hold" else ()
        found = result.detail or "\n".join(f"{name} {value}" for name, value in shown if "proved" in name)
        table.add_row(result.name, Text(result.status, styles[result.status]), Text(found))
    console = Console()
    console.print(table)
    failed = len(report.failures)
    verdict = "passes every check" if report.passed else f"fails {failed} of {len(report.results)} checks"
    sizes = " and ".join(map(str, report.cells)) or "no"
    typer.echo(
        f"{verdict} with {sizes} cells; {report.comparisons:,} comparisons, "
        f"false alarms below {report.level:g}, seed {report.seed}"
    )
