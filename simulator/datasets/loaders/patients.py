"""Loader of the breast cancer data of Ljubljana, in UCI's CSV or Weka's ARFF."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.rows import DatasetRows
from simulator.files.compressed_io import opened
from simulator.files.errors import InputError

TUMOR_SIZES = ("0-4", "5-9", "10-14", "15-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54")
"""Tumour sizes, millimetres; the eleven groups of SP Figs 4 and 6."""
AGES = ("20-29", "30-39", "40-49", "50-59", "60-69", "70-79")
"""Ages, years; the six groups of SP Figs 5 and 7."""
_NODES = ("0-2", "3-5", "6-8", "9-11", "12-14", "15-17", "18-20", "21-23", "24-26", "27-29", "30-32", "33-35", "36-39")
_QUADRANTS = ("left_up", "left_low", "right_up", "right_low", "central")
_ORDERED = {"age": AGES, "tumor-size": TUMOR_SIZES, "inv-nodes": _NODES}
_PLAIN = {
    "menopause": ("lt40", "ge40", "premeno"),
    "node-caps": ("yes", "no"),
    "breast": ("left", "right"),
    "breast-quad": _QUADRANTS,
    "irradiat": ("yes", "no"),
}
_EVENTS = ("no-recurrence-events", "recurrence-events")
_ARFF = ("age", "menopause", "tumor-size", "inv-nodes", "node-caps", "deg-malig", "breast", "breast-quad", "irradiat")


def read_patients(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read the patients; rows with equal values are different patients, and are kept.

    Parameters
    ----------
    file
        ``.arff``, or CSV with a header.

    Returns
    -------
    frame : DataFrame
        ``recurrence`` (bool); ``age`` (`AGES`), ``tumor_size`` (`TUMOR_SIZES`), ``inv_nodes``: ordered categories;
        ``menopause``, ``node_caps``, ``breast``, ``breast_quad``, ``irradiat``: categories, missing where not known;
        ``deg_malig`` (int64, 1 to 3).
    notes : list of str
        The number of unknown values.

    Raises
    ------
    InputError
        If a value is not one of its column's categories.
    """
    rows = _arff(file) if file.name.endswith(".arff") else DatasetRows.from_file(file, nothing=("", "?"))
    if "event" not in rows.frame.columns:
        raise InputError([f"{file}: no column 'event'"])
    absent = [column for column in _ARFF if column not in rows.frame.columns]
    if absent:
        raise InputError(f"{file}: no column {column!r}" for column in absent)
    rows.refuse("event", ~rows.frame["event"].isin(_EVENTS).to_numpy(), f"one of {', '.join(_EVENTS)}")
    columns: dict[str, object] = {"recurrence": rows.frame["event"].to_numpy() == "recurrence-events"}
    unknown = 0
    for column, groups in (*_ORDERED.items(), *_PLAIN.items()):
        values = rows.frame[column]
        wrong = ~values.isin(groups).to_numpy() & values.notna().to_numpy()
        if column in _ORDERED:
            wrong = ~values.isin(groups).to_numpy()
        rows.refuse(column, wrong, f"one of {', '.join(groups)}")
        unknown += int(values.isna().sum())
        columns[column.replace("-", "_")] = pd.Categorical(values, categories=groups, ordered=column in _ORDERED)
    columns["deg_malig"] = rows.numbers("deg-malig", at_least=1, at_most=3, whole=True).astype(np.int64)
    return pd.DataFrame(columns), [f"{unknown} values are not known"] if unknown else []


def _arff(file: Path) -> DatasetRows:
    """Read the rows after ``@data``; the columns are in the order of the ARFF file, with the class last."""
    with opened(file) as stream:
        lines = stream.read().decode("utf-8").splitlines()
    start = next((place for place, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise InputError([f"{file}: must have a line @data"])
    records = [line.strip() for line in lines[start + 1 :]]
    fields = [[field.strip().strip("'") for field in line.split(",")] for line in records if line and line[0] != "%"]
    names = (*_ARFF, "event")
    for number, row in enumerate(fields, start=1):
        if len(row) != len(names):
            raise InputError([f"{file}: row {number}: must have {len(names)} fields, got {len(row)}"])
    if not fields:
        raise InputError([f"{file}: it holds no rows"])
    frame = pd.DataFrame(fields, columns=list(names), dtype=object)
    return DatasetRows(file, frame.where(frame != "?", None))
