"""Node identifiers: conversion to one type for all file formats, JSON values included."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

_WHOLE = re.compile(r"0|-?[1-9]\d{0,999}")  # Python converts 4,300 digits and no more
_WRITTEN_AS_FLOAT = re.compile(r"-?\d+\.0*|-?\d(\.\d+)?[eE]\+\d+")
_LARGEST_EXACT = 2**53


def node_ids(values: Iterable[object]) -> list[str | None]:
    """Convert identifiers to text so that 7, 7.0, "7" and "7.0" are the same node, and "07" is another.

    Parameters
    ----------
    values
        Identifiers as read from a file: whole numbers, floats, text.

    Returns
    -------
    list of str or None
        One item per value; None where there is no identifier.
    """
    known: dict[object, str | None] = {}
    written = []
    for value in values:
        key = (type(value), value)
        if key not in known:
            known[key] = _written(value)
        written.append(known[key])
    return written


def node_keys(ids: Iterable[str]) -> list[Hashable]:
    """Convert identifiers back to whole numbers, if all of them are whole numbers.

    Parameters
    ----------
    ids
        Identifiers as :func:`node_ids` returns them.

    Returns
    -------
    list
        Integers, or the same text.
    """
    texts = list(ids)
    if all(_WHOLE.fullmatch(text) for text in texts):
        return [int(text) for text in texts]
    return [*texts]


def _written(value: object) -> str | None:
    """Convert one identifier to text; a float becomes a whole number only where floats are exact."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    text = str(value).strip()
    if isinstance(value, float | np.floating) or _WRITTEN_AS_FLOAT.fullmatch(text):
        number = float(text)
        if number.is_integer() and abs(number) < _LARGEST_EXACT:
            return str(int(number))
    return text or None


def tupled(value: Any) -> Any:
    """Convert lists, as JSON has, recursively to tuples, which can be keys; return other values unchanged."""
    return tuple(tupled(part) for part in value) if isinstance(value, list) else value
