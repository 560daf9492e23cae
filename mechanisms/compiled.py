"""Decorator that compiles a function with numba and keeps its static type."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel, **options: Any) -> Kernel:
    """Compile a kernel on first use, and release the global interpreter lock while it runs.

    Its machine code is kept in the first of these folders that can be written: the one that `NUMBA_CACHE_DIR` names,
    ``__pycache__`` beside the source, and numba's folder in the user's folder of caches. If none can be, as in a
    container without a home, each process compiles the kernel again. Further options are numba's. No wrapper is made
    for callers in C, of whom there are none.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no folder
        kernel = numba.njit(**options)(function)
    return cast("Kernel", kernel)


def inner(function: Kernel, **options: Any) -> Kernel:
    """Compile a function that compiled functions alone call: without a wrapper for Python, whose call would crash."""
    return compiled(function, no_cpython_wrapper=True, **options)
