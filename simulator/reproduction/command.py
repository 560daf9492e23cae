"""`crowdveil reproduce`: selection of entries, terminal output and results."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.suggestions import suggestion
from simulator.files.errors import InputError
from simulator.reporting.terminal_summary import wide_console
from simulator.reproduction.page import shown, write_page
from simulator.reproduction.published_results import CITATIONS, ENTRIES, Entry, Reproduction

STYLES = {True: "green", False: "bold yellow", None: "dim"}


def print_entry(entry: Entry, done: Reproduction, console: Console | None = None) -> None:
    """Print the published values beside the computed ones.

    Parameters
    ----------
    entry, done
        The entry and its result.
    console
        The console to print on; by default standard output. It need not be a terminal.
    """
    console = console or wide_console()
    console.print()
    console.print(Text(f"{entry.name}: {entry.title}", style="bold"))
    console.print(Text(CITATIONS[entry.paper], style="dim"))
    if done.skipped is not None:
        console.print(Text(f"Skipped: {done.skipped}", style="yellow"))
        return
    table = Table("what")
    table.add_column("published", justify="right")
    table.add_column("computed", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("note", ratio=1)
    for row in done.rows:
        cells = (row.key, shown(row.published), shown(row.computed))
        mark = Text(row.verdict, style=STYLES[row.agrees])
        table.add_row(*(Text(cell) for cell in cells), mark, Text(row.note))
    console.print(table)
    console.print(Text(f"{done.tally(entry.paper)}."))
    for sentence in done.findings:
        console.print(Text(f"Found: {sentence}"))


ALL = "all"


def find_entries(name: str, entries: Sequence[Entry] = ENTRIES) -> tuple[Entry, ...]:
    """Return the entry of a name, those of a paper by its abbreviation, or every entry for "all".

    Raises
    ------
    InputError
        If there is no such entry; the message names the most similar one.
    """
    if name == ALL:
        return tuple(entries)
    for entry in entries:
        if entry.name == name:
            return (entry,)
    if group := tuple(entry for entry in entries if entry.paper.lower() == name.lower()):
        return group
    names = [entry.name for entry in entries]
    hint = suggestion(name, [*names, ALL]) or f": {', '.join([*names, ALL])}"
    raise InputError([f"NAME must be an entry or all{hint}; crowdveil reproduce --list shows them; got {name!r}"])


def print_json(value: object) -> None:
    """Print a value as JSON on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def reproduce(name: str, *, seed: int, as_json: bool, out: Path | None, entries: Sequence[Entry] = ENTRIES) -> None:
    """Compute one entry or all, print the results, and write the page.

    Parameters
    ----------
    name
        An entry's name, or "all".
    seed
        Seed of everything drawn.
    as_json
        Print JSON alone on standard output, and write the page only if `out` is given.
    out
        Path of the page; runs/reproduce-NAME.html by default.

    Raises
    ------
    InputError
        If there is no such entry, or `out` is a folder or lies below a file; raised before anything is computed.
    """
    chosen = find_entries(name, entries)
    path = out if out is not None or as_json else Path("runs") / f"reproduce-{name}.html"
    if path is not None:
        check_place(path)
    done = [(entry, _compute(entry, seed, place, len(chosen))) for place, entry in enumerate(chosen, start=1)]
    if as_json:
        records = [entry.to_dict(reproduction) for entry, reproduction in done]
        print_json(records if name == ALL else records[0])
    else:
        for entry, reproduction in done:
            print_entry(entry, reproduction)
    if path is not None:
        write_page(done, path, seed=seed)
        (sys.stderr if as_json else sys.stdout).write(f"Page: {path}\n")


def check_place(path: Path) -> None:
    """Check that a file can be written at a path.

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


def _compute(entry: Entry, seed: int, place: int, of: int) -> Reproduction:
    """Reproduce an entry, and report the entry and the time it took on standard error."""
    sys.stderr.write(f"[{place}/{of}] {entry.name} …")
    sys.stderr.flush()
    start = time.perf_counter()
    done = entry.reproduce(seed=seed)
    ending = "skipped" if done.skipped is not None else f"{time.perf_counter() - start:.1f} s"
    sys.stderr.write(f" {ending}\n")
    return done
