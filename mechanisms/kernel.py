"""Decorator for compiled functions: numba's compiler, with the function's type kept."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel on first use, keep it on disk for the next process, and release the lock while it runs."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))
