"""Compiled code: array types, a decorator that compiles a function with numba, and the special functions of scipy."""

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Values: TypeAlias = NDArray[np.int32]
"""Numbers of cells, 0 outside, and other reported values."""
Words: TypeAlias = NDArray[np.uint64]

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel, **options: Any) -> Kernel:
    """Compile a kernel on first use, and release the global interpreter lock while it runs.

    Its machine code is kept in the first of these folders that can be written: the one that `NUMBA_CACHE_DIR` names,
    ``__pycache__`` beside the source, and numba's folder in the user's folder of caches. If none can be, as in a
    container without a home, each process compiles the kernel again. Further options are numba's. Nothing calls a
    kernel from C, so no wrapper for C is compiled.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no folder
        kernel = numba.njit(**options)(function)
    return cast("Kernel", kernel)


def inner(function: Kernel, **options: Any) -> Kernel:
    """Compile a function that compiled functions alone call. A call from Python crashes: it has no wrapper for that."""
    return compiled(function, no_cpython_wrapper=True, **options)


def alone(package: str, module: str) -> ModuleType:
    """Return a compiled module of scipy without the package around it, which can still be imported afterwards.

    scipy.special loads what it needs for arrays other than numpy's, among it numpy.f2py and unittest: 110 of 120 ms of
    CPU time. numba imports a module of scipy.linalg before the first kernel, which takes as long. Together they are a
    tenth of a run of `tiny`.
    """
    name = f"{package}.{module}"
    if package in sys.modules:
        return import_module(name)
    around = ModuleType(package)
    around.__path__ = [str(Path(scipy.__file__).parent / package.rpartition(".")[2])]
    sys.modules[package] = around
    try:
        return import_module(name)
    finally:
        del sys.modules[package]


with suppress(ImportError):  # then numba knows what to do
    alone("scipy.linalg", "cython_blas")


def __getattr__(name: str) -> Any:  # PEP 562
    """Return a special function of scipy by its name there."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with suppress(ImportError, AttributeError):  # another version of scipy may have it elsewhere
        return getattr(alone("scipy.special", "_ufuncs"), name)
    return getattr(scipy.special, name)
