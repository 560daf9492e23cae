"""`crowdveil reproduce`: prints the papers' values beside those computed, and writes the page."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from simulator.cli.common import print_json, print_rows
from simulator.cli.options import command, entry_names
from simulator.files.errors import InputError
from simulator.papers.published_results import ALL, CITATIONS, ENTRIES, Entry, Reproduction, find_entries
from simulator.results.formatting import wide_console

STYLES = {True: "green", False: "bold yellow", None: "dim"}


@command
def reproduce(
    name: Annotated[str | None, typer.Argument(show_default=False, autocompletion=entry_names)] = None,
    *,
    list_: bool = False,
    json: bool = False,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    out: Path | None = None,
) -> None:
    """Compute the papers' tables and figures and compare them; exit code 0 even if published values differ.

    Parameters
    ----------
    name : [NAME|all]
        An entry, or all; without it, the list.
    list_
        List names, papers and titles; compute nothing.
    json
        Print JSON alone; no page unless --out is given.
    seed
        Seed of all random draws.
    out
        The HTML page; runs/reproduce-NAME.html if not given.
    """
    if name is None or list_:
        _list_entries(as_json=json)
        if not list_:
            how = "crowdveil reproduce NAME computes one entry, crowdveil reproduce all computes every entry."
            typer.echo(how, err=True)
        return
    chosen = find_entries(name, ENTRIES)
    path = out if out is not None or json else Path("runs") / f"reproduce-{name}.html"
    if path is not None:
        check_place(path)
    done = [_compute(entry, seed, f"{place}/{len(chosen)}") for place, entry in enumerate(chosen, start=1)]
    if json:
        records = [result.to_dict() for result in done]
        print_json(records if name == ALL else records[0], allow_nan=False)
    else:
        for result in done:
            print_entry(result)
    if path is not None:
        from simulator.papers.page import write_page  # noqa: PLC0415 - slow to import, and the list needs none

        write_page(done, path, seed=seed)
        typer.echo(f"Page: {path}", err=json)


def _list_entries(*, as_json: bool) -> None:
    if as_json:
        print_json([{"name": entry.name, "paper": entry.paper, "title": entry.title} for entry in ENTRIES])
    else:
        width = max(len(entry.name) for entry in ENTRIES)
        print_rows((f"{entry.name:<{width}}  {entry.paper}", entry.title) for entry in ENTRIES)


def check_place(path: Path) -> None:
    """Check that a file can be written at a path, before anything is computed.

    Raises
    ------
    InputError
        If the path is a folder or a device, or lies below a file.
    """
    if path.exists() and not path.is_file():
        raise InputError([f"--out must be a file, but is {'a folder' if path.is_dir() else 'a device'}; got {path}"])
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise InputError([f"--out must be in a folder, but {parent} is a file; got {path}"])


def _compute(entry: Entry, seed: int, place: str) -> Reproduction:
    """Reproduce an entry, and report the entry and the time it took on standard error."""
    typer.echo(f"[{place}] {entry.name} …", err=True, nl=False)
    start = time.perf_counter()
    done = entry.reproduce(seed=seed)
    typer.echo(" skipped" if done.skipped is not None else f" {time.perf_counter() - start:.1f} s", err=True)
    return done


def print_entry(done: Reproduction) -> None:
    """Print the published values of an entry beside the computed ones."""
    from simulator.papers.page import shown  # noqa: PLC0415 - slow to import, and the list needs none

    console, entry = wide_console(), done.entry
    console.print()
    console.print(Text(f"{entry.name}: {entry.title}", style="bold"))
    console.print(Text(CITATIONS[entry.paper], style="dim"))
    if done.skipped is not None:
        console.print(Text(f"Skipped: {done.skipped}", style="yellow"))
        return
    table = Table("what")
    for heading in ("published", "computed"):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("note", ratio=1)
    for row in done.rows:
        cells = (row.key, shown(row.published), shown(row.computed))
        mark = Text(row.verdict, style=STYLES[row.agrees])
        table.add_row(*map(Text, cells), mark, Text(row.note))
    console.print(table)
    for text in (f"{done.tally()}.", *(f"Found: {sentence}" for sentence in done.findings)):
        console.print(Text(text))
