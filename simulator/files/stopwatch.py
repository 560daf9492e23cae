"""Stopwatch: wall time by phase, each second counted once."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


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
