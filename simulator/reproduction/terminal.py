"""An entry as a table in the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from simulator.reproduction.entry import CITATIONS, Entry, Reproduction
from simulator.reproduction.shown import shown, tally, verdict

STYLES = {True: "green", False: "bold yellow", None: "dim"}
LEAST_WIDTH = 160


def print_entry(entry: Entry, done: Reproduction, console: Console | None = None) -> None:
    """Print what was published beside what was computed.

    Parameters
    ----------
    entry, done
        The entry and what came of it.
    console
        Where to print; by default standard output. It need not be a terminal.
    """
    # Through a pipe there is no width to keep to, and cells folded at 80 columns are read by nobody.
    console = console or (here if (here := Console()).is_terminal else Console(width=LEAST_WIDTH))
    console.print()
    console.print(Text(f"{entry.name}: {entry.title}", style="bold"))
    console.print(Text(CITATIONS[entry.paper], style="dim"))
    if done.skipped is not None:
        console.print(Text(f"Skipped: {done.skipped}", style="yellow"))
        return
    table = Table()
    table.add_column("what")
    table.add_column("published", justify="right")
    table.add_column("computed", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("note", ratio=1)
    for row in done.rows:
        cells = (row.key, shown(row.published), shown(row.computed))
        mark = Text(verdict(row), style=STYLES[row.agrees])
        table.add_row(*(Text(cell) for cell in cells), mark, Text(row.note))
    console.print(table)
    console.print(Text(f"{tally(done, entry.paper)}."))
    for sentence in done.findings:
        console.print(Text(f"Found: {sentence}"))
