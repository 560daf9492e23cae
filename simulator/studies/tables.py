"""Tables of studies: as shown on a page, as CSV and as LaTeX."""

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.pages.document import FORMATS, PageGroup, PageSection, ShownTable, marked, write_document
from simulator.results.formatting import whole
from simulator.studies.summary import HALF, HIGH, LOW, SHOWN, is_numeric

TABLES = "tables"
"""Folder of the files."""
MOST_ROWS = 1000
"""Largest number of rows of a table on the page; files have all."""


def write_tables(directory: str | Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write tables as ``NAME.csv``, with all digits, and ``NAME.tex``, with four, for the LaTeX package booktabs.

    Parameters
    ----------
    directory
        Created if it is missing.
    tables
        Tables by name.
    """
    for name, table in tables.items():
        write_document(table.to_csv(index=False, lineterminator="\n"), Path(directory) / f"{name}.csv")
        latex = table.to_latex(index=False, escape=True, na_rep="--", float_format=_latex_number)
        write_document(latex, Path(directory) / f"{name}.tex")


def _latex_number(value: float) -> str:
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$" if exponent else mantissa


def sections_of(page: str, groups: Mapping[str, Sequence[PageGroup]], **facts: object) -> list[PageSection]:
    """Return those sections of a page that have charts or tables, with their texts in ``tables.toml``.

    Parameters
    ----------
    page
        ``study`` or ``evaluation``.
    groups
        The charts and tables of each section, by its name.
    **facts
        What its texts name in braces.
    """
    sections = []
    for name, texts in SHOWN["sections"][page].items():
        about = [texts["about"].format(**facts)] if "about" in texts else []
        if groups[name]:
            sections.append(PageSection(name, texts["title"], texts["heading"], about, groups[name]))
    return sections


def view_table(
    name: str,
    caption: str,
    table: pd.DataFrame,
    *,
    formats: Mapping[str, str] = {},
    titles: Mapping[str, str] = {},
) -> ShownTable:
    """Prepare any table for the page.

    Parameters
    ----------
    name, caption
        Of the file, and above the table.
    table
        The table; a column with others of its name and `HALF`, `LOW`, `HIGH` is shown with these, as
        `interval_text`.
    formats
        Names of formats of columns, as in `simulator.pages.document.FORMATS`, beside those of ``tables.toml``; by
        default `whole` for integers and `number` for other numbers.
    titles
        Titles of columns, beside those of ``tables.toml``; others are shown by their names.
    """
    content = base64.b64encode(table.to_csv(index=False, lineterminator="\n").encode()).decode("ascii")
    left_out = ""
    if len(table) > MOST_ROWS:
        left_out = f"{whole(len(table) - MOST_ROWS)} more rows are in {name}.csv"
        caption += f" (the first {whole(MOST_ROWS)} of {whole(len(table))} rows)"
        table = table.head(MOST_ROWS)
    formats, titles = {**SHOWN["formats"], **formats}, {**SHOWN["titles"], **titles}
    records = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    shown = [column for column in table if not str(column).endswith((HALF, LOW, HIGH))]
    columns = []
    for column in shown:
        integers = pd.api.types.is_integer_dtype(table[column])
        chosen = formats.get(str(column), "whole" if integers else "number")
        columns.append([_cell(row, str(column), chosen) for row in records])
    heads = [(titles.get(str(column), str(column)), is_numeric(table[column])) for column in shown]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return ShownTable(caption, heads, rows, f"{name}.csv", f"data:text/csv;base64,{content}", left_out)


def _cell(row: Mapping[str, Any], column: str, format_name: str) -> str:
    value = row[column]
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return marked(None, format_name)
    return marked(value, format_name, shown=interval_text(row, column, format_name))


def interval_text(row: Mapping[str, Any] | pd.Series, column: str, format_name: str = "number") -> str:
    """Return a mean of `means` with the ends of its interval, or ± half the width of one without stated ends."""
    written = FORMATS[format_name]
    text = written(row[column])
    low, high, half = (row.get(f"{column}{suffix}", math.nan) for suffix in (LOW, HIGH, HALF))
    if math.isfinite(high):
        return f"{text} [{written(low)}, {written(high)}]"
    return f"{text.removesuffix(' %')} ± {written(half)}" if math.isfinite(half) else text
