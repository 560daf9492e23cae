"""Loader of a data set as one tidy table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from simulator.datasets.check import check_file
from simulator.datasets.manifest import DataFile, DataSet, Loader, folder_of, read_manifest
from simulator.files.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Read = Callable[[Path], "tuple[pd.DataFrame, list[str]]"]

LOADERS: Sequence[Loader] = get_args(Loader)
"""Names of the loaders; `read_` and the name is a function of one of two modules, imported when it is needed."""


def load(folder: str, *, file: str | None = None) -> "pd.DataFrame":
    """Read a data set, or one file of it, into a tidy table.

    Parameters
    ----------
    folder
        The data set's folder under CROWDVEIL_DATA.
    file
        One of its files; if None, the main files, concatenated.

    Returns
    -------
    DataFrame
        Columns as documented in docs/data.md for the loader that the manifest names. Its ``attrs`` hold ``data_set``,
        ``files``, ``attribution`` (the credit to put under a figure) and ``notes``: what was left out or replaced, and
        which files differ from the manifest.

    Raises
    ------
    InputError
        If the data set is unknown, its files are missing (the message states how to get them), it has no table, or its
        content is invalid.
    """
    import pandas as pd  # noqa: PLC0415  the command line lists data sets without it

    known = read_manifest().data_set(folder)
    names = [file] if file is not None else list(known.main or known.names[:1])
    if not names:
        raise InputError([f"{folder}: its files are not listed, so it has no loader. To get it: {known.how_to_obtain}"])
    parts, notes = [], []
    for name in names:
        part, part_notes = _read(known, known.file(name))
        parts.append(part)
        notes += part_notes if len(names) == 1 else [f"{name}: {note}" for note in part_notes]
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    frame.attrs = {"data_set": folder, "files": names, "attribution": known.attribution, "notes": notes}
    return frame


def _read(known: DataSet, file: DataFile) -> "tuple[pd.DataFrame, list[str]]":
    """Read one file, and add a note if it differs from the manifest."""
    if file.loader is None:
        raise InputError([f"{known.folder}/{file.name}: it has no table: {file.about}"])
    try:
        folder = folder_of(known.folder)
    except InputError as error:
        raise InputError([f"{known.folder}/{file.name}: {error}. To get it: {known.how_to_obtain}"]) from None
    path = folder / file.name
    check = check_file(known, file, folder)
    if check.state == "missing":
        raise InputError([f"{check} (looked in {folder}). To get it: {known.how_to_obtain}"])
    frame, notes = reader_of(file.loader)(path)
    return frame, [*notes, *([f"{path}: not the manifest's file: {check.detail}"] if check.state == "differs" else [])]


def reader_of(loader: Loader) -> Read:
    """Import a loader.

    Returns
    -------
    callable
        Takes a path, and returns a table and notes; raises `InputError`.
    """
    from simulator.datasets import network_loaders, table_loaders  # noqa: PLC0415  heavy, and needed here only

    name = f"read_{loader}"
    read: Read = getattr(table_loaders if hasattr(table_loaders, name) else network_loaders, name)
    return read
