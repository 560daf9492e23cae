"""Schema of a run's tables, as `columns.toml` declares it: what is written, what is read, and docs/columns.md."""

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_numeric_dtype


class Column(NamedTuple):
    """
    A column of a table.

    Parameters
    ----------
    name, type
        Its name, and its type in pandas: "geometry" in a GeoDataFrame; "int64 or float64" where the run decides.
    meaning
        What it states.
    unit
        Its unit.
    null
        Where it is null; empty where it never is.
    later
        Whether runs of version 0.1.0 may lack it.
    """

    name: str
    type: str
    meaning: str
    unit: str = ""
    null: str = ""
    later: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers or truth values; else they are texts or shapes."""
        return self.type.lower().startswith(("int", "float", "bool"))


class TableSchema(NamedTuple):
    """
    A table of a run, kept in the Parquet file of its name.

    Parameters
    ----------
    about
        What a row is.
    columns
        Its columns, in the order of the file.
    optional
        Whether a run may lack it.
    notes
        What a reader should know beside the columns, in Markdown.
    """

    about: str
    columns: tuple[Column, ...]
    optional: bool = False
    notes: str = ""

    def frame(self, rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
        """Return rows as a frame with the columns and types of this table, but for `time`, which `with_times` adds."""
        made = [*rows]
        columns = [column for column in self.columns if column.name != "time"]
        return pd.DataFrame(
            {column.name: pd.Series([row.get(column.name) for row in made], dtype=column.type) for column in columns}
        )

    def fault(self, frame: pd.DataFrame) -> str:
        """Return in words what is wrong with the columns of a file; empty if nothing is."""
        if missing := [column.name for column in self.columns if not column.later and column.name not in frame]:
            return f"without the columns {', '.join(missing)}"
        for column in self.columns:
            values = frame[column.name] if column.name in frame else pd.Series()
            if values.notna().any() and is_numeric_dtype(values) != column.is_number:
                return f"column {column.name} must have {'numbers' if column.is_number else 'texts'}"
        return ""


def _declared(content: dict[str, Any]) -> TableSchema:
    return TableSchema(**{**content, "columns": tuple(Column(**column) for column in content["columns"])})


_TEXT = files("simulator.results").joinpath("columns.toml").read_text(encoding="utf-8")
FILES: Mapping[str, TableSchema] = {name: _declared(content) for name, content in tomllib.loads(_TEXT).items()}
"""The tables by name, in the order of docs/columns.md."""
TABLES: Mapping[str, TableSchema] = {name: table for name, table in FILES.items() if name != "fcd"}
"""The tables of a result: all but floating-car data, which may also be in other formats."""
