"""Traffic: the vehicles' trips and routes, the engines that move vehicles or replay recordings, and their positions."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
StateArray = npt.NDArray[np.uint8]
"""Each of these is a `simulator.traffic.engine.State`."""
