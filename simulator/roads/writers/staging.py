"""Writing of files completely or not at all; failures are raised as `InputError`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from simulator.files import atomic_write
from simulator.files.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def write_file(path: Path, fill: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let `fill` write a temporary file next to the target, then move it to the target in one step.

    Parameters
    ----------
    path
        The target file; missing parent folders are created.
    fill
        Writes the file to the path that it is given, which has the same suffix.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    InputError
        If the target exists and may not be replaced, or cannot be written.
    """
    if path.is_dir():
        raise InputError([f"{path}: must be a file, and there is a folder"])
    if path.exists() and not overwrite:
        raise InputError([f"{path}: there is a file already; overwrite it (--overwrite), or name another"])
    with _reported(path):
        atomic_write.write_file(path, fill, overwrite=overwrite)


def write_folder(folder: Path, fill: Callable[[Path], None], *, overwrite: bool) -> None:
    """Let `fill` write files into a staging folder, then move them to the target folder.

    A new folder appears in one step. In an existing folder, each file is replaced in one step, and files with other
    names are not changed.

    Parameters
    ----------
    folder
        The target folder; missing parent folders are created.
    fill
        Writes files into the folder that it is given.
    overwrite
        Whether existing files with the same names are replaced.

    Raises
    ------
    InputError
        If the target exists and may not be replaced, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError([f"{folder}: must be a folder, and there is a file"])
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise InputError([f"{folder}: this folder holds files already; overwrite them (--overwrite), or name another"])
    with _reported(folder), atomic_write.staging_directory(folder) as staging:
        fill(staging)
        if overwrite and folder.exists():
            for file in sorted(staging.iterdir()):
                atomic_write.publish(file, folder / file.name, replace=True)
        else:
            atomic_write.publish(staging, folder, replace=False)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Convert an error of the file system to a `InputError`.

    Raises
    ------
    InputError
        With the path that cannot be written and the reason.
    """
    try:
        yield
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}"]) from error
