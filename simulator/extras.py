"""Optional packages, imported when a format or an engine needs one."""

import importlib
from contextvars import ContextVar
from typing import Any

from simulator.files.errors import FaultsError

_taking_part: ContextVar[set[str] | None] = ContextVar("_taking_part", default=None)


def record_extras() -> set[str]:
    """Return a new set, to which the name of every extra package is added that is used from here on."""
    names: set[str] = set()
    _taking_part.set(names)
    return names


def record_extra(package: str) -> None:
    """Record that an extra package is used; `import_extra` does so for what it imports."""
    names = _taking_part.get()
    if names is not None:
        names.add(package)


def import_extra(module: str, *, needed: str, extra: str, error: type[FaultsError]) -> Any:
    """Import a module that may not be installed.

    Parameters
    ----------
    module
        Its full name; it begins with its package's.
    needed
        What needs which package, to begin the message with: "reading GPX needs gpxpy".
    extra
        The extra of this project that the package comes with.
    error
        What the room that asks raises.

    Returns
    -------
    module
        The module.

    Raises
    ------
    FaultsError
        Of the kind given, if it is not installed; the message says what installs it.
    """
    try:
        imported = importlib.import_module(module)
    except ImportError:
        raise error([f"{needed}: pip install 'crowdveil[{extra}]'"]) from None
    record_extra(module.partition(".")[0])
    return imported
