"""Installed packages: the own version, and optional packages, imported when a format or an engine needs one."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from simulator.files.errors import InputError

_taking_part: ContextVar[set[str] | None] = ContextVar("_taking_part", default=None)


def own_version() -> str:
    """Return crowdveil's version, "unknown" if it is not installed."""
    try:
        return version("crowdveil")
    except PackageNotFoundError:
        return "unknown"


@contextmanager
def recorded_extras() -> Iterator[set[str]]:
    """Yield a set to which the name of every extra package used inside the block is added, and only those."""
    names: set[str] = set()
    token = _taking_part.set(names)
    try:
        yield names
    finally:
        _taking_part.reset(token)


def record_extra(package: str) -> None:
    """Record that an extra package is used; `import_extra` does so for the packages that it imports."""
    if (names := _taking_part.get()) is not None:
        names.add(package)


def import_extra(module: str, *, needed: str, extra: str, package: str = "") -> Any:
    """Import a module that may not be installed.

    Parameters
    ----------
    module
        The full name of the module; it begins with the name of its package.
    needed
        Beginning of the error message: what needs which package, such as "cells of kind h3 need h3".
    extra
        The extra of this project that installs the package.
    package
        The package as it is installed, where its name is not that of the module.

    Returns
    -------
    module
        The module.

    Raises
    ------
    InputError
        If the module is not installed; the message gives the command that installs it.
    """
    try:
        imported = importlib.import_module(module)
    except ImportError:
        raise InputError([f"{needed}: pip install 'crowdveil[{extra}]'"]) from None
    record_extra(package or module.partition(".")[0])
    return imported
