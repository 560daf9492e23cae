"""Time and memory of a computation: wall time by phase, and the estimated memory beside the memory available."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import psutil

_PERMITTED: ContextVar[bool] = ContextVar("memory_permitted", default=False)

NEGLIGIBLE = 2**27
"""Bytes that are never refused: less than the error of the estimate of available memory."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


@contextmanager
def permitting(assume_yes: bool) -> Iterator[None]:  # noqa: FBT001 - it has no other parameter
    """Make `shortage` return None inside the block, if the user accepts that memory may not suffice."""
    token = _PERMITTED.set(assume_yes or _PERMITTED.get())
    try:
        yield
    finally:
        _PERMITTED.reset(token)


def shortage(needed: float, *, to: str) -> str | None:
    """Return a message if memory does not suffice for a computation.

    Parameters
    ----------
    needed
        Estimate of the memory needed, bytes.
    to
        Purpose of the memory, to be placed after "memory needed to".

    Returns
    -------
    str or None
        One sentence with the estimate, the memory available and how to continue; None if memory suffices, at most
        `NEGLIGIBLE` bytes are needed, or the user accepted the risk (`permitting`).
    """
    if _PERMITTED.get() or needed <= max(NEGLIGIBLE, available := available_nbytes()):
        return None
    how = "to run anyway: --yes (Python: assume_yes=True)"
    return f"memory needed to {to} is about {in_words(needed)}, available are {in_words(available)}; {how}"


def in_words(nbytes: float) -> str:
    """Write a number of bytes with three digits, in powers of 1,000."""
    power = 0
    while nbytes >= 999.5 and power < len(_UNITS) - 1:
        nbytes, power = nbytes / 1000.0, power + 1
    return f"{nbytes:,.3g} {_UNITS[power]}"


def available_nbytes() -> float:
    """Return how much more memory this process can use without swapping, bytes.

    The minimum of the memory the system has left, of what its control groups leave (Linux) and of what its own limit
    of address space leaves (`ulimit -v`).
    """
    return max(0.0, min([float(psutil.virtual_memory().available), *_of_groups(), *_of_address_space()]))


def _of_groups(root: Path = Path("/sys/fs/cgroup"), listed: Path = Path("/proc/self/cgroup")) -> Iterator[float]:
    """Yield the memory left in each control group of this process: its limit minus its use that cannot be reclaimed."""
    with suppress(OSError):
        for line in listed.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            top = root / "memory" if controllers else root
            limit, held = (
                ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
            )
            for group in _upwards(top / path.lstrip("/"), top):
                with suppress(OSError, ValueError):  # "max" is no number: no limit
                    most = float(int((group / limit).read_text(encoding="ascii")))
                    held_bytes = float((group / held).read_text(encoding="ascii"))
                    stat = dict(map(str.split, (group / "memory.stat").read_text(encoding="ascii").splitlines()))
                    yield most - held_bytes + float(stat.get("inactive_file", 0))


def _upwards(group: Path, top: Path) -> Iterable[Path]:
    """Return a group and all groups above it; inside a container the group's path may not exist, and `top` is used."""
    return [group, *(above for above in group.parents if above.is_relative_to(top))]


def _of_address_space() -> Iterator[float]:
    if hasattr(psutil, "RLIMIT_AS"):  # Linux
        process = psutil.Process()
        limit = process.rlimit(psutil.RLIMIT_AS)[0]
        if limit != psutil.RLIM_INFINITY:
            yield float(limit - process.memory_info().vms)


def peak_memory_nbytes() -> int | None:
    """Return the peak memory of this process, bytes; None if the system does not report it, as on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


class Stopwatch:
    """Counts wall seconds by phase; while a nested phase runs, the outer phase is not counted."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._stack: list[str] = []
        self._since = self._born = time.perf_counter()

    def _turn_over(self) -> None:
        now = time.perf_counter()
        if self._stack:
            phase = self._stack[-1]
            self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._since
        self._since = now

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time spent in the `with` block as phase `name`."""
        self._turn_over()
        self._stack.append(name)
        try:
            yield
        finally:
            self._turn_over()
            self._stack.pop()

    def wall_s(self) -> dict[str, float]:
        """Return seconds by phase, and `total` since the stopwatch was created."""
        self._turn_over()
        return {**self._seconds, "total": time.perf_counter() - self._born}
