"""Directory: a place that is filled entirely or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

COMPLETE = "run.json"
"""Written last, so that its presence means a complete run."""

RUN_FORMAT = 2
"""Of the run directories written now; those of version 0.1.0 give no number, and are of format 1."""

LATEST = "latest"
"""Link to the newest run beside it."""

_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}


class DirectoryError(ValueError):
    """A run directory that may not be written."""


def check_free(directory: Path, *, overwrite: bool, numbered: bool = False) -> None:
    """Check that a run may be written to `directory`, or with `numbered` beside it, before it is worked for.

    Raises
    ------
    DirectoryError
        If something is there: a run, without `overwrite`; or anything else, always, since replacing would lose it.
    """
    above = next(parent for parent in directory.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        why = "must be in a directory that can be written, and " + (
            f"{above} cannot" if above.is_dir() else f"{above} is a file"
        )
        raise DirectoryError(f"out (--out): {why}; got {directory}")
    if numbered:
        return
    if directory.is_symlink():
        # What it leads to would be replaced without its name having been given.
        raise DirectoryError(f"out (--out): must not be a link; name the directory itself; got {directory}")
    if not directory.exists():
        return
    if not directory.is_dir():
        raise DirectoryError(f"out (--out): must be a directory, and there is a file; got {directory}")
    if not any(directory.iterdir()):
        return
    if not (directory / COMPLETE).is_file():
        raise DirectoryError(
            f"out (--out): must be a new directory or an earlier run, and this one holds other things; got {directory}"
        )
    if not overwrite:
        raise DirectoryError(
            f"out (--out): there is a run already; overwrite it (--overwrite), or name another; got {directory}"
        )


def fill_directory(directory: Path, fill: Callable[[Path], None], *, overwrite: bool, numbered: bool = False) -> Path:
    """Let `fill` write into a staging directory, then put that in place in one step.

    Whatever goes wrong meanwhile, Ctrl-C included, leaves what was at `directory` as it was and the staging
    directory removed; a process that is killed outright leaves a hidden `.NAME.partial-…` beside it.
    With `numbered`, the place is the first of `directory`, `directory-2`, `directory-3` … that is free at the end.

    Returns
    -------
    Path
        The directory that was filled.

    Raises
    ------
    DirectoryError
        If something is there already that may not be replaced.
    """
    check_free(directory, overwrite=overwrite, numbered=numbered)
    directory.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{directory.name}.partial-", dir=directory.parent))
    try:
        fill(staging)
        staging.chmod(0o777 & ~_umask())
        if overwrite and directory.exists():
            replaced = Path(tempfile.mkdtemp(prefix=f".{directory.name}.replaced-", dir=directory.parent))
            directory.replace(replaced)
            staging.replace(directory)
            shutil.rmtree(replaced)
            return directory
        return _put(staging, _numbered(directory) if numbered else [directory])
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def link_latest(directory: Path) -> None:
    """Let the link `latest` beside a run lead to it, in one step; without it where links cannot be made."""
    link = directory.with_name(LATEST)
    if link.exists() and not link.is_symlink():
        return  # a file or a run that a user called so
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=f".{LATEST}-", dir=link.parent) as aside:
        made = Path(aside, LATEST)
        made.symlink_to(directory.name, target_is_directory=True)
        made.replace(link)


def _numbered(directory: Path) -> Iterator[Path]:
    yield directory
    yield from (directory.with_name(f"{directory.name}-{number}") for number in count(2))


def _put(staging: Path, places: Iterable[Path]) -> Path:
    """Rename a directory to the first of `places` that is free, and replace none.

    Raises
    ------
    DirectoryError
        If none is.
    """
    for place in places:
        try:
            return staging.replace(place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
    raise DirectoryError(f"out (--out): something was written there meanwhile; got {place}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
