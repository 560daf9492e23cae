"""Directory: a place that is filled entirely or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

COMPLETE = "run.json"
"""Written last, so that its presence means a complete run."""


class DirectoryError(ValueError):
    """A run directory that may not be written."""


def check_free(directory: Path, *, overwrite: bool) -> None:
    """Check that a run may be written to `directory`, before it is worked for.

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
        raise DirectoryError(f"--out: {why}; got {directory}")
    if not directory.exists() and not directory.is_symlink():
        return
    if not directory.is_dir():
        raise DirectoryError(f"--out: must be a directory, and there is a file; got {directory}")
    if not any(directory.iterdir()):
        return
    if not (directory / COMPLETE).is_file():
        raise DirectoryError(
            f"--out: must be a new directory or an earlier run, and this one holds other things; got {directory}"
        )
    if not overwrite:
        raise DirectoryError(
            f"--out: there is a run already; give --overwrite to replace it, or another --out; got {directory}"
        )


def fill_directory(directory: Path, fill: Callable[[Path], None], *, overwrite: bool) -> Path:
    """Let `fill` write into a staging directory, then put that in place in one step.

    Whatever goes wrong meanwhile, Ctrl-C included, leaves what was at `directory` as it was and the staging
    directory removed; a process that is killed outright leaves a hidden `.NAME.partial-…` beside it.
    """
    check_free(directory, overwrite=overwrite)
    directory.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{directory.name}.partial-", dir=directory.parent))
    try:
        fill(staging)
        staging.chmod(0o777 & ~_umask())
        if directory.exists():
            replaced = Path(tempfile.mkdtemp(prefix=f".{directory.name}.replaced-", dir=directory.parent))
            directory.replace(replaced)
            staging.replace(directory)
            shutil.rmtree(replaced)
        else:
            staging.replace(directory)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return directory


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
