"""Plug-in: a user's mechanism, with what it may leave out filled in."""

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

BATCH = 1 << 16


class PlugIn:
    """Passes everything on to a user's mechanism, and stands in for the optional parts it lacks.

    Parameters
    ----------
    mechanism
        With everything in `REQUIRED`. Without `std_error` there is no theory to stand beside its error; without
        `batch` its devices answer 65,536 at a time; without `warnings` there are none.
    cells
        The number of cells.

    Raises
    ------
    TypeError
        If something required is missing, all of it named.
    """

    def __init__(self, mechanism: Any, *, cells: int) -> None:  # whatever the user wrote
        missing = [name for name in REQUIRED if not hasattr(mechanism, name)]
        if missing:
            raise TypeError(f"a mechanism must have {', '.join(missing)} (see mechanisms.local.LocalMechanism)")
        self._mechanism = mechanism
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
