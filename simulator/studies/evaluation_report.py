"""Report of an evaluation: one HTML page that opens offline, and its tables as CSV and LaTeX."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from simulator.charts import Axis, Chart, Series
from simulator.charts.styles import styles_of
from simulator.reporting.document import Document, PageGroup, render, write_document
from simulator.results.formatting import number
from simulator.studies.evaluation_tables import best_of
from simulator.studies.report import FILE_NAME
from simulator.studies.summary import SHOWN
from simulator.studies.tables import TABLES, sections_of, view_table, write_tables


def write_evaluation(
    directory: Path, tables: Mapping[str, pd.DataFrame], *, goal: str, sentences: Sequence[str]
) -> Path:
    """Write the page of an evaluation, and its tables into the folder `tables` beside it.

    Parameters
    ----------
    directory
        Where they are written.
    tables
        As `Evaluation.tables` returns them.
    goal
        The target, in words.
    sentences
        Who wins where.

    Returns
    -------
    path
        The page.
    """
    write_tables(directory / TABLES, tables)
    write_document(markdown(tables), directory / TABLES / "errors.md")
    captions, titles = SHOWN["captions_of_evaluations"], {"rmse": "RMSE, vehicles"}
    shown = {name: table for name, table in tables.items() if len(table)}
    views = {name: view_table(name, captions[name], table, titles=titles) for name, table in shown.items()}
    charts = _decile_charts(tables["deciles"])
    groups = {
        "table": [PageGroup(table=views.pop("evaluation"))] if "evaluation" in views else [],
        "deciles": [PageGroup(charts=charts)] if charts else [],
        "tables": [PageGroup(view.caption, table=view, folded=True) for view in views.values()],
    }
    document = Document(
        title="Evaluation · crowdveil",
        kicker="report of an evaluation",
        heading="Evaluation",
        header="evaluation_header",
        sections=sections_of("evaluation", groups),
        made_of="from the runs of the evaluation",
        values={"goal": goal, "sentences": sentences},
    )
    return write_document(render(document), directory / FILE_NAME)


def markdown(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the errors as a table in Markdown: a row per data set, a column per mechanism.

    A cell has the mean RMSE in vehicles and half the width of its 95 % interval. The least of a row that meets the
    target is bold, with all that do and are not distinguishable from it; an error that misses the target is in
    brackets. A star marks a claim that relies on devices certain to be in the cell, a dagger an error that is not less
    than that of estimating 0 everywhere.
    """
    table, differences = tables["evaluation"], tables["differences"]
    names = list(dict.fromkeys(table["mechanism"]))
    lines = [f"| data set | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for data, rows in table[table["runs"] > 0].groupby("data", sort=False):
        best = best_of(rows, differences[differences["data"] == data])
        cells = {row["mechanism"]: _cell(row, bold=row["mechanism"] in best) for _, row in rows.iterrows()}
        lines.append(f"| {data} | {' | '.join(cells.get(name, '–') for name in names)} |")
    return "\n".join(lines) + "\n"


def _cell(row: pd.Series, *, bold: bool) -> str:
    half = row["rmse"] - row["lower"]
    text = number(row["rmse"]) if pd.isna(half) else f"{number(row['rmse'])} ± {number(half)}"
    marks = ("" if pd.isna(row["crowd"]) else r" \*") + ("" if row["beats_zero"] else " †")
    return (f"**{text}**" if bold else text if row["meets"] else f"({text})") + marks


def _decile_charts(deciles: pd.DataFrame) -> list[Chart]:
    """Draw each data set's relative error by decile, a line per mechanism; deciles without vehicles are left out."""
    styles = styles_of(deciles["mechanism"])
    ticks = {decile: str(decile) for decile in range(1, 11)}
    x = Axis("decile of the cells by occupancy", ends=(0.5, 10.5), ticks=ticks)
    y = Axis("RMSE / occupancy", log=True)
    drawn = []
    for data, rows in deciles[deciles["relative_error"] > 0].groupby("data", sort=False):
        series = [
            Series(str(name), mine["decile"], mine["relative_error"], "linked", styles[str(name)])
            for name, mine in rows.groupby("mechanism", sort=False)
        ]
        words = f"{data}: error relative to the occupancy"
        about = f"{words}, by decile of the cells; means over the runs."
        drawn.append(Chart(series, x, y, words, about, height=360 + 20 * (len(series) // 3)))
    return drawn
