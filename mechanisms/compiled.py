"""Decorator that compiles a function with numba and keeps its static type."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile a kernel on first use, cache it on disk, and release the global interpreter lock while it runs."""
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


def cache_folder() -> Path:
    """Return the folder in which compiled kernels are kept.

    Raises
    ------
    RuntimeError
        If numba finds no folder that can be written.
    """
    return Path(str(numba.njit(cache=True)(_kernel).stats.cache_path))


def _kernel() -> None:
    """Do nothing."""
