"""Writes files completely or not at all, with errors of road networks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from simulator.files import atomic_write
from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def write_file(path: Path, fill: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let `fill` write a file beside the place it is for, then put it there in one step.

    Parameters
    ----------
    path
        Where the file goes; folders above it are made.
    fill
        Writes to the path it is given, of the same suffix.
    overwrite
        Whether a file there is replaced.

    Raises
    ------
    RoadsError
        If something is there and may not be replaced, or the place cannot be written to.
    """
    if path.is_dir():
        raise RoadsError([f"{path}: must be a file, and there is a folder"])
    if path.exists() and not overwrite:
        raise RoadsError([f"{path}: there is a file already; overwrite it (--overwrite), or name another"])
    with _reported(path):
        atomic_write.write_file(path, fill, overwrite=overwrite)


def write_folder(folder: Path, fill: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let `fill` write files into a staging folder, then put them in place.

    A new folder appears in one step. In one that is there, each file is replaced in one step, and files of other
    names are left alone.

    Parameters
    ----------
    folder
        Where the files go; folders above it are made.
    fill
        Writes files into the folder it is given.
    overwrite
        Whether files there of the same names are replaced.

    Raises
    ------
    RoadsError
        If something is there and may not be replaced, or the place cannot be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise RoadsError([f"{folder}: must be a folder, and there is a file"])
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise RoadsError([f"{folder}: this folder holds files already; overwrite them (--overwrite), or name another"])
    with _reported(folder), atomic_write.staging_directory(folder) as staging:
        fill(staging)
        if overwrite and folder.exists():
            for file in sorted(staging.iterdir()):
                atomic_write.publish(file, folder / file.name, replace=True)
        else:
            atomic_write.publish(staging, folder, replace=False)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Report an error of the file system as one of the roads.

    Raises
    ------
    RoadsError
        Naming what cannot be written, and why.
    """
    try:
        yield
    except OSError as error:
        raise RoadsError([f"{path}: cannot be written: {error.strerror or error}"]) from error
