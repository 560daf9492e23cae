"""Schema of a run's tables, as `columns.toml` declares it: what is written and read."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

_FINITE = {"s", "m", "m/s", "degrees"}
"""Units of columns whose values are finite where they are not null."""


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
    choices
        Its values, if it has only these.
    rarely_null
        Whether runs of some kinds have no value, which the meaning states.
    optional
        Whether only runs of some kinds have the column, which the meaning states; it is then `later` too.
    """

    name: str
    type: str
    meaning: str
    unit: str = ""
    null: str = ""
    later: bool = False
    choices: Sequence[str] = ()
    rarely_null: bool = False
    optional: bool = False

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers or truth values; else they are texts or shapes."""
        return self.type.lower().startswith(("int", "float", "bool"))

    def fault(self, values: pd.Series, *, any_number: bool = False) -> str:
        """Return in words what the values of a file must be and are not; empty if nothing.

        With `any_number` they need only be numbers: infinite, unknown or of any size.
        """
        return next(self._faults(values, any_number=any_number), "")

    def _faults(self, values: pd.Series, *, any_number: bool) -> Iterator[str]:
        held = values.dropna()
        if len(held) and (is_numeric_dtype(values) != self.is_number or not self._has_kind(held)):
            yield f"must have {'numbers' if self.is_number else 'texts'}"
        elif any_number:
            return
        elif len(held) < len(values) and not (self.null or self.later or self.rarely_null or self.unit == "statistic"):
            yield "must have a value in every row"
        elif self.type == "bool" and len(held) and not is_bool_dtype(held):
            yield "must be true or false"
        elif self.type.lower() in {"int8", "int32", "int64"} and not (held % 1 == 0).all():
            yield "must have whole numbers"
        elif self.unit in _FINITE and self.is_number and not np.isfinite(held.to_numpy(dtype=float)).all():
            yield "must have finite numbers"
        elif self.choices and not held.isin(self.choices).all():
            yield f"must be one of {', '.join(self.choices)}"

    def _has_kind(self, held: pd.Series) -> bool:
        """Return whether each value is a number, or a text; shapes are checked by what reads them."""
        return self.is_number or self.type == "geometry" or bool(held.map(lambda value: isinstance(value, str)).all())


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
    keys
        Columns that no two rows have alike.
    any_number
        Whether columns of numbers other than keys may be infinite or unknown: pages show such numbers as they are.
    notes
        What a reader should know beside the columns, in Markdown.
    """

    about: str
    columns: tuple[Column, ...]
    optional: bool = False
    keys: Sequence[str] = ()
    any_number: bool = False
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
            loose = self.any_number and column.is_number and column.name not in self.keys
            if column.name in frame and (fault := column.fault(frame[column.name], any_number=loose)):
                return f"column {column.name} {fault}"
        return ""


def _declared(content: dict[str, Any]) -> TableSchema:
    return TableSchema(**{**content, "columns": tuple(Column(**column) for column in content["columns"])})


_TEXT = files("simulator.results").joinpath("columns.toml").read_text(encoding="utf-8")
FILES: Mapping[str, TableSchema] = {name: _declared(content) for name, content in tomllib.loads(_TEXT).items()}
"""The tables by name, in the order of the file."""
TABLES: Mapping[str, TableSchema] = {name: table for name, table in FILES.items() if name != "fcd"}
"""The tables of a result: all but floating-car data, which may also be in other formats."""
