"""Reader of trips between zones in an Open Matrix file (OMX).

OMX is HDF5 with matrices in the group ``data`` and names of zones in ``lookup``. It is read by h5py: the package
openmatrix opens files by PyTables, which unpickles attributes, and so would run code of a file that is not trusted.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.files.resources import shortage
from simulator.files.tables import identifier_list, listed
from simulator.traffic.demand.trip_table import TripTable

_NBYTES_PER_CELL = 40
"""Memory of a cell: its value, as read and in double precision, and the entry of the table."""


def read_omx(file: Path, *, matrix: str | None = None, mapping: str | None = None) -> TripTable:
    """Read the trips of one matrix.

    Parameters
    ----------
    file
        The file; its matrices are square.
    matrix
        Name of the matrix; None for the only one.
    mapping
        Name of the lookup with the name of each zone; None for the only one, or, where there is none, numbers from 1.

    Returns
    -------
    TripTable
        Cells with trips.

    Raises
    ------
    InputError
        If h5py is not installed, the file cannot be read, has several matrices or lookups and none is named, or
        a cell has no finite number of 0 or more.
    """
    h5py = import_extra("h5py", needed="trips in OMX need h5py", extra="omx")
    try:
        with h5py.File(file, "r") as opened:
            cells = _dataset(opened, "data", matrix, file, key="matrix")
            if fault := shortage(cells.size * _NBYTES_PER_CELL, to=f"read the {cells.size:,} cells of a matrix"):
                raise InputError([f"{file}: {fault}"])
            trips = np.asarray(cells[()], dtype=np.float64)
            numbers: Any = range(1, len(trips) + 1)
            if mapping is not None or len(opened.get("lookup", ())):
                numbers = _dataset(opened, "lookup", mapping, file, key="mapping")[()]
            names = identifier_list(pd.Series([*numbers], dtype="object"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError([f"{file}: cannot be read as OMX: {' '.join(str(error).split())}"]) from None
    if trips.shape != (len(names), len(names)) or len(set(names)) < len(names):
        shape = " × ".join(map(str, trips.shape))
        rule = f"a matrix must have a row and a column for each of {len(names)} zones with different names"
        raise InputError([f"{file}: {rule}, got {shape}"])
    wrong = np.argwhere(~(np.isfinite(trips) & (trips >= 0)))
    if len(wrong):
        row, column = wrong[0].tolist()
        cell = f"from zone {names[row]} to zone {names[column]}"
        raise InputError([f"{file}: {cell}: trips must be a finite number, 0 or more, got {trips[row, column]}"])
    origin, destination = np.nonzero(trips)
    if not len(origin):
        raise InputError([f"{file}: it holds no trips: all cells are 0"])
    ends = origin.astype(np.int32), destination.astype(np.int32)
    return TripTable(str(file), names, *ends, trips[origin, destination], origin.astype(np.int64) + 1)


def _dataset(opened: Any, group: str, name: str | None, file: Path, *, key: str) -> Any:
    """Return the dataset of a group that is named, or the only one; none whose values are in other files."""
    names = [*opened[group]] if group in opened else []
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        missing = f"traffic.{key} must name one of {listed(names)}" if names else f"it has no {key}"
        raise InputError([f"{file}: {missing}" + (f", got {name!r}" if name else "")], key=f"traffic.{key}")
    found = opened[group].get(name, getlink=True)
    dataset = None if hasattr(found, "filename") else opened[group][name]
    if dataset is None or dataset.external or dataset.is_virtual:
        raise InputError([f"{file}: {group} {name!r} is in another file"])
    return dataset
