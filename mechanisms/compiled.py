"""Decorator that compiles a function with numba and keeps its static type."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel on first use, cache it on disk, and release the global interpreter lock while it runs."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))
