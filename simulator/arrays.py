"""Array types, by the type of their entries."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Cells: TypeAlias = npt.NDArray[np.int32]
"""Numbers of cells: 0 outside, 1…V."""
StateArray: TypeAlias = npt.NDArray[np.uint8]
"""Each entry is a `simulator.traffic.engine.State`."""
LinkIds: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.int32]
"""Ids of links in routes, of the type `simulator.traffic.routes.link_dtype`."""
