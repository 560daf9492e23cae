"""Files written entirely or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.roads.errors import RoadsError

if TYPE_CHECKING:
    from collections.abc import Callable


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

    def move(staging: Path) -> None:
        (staging / path.name).replace(path)

    _stage(path.parent, path.name, lambda staging: fill(staging / path.name), move)


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

    def move(staging: Path) -> None:
        if folder.exists():
            for file in sorted(staging.iterdir()):
                file.replace(folder / file.name)
        else:
            staging.chmod(0o777 & ~_umask())
            staging.replace(folder)

    _stage(folder.parent, folder.name, fill, move)


def _stage(parent: Path, name: str, fill: Callable[[Path], None], move: Callable[[Path], None]) -> None:
    """Fill a folder beside the target and move what it holds; whatever happens, nothing of it is left."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{name}.partial-", dir=parent))
    except OSError as error:
        raise RoadsError([f"{parent}: cannot be written to: {error.strerror or error}"]) from error
    try:
        fill(staging)
        move(staging)
    except OSError as error:
        raise RoadsError([f"{parent / name}: cannot be written: {error.strerror or error}"]) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
