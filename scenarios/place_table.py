"""How a table of places is written: its separator, its header, which rows of it count."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from scenarios.section import Section, rule

Scalar = str | int | float | bool

_SCALAR = {"type": ["string", "number", "boolean"]}


def _column(value: Any) -> Any:
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise rule("must be the name of a column, or its number, from 1")


def _separator(value: Any) -> Any:
    if isinstance(value, str) and len(value) == 1 and value not in '\r\n"':
        return value
    raise rule('must be one character, as ";" or "\\t"')


def _values(value: Any) -> Any:
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if values and all(isinstance(one, Scalar) for one in values):
        return values
    raise rule("must be a text, a number, true or false, or a list of them")


Column = Annotated[str | int, Field(union_mode="left_to_right"), BeforeValidator(_column)]
"""A column of a file, by its name or by its number, from 1."""

Wanted = Annotated[
    tuple[Scalar, ...],
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]}),
]
"""What a column must hold for a row to count: one value, or any of several."""


class PlaceTable(Section):
    """How a file of rows is to be read: text as ``.csv``, ``.tsv`` and ``.data``, gzipped or not, ARFF or Parquet."""

    separator: Annotated[str, BeforeValidator(_separator)] | None = None
    """Character between columns; left out, a tab in ``.tsv`` files and a comma in others."""
    header: bool = True
    """Whether the first line names the columns; without it columns are known by number, from 1."""
    where: dict[str, Wanted] | None = None
    """Which rows count: a column's name, or its number in quotes, and the value or values it must hold."""
