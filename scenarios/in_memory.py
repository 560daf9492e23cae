"""Tables and roads made in Python: kept as files in a temporary folder, from which a run reads them as any others."""

import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

DATA = "data"
"""Folder beside a written scenario that holds the copies of its tables."""


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="crowdveil-", ignore_cleanup_errors=True)


def memory_folder() -> Path:
    """Return the folder of tables made in Python; it is removed when the process ends."""
    return Path(_temporary().name).resolve()


def is_in_memory(path: Path) -> bool:
    """Return whether a path is in the folder of tables made in Python."""
    return _temporary.cache_info().currsize > 0 and path.is_relative_to(memory_folder())


def is_table(value: object) -> bool:
    """Return whether a value is a table: a DataFrame, a GeoDataFrame or a GeoSeries."""
    return hasattr(value, "to_parquet") or hasattr(value, "total_bounds")


def store(table: Any) -> str:
    """Write a table to a Parquet file, without its index, and return the file's path; equal tables share a file.

    Raises
    ------
    ValueError
        If Parquet cannot hold the table, for example because a column has values of several types.
    """
    partial = memory_folder() / "partial.parquet"
    table = table if hasattr(table, "to_parquet") else table.to_frame("geometry")
    table.to_parquet(partial, index=False)
    name = hashlib.sha256(partial.read_bytes()).hexdigest()[:12]
    return str(partial.replace(memory_folder() / f"table-{name}.parquet"))


def new_folder(name: str) -> Path:
    """Return a new empty folder of this name for data that consist of several files."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=memory_folder()))


def copy_beside(path: Path, folder: Path) -> str:
    """Copy a file or folder of `memory_folder` to the folder `data` in `folder`, and return its path from there."""
    target = folder / DATA / path.relative_to(memory_folder())
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(path, target)
    return target.relative_to(folder).as_posix()
