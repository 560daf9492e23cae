"""Guesses: where an attack says that devices were."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.aggregation.transcript import HandleKind, IntArray


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about devices of which the coalition saw the same things in one query.

    Parameters
    ----------
    query
        From 1.
    handle_kind, handles
        (n,) int64, whom they are about; None: about any device whatsoever.
    cells
        (n,) int32, 0 outside … V; (1,) where it is about any device.
    theory
        The expected success, before the reports are seen; None where it is not known.

    Raises
    ------
    ValueError
        If handles and cells are not of the same devices.
    """

    query: int
    handle_kind: HandleKind
    handles: IntArray | None
    cells: npt.NDArray[np.int32]
    theory: float | None

    def __post_init__(self) -> None:
        """Check that there is one guess a handle."""
        if (self.handles is None) != (self.handle_kind == "none"):
            raise ValueError(f"handles must be there unless handle_kind is 'none', received {self.handle_kind!r}")
        if len(self.cells) != (1 if self.handles is None else len(self.handles)):
            raise ValueError(f"there must be one guess a device, received {len(self.cells)}")
