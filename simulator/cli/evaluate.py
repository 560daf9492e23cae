"""`crowdveil evaluate`: mechanisms over data sets, each set for one target, in one table."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.table import Column, Table
from rich.text import Text

from simulator.cli.options import StudyOptions, command, options_of, target_options
from simulator.cli.sweep import run_with_progress
from simulator.results.formatting import claimed, listed, number, wide_console

if TYPE_CHECKING:
    from simulator.studies.evaluate import Evaluation

WIDE = 120
"""Columns of a terminal from which on the table has every column."""


TARGET = ("view", "epsilon", "delta", "error", "adjacency", "queries", "k")


@partial(command, before=target_options(*TARGET), after=options_of(StudyOptions))
def evaluate(
    *,
    mechanisms: str | None = None,
    data: str | None = None,
    replicates: int = 5,
    out: Path = Path("studies/evaluation"),
    **given: Any,
) -> None:
    """Evaluate mechanisms over data sets: error, leak and cost of each, set for one target; one table.

    Parameters
    ----------
    mechanisms : A,B,…
        Families of crowdveil plan, files with [[mechanisms]], package.module:Class.
    data : A,B,…
        Shipped scenarios, or files.
    replicates
        Runs of each data set, with seeds one apart.
    out
        Directory of the evaluation; one begun there goes on.
    """
    from simulator.studies.evaluate import DATA, MECHANISMS, Evaluation  # noqa: PLC0415 - imported only when needed
    from simulator.studies.tables import Goal  # noqa: PLC0415 - imported only when needed

    common = StudyOptions(**{name: given.pop(name) for name in StudyOptions._fields})
    work = Evaluation(
        Goal(**given),
        _listed(data) or DATA,
        _listed(mechanisms) or MECHANISMS,
        directory=out,
        replicates=replicates,
        options=common.loading(),
        running=common.running(),
    )
    for stage in work.stages():
        run_with_progress(stage, quiet=common.quiet)
    tables = work.write()
    if not common.quiet:
        print_evaluation(work, tables)


def print_evaluation(work: "Evaluation", tables: dict[str, pd.DataFrame]) -> None:
    """Print the table of an evaluation, and who wins where."""
    from simulator.studies.tables import sentences  # noqa: PLC0415 - imported only when needed

    console = wide_console()
    wide = console.width >= WIDE
    table = Table(Column("mechanism by data set", no_wrap=True, overflow="fold"))
    names = ["RMSE, vehicles", "95 % interval"] if wide else ["RMSE, vehicles,\n95 % interval"]
    at = f"δ({work.goal.epsilon or 1.0:g})"
    leaks = ["ε over the\ncampaign", f"{at} over the\ncampaign"]
    further = [f"ε\n{work.goal.over}", f"{at}\n{work.goal.over}", "relative", "hot cells", "bytes"] if wide else []
    for name in (*names, *leaks, *further):
        table.add_column(name, justify="right")
    rows, last = tables["evaluation"], ""
    row: dict[Any, Any]
    for row in rows[rows["runs"] > 0].to_dict("records"):
        if row["data"] != last:
            table.add_section()
            asked = "one query" if row["queries"] == 1 else f"{row['queries']:.0f} queries"
            table.add_row(Text(f"{row['data']}, {asked}", "bold"))
            last = row["data"]
        interval = "–" if pd.isna(row["lower"]) else f"{number(row['lower'])} … {number(row['upper'])}"
        marks = f"{'' if row['meets'] else ' !'}{'' if pd.isna(row['crowd']) else ' *'}"
        error = [number(row["rmse"]), interval]
        more = [claimed(row["epsilon"]), claimed(row["delta"])]
        more += [number(row[name]) for name in ("relative_rmse", "hot_cells_recall", "bytes_up")]
        table.add_row(
            Text(f"  {row['mechanism']}{marks}"),
            *(error if wide else ["\n".join(error)]),
            claimed(row["campaign_epsilon"]),
            claimed(row["campaign_delta"]),
            *(more if wide else ()),
        )
    console.print(Text(work.goal.words()), highlight=False)
    console.print(table)
    console.print("Over the campaign: for a device that stays through all of its queries.", highlight=False)
    if not wide:
        console.print(Text(f"More columns: {work.directory / 'tables' / 'evaluation.csv'}"), soft_wrap=True)
    if rows["meets"].isin([False]).any():
        console.print("! misses the target", highlight=False)
    if rows["crowd"].notna().any():
        mark = "* its claim relies on a number of devices that are certain to be in the cell: column crowd of the table"
        console.print(mark, highlight=False)
    without = rows[(rows["runs"] == 0) & ~rows["data"].isin(work.missing)]
    for mechanism, group in without.groupby("mechanism", sort=False):
        why = f"{mechanism}: not on {listed(list(group['data']))}: {group['reason'].iloc[0]}"
        console.print("[yellow]note[/]", Text(why), highlight=False)
    for text in sentences(tables, work.goal.view):
        console.print(Text(text), highlight=False)
    console.print(Text(str(work.directory / "report.html")), highlight=False, soft_wrap=True)


def _listed(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]
