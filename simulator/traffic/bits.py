"""Bits: the one machine instruction the calendar needs and numba does not name."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:  # noqa: ARG001  # numba's own protocol
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros = cast("Callable[[np.uint64], np.uint64]", _trailing_zeros)
"""How many zero bits lie below the lowest set bit of a uint64 that is not 0; only inside compiled code."""
