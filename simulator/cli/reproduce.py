"""`crowdveil reproduce`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from simulator.cli import completions
from simulator.cli.common import print_json, print_rows


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|all]",
            help="An entry, or all; without it, the list.",
            show_default=False,
            autocompletion=completions.entry_names,
        ),
    ] = None,
    *,
    list_: Annotated[bool, typer.Option("--list", help="List names, papers and titles; compute nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON alone; no page unless --out is given.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.", min=0)] = 1,
    out: Annotated[Path | None, typer.Option(help="The HTML page; runs/reproduce-NAME.html if not given.")] = None,
) -> None:
    """Compute the papers' tables and figures and compare them; exit code 0 even if published values differ."""
    from simulator.reproduction import command  # noqa: PLC0415  - slow to import, and not needed for help
    from simulator.reproduction.published_results import ENTRIES  # noqa: PLC0415  - as above

    if name is not None and not list_:
        command.reproduce(name, seed=seed, as_json=json, out=out)
        return
    if json:
        print_json([{"name": entry.name, "paper": entry.paper, "title": entry.title} for entry in ENTRIES])
    else:
        width = max(len(entry.name) for entry in ENTRIES)
        print_rows((f"{entry.name:<{width}}  {entry.paper}", entry.title) for entry in ENTRIES)
    if not list_:
        typer.echo(
            "crowdveil reproduce NAME computes one entry, crowdveil reproduce all computes every entry.", err=True
        )
