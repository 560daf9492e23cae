"""Atomic write: files and directories appear complete or not at all, and a replaced one is available throughout.

Everything is written into a hidden staging directory `.NAME.partial-HOST-RANDOM` beside its target, synchronised
to disk, and then renamed. A process holds a lock (flock) on its staging directory, which the system releases when the
process ends, however it ends. The next process that writes there removes staging directories that no process has
locked.
"""

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

from simulator.files.errors import InputError

if sys.platform != "win32":
    import fcntl

_PARTIAL, _REPLACED = ".partial-", ".replaced-"
_STAGING_NAME = re.compile(r"\.(?P<target>.+)\.(?:partial|replaced)-(?P<token>(?P<host>[0-9a-f]{12})-[0-9a-f]{16})")
_OCCUPIED = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}
_NOT_SYNCHRONISABLE = {errno.EINVAL, errno.EACCES}
_AT_FDCWD, _RENAME_NOREPLACE, _RENAME_EXCHANGE = -100, 1, 2


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """Create an empty directory beside `target`, to write into and then `publish` from; it is removed at the end.

    Parameters
    ----------
    target
        The file or directory to be written; missing parent directories are created.

    Yields
    ------
    Path
        The staging directory, on the same file system as the target.

    Raises
    ------
    OSError
        With the name of the target if the error concerned the staging directory or named no file.
    """
    staging, descriptor = _staging_name(target), None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        staging.mkdir()
        while (descriptor := _lock(staging, required=False)) is None:
            staging = _staging_name(target)  # another process removed the directory before it was locked
            staging.mkdir()
        yield staging
    except OSError as error:
        if error.errno is None or not str(error.filename or staging).startswith(str(staging)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
    finally:
        _roll_back(staging)
        if descriptor:
            os.close(descriptor)


def publish(source: Path, target: Path, *, replace: bool) -> None:
    """Synchronise a finished file or staging directory to disk and rename it to its target.

    Parameters
    ----------
    source
        A file in a staging directory, or a staging directory.
    target
        New name of the source, in the directory that holds the staging directory.
    replace
        Whether an existing file or directory is replaced. Where the system supports it (Linux), a directory is
        exchanged in one step, so that a complete directory is always at the target. Elsewhere the old directory is
        renamed first, and `remove_leftovers` restores it if the process is killed before the second rename.

    Raises
    ------
    FileExistsError
        Without `replace`, if the target is a file or a directory that is not empty.
    """
    _synchronise(source)
    _rename(source, target, replace=replace)
    _synchronise_directory(target.parent)


def write_file(path: Path, fill: Callable[[Path], object], *, overwrite: bool) -> None:
    """Call `fill` to write a file beside its target, then rename the file.

    Parameters
    ----------
    path
        Target of the file; missing parent directories are created.
    fill
        Function that writes to the path it is given, of the same name.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    FileExistsError
        If the target exists and may not be replaced: a file without `overwrite`; a device or a directory, always.
    OSError
        If the file cannot be written.
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is not a regular file", str(path))
    with staging_directory(path) as staging:
        fill(staging / path.name)
        publish(staging / path.name, path, replace=overwrite)


def plain_name(text: str) -> str:
    """Return text as a part of a file's name: letters, digits, ``.``, ``_`` and ``-``, with ``_`` for all others."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)


def export_file(path: Path, fill: Callable[[Path], object], *, overwrite: bool) -> None:
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
        raise InputError([f"{path}: must be a file, but is a folder"])
    if path.exists() and not overwrite:
        raise InputError([f"{path}: there is a file already; overwrite it (--overwrite), or name another"])
    with _reported(path):
        write_file(path, fill, overwrite=overwrite)


def export_folder(folder: Path, fill: Callable[[Path], None], *, overwrite: bool) -> None:
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
        raise InputError([f"{folder}: must be a folder, but is a file"])
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise InputError([f"{folder}: this folder holds files already; overwrite them (--overwrite), or name another"])
    with _reported(folder), staging_directory(folder) as staging:
        fill(staging)
        if overwrite and folder.exists():
            for file in sorted(staging.iterdir()):
                publish(file, folder / file.name, replace=True)
        else:
            publish(staging, folder, replace=False)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Convert an error of the file system to an `InputError`.

    Raises
    ------
    InputError
        With the path that cannot be written and the reason.
    """
    try:
        yield
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}"]) from error


def is_staging_name(name: str) -> bool:
    """Return whether a file name names a staging directory, or a directory that one replaces."""
    return _STAGING_NAME.fullmatch(name) is not None


def remove_leftovers(directory: Path) -> None:
    """Clean up the staging directories that ended processes left in a directory.

    Staging directories are removed, and a directory that was about to be replaced is restored. Staging directories of
    a running process are left alone. So are the directories of another host, or of an earlier boot of this one, since
    it is not known whether their processes still run. Where the system has no flock for directories, all are left
    alone.
    """
    with suppress(OSError):
        for path in directory.iterdir():
            match = _STAGING_NAME.fullmatch(path.name)
            if match is None or match["host"] != _host():
                continue
            staging = directory / f".{match['target']}{_PARTIAL}{match['token']}"
            descriptor = _lock(staging) if staging.exists() else 0
            if descriptor is not None:
                _roll_back(staging)
                if descriptor:
                    os.close(descriptor)


def publish_numbered(source: Path, target: Path) -> Path:
    """Rename a staging directory to `target` or, if that exists, to `target-2`, `target-3` …, and return that path."""
    _synchronise(source)
    for number in count(1):
        path = target if number == 1 else target.with_name(f"{target.name}-{number}")
        with suppress(FileExistsError):
            _rename(source, path, replace=False)
            break
    _synchronise_directory(path.parent)
    return path


def _rename(source: Path, target: Path, *, replace: bool) -> None:
    try:
        if replace and source.is_dir() and target.is_dir():
            _replace_directory(source, target)
        elif replace or source.is_dir():
            source.replace(target)  # the system replaces a directory only if it is empty
        else:
            _rename_file(source, target)
    except OSError as error:
        if error.errno in _OCCUPIED:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        raise


def _rename_file(source: Path, target: Path) -> None:
    """Rename a file to a free name."""
    try:
        _renameat2(source, target, _RENAME_NOREPLACE)
    except FileExistsError:
        raise
    except OSError:  # the system or the file system does not support it
        target.hardlink_to(source)


def _replace_directory(staging: Path, target: Path) -> None:
    """Rename a staging directory to its target, and the target to a name that `_roll_back` removes."""
    try:
        _renameat2(staging, target, _RENAME_EXCHANGE)
    except OSError:  # the system or the file system does not support it, or the target was removed meanwhile
        with suppress(FileNotFoundError):
            target.rename(_replaced(staging))
        staging.rename(target)


def _renameat2(source: Path, target: Path, flag: int) -> None:
    """Call Linux's renameat2: rename to a free name only, or exchange two names in one step.

    Raises
    ------
    OSError
        If the system or the file system does not support it.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flag) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(source))


def _roll_back(staging: Path) -> None:
    """Remove a staging directory and the directory it replaced.

    The names record the progress of a replacement in two renames: if both directories exist, the second rename did
    not happen, and the replaced directory is restored first.
    """
    replaced = _replaced(staging)
    if staging.exists() and replaced.exists():
        publish_numbered(replaced, staging.with_name(staging.name[1:].rpartition(_PARTIAL)[0]))
    for left in (replaced, staging):
        shutil.rmtree(left, ignore_errors=True)


def _staging_name(target: Path) -> Path:
    return target.with_name(f".{target.name}{_PARTIAL}{_host()}-{secrets.token_hex(8)}")


def _replaced(staging: Path) -> Path:
    target, _, token = staging.name.rpartition(_PARTIAL)
    return staging.with_name(f"{target}{_REPLACED}{token}")


def _lock(directory: Path, *, required: bool = True) -> int | None:
    """Open and lock a directory.

    Returns
    -------
    int or None
        The descriptor that holds the lock; 0 if directories cannot be locked and the lock is not `required`; None
        if they cannot and it is, if another process has the lock, or if the directory no longer exists.
    """
    if sys.platform == "win32":
        return None if required else 0
    descriptor = None
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), directory.stat()):
            return descriptor
    except (FileNotFoundError, BlockingIOError):
        required = True
    except OSError:  # directories cannot be locked, as on network file systems
        pass
    if descriptor is not None:
        os.close(descriptor)
    return None if required else 0


@cache
def _host() -> str:
    """Return twelve hexadecimal digits that identify this boot of this machine or, if unknown, the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").replace("-", "")[:12]
    except OSError:
        return f"{uuid.getnode():012x}"


def _synchronise(path: Path) -> None:
    """Flush a file, or a directory and its content, to disk."""
    if path.is_dir():
        for child in path.iterdir():
            _synchronise(child)
        _synchronise_directory(path)
        return
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _synchronise_directory(directory: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SYNCHRONISABLE:
            raise
