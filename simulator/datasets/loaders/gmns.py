"""Loader of GMNS tables with the specification's column names."""

from pathlib import Path

import numpy as np
import pandas as pd

from simulator.datasets.rows import DatasetRows
from simulator.files.errors import InputError

COLUMNS = (
    *("node_id", "name", "x_coord", "y_coord", "z_coord", "node_type", "ctrl_type", "zone_id", "parent_node_id"),
    *("link_id", "parent_link_id", "from_node_id", "to_node_id", "directed", "geometry_id", "geometry", "dir_flag"),
    *("length", "grade", "facility_type", "capacity", "free_speed", "lanes", "bike_facility", "ped_facility"),
    *("parking", "allowed_uses", "toll", "jurisdiction", "row_width"),
)
"""Columns of the node, link and geometry tables of the specification."""
_DEMAND_COLUMNS = ("o_zone_id", "d_zone_id", "orig_taz", "dest_taz", "total", "volume")
_FEWEST_COLUMNS = 2
_CUT_AT = 10  # shapefiles truncate a column's name to this many characters
_NUMBERS = (
    *("x_coord", "y_coord", "z_coord", "length", "grade", "capacity", "free_speed", "lanes", "toll", "row_width"),
    "total",
)


def read_gmns_table(file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Read a node, link, geometry or demand table.

    A name truncated to ten characters, as in shapefiles, is restored if exactly one column of the specification begins
    with it. Blank fields are missing values.

    Parameters
    ----------
    file
        CSV, with or without a byte order mark.

    Returns
    -------
    frame : DataFrame
        The file's columns; coordinates, lengths, speeds, capacities, lanes and trips are float64 (NaN if missing), all
        others text (None if missing).
    notes : list of str
        The names that were restored.

    Raises
    ------
    InputError
        If the file cannot be read, is not a GMNS table, or has an invalid number.
    """
    rows = DatasetRows.from_file(file)
    restored = {}
    for column in map(str, rows.frame.columns):
        whole = [name for name in COLUMNS if name[:_CUT_AT] == column and name != column]
        if len(column) == _CUT_AT and len(whole) == 1 and whole[0] not in rows.frame.columns:
            restored[column] = whole[0]
    frame = rows.frame.rename(columns=restored)
    known = [column for column in frame.columns if column in (*COLUMNS, *_DEMAND_COLUMNS)]
    if len(known) < _FEWEST_COLUMNS:
        words = f"a GMNS table must name at least {_FEWEST_COLUMNS} columns of the specification, as node_id, x_coord"
        raise InputError([f"{file.name}: {words}; got {', '.join(map(repr, frame.columns[:8]))}"])
    frame = frame.map(lambda text: text.strip() or None if isinstance(text, str) else None).astype(object)
    frame = frame.where(frame.notna(), None)
    rows = DatasetRows(rows.file, frame)
    numbers = {name: rows.numbers(name, empty=True) for name in _NUMBERS if name in frame.columns}
    frame = frame.assign(**{name: values.astype(np.float64) for name, values in numbers.items()})
    words = ", ".join(f"{cut} is {whole}" for cut, whole in restored.items())
    return frame, [f"column names cut short are restored: {words}"] if words else []
