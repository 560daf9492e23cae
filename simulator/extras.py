"""Extras: packages that only some formats and engines need, imported when one of those is asked for."""

import importlib
from typing import Any

from simulator.files.errors import FaultsError


def import_extra(module: str, *, needed: str, extra: str, error: type[FaultsError]) -> Any:
    """Import a module that may not be installed.

    Parameters
    ----------
    module
        Its full name.
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
        return importlib.import_module(module)
    except ImportError:
        raise error([f"{needed}: pip install 'crowdveil[{extra}]'"]) from None
