"""Plug-in: a user's mechanism, imported and verified, with what it may leave out filled in."""

import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

REQUIRED = (
    "rounds",
    "truth_round",
    "tally_shape",
    "enrol",
    "toss",
    "answer",
    "encode",
    "tally",
    "estimate",
    "sample_counts",
    "claim",
)
"""What every mechanism has; `crowdveil check` tests that it keeps its promises."""

METHODS = REQUIRED[REQUIRED.index("enrol") :]
"""Those of `REQUIRED` that a class has before an instance is made of it."""

BATCH = 1 << 16


class NotAMechanismError(TypeError):
    """What a plug-in's name leads to is no class of mechanisms."""


def import_plug_in(kind: str) -> type:
    """Import the class that ``package.module:Class`` names, and verify that it is a mechanism, without calling it.

    Raises
    ------
    ImportError, AttributeError
        If there is no such module, or nothing of that name in it.
    NotAMechanismError
        If what it names is not a class, or lacks methods of a mechanism.
    """
    module, _, name = kind.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, type):
        raise NotAMechanismError(f"must be a class of mechanisms, and is of type {type(found).__name__}")
    if missing := [name for name in METHODS if not callable(getattr(found, name, None))]:
        raise NotAMechanismError(
            f"must be a class of mechanisms (see mechanisms.local.LocalMechanism): it must have {', '.join(missing)}"
        )
    return found


def source_sha256(found: type) -> str | None:
    """Return the sha256 of the file of the module that defines a class; None if it has no file."""
    file = getattr(sys.modules.get(found.__module__), "__file__", None)
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


class PlugIn:
    """Passes everything on to a user's mechanism, and stands in for the optional parts it lacks.

    Parameters
    ----------
    mechanism
        With everything in `REQUIRED`. Without `std_error` there is no theory to stand beside its error; without
        `batch` its devices answer 65,536 at a time; without `warnings` there are none.
    cells
        The number of cells.
    sha256
        Of the file of the module that defines it, where it has one.

    Raises
    ------
    TypeError
        If something required is missing, all of it named.
    """

    def __init__(self, mechanism: Any, *, cells: int, sha256: str | None = None) -> None:  # whatever the user wrote
        missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
        if missing:
            raise TypeError(f"a mechanism must have {', '.join(missing)} (see mechanisms.local.LocalMechanism)")
        self._mechanism = mechanism
        self.sha256 = sha256
        self.cells: int = getattr(mechanism, "cells", cells)
        self.batch: int = getattr(mechanism, "batch", BATCH)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def warnings(self) -> list[str]:
        """Return the mechanism's own warnings, if it has any."""
        own = getattr(self._mechanism, "warnings", None)
        return [] if own is None else own()

    def tally(self, reports: Any, where: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """Add up the reports of some devices."""
        chosen = reports if where is None else reports[where]
        return np.asarray(self._mechanism.tally(chosen), dtype=np.int64)

    def std_error(self, true_counts: npt.NDArray[np.int64], **heard: Any) -> npt.NDArray[np.float64]:
        """Return the mechanism's own theory, NaN where it has none."""
        own = getattr(self._mechanism, "std_error", None)
        if own is None:
            return np.full(self.cells, np.nan)
        return np.asarray(own(true_counts, **heard))
